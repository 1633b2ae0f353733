/*
 * flow_bed: a client, a flow and a server on loopback, all in one thread. Nothing waits for a time:
 * each test turns until what it waits for is there, at most for PATIENCE.
 */
#ifndef AGENTBOX_TESTS_FLOW_BED_H
#define AGENTBOX_TESTS_FLOW_BED_H

#include "check.h"
#include "broker/flow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE 60 /* seconds */
#define MIB      (1024 * 1024)

struct bed {
	struct flow_pipes pipes;
	struct flow flow;
	enum flow_state state;
	int epoll;
	int end[2]; /* by flow_side: the client in the box, the server outside */
	time_t until;
	uint8_t scratch[FLOW_GATE_MAX];
};

static inline int listener(struct sockaddr_in *ret)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof *ret;
	*ret = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0 || bind(fd, (struct sockaddr *)ret, sizeof *ret) < 0 || listen(fd, 8) < 0 ||
		getsockname(fd, (struct sockaddr *)ret, &len) < 0) {
		perror("listener");
		exit(1);
	}
	return fd;
}

/* ret[0] has connected to ret[1]. buffer: SO_SNDBUF and SO_RCVBUF of both, 0: as they are. */
static inline void tcp_pair(int ret[2], int buffer)
{
	struct sockaddr_in address;
	int from = listener(&address), to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	for (int i = 0; buffer && i < 2; i++) {
		int fd = i ? from : to;
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
	}
	if (connect(to, (struct sockaddr *)&address, sizeof address) < 0 ||
		(ret[1] = accept4(from, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) < 0) {
		perror("connect");
		exit(1);
	}
	fcntl(to, F_SETFL, O_NONBLOCK);
	ret[0] = to;
	close(from);
}

static inline void patience(struct bed *bed)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	bed->until = now.tv_sec + PATIENCE;
}

static inline void bed_watch(struct bed *bed)
{
	for (int side = FLOW_BOX; side <= FLOW_OUT; side++) {
		struct epoll_event event = { .events = FLOW_EVENTS, .data.u32 = (uint32_t)side };
		epoll_ctl(bed->epoll, EPOLL_CTL_ADD, bed->flow.sock[side], &event);
	}
}

static inline void bed_flow(struct bed *bed, int box, int out)
{
	bed->state = FLOW_RUNNING;
	/* Other stream sockets have not all that TCP has. */
	(void)flow_prepare(box), (void)flow_prepare(out);
	flow_init(&bed->flow, box, out, &bed->pipes);
	bed->epoll = epoll_create1(EPOLL_CLOEXEC);
	bed_watch(bed);
	patience(bed);
}

static inline struct bed *bed_make(int buffer)
{
	struct bed *bed = calloc(1, sizeof *bed);
	int inside[2], outside[2];
	tcp_pair(inside, buffer);
	tcp_pair(outside, buffer);
	flow_pipes_init(&bed->pipes);
	bed->end[FLOW_BOX] = inside[0];
	bed->end[FLOW_OUT] = outside[1];
	bed_flow(bed, inside[1], outside[0]);
	return bed;
}

static inline void bed_free(struct bed *bed)
{
	flow_close(&bed->flow, bed->state != FLOW_DONE);
	CHECK(bed->pipes.made == bed->pipes.idle_count && bed->pipes.held == 0);
	flow_pipes_close(&bed->pipes);
	CHECK(bed->pipes.made == 0);
	for (int side = 0; side < 2; side++)
		if (bed->end[side] >= 0)
			close(bed->end[side]);
	close(bed->epoll);
	free(bed);
}

/* One turn as the gateway would make it. Returns false when there is no patience left. */
static inline bool turn(struct bed *bed)
{
	struct epoll_event events[2];
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec > bed->until)
		return false;
	if (bed->state != FLOW_RUNNING && bed->state != FLOW_AGAIN)
		return true;
	int count = epoll_wait(bed->epoll, events, 2, bed->state == FLOW_AGAIN ? 0 : 1);
	for (int i = 0; i < count; i++)
		flow_ready(&bed->flow, events[i].data.u32, events[i].events);
	bed->state = flow_move(&bed->flow, bed->scratch);
	return true;
}

/* Turn until it says nothing new for some turns: for what must not happen. */
static inline void settle(struct bed *bed)
{
	for (int quiet = 0; quiet < 20 && turn(bed); quiet++) {
		if (bed->state == FLOW_AGAIN)
			quiet = 0;
	}
}

