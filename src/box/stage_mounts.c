/*
 * Stages mounts and pivot: the box's file system, put together from the plan's operations beside
 * the host's, which then is let go. Nothing is mounted on the host: all of this happens in the
 * box's own mount namespace.
 */
#define _GNU_SOURCE
#include "box/child.h"
#include "base/sys.h"
#include "box/sync.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

/* An unreadable file and directory of the box's own root, which masks show. */
#define MASK_FILE "run/agentbox/hidden"
#define MASK_DIR  "run/agentbox/hidden.d"

int mount_finish(int fs, int r, unsigned attr)
{
	if (r == 0)
		r = sys_fsconfig(fs, SYS_FSCONFIG_CREATE, NULL, NULL);
	if (r == 0)
		r = sys_fsmount(fs, attr);
	close(fs);
	return r;
}

int mount_new(const char *type, const struct plan_option *options, unsigned attr)
{
	int fs = sys_fsopen(type);
	if (fs < 0)
		return fs;
	int r = 0;
	for (; r == 0 && options && options->key; options++)
		r = sys_fsconfig(fs, SYS_FSCONFIG_SET_STRING, options->key, options->value);
	return mount_finish(fs, r, attr);
}

/* Attach a detached tree at a path of the box; closes it. */
static int attach(const struct child *child, const struct plan_op *op, int tree)
{
	int r;
	if (op->flags & OPF_UNDER_GRANT) {
		/*
		 * Below a tree that others may write, no component may be a link: the target is
		 * opened once without following any, and mounted on by descriptor.
		 */
		uint64_t how = O_PATH | O_CLOEXEC | O_NOFOLLOW;
		uint64_t resolve = SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_MAGICLINKS;
		if (!(op->flags & OPF_LINK_ITSELF))
			resolve |= SYS_RESOLVE_NO_SYMLINKS;
		int target = sys_openat2(child->root_fd, op->target, how, resolve);
		r = target;
		if (target >= 0) {
			r = sys_move_mount(tree, "", target, "",
				SYS_MOVE_MOUNT_F_EMPTY | SYS_MOVE_MOUNT_T_EMPTY);
			close(target);
		}
	} else {
		r = sys_move_mount(tree, "", child->root_fd, op->target, SYS_MOVE_MOUNT_F_EMPTY);
	}
	close(tree);
	return r;
}

static unsigned clone_flags(const struct plan_op *op)
{
	return SYS_OPEN_TREE_CLONE | SYS_OPEN_TREE_CLOEXEC |
	       (op->flags & OPF_RECURSIVE ? SYS_AT_RECURSIVE : 0) | AT_SYMLINK_NOFOLLOW;
}

/* Attributes of one mount; `after` the seal it must be said what is not read-only. */
static int dress(int tree, const struct plan_op *op)
{
	struct sys_mount_attr attr = {
		.attr_set = SYS_MOUNT_ATTR_NOSUID,
		.propagation = MS_PRIVATE,
	};
	if (!(op->flags & OPF_DEVICE))
		attr.attr_set |= SYS_MOUNT_ATTR_NODEV;
	if (op->flags & OPF_NOEXEC)
		attr.attr_set |= SYS_MOUNT_ATTR_NOEXEC;
	if (op->flags & OPF_READONLY)
		attr.attr_set |= SYS_MOUNT_ATTR_RDONLY;
	else if (op->kind == OP_INSIDE && !(op->flags & OPF_UNDER_GRANT))
		attr.attr_clr |= SYS_MOUNT_ATTR_RDONLY; /* the seal's, on the box's own tmpfs */
	unsigned flags = AT_EMPTY_PATH | (op->flags & OPF_RECURSIVE ? SYS_AT_RECURSIVE : 0);
	return sys_mount_setattr(tree, "", flags, &attr);
}

/* Takes over the tree. */
static int dress_and_attach(const struct child *child, const struct plan_op *op, int tree)
{
	int r = dress(tree, op);
	if (r < 0) {
		close(tree);
		return r;
	}
	return attach(child, op, tree);
}

int trees_wait(struct child *child)
{
	size_t count = sources_count(child->plan);
	if (child->have_trees || count == 0)
		return 0;
	int r = sync_recv_many(child->setup_fd, SYNC_TREES, child->trees, count);
	child->have_trees = r == 0;
	return r;
}

/* A tree that the supervisor has opened; all of them are waited for at the first. */
static int given_tree(struct child *child, const struct plan_op *op)
{
	int r = trees_wait(child);
	return r < 0 ? r : child->trees[op->tree];
}

