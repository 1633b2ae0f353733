/*
 * supervise_test: the conversation with the box, cut after each message, and with every kind of
 * message that has no place; then how the command's end becomes the result's status.
 */
#define _GNU_SOURCE
#include "box/stages.h"
#include "fake_box.h"

#include <sys/resource.h>

static struct stage_play play;

static void check_error(enum err_code code)
{
	CHECK(play.r == 0);
	CHECK(play.result.status == STATUS_ERROR);
	CHECK_TEXT(err_info(play.result.error.code)->name, err_info(code)->name);
	CHECK(play.result.error.text[0] != 0);
	CHECK(play.result.exit_code == -1 && play.result.signal == 0);
	CHECK(result_exit_status(&play.result) != 0);
	CHECK(play.seconds < 2);
	result_free(&play.result);
}

/* The box played a message that has no place after the command's start. */
static void check_protocol(void)
{
	CHECK(play.r == 0);
	CHECK(play.result.status == STATUS_SIGNALED && play.result.signal == SIGKILL);
	CHECK(play.result.error.code == ERR_none);
	CHECK(has_warning(&play.result, "box_protocol"));
	CHECK(play.seconds < 2);
	result_free(&play.result);
}

static void linger(void)
{
	pause_ms(20000); /* ends by SIGKILL long before */
}

/* --- cut after each message --- */

static void die_at_once(struct fake *fake)
{
	(void)fake;
}

static void close_setup_early(struct fake *fake)
{
	fd_close(&fake->setup);
	linger();
}

static void close_status_early(struct fake *fake)
{
	fd_close(&fake->status);
	linger();
}

static void killed_from_outside_in_setup(struct fake *fake)
{
	(void)fake;
	raise(SIGKILL);
}

static void cut_before_exec(void)
{
	static script *const cuts[] = { die_at_once, close_setup_early, close_status_early,
		killed_from_outside_in_setup };
	for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
		play_simple(&play, cuts[i]);
		check_error(ERR_box_died);
	}
}

static void die_after_execing(struct fake *fake)
{
	say_execing(fake->setup);
}

static void die_after_start(struct fake *fake)
{
	start(fake);
	(void)!write(fake->out, "kept", 4);
	raise(SIGKILL);
}

static void close_status_after_start(struct fake *fake)
{
	start(fake);
	fd_close(&fake->status);
	linger();
}

static void close_status_after_execing(struct fake *fake)
{
	say_execing(fake->setup);
	fd_close(&fake->status);
	linger();
}

static void cut_after_exec(void)
{
	static script *const cuts[] = { die_after_execing, die_after_start,
		close_status_after_start, close_status_after_execing };
	for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
		play_simple(&play, cuts[i]);
		CHECK(play.r == 0);
		CHECK(play.result.status == STATUS_SIGNALED && play.result.signal == SIGKILL);
		CHECK(has_warning(&play.result, "box_killed"));
		CHECK(play.result.error.code == ERR_none);
		CHECK(play.result.usage.memory_peak_bytes > 0);
		CHECK(play.result.usage.memory_peak_bytes != UNKNOWN);
		CHECK(play.seconds < 2);
		if (cuts[i] == die_after_start)
			CHECK(play.result.out.total == 4);
		result_free(&play.result);
	}
}

static void die_after_ended(struct fake *fake)
{
	start(fake);
	say_ended(fake->status, 7 << 8);
}

static void cut_after_ended(void)
{
	play_simple(&play, die_after_ended);
	CHECK(play.r == 0);
	CHECK(play.result.status == STATUS_EXITED && play.result.exit_code == 7);
	CHECK(play.result.leftover_killed == 0);
	CHECK(play.result.usage.disk_bytes == UNKNOWN);
	CHECK(play.result.usage.memory_peak_bytes == 4321 * 1024);
	result_free(&play.result);
}

static void whole(struct fake *fake)
{
	start_with(fake, fake->out);
	(void)!write(fake->out, "out", 3);
	(void)!write(fake->err, "error", 5);
	say_ended(fake->status, 3 << 8);
	say_gone(fake->status, 2, 8192);
}

static void the_whole_conversation(void)
{
	play_simple(&play, whole);
	struct result *r = &play.result;
	CHECK(play.r == 0);
	CHECK(r->status == STATUS_EXITED && r->exit_code == 3 && r->signal == 0);
	CHECK(r->limits_hit == 0 && r->error.code == ERR_none && r->warning_count == 0);
	CHECK(r->leftover_killed == 2 && r->usage.disk_bytes == 8192);
	CHECK(r->usage.cpu_user_us != UNKNOWN && r->usage.cpu_system_us != UNKNOWN);
	CHECK(r->out.total == 3 && memcmp(r->out.head, "out", 3) == 0);
	CHECK(r->err_out.total == 5 && memcmp(r->err_out.head, "error", 5) == 0);
	CHECK(!r->live);
	CHECK(r->timing.setup_us < 2000000 && r->timing.run_us < 2000000);
	CHECK(r->timing.teardown_us < 2000000);
	result_free(r);
}

