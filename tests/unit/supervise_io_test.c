/*
 * supervise_io_test: what goes through the supervisor and what interrupts it: output kept and
 * passed on, stdin, time limits, the caller's signals.
 */
#define _GNU_SOURCE
#include "fake_box.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

static struct stage_play play;

#define MIB ((size_t)1 << 20)

static void write_all(int fd, size_t total)
{
	static char block[65536];
	for (size_t i = 0; i < sizeof block; i++)
		block[i] = (char)(i * 7 + i / 256);
	for (size_t n; total; total -= n) {
		n = total < sizeof block ? total : sizeof block;
		if (fd_write_full(fd, block, n) < 0)
			_exit(9);
	}
}

/* A sum over bytes and their places. */
static uint64_t sum_all(int fd, uint64_t *ret_total)
{
	static unsigned char block[65536];
	uint64_t sum = 0, total = 0;
	ssize_t n;
	while ((n = read(fd, block, sizeof block)) > 0)
		for (ssize_t i = 0; i < n; i++)
			sum = sum * 31 + block[i] + total++ % 251;
	*ret_total = total;
	return sum;
}

static size_t peak_rss(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return (size_t)usage.ru_maxrss * 1024;
}

/* --- capture --- */

static void flood(struct fake *fake)
{
	start(fake);
	write_all(fake->out, 1024 * MIB);
	(void)!write(fake->out, "END", 3);
	end(fake, 3 << 8);
}

/* A50, C08 */
static void a_flood_is_bounded_and_fast(void)
{
	size_t before = peak_rss();
	play_init(&play);
	play.plan.output_max = MIB;
	play_run(&play, flood);
	struct stream *out = &play.result.out;
	CHECK(play.result.status == STATUS_EXITED && play.result.exit_code == 3);
	CHECK(out->total == 1024 * MIB + 3 && stream_truncated(out));
	CHECK(out->head_len + out->tail_len == MIB);
	CHECK(play.result.limits_hit == 0);
	printf("# %.0f MB/s\n", 1073.7 / play.seconds);
#ifndef __SANITIZE_ADDRESS__
	CHECK(peak_rss() - before < 4 * MIB);
#endif
	(void)before;
	result_free(&play.result);
}

static void both_streams(struct fake *fake)
{
	start(fake);
	if (fork() == 0) {
		write_all(fake->err, 3 * MIB);
		_exit(0);
	}
	write_all(fake->out, 5 * MIB);
	wait(NULL);
	end(fake, 0);
}

static void streams_do_not_wait_for_each_other(void)
{
	play_simple(&play, both_streams);
	CHECK(play.result.status == STATUS_EXITED);
	CHECK(play.result.out.total == 5 * MIB && play.result.err_out.total == 3 * MIB);
	result_free(&play.result);
}

static void flood_on(struct fake *fake)
{
	start(fake);
	write_all(fake->out, 100 * MIB);
	pause_ms(20000);
}

static void end_past_the_limit(struct fake *fake)
{
	start(fake);
	write_all(fake->out, 20000);
	end(fake, 0);
}

static void output_kill(void)
{
	play_init(&play);
	play.plan.output_max = MIB;
	play.plan.output_kill = true;
	play_run(&play, flood_on);
	CHECK(play.result.status == STATUS_LIMIT && play.result.limits_hit == LIMIT_OUTPUT);
	CHECK(play.result.signal == SIGKILL && result_exit_status(&play.result) == 137);
	CHECK(play.seconds < 5);
	result_free(&play.result);

	/* Found only when the command has ended already: the same outcome every time. */
	for (int i = 0; i < 20; i++) {
		play_init(&play);
		play.plan.output_max = 10000;
		play.plan.output_kill = true;
		play_run(&play, end_past_the_limit);
		CHECK(play.result.status == STATUS_LIMIT && play.result.limits_hit == LIMIT_OUTPUT);
		CHECK(play.result.out.total == 20000);
		result_free(&play.result);
	}

	/* Exactly the maximum is not past it. */
	play_init(&play);
	play.plan.output_max = 20000;
	play.plan.output_kill = true;
	play_run(&play, end_past_the_limit);
	CHECK(play.result.status == STATUS_EXITED && play.result.out.total == 20000);
	result_free(&play.result);
}

static void leave_a_holder(struct fake *fake)
{
	start(fake);
	if (fork() == 0) {
		fd_close(&fake->status);
		pause_ms(3000);
		_exit(0);
	}
	(void)!write(fake->out, "done", 4);
	end(fake, 0);
}

