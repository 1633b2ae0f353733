/* Stage ruleset: what Landlock will hold, said once the box's file system is there. */
#define _GNU_SOURCE
#include "box/child.h"
#include "base/sys.h"

#include <fcntl.h>

static int add_rule(int ruleset, const struct plan_rule *rule, struct err *err)
{
	struct sys_landlock_path_beneath_attr beneath = { .allowed_access = rule->access };
	/* By the path that the command will use; the root itself is not covered by the host's,
	 * which may still lie on top of it. */
	beneath.parent_fd = openat(AT_FDCWD, rule->path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	if (beneath.parent_fd < 0 && rule->optional && errno == ENOENT)
		return 0;
	if (beneath.parent_fd < 0)
		return child_fail(err, ERR_mount_failed, errno, rule->path);
	int r = sys_landlock_add_rule(ruleset, SYS_LANDLOCK_RULE_PATH_BENEATH, &beneath);
	close(beneath.parent_fd);
	return r < 0 ? child_fail(err, ERR_landlock_insufficient, r, rule->path) : 0;
}

/*
 * needs: pivot
 * leaves: a ruleset of what the plan's rules allow, which the payload puts itself under; init never
 *	does
 */
int stage_ruleset(struct child *child, struct err *err)
{
	const struct plan *plan = child->plan;
	if (plan->landlock_abi == 0)
		return 0;
	struct sys_landlock_ruleset_attr attr = {
		.handled_access_fs = plan->landlock_fs,
		.scoped = plan->landlock_scoped,
	};
	/* Older kernels know a shorter struct. */
	size_t size = plan->landlock_scoped ? sizeof attr : sizeof attr.handled_access_fs;
	int ruleset = sys_landlock_create_ruleset(&attr, size, 0);
	if (ruleset < 0)
		return child_fail(
			err, ERR_landlock_insufficient, ruleset, "landlock_create_ruleset");
	child->ruleset_fd = ruleset;
	for (size_t i = 0; i < plan->rule_count; i++)
		if (add_rule(ruleset, &plan->rules[i], err) < 0)
			return -1;
	return 0;
}
