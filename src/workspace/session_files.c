/*
 * session_files: the parts of a session's directory and its locks. Trusts no name that it has not
 * looked at by descriptor, and removes nothing that somebody else still makes or uses.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "workspace/session_files.h"
#include "workspace/tree.h"

#define FRESH_SECONDS 60 /* a hidden directory of that age may not have its flock yet */

/* `tree`: the box's own, so of whatever mode the box likes. */
static const struct part {
	const char *name;
	mode_t mode;
	bool tree;
} parts[] = {
	{ "layer", 0700, true },
	{ "layer/upper", 0755, true },
	{ "layer/work", 0700, true },
	{ "home", 0700, true },
	{ "tmp", 01777, true },
};

#define PART_COUNT (sizeof parts / sizeof *parts)

static int open_part(int dir, const struct part *part, uint64_t flags)
{
	return sys_openat2(dir, part->name, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS);
}

static int make_part(int dir, const struct part *part, uid_t owner, gid_t group)
{
	if (mkdirat(dir, part->name, 0700) < 0)
		return -errno;
	AUTO_FD fd = open_part(dir, part, O_RDONLY);
	if (fd < 0)
		return fd;
	if (part->tree && geteuid() == 0 && fchown(fd, owner, group) < 0)
		return -errno;
	return fchmod(fd, part->mode) < 0 ? -errno : 0;
}

const char *session_parts_make(int dir, uid_t owner, gid_t group)
{
	for (size_t i = 0; i < PART_COUNT; i++) {
		int r = make_part(dir, &parts[i], owner, group);
		if (r < 0) {
			errno = -r;
			return parts[i].name;
		}
	}
	return NULL;
}

const char *session_parts_check(int dir)
{
	uid_t owner = geteuid();
	for (size_t i = 0; i < PART_COUNT; i++) {
		struct stat st;
		AUTO_FD fd = open_part(dir, &parts[i], O_PATH);
		int r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;
		/* As root all of them belong to one owner, whoever that is. */
		if (r == 0 && i == 0 && geteuid() == 0)
			owner = st.st_uid;
		bool foreign = r == 0 && st.st_uid != owner;
		if (foreign || (r == 0 && !parts[i].tree && (st.st_mode & 077)))
			r = -EPERM;
		if (r < 0) {
			errno = -r;
			return parts[i].name;
		}
	}
	return NULL;
}

void session_parts_mend(int dir)
{
	for (size_t i = 0; i < PART_COUNT; i++) {
		char path[32];
		struct stat st;
		AUTO_FD fd = open_part(dir, &parts[i], O_PATH);
		/* The descriptor names the directory for good: no link is followed here. */
		if (fd < 0 || fstat(fd, &st) < 0 || (st.st_mode & S_IRWXU) == S_IRWXU ||
			(st.st_uid != geteuid() && geteuid() != 0))
			continue;
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		(void)chmod(path, (st.st_mode & 07777) | S_IRWXU);
	}
}

int session_open_own(int parent, const char *name)
{
	AUTO_FD fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() || (st.st_mode & 077))
		return -EPERM;
	return fd_steal(&fd);
}

int session_open_lock(int dir)
{
	AUTO_FD fd = openat(dir, "lock", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		return -EPERM;
	return fd_steal(&fd);
}

int session_lock(int lock, bool exclusive)
{
	struct flock how = { .l_type = exclusive ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET };
	if (fcntl(lock, F_OFD_SETLK, &how) == 0)
		return 0;
	return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

int session_locked(int lock)
{
	struct flock how = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	if (fcntl(lock, F_OFD_GETLK, &how) < 0)
		return -errno;
	return how.l_type != F_UNLCK;
}

int session_clear(int place, const char *name)
{
	struct tree_report report = { 0 };
	AUTO_FD dir = openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = dir < 0 ? -errno : tree_clear(dir, &report);
	if (r == 0 && unlinkat(place, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r == -ENOENT ? 0 : r;
}

/* A hidden directory that nobody holds is what a killed call left. */
static void sweep_one(int place, const char *name)
{
	struct stat st;
	AUTO_FD dir = openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &st) < 0 || flock(dir, LOCK_EX | LOCK_NB) < 0)
		return;
	bool fresh = strncmp(name, SESSION_NEW, sizeof SESSION_NEW - 1) == 0 &&
		     st.st_ctim.tv_sec + FRESH_SECONDS > time(NULL);
	/* What cannot be removed now is tried again by the next call. */
	if (!fresh)
		(void)session_clear(place, name);
}

int session_sweep(int place, size_t *ret_count)
{
	int fd = openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	if (!list) {
		int r = -errno;
		fd_close(&fd);
		return r;
	}
	*ret_count = 0;
	for (const struct dirent *entry; (entry = readdir(list));) {
		if (strncmp(entry->d_name, SESSION_NEW, sizeof SESSION_NEW - 1) == 0 ||
			strncmp(entry->d_name, SESSION_GONE, sizeof SESSION_GONE - 1) == 0)
			sweep_one(place, entry->d_name);
		else if (entry->d_name[0] != '.')
			++*ret_count;
	}
	closedir(list);
	return 0;
}
