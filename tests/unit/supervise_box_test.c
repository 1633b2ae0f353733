/*
 * supervise_box_test: the two descriptors that a box may send: the seccomp listener (a real one,
 * of a process that installs a small filter) and the master of a terminal. And what happens when
 * the supervisor itself runs out of descriptors.
 */
#define _GNU_SOURCE
#include "fake_box.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <termios.h>

static struct stage_play play;

/* --- listener --- */

/* From here on mount, umount2 and every number from x32 up ask the supervisor. */
static int install_filter(void)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mount, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_umount2, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	};
	struct sock_fprog prog = { .len = sizeof program / sizeof *program, .filter = program };
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return sys_seccomp(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
}

static void start_filtered(struct fake *fake)
{
	int listener = install_filter();
	if (listener < 0)
		_exit(1);
	start_with(fake, listener);
	close(listener);
}

#define CALLS 3000

static void call_often(struct fake *fake)
{
	start_filtered(fake);
	int wrong = 0;
	for (int i = 0; i < CALLS; i++)
		wrong |= syscall(SYS_mount, 0, 0, 0, 0, 0) != -1 || errno != EPERM;
	wrong |= syscall(SYS_umount2, 0, 0) != -1 || errno != EPERM;
	end(fake, wrong << 8);
}

static const struct violation *find(const struct result *result, const char *operation)
{
	for (size_t i = 0; i < result->violation_count; i++)
		if (strcmp(result->violations[i].operation, operation) == 0)
			return &result->violations[i];
	return NULL;
}

static void refused_calls_are_counted(void)
{
	play_simple(&play, call_often);
	CHECK(play.result.status == STATUS_EXITED && play.result.exit_code == 0);
	CHECK(play.result.violation_count == 2);
	const struct violation *mounts = find(&play.result, "mount");
	CHECK(mounts && mounts->count == CALLS && mounts->certain);
	CHECK(mounts && strcmp(mounts->layer, "syscall") == 0);
	const struct violation *umounts = find(&play.result, "umount2");
	CHECK(umounts && umounts->count == 1);
	printf("# %.1f us a refused call\n", play.seconds * 1e6 / CALLS);
	result_free(&play.result);
}

static void call_different(struct fake *fake)
{
	start_filtered(fake);
	for (unsigned i = 0; i < 400; i++) {
		/* Each in a process of its own, for it is ended. */
		if (fork() == 0) {
			syscall(0x40000000 + 600 + i);
			_exit(0);
		}
		wait(NULL);
	}
	end(fake, 0);
}

static void different_calls_are_bounded(void)
{
	play_simple(&play, call_different);
	CHECK(play.result.violation_count <= VIOLATIONS_MAX);
	uint64_t all = play.result.violations_dropped;
	for (size_t i = 0; i < play.result.violation_count; i++)
		all += play.result.violations[i].count;
	CHECK(all == 400);
	result_free(&play.result);
}

static void call_and_go_on(struct fake *fake)
{
	start_filtered(fake);
	syscall(SYS_mount, 0, 0, 0, 0, 0);
	pause_ms(20000);
}

static void kill_on_violation(void)
{
	play_init(&play);
	play.plan.kill_on_violation = true;
	play_run(&play, call_and_go_on);
	CHECK(play.result.status == STATUS_DENIED && play.result.signal == SIGKILL);
	CHECK(play.result.violation_count == 1 && play.result.limits_hit == 0);
	CHECK(result_exit_status(&play.result) == 137);
	CHECK(play.seconds < 1);
	result_free(&play.result);
}

static void *foreign_call(void *unused)
{
	syscall(0x40000000 + 41);
	return unused;
}

static void call_x32(struct fake *fake)
{
	start_filtered(fake);
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		foreign_call(NULL);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	end(fake, status);
}

static void call_x32_from_a_thread(struct fake *fake)
{
	start_filtered(fake);
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		pthread_t thread;
		pthread_create(&thread, NULL, foreign_call, NULL);
		pthread_join(thread, NULL);
		pause_ms(500);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	end(fake, status);
}

