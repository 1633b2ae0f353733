/*
 * keep: the keeper of a box that outlives its commands. It holds the box's init, which dies with
 * it, and hands commands on to it: it never sees their descriptors, output or result, which are
 * between the command's own supervisor and its reaper. What it is told it believes of this user
 * alone.
 */
#define _GNU_SOURCE
#include "supervise/run.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CALLERS_MAX 128 /* connections at a time; more of them wait */

struct caller {
	int fd;     /* -1: a free place */
	bool known; /* it has shown the lock */
	bool in;    /* it has a command in the box, which has not ended yet */
};

struct keep {
	struct box *box;
	int lock;   /* of the session */
	bool asked; /* to end */
	struct caller callers[CALLERS_MAX];
	struct pollfd fds[3 + CALLERS_MAX];
};

/* --- the box is made --- */

static int died(struct box *box, struct err *err)
{
	box_kill(box);
	err_set(err, ERR_box_died, 0, "the box ended before it was made, without saying why");
	return -1;
}

/* 1: go on, 0: it is made, -1 with *err. */
static int take_setup(const struct plan *plan, struct box *box, struct err *err)
{
	struct sync_msg msg;
	int fd = -1;
	int r = sync_recv(box->setup_fd, &msg, &fd);
	if (r == -EAGAIN)
		return 1;
	if (r == 1 && msg.kind == SYNC_LAYER && box->layer_count < plan->layer_count) {
		box->layers[box->layer_count++] = fd;
		return 1;
	}
	if (r == 1 && msg.kind == SYNC_READY && box->layer_count == plan->layer_count)
		return 0;
	fd_close(&fd);
	if (r != 1 || msg.kind != SYNC_FAILED)
		return died(box, err);
	*err = msg.err;
	box_explain_failure(plan, err);
	box_kill(box);
	return -1;
}

int supervise_keep_begin(const struct plan *plan, struct box *box, int signal_fd, struct err *err)
{
	int64_t deadline = run_now() + SETUP_MAX_NS;
	for (int r = 1; r > 0;) {
		struct pollfd fds[] = { { .fd = box->setup_fd, .events = POLLIN },
			{ .fd = signal_fd, .events = POLLIN } };
		int64_t left = (deadline - run_now()) / 1000000;
		int n = poll(fds, 2, left > 0 ? (int)left : 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || fds[1].revents)
			return died(box, err);
		r = take_setup(plan, box, err);
		if (r < 0)
			return -1;
	}
	fd_close(&box->setup_fd);
	return 0;
}

/* --- who comes --- */

/* Only the caller's own processes, and those whose numbers mean the same here. */
static bool is_own(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof peer;
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && len == sizeof peer &&
	       peer.uid == geteuid() && peer.pid > 0;
}

/* Whoever has not said who it is makes room for others. */
static struct caller *free_place(struct keep *keep)
{
	struct caller *place = NULL;
	for (size_t i = 0; i < CALLERS_MAX; i++)
		if (keep->callers[i].fd < 0 || (!place && !keep->callers[i].known))
			place = &keep->callers[i];
	return place;
}

static void let_in(struct keep *keep, int listener)
{
	struct caller *place = free_place(keep);
	if (!place)
		return;
	AUTO_FD fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		/* Without descriptors it is asked again and again: not at once. */
		struct timespec pause = { .tv_nsec = 10000000 };
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			nanosleep(&pause, NULL);
		return;
	}
	if (!is_own(fd))
		return;
	fd_close(&place->fd);
	*place = (struct caller){ .fd = fd_steal(&fd) };
}

/*
 * A box acts as this user, too, and may be shown the directory with the socket; but never with the
 * right to write there. So whoever has the lock open for writing is none.
 */
static int know(const struct keep *keep, struct caller *caller, int lock)
{
	struct stat ours, theirs;
	int flags = fcntl(lock, F_GETFL);
	if (flags < 0 || (flags & O_ACCMODE) != O_RDWR || (flags & O_PATH) ||
		fstat(keep->lock, &ours) < 0 || fstat(lock, &theirs) < 0 ||
		ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino)
		return -EPERM;
	caller->known = true;
	return 0;
}

