/*
 * reaper: in a kept box, what init is in any other: it starts one command, tells how that ended,
 * and ends what came of it when it is told to. It is a subreaper, so whoever the command starts
 * stays below it, however often they fork. When the command has ended by itself, what it left may
 * go on, and the reaper with it; the box's next commands are no matter to it.
 *
 * Its word and its end are all that init knows of the command: should it end before its time, init
 * ends the box, so that nobody lives on without somebody who looks after them.
 */
#define _GNU_SOURCE
#include "box/child.h"
#include "base/sys.h"
#include "box/join.h"
#include "box/sync.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

/* Rounds of ending everybody; each waits a little. Past it they cannot be ended one by one. */
#define ROUNDS_MAX     1000
#define ROUND_PAUSE_MS 10

struct reaper {
	struct child child;
	struct plan plan; /* the box's, with this command */
	struct plan_rlimit rlimits[ORDER_RLIMITS_MAX];
	bool ended;  /* the command; it was told */
	bool ending; /* what it leaves is to end with it */
	uint64_t killed;
};

/* One process has ended. */
static void took(struct reaper *reaper, pid_t pid, int status, const struct rusage *usage)
{
	struct child *child = &reaper->child;
	if (pid == child->renamer) {
		child->renamer = 0;
	} else if (pid == child->payload) {
		child->payload = 0;
		reaper->ended = true;
		tell_ended(child, status, usage);
	} else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
		reaper->killed++;
	}
}

/* Reap what has ended. False: nobody is left. */
static bool reap(struct reaper *reaper)
{
	int status;
	struct rusage usage;
	pid_t pid;
	while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0)
		took(reaper, pid, status, &usage);
	return !(pid < 0 && errno == ECHILD);
}

static void drain_signals(int signal_fd)
{
	struct signalfd_siginfo info[8];
	(void)!read(signal_fd, info, sizeof info);
}

/* End everybody. Who forks faster than this can look, or cannot die, takes the whole box along. */
static void end_all(struct reaper *reaper)
{
	renames_end(&reaper->child);
	for (int round = 0; reap(reaper); round++) {
		if (round == ROUNDS_MAX || descendants_signal(SIGKILL, 0) < 0)
			_exit(125);
		struct pollfd wait = { .fd = reaper->child.signal_fd, .events = POLLIN };
		(void)poll(&wait, 1, ROUND_PAUSE_MS);
		drain_signals(reaper->child.signal_fd);
	}
}

static _Noreturn void finish(struct reaper *reaper)
{
	end_all(reaper);
	tell_gone(&reaper->child, reaper->killed, 0);
	_exit(0);
}

/*
 * Does anybody live on? The process for renames alone is nobody whom it could rename for. A look
 * can miss who is made meanwhile: what is believed is that there is no child.
 */
static bool others_left(struct reaper *reaper)
{
	struct child *child = &reaper->child;
	bool left = reap(reaper);
	if (!left || child->renamer <= 0 || descendants_signal(0, child->renamer) != 0)
		return left;
	renames_end(child);
	return reap(reaper);
}

/* The command has ended: so does what it left, or it goes on. */
static void settle(struct reaper *reaper)
{
	if (reaper->ending)
		finish(reaper);
	bool left = others_left(reaper);
	tell_gone(&reaper->child, 0, left);
	if (!left)
		_exit(0);
}

static void collect(struct reaper *reaper)
{
	bool before = reaper->ended;
	bool left = reap(reaper);
	if (!before && reaper->ended) {
		settle(reaper);
		return;
	}
	if (before && !(left && others_left(reaper)))
		_exit(0);
}

static void listen(struct reaper *reaper)
{
	struct child *child = &reaper->child;
	struct sync_msg msg;
	int fd = -1;
	int r = sync_recv(child->status_fd, &msg, &fd);
	if (r == -EAGAIN)
		return;
	if (r == 1 && msg.kind == SYNC_RENAMES && child->plan->renames) {
		renames_start(child, fd);
		close(fd);
		return;
	}
	if (r != 1 || msg.kind != SYNC_SIGNAL || msg.signal <= 0 || msg.signal >= NSIG)
		finish(reaper);
	reaper->ending = true;
	if (descendants_signal(msg.signal, 0) < 0)
		_exit(125);
}