/* A42, for a process that the box cannot even reach: the end of file is not waited for. */
static void the_end_of_file_is_not_waited_for(void)
{
	play_simple(&play, leave_a_holder);
	CHECK(play.result.status == STATUS_EXITED && play.result.out.total == 4);
	CHECK(play.seconds < 1);
	result_free(&play.result);
}

/* --- live --- */

static void fill_live(struct fake *fake)
{
	start(fake);
	write_all(fake->out, 20 * MIB);
	write_all(fake->err, 1000);
	end(fake, 0);
}

/* Runs with stdout live into `write_end`, while a child reads `read_end` slowly and checks it. */
static void live_through(int read_end, int write_end)
{
	int flags = fcntl(write_end, F_GETFL);
	pid_t reader = fork();
	if (reader == 0) {
		uint64_t total;
		close(write_end);
		pause_ms(100);
		uint64_t sum = sum_all(read_end, &total);
		int same = memfd_create("same", 0);
		uint64_t want_total;
		write_all(same, 20 * MIB);
		lseek(same, 0, SEEK_SET);
		uint64_t want = sum_all(same, &want_total);
		_exit(total == want_total && sum == want ? 0 : 1);
	}
	close(read_end);
	play_init(&play);
	play.io.stdout_fd = write_end;
	play_run(&play, fill_live);
	CHECK(fcntl(write_end, F_GETFL) == flags);
	close(write_end);
	int status = 0;
	CHECK(waitpid(reader, &status, 0) == reader && status == 0);
	CHECK(play.result.status == STATUS_EXITED && play.result.live);
	CHECK(play.result.out.total == 20 * MIB && play.result.out.head_len == 0);
	CHECK(play.result.err_out.total == 1000);
	CHECK(play.result.warning_count == 0);
	result_free(&play.result);
}

static void live_output_passes(void)
{
	int fds[2];
	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	live_through(fds[0], fds[1]);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	live_through(fds[0], fds[1]);
}

static void live_into_a_file(void)
{
	int file = memfd_create("live", MFD_CLOEXEC);
	CHECK(write(file, "before", 6) == 6);
	play_init(&play);
	play.io.stdout_fd = file;
	play_run(&play, fill_live);
	struct stat st;
	CHECK(fstat(file, &st) == 0 && (size_t)st.st_size == 20 * MIB + 6);
	CHECK(lseek(file, 0, SEEK_CUR) == (off_t)(20 * MIB + 6));
	close(file);
	result_free(&play.result);
}

static void the_reader_goes_away(void)
{
	int fds[2];
	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	close(fds[0]);
	play_init(&play);
	play.io.stdout_fd = fds[1];
	play_run(&play, fill_live);
	close(fds[1]);
	CHECK(play.result.status == STATUS_EXITED && play.result.exit_code == 0);
	CHECK(play.result.out.total == 20 * MIB);
	CHECK(has_warning(&play.result, "output_closed"));
	result_free(&play.result);
}

/* The caller does not read at all: the time limit holds, and a signal ends the waiting. */
static void the_reader_does_not_read(void)
{
	int fds[2];
	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	pid_t supervisor = getpid(), caller = fork();
	if (caller == 0) {
		pause_ms(600);
		kill(supervisor, SIGINT);
		_exit(0);
	}
	play_init(&play);
	play.plan.wall_us = 200000;
	play.plan.grace_us = 100000;
	play.io.stdout_fd = fds[1];
	play_run(&play, fill_live);
	CHECK(play.result.status == STATUS_TIMEOUT && play.result.limits_hit == LIMIT_WALL);
	CHECK(play.seconds > 0.5 && play.seconds < 2);
	close(fds[0]);
	close(fds[1]);
	waitpid(caller, NULL, 0);
	result_free(&play.result);
}

/* --- stdin --- */

static void sum_stdin(struct fake *fake)
{
	uint64_t sum[2];
	start(fake);
	sum[0] = sum_all(fake->in, &sum[1]);
	(void)!write(fake->out, sum, sizeof sum);
	end(fake, 0);
}

static void check_stdin(int fd, size_t size)
{
	int same = memfd_create("same", 0);
	uint64_t want[2], got[2] = { 0 };
	write_all(same, size);
	lseek(same, 0, SEEK_SET);
	want[0] = sum_all(same, &want[1]);
	close(same);
	int flags = fcntl(fd, F_GETFL);
	play_init(&play);
	play.plan.pass_stdin = true;
	play.io.stdin_fd = fd;
	play_run(&play, sum_stdin);
	CHECK(play.result.status == STATUS_EXITED);
	CHECK(play.result.out.total == sizeof got);
	if (play.result.out.total == sizeof got)
		memcpy(got, play.result.out.head, sizeof got);
	CHECK(got[1] == size && got[0] == want[0]);
	CHECK(fcntl(fd, F_GETFL) == flags);
	result_free(&play.result);
}

