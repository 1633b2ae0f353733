/*
 * flow: moves the bytes of one connection, both ways; see flow.h. A way's work is a row of steps,
 * each of which passes one piece or says why none can pass.
 *
 * Only recv(2) decides that a source is empty or has ended: splice(2) answers 0 and EAGAIN for
 * other reasons too, one of them urgent data.
 */
#define _GNU_SOURCE
#include "broker/flow.h"
#include "broker/flow_pipes.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE 16384         /* looked at at once; so much means that a way carries much */
#define SHARE (1024 * 1024) /* bytes of one way in one turn */

enum step {
	STEP_ON,    /* go on */
	STEP_WAIT,  /* nothing can pass before something happens */
	STEP_BREAK, /* flow.error tells what has failed */
	STEP_REFUSE,
};

static enum flow_side other(enum flow_side side)
{
	return side == FLOW_BOX ? FLOW_OUT : FLOW_BOX;
}

static enum step broken(struct flow *flow, int error)
{
	if (!flow->error)
		flow->error = error;
	return STEP_BREAK;
}

void flow_init(struct flow *flow, int box, int out, struct flow_pipes *pipes)
{
	*flow = (struct flow){ .sock = { box, out }, .pipes = pipes };
	for (int side = FLOW_BOX; side <= FLOW_OUT; side++)
		flow->way[side].pipe[0] = flow->way[side].pipe[1] = -1;
	flow->way[FLOW_OUT].may = FLOW_ALL;
}

