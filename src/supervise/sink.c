/*
 * sink: writes to the caller's descriptors without ever blocking in it, and without changing
 * them: O_NONBLOCK belongs to the open file description, which the caller shares.
 */
#define _GNU_SOURCE
#include "supervise/run.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* pty(7): after POLLOUT a terminal takes at least so much (WAKEUP_CHARS in the kernel). */
#define TERMINAL_CHUNK 256

/* An open file description of our own of the same pipe or terminal, or -1. */
static int reopen(int fd)
{
	char path[sizeof "/proc/self/fd/" + 3 * sizeof fd];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void sink_open(struct sink *ret, int caller_fd)
{
	struct stat st;
	*ret = (struct sink){ .fd = caller_fd, .chunk = CHUNK };
	if (caller_fd < 0 || fstat(caller_fd, &st) < 0)
		return;
	unsigned number;
	bool terminal = S_ISCHR(st.st_mode) && isatty(caller_fd);
	/* A file keeps its position and O_APPEND; opening a terminal's master makes another one. */
	if (S_ISSOCK(st.st_mode)) {
		ret->socket = true;
		return;
	}
	if (!S_ISFIFO(st.st_mode) && !terminal)
		return;
	int own = terminal && ioctl(caller_fd, TIOCGPTN, &number) == 0 ? -1 : reopen(caller_fd);
	if (own >= 0) {
		ret->fd = own;
		ret->own = true;
	} else {
		/* pipe(7): POLLOUT promises room for PIPE_BUF bytes. */
		ret->chunk = terminal ? TERMINAL_CHUNK : PIPE_BUF;
	}
}

ssize_t sink_write(const struct sink *sink, const char *data, size_t len)
{
	if (len > sink->chunk)
		len = sink->chunk;
	ssize_t n = sink->socket ? send(sink->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL)
				 : write(sink->fd, data, len);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return n;
}

void sink_close(struct sink *sink)
{
	if (sink->own)
		fd_close(&sink->fd);
	*sink = (struct sink){ .fd = -1 };
}
