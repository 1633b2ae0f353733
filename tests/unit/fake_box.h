/*
 * fake_box: a box that is none, for tests of the supervisor. A forked child plays init and payload
 * at once: it speaks sync.h as the test's script says, and is a process with a pidfd like the real
 * one. No namespace, no privilege.
 */
#ifndef AGENTBOX_TESTS_FAKE_BOX_H
#define AGENTBOX_TESTS_FAKE_BOX_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "box/box.h"
#include "box/cgroup.h"
#include "box/sync.h"
#include "check.h"
#include "plan/plan.h"
#include "report/result.h"
#include "supervise/supervise.h"

/* The box's ends. A script that returns makes the child end with status 0. */
struct fake {
	int setup, status, in, out, err;
};
typedef void script(struct fake *fake);

/* What a test asks for and what it got. */
struct stage_play {
	struct plan plan;
	struct cgroup cgroup; /* the box's; taken by the run */
	struct supervise_io io;
	struct result result;
	struct err err;
	int spare; /* descriptors left to the supervisor; 0: as many as it likes */
	int r;
	int end; /* of supervise_end() */
	double seconds;
};

#define MIB ((size_t)1 << 20)

static int fake_signals; /* from supervise_signals(), once */

static inline double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline void pause_ms(int ms)
{
	poll(NULL, 0, ms);
}

static inline void say_fd(int sock, enum sync_kind kind, int fd)
{
	struct sync_msg msg;
	memset(&msg, 0, sizeof msg);
	msg.magic = SYNC_MAGIC;
	msg.kind = kind;
	(void)sync_send(sock, &msg, fd);
}

static inline void say(int sock, enum sync_kind kind)
{
	say_fd(sock, kind, -1);
}

static inline void say_failed(int sock, enum err_code code, int stage, int errnum, const char *text)
{
	struct sync_msg msg;
	memset(&msg, 0, sizeof msg);
	msg.magic = SYNC_MAGIC;
	msg.kind = SYNC_FAILED;
	err_set(&msg.err, code, errnum, "%s", text);
	msg.err.stage = stage;
	(void)sync_send(sock, &msg, -1);
}

static inline void say_ended(int sock, int wait_status)
{
	struct sync_msg msg;
	memset(&msg, 0, sizeof msg);
	msg.magic = SYNC_MAGIC;
	msg.kind = SYNC_ENDED;
	msg.ended.wait_status = wait_status;
	msg.ended.maxrss_bytes = 4321 * 1024;
	(void)sync_send(sock, &msg, -1);
}

static inline uint64_t fake_us(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000u + (uint64_t)time->tv_usec;
}

static inline void say_gone(int sock, uint64_t leftover, uint64_t disk)
{
	struct sync_msg msg;
	memset(&msg, 0, sizeof msg);
	msg.magic = SYNC_MAGIC;
	msg.kind = SYNC_GONE;
	msg.gone.leftover_killed = leftover;
	msg.gone.disk_bytes = disk;
	struct rusage own, children;
	getrusage(RUSAGE_SELF, &own);
	getrusage(RUSAGE_CHILDREN, &children);
	msg.gone.utime_us = fake_us(&own.ru_utime) + fake_us(&children.ru_utime);
	msg.gone.stime_us = fake_us(&own.ru_stime) + fake_us(&children.ru_stime);
	(void)sync_send(sock, &msg, -1);
}

/* With something in the listener's place that never has anything to say. */
static inline void say_execing(int sock)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	say_fd(sock, SYNC_EXECING, fd);
	close(fd);
}

/* Everything up to the command's start, as a real box does it. */
static inline void start_with(struct fake *fake, int listener)
{
	say_fd(fake->setup, SYNC_EXECING, listener);
	fd_close(&fake->setup);
}

static inline void start(struct fake *fake)
{
	say_execing(fake->setup);
	fd_close(&fake->setup);
}

static inline void end(struct fake *fake, int wait_status)
{
	say_ended(fake->status, wait_status);
	say_gone(fake->status, 0, 0);
}

