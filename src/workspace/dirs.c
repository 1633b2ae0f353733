/*
 * dirs: directories of one tree by their paths. The open ones are a stack, each the ancestor of the
 * next; when it is full every other one is closed, so that going up again costs little.
 */
#define _GNU_SOURCE
#include "workspace/dirs.h"
#include "base/fd.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* No mount either: what is mounted in the tree is none of what the box saw or wrote. */
#define RESOLVE                                                                                    \
	(SYS_RESOLVE_NO_XDEV | SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS |                     \
		SYS_RESOLVE_NO_MAGICLINKS)

/* Bytes of a path that the kernel is given at once; each such part is kept open. */
#define PART ((size_t)1024)

void dirs_init(struct dirs *dirs, int root, bool lend)
{
	*dirs = (struct dirs){ .root = root, .lend = lend };
}

void dirs_free(struct dirs *dirs)
{
	while (dirs->depth > 0)
		fd_close(&dirs->at[--dirs->depth].fd);
	free(dirs->path);
	dirs->path = NULL;
	dirs->size = 0;
}

int dirs_chmod(int fd, unsigned mode)
{
	/* fchmod() refuses O_PATH, and fchmodat2() is of Linux 6.6. */
	char path[40];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return chmod(path, mode & 07777) < 0 ? -errno : 0;
}

int dirs_set_mtime(int fd, const struct timespec *time)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, *time };
	char path[40];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return utimensat(AT_FDCWD, path, times, 0) < 0 ? -errno : 0;
}

void dirs_owner(const struct dirs *dirs, uid_t *ret_uid, gid_t *ret_gid)
{
	*ret_uid = dirs->depth ? dirs->at[dirs->depth - 1].uid : dirs->uid;
	*ret_gid = dirs->depth ? dirs->at[dirs->depth - 1].gid : dirs->gid;
}

