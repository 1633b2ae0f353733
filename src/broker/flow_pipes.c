/*
 * flow_pipes: the pipes that flows borrow while they carry much. Knows no flow.
 */
#define _GNU_SOURCE
#include "broker/flow_pipes.h"
#include "base/fd.h"

#include <fcntl.h>
#include <unistd.h>

/* Of a user with many pipes the kernel gives new ones a page or two (pipe(7)): not worth having. */
#define LEAST_SIZE 65536

/* When there are no more descriptors, asking for some with each piece would cost more than it can
 * bring. */
#define PAUSE 256

void flow_pipes_init(struct flow_pipes *pipes)
{
	*pipes = (struct flow_pipes){ 0 };
}

void flow_pipes_close(struct flow_pipes *pipes)
{
	while (pipes->idle_count) {
		int *pipe = pipes->idle[--pipes->idle_count];
		fd_close(&pipe[0]);
		fd_close(&pipe[1]);
		pipes->made--;
	}
}

static bool make(int ret[2])
{
	if (pipe2(ret, O_CLOEXEC | O_NONBLOCK) < 0)
		return false;
	int size = fcntl(ret[1], F_SETPIPE_SZ, FLOW_PIPE_SIZE);
	if (size < 0)
		size = fcntl(ret[1], F_GETPIPE_SZ);
	if (size >= LEAST_SIZE)
		return true;
	fd_close(&ret[0]);
	fd_close(&ret[1]);
	return false;
}

bool flow_pipes_borrow(struct flow_pipes *pipes, int ret[2])
{
	if (pipes->idle_count) {
		int *pipe = pipes->idle[--pipes->idle_count];
		ret[0] = fd_steal(&pipe[0]);
		ret[1] = fd_steal(&pipe[1]);
		return true;
	}
	if (pipes->pause) {
		pipes->pause--;
		return false;
	}
	int made[2];
	if (pipes->made >= FLOW_PIPES_MAX)
		return false;
	if (!make(made)) {
		pipes->pause = PAUSE;
		return false;
	}
	pipes->made++;
	ret[0] = made[0];
	ret[1] = made[1];
	return true;
}

void flow_pipes_return(struct flow_pipes *pipes, int pipe[2], bool empty)
{
	if (pipe[0] < 0)
		return;
	if (empty && pipes->idle_count < FLOW_PIPES_IDLE) {
		int *idle = pipes->idle[pipes->idle_count++];
		idle[0] = fd_steal(&pipe[0]);
		idle[1] = fd_steal(&pipe[1]);
		return;
	}
	fd_close(&pipe[0]);
	fd_close(&pipe[1]);
	pipes->made--;
}
