/* Stages inherit, ids, guard, names: who init is, and that it cannot outlive the supervisor. */
#define _GNU_SOURCE
#include "box/child.h"
#include "base/sys.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

static int put(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t n = write(fd, text, strlen(text));
	int r = n < 0 ? -errno : (size_t)n == strlen(text) ? 0 : -EIO;
	close(fd);
	return r;
}

/*
 * needs: a user namespace made by the outer id, /proc of the host
 * leaves: the only mapping is inside id -> outer id; all ids are the inside ones
 * must not: map 0, or keep a supplementary group that can be dropped
 */
int stage_ids(struct child *child, struct err *err)
{
	const struct plan *plan = child->plan;
	int self = openat(AT_FDCWD, "/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (self < 0)
		return child_fail(err, ERR_userns_denied, errno, "/proc/self");
	/* user_namespaces(7): an unprivileged gid_map needs setgroups denied first. */
	int r = put(self, "setgroups", "deny");
	if (r == 0)
		r = put(self, "uid_map", plan->uid_map);
	if (r == 0)
		r = put(self, "gid_map", plan->gid_map);
	if (r < 0) {
		close(self);
		return child_fail(err, ERR_userns_denied, r, "id map");
	}
	r = put(self, "oom_score_adj", plan->oom_score_adj);
	close(self);
	if (r < 0)
		return child_fail(err, ERR_limit_refused, r, "oom_score_adj");
	/* As root the real and saved ids are still the caller's; now there is an id to change to.
	 */
	if (syscall(SYS_setresgid, plan->gid, plan->gid, plan->gid) < 0 ||
		syscall(SYS_setresuid, plan->uid, plan->uid, plan->uid) < 0)
		return child_fail(err, ERR_userns_denied, errno, "setresuid");
	return 0;
}

/* Close all but two from 3 on. */
static int keep_only(unsigned one, unsigned other)
{
	unsigned low = one < other ? one : other, high = one < other ? other : one;
	int r = low > 3 ? sys_close_range(3, low - 1, 0) : 0;
	if (r == 0 && high > low + 1 && high > 3)
		r = sys_close_range(low < 3 ? 3 : low + 1, high - 1, 0);
	return r < 0 ? r : sys_close_range(high < 3 ? 3 : high + 1, ~0u, 0);
}

/* 0, 1, 2 become the command's; with a terminal they stay closed ends until there is one. */
static int take_stdio(struct child *child)
{
	int from[3] = { child->stdin_fd, child->stdout_fd, child->stderr_fd };
	for (int i = 0; i < 3; i++)
		if (from[i] >= 0 && dup2(from[i], i) < 0)
			return -errno;
	return 0;
}

/* needs: nothing; leaves: no descriptor of the caller's; 0, 1, 2 are the command's */
int stage_inherit(struct child *child, struct err *err)
{
	int r = take_stdio(child);
	if (r == 0)
		r = keep_only((unsigned)child->setup_fd, (unsigned)child->status_fd);
	return r < 0 ? child_fail(err, ERR_no_resources, r, "close_range") : 0;
}

/*
 * needs: ids (a change of ids clears the parent-death signal)
 * leaves: init dies with the supervisor, cannot be traced or read, has no keyring of the caller's
 *	and default signals. It stays in the caller's session, which costs less than one of its own:
 *	what a terminal sends is ignored by the init of a pid namespace (pid_namespaces(7)), and the
 *	payload has a session of its own.
 */
int stage_guard(struct child *child, struct err *err)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return child_fail(err, ERR_internal, errno, "prctl");
	(void)prctl(PR_SET_NAME, "agentbox-init", 0, 0, 0);

	const struct plan *plan = child->plan;
	/* Anyone may read /proc/1/cmdline, whatever else of init is out of reach. */
	if (plan->words)
		memset(plan->words, 0, plan->words_len);
	/* keyctl(2): else the caller's session keyring would be the command's. */
	if (plan->new_keyring && syscall(SYS_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, NULL) < 0)
		return child_fail(err, ERR_internal, errno, "keyctl");

	/* The supervisor may have died before the prctl: its end of the socket tells. */
	struct pollfd peer = { .fd = child->status_fd, .events = POLLIN };
	if (poll(&peer, 1, 0) < 0)
		return child_fail(err, ERR_internal, errno, "poll");
	if (peer.revents & (POLLHUP | POLLERR))
		_exit(125); /* nobody is left to tell */

	/*
	 * Ignored signals are inherited through exec; the standard ones are what callers ignore.
	 * Raw, with the kernel's own struct: what the C library thinks of handlers is no matter
	 * here.
	 */
	for (int sig = 1; sig < 32; sig++) {
		struct {
			void *handler;
			unsigned long flags;
			void *restorer;
			uint64_t mask;
		} action = { .handler = SIG_DFL };
		if (sig != SIGKILL && sig != SIGSTOP)
			syscall(SYS_rt_sigaction, sig, &action, NULL, 8);
	}
	sigset_t mask;
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return 0;
}

/* needs: a uts namespace; leaves: the box's host name */
int stage_names(struct child *child, struct err *err)
{
	const char *name = child->plan->hostname;
	if ((child->plan->namespaces & CLONE_NEWUTS) && sethostname(name, strlen(name)) < 0)
		return child_fail(err, ERR_userns_denied, errno, "sethostname");
	return 0;
}