int flow_prepare(int sock)
{
	int on = 1;
	/* The sender has decided what a piece is. */
	if (setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
		return -errno;
	/* Without it an urgent byte is left out of what is read, whenever its mark comes: the bytes
	 * behind one that was looked at would change their places. */
	return setsockopt(sock, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on) < 0 ? -errno : 0;
}

void flow_ready(struct flow *flow, enum flow_side side, uint32_t events)
{
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		flow->way[side].readable = true;
	if (events & EPOLLOUT)
		flow->way[other(side)].writable = true;
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		flow->hangup[side] = true;
	if (events & EPOLLPRI)
		flow->urgent[side] = true;
	if (events & EPOLLERR)
		flow->failed[side] = true;
}

void flow_ask_again(struct flow *flow)
{
	flow->ask = true;
}

/* Reading gave an error, or, with error 0, the end. */
static enum step nothing_there(struct flow *flow, enum flow_side side, int error)
{
	struct flow_way *way = &flow->way[side];
	if (error == EINTR)
		return STEP_ON;
	if (error == EAGAIN) {
		way->readable = false;
		return STEP_WAIT;
	}
	/* What has failed has no end that looks like a good one. */
	if (error || flow->failed[side])
		return broken(flow, error ? error : ECONNRESET);
	if (shutdown(flow->sock[other(side)], SHUT_WR) < 0)
		return broken(flow, errno);
	way->ended = true;
	return STEP_WAIT;
}

/*
 * Less came than was asked for: there is no more, and what comes later is an event of its own
 * (epoll(7)). But an urgent mark parts what is there, and behind the last byte may be the end, of
 * which there was an event already.
 */
static void note_short(struct flow *flow, enum flow_side side)
{
	if (!flow->urgent[side] && !flow->hangup[side])
		flow->way[side].readable = false;
}

/* Look at what is there. Returns the count, 0 when none: *ret tells how to go on. */
static size_t look(
	struct flow *flow, enum flow_side side, uint8_t *data, size_t max, enum step *ret)
{
	ssize_t n = recv(flow->sock[side], data, max, MSG_PEEK | MSG_DONTWAIT);
	if (n > 0)
		return (size_t)n;
	*ret = nothing_there(flow, side, n < 0 ? errno : 0);
	return 0;
}

/* Take what was looked at. An urgent mark that came meanwhile parts it. */
static enum step take(struct flow *flow, enum flow_side side, uint8_t *data, size_t len)
{
	while (len) {
		/* TCP copies nothing then (tcp(7)); other sockets do not know the flag here. */
		ssize_t n = recv(flow->sock[side], data, len, MSG_TRUNC | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return broken(flow, n < 0 ? errno : EIO);
		len -= (size_t)n;
	}
	return STEP_ON;
}

/* Returns the count, 0 when none could be sent: *ret tells how to go on. */
static size_t send_some(
	struct flow *flow, enum flow_side side, const uint8_t *data, size_t len, enum step *ret)
{
	struct flow_way *way = &flow->way[side];
	ssize_t n = send(flow->sock[other(side)], data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	*ret = STEP_ON;
	if (n < 0 && errno == EINTR)
		return 0;
	if (n < 0 && errno != EAGAIN) {
		*ret = broken(flow, errno);
		return 0;
	}
	/* Less than all means that there is no room, and that there will be an edge (epoll(7)). */
	if (n < (ssize_t)len) {
		way->writable = false;
		*ret = STEP_WAIT;
	}
	way->bytes += n > 0 ? (uint64_t)n : 0;
	return n > 0 ? (size_t)n : 0;
}

/* Something that the gate need not see, or there is none. */
static enum step pass_piece(struct flow *flow, enum flow_side side, uint8_t *scratch)
{
	struct flow_way *way = &flow->way[side];
	/* When it carries much and there is no pipe for it, larger pieces take fewer calls. */
	size_t max = way->busy ? FLOW_GATE_MAX : PIECE;
	enum step step;
	if (way->may < max)
		max = (size_t)way->may;
	size_t len = look(flow, side, scratch, max, &step);
	if (!len)
		return step;
	way->busy = len >= PIECE;
	size_t sent = send_some(flow, side, scratch, len, &step);
	if (!sent)
		return step;
	if (way->may != FLOW_ALL)
		way->may -= sent;
	if (side == FLOW_OUT && flow->watch && !flow->watch(flow->owner, scratch, sent))
		flow->watch = NULL;
	/* With the rest of it unsent it is looked at again, and then by what was known now. */
	if (len < max && sent == len)
		note_short(flow, side);
	return take(flow, side, scratch, sent) == STEP_BREAK ? STEP_BREAK : step;
}

static enum step fill_pipe(struct flow *flow, enum flow_side side)
{
	struct flow_way *way = &flow->way[side];
	size_t max = way->may < FLOW_PIPE_SIZE ? (size_t)way->may : FLOW_PIPE_SIZE;
	ssize_t n = splice(
		flow->sock[side], NULL, way->pipe[1], NULL, max, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n < 0 && errno != EAGAIN && errno != EINTR && errno != ENOMEM && errno != EINVAL)
		return broken(flow, errno);
	way->busy = n >= PIECE;
	if (n > 0) {
		way->in_pipe = (size_t)n;
		if (way->may != FLOW_ALL)
			way->may -= (uint64_t)n;
	} else {
		flow_pipes_return(flow->pipes, way->pipe, true);
	}
	return STEP_ON;
}

static enum step empty_pipe(struct flow *flow, enum flow_side side)
{
	struct flow_way *way = &flow->way[side];
	ssize_t n = splice(way->pipe[0], NULL, flow->sock[other(side)], NULL, way->in_pipe,
		SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n < 0 && errno == EINTR)
		return STEP_ON;
	if (n < 0 && errno == EAGAIN) {
		way->writable = false;
		return STEP_WAIT;
	}
	if (n <= 0)
		return broken(flow, n < 0 ? errno : EIO);
	way->bytes += (uint64_t)n;
	way->in_pipe -= (size_t)n;
	if (!way->in_pipe && !way->busy)
		flow_pipes_return(flow->pipes, way->pipe, true);
	return STEP_ON;
}

static void let_go(struct flow *flow)
{
	flow->pipes->held -= flow->held_len;
	free(flow->held);
	flow->held = NULL;
	flow->held_len = flow->held_pass = 0;
}

/* Keep the bytes that were taken and have not passed. */
static enum step keep(struct flow *flow, const uint8_t *data, size_t len)
{
	let_go(flow);
	if (!len)
		return STEP_ON;
	if (flow->pipes->held + len > FLOW_HELD_MAX || !(flow->held = malloc(len)))
		return broken(flow, ENOBUFS);
	memcpy(flow->held, data, len);
	flow->held_len = (uint32_t)len;
	flow->pipes->held += len;
	return STEP_ON;
}

/* The gate's word about `len` bytes. *ret_pass: so many of them may pass. */
static enum step ask_gate(struct flow *flow, const uint8_t *data, size_t len, size_t *ret_pass)
{
	struct flow_way *way = &flow->way[FLOW_BOX];
	uint64_t says = 0;
	size_t pass = 0;
	flow->ask = false;
	while (pass < len) {
		says = flow->gate(flow->owner, data + pass, len - pass);
		if (says == 0 || says == FLOW_STOP || says == FLOW_HOLD)
			break;
		if (says > len - pass) {
			way->may = says >= FLOW_ALL / 2 ? FLOW_ALL : says - (len - pass);
			says = len - pass;
		}
		pass += (size_t)says;
	}
	flow->hold = says == FLOW_HOLD;
	*ret_pass = pass;
	if (says == FLOW_STOP || (says == 0 && !pass && len == FLOW_GATE_MAX))
		return STEP_REFUSE;
	return STEP_ON;
}

/*
 * Take what the box has sent behind the `len` bytes that are held. They are taken, not looked at:
 * what has been shown must be what passes, and the box can change what is in the socket; and with a
 * packet that has passed in part there the socket may have no room for what the gate waits for.
 */
static size_t take_more(struct flow *flow, uint8_t *scratch, size_t len, enum step *ret)
{
	size_t max = len < PIECE ? PIECE : FLOW_GATE_MAX;
	ssize_t n = recv(flow->sock[FLOW_BOX], scratch + len, max - len, MSG_DONTWAIT);
	if (n > 0 && (size_t)n < max - len)
		note_short(flow, FLOW_BOX);
	if (n > 0)
		return (size_t)n;
	if (n == 0 && len)
		*ret = STEP_REFUSE; /* what the gate waits for does not come */
	else
		*ret = nothing_there(flow, FLOW_BOX, n < 0 ? errno : 0);
	return 0;
}

/* While the gate is asked: the box's bytes are held here until it has let them pass. */
static enum step pass_gated(struct flow *flow, uint8_t *scratch)
{
	size_t len = flow->held_len, pass = flow->held_pass, more = 0;
	enum step step = STEP_ON;
	if (!pass && flow->hold && !flow->ask)
		/* It waits for an answer: none comes, and the box waits for none. */
		return flow->way[FLOW_OUT].ended && flow->hangup[FLOW_BOX] ? STEP_REFUSE
									   : STEP_WAIT;
	if (len)
		memcpy(scratch, flow->held, len);
	if (!pass) {
		if (!len || !flow->ask) {
			if (!flow->way[FLOW_BOX].readable)
				return STEP_WAIT;
			if (!(more = take_more(flow, scratch, len, &step)))
				return step;
		}
		len += more;
		step = ask_gate(flow, scratch, len, &pass);
		if (step != STEP_ON)
			return step;
	}
	size_t sent = pass ? send_some(flow, FLOW_BOX, scratch, pass, &step) : 0;
	if ((sent || more) && step != STEP_BREAK && keep(flow, scratch + sent, len - sent))
		return STEP_BREAK;
	flow->held_pass = (uint32_t)(pass - sent);
	return step;
}

static enum step one_step(struct flow *flow, enum flow_side side, uint8_t *scratch)
{
	struct flow_way *way = &flow->way[side];
	if (way->ended || !way->writable)
		return STEP_WAIT;
	if (way->in_pipe)
		return empty_pipe(flow, side);
	if (side == FLOW_BOX && (!way->may || flow->held_len))
		return pass_gated(flow, scratch);
	if (!way->readable)
		return STEP_WAIT;
	if (way->busy && (side == FLOW_BOX || !flow->watch) &&
		(way->pipe[0] >= 0 || flow_pipes_borrow(flow->pipes, way->pipe)))
		return fill_pipe(flow, side);
	return pass_piece(flow, side, scratch);
}

/* Returns STEP_ON when its share is used up. */
static enum step move_way(struct flow *flow, enum flow_side side, uint8_t *scratch)
{
	struct flow_way *way = &flow->way[side];
	uint64_t until = way->bytes + SHARE;
	enum step step = STEP_ON;
	while (step == STEP_ON && way->bytes < until)
		step = one_step(flow, side, scratch);
	if (!way->in_pipe)
		flow_pipes_return(flow->pipes, way->pipe, true);
	return step;
}

static enum flow_state failed(struct flow *flow)
{
	for (int side = FLOW_BOX; side <= FLOW_OUT && !flow->error; side++) {
		int error = 0;
		socklen_t len = sizeof error;
		if (flow->failed[side] &&
			getsockopt(flow->sock[side], SOL_SOCKET, SO_ERROR, &error, &len) == 0)
			flow->error = error ? error : ECONNRESET;
	}
	return FLOW_BROKEN;
}

enum flow_state flow_move(struct flow *flow, uint8_t *scratch)
{
	bool again = false;
	if (!flow->gate)
		flow->way[FLOW_BOX].may = FLOW_ALL;
	/* Answers first: one may be what the gate waits for. */
	for (int side = FLOW_OUT; side >= FLOW_BOX; side--) {
		/* What a side sent before it failed still passes; nothing gets to it. */
		if (flow->failed[other((enum flow_side)side)])
			continue;
		enum step step = move_way(flow, (enum flow_side)side, scratch);
		if (step == STEP_BREAK)
			return failed(flow);
		if (step == STEP_REFUSE)
			return FLOW_REFUSED;
		again |= step == STEP_ON;
	}
	if (flow->way[FLOW_BOX].ended && flow->way[FLOW_OUT].ended)
		return FLOW_DONE;
	if (again)
		return FLOW_AGAIN;
	return flow->failed[FLOW_BOX] || flow->failed[FLOW_OUT] ? failed(flow) : FLOW_RUNNING;
}

void flow_close(struct flow *flow, bool reset)
{
	struct linger now = { .l_onoff = 1 };
	for (int side = FLOW_BOX; side <= FLOW_OUT; side++) {
		struct flow_way *way = &flow->way[side];
		flow_pipes_return(flow->pipes, way->pipe, !way->in_pipe);
		if (reset)
			setsockopt(flow->sock[side], SOL_SOCKET, SO_LINGER, &now, sizeof now);
		fd_close(&flow->sock[side]);
	}
	let_go(flow);
}
