/*
 * pump: the caller's stdin on its way to the command. The command gets a pipe or the box's
 * terminal, never the caller's file. The caller's descriptor stays as it is (O_NONBLOCK would be
 * seen by all who share it), so it is read once after each POLLIN.
 */
#define _GNU_SOURCE
#include "supervise/run.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

void input_init(struct input *input, int from, int to, bool terminal)
{
	*input = (struct input){ .from = from, .to = to, .terminal = terminal, .last = '\n' };
	struct stat st;
	if (from < 0 || to < 0) {
		input_close(input);
		return;
	}
	if (fstat(from, &st) == 0) {
		input->splice = !terminal && S_ISFIFO(st.st_mode);
		input->socket = S_ISSOCK(st.st_mode);
	}
}

void input_close(struct input *input)
{
	fd_close(&input->to);
	free(input->pending);
	*input = (struct input){ .from = -1, .to = -1 };
}

void input_poll(const struct input *input, struct pollfd *from, struct pollfd *to)
{
	*from = (struct pollfd){ .fd = input->wait == INPUT_FROM ? input->from : -1,
		.events = POLLIN };
	/* While the caller is waited for, only the reader's going away is of interest: POLLERR. */
	*to = (struct pollfd){ .fd = input->wait == INPUT_OFF ? -1 : input->to,
		.events = input->wait == INPUT_TO ? POLLOUT : 0 };
}

/* Give the box what waits; then wait for more, or be done. */
static void flush(struct input *input)
{
	ssize_t n = input->len ? write(input->to, input->pending + input->at, input->len) : 0;
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		input_close(input); /* EPIPE: the command does not read it, as it pleases */
		return;
	}
	if (n > 0) {
		input->last = input->pending[input->at + (size_t)n - 1];
		input->at += (size_t)n;
		input->len -= (size_t)n;
	}
	if (input->len)
		input->wait = INPUT_TO;
	else if (input->from < 0)
		input_close(input);
	else
		input->wait = INPUT_FROM;
}

/* The caller has no more. A pipe just ends; a terminal is told by a character, as a user would. */
static void end_of_input(struct input *input)
{
	struct termios mode;
	if (!input->terminal || tcgetattr(input->to, &mode) < 0) {
		input_close(input);
		return;
	}
	/* termios(3): in the middle of a line the first one only ends the line. */
	input->len = input->last == '\n' ? 1 : 2;
	input->at = 0;
	input->from = -1;
	for (size_t i = 0; i < input->len; i++)
		input->pending[i] = (char)mode.c_cc[VEOF];
	flush(input);
}

/* Returns false when this pair of descriptors cannot be spliced. */
static bool splice_some(struct input *input)
{
	ssize_t n = splice(
		input->from, NULL, input->to, NULL, CHUNK, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n > 0)
		input->wait = INPUT_FROM;
	else if (n < 0 && errno == EINVAL)
		return false;
	else if (n < 0 && errno == EAGAIN)
		/* One of the two was ready, so it is the other one that was not. */
		input->wait = input->wait == INPUT_FROM ? INPUT_TO : INPUT_FROM;
	else if (n == 0 || errno != EINTR)
		input_close(input);
	return true;
}

static void read_some(struct run *run, struct input *input)
{
	if (!input->pending && !(input->pending = malloc(CHUNK))) {
		run_broken(run, ERR_no_resources, ENOMEM, "stdin");
		return;
	}
	ssize_t n = input->socket ? recv(input->from, input->pending, CHUNK, MSG_DONTWAIT)
				  : read(input->from, input->pending, CHUNK);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0)
		result_warning(run->result, "stdin_failed",
			"the caller's stdin could not be read to its end; the command saw end of "
			"file");
	if (n <= 0) {
		end_of_input(input);
		return;
	}
	input->at = 0;
	input->len = (size_t)n;
	flush(input);
}

void input_turn(struct run *run, short from, short to)
{
	struct input *input = &run->in;
	if (input->wait == INPUT_OFF)
		return;
	/* A pipe without a reader, or a terminal that nobody has open any more. */
	if (to & (POLLERR | POLLHUP | POLLNVAL)) {
		input_close(input);
		return;
	}
	if (input->len) {
		if (to)
			flush(input);
		return;
	}
	if (!from && !(to & POLLOUT))
		return;
	if (input->splice && splice_some(input))
		return;
	input->splice = false;
	if (input->wait == INPUT_FROM && from)
		read_some(run, input);
	else
		input->wait = INPUT_FROM;
}
