/*
 * tree_file: the data of one regular file. It never opens anything that was not seen to be a
 * regular file, and waits for nobody.
 */
#define _GNU_SOURCE
#include "workspace/tree_file.h"

#include <linux/fs.h>

#define CHUNK ((uint64_t)1 << 30) /* of one copy_file_range */

/* By an O_PATH descriptor, so that what is made readable is what is opened. */
static int open_unreadable(int dir, const char *name, mode_t *ret_mode)
{
	int path = tree_open_path(dir, name);
	if (path < 0)
		return path;
	struct tree_stat st;
	int fd = tree_stat_at(path, "", &st);
	if (fd == 0 && !S_ISREG(st.mode))
		fd = -ESTALE;
	if (fd == 0 && (st.mode & 0400))
		fd = -EACCES; /* the mode is not what keeps us out */
	if (fd == 0)
		fd = tree_path_chmod(path, (st.mode & 07777) | 0400);
	if (fd == -EPERM) /* not the owner */
		fd = -EACCES;
	if (fd == 0) {
		char proc[32];
		tree_proc_name(path, proc);
		fd = (int)sys_bare6(SYS_openat, AT_FDCWD, (long)proc,
			O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0, 0, 0);
		if (fd == -ENOENT || fd == -ENOTDIR) /* no /proc */
			fd = tree_open_at(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
		if (fd < 0)
			(void)tree_path_chmod(path, st.mode & 07777);
		*ret_mode = st.mode;
	}
	tree_close(&path);
	return fd;
}

int tree_file_open(int dir, const char *name, struct tree_stat *ret, mode_t *ret_mode)
{
	*ret_mode = 0;
	int fd = tree_open_at(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd == -EACCES)
		fd = open_unreadable(dir, name, ret_mode);
	if (fd < 0)
		return fd == -ELOOP || fd == -ENXIO ? -ESTALE : fd;
	int r = tree_stat_at(fd, "", ret);
	if (r == 0 && !S_ISREG(ret->mode))
		r = -ESTALE;
	if (r == 0 && *ret_mode)
		ret->mode = (uint16_t)*ret_mode;
	if (r < 0)
		tree_close(&fd);
	return r < 0 ? r : fd;
}

static int write_all(int to, const char *data, long size, uint64_t at)
{
	while (size > 0) {
		long n = sys_bare6(SYS_pwrite64, to, (long)data, size, (long)at, 0, 0);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		data += n;
		size -= n;
		at += (uint64_t)n;
	}
	return 0;
}

/* Through the buffer. The count, 0 at the end of the file, or -errno. */
static long copy_buffer(struct tree_walk *walk, int from, int to, uint64_t at, uint64_t size)
{
	size_t want = size < TREE_BUFFER ? (size_t)size : TREE_BUFFER;
	long n;
	do
		n = sys_bare6(SYS_pread64, from, (long)walk->buffer, (long)want, (long)at, 0, 0);
	while (n == -EINTR);
	if (n <= 0)
		return n;
	int r = write_all(to, walk->buffer, n, at);
	return r < 0 ? r : n;
}

/* Likewise, the kernel copying where it can. */
static long copy_some(struct tree_walk *walk, struct tree_file_ways *ways, int from, int to,
	uint64_t at, uint64_t size)
{
	if (ways->range) {
		int64_t in = (int64_t)at, out = (int64_t)at;
		long n = sys_bare6(SYS_copy_file_range, from, (long)&in, to, (long)&out,
			(long)(size < CHUNK ? size : CHUNK), 0);
		if (n > 0)
			return n;
		if (n == -ENOSPC || n == -EDQUOT || n == -EIO || n == -EFBIG)
			return n;
		/* 0 is also the answer of file systems that make their files up when they are read.
		 */
		ways->range = n == 0 || n == -EINTR || n == -EAGAIN;
	}
	return copy_buffer(walk, from, to, at, size);
}

/* One piece of data, [*at, end). *at: how far it came; before `end` when the file has shrunk. */
static int copy_piece(struct tree_walk *walk, struct tree_file_ways *ways, int from, int to,
	uint64_t *at, uint64_t end)
{
	while (*at < end) {
		long n = copy_some(walk, ways, from, to, *at, end - *at);
		if (n <= 0)
			return (int)n;
		*at += (uint64_t)n;
	}
	return 0;
}

/* The next piece of data at or behind `at`; end == at when there is none. */
static void find_piece(int from, uint64_t size, bool holes, uint64_t *at, uint64_t *end)
{
	*end = size;
	if (!holes)
		return;
	int64_t data = tree_seek(from, (int64_t)*at, SEEK_DATA);
	if (data == -ENXIO || data >= (int64_t)size) {
		*at = size;
		return;
	}
	if (data < (int64_t)*at) /* the file system does not tell */
		return;
	*at = (uint64_t)data;
	int64_t hole = tree_seek(from, data, SEEK_HOLE);
	if (hole > data && hole < (int64_t)size)
		*end = (uint64_t)hole;
}

static bool share(struct tree_file_ways *ways, int from, int to)
{
	int r = (int)sys_bare(SYS_ioctl, to, FICLONE, from);
	if (r == -EOPNOTSUPP || r == -ENOTTY || r == -EXDEV || r == -ENOSYS)
		ways->reflink = false;
	return r == 0;
}

int tree_file_data(struct tree_walk *walk, struct tree_file_ways *ways, int from, int to,
	const struct tree_stat *st, struct tree_report *report)
{
	uint64_t size = st->size, at = 0, end = 0, bytes = 0;
	if (size > INT64_MAX)
		return -EFBIG;
	if (ways->reflink && size > 0 && share(ways, from, to)) {
		report->shared_bytes += size;
		return 0;
	}
	bool holes = st->blocks < (size + 511) / 512;
	while (at < size) {
		find_piece(from, size, holes, &at, &end);
		uint64_t start = at;
		int r = copy_piece(walk, ways, from, to, &at, end);
		bytes += at - start;
		if (r < 0)
			return r;
		if (at < end) {
			size = at; /* it has shrunk */
			break;
		}
	}
	report->bytes += bytes;
	return holes ? (int)sys_bare(SYS_ftruncate, to, (long)size, 0) : 0;
}
