/* supervise_io_test: the command's output, kept or passed on. */
#define _GNU_SOURCE
#include "fake_box.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

static struct stage_play play;

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
		uint64_t sum = sum_by(read_end, 5000, &total); /* so that writes are cut short */
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

/* Writes until nobody reads any more; that must come, and be seen as any pipeline's. */
static void fill_until_closed(struct fake *fake)
{
	static char block[4096];
	start(fake);
	for (int i = 0; i < 5120; i++)
		if (fd_write_full(fake->out, block, sizeof block) == -EPIPE) {
			end(fake, SIGPIPE);
			return;
		}
	end(fake, 0);
}

static void the_reader_goes_away(void)
{
	int fds[2];
	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	close(fds[0]);
	play_init(&play);
	play.io.stdout_fd = fds[1];
	play_run(&play, fill_until_closed);
	close(fds[1]);
	CHECK(play.result.status == STATUS_SIGNALED && play.result.signal == SIGPIPE);
	CHECK(play.result.out.total < 20 * MIB);
	CHECK(has_warning(&play.result, "output_closed"));
	result_free(&play.result);
}

/*
 * The caller reads one page and no more: the time limit holds, and a signal ends the waiting. With
 * `closed` the pipe cannot be opened once more, so that writes to it are blocking ones.
 */
static void stop_reading(bool closed)
{
	int fds[2];
	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	if (closed)
		CHECK(fchmod(fds[1], 0) == 0);
	pid_t supervisor = getpid(), caller = fork();
	if (caller == 0) {
		char page[4096];
		pause_ms(100);
		(void)!read(fds[0], page, sizeof page);
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

static void the_reader_stops_reading(void)
{
	stop_reading(false);
	int status = -1;
	pid_t pid = fork();
	if (pid == 0) {
		/* Root may open anything. */
		alarm(20);
		if (geteuid() == 0 &&
			(setresgid(1234, 1234, 1234) < 0 || setresuid(1234, 1234, 1234) < 0))
			_exit(1);
		check_failures = 0;
		stop_reading(true);
		_exit(check_failures ? 1 : 0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
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
	RUN(the_reader_stops_reading);
	return CHECK_STATUS();
}