/* B18 */
static void foreign_calls_end_the_process(void)
{
	static script *const scripts[] = { call_x32, call_x32_from_a_thread };
	for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
		play_simple(&play, scripts[i]);
		CHECK(play.result.status == STATUS_SIGNALED && play.result.signal == SIGSYS);
		CHECK(play.result.violation_count == 1);
		result_free(&play.result);
	}
}

/* No pid namespace ends these: they end by themselves when nobody answers them any more. */
static void hammer(struct fake *fake)
{
	start_filtered(fake);
	for (int i = 0; i < 4; i++)
		if (fork() == 0)
			break;
	while (syscall(SYS_mount, 0, 0, 0, 0, 0) == -1 && errno == EPERM)
		;
}

static void a_hammering_box_does_not_stop_the_clock(void)
{
	play_init(&play);
	play.plan.wall_us = 300000;
	play.plan.grace_us = 100000;
	play_run(&play, hammer);
	CHECK(play.result.status == STATUS_TIMEOUT);
	CHECK(play.seconds < 1.5);
	CHECK(play.result.violation_count == 1 && play.result.violations[0].count > 100);
	result_free(&play.result);
}

static void call_and_die(struct fake *fake)
{
	start_filtered(fake);
	for (int i = 0; i < 200; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			for (;;)
				syscall(SYS_mount, 0, 0, 0, 0, 0);
		}
		struct timespec t = { .tv_nsec = i * 1000 };
		nanosleep(&t, NULL);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	end(fake, 0);
}

/* The caller of a refused call is killed at any moment between the call and the answer. */
static void callers_may_vanish(void)
{
	play_simple(&play, call_and_die);
	CHECK(play.result.status == STATUS_EXITED && play.result.warning_count == 0);
	result_free(&play.result);
}

/* --- terminal --- */

static int open_pty(int *ret_slave)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	unlockpt(master);
	*ret_slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	return master;
}

/* A box with a terminal: tells the window's size, then repeats lines until end of file. */
static void terminal_box(struct fake *fake)
{
	int slave, master = open_pty(&slave);
	say_fd(fake->setup, SYNC_FDS, master);
	close(master);
	start(fake);
	pause_ms(100);
	struct winsize size = { 0 };
	ioctl(slave, TIOCGWINSZ, &size);
	dprintf(slave, "%ux%u\n", size.ws_col, size.ws_row);
	char line[256];
	ssize_t n;
	while ((n = read(slave, line, sizeof line)) > 0)
		dprintf(slave, "<%.*s>", (int)n, line);
	end(fake, n == 0 ? 0 : 1 << 8);
}

static bool same_mode(const struct termios *a, const struct termios *b)
{
	return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_cflag == b->c_cflag &&
	       a->c_lflag == b->c_lflag && memcmp(a->c_cc, b->c_cc, sizeof a->c_cc) == 0;
}

/* Reads from fd until `text` was seen, at most 5 s. */
static bool see(int fd, const char *text)
{
	char seen[4096] = "";
	size_t len = 0;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	while (len + 1 < sizeof seen && poll(&p, 1, 5000) > 0) {
		ssize_t n = read(fd, seen + len, sizeof seen - 1 - len);
		if (n <= 0)
			return false;
		len += (size_t)n;
		seen[len] = 0;
		if (strstr(seen, text))
			return true;
	}
	return false;
}

/* The user at the caller's terminal; 0 when all was as it should be. */
static int user(int screen, int slave)
{
	struct termios mode;
	if (!see(screen, "90x33\r\n"))
		return 1;
	tcgetattr(slave, &mode);
	if (mode.c_lflag & (ICANON | ECHO | ISIG))
		return 2;
	(void)!write(screen, "hello\r", 6);
	if (!see(screen, "<hello\r\n>"))
		return 3;
	(void)!write(screen, "half\004", 5);
	if (!see(screen, "<half>"))
		return 4;
	(void)!write(screen, "\004", 1);
	return 0;
}

