/* Stages ids, guard, names, loopback: who init is, and that it cannot outlive the supervisor. */
#define _GNU_SOURCE
#include "box/child.h"
#include "base/sys.h"

#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

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

/* Close all but the descriptors that the stages use, so that init holds nothing of the caller's. */
static int keep_only(int *fds, size_t count)
{
	for (size_t i = 1; i < count; i++) /* insertion sort: a handful */
		for (size_t k = i; k > 0 && fds[k - 1] > fds[k]; k--) {
			int swap = fds[k];
			fds[k] = fds[k - 1];
			fds[k - 1] = swap;
		}
	unsigned next = 3;
	for (size_t i = 0; i < count; i++) {
		if (fds[i] < 3)
			continue;
		unsigned fd = (unsigned)fds[i];
		if (fd > next) {
			int r = sys_close_range(next, fd - 1, 0);
			if (r < 0)
				return r;
		}
		next = fd + 1;
	}
	return sys_close_range(next, ~0u, 0);
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

/*
 * needs: ids (a change of ids clears the parent-death signal)
 * leaves: init dies with the supervisor, cannot be traced or read, has no terminal, default
 *signals, and no descriptor of the caller's
 */
int stage_guard(struct child *child, struct err *err)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return child_fail(err, ERR_internal, errno, "prctl");
	(void)prctl(PR_SET_NAME, "agentbox-init", 0, 0, 0);
	setsid();

	const struct plan *plan = child->plan;
	/* Anyone may read /proc/1/cmdline, whatever else of init is out of reach. */
	if (plan->words)
		memset(plan->words, 0, plan->words_len);
	/* keyctl(2): else the caller's session keyring would be the command's. */
	if (plan->new_keyring && syscall(SYS_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, NULL) < 0)
		return child_fail(err, ERR_internal, errno, "keyctl");
	int keep[2 + PLAN_GRANTS_MAX];
	size_t count = 0;
	keep[count++] = child->setup_fd;
	keep[count++] = child->status_fd;
	int r = take_stdio(child);
	if (plan->as_root) {
		for (size_t i = 0; i < PLAN_GRANTS_MAX; i++)
			if (child->trees[i] >= 0)
				keep[count++] = child->trees[i];
	}
	if (r == 0)
		r = keep_only(keep, count);
	if (r < 0)
		return child_fail(err, ERR_no_resources, r, "close_range");

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

/* needs: a network namespace of the box's own, or nothing to do; leaves: lo is up */
int stage_loopback(struct child *child, struct err *err)
{
	if (!child->plan->loopback_up)
		return 0;
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return child_fail(err, ERR_no_resources, errno, "socket");
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int r = ioctl(sock, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
	close(sock);
	return r < 0 ? child_fail(err, ERR_userns_denied, r, "loopback interface") : 0;
}