/* Open while the file `locked` has the bits `need`, if it is the caller's own and lacks them. */
static int open_lent(int locked, unsigned need, int dir, const char *name, uint64_t flags)
{
	struct stat st;
	if (fstat(locked, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() || (st.st_mode & need) == need)
		return -EACCES;
	int r = dirs_chmod(locked, st.st_mode | need);
	if (r < 0)
		return r;
	int fd = sys_openat2(dir, name, flags, RESOLVE);
	r = dirs_chmod(locked, st.st_mode);
	if (r < 0 && fd >= 0) {
		close(fd);
		return r;
	}
	return fd;
}

int dirs_open_name(int dir, const char *name, uint64_t flags, bool lend)
{
	flags |= O_NOFOLLOW | O_CLOEXEC;
	int fd = sys_openat2(dir, name, flags, RESOLVE);
	if (fd != -EACCES || !lend)
		return fd;
	fd = open_lent(dir, 0100, dir, name, flags);
	if (fd != -EACCES)
		return fd;
	AUTO_FD file = sys_openat2(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, RESOLVE);
	struct stat st;
	if (file < 0 || fstat(file, &st) < 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
		return -EACCES;
	return open_lent(file, S_ISDIR(st.st_mode) ? 0500 : 0400, dir, name, flags);
}

/* Whoever owns one directory may put any other of theirs, or of root's in theirs, below it. */
static int watch(int fd, uid_t *uid, gid_t *gid)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (*uid == 0) {
		*uid = st.st_uid;
		*gid = st.st_gid;
	}
	return 0;
}

/*
 * A part of a path of several names, each of which may have to be lent permission. *uid and *gid:
 * of the directory above, and then of this one, where they are watched.
 */
static int open_part(const struct dirs *dirs, int dir, char *part, uid_t *uid, gid_t *gid)
{
	/* O_PATH: passing through a directory does not need the right to list it. */
	const uint64_t flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int r = dirs->watch ? -EACCES : sys_openat2(dir, part, flags, RESOLVE);
	if (r != -EACCES || !(dirs->lend || dirs->watch))
		return r;
	AUTO_FD fd = -1;
	for (char *name = part; name;) {
		char *slash = strchr(name, '/');
		if (slash)
			*slash = 0;
		int next = dirs_open_name(fd < 0 ? dir : fd, name, flags, dirs->lend);
		if (next < 0)
			return next;
		fd_close(&fd);
		fd = next;
		r = dirs->watch ? watch(fd, uid, gid) : 0;
		if (r < 0)
			return r;
		name = slash ? slash + 1 : NULL;
	}
	return fd_steal(&fd);
}

static void thin_out(struct dirs *dirs)
{
	size_t kept = 0;
	for (size_t i = 0; i < dirs->depth; i++) {
		if (i % 2 == 0 && i + 1 < dirs->depth)
			fd_close(&dirs->at[i].fd);
		else
			dirs->at[kept++] = dirs->at[i];
	}
	dirs->depth = kept;
}

static int keep_path(struct dirs *dirs, const char *path, size_t len)
{
	if (len + 1 > dirs->size) {
		size_t size = len + 1 > 2 * dirs->size ? len + 256 : 2 * dirs->size;
		char *grown = realloc(dirs->path, size);
		if (!grown)
			return -ENOMEM;
		dirs->path = grown;
		dirs->size = size;
	}
	memcpy(dirs->path, path, len);
	dirs->path[len] = 0;
	return 0;
}

/* Is the open directory of this length at or above path[0..len-1]? */
static bool leads_to(const struct dirs *dirs, size_t own, const char *path, size_t len)
{
	return own <= len && memcmp(dirs->path, path, own) == 0 && (own == len || path[own] == '/');
}

static int descend(struct dirs *dirs, const char *path, size_t len)
{
	size_t done = dirs->depth ? dirs->at[dirs->depth - 1].len : 0;
	while (done < len) {
		size_t from = done ? done + 1 : 0, to = len;
		if (to - from > PART) {
			to = from + PART;
			while (to > from && path[to] != '/')
				to--;
			if (to == from)
				return -ENAMETOOLONG;
		}
		char part[PART + 1];
		memcpy(part, path + from, to - from);
		part[to - from] = 0;
		int dir = dirs->depth ? dirs->at[dirs->depth - 1].fd : dirs->root;
		uid_t uid;
		gid_t gid;
		dirs_owner(dirs, &uid, &gid);
		int fd = open_part(dirs, dir, part, &uid, &gid);
		if (fd < 0)
			return fd;
		if (dirs->depth == DIRS_OPEN)
			thin_out(dirs);
		dirs->at[dirs->depth].fd = fd;
		dirs->at[dirs->depth].uid = uid;
		dirs->at[dirs->depth].gid = gid;
		dirs->at[dirs->depth++].len = done = to;
	}
	return dirs->depth ? dirs->at[dirs->depth - 1].fd : dirs->root;
}

int dirs_open(struct dirs *dirs, const char *path, size_t len)
{
	if (dirs->root < 0)
		return -ENOENT;
	/* The deepest is looked at first, so a tree that is walked in order is compared once. */
	while (dirs->depth > 0 && !leads_to(dirs, dirs->at[dirs->depth - 1].len, path, len))
		fd_close(&dirs->at[--dirs->depth].fd);
	int r = keep_path(dirs, path, len);
	return r < 0 ? r : descend(dirs, path, len);
}

int dirs_parent(struct dirs *dirs, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	*ret_name = slash ? slash + 1 : path;
	return dirs_open(dirs, path, slash ? (size_t)(slash - path) : 0);
}

void dirs_forget(struct dirs *dirs, const char *path, size_t len)
{
	while (dirs->depth > 0) {
		size_t own = dirs->at[dirs->depth - 1].len;
		if (own < len || memcmp(dirs->path, path, len) != 0)
			return;
		if (own > len && dirs->path[len] != '/')
			return;
		fd_close(&dirs->at[--dirs->depth].fd);
	}
}
