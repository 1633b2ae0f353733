/* Stage cgroup: init enters the box's control groups, which the supervisor makes. */
#define _GNU_SOURCE
#include "box/child.h"
#include "base/fd.h"
#include "base/sys.h"
#include "box/sync.h"

#include <sched.h>

/* The first use of a right in the new namespaces, which some hosts take away: userns_denied. */
static enum err_code code_of(int errnum)
{
	if (errnum == EPERM || errnum == EACCES || errnum == ENOSPC)
		return ERR_userns_denied;
	return errnum == ENOMEM ? ERR_no_resources : ERR_cgroup_unavailable;
}

/*
 * The write is allowed by the rights of who opened the file, which is the supervisor; "0" is
 * whoever writes, and moving that one alone does not stop the whole host.
 */
static int enter_v1(struct child *child, struct err *err)
{
	const struct plan_cgroup *plan = &child->plan->cgroup;
	int tasks[PLAN_CGROUPS_MAX];
	int r = trees_wait(child); /* which come before */
	if (r == 0)
		r = sync_recv_many(child->setup_fd, SYNC_GROUPS, tasks, plan->count);
	/* Without the groups there is no box. The supervisor knows what became of them. */
	if (r < 0)
		return child_fail(err, ERR_cgroup_unavailable, r, "control groups");
	struct cgroup_place place = { .plan = plan, .name = plan->name, .file = "tasks" };
	for (; r == 0 && place.group < plan->count; place.group += r == 0)
		r = write(tasks[place.group], "0", 1) == 1 ? 0 : -errno;
	for (size_t i = 0; i < plan->count; i++)
		fd_close(&tasks[i]);
	enum err_code code = r == -ENOMEM ? ERR_no_resources : ERR_cgroup_unavailable;
	return r < 0 ? cgroup_fail(&place, code, r, err) : 0;
}

/*
 * needs: inherit
 * leaves: init, and so every process that it starts from here on, is counted in the plan's groups;
 *	they are the root of its cgroup namespace
 * must not: leave a process outside that lives on until the command runs
 *
 * v2 is entered by clone3 itself. Those of v1 the supervisor makes while init is at work, and they
 * are waited for as late as may be.
 */
int stage_cgroup(struct child *child, struct err *err)
{
	const struct plan_cgroup *plan = &child->plan->cgroup;
	if (plan->kind == CGROUP_NONE || child->in_groups)
		return 0;
	if (plan->kind == CGROUP_V1 && enter_v1(child, err) < 0)
		return -1;
	/* Only now: a cgroup namespace's root is where its maker is at that moment. */
	if ((child->plan->namespaces & CLONE_NEWCGROUP) && unshare(CLONE_NEWCGROUP) < 0)
		return child_fail(err, code_of(errno), errno, "cgroup namespace");
	child->in_groups = true;
	return 0;
}

void cgroup_enter(struct child *child)
{
	struct err err;
	if (stage_cgroup(child, &err) < 0)
		child_die(child, STAGE_cgroup, &err);
}
