/*
 * Stage cgroup: init enters the box's control groups, which the supervisor makes. And what the box
 * sees of them.
 */
#define _GNU_SOURCE
#include "box/child.h"
#include "base/fd.h"
#include "base/sys.h"
#include "box/sync.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define TREE_ATTR                                                                                  \
	(SYS_MOUNT_ATTR_RDONLY | SYS_MOUNT_ATTR_NOSUID | SYS_MOUNT_ATTR_NODEV |                    \
		SYS_MOUNT_ATTR_NOEXEC)

/* Of a cgroup namespace that cannot be made. */
static enum err_code code_of(int errnum)
{
	return errnum == ENOSPC || errnum == EUSERS || errnum == ENOMEM ? ERR_no_resources
									: ERR_cgroup_unavailable;
}

/*
 * The write is allowed by the rights of who opened the file, which is the supervisor; "0" is
 * whoever writes, and moving that one alone does not stop the whole host.
 */
static int enter(int tasks, struct file_id *ret_members)
{
	struct stat st;
	if (fstat(tasks, &st) < 0)
		return -errno;
	ssize_t n = write(tasks, "0", 1);
	if (n != 1)
		return n < 0 ? -errno : -EIO;
	*ret_members = (struct file_id){ st.st_dev, st.st_ino };
	return 0;
}

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
	for (size_t i = 0; i < plan->count; i++) {
		if (r == 0) {
			place.group = i;
			r = enter(tasks[i], &child->members[i]);
		}
		close(tasks[i]);
	}
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

/* Each word of "cpu,cpuacct" as a flag. */
static int set_flags(int fs, const char *words)
{
	int r = 0;
	while (r == 0 && *words) {
		char word[32];
		size_t len = 0;
		while (words[len] && words[len] != ',')
			len++;
		if (len == 0 || len >= sizeof word)
			return -EINVAL;
		memcpy(word, words, len);
		word[len] = 0;
		r = sys_fsconfig(fs, SYS_FSCONFIG_SET_FLAG, word, NULL);
		words += len + (words[len] == ',');
	}
	return r;
}

/*
 * A new mount of the hierarchy: its root is that of init's cgroup namespace. Of a v1 hierarchy
 * exactly its controllers must be named; the host's other options stay as they are.
 */
static int new_mount(const char *controllers)
{
	int fs = sys_fsopen(controllers ? "cgroup" : "cgroup2");
	if (fs < 0)
		return fs;
	return mount_finish(fs, controllers ? set_flags(fs, controllers) : 0, TREE_ATTR);
}

/* "PARENT/NAME". 0 or -ENAMETOOLONG. */
static int group_path(const struct plan_cgroup *plan, size_t group, char ret_path[PATH_MAX])
{
	size_t len = strlen(plan->parents[group]), more = strlen(plan->name) + 1;
	if (len >= PATH_MAX || more >= PATH_MAX - len)
		return -ENAMETOOLONG;
	memcpy(ret_path, plan->parents[group], len);
	ret_path[len] = '/';
	memcpy(ret_path + len + 1, plan->name, more);
	return 0;
}

/*
 * The group's directory from the host's mount: a superblock of the box's own would have to be made
 * and taken apart again. In init's cgroup namespace it looks the same, a root. The way there is
 * walked in init's own mount namespace, so what was found is held against the file that init
 * entered by (v1) or that its maker saw (v2).
 */
static int host_mount(const struct child *child, size_t group)
{
	const struct plan_cgroup *plan = &child->plan->cgroup;
	const struct file_id *members = &child->members[group];
	char path[PATH_MAX];
	int r = group_path(plan, group, path);
	if (r < 0)
		return r;
	int tree = sys_open_tree(
		AT_FDCWD, path, SYS_OPEN_TREE_CLONE | SYS_OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	if (tree < 0)
		return tree;
	struct stat st;
	if (fstatat(tree, plan->kind == CGROUP_V1 ? "tasks" : "cgroup.procs", &st,
		    AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	else if (st.st_dev != members->dev || st.st_ino != members->ino)
		r = -ESTALE;
	struct sys_mount_attr attr = { .attr_set = TREE_ATTR, .propagation = MS_PRIVATE };
	if (r == 0)
		r = sys_mount_setattr(tree, "", AT_EMPTY_PATH, &attr);
	if (r == 0)
		return tree;
	close(tree);
	return r;
}

int cgroup_tree(const struct child *child, const char *controllers)
{
	const struct plan_cgroup *plan = &child->plan->cgroup;
	size_t group = 0;
	while (controllers && group < plan->count &&
		strcmp(plan->controllers[group], controllers) != 0)
		group++;
	if (group >= plan->count)
		return -EINVAL;
	int tree = host_mount(child, group);
	/* Out of reach for the box's id, or a mount that may not be copied. */
	return tree == -EACCES || tree == -EINVAL ? new_mount(controllers) : tree;
}
