/*
 * sources_copy: a tree on a file system that cannot be id-mapped, such as overlayfs, which the root
 * of a container mostly is. It is copied into memory by a child that has the owner's id and no
 * capability, and so sees what the owner sees; the copy becomes the box's. Without root nothing
 * here runs.
 */
#define _GNU_SOURCE
#include "box/child.h"
#include "base/fd.h"
#include "base/sys.h"
#include "workspace/tree.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Become the tree's owner for good, with no right beyond that. 0 or -errno. */
static int become(const struct plan_op *op)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };
	if (syscall(SYS_setgroups, 0, NULL) < 0 ||
		syscall(SYS_setresgid, op->group, op->group, op->group) < 0 ||
		syscall(SYS_setresuid, op->owner, op->owner, op->owner) < 0 ||
		syscall(SYS_capset, &header, none) < 0)
		return -errno;
	return 0;
}

static int copy_as(const struct plan_op *op, int source, int to, pid_t parent)
{
	struct tree_report report;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	int r = become(op);
	/* A change of ids takes the signal back. */
	if (r == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent))
		r = -ECANCELED;
	if (r < 0)
		return r;
	AUTO_FD from = openat(source, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return from < 0 ? -errno : tree_copy(from, to, TREE_ONE_FS, &report);
}

/* 0 or -errno, of the child. */
static int copy_in_child(const struct plan_op *op, int source, int to)
{
	int status;
	pid_t parent = getpid(), child = fork();
	if (child == 0)
		_exit(-copy_as(op, source, to, parent) & 0xff);
	if (child < 0)
		return -errno;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

int source_copy(const struct plan *plan, const struct plan_op *op, int source)
{
	struct stat st;
	if (fstat(source, &st) < 0)
		return -errno;
	/* Of the size that the copy may have in the box. */
	AUTO_FD tree = mount_new(
		"tmpfs", plan->root_options, SYS_MOUNT_ATTR_NOSUID | SYS_MOUNT_ATTR_NODEV);
	if (tree < 0)
		return tree;
	AUTO_FD to = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (to < 0 || fchown(to, op->owner, op->group) < 0)
		return -errno;
	int r = copy_in_child(op, source, to);
	const struct timespec times[2] = { st.st_atim, st.st_mtim };
	if (r == 0)
		r = tree_own(to, plan->outer_uid, plan->outer_gid);
	if (r == 0 && (fchmod(to, st.st_mode & 01777) < 0 || futimens(to, times) < 0))
		r = -errno;
	return r < 0 ? r : fd_steal(&tree);
}
