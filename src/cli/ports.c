/*
 * ports: tells the caller, before the command runs, where the published ports are reached. Opens
 * nothing; the sockets are supervise/publish.c's.
 */
#define _GNU_SOURCE
#include "cli/ports.h"
#include "base/buf.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READY_MAX_MS 2000 /* for a full pipe */

static int unwritable(int fd, int errnum, struct err *err)
{
	return err_set(err, ERR_result_unwritable, errnum,
		"the published ports cannot be written to descriptor %d: %s", fd, strerror(errnum));
}

int ports_take(const struct options *options, int result_fd, int *ret_fd, struct err *err)
{
	const char *number = options_value(options, OPTION_run_ports_fd);
	char *end;
	*ret_fd = -1;
	if (!number)
		return 0;
	errno = 0;
	long fd = strtol(number, &end, 10);
	if (*number < '0' || *number > '9' || *end || errno || fd > INT_MAX)
		return err_set(
			err, ERR_usage, 0, "\"%s\" is not the number of a descriptor", number);
	if (fd <= STDERR_FILENO)
		return err_set(
			err, ERR_usage, 0, "--ports-fd needs a descriptor of its own, from 3 on");
	if (fd == result_fd)
		return err_set(err, ERR_usage, 0,
			"--ports-fd needs a descriptor of its own, not that of the result");
	int flags = fcntl((int)fd, F_GETFL);
	if (flags < 0)
		return unwritable((int)fd, errno, err);
	if ((flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH))
		return unwritable((int)fd, EBADF, err);
	/* The command must not have it, nor may it keep it open. */
	if (fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
		return unwritable((int)fd, errno, err);
	*ret_fd = (int)fd;
	return 0;
}

/*
 * A descriptor of the caller's, at which nobody may be reading, and signals are not heard now.
 * Less than PIPE_BUF bytes: a pipe takes all or nothing. 0 or -errno.
 */
static int write_once(int fd, const struct buf *text)
{
	struct pollfd ready = { .fd = fd, .events = POLLOUT };
	if (poll(&ready, 1, READY_MAX_MS) <= 0)
		return -ETIMEDOUT;
	ssize_t n = write(fd, buf_text(text), text->len);
	return n < 0 ? -errno : (size_t)n < text->len ? -EIO : 0;
}

int ports_tell(int *fd, const struct published *published, struct err *err)
{
	AUTO_BUF out = { 0 };
	if (*fd < 0)
		return 0;
	for (size_t i = 0; i < published->count; i++)
		buf_addf(&out, "{\"port\":%u,\"host_port\":%u}\n", published->ports[i].port,
			published->ports[i].host_port);
	int number = *fd, r = out.len ? write_once(number, &out) : 0;
	/* The reader's end of file: all has been told. */
	fd_close(fd);
	return r < 0 ? unwritable(number, -r, err) : 0;
}

void ports_say(const struct published *published)
{
	AUTO_BUF out = { 0 };
	for (size_t i = 0; i < published->count; i++)
		buf_addf(&out, "port %u of the box is at 127.0.0.1:%u\n", published->ports[i].port,
			published->ports[i].host_port);
	say_note(&out);
}
