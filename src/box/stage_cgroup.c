/* Stage cgroup: init enters the box's control groups, which the supervisor has made. */
#define _GNU_SOURCE
#include "box/child.h"
#include "base/sys.h"

#include <sched.h>

/* The first use of a right in the new namespaces, which some hosts take away: userns_denied. */
static enum err_code code_of(int errnum)
{
	if (errnum == EPERM || errnum == EACCES || errnum == ENOSPC)
		return ERR_userns_denied;
	return errnum == ENOMEM ? ERR_no_resources : ERR_cgroup_unavailable;
}

/*
 * needs: nothing; inherit closes what is written to here
 * leaves: init, and so everything in the box, is counted in the plan's groups; they are the root of
 *	its cgroup namespace
 * must not: start a process before, which would not be counted
 *
 * v2 is entered by clone3 itself. The write is allowed by the rights of who opened the file, which
 * is the supervisor; "0" is whoever writes, and moving that one alone does not stop the whole host.
 */
int stage_cgroup(struct child *child, struct err *err)
{
	const struct plan_cgroup *plan = &child->plan->cgroup;
	if (plan->kind == CGROUP_NONE)
		return 0;
	for (size_t i = 0; plan->kind == CGROUP_V1 && i < plan->count; i++) {
		if (write(child->cgroup->tasks[i], "0", 1) == 1)
			continue;
		int errnum = errno;
		struct cgroup_place place = {
			.plan = plan, .group = i, .name = plan->name, .file = "tasks"
		};
		return cgroup_fail(&place,
			errnum == ENOMEM ? ERR_no_resources : ERR_cgroup_unavailable, errnum, err);
	}
	/* Only now: a cgroup namespace's root is where its maker is at that moment. */
	if ((child->plan->namespaces & CLONE_NEWCGROUP) && unshare(CLONE_NEWCGROUP) < 0)
		return child_fail(err, code_of(errno), errno, "cgroup namespace");
	return 0;
}