/* A48 */
static void stdin_passes_unchanged(void)
{
	int fds[2];
	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	if (fork() == 0) {
		write_all(fds[1], 64 * MIB);
		_exit(0);
	}
	close(fds[1]);
	check_stdin(fds[0], 64 * MIB);
	close(fds[0]);
	wait(NULL);

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	if (fork() == 0) {
		write_all(fds[1], 5 * MIB + 17);
		_exit(0);
	}
	close(fds[1]);
	check_stdin(fds[0], 5 * MIB + 17);
	close(fds[0]);
	wait(NULL);

	int file = memfd_create("stdin", MFD_CLOEXEC);
	write_all(file, 5 * MIB + 3);
	lseek(file, 0, SEEK_SET);
	check_stdin(file, 5 * MIB + 3);
	close(file);

	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	check_stdin(null, 0);
	close(null);
}

static void bad_stdin(void)
{
	int dir = open("/etc", O_RDONLY | O_CLOEXEC);
	play_init(&play);
	play.plan.pass_stdin = true;
	play.io.stdin_fd = dir;
	play_run(&play, sum_stdin);
	close(dir);
	CHECK(play.result.status == STATUS_EXITED);
	CHECK(has_warning(&play.result, "stdin_failed"));
	result_free(&play.result);
}

static void read_a_little(struct fake *fake)
{
	char byte;
	start(fake);
	(void)!read(fake->in, &byte, 1);
	fd_close(&fake->in);
	pause_ms(100);
	end(fake, 0);
}

static void say_hi(struct fake *fake)
{
	start(fake);
	(void)!write(fake->out, "hi", 2);
	end(fake, 0);
}

static void stdin_without_an_end(void)
{
	int fds[2];
	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	/* A47: nobody ever writes or closes. */
	play_init(&play);
	play.plan.pass_stdin = true;
	play.io.stdin_fd = fds[0];
	play_run(&play, say_hi);
	CHECK(play.result.status == STATUS_EXITED && play.result.out.total == 2);
	CHECK(play.seconds < 1);
	result_free(&play.result);

	/* The writer never stops, the command does not read on. */
	pid_t writer = fork();
	if (writer == 0) {
		for (;;)
			write_all(fds[1], MIB);
	}
	play_init(&play);
	play.plan.pass_stdin = true;
	play.io.stdin_fd = fds[0];
	play_run(&play, read_a_little);
	CHECK(play.result.status == STATUS_EXITED && play.result.warning_count == 0);
	CHECK(play.seconds < 1);
	CHECK(play.result.usage.cpu_user_us < 50000);
	kill(writer, SIGKILL);
	waitpid(writer, NULL, 0);
	close(fds[0]);
	close(fds[1]);
	result_free(&play.result);
}

/* Nothing is taken from the caller when the command never runs. */
static void never_run(struct fake *fake)
{
	pause_ms(100);
	say_failed(fake->setup, ERR_internal, 1, EIO, "no");
}

static void stdin_is_left_alone_until_the_start(void)
{
	int fds[2];
	char text[8];
	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	CHECK(write(fds[1], "m1\nm2\n", 6) == 6);
	play_init(&play);
	play.plan.pass_stdin = true;
	play.io.stdin_fd = fds[0];
	play_run(&play, never_run);
	CHECK(play.result.status == STATUS_ERROR);
	CHECK(read(fds[0], text, sizeof text) == 6);
	close(fds[0]);
	close(fds[1]);
	result_free(&play.result);
}

/* --- time --- */

static void obey_term(struct fake *fake)
{
	start(fake);
	(void)!write(fake->out, "early", 5);
	int got = wait_signal(fake);
	end(fake, got == SIGTERM ? 5 << 8 : SIGKILL);
}

static void ignore_term(struct fake *fake)
{
	start(fake);
	(void)!write(fake->out, "early", 5);
	pause_ms(20000);
}

