/*
 * renames: the renames of a box whose workspace is an overlay. They come from the seccomp listener,
 * are handed to the box's own process for them (box/renames.h), and answered with what came of it.
 *
 * Nothing is decided by what the caller's memory holds, and no call is told to go on: what is read
 * there, once, is what is done, by a process with just the rights of the command. Here nothing
 * is waited for: a renamer that does not answer holds up renames only.
 */
#define _GNU_SOURCE
#include "supervise/run.h"
#include "base/fd.h"
#include "base/sys.h"
#include "box/renames.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define WAITING_MAX 1024 /* calls that wait for their turn; past it the listener waits, too */
#define STARTS_MAX  8    /* of renamers, when each of them ends before the command does */

#define PROC_PATH_SIZE (sizeof "/proc//task//root" + 6 * sizeof(int))

/* One request with its descriptors, while it is put together. */
struct draft {
	struct rename_request head;
	size_t text_len;
	int fds[RENAME_DESCRIPTORS_MAX];
	size_t fd_count;
	bool unreadable; /* the caller's memory is out of our reach */
};

/* What the caller gave for one of the two paths. */
struct given {
	int dir; /* AT_FDCWD or a number of the caller's */
	uint64_t path;
};

static void answer(struct run *run, uint64_t id, int result)
{
	struct seccomp_notif_resp response = { .id = id, .error = result };
	/* ENOENT: the caller was killed meanwhile. */
	(void)ioctl(run->listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

/* --- what the caller asks for --- */

static unsigned arguments(const struct seccomp_data *call, struct given *old, struct given *new)
{
	bool at = true;
#ifdef SYS_rename
	at = call->nr != SYS_rename;
#endif
	old->dir = at ? (int)(uint32_t)call->args[0] : AT_FDCWD;
	old->path = call->args[at ? 1 : 0];
	new->dir = at ? (int)(uint32_t)call->args[2] : AT_FDCWD;
	new->path = call->args[at ? 3 : 1];
	return call->nr == SYS_renameat2 ? (uint32_t)call->args[4] : 0;
}

/*
 * A string of the caller's memory, which may change while it is read: then it is what was read. Two
 * pieces, as only whole ones are read and the second may lie behind the end of what is there.
 * Returns its length or -errno as of open(2).
 */
static ssize_t read_string(pid_t tid, uint64_t at, char text[PATH_MAX])
{
	const size_t page = 4096; /* or a part of one */
	size_t first = page - (size_t)(at % page);
	struct iovec local = { .iov_base = text, .iov_len = PATH_MAX };
	struct iovec remote[2] = {
		{ .iov_base = (void *)(uintptr_t)at, .iov_len = first },
		{ .iov_base = (void *)(uintptr_t)(at + first), .iov_len = PATH_MAX - first },
	};
	ssize_t n = process_vm_readv(tid, &local, 1, remote, first < PATH_MAX ? 2 : 1, 0);
	if (n < 0)
		return -errno;
	const char *end = memchr(text, 0, (size_t)n);
	if (end)
		return end - text;
	return n == PATH_MAX ? -ENAMETOOLONG : -EFAULT;
}

/* A process that cannot be dumped has no directory of descriptors for us, but lets us have one. */
static int copy_descriptor(pid_t tid, int number)
{
	AUTO_FD pidfd = sys_pidfd_open(tid);
	pid_t pid;
	if (pidfd < 0 && (pid = listener_process_of(tid)) > 0)
		pidfd = sys_pidfd_open(pid);
	if (pidfd < 0)
		return -EACCES;
	int fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
	if (fd < 0)
		return errno == EBADF ? -EBADF : -EACCES;
	/* It is not only a name for the file, but the caller's own: no more of these than must be.
	 */
	struct stat st;
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
		return fd;
	fd_close(&fd);
	return -ENOTDIR;
}

/* The directory that a relative path begins at, whatever it is: the renamer finds out. */
static int open_dir(pid_t tid, int dir)
{
	char path[PROC_PATH_SIZE];
	if (dir < 0 && dir != AT_FDCWD)
		return -EBADF;
	if (dir == AT_FDCWD)
		snprintf(path, sizeof path, "/proc/%d/cwd", tid);
	else
		snprintf(path, sizeof path, "/proc/%d/fd/%d", tid, dir);
	int fd = open(path, O_PATH | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	if (errno == EACCES && dir != AT_FDCWD)
		return copy_descriptor(tid, dir);
	return errno == ENOENT && dir != AT_FDCWD ? -EBADF : -errno;
}

/* One path into the request; what is wrong with it is answered in its turn. */
static void put_side(struct draft *draft, pid_t tid, const struct given *given,
	struct rename_side *side, unsigned which, bool same_dir)
{
	char *text = draft->head.text + draft->text_len;
	ssize_t len = read_string(tid, given->path, text);
	if (len < 0) {
		draft->unreadable |= len == -EPERM;
		side->error = len == -EPERM ? EACCES : (int32_t)-len;
		len = 0;
	}
	text[len] = 0;
	side->len = (uint32_t)len;
	draft->text_len += (size_t)len + 1;
	if (len == 0 || text[0] == '/' || same_dir)
		return;
	int fd = open_dir(tid, given->dir);
	if (fd < 0) {
		side->error = -fd;
		return;
	}
	draft->fds[draft->fd_count++] = fd;
	draft->head.descriptors |= which;
}

static bool same_file(const char *one, const char *other)
{
	struct stat a, b;
	return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/*
 * Only in a namespace of its own can a process of the box have another root. 0 or -errno.
 */
static int put_root(struct draft *draft, const struct run *run, pid_t tid)
{
	static const char *const what[] = { "root", "ns/mnt" };
	char theirs[PROC_PATH_SIZE], init[PROC_PATH_SIZE];
	bool same = true;
	for (size_t i = 0; i < sizeof what / sizeof *what; i++) {
		snprintf(theirs, sizeof theirs, "/proc/%d/%s", tid, what[i]);
		snprintf(init, sizeof init, "/proc/%d/%s", run->box->pid, what[i]);
		same = same && same_file(theirs, init);
	}
	if (same)
		return 0;
	snprintf(theirs, sizeof theirs, "/proc/%d/root", tid);
	int fd = open(theirs, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	draft->fds[draft->fd_count++] = fd;
	draft->head.descriptors |= RENAME_ROOT;
	return 0;
}

/* 0 or -errno: what the caller is to be told. */
static int write_draft(struct draft *draft, const struct run *run, const struct seccomp_notif *call)
{
	struct given old, new;
	pid_t tid = (pid_t)call->pid;
	memset(&draft->head, 0, offsetof(struct rename_request, text));
	draft->text_len = draft->fd_count = 0;
	draft->unreadable = false;
	draft->head.id = call->id;
	draft->head.flags = arguments(&call->data, &old, &new);
	put_side(draft, tid, &old, &draft->head.old, RENAME_OLD_DIR, false);
	bool same_dir = new.dir == old.dir && (draft->head.descriptors & RENAME_OLD_DIR);
	put_side(draft, tid, &new, &draft->head.new, RENAME_NEW_DIR, same_dir);
	if (draft->unreadable)
		result_warning(run->result, "renames_failed",
			"the memory of a process of the box could not be read, so its renames "
			"failed "
			"with EACCES: its program may be executed but not read, or the host lets "
			"nobody "
			"trace (kernel.yama.ptrace_scope = 3)");
	return run->plan->nesting ? put_root(draft, run, tid) : 0;
}

/* --- the renamer --- */

/* Only while the command runs: init has other things to do before and after; a reaper has not. */
static bool may_start(const struct run *run)
{
	return run->state == STATE_EXECING || run->state == STATE_RUNNING ||
	       run->state == STATE_TERMINATING || (run->box->joined && run->state == STATE_ENDING);
}

/* 0 or -errno. */
static int start(struct run *run)
{
	struct renames *renames = &run->renames;
	int pair[2];
	if (renames->started >= STARTS_MAX || run->box->status_fd < 0)
		return -EIO;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -ENOMEM;
	struct sync_msg msg;
	memset(&msg, 0, sizeof msg);
	msg.magic = SYNC_MAGIC;
	msg.kind = SYNC_RENAMES;
	int r = sync_send(run->box->status_fd, &msg, pair[1]);
	fd_close(&pair[1]);
	if (r < 0) {
		fd_close(&pair[0]);
		return -EIO;
	}
	renames->started++;
	renames->sock = pair[0];
	return 0;
}

/* 0 or -errno; -EAGAIN: not now. */
static int send_draft(int sock, const struct draft *draft)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof draft->fds)];
	} control;
	memset(&control, 0, sizeof control);
	struct iovec iov = { .iov_base = (void *)&draft->head,
		.iov_len = offsetof(struct rename_request, text) + draft->text_len };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	if (draft->fd_count) {
		size_t size = sizeof(int) * draft->fd_count;
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(size);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(size);
		memcpy(CMSG_DATA(&control.header), draft->fds, size);
	}
	ssize_t n = sendmsg(sock, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n >= 0)
		return 0;
	/* ETOOMANYREFS: too many descriptors of this user's are under way, ours perhaps. */
	return errno == ETOOMANYREFS || errno == ENOBUFS || errno == EINTR ? -EAGAIN : -errno;
}

/* The renamer has let go of its socket: what it had not answered may or may not be done. */
static void lost(struct run *run)
{
	struct renames *renames = &run->renames;
	fd_close(&renames->sock);
	/* Ended by init at the command's end: those that are left end before they could see it. */
	if (may_start(run)) {
		for (size_t i = 0; i < renames->count; i++)
			answer(run, renames->ids[i], -EIO);
		if (renames->started >= STARTS_MAX)
			result_warning(run->result, "renames_failed",
				"the box's process for renames ended again and again; renames "
				"failed with EIO from then on");
	}
	renames->count = 0;
}

/* --- the order of things --- */

/* -EAGAIN: it must wait for another one's end. Else it is handed over, answered, or of no matter.
 */
static int hand_over(struct run *run, const struct seccomp_notif *call)
{
	struct renames *renames = &run->renames;
	if (!may_start(run))
		return 0; /* the caller sits in its call until its own end */
	if (renames->count == RENAMES_AT_ONCE)
		return -EAGAIN;
	int r = renames->sock >= 0 ? 0 : start(run);
	struct draft draft;
	draft.fd_count = 0;
	if (r == 0)
		r = write_draft(&draft, run, call);
	/* Only now is it certain that all of it was the caller's: its number may be another's. */
	uint64_t id = call->id;
	bool valid = ioctl(run->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
	if (r == 0 && valid)
		r = send_draft(renames->sock, &draft);
	for (size_t i = 0; i < draft.fd_count; i++)
		fd_close(&draft.fds[i]);
	if (!valid)
		return 0;
	if (r == 0)
		renames->ids[renames->count++] = call->id;
	else if (r == -EAGAIN && renames->count > 0)
		return r;
	else
		answer(run, call->id, r == -EAGAIN ? -ENOMEM : r == -EPIPE ? -EIO : r);
	return 0;
}

static void hand_over_waiting(struct run *run)
{
	struct renames *renames = &run->renames;
	while (renames->waiting_count > 0 &&
		hand_over(run, &renames->waiting[renames->first]) != -EAGAIN) {
		renames->first = (renames->first + 1) % WAITING_MAX;
		renames->waiting_count--;
	}
}

void renames_take(struct run *run, const struct seccomp_notif *call)
{
	struct renames *renames = &run->renames;
	if (renames->waiting_count == 0 && hand_over(run, call) != -EAGAIN)
		return;
	if (!renames->waiting)
		renames->waiting = malloc(WAITING_MAX * sizeof *renames->waiting);
	if (!renames->waiting) {
		answer(run, call->id, -ENOMEM);
		return;
	}
	/* There is room: the listener is not asked for more when there is none. */
	size_t last = (renames->first + renames->waiting_count++) % WAITING_MAX;
	renames->waiting[last] = *call;
}

bool renames_full(const struct run *run)
{
	return run->renames.waiting_count == WAITING_MAX;
}

/* False: the renamer said what it cannot say. */
static bool take_reply(struct run *run, const struct rename_reply *reply)
{
	struct renames *renames = &run->renames;
	const int errno_max = 4095;
	for (size_t i = 0; i < renames->count; i++) {
		if (renames->ids[i] != reply->id || reply->result > 0 || reply->result < -errno_max)
			continue;
		renames->ids[i] = renames->ids[--renames->count];
		answer(run, reply->id, reply->result);
		return true;
	}
	return false;
}

void renames_turn(struct run *run)
{
	struct renames *renames = &run->renames;
	for (int i = 0; i < RENAMES_AT_ONCE && renames->sock >= 0; i++) {
		struct rename_reply reply;
		ssize_t n = recv(renames->sock, &reply, sizeof reply, MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n != sizeof reply || !take_reply(run, &reply))
			lost(run);
	}
	hand_over_waiting(run);
}

void renames_again(struct run *run)
{
	run->renames.started = 0;
	hand_over_waiting(run);
}

void renames_close(struct run *run)
{
	fd_close(&run->renames.sock);
	free(run->renames.waiting);
	run->renames.waiting = NULL;
}
