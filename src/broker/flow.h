/*
 * flow: moves the bytes of one connection between the box's socket and the outer one, both ways.
 * Knows sockets, pipes and back-pressure; knows no names, no rules and no epoll.
 *
 * Small pieces are looked at in place (MSG_PEEK), sent, and only then taken, so nothing is ever
 * held here and a side that does not read stops the other one. When a direction carries much, it
 * gets a pipe and its bytes are spliced (splice(2)), which copies nothing.
 *
 * End of file is passed on for each direction by itself (shutdown(2)), a reset as a reset
 * (SO_LINGER with 0). Nothing here blocks.
 */
#ifndef AGENTBOX_BROKER_FLOW_H
#define AGENTBOX_BROKER_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum flow_side { FLOW_BOX, FLOW_OUT };

enum flow_state {
	FLOW_RUNNING, /* wait for the next readiness of either socket */
	FLOW_AGAIN,  /* its share of the turn is used up, more is there: call flow_move() again soon
		      */
	FLOW_DONE,   /* both directions have ended */
	FLOW_BROKEN, /* one side was reset or failed; the other is reset by flow_close() */
	FLOW_REFUSED, /* the gate said so; flow_close() resets both */
};

/*
 * What a gate says about bytes of the box that have not passed yet, from the first one on.
 * Returns how many may pass (more than `len`: those behind too, without being shown; FLOW_ALL: all
 * from here on), 0: wait for more bytes; FLOW_STOP: refuse. It is asked again once those have
 * passed. At most FLOW_GATE_MAX bytes are ever shown; when so many bring no answer it is
 * FLOW_REFUSED.
 */
#define FLOW_ALL      UINT64_MAX
#define FLOW_STOP     (UINT64_MAX - 1)
#define FLOW_GATE_MAX 65536
typedef uint64_t flow_gate(void *owner, const uint8_t *data, size_t len);

/* Sees what the outer side answers, without a say in it, until it returns false. */
typedef bool flow_watch(void *owner, const uint8_t *data, size_t len);

struct flow_way {
	int pipe[2];             /* -1: none */
	size_t in_pipe;          /* bytes */
	uint64_t bytes;          /* that have passed */
	uint64_t may;            /* bytes that may pass without being shown to the gate */
	uint32_t busy;           /* full pieces in a row: who carries much gets a pipe */
	bool ended;              /* end of file was seen and passed on */
	bool readable, writable; /* as far as is known: source and sink */
};

struct flow {
	int sock[2];            /* by flow_side; owned */
	struct flow_way way[2]; /* [FLOW_BOX]: from the box outwards */
	flow_gate *gate;        /* NULL: all passes */
	flow_watch *watch;      /* NULL: nobody looks */
	void *owner;
	struct flow_pipes *pipes;
};

/* Pipes that are used again; one for all flows. Bounded. */
#define FLOW_PIPES_MAX                                                                             \
	256 /* directions that have one at once; the others go on in small pieces                  \
	     */
struct flow_pipes {
	int idle[FLOW_PIPES_MAX][2];
	size_t idle_count, made;
};
void flow_pipes_init(struct flow_pipes *pipes);
void flow_pipes_close(struct flow_pipes *pipes);

/* Both sockets are connected, or `out` is about to be; non-blocking. Takes them over. */
void flow_init(struct flow *flow, int box, int out, struct flow_pipes *pipes);

/*
 * A socket's readiness, as edge-triggered epoll tells it (EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLHUP,
 * EPOLLERR), is noted; flow_move() then moves what can be moved. scratch: FLOW_GATE_MAX bytes that
 * hold nothing between two calls.
 */
void flow_ready(struct flow *flow, enum flow_side side, uint32_t events);
enum flow_state flow_move(struct flow *flow, uint8_t *scratch);

/* Ask the gate again without new bytes (what the watch saw has changed its mind). */
void flow_ask_again(struct flow *flow);

/* Close both sockets, and reset them unless the flow is FLOW_DONE. */
void flow_close(struct flow *flow, bool reset);

#endif