static void setup_time_is_added_to(void)
{
	play_init(&play);
	play.result.timing.setup_us = 5000000; /* what box_spawn took */
	play_run(&play, whole);
	CHECK(play.result.timing.setup_us >= 5000000 && play.result.timing.setup_us < 7000000);
	result_free(&play.result);
}

/* --- failures that are told --- */

static void fail_in_stage(struct fake *fake)
{
	say_failed(fake->setup, ERR_limit_refused, STAGE_limits, EPERM, "RLIMIT_NOFILE");
	linger();
}

static void fail_in_exec(struct fake *fake)
{
	say_execing(fake->setup);
	say_failed(fake->setup, ERR_command_not_found, STAGE_exec, ENOENT, "nosuch");
}

static void fail_twice(struct fake *fake)
{
	say_failed(fake->setup, ERR_limit_refused, STAGE_limits, EPERM, "first");
	say_failed(fake->setup, ERR_mount_failed, STAGE_mounts, EPERM, "second");
	say_ended(fake->status, 0);
	say_gone(fake->status, 0, 0);
}

static void failures_are_told(void)
{
	play_simple(&play, fail_in_stage);
	CHECK(play.result.error.stage == STAGE_limits && play.result.error.errnum == EPERM);
	CHECK(strstr(play.result.error.text, "RLIMIT_NOFILE") != NULL);
	CHECK(play.result.timing.run_us == UNKNOWN);
	check_error(ERR_limit_refused);

	/* A57 */
	play_simple(&play, fail_in_exec);
	CHECK(play.result.error.stage == STAGE_exec);
	CHECK(result_exit_status(&play.result) == 127);
	check_error(ERR_command_not_found);

	play_simple(&play, fail_twice);
	CHECK(strstr(play.result.error.text, "first") != NULL);
	check_error(ERR_limit_refused);
}

/* --- messages that have no place --- */

static void send_raw(int sock, const void *data, size_t len)
{
	(void)!send(sock, data, len, MSG_NOSIGNAL);
}

static void wrong_size(struct fake *fake)
{
	struct sync_msg msg;
	memset(&msg, 0, sizeof msg);
	msg.magic = SYNC_MAGIC;
	msg.kind = SYNC_EXECING;
	send_raw(fake->setup, &msg, sizeof msg - 1);
	fd_close(&fake->setup);
	linger();
}

static void too_long(struct fake *fake)
{
	char data[sizeof(struct sync_msg) + 1] = { 0 };
	uint32_t head[2] = { SYNC_MAGIC, SYNC_EXECING };
	memcpy(data, head, sizeof head);
	send_raw(fake->setup, data, sizeof data);
	linger();
}

static void wrong_kind(struct fake *fake)
{
	say(fake->setup, (enum sync_kind)99);
	linger();
}

static void wrong_magic(struct fake *fake)
{
	struct sync_msg msg;
	memset(&msg, 0, sizeof msg);
	msg.kind = SYNC_EXECING;
	send_raw(fake->setup, &msg, sizeof msg);
	linger();
}

static void descriptor_where_none_belongs(struct fake *fake)
{
	struct sync_msg msg;
	memset(&msg, 0, sizeof msg);
	msg.magic = SYNC_MAGIC;
	msg.kind = SYNC_FAILED;
	err_set(&msg.err, ERR_internal, 0, "a failure");
	(void)sync_send(fake->setup, &msg, fake->out);
	linger();
}

static void listener_without_descriptor(struct fake *fake)
{
	say(fake->setup, SYNC_EXECING);
	linger();
}

static void terminal_unasked(struct fake *fake)
{
	say_fd(fake->setup, SYNC_FDS, fake->out);
	linger();
}

static void execing_twice(struct fake *fake)
{
	say_execing(fake->setup);
	say_execing(fake->setup);
	linger();
}

static void ended_on_the_wrong_socket(struct fake *fake)
{
	say_ended(fake->setup, 0);
	linger();
}

static void execing_on_the_wrong_socket(struct fake *fake)
{
	say_execing(fake->status);
	linger();
}

static void ended_before_exec(struct fake *fake)
{
	end(fake, 0);
	linger();
}

static void ended_before_the_end_of_setup(struct fake *fake)
{
	say_execing(fake->setup);
	end(fake, 0);
	linger();
}

static void a_signal_from_below(struct fake *fake)
{
	say(fake->setup, SYNC_SIGNAL);
	linger();
}

static void a_renamer_from_below(struct fake *fake)
{
	say_fd(fake->setup, SYNC_RENAMES, fake->out);
	linger();
}

static void text_without_end(struct fake *fake)
{
	struct sync_msg msg;
	memset(&msg, 'x', sizeof msg);
	msg.magic = SYNC_MAGIC;
	msg.kind = SYNC_FAILED;
	msg.err.code = ERR_internal;
	msg.err.errnum = 0;
	send_raw(fake->setup, &msg, sizeof msg);
	linger();
}

