/*
 * join: the supervisor's side of running a command in a kept box: what box_spawn() is for one of
 * its own. It returns once the command's reaper has said who it is.
 */
#define _GNU_SOURCE
#include "box/join.h"
#include "base/fd.h"
#include "base/sys.h"
#include "box/box.h"
#include "box/child.h"
#include "box/sync.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define REAPER_MAX_MS 30000

/* A raw failure, with its stage; returns -1. */
static int fail(struct err *err, enum err_code code, int r, const char *what)
{
	child_fail(err, code, r, what);
	err->stage = STAGE_spawn;
	return -1;
}

/* The keeper has gone, or does not answer. */
static int lost(struct err *err, int r)
{
	if (r == -EAGAIN || r == -EWOULDBLOCK)
		return err_set(err, ERR_session_busy, -r,
			"what keeps the session's processes does not answer");
	return err_set(err, ERR_session_broken, r < 0 ? -r : 0,
		"what keeps the session's processes has ended");
}

/* One message of a blocking socket: sync_recv() alone would not wait. 1, 0, or -errno. */
static int receive(int sock, int timeout_ms, struct sync_msg *msg, int *fd)
{
	struct pollfd wait = { .fd = sock, .events = POLLIN };
	int r;
	do
		r = poll(&wait, 1, timeout_ms);
	while (r < 0 && errno == EINTR);
	if (r <= 0)
		return r < 0 ? -errno : -EAGAIN;
	return sync_recv(sock, msg, fd);
}

/* Everything that the reaper needs, put into our end before anybody has the other. 0 or -errno. */
static int send_order(const struct plan *plan, const struct box *box, const struct child *child)
{
	AUTO_FD order = order_write(plan);
	if (order < 0)
		return order;
	int fds[JOIN_COUNT] = { [JOIN_ORDER] = order,
		[JOIN_STATUS] = child->status_fd,
		[JOIN_STDIN] = child->stdin_fd,
		[JOIN_STDOUT] = child->stdout_fd,
		[JOIN_STDERR] = child->stderr_fd };
	return sync_send_many(box->setup_fd, SYNC_TREES, fds, JOIN_COUNT);
}

/* The layers' directories, and those of the box's groups, which are the same as our plan's or none.
 */
static int take_trees(const struct plan *plan, struct box *box, size_t groups, struct err *err)
{
	int fds[PLAN_LAYERS_MAX + PLAN_CGROUPS_MAX];
	size_t count = plan->layer_count + groups;
	if (groups > PLAN_CGROUPS_MAX)
		return lost(err, -EPROTO);
	int r = count ? sync_recv_many(box->keeper_fd, SYNC_TREES, fds, count) : 0;
	if (r < 0)
		return lost(err, r);
	memcpy(box->layers, fds, plan->layer_count * sizeof *fds);
	box->layer_count = plan->layer_count;
	for (size_t i = 0; i < groups; i++)
		box->cgroup.dir[i] = fds[plan->layer_count + i];
	if (groups && groups == plan->cgroup.count && plan->cgroup.kind != CGROUP_NONE)
		box->cgroup.plan = &plan->cgroup;
	return 0;
}

/* Have the keeper hand the other end to init; it answers, and sends the layers' directories. */
static int ask(const struct plan *plan, struct box *box, const struct child *child, struct err *err)
{
	struct sync_msg msg = { .magic = SYNC_MAGIC, .kind = SYNC_JOIN };
	int fd = -1;
	int r = sync_send(box->keeper_fd, &msg, child->setup_fd);
	if (r == 0)
		r = receive(box->keeper_fd, REAPER_MAX_MS, &msg, &fd);
	if (r != 1 || msg.kind != SYNC_ANSWER) {
		fd_close(&fd);
		return lost(err, r == 1 ? -EPROTO : r);
	}
	if (msg.answer < 0)
		return err_set(err, ERR_session_busy, -msg.answer,
			"what keeps the session's processes takes no more commands: %s",
			strerror(-msg.answer));
	return take_trees(plan, box, (size_t)msg.answer, err);
}

