/*
 * flowbench: the least that lets src/broker/flow.c be measured by itself: accepts on 127.0.0.1,
 * connects each to 127.0.0.1:PORT, and moves the bytes. No gate, no rules, no limits.
 *
 *	flowbench PORT [gate]       prints its own port; gate: the first bytes are shown to one
 */
#define _GNU_SOURCE
#include "broker/flow.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 64

struct link {
	struct flow flow;
	bool gone, queued;
	struct link *next; /* of those that go on, or are gone */
	struct side {
		struct link *link;
		enum flow_side side;
	} side[2];
};

struct bench {
	int epoll, listener;
	struct sockaddr_in to;
	bool gate;
	struct flow_pipes pipes;
	struct link *again, *gone;
	uint8_t scratch[FLOW_GATE_MAX];
};

static uint64_t pass_all(void *owner, const uint8_t *data, size_t len)
{
	(void)owner, (void)data, (void)len;
	return FLOW_ALL;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void take_one(struct bench *bench)
{
	int box = accept4(bench->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (box < 0)
		return;
	int out = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct link *link = calloc(1, sizeof *link);
	if (out < 0 || !link || flow_prepare(out) < 0)
		die("flowbench: a connection");
	(void)!connect(out, (struct sockaddr *)&bench->to, sizeof bench->to);
	flow_init(&link->flow, box, out, &bench->pipes);
	link->flow.gate = bench->gate ? pass_all : NULL;
	for (int side = FLOW_BOX; side <= FLOW_OUT; side++) {
		link->side[side] = (struct side){ link, side };
		struct epoll_event event = { .events = FLOW_EVENTS, .data.ptr = &link->side[side] };
		if (epoll_ctl(bench->epoll, EPOLL_CTL_ADD, link->flow.sock[side], &event) < 0)
			die("flowbench: epoll_ctl");
	}
}

static void move(struct bench *bench, struct link *link)
{
	enum flow_state state = flow_move(&link->flow, bench->scratch);
	if (state == FLOW_RUNNING)
		return;
	if (state != FLOW_AGAIN) {
		flow_close(&link->flow, state != FLOW_DONE);
		link->gone = true;
	}
	struct link **list = link->gone ? &bench->gone : &bench->again;
	link->queued = true;
	link->next = *list;
	*list = link;
}

static void turn(struct bench *bench)
{
	struct epoll_event events[EVENTS];
	int count = epoll_wait(bench->epoll, events, EVENTS, bench->again ? 0 : -1);
	struct link *again = bench->again;
	bench->again = NULL;
	for (int i = 0; i < count; i++) {
		struct side *side = events[i].data.ptr;
		if (!side) {
			take_one(bench);
			continue;
		}
		if (side->link->gone)
			continue;
		flow_ready(&side->link->flow, side->side, events[i].events);
		if (!side->link->queued)
			move(bench, side->link);
	}
	while (again) {
		struct link *link = again;
		again = link->next;
		link->queued = false;
		move(bench, link);
	}
	/* Only now: two events of one link may have come at once. */
	while (bench->gone) {
		struct link *link = bench->gone;
		bench->gone = link->next;
		free(link);
	}
}

int main(int argc, char **argv)
{
	static struct bench bench;
	struct sockaddr_in here = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof here;
	struct epoll_event event = { .events = EPOLLIN };
	if (argc < 2) {
		fprintf(stderr, "usage: flowbench PORT [gate]\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	flow_pipes_init(&bench.pipes);
	bench.gate = argc > 2;
	bench.to = here;
	bench.to.sin_port = htons((uint16_t)atoi(argv[1]));
	bench.epoll = epoll_create1(EPOLL_CLOEXEC);
	bench.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (bind(bench.listener, (struct sockaddr *)&here, len) < 0 ||
		listen(bench.listener, 512) < 0 || flow_prepare(bench.listener) < 0 ||
		getsockname(bench.listener, (struct sockaddr *)&here, &len) < 0 ||
		epoll_ctl(bench.epoll, EPOLL_CTL_ADD, bench.listener, &event) < 0)
		die("flowbench: listen");
	printf("%d\n", ntohs(here.sin_port));
	fflush(stdout);
	for (;;)
		turn(&bench);
}
