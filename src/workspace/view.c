/*
 * view: names in the directories of a view: the rules of overlayfs's layers, and the only places
 * that open anything in a tree. Whatever a box left there is looked at by descriptor first.
 */
#define _GNU_SOURCE
#include "workspace/view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"

#define OPAQUE    "user.overlay.opaque"
#define OPENS_MAX 8 /* of what other calls open and close meanwhile */

void view_dir_close(struct view_dir *dir)
{
	fd_close(&dir->upper);
	fd_close(&dir->lower);
	*dir = VIEW_DIR_NONE;
}

void view_entry_close(struct view_entry *entry)
{
	fd_close(&entry->fd);
	view_dir_close(&entry->dir);
	*entry = VIEW_ENTRY_NONE;
}

/*
 * A directory or file that its owner, who is the caller, may not enter or read, is given the rights
 * `rights` for a moment. Only what lies in agentbox's own state: never the host's. True: try again,
 * and put *ret_mode back if it is not 0. Another call may have opened it just now, so that there is
 * nothing to put back.
 */
static bool open_up(bool own, int fd, mode_t rights, mode_t *ret_mode)
{
	char path[32];
	struct stat st;
	*ret_mode = 0;
	if (!own || errno != EACCES || fstat(fd, &st) < 0 || st.st_uid != geteuid())
		return false;
	if ((st.st_mode & rights) == rights)
		return true;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (chmod(path, (st.st_mode & 07777) | rights) < 0)
		return false;
	*ret_mode = st.st_mode;
	return true;
}

static void shut(int fd, mode_t mode)
{
	char path[32];
	int error = errno;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (mode)
		(void)chmod(path, mode & 07777);
	errno = error;
}

/* openat(2) without following links, also in and of what is closed. */
static int open_closed(bool own, int dir, const char *name, int flags)
{
	int fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC);
	for (int i = 0; fd < 0 && i < OPENS_MAX; i++) {
		mode_t mode;
		if (!open_up(own, dir, S_IRWXU, &mode))
			break;
		fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC);
		shut(dir, mode);
	}
	return fd;
}

/* An O_PATH descriptor for the name itself, or -errno. */
static int open_name(bool own, int dir, const char *name, struct stat *ret_st)
{
	AUTO_FD fd = open_closed(own, dir, name, O_PATH);
	if (fd < 0 || fstat(fd, ret_st) < 0)
		return -errno;
	return fd_steal(&fd);
}

/* Through /proc, as an O_PATH descriptor has no attributes of its own. */
static bool is_opaque(bool own, int fd)
{
	char path[32], value = 0;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	ssize_t len = getxattr(path, OPAQUE, &value, 1);
	for (int i = 0; len < 0 && i < OPENS_MAX; i++) {
		mode_t mode;
		if (!open_up(own, fd, S_IRWXU, &mode))
			break;
		len = getxattr(path, OPAQUE, &value, 1);
		shut(fd, mode);
	}
	return len == 1 && value == 'y';
}

static bool is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

/* `fd` becomes the entry's. */
static int take(int fd, const struct stat *st, struct view_entry *entry)
{
	entry->fd = fd;
	entry->st = *st;
	return 0;
}

static int look_below(const struct view_dir *dir, const char *name, struct view_entry *entry)
{
	struct stat st;
	int fd = dir->lower < 0 ? -ENOENT : open_name(false, dir->lower, name, &st);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (!S_ISDIR(st.st_mode))
		return take(fd, &st, entry);
	entry->dir.lower = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return entry->dir.lower < 0 ? close(fd), -errno : take(fd, &st, entry);
}

/* A directory of the upper tree: what it does not hide is seen through it. */
static int see_through(const struct view_dir *dir, const char *name, struct view_entry *entry)
{
	struct stat below;
	entry->dir.upper = fcntl(entry->fd, F_DUPFD_CLOEXEC, 0);
	if (entry->dir.upper < 0)
		return -errno;
	if (dir->lower < 0 || (dir->tree->layer && is_opaque(dir->tree->own, entry->fd)))
		return 0;
	int fd = open_name(false, dir->lower, name, &below);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (S_ISDIR(below.st_mode))
		entry->dir.lower = fd;
	else
		close(fd);
	return 0;
}

