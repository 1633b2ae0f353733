/*
 * sources: what the supervisor does for the box with root's rights: it opens the granted paths,
 * which the box's own id could not reach, and shows them id-mapped. It does so while init makes the
 * rest, which takes longer. Without root nothing here runs.
 */
#define _GNU_SOURCE
#include "box/child.h"
#include "base/fd.h"
#include "base/sys.h"
#include "box/sync.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

int sources_become(const struct plan *plan, struct sources_self *ret_self)
{
	struct sources_self *self = ret_self;
	self->uid = geteuid();
	self->gid = getegid();
	self->group_count = getgroups(SOURCES_GROUPS_MAX, self->groups);
	if (self->group_count < 0)
		return -errno;
	/* Raw calls: the ids of this thread alone, which is the only one. */
	if ((self->group_count > 0 && syscall(SYS_setgroups, 0, NULL) < 0) ||
		syscall(SYS_setresgid, -1, plan->outer_gid, -1) < 0 ||
		syscall(SYS_setresuid, -1, plan->outer_uid, -1) < 0) {
		int r = -errno;
		(void)sources_return(self);
		return r;
	}
	/* A change of ids makes /proc/self root's; the child must write its own id map there. */
	return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int sources_return(const struct sources_self *self)
{
	if (syscall(SYS_setresuid, -1, self->uid, -1) < 0 ||
		syscall(SYS_setresgid, -1, self->gid, -1) < 0 ||
		(self->group_count > 0 &&
			syscall(SYS_setgroups, self->group_count, self->groups) < 0))
		return -errno;
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	return 0;
}

/* "INSIDE OUTSIDE 1\n", without stdio; room for two numbers of ten digits. */
static size_t map_line(char line[32], unsigned inside, unsigned outside)
{
	char digits[12];
	size_t len = 0;
	unsigned numbers[2] = { inside, outside };
	for (int i = 0; i < 2; i++) {
		size_t n = 0;
		do
			digits[n++] = (char)('0' + numbers[i] % 10);
		while ((numbers[i] /= 10) > 0);
		while (n)
			line[len++] = digits[--n];
		line[len++] = ' ';
	}
	line[len++] = '1';
	line[len++] = '\n';
	return len;
}

static int write_at(int dir, const char *name, const char *text, size_t len)
{
	int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t n = write(fd, text, len);
	int r = n < 0 ? -errno : (size_t)n == len ? 0 : -EIO;
	close(fd);
	return r;
}

/* What the short-lived child works on; it shares our memory and descriptors. */
struct mapping {
	const struct plan *plan;
	uid_t owner;
	gid_t group;
	int fd; /* the namespace, or -errno */
};

/* Map owner -> outer id in the user namespace that we are in, and open it. A descriptor or -errno.
 */
static int map_ids(const struct mapping *mapping)
{
	char line[32];
	int self = openat(AT_FDCWD, "/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (self < 0)
		return -errno;
	int r = write_at(self, "setgroups", "deny", 4);
	if (r == 0)
		r = write_at(self, "uid_map", line,
			map_line(line, mapping->owner, mapping->plan->outer_uid));
	if (r == 0)
		r = write_at(self, "gid_map", line,
			map_line(line, mapping->group, mapping->plan->outer_gid));
	if (r == 0) {
		r = openat(self, "ns/user", O_RDONLY | O_CLOEXEC);
		r = r < 0 ? -errno : r;
	}
	close(self);
	return r;
}

static int mapping_child(void *arg)
{
	struct mapping *mapping = arg;
	mapping->fd = map_ids(mapping);
	_exit(0);
}

/*
 * A user namespace that exists only to be named in MOUNT_ATTR_IDMAP. A child is born in it and maps
 * it while we are asleep (CLONE_VFORK); what it opens is ours. No SIGCHLD: nobody else waits for
 * it.
 */
static int idmap_namespace(const struct plan *plan, uid_t owner, gid_t group)
{
	_Alignas(16) char stack[4096];
	struct mapping mapping = { .plan = plan, .owner = owner, .group = group, .fd = -EIO };
	pid_t pid = clone(mapping_child, stack + sizeof stack,
		CLONE_NEWUSER | CLONE_FILES | CLONE_VM | CLONE_VFORK, &mapping);
	if (pid < 0)
		return -errno;
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	return mapping.fd;
}

static const struct source_owner *find_owner(
	const struct sources *sources, const struct plan_op *op)
{
	for (size_t i = 0; i < sources->count; i++)
		if (sources->owners[i].uid == op->owner && sources->owners[i].gid == op->group)
			return &sources->owners[i];
	return NULL;
}

void sources_map(const struct plan *plan, struct sources *sources)
{
	for (size_t i = 0; i < plan->op_count; i++) {
		const struct plan_op *op = &plan->ops[i];
		if (!plan_op_grants(op) || find_owner(sources, op))
			continue;
		struct source_owner *owner = &sources->owners[sources->count++];
		owner->uid = op->owner;
		owner->gid = op->group;
		owner->userns = idmap_namespace(plan, op->owner, op->group);
	}
}

/* `alone`: a copy enters none of the mounts below, so it does not matter whether they can be
 * mapped.
 */
static int show_as(int tree, unsigned recursive, bool alone, int userns)
{
	/* Private first: nothing that is mounted on it in the box may come back to the host. */
	struct sys_mount_attr attr = {
		.attr_set = SYS_MOUNT_ATTR_NOSUID | SYS_MOUNT_ATTR_NODEV,
		.propagation = MS_PRIVATE,
		.userns_fd = (uint64_t)userns,
	};
	if (alone && recursive) {
		int r = sys_mount_setattr(tree, "", AT_EMPTY_PATH | recursive, &attr);
		if (r < 0)
			return r;
		recursive = 0;
	}
	attr.attr_set |= SYS_MOUNT_ATTR_IDMAP;
	return sys_mount_setattr(tree, "", AT_EMPTY_PATH | recursive, &attr);
}

/* Can this be had in another way, where the file system does not take id maps? */
static bool is_copied(const struct plan *plan, const struct plan_op *op, int r)
{
	return (r == -EINVAL || r == -EOPNOTSUPP) && op->kind == OP_LAYER &&
	       plan->layers[op->layer].copy;
}

static int open_tree_as(const struct plan *plan, const struct plan_op *op, int userns)
{
	int source = sys_openat2(AT_FDCWD, op->source, O_PATH | O_CLOEXEC | O_NOFOLLOW,
		SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS);
	if (source < 0)
		return source;
	struct stat st;
	int r = fstat(source, &st) < 0 ? -errno : 0;
	/* The owner decides whom the box acts as: it must be the one that the plan was made for. */
	if (r == 0 && (st.st_uid != op->owner || st.st_gid != op->group ||
			      (st.st_mode & S_IFMT) != (op->mode & S_IFMT)))
		r = -ESTALE;
	unsigned recursive = op->flags & OPF_RECURSIVE ? SYS_AT_RECURSIVE : 0;
	int tree = -1;
	if (r == 0)
		r = tree = sys_open_tree(source, "",
			SYS_OPEN_TREE_CLONE | SYS_OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | recursive);
	if (r >= 0)
		r = show_as(tree, recursive, op->kind == OP_LAYER, userns);
	if (is_copied(plan, op, r)) {
		fd_close(&tree);
		r = tree = source_copy(plan, op, source);
	}
	close(source);
	if (r < 0 && tree >= 0)
		close(tree);
	return r < 0 ? r : tree;
}

static enum err_code code_of(int r)
{
	switch (-r) {
	case ELOOP:
		return ERR_grant_is_symlink;
	case ENOENT:
	case ENOTDIR:
		return ERR_grant_not_found;
	case ESTALE:
		return ERR_sources_changed;
	case EINVAL:
	case EOPNOTSUPP:
		return ERR_idmap_unsupported;
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case ENOSPC:
	case EAGAIN:
		return ERR_no_resources;
	}
	return ERR_mount_failed;
}

size_t sources_count(const struct plan *plan)
{
	size_t count = 0;
	for (size_t i = 0; plan->as_root && i < plan->op_count; i++)
		count += plan_op_grants(&plan->ops[i]);
	return count;
}

/* Fills ret_trees up to the first failure; *ret_op is the operation's number then, from 1. */
static int open_trees(
	const struct plan *plan, const struct sources *sources, int *ret_trees, size_t *ret_op)
{
	int r = 0;
	for (size_t i = 0; i < plan->op_count && r >= 0; i++) {
		const struct plan_op *op = &plan->ops[i];
		if (!plan_op_grants(op))
			continue;
		*ret_op = i + 1;
		const struct source_owner *owner = find_owner(sources, op);
		r = owner ? owner->userns : -EIO;
		if (r >= 0)
			r = ret_trees[op->tree] = open_tree_as(plan, op, owner->userns);
	}
	return r < 0 ? r : 0;
}

int sources_give(const struct plan *plan, struct sources *sources, int setup_fd, struct err *err)
{
	size_t count = sources_count(plan), op = 0;
	if (count == 0)
		return 0;
	int trees[PLAN_GRANTS_MAX];
	for (size_t i = 0; i < count; i++)
		trees[i] = -1;
	int r = open_trees(plan, sources, trees, &op);
	bool opened = r == 0;
	if (opened)
		r = sync_send_many(setup_fd, SYNC_TREES, trees, count);
	/* Init has ended: it has said why, or its end is the news. */
	if (r == -EPIPE || r == -ECONNRESET)
		r = 0;
	for (size_t i = 0; i < count; i++)
		fd_close(&trees[i]);
	for (size_t i = 0; i < sources->count; i++)
		fd_close(&sources->owners[i].userns);
	if (r == 0)
		return 0;
	/* A copy may do in its place: see source_copy(). */
	enum err_code code = opened ? ERR_no_resources : code_of(r);
	if ((code == ERR_idmap_unsupported || code == ERR_mount_failed) && op &&
		plan->ops[op - 1].kind == OP_LAYER)
		code = ERR_overlay_unsupported;
	child_fail(err, code, r, "sendmsg");
	err->stage = STAGE_sources;
	err->line = opened ? 0 : (int32_t)op; /* see box_explain_failure */
	return -1;
}
