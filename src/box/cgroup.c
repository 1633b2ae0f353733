/*
 * cgroup: makes, reads and removes a box's control groups, for the supervisor. It decides nothing:
 * which groups, where, and with which values is in the plan. Nobody is put into them here.
 */
#define _GNU_SOURCE
#include "box/cgroup.h"
#include "base/fd.h"
#include "base/sys.h"
#include "box/child.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

#define TRIES         8       /* to make a group that others remove at the same time */
#define PATIENCE_US   1000000 /* with a group that the kernel still calls busy */
#define FIRST_STEP_US 50
#define LAST_STEP_US  10000

static void pause_us(unsigned us)
{
	struct timespec time = { .tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000 };
	(void)nanosleep(&time, NULL);
}

/* What one word of an error is put together from; too long is cut. */
static void add(char *text, size_t size, const char *word)
{
	size_t len = strlen(text), more = strlen(word);
	if (more > size - 1 - len)
		more = size - 1 - len;
	memcpy(text + len, word, more);
	text[len + more] = 0;
}

/* The key that a group is there for. One without settings only counts time. */
static const char *key_of(const struct plan_cgroup *plan, size_t group)
{
	for (size_t i = 0; i < plan->file_count; i++)
		if ((size_t)plan->files[i].group == group)
			return plan->files[i].key;
	return "limits.cpu";
}

int cgroup_fail(const struct cgroup_place *place, enum err_code code, int r, struct err *err)
{
	const struct plan_cgroup *plan = place->plan;
	char text[sizeof err->text] = "";
	add(text, sizeof text, place->key ? place->key : key_of(plan, place->group));
	add(text, sizeof text, " (");
	add(text, sizeof text, plan->parents[place->group]);
	if (place->name) {
		add(text, sizeof text, "/");
		add(text, sizeof text, place->name);
	}
	if (place->file) {
		add(text, sizeof text, "/");
		add(text, sizeof text, place->file);
	}
	add(text, sizeof text, ")");
	return child_fail(err, code, r, text);
}

static enum err_code code_of(int r)
{
	switch (-r) {
	case ENOMEM:
	case ENOSPC:
	case EAGAIN: /* cgroup.max.descendants or cgroup.max.depth of a group above */
	case EMFILE:
	case ENFILE:
		return ERR_no_resources;
	}
	return ERR_cgroup_unavailable;
}