static int look_up(const struct view_dir *dir, const char *name, struct view_entry *entry)
{
	struct stat st;
	entry->dir.tree = dir->tree;
	bool own = dir->tree && dir->tree->own;
	int fd = dir->upper < 0 ? -ENOENT : open_name(own, dir->upper, name, &st);
	if (fd == -ENOENT)
		return look_below(dir, name, entry);
	if (fd < 0)
		return fd;
	if (dir->tree->layer && is_whiteout(&st)) {
		close(fd);
		entry->erased = true;
		return 0;
	}
	take(fd, &st, entry);
	entry->own = own;
	return S_ISDIR(st.st_mode) ? see_through(dir, name, entry) : 0;
}

int view_lookup(const struct view_dir *dir, const char *name, struct view_entry *ret)
{
	struct view_entry entry = VIEW_ENTRY_NONE;
	int r = look_up(dir, name, &entry);
	if (r < 0) {
		view_entry_close(&entry);
		return r;
	}
	*ret = entry;
	return 0;
}

struct names {
	struct arena *arena;
	const char **list;
	size_t count;
};

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool among(const char *const *sorted, size_t count, const char *name)
{
	return count && bsearch(&name, sorted, count, sizeof *sorted, by_bytes);
}

/* Add the names of one directory that are not among the first `known`, which are sorted. */
static int add_names(bool own, int dir, struct names *names, size_t known)
{
	int fd = open_closed(own, dir, ".", O_RDONLY | O_DIRECTORY);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		int r = -errno;
		fd_close(&fd);
		return r;
	}
	int r = 0;
	for (;;) {
		errno = 0;
		const struct dirent *entry = readdir(stream);
		if (!entry) {
			r = -errno;
			break;
		}
		const char *name = entry->d_name;
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
			among(names->list, known, name))
			continue;
		if (names->count == VIEW_ENTRIES_MAX) {
			r = -E2BIG;
			break;
		}
		*(const char **)arena_push(names->arena, &names->list, &names->count,
			sizeof *names->list) = arena_strdup(names->arena, name);
	}
	closedir(stream);
	return r;
}

static void sort_names(struct names *names)
{
	if (names->count)
		qsort(names->list, names->count, sizeof *names->list, by_bytes);
}

int view_names(
	const struct view_dir *dir, struct arena *arena, const char ***ret_names, size_t *ret_count)
{
	struct names all = { .arena = arena };
	bool own = dir->tree && dir->tree->own;
	int r = dir->upper < 0 ? 0 : add_names(own, dir->upper, &all, 0);
	sort_names(&all);
	if (r == 0 && dir->lower >= 0)
		r = add_names(false, dir->lower, &all, all.count);
	if (r < 0)
		return r;
	sort_names(&all);
	/* What the layer takes away stands in it under its name. */
	size_t kept = 0;
	for (size_t i = 0; i < all.count; i++) {
		struct stat st;
		AUTO_FD fd = dir->upper >= 0 && dir->tree->layer
				     ? open_name(own, dir->upper, all.list[i], &st)
				     : -1;
		if (fd < 0 || !is_whiteout(&st))
			all.list[kept++] = all.list[i];
	}
	*ret_names = all.list;
	*ret_count = kept;
	return 0;
}

/* The descriptor names the file for good, so that /proc's link can only lead to it. */
int view_read(const struct view_entry *entry)
{
	char path[32];
	if (!S_ISREG(entry->st.st_mode))
		return -EINVAL;
	snprintf(path, sizeof path, "/proc/self/fd/%d", entry->fd);
	int fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	for (int i = 0; fd < 0 && i < OPENS_MAX; i++) {
		mode_t mode;
		if (!open_up(entry->own, entry->fd, S_IRUSR, &mode))
			break;
		fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
		shut(entry->fd, mode);
	}
	return fd < 0 ? -errno : fd;
}

int view_link(const struct view_entry *entry, struct arena *arena, const char **ret_text)
{
	char text[PATH_MAX];
	ssize_t len = readlinkat(entry->fd, "", text, sizeof text);
	if (len < 0)
		return -errno;
	if ((size_t)len >= sizeof text || len == 0)
		return -ENAMETOOLONG;
	*ret_text = arena_strndup(arena, text, (size_t)len);
	return 0;
}