static void no_place_before_exec(void)
{
	static script *const scripts[] = { wrong_size, too_long, wrong_kind, wrong_magic,
		descriptor_where_none_belongs, listener_without_descriptor, terminal_unasked,
		execing_twice, ended_on_the_wrong_socket, execing_on_the_wrong_socket,
		ended_before_exec, ended_before_the_end_of_setup, a_signal_from_below,
		a_renamer_from_below, text_without_end };
	for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
		play_simple(&play, scripts[i]);
		check_error(ERR_box_died);
	}
}

static void terminal_missing(void)
{
	play_init(&play);
	play.plan.tty = true;
	play_run(&play, execing_twice);
	check_error(ERR_box_died);
}

static void gone_before_ended(struct fake *fake)
{
	start(fake);
	say_gone(fake->status, 0, 0);
	linger();
}

static void failed_on_status(struct fake *fake)
{
	start(fake);
	say_failed(fake->status, ERR_internal, 0, 0, "late");
	linger();
}

static void short_on_status(struct fake *fake)
{
	start(fake);
	send_raw(fake->status, "x", 1);
	linger();
}

static void no_place_after_exec(void)
{
	static script *const scripts[] = { gone_before_ended, failed_on_status, short_on_status };
	for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
		play_simple(&play, scripts[i]);
		check_protocol();
	}
}

static void ended_twice(struct fake *fake)
{
	start(fake);
	say_ended(fake->status, 4 << 8);
	say_ended(fake->status, 0);
	linger();
}

static void the_first_end_stays(void)
{
	play_simple(&play, ended_twice);
	CHECK(play.result.status == STATUS_EXITED && play.result.exit_code == 4);
	CHECK(has_warning(&play.result, "box_protocol"));
	CHECK(play.seconds < 2);
	result_free(&play.result);
}

/* --- how it ends --- */

static int fake_status;

static void end_so(struct fake *fake)
{
	start(fake);
	end(fake, fake_status);
}

static void check_end(
	int wait_status, int rlimit, enum status status, int code, int sig, unsigned limits)
{
	struct plan_rlimit limit = { .resource = rlimit };
	play_init(&play);
	play.plan.rlimits = &limit;
	play.plan.rlimit_count = rlimit >= 0 ? 1 : 0;
	fake_status = wait_status;
	play_run(&play, end_so);
	CHECK(play.result.status == status);
	CHECK(play.result.exit_code == code && play.result.signal == sig);
	CHECK(play.result.limits_hit == limits);
	result_free(&play.result);
}

static void ends_of_the_command(void)
{
	check_end(125 << 8, -1, STATUS_EXITED, 125, 0, 0);       /* A56 */
	check_end(SIGKILL, -1, STATUS_SIGNALED, -1, SIGKILL, 0); /* A59 */
	check_end(SIGSEGV | 0x80, -1, STATUS_SIGNALED, -1, SIGSEGV, 0);
	check_end(SIGXCPU, RLIMIT_CPU, STATUS_LIMIT, -1, SIGXCPU, LIMIT_CPU);
	check_end(SIGXCPU, -1, STATUS_SIGNALED, -1, SIGXCPU, 0);
	check_end(SIGXFSZ, RLIMIT_FSIZE, STATUS_LIMIT, -1, SIGXFSZ, LIMIT_FILE_SIZE);
	check_end(SIGXFSZ, RLIMIT_CPU, STATUS_SIGNALED, -1, SIGXFSZ, 0);
}

static void end_with_a_full_disk(struct fake *fake)
{
	start(fake);
	say_ended(fake->status, 0);
	say_gone(fake->status, 0, 65536);
}

static void a_full_disk_is_told(void)
{
	play_init(&play);
	play.plan.root_size = 65536;
	play_run(&play, end_with_a_full_disk);
	CHECK(play.result.status == STATUS_EXITED &&
		play.result.limits_hit == LIMIT_DISK); /* A64 */
	result_free(&play.result);
	play_init(&play);
	play.plan.root_size = 65536 + 4096;
	play_run(&play, end_with_a_full_disk);
	CHECK(play.result.limits_hit == 0);
	result_free(&play.result);
}

static void never_alone(struct fake *fake)
{
	start(fake);
	say_ended(fake->status, 0);
	linger();
}

/* Init does not come to its end: it is killed, and only then is there a result. */
static void an_init_that_does_not_end(void)
{
	play_simple(&play, never_alone);
	CHECK(play.result.status == STATUS_EXITED && play.result.exit_code == 0);
	CHECK(play.seconds > 4 && play.seconds < 8);
	result_free(&play.result);
}

int main(void)
{
	fake_begin();
	RUN(cut_before_exec);
	RUN(cut_after_exec);
	RUN(cut_after_ended);
	RUN(the_whole_conversation);
	RUN(setup_time_is_added_to);
	RUN(failures_are_told);
	RUN(no_place_before_exec);
	RUN(terminal_missing);
	RUN(no_place_after_exec);
	RUN(the_first_end_stays);
	RUN(ends_of_the_command);
	RUN(a_full_disk_is_told);
	RUN(an_init_that_does_not_end);
	return CHECK_STATUS();
}
