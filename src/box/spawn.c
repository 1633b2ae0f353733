/*
 * spawn: the supervisor's side of making a box: pipes, sockets, clone3. It returns as soon as init
 * exists; what becomes of it arrives over the sockets of sync.h.
 */
#define _GNU_SOURCE
#include "box/box.h"
#include "base/fd.h"
#include "base/sys.h"
#include "box/child.h"
#include "box/sync.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

void box_init(struct box *box)
{
	*box = (struct box){ .pidfd = -1,
		.setup_fd = -1,
		.status_fd = -1,
		.stdin_fd = -1,
		.stdout_fd = -1,
		.stderr_fd = -1,
		.keeper_fd = -1 };
	cgroup_init(&box->cgroup);
}

void box_kill(struct box *box)
{
	/* A reaper ends its command's processes itself. Killed, it would take the box along: so
	 * only one that does not heed the end of our socket is. */
	if (box->joined && box->kills++ == 0 && box->status_fd >= 0) {
		(void)shutdown(box->status_fd, SHUT_WR);
		return;
	}
	if (box->pidfd >= 0)
		(void)sys_pidfd_send_signal(box->pidfd, SIGKILL);
}

void box_close(struct box *box)
{
	fd_close(&box->pidfd);
	fd_close(&box->keeper_fd);
	fd_close(&box->setup_fd);
	fd_close(&box->status_fd);
	fd_close(&box->stdin_fd);
	fd_close(&box->stdout_fd);
	fd_close(&box->stderr_fd);
	for (size_t i = 0; i < box->layer_count; i++)
		fd_close(&box->layers[i]);
	box->layer_count = 0;
}

/* One pipe; `ours` gets the supervisor's end, made non-blocking, `theirs` the command's. */
static int one_pipe(int *ours, int *theirs, bool we_write)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	*ours = ends[we_write ? 1 : 0];
	*theirs = ends[we_write ? 0 : 1];
	return fcntl(*ours, F_SETFL, O_NONBLOCK | (we_write ? O_WRONLY : O_RDONLY)) < 0 ? -errno
											: 0;
}

static int open_pipes(const struct plan *plan, struct box *box, struct child *child)
{
	if (plan->tty || (plan->keep && !child->joined))
		return 0;
	int r = one_pipe(&box->stdin_fd, &child->stdin_fd, true);
	if (r == 0)
		r = one_pipe(&box->stdout_fd, &child->stdout_fd, false);
	if (r == 0)
		r = one_pipe(&box->stderr_fd, &child->stderr_fd, false);
	/* Without -i the command reads end of file: a pipe that nobody can write. */
	if (r == 0 && !plan->pass_stdin)
		fd_close(&box->stdin_fd);
	return r;
}

static int open_sockets(struct box *box, struct child *child)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	box->setup_fd = pair[0];
	child->setup_fd = pair[1];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	box->status_fd = pair[0];
	child->status_fd = pair[1];
	return 0;
}

int spawn_open(const struct plan *plan, struct box *box, struct child *child)
{
	int r = open_sockets(box, child);
	if (r == 0)
		r = open_pipes(plan, box, child);
	/* As root the pipes become the box's, so that it can open them again by /dev/stderr and the
	 * like. */
	int theirs[] = { child->stdin_fd, child->stdout_fd, child->stderr_fd };
	for (size_t i = 0; plan->as_root && r == 0 && i < sizeof theirs / sizeof *theirs; i++)
		if (theirs[i] >= 0 && fchown(theirs[i], plan->outer_uid, plan->outer_gid) < 0)
			r = -errno;
	return r;
}

void spawn_close(struct child *child)
{
	fd_close(&child->setup_fd);
	fd_close(&child->status_fd);
	fd_close(&child->stdin_fd);
	fd_close(&child->stdout_fd);
	fd_close(&child->stderr_fd);
}

/*
 * With the box's id as the effective one there is no right to put anybody into a control group of
 * root's, and CLONE_INTO_CGROUP asks for one as a write to the group's cgroup.procs would. This one
 * right is enough. It ends with the change back; init has none in the host's user namespace.
 */
