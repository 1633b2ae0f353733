/*
 * capture: the command's output, into the result or on to the caller. Memory is bounded by the
 * stream's maximum and one chunk; a caller that does not read stops the command, nothing else.
 */
#define _GNU_SOURCE
#include "supervise/run.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void output_init(struct output *output, int fd, struct stream *stream, size_t max, int caller_fd)
{
	*output = (struct output){ .fd = fd, .stream = stream, .live = caller_fd >= 0 };
	sink_open(&output->sink, caller_fd);
	stream_init(stream, output->live ? 0 : max);
}

bool output_busy(const struct output *output)
{
	return output->len > 0;
}

void output_poll(const struct output *output, struct pollfd *from, struct pollfd *to)
{
	bool busy = output_busy(output);
	*from = (struct pollfd){ .fd = busy ? -1 : output->fd, .events = POLLIN };
	*to = (struct pollfd){ .fd = busy ? output->sink.fd : -1, .events = POLLOUT };
}

/*
 * The caller takes no more. When its reader went away, ours does too, so that the command learns it
 * by SIGPIPE or EPIPE as in any pipeline; for any other reason (a full disk) the command's end
 * stays its own, and the rest is only counted.
 */
static void caller_closed(struct run *run, struct output *output, int errnum)
{
	static const char *const words[] = {
		"the reader of the command's output went away; the rest was dropped",
		"the command's output could not be passed on; the rest was dropped",
	};
	sink_close(&output->sink);
	output->len = 0;
	if (errnum == EPIPE)
		fd_close(&output->fd);
	result_warning(run->result, "output_closed", words[errnum != EPIPE]);
}

/* Pass on what waits. */
static void flush(struct run *run, struct output *output)
{
	ssize_t n = sink_write(&output->sink, output->pending + output->at, output->len);
	if (n < 0) {
		caller_closed(run, output, (int)-n);
		return;
	}
	output->at += (size_t)n;
	output->len -= (size_t)n;
}

static void pass_on(struct run *run, struct output *output, const char *data, size_t len)
{
	output->stream->total += len;
	if (output->sink.fd < 0)
		return;
	/* Only what cannot block: the first write follows no POLLOUT, unless it is our own to fail.
	 */
	ssize_t n = output->sink.chunk == CHUNK ? sink_write(&output->sink, data, len) : 0;
	if (n < 0) {
		caller_closed(run, output, (int)-n);
		return;
	}
	if ((size_t)n == len)
		return;
	if (!output->pending && !(output->pending = malloc(CHUNK))) {
		run_broken(run, ERR_no_resources, ENOMEM, "output");
		return;
	}
	output->at = 0;
	output->len = len - (size_t)n;
	memcpy(output->pending, data + n, output->len);
}

static void take(struct run *run, struct output *output, const char *data, size_t len)
{
	uint64_t before = output->stream->total, max = run->plan->output_max;
	if (output->live)
		pass_on(run, output, data, len);
	else if (stream_add(output->stream, data, len) < 0)
		run_broken(run, ERR_no_resources, ENOMEM, "output");
	if (run->plan->output_kill && before <= max && output->stream->total > max)
		run_event(run, EVENT_OUTPUT_LIMIT);
}

/* One read. Returns the count, 0 when there is no more, now or ever. */
static size_t read_some(struct run *run, struct output *output)
{
	if (output->fd < 0)
		return 0;
	ssize_t n = read(output->fd, run->chunk, CHUNK);
	if (n > 0) {
		take(run, output, run->chunk, (size_t)n);
		return (size_t)n;
	}
	/* EIO: nobody has the terminal's other end open any more (pty(7)). */
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		fd_close(&output->fd);
	return 0;
}

void output_turn(struct run *run, struct output *output)
{
	if (output_busy(output))
		flush(run, output);
	/* A short read has emptied the pipe: asking once more would cost a call for nothing. */
	for (int i = 0; i < READS_PER_TURN && !output_busy(output); i++)
		if (read_some(run, output) < CHUNK)
			return;
}

void output_drain(struct run *run, struct output *output)
{
	/*
	 * What a pipe can hold is all that can be left. More than that comes from a stranger who
	 * holds the other end, and nobody waits for him.
	 */
	int size = output->fd >= 0 ? fcntl(output->fd, F_GETPIPE_SZ) : 0;
	size_t left = size > 0 ? (size_t)size : CHUNK;
	while (!output_busy(output)) {
		size_t n = read_some(run, output);
		left -= n < left ? n : left;
		if (n == 0 || left == 0)
			break;
	}
	if (!output_busy(output))
		fd_close(&output->fd);
}

void output_close(struct output *output)
{
	fd_close(&output->fd);
	sink_close(&output->sink);
	free(output->pending);
	output->pending = NULL;
	output->len = 0;
}
