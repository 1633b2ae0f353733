/*
 * tree_walk: the stack of levels that copying, clearing and renaming walk with. It opens, reads and
 * makes accessible; it never creates or removes a file.
 */
#define _GNU_SOURCE
#include "workspace/tree_walk.h"

#include <string.h>
#include <sys/mman.h>

static int identify(int fd, struct tree_id *ret)
{
	struct tree_stat st;
	int r = tree_stat_at(fd, "", &st);
	if (r < 0)
		return r;
	*ret = (struct tree_id){ .dev = tree_dev(&st), .ino = st.ino };
	return 0;
}

/* Fill the current level from its descriptors. */
static int describe(struct tree_walk *walk, mode_t mode)
{
	struct tree_level *level = tree_level(walk);
	memset(level, 0, sizeof *level);
	struct tree_stat st;
	int r = tree_stat_at(tree_from(walk), "", &st);
	if (r < 0)
		return r;
	level->from = (struct tree_id){ .dev = tree_dev(&st), .ino = st.ino };
	level->mode = (uint16_t)((mode ? mode : st.mode) & 07777);
	level->opened_up = mode != 0;
	level->times[0] = (struct timespec){ .tv_sec = st.atime.sec, .tv_nsec = st.atime.nsec };
	level->times[1] = (struct timespec){ .tv_sec = st.mtime.sec, .tv_nsec = st.mtime.nsec };
	return tree_to(walk) < 0 ? 0 : identify(tree_to(walk), &level->to);
}

int tree_walk_new(int from, int to, struct tree_walk **ret)
{
	/* Without MAP_NORESERVE a strict accounting of memory would count what is never touched. */
	long at = sys_bare6(SYS_mmap, 0, sizeof(struct tree_walk), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at < 0 && at > -4096)
		return (int)at;
	struct tree_walk *walk = (struct tree_walk *)at;
	for (size_t i = 0; i < TREE_RING; i++)
		walk->from[i] = walk->to[i] = -1;
	mode_t mode = 0;
	int r = walk->from[0] = tree_dir_open(from, ".", false, &mode);
	if (r >= 0 && to >= 0)
		r = walk->to[0] = tree_open_dir(to, ".");
	if (r >= 0)
		r = describe(walk, mode);
	if (r < 0) {
		tree_walk_free(walk);
		return r;
	}
	*ret = walk;
	return 0;
}

void tree_walk_free(struct tree_walk *walk)
{
	for (size_t i = 0; i < TREE_RING; i++) {
		tree_close(&walk->from[i]);
		tree_close(&walk->to[i]);
	}
	(void)sys_bare(SYS_munmap, (long)walk, sizeof *walk, 0);
}