/* What an operation shows of the host, detached and not dressed. A descriptor or -errno. */
static int host_tree(struct child *child, const struct plan_op *op)
{
	int tree;
	if (child->plan->as_root && (op->flags & OPF_GRANT)) {
		tree = given_tree(child, op);
	} else if (op->flags & OPF_GRANT) {
		/* Opened once, no component a link; the tree is cloned from that very descriptor.
		 */
		int source = sys_openat2(AT_FDCWD, op->source, O_PATH | O_CLOEXEC | O_NOFOLLOW,
			SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS);
		if (source < 0)
			return source;
		tree = sys_open_tree(source, "", clone_flags(op) | AT_EMPTY_PATH);
		close(source);
	} else {
		tree = sys_open_tree(AT_FDCWD, op->source, clone_flags(op));
	}
	return tree;
}

static int show_layer(struct child *child, const struct plan_op *op)
{
	int tree = host_tree(child, op);
	if (tree >= 0)
		tree = layer_mount(child, &child->plan->layers[op->layer], tree);
	return tree < 0 ? tree : dress_and_attach(child, op, tree);
}

static int bind_host(struct child *child, const struct plan_op *op)
{
	int tree = host_tree(child, op);
	if (tree < 0)
		return tree;
	/* System trees before the seal are dressed by it, all at once; device nodes need no dress.
	 */
	return op->flags & (OPF_GRANT | OPF_READONLY) ? dress_and_attach(child, op, tree)
						      : attach(child, op, tree);
}

static int show_inside(const struct child *child, const struct plan_op *op)
{
	int tree;
	if (op->flags & OPF_UNDER_GRANT) {
		uint64_t resolve = SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_MAGICLINKS;
		if (!(op->flags & OPF_LINK_ITSELF))
			resolve |= SYS_RESOLVE_NO_SYMLINKS;
		int source = sys_openat2(
			child->root_fd, op->source, O_PATH | O_CLOEXEC | O_NOFOLLOW, resolve);
		if (source < 0)
			return source;
		tree = sys_open_tree(source, "", clone_flags(op) | AT_EMPTY_PATH);
		close(source);
	} else {
		tree = sys_open_tree(child->root_fd, op->source, clone_flags(op));
	}
	if (tree < 0)
		return tree;
	return dress_and_attach(child, op, tree);
}

static int show_cgroup(struct child *child, const struct plan_op *op)
{
	cgroup_enter(child);
	int tree = cgroup_tree(child, op->source);
	return tree < 0 ? tree : attach(child, op, tree);
}

static int mask(const struct child *child, const struct plan_op *op)
{
	const char *cover = S_ISDIR(op->mode) ? MASK_DIR : MASK_FILE;
	int tree =
		sys_open_tree(child->root_fd, cover, SYS_OPEN_TREE_CLONE | SYS_OPEN_TREE_CLOEXEC);
	if (tree < 0)
		return tree;
	return dress_and_attach(child, op, tree);
}

/*
 * A mount point in a directory that an earlier command had, which may have put a link anywhere in
 * it: the parent is opened without following any. What is there already will do, if it can be
 * mounted on.
 */
static int make_under(const struct child *child, const struct plan_op *op)
{
	char parent[PATH_MAX];
	const char *name = strrchr(op->target, '/') + 1;
	size_t len = (size_t)(name - 1 - op->target);
	if (len >= sizeof parent)
		return -ENAMETOOLONG;
	memcpy(parent, op->target, len);
	parent[len] = 0;
	int at = sys_openat2(child->root_fd, parent, O_PATH | O_DIRECTORY | O_CLOEXEC,
		SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS);
	if (at < 0)
		return at;
	int r = op->kind == OP_DIR ? mkdirat(at, name, op->mode & 07777)
				   : mknodat(at, name, S_IFREG | (op->mode & 07777), 0);
	r = r < 0 && errno != EEXIST ? -errno : 0;
	close(at);
	return r;
}

