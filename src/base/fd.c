/* fd: descriptors as owned values. */
#define _GNU_SOURCE
#include "base/fd.h"
#include "base/arena.h"
#include "base/sys.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void fd_close(int *fd)
{
	if (*fd >= 0) {
		int saved = errno;
		close(*fd);
		errno = saved;
	}
	*fd = -1;
}

int fd_steal(int *fd)
{
	int taken = *fd;
	*fd = -1;
	return taken;
}

ssize_t fd_read_full(int fd, void *data, size_t len)
{
	size_t done = 0;
	while (done < len) {
		ssize_t n = read(fd, (char *)data + done, len - done);
		if (n == 0)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int fd_write_full(int fd, const void *data, size_t len)
{
	size_t done = 0;
	while (done < len) {
		ssize_t n = write(fd, (const char *)data + done, len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return 0;
}

int fd_read_file(struct arena *arena, int fd, size_t max, char **ret_data, size_t *ret_len)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	/* Files in /proc say size 0; a growing file is read up to the maximum. */
	size_t room = st.st_size > 0 ? (size_t)st.st_size : 4096;
	if (room > max)
		return -EFBIG;
	for (;;) {
		char *data = arena_alloc(arena, room + 2);
		if (lseek(fd, 0, SEEK_SET) < 0)
			return -errno;
		ssize_t n = fd_read_full(fd, data, room + 1);
		if (n < 0)
			return (int)n;
		if ((size_t)n <= room) {
			data[n] = 0;
			*ret_data = data;
			*ret_len = (size_t)n;
			return 0;
		}
		if (room >= max)
			return -EFBIG;
		room = room * 2 > max ? max : room * 2;
	}
}

int fd_close_others(int *keep, size_t count)
{
	unsigned from = 0;
	int r = 0;
	for (size_t i = 1; i < count; i++)
		for (size_t k = i; k > 0 && keep[k] < keep[k - 1]; k--) {
			int other = keep[k];
			keep[k] = keep[k - 1];
			keep[k - 1] = other;
		}
	for (size_t i = 0; i < count && r == 0; i++) {
		if (keep[i] < 0 || (unsigned)keep[i] < from)
			continue;
		if ((unsigned)keep[i] > from)
			r = sys_close_range(from, (unsigned)keep[i] - 1, 0);
		from = (unsigned)keep[i] + 1;
	}
	return r < 0 ? r : sys_close_range(from, ~0u, 0);
}