static void time_limit(void)
{
	play_init(&play);
	play.plan.wall_us = 200000;
	play_run(&play, obey_term);
	CHECK(play.result.status == STATUS_TIMEOUT && play.result.limits_hit == LIMIT_WALL);
	CHECK(play.result.exit_code == 5 && result_exit_status(&play.result) == 124);
	CHECK(play.result.out.total == 5);
	CHECK(play.seconds >= 0.2 && play.seconds < 1);
	CHECK(play.result.timing.run_us >= 200000);
	result_free(&play.result);

	/* A46, A59 */
	play_init(&play);
	play.plan.wall_us = 200000;
	play.plan.grace_us = 300000;
	play_run(&play, ignore_term);
	CHECK(play.result.status == STATUS_TIMEOUT && play.result.limits_hit == LIMIT_WALL);
	CHECK(play.result.exit_code == -1 && play.result.signal == SIGKILL);
	CHECK(play.result.out.total == 5);
	CHECK(play.seconds >= 0.5 && play.seconds < 1.5);
	result_free(&play.result);
}

static void flood_without_end(struct fake *fake)
{
	start(fake);
	for (;;)
		write_all(fake->out, MIB);
}

/* A flood on a stream must not keep the clock from being looked at. */
static void time_limit_in_a_flood(void)
{
	play_init(&play);
	play.plan.wall_us = 300000;
	play.plan.grace_us = 0;
	play_run(&play, flood_without_end);
	CHECK(play.result.status == STATUS_TIMEOUT && play.result.signal == SIGKILL);
	CHECK(play.seconds >= 0.3 && play.seconds < 1.5);
	result_free(&play.result);
}

/* --- the caller's signals --- */

static int signals_to_send[2];

static void signal_caller(struct fake *fake)
{
	start(fake);
	kill(getppid(), signals_to_send[0]);
	int got = wait_signal(fake);
	if (signals_to_send[1]) {
		kill(getppid(), signals_to_send[1]);
		pause_ms(20000);
	}
	end(fake, got);
}

static void the_caller_cancels(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		signals_to_send[0] = signals[i];
		signals_to_send[1] = 0;
		play_simple(&play, signal_caller);
		CHECK(play.result.status == STATUS_CANCELLED);
		CHECK(play.result.signal == signals[i] && play.result.exit_code == -1);
		CHECK(result_exit_status(&play.result) == 128 + signals[i]);
		CHECK(play.seconds < 1);
		result_free(&play.result);
	}
	/* The second one does not wait for the grace period (here 2 s). */
	signals_to_send[0] = SIGTERM;
	signals_to_send[1] = SIGINT;
	play_simple(&play, signal_caller);
	CHECK(play.result.status == STATUS_CANCELLED && play.result.signal == SIGTERM);
	CHECK(play.seconds < 1);
	result_free(&play.result);
}

static void signal_in_setup(struct fake *fake)
{
	(void)fake;
	kill(getppid(), SIGINT);
	pause_ms(20000);
}

static void signal_and_ignore(struct fake *fake)
{
	start(fake);
	kill(getppid(), SIGTERM);
	pause_ms(20000);
}

static void cancelled_early_and_late(void)
{
	play_simple(&play, signal_in_setup);
	CHECK(play.result.status == STATUS_CANCELLED && play.result.signal == SIGINT);
	CHECK(play.result.error.code == ERR_none && play.result.timing.run_us == UNKNOWN);
	CHECK(play.seconds < 1);
	result_free(&play.result);

	play_init(&play);
	play.plan.grace_us = 200000;
	play_run(&play, signal_and_ignore);
	CHECK(play.result.status == STATUS_CANCELLED && play.result.signal == SIGTERM);
	CHECK(play.seconds >= 0.2 && play.seconds < 1);
	result_free(&play.result);
}

static void noise(struct fake *fake)
{
	start(fake);
	kill(getppid(), SIGWINCH);
	kill(getppid(), SIGCHLD);
	kill(getppid(), SIGPIPE);
	pause_ms(50);
	end(fake, 0);
}

static void other_signals_do_nothing(void)
{
	play_simple(&play, noise);
	CHECK(play.result.status == STATUS_EXITED && play.result.exit_code == 0);
	result_free(&play.result);
}

int main(void)
{
	fake_begin();
	RUN(a_flood_is_bounded_and_fast);
	RUN(streams_do_not_wait_for_each_other);
	RUN(output_kill);
	RUN(the_end_of_file_is_not_waited_for);
	RUN(live_output_passes);
	RUN(live_into_a_file);
	RUN(the_reader_goes_away);
	RUN(the_reader_does_not_read);
	RUN(stdin_passes_unchanged);
	RUN(bad_stdin);
	RUN(stdin_without_an_end);
	RUN(stdin_is_left_alone_until_the_start);
	RUN(time_limit);
	RUN(time_limit_in_a_flood);
	RUN(the_caller_cancels);
	RUN(cancelled_early_and_late);
	RUN(other_signals_do_nothing);
	return CHECK_STATUS();
}