static int make_file(const struct child *child, const struct plan_op *op)
{
	if (op->flags & OPF_UNDER_GRANT)
		return make_under(child, op);
	/* Mount points are empty: one call makes them. */
	if (op->len == 0)
		return mknodat(child->root_fd, op->target, S_IFREG | (op->mode & 07777), 0) < 0
			       ? -errno
			       : 0;
	int fd = openat(child->root_fd, op->target,
		O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, op->mode & 07777);
	if (fd < 0)
		return -errno;
	int r = 0;
	for (size_t done = 0; r == 0 && done < op->len;) {
		ssize_t n = write(fd, op->data + done, op->len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			r = -errno;
		else
			done += (size_t)n;
	}
	close(fd);
	return r;
}

/* From here on everything attached so far is read-only, without set-id bits and devices. */
static int seal(const struct child *child)
{
	struct sys_mount_attr attr = {
		.attr_set = SYS_MOUNT_ATTR_RDONLY | SYS_MOUNT_ATTR_NOSUID | SYS_MOUNT_ATTR_NODEV,
		.propagation = MS_PRIVATE,
	};
	return sys_mount_setattr(child->root_fd, "", AT_EMPTY_PATH | SYS_AT_RECURSIVE, &attr);
}

static int new_fs(const struct child *child, const struct plan_op *op)
{
	static const struct plan_option pts[] = { { "mode", "0620" }, { "ptmxmode", "0666" },
		{ NULL, NULL } };
	bool proc = op->kind == OP_PROC;
	int m = mount_new(proc ? "proc" : "devpts", proc ? NULL : pts,
		SYS_MOUNT_ATTR_NOSUID | SYS_MOUNT_ATTR_NOEXEC | (proc ? SYS_MOUNT_ATTR_NODEV : 0));
	return m < 0 ? m : attach(child, op, m);
}

static int run_op(struct child *child, const struct plan_op *op)
{
	switch (op->kind) {
	case OP_DIR:
		if (op->flags & OPF_UNDER_GRANT)
			return make_under(child, op);
		if (mkdirat(child->root_fd, op->target, op->mode & 07777) < 0)
			return errno == EEXIST ? 0 : -errno;
		return 0;
	case OP_LINK:
		return symlinkat(op->source, child->root_fd, op->target) < 0 ? -errno : 0;
	case OP_FILE:
		return make_file(child, op);
	case OP_BIND:
		return bind_host(child, op);
	case OP_LAYER:
		/* A copy of a tree is memory. */
		cgroup_enter(child);
		return show_layer(child, op);
	case OP_INSIDE:
		return show_inside(child, op);
	case OP_MASK:
		return mask(child, op);
	case OP_PROC:
	case OP_DEVPTS:
		return new_fs(child, op);
	case OP_CGROUP:
		return show_cgroup(child, op);
	case OP_SEAL:
		return seal(child);
	}
	return -EINVAL;
}

/* The error code of an operation that failed; no decision rests on it. */
static enum err_code code_of(const struct plan_op *op, int r)
{
	if (op->kind == OP_PROC)
		return ERR_proc_masked;
	if (op->kind == OP_LAYER && r != -ENOSPC && r != -ENOMEM && r != -ELOOP && r != -ENOENT)
		return ERR_overlay_unsupported;
	if (op->kind == OP_MASK && (r == -ENOENT || r == -ENOTDIR || r == -ELOOP))
		return ERR_sources_changed;
	if (r == -ENOSPC || r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return ERR_no_resources;
	if (plan_op_grants(op))
		return r == -ELOOP    ? ERR_grant_is_symlink
		       : r == -ENOENT ? ERR_grant_not_found
				      : ERR_mount_failed;
	return ERR_mount_failed;
}

/*
 * A mask whose target is gone hides what is not there; one whose target cannot even be reached with
 * init's rights hides what the command, with fewer, cannot reach either.
 */
static bool forgivable(const struct plan_op *op, int r)
{
	if (!(op->flags & OPF_OPTIONAL))
		return false;
	return r == -ENOENT || r == -ENOTDIR || (op->kind == OP_MASK && r == -EACCES);
}

/*
 * needs: ids (the file system belongs to them), a mount namespace
 * leaves: the plan's file system, attached over "/" (init still stands in the old one)
 * must not: follow a link that the command or another user could have made
 */
int stage_mounts(struct child *child, struct err *err)
{
	const struct plan *plan = child->plan;
	umask(0);
	child->root_fd = mount_new(
		"tmpfs", plan->root_options, SYS_MOUNT_ATTR_NOSUID | SYS_MOUNT_ATTR_NODEV);
	if (child->root_fd < 0)
		return child_fail(err,
			child->root_fd == -EPERM ? ERR_userns_denied : ERR_mount_failed,
			child->root_fd, "tmpfs");
	/* Older kernels attach only to mounts that are attached themselves; "/" is always there. */
	int r = sys_move_mount(child->root_fd, "", AT_FDCWD, "/", SYS_MOVE_MOUNT_F_EMPTY);
	if (r < 0)
		return child_fail(err, r == -EPERM ? ERR_userns_denied : ERR_mount_failed, r, "/");
	for (size_t i = 0; i < plan->op_count; i++) {
		const struct plan_op *op = &plan->ops[i];
		r = run_op(child, op);
		if (r < 0 && !forgivable(op, r)) {
			err->column = 0;
			child_fail(err, code_of(op, r), r, NULL);
			err->line = (int32_t)i +
				    1; /* box_explain_failure finds the operation again by this */
			return -1;
		}
	}
	return 0;
}

/*
 * needs: mounts
 * leaves: the new root is the root and the current directory; nothing of the old one is reachable
 */
int stage_pivot(struct child *child, struct err *err)
{
	if (fchdir(child->root_fd) < 0)
		return child_fail(err, ERR_mount_failed, errno, "fchdir");
	/* pivot_root(2), "pivot_root(".", ".")": the old root ends up on top of the new one. */
	int r = sys_pivot_root(".", ".");
	if (r < 0)
		return child_fail(err, ERR_mount_failed, r, "pivot_root");
	if (umount2(".", MNT_DETACH) < 0)
		return child_fail(err, ERR_mount_failed, errno, "umount2");
	if (chdir("/") < 0)
		return child_fail(err, ERR_mount_failed, errno, "chdir");
	return 0;
}
