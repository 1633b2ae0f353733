/* supervise_stdin_test: the caller's stdin on its way to the command. */
#define _GNU_SOURCE
#include "fake_box.h"

#include <sys/mman.h>

static struct stage_play play;

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

static void read_later(struct fake *fake)
{
	uint64_t sum[2];
	start(fake);
	pause_ms(200);
	sum[0] = sum_all(fake->in, &sum[1]);
	(void)!write(fake->out, sum, sizeof sum);
	end(fake, 0);
}

/* B03: the command gets copies; what the caller's file becomes later does not reach it. */
static void stdin_is_a_copy(void)
{
	char text[4096] = "old";
	int file = memfd_create("stdin", MFD_CLOEXEC);
	CHECK(write(file, text, sizeof text) == sizeof text);
	uint64_t want[2], got[2] = { 0 };
	lseek(file, 0, SEEK_SET);
	want[0] = sum_all(file, &want[1]);
	lseek(file, 0, SEEK_SET);
	pid_t pid = fork();
	if (pid == 0) {
		pause_ms(100);
		_exit(pwrite(file, "new", 3, 0) == 3 ? 0 : 1);
	}
	play_init(&play);
	play.plan.pass_stdin = true;
	play.io.stdin_fd = file;
	play_run(&play, read_later);
	waitpid(pid, NULL, 0);
	if (play.result.out.total == sizeof got)
		memcpy(got, play.result.out.head, sizeof got);
	CHECK(got[0] == want[0] && got[1] == want[1]);
	close(file);
	result_free(&play.result);
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

static void close_stdin(struct fake *fake)
{
	start(fake);
	fd_close(&fake->in);
	pause_ms(400);
	end(fake, 0);
}

/* The command closed its end, the caller says nothing: neither is a reason to be busy. */
static void a_closed_stdin_costs_nothing(void)
{
	int fds[2];
	struct rusage before, after;
	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	play_init(&play);
	play.plan.pass_stdin = true;
	play.io.stdin_fd = fds[0];
	getrusage(RUSAGE_SELF, &before);
	play_run(&play, close_stdin);
	getrusage(RUSAGE_SELF, &after);
	CHECK(play.result.status == STATUS_EXITED);
	CHECK(after.ru_nvcsw - before.ru_nvcsw < 50);
	long busy = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 +
		    after.ru_utime.tv_usec - before.ru_utime.tv_usec +
		    (after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000 +
		    after.ru_stime.tv_usec - before.ru_stime.tv_usec;
	CHECK(busy < 200000);
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

int main(void)
{
	fake_begin();
	RUN(stdin_passes_unchanged);
	RUN(stdin_is_a_copy);
	RUN(bad_stdin);
	RUN(a_closed_stdin_costs_nothing);
	RUN(stdin_without_an_end);
	RUN(stdin_is_left_alone_until_the_start);
	return CHECK_STATUS();
}