static void a_terminal_joins_the_callers(void)
{
	int slave, screen = open_pty(&slave);
	struct winsize size = { .ws_col = 90, .ws_row = 33 };
	struct termios before = { 0 }, after = { 0 };
	ioctl(slave, TIOCSWINSZ, &size);
	tcgetattr(slave, &before);
	pid_t pid = fork();
	if (pid == 0)
		_exit(user(screen, slave));
	play_init(&play);
	play.plan.tty = true;
	play.io.stdin_fd = play.io.stdout_fd = slave;
	play_run(&play, terminal_box);
	tcgetattr(slave, &after);
	int status = -1;
	waitpid(pid, &status, 0);
	CHECK(status == 0);
	CHECK(play.result.status == STATUS_EXITED && play.result.exit_code == 0);
	CHECK(same_mode(&before, &after));
	CHECK(!(fcntl(slave, F_GETFL) & O_NONBLOCK));
	close(screen);
	close(slave);
	result_free(&play.result);
}

static void terminal_until_cancelled(struct fake *fake)
{
	int slave, master = open_pty(&slave);
	say_fd(fake->setup, SYNC_FDS, master);
	close(master);
	start(fake);
	pause_ms(100);
	kill(getppid(), SIGTERM);
	pause_ms(20000);
}

static void the_terminal_is_put_back_when_cancelled(void)
{
	int slave, screen = open_pty(&slave);
	struct termios before = { 0 }, after = { 0 };
	tcgetattr(slave, &before);
	play_init(&play);
	play.plan.tty = true;
	play.plan.grace_us = 1000;
	play.io.stdin_fd = play.io.stdout_fd = slave;
	play_run(&play, terminal_until_cancelled);
	tcgetattr(slave, &after);
	CHECK(play.result.status == STATUS_CANCELLED);
	CHECK(same_mode(&before, &after));
	close(screen);
	close(slave);
	result_free(&play.result);
}

/* --tty in a pipeline: the end of the caller's input is told by the terminal's own character. */
static void a_terminal_without_one_outside(void)
{
	int in[2], out[2];
	CHECK(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
	CHECK(write(in[1], "one\ntwo", 7) == 7);
	close(in[1]);
	play_init(&play);
	play.plan.tty = true;
	play.io.stdin_fd = in[0];
	play.io.stdout_fd = out[1];
	play_run(&play, terminal_box);
	close(out[1]);
	CHECK(play.result.status == STATUS_EXITED && play.result.exit_code == 0);
	CHECK(play.seconds < 5);
	CHECK(see(out[0], "<two>"));
	close(in[0]);
	close(out[0]);
	result_free(&play.result);
}

/* --- the supervisor's own failure --- */

static void terminal_and_linger(struct fake *fake)
{
	int slave, master = open_pty(&slave);
	say_fd(fake->setup, SYNC_FDS, master);
	pause_ms(20000);
}

static void out_of_descriptors(void)
{
	/*
	 * Descriptors with low numbers, all taken, and no gap above: ppoll(2) fails when it is
	 * given more places than descriptors are allowed.
	 */
	int taken[32];
	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
		taken[i] = dup(0);
	for (int left = 1; left <= 16; left++) {
		play_init(&play);
		play.plan.tty = true;
		play.spare = left;
		play_run(&play, terminal_and_linger);
		if (play.r == -1)
			break;
		/* Not even the master could be received: then the conversation is broken. */
		CHECK(play.result.error.code == ERR_box_died);
		result_free(&play.result);
	}
	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
		close(taken[i]);
	CHECK(play.r == -1 && play.err.code == ERR_no_resources);
	CHECK(play.seconds < 2);
	result_free(&play.result);
}

int main(void)
{
	fake_begin();
	RUN(refused_calls_are_counted);
	RUN(different_calls_are_bounded);
	RUN(kill_on_violation);
	RUN(foreign_calls_end_the_process);
	RUN(a_hammering_box_does_not_stop_the_clock);
	RUN(callers_may_vanish);
	RUN(a_terminal_joins_the_callers);
	RUN(the_terminal_is_put_back_when_cancelled);
	RUN(a_terminal_without_one_outside);
	RUN(out_of_descriptors);
	return CHECK_STATUS();
}
