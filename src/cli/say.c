/*
 * say: words for people on stderr, and the program's products on stdout. What comes from outside
 * (file names, messages) only reaches a terminal through buf_add_visible().
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/cli.h"

/* As a tool that never heard of SIGPIPE would end. */
static void die_by_sigpipe(void)
{
	signal(SIGPIPE, SIG_DFL);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	raise(SIGPIPE);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	exit(128 + SIGPIPE);
}

int say_all(int fd, const void *data, size_t len)
{
	const char *at = data;
	while (len > 0) {
		ssize_t n = write(fd, at, len);
		if (n >= 0) {
			at += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			/* A caller's pipe may be non-blocking, and that is the caller's to choose.
			 */
			poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, -1);
		} else if (errno == EPIPE) {
			die_by_sigpipe();
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

int say_out(const struct buf *out, struct err *err)
{
	int error = say_all(STDOUT_FILENO, buf_text(out), out->len);
	if (error)
		return err_set(err, ERR_result_unwritable, -error, "cannot write to stdout: %s",
			strerror(-error));
	return 0;
}

void say_note(const struct buf *out)
{
	const char *at = buf_text(out);
	size_t len = out->len;
	while (len > 0) {
		ssize_t n = write(STDERR_FILENO, at, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return;
		at += n;
		len -= (size_t)n;
	}
}

void say_error_text(const struct err *err, const char *prefix, struct buf *out)
{
	buf_adds(out, prefix);
	if (err->file[0]) {
		buf_add_visible(out, err->file, strlen(err->file), false);
		if (err->line > 0)
			buf_addf(out, ":%d", err->line);
		if (err->line > 0 && err->column > 0)
			buf_addf(out, ":%d", err->column);
		buf_adds(out, ": ");
	}
	buf_add_visible(out, err->text, strlen(err->text), false);
	buf_adds(out, "\n");
	const char *hint = err_hint(err);
	if (hint) {
		buf_adds(out, "hint: ");
		buf_add_visible(out, hint, strlen(hint), false);
		buf_adds(out, "\n");
	}
}

void say_error(const struct err *err)
{
	AUTO_BUF out = { 0 };
	say_error_text(err, "agentbox: ", &out);
	say_note(&out);
}
