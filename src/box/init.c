/*
 * init: pid 1 of the box. It makes the box stage by stage, starts the command, then only waits:
 * for children to reap and for the supervisor's word. It dies with the supervisor, and the box
 * with it. It never looks at anything that the command can write.
 */
#define _GNU_SOURCE
#include "box/child.h"
#include "base/sys.h"
#include "box/sync.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/vfs.h>
#include <sys/wait.h>

int child_fail(struct err *err, enum err_code code, int errnum, const char *detail)
{
	memset(err, 0, sizeof *err);
	err->code = code;
	err->errnum = errnum < 0 ? -errnum : errnum;
	if (detail)
		memccpy(err->text, detail, 0, sizeof err->text - 1);
	return -1;
}

_Noreturn void child_die(const struct child *child, enum stage stage, struct err *err)
{
	err->stage = stage;
	struct sync_msg msg = { .magic = SYNC_MAGIC, .kind = SYNC_FAILED, .err = *err };
	(void)sync_send(child->setup_fd, &msg, -1);
	_exit(125);
}

static uint64_t in_us(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000u + (uint64_t)time->tv_usec;
}

/* Tell the supervisor how the command ended. Its being gone is no matter: then we die as well. */
void tell_ended(const struct child *child, int status, const struct rusage *usage)
{
	struct sync_msg msg = { .magic = SYNC_MAGIC, .kind = SYNC_ENDED };
	msg.ended.wait_status = status;
	msg.ended.utime_us = in_us(&usage->ru_utime);
	msg.ended.stime_us = in_us(&usage->ru_stime);
	msg.ended.maxrss_bytes = (uint64_t)usage->ru_maxrss * 1024u;
	(void)sync_send(child->status_fd, &msg, -1);
}

/*
 * End every other process of the box and reap it. Those that had ended by themselves are not
 * counted. The kernel reparents orphans to us, so ECHILD means that we are alone.
 */
static uint64_t end_leftovers(void)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		;
	if (pid < 0 && errno == ECHILD)
		return 0; /* alone already: no need to make the kernel look at every process */
	uint64_t killed = 0;
	for (;;) {
		kill(-1, SIGKILL);
		pid = waitpid(-1, &status, 0);
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			return killed;
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
			killed++;
	}
}

void tell_gone(const struct child *child, uint64_t killed, uint64_t left)
{
	struct sync_msg msg = { .magic = SYNC_MAGIC, .kind = SYNC_GONE };
	msg.gone.leftover_killed = killed;
	msg.gone.left = left;
	struct statfs fs;
	msg.gone.disk_bytes = fstatfs(child->root_fd, &fs) == 0
				      ? (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize
				      : UINT64_MAX;
	const int whose[] = { RUSAGE_SELF, RUSAGE_CHILDREN };
	for (size_t i = 0; i < sizeof whose / sizeof *whose; i++) {
		struct rusage usage;
		(void)getrusage(whose[i], &usage);
		msg.gone.utime_us += in_us(&usage.ru_utime);
		msg.gone.stime_us += in_us(&usage.ru_stime);
	}
	(void)sync_send(child->status_fd, &msg, -1);
}

static _Noreturn void finish(struct child *child)
{
	renames_end(child);
	tell_gone(child, end_leftovers(), 0);
	_exit(0);
}

/*
 * Reap what has ended; when it was the command, tell, clean up and end. In a kept box only reapers
 * are ours: one that did not end by itself has let go of processes that nobody looks after now.
 */
static void reap(struct child *child)
{
	int status;
	struct rusage usage;
	pid_t pid;
	/* A reaper that was stopped could end nobody any more: that is as if it had been killed. */
	int stopped = child->plan->keep ? WUNTRACED : 0;
	while ((pid = wait4(-1, &status, WNOHANG | stopped, &usage)) > 0) {
		if (child->plan->keep && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
			_exit(125);
		if (pid == child->renamer)
			child->renamer = 0;
		if (pid != child->payload)
			continue;
		tell_ended(child, status, &usage);
		finish(child);
	}
}

/*
 * A word from the supervisor: pass a signal to all, make the process that renames, a socket, or in
 * a kept box a process for a command; anything else, or its death, ends the box.
 */
static void listen(struct child *child)
{
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
	if (r == 1 && msg.kind == SYNC_JOIN && child->plan->keep) {
		reaper_start(child, fd);
		close(fd);
		return;
	}
	if (r == 1 && msg.kind == SYNC_WANTED && child->plan->reach.publish_count &&
		sockets_spare(child, msg.family))
		return;
	if (r != 1 || msg.kind != SYNC_SIGNAL || msg.signal <= 0 || msg.signal >= NSIG)
		_exit(125);
	kill(-1, msg.signal);
}

static _Noreturn void watch(struct child *child)
{
	struct pollfd fds[] = {
		{ .fd = child->signal_fd, .events = POLLIN },
		{ .fd = child->status_fd, .events = POLLIN },
	};
	for (;;) {
		/* Before the first wait too: the command may have ended while we were in vfork. */
		reap(child);
		if (poll(fds, 2, -1) < 0 && errno != EINTR) {
			/* Whatever befell us: a child's end is still to be had, and our death by
			 * signal. */
			siginfo_t info;
			(void)waitid(P_ALL, 0, &info, WEXITED | WNOWAIT);
			continue;
		}
		if (fds[1].revents)
			listen(child);
		struct signalfd_siginfo info[8];
		if (fds[0].revents)
			(void)!read(child->signal_fd, info, sizeof info);
	}
}

/* A kept box has no command yet: this is all that there is to say of it. */
static int tell_ready(struct child *child, struct err *err)
{
	struct sync_msg msg = { .magic = SYNC_MAGIC, .kind = SYNC_READY };
	int r = sync_send(child->setup_fd, &msg, -1);
	return r < 0 ? child_fail(err, ERR_internal, r, "sendmsg") : 0;
}

int stage_fork(struct child *child, struct err *err)
{
	if (child->plan->keep && !child->joined)
		return tell_ready(child, err);
	/* vfork: the command's page tables are made by its exec; nothing is copied for nothing. */
	pid_t pid = vfork();
	if (pid == 0)
		payload_main(child);
	if (pid < 0)
		return child_fail(err, ERR_no_resources, errno, "vfork");
	child->payload = pid;
	return 0;
}

_Noreturn void init_main(struct child *child)
{
	static const struct {
		enum stage stage;
		int (*run)(struct child *, struct err *);
	} stages[] = {
#define STAGE_ROW_supervisor(name)
#define STAGE_ROW_init(name) { STAGE_##name, stage_##name },
#define STAGE_ROW_payload(name)
#define STAGE(name, process, needs, leaves) STAGE_ROW_##process(name)
#include "box/stages.def"
#undef STAGE
	};
	struct err err;
	for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
		if (stages[i].run(child, &err) < 0)
			child_die(child, stages[i].stage, &err);
	/* From here on only the payload holds the setup socket: its end of file is the exec. */
	close(child->setup_fd);
	child->setup_fd = -1;
	/* The process that renames will need the rules, and so will every command of a kept box. */
	if (child->ruleset_fd >= 0 && !child->plan->renames && !child->plan->keep)
		close(child->ruleset_fd);
	sigset_t mask;
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	child->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (child->signal_fd < 0)
		_exit(125);
	watch(child);
}