static int answer(int fd, int value)
{
	struct sync_msg msg;
	memset(&msg, 0, sizeof msg);
	msg.magic = SYNC_MAGIC;
	msg.kind = SYNC_ANSWER;
	msg.answer = value;
	return sync_send(fd, &msg, -1);
}

/* 0 or -errno: then the caller is let go, and with the socket that came its command. */
static int join(struct keep *keep, struct caller *caller, int setup)
{
	const struct box *box = keep->box;
	struct sync_msg msg;
	memset(&msg, 0, sizeof msg);
	msg.magic = SYNC_MAGIC;
	msg.kind = SYNC_JOIN;
	if (caller->in)
		return -EPROTO;
	int trees[PLAN_LAYERS_MAX + PLAN_CGROUPS_MAX];
	const struct cgroup *cgroup = &box->cgroup;
	size_t groups = cgroup->plan ? cgroup->plan->count : 0, layers = box->layer_count;
	memcpy(trees, box->layers, layers * sizeof *trees);
	memcpy(trees + layers, cgroup->dir, groups * sizeof *trees);
	int r = answer(caller->fd, (int)groups);
	if (r == 0 && layers + groups > 0)
		r = sync_send_many(caller->fd, SYNC_TREES, trees, layers + groups);
	if (r == 0)
		r = sync_send(box->status_fd, &msg, setup);
	caller->in = r == 0;
	return r;
}

static bool in_use(const struct keep *keep)
{
	for (size_t i = 0; i < CALLERS_MAX; i++)
		if (keep->callers[i].fd >= 0 && keep->callers[i].in)
			return true;
	return false;
}

static void hear(struct keep *keep, struct caller *caller)
{
	struct sync_msg msg;
	AUTO_FD fd = -1;
	int r = sync_recv(caller->fd, &msg, &fd);
	if (r == -EAGAIN)
		return;
	if (r == 1 && !caller->known)
		r = msg.kind == SYNC_HELLO ? know(keep, caller, fd) : -EPERM;
	else if (r == 1 && msg.kind == SYNC_JOIN)
		r = join(keep, caller, fd);
	else if (r == 1 && msg.kind == SYNC_END) {
		keep->asked = !in_use(keep);
		r = answer(caller->fd, keep->asked ? 0 : -EBUSY);
	} else
		r = -EPROTO;
	if (r < 0)
		fd_close(&caller->fd);
}

static void prepare(struct keep *keep, int listener, int signal_fd)
{
	bool room = free_place(keep) != NULL;
	keep->fds[0] = (struct pollfd){ .fd = keep->box->pidfd, .events = POLLIN };
	keep->fds[1] = (struct pollfd){ .fd = signal_fd, .events = POLLIN };
	keep->fds[2] = (struct pollfd){ .fd = room ? listener : -1, .events = POLLIN };
	for (size_t i = 0; i < CALLERS_MAX; i++)
		keep->fds[3 + i] = (struct pollfd){ .fd = keep->callers[i].fd, .events = POLLIN };
}

int supervise_keep(struct box *box, int listener, int lock, int signal_fd)
{
	struct keep keep = { .box = box, .lock = lock };
	for (size_t i = 0; i < CALLERS_MAX; i++)
		keep.callers[i].fd = -1;
	while (!keep.asked) {
		prepare(&keep, listener, signal_fd);
		if (poll(keep.fds, sizeof keep.fds / sizeof *keep.fds, -1) < 0) {
			if (errno == EINTR)
				continue;
			break;
		}
		if (keep.fds[0].revents)
			return -1;
		if (keep.fds[1].revents)
			break;
		for (size_t i = 0; i < CALLERS_MAX; i++)
			if (keep.fds[3 + i].revents)
				hear(&keep, &keep.callers[i]);
		if (keep.fds[2].revents)
			let_in(&keep, listener);
	}
	box_kill(box);
	return 0;
}