/* Waits for a SYNC_SIGNAL and returns its number; 0 at end of file. */
static inline int wait_signal(struct fake *fake)
{
	struct sync_msg msg;
	int fd = -1;
	struct pollfd p = { .fd = fake->status, .events = POLLIN };
	poll(&p, 1, -1);
	return sync_recv(fake->status, &msg, &fd) == 1 && msg.kind == SYNC_SIGNAL ? msg.signal : 0;
}

/* A pattern without a short period, so that lost and doubled pieces show. */
static inline void write_all(int fd, size_t total)
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
static inline uint64_t sum_by(int fd, size_t piece, uint64_t *ret_total)
{
	static unsigned char block[65536];
	uint64_t sum = 0, total = 0;
	ssize_t n;
	while ((n = read(fd, block, piece)) > 0)
		for (ssize_t i = 0; i < n; i++)
			sum = sum * 31 + block[i] + total++ % 251;
	*ret_total = total;
	return sum;
}

static inline uint64_t sum_all(int fd, uint64_t *ret_total)
{
	return sum_by(fd, 65536, ret_total);
}

static inline void play_init(struct stage_play *play)
{
	memset(play, 0, sizeof *play);
	play->io = (struct supervise_io){
		.stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .signal_fd = fake_signals
	};
	play->plan.output_max = 65536;
	play->plan.grace_us = 2000000;
	cgroup_init(&play->cgroup);
	result_init(&play->result);
}

static inline void play_run(struct stage_play *play, script *child)
{
	int setup[2], status[2], in[2], out[2], err[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, setup) < 0 ||
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, status) < 0 ||
		pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		abort();
	pid_t pid = fork();
	if (pid == 0) {
		struct fake fake = { .setup = setup[1],
			.status = status[1],
			.in = in[0],
			.out = out[1],
			.err = err[1] };
		int theirs[] = { setup[0], status[0], in[1], out[0], err[0] };
		for (int i = 0; i < 5; i++)
			close(theirs[i]);
		child(&fake);
		_exit(0);
	}
	close(setup[1]);
	close(status[1]);
	close(in[0]);
	close(out[1]);
	close(err[1]);
	struct box box;
	box_init(&box);
	box.pid = pid;
	box.pidfd = sys_pidfd_open(pid);
	box.setup_fd = setup[0];
	box.status_fd = status[0];
	box.stdin_fd = in[1];
	box.stdout_fd = out[0];
	box.stderr_fd = err[0];
	box.cgroup = play->cgroup;
	fcntl(in[1], F_SETFL, O_NONBLOCK | O_WRONLY);
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	fcntl(err[0], F_SETFL, O_NONBLOCK);
	if (!play->plan.pass_stdin)
		fd_close(&box.stdin_fd);
	if (play->plan.tty) {
		fd_close(&box.stdin_fd);
		fd_close(&box.stdout_fd);
		fd_close(&box.stderr_fd);
	}
	struct rlimit limit, low;
	getrlimit(RLIMIT_NOFILE, &limit);
	if (play->spare) {
		int next = dup(0);
		close(next);
		low = (struct rlimit){ .rlim_cur = (rlim_t)(next + play->spare),
			.rlim_max = limit.rlim_max };
		setrlimit(RLIMIT_NOFILE, &low);
	}
	double begin = now_s();
	play->r = supervise_run(&play->plan, &box, &play->io, &play->result, &play->err);
	play->end = supervise_end(&box);
	play->seconds = now_s() - begin;
	setrlimit(RLIMIT_NOFILE, &limit);
	/* Whatever was played: the box is gone and reaped. */
	CHECK(waitpid(pid, NULL, WNOHANG) == -1 && errno == ECHILD);
	box_close(&box);
}

/* With the default plan. */
static inline void play_simple(struct stage_play *play, script *child)
{
	play_init(play);
	play_run(play, child);
}

static inline bool has_warning(const struct result *result, const char *code)
{
	for (size_t i = 0; i < result->warning_count; i++)
		if (strcmp(result->warnings[i].code, code) == 0)
			return true;
	return false;
}

/* Signals as supervise_run needs them; and a hang becomes a failure. */
static inline void fake_begin(void)
{
	sigset_t old;
	signal(SIGHUP, SIG_DFL);
	fake_signals = supervise_signals(&old);
	CHECK(fake_signals >= 0);
	alarm(120);
}

#endif
