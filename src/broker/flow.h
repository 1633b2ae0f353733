/*
 * flow: moves the bytes of one connection between the box's socket and the outer one, both ways.
 * Knows sockets, pipes and back-pressure; knows no names, no rules and no epoll.
 *
 * Small pieces are looked at in place (MSG_PEEK), sent, and only then taken, so nothing is held
 * here and a side that does not read stops the other one; but what a gate must see is held until it
 * has passed. When a direction carries much, it borrows a pipe and its bytes are spliced
 * (splice(2)), which copies nothing; it keeps the pipe only while bytes are in it.
 *
 * End of file is passed on for each direction by itself (shutdown(2)), a reset as a reset
 * (SO_LINGER with 0). Urgent data (MSG_OOB) passes in its place, as ordinary bytes. Nothing here
 * blocks. The process must ignore SIGPIPE: splice(2) cannot be told to raise none.
 */
#ifndef AGENTBOX_BROKER_FLOW_H
#define AGENTBOX_BROKER_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum flow_side { FLOW_BOX, FLOW_OUT };

enum flow_state {
	FLOW_RUNNING, /* wait for the next readiness of either socket */
	FLOW_AGAIN,   /* its share of the turn is used up, more is there: call flow_move() soon */
	FLOW_DONE,    /* both directions have ended */
	FLOW_BROKEN,  /* one side was reset or failed (flow.error): reset both by flow_close() */
	FLOW_REFUSED, /* the gate said so: reset both by flow_close() */
};

/*
 * What a gate says about bytes of the box that have not passed yet, from the first one on.
 * Returns how many may pass (more than `len`: those behind too, without being shown; FLOW_ALL: all
 * from here on). 0: it needs to see more; FLOW_REFUSED when the box has no more, or when
 * FLOW_GATE_MAX bytes, the most that are ever shown, were not enough. FLOW_HOLD: nothing may pass
 * before flow_ask_again(), however much there is. FLOW_STOP: refuse.
 *
 * Bytes that it lets pass count as passed: it is asked at once about those behind them. Of those
 * that do not pass it is shown the same again, with what has come meanwhile; they are held here, so
 * the box cannot change them after they were shown. It is asked only while the outer side can take
 * bytes, and may not call flow_move() or flow_close().
 */
#define FLOW_ALL      UINT64_MAX
#define FLOW_STOP     (UINT64_MAX - 1)
#define FLOW_HOLD     (UINT64_MAX - 2)
#define FLOW_GATE_MAX 65536
typedef uint64_t flow_gate(void *owner, const uint8_t *data, size_t len);

/*
 * Sees each byte that the outer side answers once, when it has passed, and has no say in it, until
 * it returns false. It may call flow_ask_again().
 */
typedef bool flow_watch(void *owner, const uint8_t *data, size_t len);

struct flow_way {
	int pipe[2];             /* -1: none */
	size_t in_pipe;          /* bytes */
	uint64_t bytes;          /* that have passed */
	uint64_t may;            /* bytes that may pass without being shown; FLOW_ALL: no gate */
	bool busy;               /* carries much */
	bool ended;              /* end of file was seen and passed on */
	bool readable, writable; /* as far as is known: source and sink */
};

struct flow {
	int sock[2];            /* by flow_side; owned */
	struct flow_way way[2]; /* [FLOW_BOX]: from the box outwards */
	bool hangup[2];         /* the side sends no more than what is there */
	bool urgent[2];         /* it has sent urgent data; what is read may be parted */
	bool failed[2];         /* the side was reset or has failed; what is there still passes */
	bool hold, ask;         /* the gate said FLOW_HOLD; it is to be asked again */
	int error;              /* errno of the first failure */
	uint8_t *held;          /* taken from the box for the gate, not passed; owned */
	uint32_t held_len;      /* bytes, at most FLOW_GATE_MAX */
	uint32_t held_pass;     /* of them: the gate has let them pass */
	flow_gate *gate;        /* NULL: all passes */
	flow_watch *watch;      /* NULL: nobody looks */
	void *owner;
	struct flow_pipes *pipes;
};

/*
 * What flows share; closed after them. Pipes: directions without one go on in small pieces. Bytes
 * that are held for gates: a flow that can have no room for them is FLOW_BROKEN (ENOBUFS).
 */
#define FLOW_PIPES_MAX  64                /* at once */
#define FLOW_PIPES_IDLE 8                 /* kept open */
#define FLOW_HELD_MAX   (8 * 1024 * 1024) /* bytes */
struct flow_pipes {
	int idle[FLOW_PIPES_IDLE][2];
	size_t idle_count, made;
	size_t held;    /* bytes */
	unsigned pause; /* borrowings to come that do not try to make one */
};
void flow_pipes_init(struct flow_pipes *pipes);
void flow_pipes_close(struct flow_pipes *pipes);

/*
 * What a flow needs of a socket. Accepted ones have it from the listening one, so that it costs
 * nothing with each connection. 0 or -errno.
 */
int flow_prepare(int sock);

/*
 * Both sockets are stream sockets, prepared, non-blocking, and connected; for `out`, connect(2) may
 * be in progress. Takes them over. Gate, watch and owner are set afterwards, before the first
 * flow_move(); the gate must not be set or taken away later (FLOW_ALL ends it).
 */
void flow_init(struct flow *flow, int box, int out, struct flow_pipes *pipes);

/*
 * A socket's readiness is noted, as edge-triggered epoll tells it; both are registered for
 * FLOW_EVENTS, at the latest when what flow_ready() was told without an event has been moved.
 * flow_move() then moves what can be moved. scratch: FLOW_GATE_MAX bytes that hold
 * nothing between two calls.
 */
#define FLOW_EVENTS (EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET)
void flow_ready(struct flow *flow, enum flow_side side, uint32_t events);
enum flow_state flow_move(struct flow *flow, uint8_t *scratch);

/* With the next flow_move() ask the gate again, without new bytes: it has changed its mind. */
void flow_ask_again(struct flow *flow);

/* Close both sockets; reset: unless flow_move() said FLOW_DONE. Once. */
void flow_close(struct flow *flow, bool reset);

#endif