static inline bool ends(struct bed *bed, enum flow_state state)
{
	while (bed->state != state && turn(bed))
		if (bed->state > FLOW_AGAIN && bed->state != state)
			return false;
	return bed->state == state;
}

static inline void say(struct bed *bed, enum flow_side side, const void *data, size_t len)
{
	const char *at = data;
	while (len) {
		ssize_t n = send(bed->end[side], at, len, MSG_NOSIGNAL);
		if (n > 0) {
			at += n;
			len -= (size_t)n;
		} else if (n < 0 && errno != EAGAIN) {
			return;
		}
		if (len && !turn(bed))
			return;
	}
}

/* What comes to a side: turn until `len` bytes are there. Returns the count; -errno, 0 at the end.
 */
static inline ssize_t hear(struct bed *bed, enum flow_side side, void *data, size_t len)
{
	size_t have = 0;
	while (have < len) {
		ssize_t n = recv(bed->end[side], (char *)data + have, len - have, 0);
		if (n < 0 && errno != EAGAIN)
			return have ? (ssize_t)have : -errno;
		if (n == 0)
			return (ssize_t)have;
		if (n > 0)
			have += (size_t)n;
		else if (!turn(bed))
			return -ETIME;
	}
	return (ssize_t)have;
}

static inline bool heard(struct bed *bed, enum flow_side side, const char *want)
{
	char got[256];
	size_t len = strlen(want);
	return hear(bed, side, got, len) == (ssize_t)len && memcmp(got, want, len) == 0;
}

static inline bool nothing(struct bed *bed, enum flow_side side)
{
	char byte;
	settle(bed);
	return recv(bed->end[side], &byte, 1, 0) < 0 && errno == EAGAIN;
}

static inline bool reset(struct bed *bed, enum flow_side side)
{
	char byte;
	return hear(bed, side, &byte, 1) == -ECONNRESET;
}

static inline void kick(struct bed *bed, enum flow_side side)
{
	struct linger now = { .l_onoff = 1 };
	setsockopt(bed->end[side], SOL_SOCKET, SO_LINGER, &now, sizeof now);
	close(bed->end[side]);
	bed->end[side] = -1;
}

static inline enum flow_side other(enum flow_side side)
{
	return side == FLOW_BOX ? FLOW_OUT : FLOW_BOX;
}

/* A stream that can be made and judged at any place of it. */
struct stream {
	uint64_t sent, got, total;
	uint32_t make, judge; /* states of two like generators */
	bool good;
};

static inline uint8_t next_byte(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return (uint8_t)(*state >> 24);
}

static inline void stream_init(struct stream *stream, uint64_t total, uint32_t seed)
{
	*stream = (struct stream){ .total = total, .make = seed, .judge = seed, .good = true };
}

/* Send and read as much as goes without waiting. max: of one call. */
static inline void stream_some(
	struct bed *bed, enum flow_side side, struct stream *stream, size_t max, bool read)
{
	static uint8_t data[256 * 1024];
	uint32_t state = stream->make;
	size_t len = stream->total - stream->sent < max ? stream->total - stream->sent : max;
	for (size_t i = 0; i < len; i++)
		data[i] = next_byte(&state);
	ssize_t n = len ? send(bed->end[side], data, len, MSG_NOSIGNAL) : 0;
	for (ssize_t i = 0; i < n; i++)
		next_byte(&stream->make);
	if (n > 0)
		stream->sent += (uint64_t)n;
	n = read ? recv(bed->end[other(side)], data, sizeof data, 0) : 0;
	for (ssize_t i = 0; i < n; i++)
		stream->good &= data[i] == next_byte(&stream->judge);
	if (n > 0)
		stream->got += (uint64_t)n;
}

static inline bool stream_whole(struct stream *stream)
{
	return stream->good && stream->got == stream->total && stream->sent == stream->total;
}

static inline void carry(struct bed *bed, enum flow_side side, struct stream *stream, size_t max)
{
	while (stream->got < stream->total && stream->good && turn(bed))
		stream_some(bed, side, stream, max, true);
}

/* Send until nothing more goes for many turns. */
static inline void stuff(struct bed *bed, enum flow_side side, struct stream *stream)
{
	int stuck = 0;
	while (stuck < 50 && turn(bed)) {
		uint64_t before = stream->sent;
		stream_some(bed, side, stream, 100000, false);
		stuck = stream->sent > before ? 0 : stuck + 1;
	}
}

#endif