static int may_enter_cgroup(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	data[CAP_TO_INDEX(CAP_DAC_OVERRIDE)].effective |= CAP_TO_MASK(CAP_DAC_OVERRIDE);
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

static int clone_init(const struct plan *plan, struct box *box, struct child *child)
{
	int pidfd = -1;
	/* The network namespace is made beside the others: stage_network.c. */
	uint64_t later = plan->loopback_up ? CLONE_NEWNET : 0;
	/* The cgroup namespace is made by init once it is in its group: stage_cgroup. */
	if (plan->cgroup.kind != CGROUP_NONE)
		later |= CLONE_NEWCGROUP;
	struct sys_clone_args args = {
		.flags = (plan->namespaces & ~later) | SYS_CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	if (plan->cgroup.kind == CGROUP_V2) {
		args.flags |= SYS_CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)box->cgroup.dir[0];
		int r = plan->as_root ? may_enter_cgroup() : 0;
		if (r < 0)
			return r;
	}
	/*
	 * A plain copy, not CLONE_VM: init lives on beside the supervisor, in reach of the command,
	 * and must not share its memory.
	 */
	long pid = syscall(SYS_clone3, &args, sizeof args);
	if (pid == 0)
		init_main(child); /* which closes the supervisor's ends with all else: inherit */
	if (pid < 0)
		return -errno;
	box->pid = (pid_t)pid;
	box->pidfd = pidfd;
	return 0;
}

/* A box that nobody will have. */
static void end(struct box *box)
{
	box_kill(box);
	while (waitpid(box->pid, NULL, 0) < 0 && errno == EINTR)
		;
	box_close(box);
}

/* As root the box's user namespace must belong to the id that owns nothing: it is made as that id.
 */
static int clone_as(
	const struct plan *plan, struct box *box, struct child *child, struct sources *sources)
{
	if (!plan->as_root)
		return clone_init(plan, box, child);
	struct sources_self self;
	int r = sources_become(plan, &self);
	if (r < 0)
		return r;
	r = clone_init(plan, box, child);
	if (r == 0)
		sources_map(plan, sources);
	int back = sources_return(&self);
	if (r == 0 && back < 0) {
		end(box);
		r = back;
	}
	return r;
}

static enum err_code clone_code(const struct plan *plan, int r)
{
	if (plan->cgroup.kind == CGROUP_V2)
		switch (-r) {
		case EACCES:
		case EBUSY:
		case ENOENT: /* removed by somebody else */
		case ENODEV:
		case EOPNOTSUPP: /* of the type "domain invalid" */
			return ERR_cgroup_unavailable;
		}
	switch (-r) {
	case EPERM:
	case EACCES:
	case ENOSYS:
	case EINVAL:
	case EUSERS:
	case ENOSPC: /* user.max_*_namespaces */
		return ERR_userns_denied;
	}
	return ERR_no_resources;
}

/* What clone_as() failed with; returns -1. */
static int clone_failed(const struct plan *plan, int r, struct err *err)
{
	enum err_code code = clone_code(plan, r);
	if (code == ERR_cgroup_unavailable) {
		struct cgroup_place place = { .plan = &plan->cgroup, .name = plan->cgroup.name };
		cgroup_fail(&place, code, r, err);
		err->stage = STAGE_cgroup;
		return -1;
	}
	child_fail(err, code, r, code == ERR_userns_denied ? "clone3" : "process");
	err->stage = STAGE_spawn;
	return -1;
}

/* The group that init is born in, and what init knows it by: its descriptor holds the lock. */
static int make_v2(const struct plan *plan, struct box *box, struct child *child, struct err *err)
{
	struct cgroup_place place = {
		.plan = &plan->cgroup, .name = plan->cgroup.name, .file = "cgroup.procs"
	};
	struct stat st;
	if (cgroup_make(plan, &box->cgroup, err) < 0)
		return -1;
	if (fstatat(box->cgroup.dir[0], place.file, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return cgroup_fail(&place, ERR_cgroup_unavailable, errno, err);
	child->members[0] = (struct file_id){ st.st_dev, st.st_ino };
	return 0;
}

/* All that comes before the granted trees; on failure *err is raw and parts may be left in *box. */
static int start(const struct plan *plan, struct box *box, struct child *child,
	struct sources *sources, struct err *err)
{
	int r = spawn_open(plan, box, child);
	if (r < 0) {
		child_fail(err, ERR_no_resources, r, "pipe or socket");
		err->stage = STAGE_spawn;
		return -1;
	}
	if (plan->cgroup.kind == CGROUP_V2 && make_v2(plan, box, child, err) < 0) {
		err->stage = STAGE_cgroup;
		return -1;
	}
	r = clone_as(plan, box, child, sources);
	return r < 0 ? clone_failed(plan, r, err) : 0;
}

/* Nothing of it is left; returns -1. */
static int give_up(const struct plan *plan, struct box *box, struct err *err)
{
	box_close(box);
	(void)cgroup_remove(&box->cgroup);
	box_explain_failure(plan, err);
	return -1;
}

int box_spawn(const struct plan *plan, struct box *ret_box, struct err *err)
{
	struct box box;
	box_init(&box);
	struct child child = { .plan = plan,
		.setup_fd = -1,
		.status_fd = -1,
		.stdin_fd = -1,
		.stdout_fd = -1,
		.stderr_fd = -1,
		.root_fd = -1,
		.tty_fd = -1,
		.ruleset_fd = -1 };
	struct sources sources;
	sources.count = 0;
	int r = start(plan, &box, &child, &sources, err);
	spawn_close(&child);
	if (r == 0) {
		r = sources_give(plan, &sources, box.setup_fd, err);
		if (r < 0)
			end(&box);
	}
	if (r < 0)
		return give_up(plan, &box, err);
	*ret_box = box;
	return 0;
}

int box_groups(const struct plan *plan, struct box *box, struct err *err)
{
	if (plan->cgroup.kind != CGROUP_V1)
		return 0;
	int r = cgroup_make(plan, &box->cgroup, err);
	if (r == 0) {
		r = sync_send_many(
			box->setup_fd, SYNC_GROUPS, box->cgroup.tasks, plan->cgroup.count);
		for (size_t i = 0; i < PLAN_CGROUPS_MAX; i++)
			fd_close(&box->cgroup.tasks[i]);
		/* Init has ended: it has said why, or its end is the news. */
		if (r == -EPIPE || r == -ECONNRESET)
			r = 0;
		if (r < 0)
			child_fail(err, ERR_no_resources, r, "sendmsg");
	}
	if (r == 0)
		return 0;
	err->stage = STAGE_cgroup;
	end(box);
	return give_up(plan, box, err);
}