static bool is_dot(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

int tree_walk_next(struct tree_walk *walk, const struct tree_entry **ret)
{
	for (;;) {
		if (walk->next >= walk->used) {
			long n = sys_bare(SYS_getdents64, tree_from(walk), (long)walk->dents,
				sizeof walk->dents);
			if (n == -ENOENT) /* removed meanwhile, so it is empty */
				n = 0;
			if (n <= 0)
				return (int)n;
			walk->used = (size_t)n;
			walk->next = 0;
		}
		const struct tree_entry *entry =
			(const struct tree_entry *)(walk->dents + walk->next);
		walk->next += entry->size;
		if (is_dot(entry->name))
			continue;
		tree_level(walk)->offset = entry->offset;
		*ret = entry;
		return 1;
	}
}

int tree_walk_seek(struct tree_walk *walk, int64_t offset)
{
	walk->used = walk->next = 0;
	int64_t r = tree_seek(tree_from(walk), offset, SEEK_SET);
	return r < 0 ? (int)r : 0;
}

int tree_walk_enter(struct tree_walk *walk, int from, int to, const char *name, mode_t mode)
{
	if (walk->depth + 1 >= TREE_DEPTH_MAX) {
		tree_close(&from);
		tree_close(&to);
		return -ENAMETOOLONG;
	}
	walk->depth++;
	size_t slot = walk->depth % TREE_RING;
	if (walk->depth - walk->lowest >= TREE_RING) {
		tree_close(&walk->from[slot]);
		tree_close(&walk->to[slot]);
		walk->lowest++;
	}
	walk->from[slot] = from;
	walk->to[slot] = to;
	memcpy(walk->names[slot], name, strnlen(name, NAME_MAX));
	walk->names[slot][strnlen(name, NAME_MAX)] = '\0';
	walk->used = walk->next = 0;
	return describe(walk, mode);
}

/* ".." of a directory, when it is the one that it was. */
static int reopen_parent(int fd, const struct tree_id *want)
{
	int parent = tree_open_dir(fd, "..");
	if (parent < 0)
		return parent;
	struct tree_id id;
	int r = identify(parent, &id);
	if (r == 0 && (id.dev != want->dev || id.ino != want->ino))
		r = -ESTALE;
	if (r < 0)
		tree_close(&parent);
	return r < 0 ? r : parent;
}

int tree_walk_leave(struct tree_walk *walk, const char **ret_name)
{
	size_t slot = walk->depth % TREE_RING, above = (walk->depth - 1) % TREE_RING;
	*ret_name = walk->names[slot];
	walk->reopened = walk->depth == walk->lowest;
	if (walk->reopened) {
		const struct tree_level *level = &walk->levels[walk->depth - 1];
		int from = reopen_parent(walk->from[slot], &level->from);
		if (from < 0)
			return from;
		int to = walk->to[slot] < 0 ? -1 : reopen_parent(walk->to[slot], &level->to);
		if (to < 0 && walk->to[slot] >= 0) {
			tree_close(&from);
			return to;
		}
		walk->from[above] = from;
		walk->to[above] = to;
		walk->names[above][0] = '\0';
		walk->lowest--;
	}
	if (!walk->names[slot][0])
		*ret_name = NULL;
	tree_close(&walk->from[slot]);
	tree_close(&walk->to[slot]);
	walk->depth--;
	walk->used = walk->next = 0;
	return 0;
}

void tree_proc_name(int fd, char ret[32])
{
	static const char prefix[] = "/proc/self/fd/";
	char digits[12];
	size_t n = 0, at = sizeof prefix - 1;
	do
		digits[n++] = (char)('0' + fd % 10);
	while ((fd /= 10) > 0);
	memcpy(ret, prefix, at);
	while (n > 0)
		ret[at++] = digits[--n];
	ret[at] = '\0';
}

int tree_path_chmod(int path, mode_t mode)
{
	int r = (int)sys_bare6(SYS_fchmodat2, path, (long)"", (long)mode, AT_EMPTY_PATH, 0, 0);
	if (r != -ENOSYS && r != -EPERM)
		return r;
	/* A filter of calls that does not know this one may answer EPERM, as the kernel may. */
	char name[32];
	tree_proc_name(path, name);
	r = (int)sys_bare6(SYS_fchmodat, AT_FDCWD, (long)name, (long)mode, 0, 0, 0);
	return r == -ENOENT || r == -ENOTDIR ? -EACCES : r;
}

int tree_name_chmod(int dir, const char *name, mode_t type, mode_t mode)
{
	int path = tree_open_path(dir, name);
	if (path < 0)
		return path;
	struct tree_stat st;
	int r = tree_stat_at(path, "", &st);
	if (r == 0)
		r = (st.mode & S_IFMT) == type ? tree_path_chmod(path, mode) : -ESTALE;
	tree_close(&path);
	return r;
}

/* As the owner of a directory that may not be read. */
static int open_closed_dir(int dir, const char *name, mode_t *ret_mode)
{
	int path = tree_open_path(dir, name);
	if (path < 0)
		return path;
	struct tree_stat st;
	int fd = tree_stat_at(path, "", &st);
	if (fd == 0 && !S_ISDIR(st.mode))
		fd = -ENOTDIR;
	if (fd == 0 && (st.mode & 0700) == 0700)
		fd = -EACCES; /* the mode is not what keeps us out */
	if (fd == 0)
		fd = tree_path_chmod(path, (st.mode & 07777) | 0700);
	if (fd == -EPERM) /* not the owner */
		fd = -EACCES;
	if (fd == 0) {
		fd = tree_open_dir(path, ".");
		if (fd < 0)
			(void)tree_path_chmod(path, st.mode & 07777);
		*ret_mode = st.mode;
	}
	tree_close(&path);
	return fd;
}

int tree_dir_open(int dir, const char *name, bool all, mode_t *ret_mode)
{
	*ret_mode = 0;
	int fd = tree_open_dir(dir, name);
	if (fd == -EACCES)
		return open_closed_dir(dir, name, ret_mode);
	if (fd < 0)
		return fd;
	struct tree_stat st;
	int r = tree_stat_at(fd, "", &st);
	if (r < 0) {
		tree_close(&fd);
		return r;
	}
	if ((st.mode & 0700) == 0700)
		return fd;
	int probe = all ? -EACCES : tree_open_path(fd, ".");
	if (probe >= 0)
		tree_close(&probe);
	else if (probe == -EACCES && tree_fchmod(fd, (st.mode & 07777) | 0700) == 0)
		*ret_mode = st.mode;
	return fd;
}

static int copy_attribute(struct tree_walk *walk, int from, int to, const char *name)
{
	char *value = walk->buffer + TREE_BUFFER / 2;
	long n = sys_bare6(SYS_fgetxattr, from, (long)name, (long)value, TREE_BUFFER / 2, 0, 0);
	if (n == -ENODATA)
		return 0;
	if (n < 0)
		return (int)n;
	return (int)sys_bare6(SYS_fsetxattr, to, (long)name, (long)value, n, 0, 0);
}

int tree_copy_attributes(struct tree_walk *walk, int from, int to, const char *prefix)
{
	char *list = walk->buffer;
	long n = sys_bare(SYS_flistxattr, from, (long)list, TREE_BUFFER / 2);
	if (n == -EOPNOTSUPP)
		return 0;
	for (long i = 0; i < n; i += (long)strlen(list + i) + 1) {
		if (strncmp(list + i, prefix, strlen(prefix)) != 0)
			continue;
		int r = copy_attribute(walk, from, to, list + i);
		if (r < 0)
			return r;
	}
	return n < 0 ? (int)n : 0;
}

void tree_report_failed(struct tree_report *report, const char *name)
{
	size_t length = strlen(name), max = sizeof report->failed - 1;
	if (length > max)
		name += length - max, length = max;
	memcpy(report->failed, name, length + 1);
}