/* The number of the process, as /proc of this process shows it; 0: not to be had, -1: it has ended.
 */
static pid_t number_of(int pidfd)
{
	char path[40] = "/proc/self/fdinfo/", digits[12], text[512];
	size_t at = strlen(path), count = 0;
	for (int n = pidfd; count == 0 || n > 0; n /= 10)
		digits[count++] = (char)('0' + n % 10);
	while (count > 0)
		path[at++] = digits[--count];
	path[at] = 0;
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (len <= 0)
		return 0;
	text[len] = 0;
	const char *line = strstr(text, "\nPid:\t");
	pid_t pid = 0;
	if (line && line[strlen("\nPid:\t")] == '-')
		return -1;
	for (line = line ? line + strlen("\nPid:\t") : ""; *line >= '0' && *line <= '9'; line++)
		pid = pid * 10 + (*line - '0');
	return pid;
}

/* Init let go of the other end without a word: it could make no process, or has ended. */
static int refused(const struct box *box, struct err *err)
{
	struct pollfd keeper = { .fd = box->keeper_fd, .events = POLLIN };
	if (poll(&keeper, 1, 1000) != 0)
		return lost(err, 0);
	err_set(err, ERR_no_resources, EAGAIN,
		"no process can be made in the session's box for the command");
	return err_hint_set(err, "what earlier commands left may use up limits.pids or "
				 "limits.memory; a signal to an "
				 "agentbox-hold process ends what one of them left");
}

static int await_reaper(const struct plan *plan, struct box *box, struct err *err)
{
	struct sync_msg msg;
	int fd = -1;
	int r = receive(box->setup_fd, REAPER_MAX_MS, &msg, &fd);
	if (r == 1 && msg.kind == SYNC_FAILED) {
		*err = msg.err;
		box_explain_failure(plan, err);
		return -1;
	}
	if (r == 0)
		return refused(box, err);
	if (r != 1 || msg.kind != SYNC_JOINED) {
		fd_close(&fd);
		return lost(err, r == 1 ? -EPROTO : r);
	}
	box->pidfd = fd;
	pid_t pid = number_of(fd);
	/* Of another process namespace: nothing of what it does could be looked at. */
	if (pid == 0)
		return lost(err, -ESRCH);
	/* What is over already is looked at no more. */
	box->pid = pid > 0 ? pid : 0;
	return 0;
}

static int non_blocking(int fd)
{
	return fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int join(const struct plan *plan, struct box *box, struct child *child, struct err *err)
{
	int r = spawn_open(plan, box, child);
	if (r == 0)
		r = send_order(plan, box, child);
	if (r < 0) {
		fail(err, r == -E2BIG ? ERR_exec_failed : ERR_no_resources, r, plan->argv[0]);
		box_explain_failure(plan, err);
		return -1;
	}
	r = ask(plan, box, child, err);
	/* From here on only init and the reaper have the other ends: theirs is the end of file. */
	spawn_close(child);
	if (r == 0)
		r = await_reaper(plan, box, err);
	if (r == 0 && (non_blocking(box->setup_fd) < 0 || non_blocking(box->status_fd) < 0))
		r = fail(err, ERR_no_resources, -EBADF, "socket");
	return r;
}

void box_leave(struct box *box)
{
	for (size_t i = 0; i < PLAN_CGROUPS_MAX; i++)
		fd_close(&box->cgroup.dir[i]);
	box->cgroup.plan = NULL;
}

int box_join(const struct plan *plan, int keeper, struct box *ret_box, struct err *err)
{
	struct box box;
	box_init(&box);
	box.joined = true;
	box.keeper_fd = keeper;
	struct child child = { .plan = plan,
		.joined = true,
		.setup_fd = -1,
		.status_fd = -1,
		.stdin_fd = -1,
		.stdout_fd = -1,
		.stderr_fd = -1 };
	if (join(plan, &box, &child, err) < 0) {
		spawn_close(&child);
		box_leave(&box);
		box_close(&box); /* and with our end of status its processes, if there are any */
		return -1;
	}
	*ret_box = box;
	return 0;
}
