/*
 * gateway: the process that is the box's network where a policy allows some hosts or publishes
 * ports. It serves the sockets that the box's init has opened (see plan/network.h), in the host's
 * network, and nothing else connects the two. So its death leaves the box without any network.
 *
 *	supervisor                                     gateway
 *	   |-- SOCKET (each of the box's, in their order) -->|
 *	   |<- READY (it is confined) -----------------------|
 *	   |<- RESOLVE (start the resolver, please) ---------|
 *	   |-- RESOLVER (its socket, see resolve.h) -------->|
 *	   |-- PUBLISH (each listening socket of the host's; the command runs) ->|
 *	   |<- WANTED (a socket of the box's, for one of its clients) -|
 *	   |-- SPARE (it) ---------------------------------->|
 *	   |<- REFUSED, CARRIED, FAILED, SERVED, UNANSWERED (what happened) -|
 *	   |== end of file: the box is gone ================>|
 *	   |<- the last of these; then it ends --------------|
 *
 * One SEQPACKET pair; one datagram is one message. What comes from the gateway, which reads the
 * box's bytes, is checked before it is believed.
 */
#ifndef AGENTBOX_BROKER_GATEWAY_H
#define AGENTBOX_BROKER_GATEWAY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "plan/plan.h"

enum gateway_kind {
	GATEWAY_SOCKET = 1, /* down: one descriptor */
	GATEWAY_RESOLVER,   /* down: one descriptor, or none: there is no resolver to be had */
	GATEWAY_READY,      /* up */
	GATEWAY_RESOLVE,    /* up */
	GATEWAY_REFUSED,    /* up: reason, count, host (of a connection also port) */
	GATEWAY_CARRIED,    /* up: host, port, count, sent, received: since the last time */
	GATEWAY_FAILED,     /* up: host, port, errnum: a host that is allowed was not reached */
	GATEWAY_FULL,       /* up: NETWORK_NAMES_MAX names were asked for, more are refused */
	GATEWAY_PUBLISH,    /* down: one descriptor, which listens; port of the box */
	GATEWAY_SPARE,      /* down: one descriptor, not connected yet; family */
	GATEWAY_WANTED,     /* up: family */
	GATEWAY_SERVED,     /* up: as CARRIED, of a published port of the box */
	GATEWAY_UNANSWERED, /* up: port, count: no server inside took the connection */
	GATEWAY_KIND_END_,
};

/* X(name, word of the result) */
#define GATEWAY_REASONS(X)                                                                         \
	X(NOT_LISTED, "not_listed")                                                                \
	X(PRIVATE_ADDRESS, "private_address")                                                      \
	X(SNI_MISMATCH, "sni_mismatch")                                                            \
	X(HOST_MISMATCH, "host_mismatch")                                                          \
	X(MALFORMED, "malformed")                                                                  \
	X(RECORD_TYPE, "record_type")                                                              \
	X(PROTOCOL, "protocol")                                                                    \
	X(HELD, "held_too_much")

enum gateway_reason {
#define X(name, word) GATEWAY_##name,
	GATEWAY_REASONS(X)
#undef X
		GATEWAY_REASON_COUNT
};

#define GATEWAY_MAGIC    0x61626777u
#define GATEWAY_HOST_MAX 1024 /* bytes with the NUL: a name as dns.h writes it for people */

struct gateway_msg {
	uint32_t magic, kind;
	uint32_t reason; /* enum gateway_reason */
	uint16_t port;   /* 0: it was a look-up */
	uint16_t family; /* AF_INET or AF_INET6 */
	int32_t errnum;
	uint32_t pad_too;
	uint64_t count, sent, received; /* connections or refusals; bytes */
	char host[GATEWAY_HOST_MAX];
};

/* Rows of which the gateway tells; what has none of its own goes to one of that name. */
#define GATEWAY_ROWS_MAX 512
#define GATEWAY_OTHERS   "others"

/* Clients of published ports that wait for a socket of the box's at once; others wait outside. */
#define GATEWAY_WANTED_MAX 64

/*
 * Make the process; *ret_sock is the supervisor's end, non-blocking, *ret_pid a child to be waited
 * for. Errors: network_failed.
 */
int gateway_start(const struct plan *plan, pid_t *ret_pid, int *ret_sock, struct err *err);

/*
 * Send and receive, without waiting. Send: 0 or -errno. Receive: 1, 0 at the end of file, -EAGAIN,
 * -EPROTO for what is no message of that direction, or -errno. fd, *ret_fd: -1 or a descriptor that
 * closes at exec. Text of a received message has an end, and its reason is one of the table.
 */
int gateway_send(int sock, const struct gateway_msg *msg, int fd);
int gateway_recv(int sock, struct gateway_msg *ret_msg, int *ret_fd);

/* Is it a whole message, with as many descriptors as its kind has? 0 or -EPROTO. Pure; fuzzed. */
int gateway_check(const void *data, uint64_t len, int fd_count);

const char *gateway_reason_word(enum gateway_reason reason);

#endif
