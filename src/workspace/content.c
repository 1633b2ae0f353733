/* content: the bytes of regular files. Knows no names. */
#define _GNU_SOURCE
#include "workspace/content.h"
#include "workspace/tree_call.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define CHUNK ((uint64_t)1 << 30) /* of one copy_file_range */
#define PIECE ((size_t)32 << 10)

/* FICLONE of linux/fs.h, which does not go together with every C library's headers. */
#define CLONE _IOW(0x94, 9, int)

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
static long copy_buffer(const struct content_copy *copy, uint64_t at, uint64_t size)
{
	size_t want = size < copy->room ? (size_t)size : copy->room;
	long n;
	do
		n = sys_bare6(
			SYS_pread64, copy->from, (long)copy->buffer, (long)want, (long)at, 0, 0);
	while (n == -EINTR);
	if (n <= 0)
		return n;
	int r = write_all(copy->to, copy->buffer, n, at);
	return r < 0 ? r : n;
}

/* Likewise, the kernel copying where it can. */
static long copy_some(const struct content_copy *copy, uint64_t at, uint64_t size)
{
	if (copy->ways->range) {
		int64_t in = (int64_t)at, out = (int64_t)at;
		long n = sys_bare6(SYS_copy_file_range, copy->from, (long)&in, copy->to, (long)&out,
			(long)(size < CHUNK ? size : CHUNK), 0);
		if (n > 0)
			return n;
		if (n == -ENOSPC || n == -EDQUOT || n == -EIO || n == -EFBIG)
			return n;
		/* 0 is also the answer of file systems that make their files up when they are read.
		 */
		copy->ways->range = n == 0 || n == -EINTR || n == -EAGAIN;
	}
	return copy_buffer(copy, at, size);
}

/* One piece of data, [*at, end). *at: how far it came; before `end` when the file has shrunk. */
static int copy_piece(const struct content_copy *copy, uint64_t *at, uint64_t end)
{
	while (*at < end) {
		long n = copy_some(copy, *at, end - *at);
		if (n <= 0)
			return (int)n;
		*at += (uint64_t)n;
	}
	return 0;
}

/* The next piece of data at or behind *at, to *end; *at is `size` when there is none. */
static void find_piece(int fd, uint64_t size, uint64_t *at, uint64_t *end)
{
	*end = size;
	int64_t data = tree_seek(fd, (int64_t)*at, SEEK_DATA);
	if (data == -ENXIO || data >= (int64_t)size) {
		*at = size;
		return;
	}
	if (data < (int64_t)*at) /* the file system does not tell */
		return;
	*at = (uint64_t)data;
	int64_t hole = tree_seek(fd, data, SEEK_HOLE);
	if (hole > data && hole < (int64_t)size)
		*end = (uint64_t)hole;
}

static bool share(const struct content_copy *copy)
{
	int r = (int)sys_bare(SYS_ioctl, copy->to, (long)CLONE, copy->from);
	if (r == -EOPNOTSUPP || r == -ENOTTY || r == -EXDEV || r == -ENOSYS)
		copy->ways->reflink = false;
	return r == 0;
}

int content_copy(struct content_copy *copy)
{
	uint64_t at = 0, end = copy->size;
	if (copy->size > INT64_MAX)
		return -EFBIG;
	if (copy->ways->reflink && copy->size > 0 && share(copy)) {
		copy->shared = copy->size;
		return 0;
	}
	while (at < copy->size) {
		if (copy->holes)
			find_piece(copy->from, copy->size, &at, &end);
		uint64_t start = at;
		int r = copy_piece(copy, &at, end);
		copy->copied += at - start;
		if (r < 0)
			return r;
		if (at < end)
			copy->size = at; /* it has shrunk */
	}
	int64_t now = copy->holes ? tree_seek(copy->from, 0, SEEK_END) : 0;
	if (copy->holes && now >= 0 && now < (int64_t)copy->size)
		copy->size = (uint64_t)now; /* likewise, in a hole */
	return copy->holes ? (int)sys_bare(SYS_ftruncate, copy->to, (long)copy->size, 0) : 0;
}

/* Up to `size` bytes at `at`; short only at the end of the file. */
static long read_at(int fd, char *data, size_t size, uint64_t at)
{
	size_t done = 0;
	while (done < size) {
		long n = sys_bare6(SYS_pread64, fd, (long)(data + done), (long)(size - done),
			(long)(at + done), 0, 0);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? n : (long)done;
		done += (size_t)n;
	}
	return (long)done;
}

int content_same(int a, int b)
{
	char one[PIECE], other[PIECE];
	struct tree_stat st[2];
	int r = tree_stat_at(a, "", &st[0]);
	if (r == 0)
		r = tree_stat_at(b, "", &st[1]);
	if (r < 0 || st[0].size != st[1].size)
		return r;
	for (uint64_t at = 0, size = st[0].size; at < size;) {
		uint64_t next[2] = { at, at }, end;
		find_piece(a, size, &next[0], &end);
		find_piece(b, size, &next[1], &end);
		at = next[0] < next[1] ? next[0] : next[1];
		if (at == size)
			break;
		size_t want = size - at < PIECE ? (size_t)(size - at) : PIECE;
		long n = read_at(a, one, want, at), m = read_at(b, other, want, at);
		if (n < 0 || m < 0)
			return (int)(n < 0 ? n : m);
		if (n != m || memcmp(one, other, (size_t)n) != 0)
			return 0;
		if ((size_t)n < want) /* both have shrunk */
			return 1;
		at += want;
	}
	return 1;
}
