/* content: the bytes of regular files. Knows no names. */
#define _GNU_SOURCE
#include "workspace/content.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PIECE ((size_t)32 << 10)

/* FICLONE of linux/fs.h, which does not go together with every C library's headers. */
#define CLONE _IOW(0x94, 9, int)

static int copy_plain(int from, int to, off_t at, off_t end)
{
	char piece[PIECE];
	while (at < end) {
		size_t want = end - at < (off_t)PIECE ? (size_t)(end - at) : PIECE;
		ssize_t n = pread(from, piece, want, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		for (ssize_t done = 0; done < n;) {
			ssize_t w = pwrite(to, piece + done, (size_t)(n - done), at + done);
			if (w < 0 && errno != EINTR)
				return -errno;
			done += w > 0 ? w : 0;
		}
		at += n;
	}
	return 0;
}

static int copy_range(int from, int to, off_t at, off_t end)
{
	while (at < end) {
		off_t in = at, out = at;
		ssize_t n = copy_file_range(from, &in, to, &out, (size_t)(end - at), 0);
		if (n < 0 && errno == EINTR)
			continue;
		/* Whatever it cannot do (other file systems, old kernels), plain copying can. */
		if (n <= 0)
			return copy_plain(from, to, at, end);
		at += n;
	}
	return 0;
}

int content_copy(int from, int to, uint64_t size)
{
	if (size > INT64_MAX)
		return -EFBIG;
	if (size == 0 || ioctl(to, CLONE, from) == 0)
		return 0;
	if (ftruncate(to, (off_t)size) < 0)
		return -errno;
	for (off_t at = 0; at < (off_t)size;) {
		off_t data = lseek(from, at, SEEK_DATA), hole;
		if (data < 0 && errno == ENXIO)
			return 0; /* nothing but a hole is left */
		if (data < 0) {
			data = at;
			hole = (off_t)size;
		} else {
			hole = lseek(from, data, SEEK_HOLE);
		}
		if (hole <= data || hole > (off_t)size)
			hole = (off_t)size;
		int r = copy_range(from, to, data, hole);
		if (r < 0)
			return r;
		at = hole;
	}
	return 0;
}

int content_same(int a, int b)
{
	char one[PIECE], other[PIECE];
	if (lseek(a, 0, SEEK_SET) < 0 || lseek(b, 0, SEEK_SET) < 0)
		return -errno;
	for (;;) {
		ssize_t n = fd_read_full(a, one, sizeof one),
			m = fd_read_full(b, other, sizeof other);
		if (n < 0 || m < 0)
			return (int)(n < 0 ? n : m);
		if (n != m || memcmp(one, other, (size_t)n) != 0)
			return 0;
		if (n < (ssize_t)sizeof one)
			return 1;
	}
}