/* Write a value; *ret_opened tells whose failure it was: the file's or the value's. */
static int put(int dir, const char *file, const char *value, bool *ret_opened)
{
	*ret_opened = false;
	int fd = openat(dir, file, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_opened = true;
	size_t len = strlen(value);
	ssize_t n;
	do
		n = write(fd, value, len);
	while (n < 0 && errno == EINTR);
	int r = n < 0 ? -errno : (size_t)n == len ? 0 : -EIO;
	close(fd);
	return r;
}

/* A directory to work in, which needs no right to read it. */
static int open_parent(const char *path)
{
	int fd = openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Anywhere else a group would be a directory that nobody expects. */
static int check_parent(int parent)
{
	struct statfs fs;
	if (fstatfs(parent, &fs) < 0)
		return -errno;
	bool ours = fs.f_type == CGROUP_SUPER_MAGIC || fs.f_type == CGROUP2_SUPER_MAGIC;
	return ours ? 0 : -EOPNOTSUPP;
}

static int open_group(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * Processes that have ended are counted until the kernel has put them away: ask again, ever more
 * seldom, until *patience is used up.
 */
static int remove_group(int parent, const char *name, unsigned *patience)
{
	for (unsigned step = FIRST_STEP_US;;) {
		if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != EBUSY || *patience == 0)
			return -errno;
		if (step > *patience)
			step = *patience;
		pause_us(step);
		*patience -= step;
		step = step * 2 > LAST_STEP_US ? LAST_STEP_US : step * 2;
	}
}

/*
 * Hold the lock of a group, which is held as long as its maker lives. 0, -EBUSY when somebody else
 * holds it, or -errno. A group that was removed meanwhile can still be locked, but has no files:
 * one of them has to be asked for, so that nobody goes on with another one that has got its name.
 */
static int lock(int dir)
{
	if (flock(dir, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return 0;
}

/* Remove a group that nobody holds the lock of. */
static int remove_left(int parent, const char *name)
{
	int dir = open_group(parent, name);
	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	int r = lock(dir);
	if (r == 0 && faccessat(dir, "cgroup.procs", F_OK, 0) < 0)
		r = -errno;
	if (r == 0) {
		bool opened;
		unsigned patience = PATIENCE_US;
		/* Not in v1, nor before Linux 5.14: then what is left there must end by itself. */
		(void)put(dir, "cgroup.kill", "1", &opened);
		r = remove_group(parent, name, &patience);
	}
	close(dir);
	return r == -ENOENT ? 0 : r;
}

/*
 * Take a directory just made: it is ours from the lock on. v1: with its file `tasks`. 1, 0 when
 * somebody else is about to remove it or has done so, or -errno.
 */
static int take(int parent, const char *name, bool v1, int *ret_dir, int *ret_tasks)
{
	AUTO_FD dir = open_group(parent, name);
	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	int r = lock(dir);
	AUTO_FD tasks = r == 0 && v1 ? openat(dir, "tasks", O_WRONLY | O_CLOEXEC) : -1;
	if (r == 0 && v1 && tasks < 0)
		r = -errno;
	if (r == 0 && !v1 && faccessat(dir, "cgroup.procs", F_OK, 0) < 0)
		r = -errno;
	/* The box's own id is to read there, whatever our umask. */
	if (r == 0 && fchmod(dir, 0755) < 0)
		r = -errno;
	if (r < 0)
		return r == -EBUSY || r == -ENOENT ? 0 : r;
	*ret_dir = fd_steal(&dir);
	*ret_tasks = fd_steal(&tasks);
	return 1;
}

/*
 * Make one group and hold its lock, which tells everybody that it is alive. `agentbox gc` may come
 * between the two. Until then nobody else's id can open it, and so nobody can lock it instead.
 */
static int make_group(int parent, const char *name, bool v1, int *ret_dir, int *ret_tasks)
{
	for (int i = 0; i < TRIES; i++) {
		if (i > 0)
			pause_us(1000);
		if (mkdirat(parent, name, 0700) < 0) {
			/* Of an earlier process with our number, which was killed; or it is alive.
			 */
			int r = errno == EEXIST ? remove_left(parent, name) : -errno;
			if (r < 0)
				return r;
			continue;
		}
		int r = take(parent, name, v1, ret_dir, ret_tasks);
		if (r < 0)
			(void)unlinkat(parent, name, AT_REMOVEDIR);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	return -EBUSY;
}

/* v2: no process may be in a group that hands controllers down: move into one below, then enable.
 */
static int prepare_parent(const struct plan_cgroup *plan, int parent, struct err *err)
{
	struct cgroup_place place = { .plan = plan };
	bool opened;
	int r = 0;
	if (plan->leaf) {
		place.name = plan->leaf;
		if (mkdirat(parent, plan->leaf, 0755) < 0 && errno != EEXIST)
			return cgroup_fail(&place, code_of(-errno), errno, err);
		int leaf = open_group(parent, plan->leaf);
		place.file = "cgroup.procs";
		r = leaf < 0 ? leaf : put(leaf, place.file, "0", &opened);
		fd_close(&leaf);
	}
	if (r == 0 && plan->enable) {
		place.name = NULL;
		place.file = "cgroup.subtree_control";
		r = put(parent, place.file, plan->enable, &opened);
	}
	if (r == 0)
		return 0;
	if (plan->leaf) {
		/* Back to where we were; neither works when others are there now, nor need it. */
		(void)put(parent, "cgroup.procs", "0", &opened);
		(void)unlinkat(parent, plan->leaf, AT_REMOVEDIR);
	}
	return cgroup_fail(&place, code_of(r), r, err);
}

/* One group, without its settings. */
static int make_one(
	const struct plan_cgroup *plan, size_t group, struct cgroup *groups, struct err *err)
{
	struct cgroup_place place = { .plan = plan, .group = group };
	int parent = open_parent(plan->parents[group]);
	int r = parent < 0 ? parent : check_parent(parent);
	groups->parent[group] = parent;
	if (r < 0)
		return cgroup_fail(&place, code_of(r), r, err);
	if (group == 0 && prepare_parent(plan, parent, err) < 0)
		return -1;
	place.name = plan->name;
	r = make_group(parent, plan->name, plan->kind == CGROUP_V1, &groups->dir[group],
		&groups->tasks[group]);
	return r < 0 ? cgroup_fail(&place, code_of(r), r, err) : 0;
}

static bool forgivable(const struct plan_cgroup_file *file, int r)
{
	return file->optional && (r == -ENOENT || r == -EOPNOTSUPP || r == -EINVAL);
}

static int set_one(const struct plan_cgroup *plan, const struct plan_cgroup_file *file,
	const struct cgroup *groups, struct err *err)
{
	bool opened;
	int r = put(groups->dir[file->group], file->file, file->value, &opened);
	if (r == 0 || forgivable(file, r))
		return 0;
	enum err_code code = code_of(r);
	/* The file is there and could be opened: what is left to dislike is the value. */
	if (opened && r != -ENOMEM && r != -ENODEV && r != -EOPNOTSUPP && r != -EPERM)
		code = ERR_limit_refused;
	struct cgroup_place place = { .plan = plan,
		.group = (size_t)file->group,
		.key = file->key,
		.name = plan->name,
		.file = file->file };
	return cgroup_fail(&place, code, r, err);
}

void cgroup_init(struct cgroup *cgroup)
{
	cgroup->plan = NULL;
	for (size_t i = 0; i < PLAN_CGROUPS_MAX; i++)
		cgroup->parent[i] = cgroup->dir[i] = cgroup->tasks[i] = -1;
}

int cgroup_make(const struct plan *plan, struct cgroup *ret_cgroup, struct err *err)
{
	const struct plan_cgroup *asked = &plan->cgroup;
	struct cgroup groups;
	cgroup_init(&groups);
	int r = 0;
	if (asked->kind != CGROUP_NONE) {
		groups.plan = asked;
		for (size_t i = 0; r == 0 && i < asked->count; i++)
			r = make_one(asked, i, &groups, err);
		for (size_t i = 0; r == 0 && i < asked->file_count; i++)
			r = set_one(asked, &asked->files[i], &groups, err);
	}
	if (r < 0) {
		(void)cgroup_remove(&groups);
		return -1;
	}
	*ret_cgroup = groups;
	return 0;
}

int cgroup_remove(struct cgroup *cgroup)
{
	int r = 0;
	unsigned patience = PATIENCE_US;
	for (size_t i = PLAN_CGROUPS_MAX; i-- > 0;) {
		fd_close(&cgroup->tasks[i]);
		int one = 0;
		if (cgroup->dir[i] >= 0)
			one = remove_group(cgroup->parent[i], cgroup->plan->name, &patience);
		fd_close(&cgroup->parent[i]);
		fd_close(&cgroup->dir[i]); /* and with it the lock */
		if (r == 0)
			r = one;
	}
	cgroup->plan = NULL;
	return r;
}

int cgroup_remove_at(int parent, const char *name)
{
	return remove_left(parent, name);
}
