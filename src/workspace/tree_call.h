/*
 * tree_call: the system calls of this room's walks, each returning its value or -errno. They bypass
 * the C library, so that no errno is written: the walk may run in a task that shares its memory.
 * Each name given to them is one name below a directory's descriptor.
 */
#ifndef AGENTBOX_WORKSPACE_TREE_CALL_H
#define AGENTBOX_WORKSPACE_TREE_CALL_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "base/sys.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452 /* Linux 6.6, the same number on every machine */
#endif

/* struct statx of statx(2), Linux 4.11: C libraries differ in how much of it they know. */
struct tree_time {
	int64_t sec;
	uint32_t nsec;
	int32_t unused;
};
struct tree_stat {
	uint32_t mask, blksize;
	uint64_t attributes;
	uint32_t nlink, uid, gid;
	uint16_t mode, unused;
	uint64_t ino, size, blocks, attributes_mask;
	struct tree_time atime, btime, ctime, mtime;
	uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
	uint64_t mnt_id;
	uint64_t spare[13];
};
_Static_assert(sizeof(struct tree_stat) == 256, "the kernel's size");

#define TREE_STAT_MASK      0x17ffu /* STATX_BASIC_STATS | STATX_MNT_ID */
#define TREE_ATTR_MOUNTROOT 0x2000u /* STATX_ATTR_MOUNT_ROOT, Linux 5.8 */

static inline int tree_stat_at(int dir, const char *name, struct tree_stat *ret)
{
	int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (*name ? 0 : AT_EMPTY_PATH);
	return (int)sys_bare6(SYS_statx, dir, (long)name, flags, TREE_STAT_MASK, (long)ret, 0);
}

static inline int tree_open_at(int dir, const char *name, int flags, mode_t mode)
{
	flags |= O_NOFOLLOW | O_CLOEXEC;
	return (int)sys_bare6(SYS_openat, dir, (long)name, flags, (long)mode, 0, 0);
}

/* For reading. O_NONBLOCK: what lies there by now could be a FIFO, and is refused by O_DIRECTORY.
 */
static inline int tree_open_dir(int dir, const char *name)
{
	return tree_open_at(dir, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);
}

static inline int tree_open_path(int dir, const char *name)
{
	return tree_open_at(dir, name, O_PATH, 0);
}

/* Close *fd unless it is negative, and set it to -1. */
static inline void tree_close(int *fd)
{
	if (*fd >= 0)
		(void)sys_bare(SYS_close, *fd, 0, 0);
	*fd = -1;
}

static inline int tree_mkdir_at(int dir, const char *name, mode_t mode)
{
	return (int)sys_bare(SYS_mkdirat, dir, (long)name, (long)mode);
}

static inline int tree_unlink_at(int dir, const char *name, int flags)
{
	return (int)sys_bare(SYS_unlinkat, dir, (long)name, flags);
}

static inline int tree_rename_at(
	int dir, const char *name, int new_dir, const char *new_name, unsigned flags)
{
	return (int)sys_bare6(
		SYS_renameat2, dir, (long)name, new_dir, (long)new_name, (long)flags, 0);
}

static inline int tree_mknod_at(int dir, const char *name, mode_t mode)
{
	return (int)sys_bare6(SYS_mknodat, dir, (long)name, (long)mode, 0, 0, 0);
}

static inline int64_t tree_seek(int fd, int64_t offset, int whence)
{
	return sys_bare(SYS_lseek, fd, offset, whence);
}

static inline int tree_fchmod(int fd, mode_t mode)
{
	return (int)sys_bare(SYS_fchmod, fd, (long)mode, 0);
}

/* name NULL: of the descriptor itself. times[0]: access, [1]: modification. */
static inline int tree_set_times(int fd, const char *name, const struct timespec times[2])
{
	int flags = name ? AT_SYMLINK_NOFOLLOW : 0;
	return (int)sys_bare6(SYS_utimensat, fd, (long)name, (long)times, flags, 0, 0);
}

static inline uint64_t tree_dev(const struct tree_stat *st)
{
	return (uint64_t)st->dev_major << 32 | st->dev_minor;
}

#endif