static _Noreturn void watch(struct reaper *reaper)
{
	struct pollfd fds[] = {
		{ .fd = reaper->child.signal_fd, .events = POLLIN },
		{ .fd = reaper->child.status_fd, .events = POLLIN },
	};
	for (;;) {
		collect(reaper);
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			finish(reaper);
		if (fds[1].revents)
			listen(reaper);
		if (fds[0].revents)
			drain_signals(reaper->child.signal_fd);
	}
}

/* The other end and the descriptors of the command come over the setup socket. 0 or -1. */
static int take_order(struct reaper *reaper, void **ret_memory, size_t *ret_size, struct err *err)
{
	struct child *child = &reaper->child;
	int fds[JOIN_COUNT];
	int r = sync_recv_many(child->setup_fd, SYNC_TREES, fds, JOIN_COUNT);
	if (r < 0)
		_exit(0); /* whom should it be told */
	child->status_fd = fds[JOIN_STATUS];
	for (int i = 0; i < 3; i++) {
		if (dup2(fds[JOIN_STDIN + i], i) < 0)
			return child_fail(err, ERR_no_resources, errno, "descriptor");
		close(fds[JOIN_STDIN + i]);
	}
	r = order_read(fds[JOIN_ORDER], &reaper->plan, ret_memory, ret_size);
	close(fds[JOIN_ORDER]);
	if (r < 0)
		return child_fail(err, r == -ENOMEM ? ERR_no_resources : ERR_internal, r, "order");
	return 0;
}

static int tell_joined(const struct child *child, struct err *err)
{
	struct sync_msg msg = { .magic = SYNC_MAGIC, .kind = SYNC_JOINED };
	int self = sys_pidfd_open((pid_t)syscall(SYS_getpid));
	int r = self < 0 ? self : sync_send(child->setup_fd, &msg, self);
	if (self >= 0)
		close(self);
	return r < 0 ? child_fail(err, ERR_no_resources, r, "pidfd") : 0;
}

/* Of the order nothing is needed any longer but what holds for the process that renames. */
static void keep_plan(struct reaper *reaper)
{
	struct plan *plan = &reaper->plan;
	for (size_t i = 0; i < plan->rlimit_count; i++) {
		reaper->rlimits[i] = plan->rlimits[i];
		reaper->rlimits[i].why = "";
	}
	plan->rlimits = reaper->rlimits;
	plan->cwd = "/";
	plan->argv = plan->envp = plan->candidates = NULL;
	plan->shell_argv = NULL;
}

static int begin(struct reaper *reaper, struct err *err)
{
	struct child *child = &reaper->child;
	void *memory;
	size_t size;
	sigset_t mask;
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	child->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (child->signal_fd < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return child_fail(err, ERR_no_resources, errno, "signalfd");
	if (take_order(reaper, &memory, &size, err) < 0 || tell_joined(child, err) < 0 ||
		stage_fork(child, err) < 0)
		return -1;
	/* Executed, or failed: its arguments and environment need not be here any longer. */
	keep_plan(reaper);
	munmap(memory, size);
	return 0;
}

/* All signals are blocked: they are for the command, which unblocks them for itself. */
static _Noreturn void reaper_main(const struct child *init, int setup)
{
	struct reaper reaper = { .child = *init, .plan = *init->plan };
	struct child *child = &reaper.child;
	struct err err;
	close(child->status_fd);
	close(child->signal_fd);
	child->plan = &reaper.plan;
	child->joined = true;
	child->setup_fd = setup;
	child->status_fd = -1;
	child->payload = child->renamer = 0;
	(void)prctl(PR_SET_NAME, "agentbox-reaper", 0, 0, 0);
	if (begin(&reaper, &err) < 0) {
		err.stage = STAGE_fork;
		struct sync_msg msg = { .magic = SYNC_MAGIC, .kind = SYNC_FAILED, .err = err };
		(void)sync_send(setup, &msg, -1);
		_exit(0); /* of this command alone; the box is whole */
	}
	close(setup);
	child->setup_fd = -1;
	watch(&reaper);
}

void reaper_start(struct child *child, int setup)
{
	sigset_t all, old;
	sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, &old) < 0)
		return;
	pid_t pid = fork();
	if (pid == 0)
		reaper_main(child, setup);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
}
