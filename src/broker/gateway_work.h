/*
 * gateway_work: the state of one gateway, shared by its files and by nobody else.
 *
 * gateway.c makes the process, waits and hands readiness out; gateway_names.c answers questions for
 * names and gateway_ask.c looks them up; gateway_refusals.c hears what the box's kernel refuses;
 * gateway_relay.c takes connections and decides, gateway_dial.c reaches the host, gateway_gate.c
 * looks at what a connection says that it is for; gateway_tell.c keeps count for the supervisor.
 * One thread; nothing waits but epoll_wait(2).
 *
 * Everything that the box can make grow has a bound here.
 */
#ifndef AGENTBOX_BROKER_GATEWAY_WORK_H
#define AGENTBOX_BROKER_GATEWAY_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "broker/dns.h"
#include "broker/flow.h"
#include "broker/gateway.h"
#include "broker/http.h"
#include "plan/network.h"

#define ADDRESSES_MAX   16   /* of one name that are tried */
#define CONNS_MAX       4096 /* at once; more wait in the kernel's queue */
#define QUESTIONS_MAX   512  /* that wait for a look-up at once */
#define STREAMS_MAX     64   /* connections of the name service */
#define SOCKETS_MAX     (NETWORK_PORTS_MAX + NETWORK_REFUSALS + 2)
#define NAME_BUCKETS    1024  /* a power of two */
#define RESOLVERS_MAX   8     /* that one run starts, should they die */
#define MESSAGES_A_TURN 64    /* of one socket for names or refusals, before the others */
#define ANSWER_MAX      16384 /* bytes in which a server accepts an upgrade */
#define FDS_OF_CONN     6     /* two sockets and two pipes */

#define SECONDS(n)      (INT64_C(1000000000) * (n))
#define TICK_NS         (SECONDS(1) / 4)
#define ANSWER_TTL      30            /* seconds, that the box may keep an answer */
#define FRESH_NS        SECONDS(60)   /* about a minute: then it is looked up again */
#define STALE_NS        SECONDS(5)    /* the same for a look-up that brought nothing */
#define LOOKUP_MAX_NS   SECONDS(20)   /* for the resolver's answer */
#define ATTEMPT_MAX_NS  SECONDS(4)    /* for one address, when there are others */
#define DIAL_MAX_NS     SECONDS(60)   /* for the last one */
#define GREETING_MAX_NS SECONDS(30)   /* for a greeting that has begun */
#define IDLE_MAX_NS     SECONDS(3600) /* without a byte */
#define HALF_MAX_NS     SECONDS(600)  /* the same when one direction has ended */
#define STREAM_MAX_NS   SECONDS(10)   /* a connection of the name service, idle */
#define LINGER_MAX_NS   SECONDS(1)    /* the box is gone: for what is on its way */
#define SPARE_MAX_NS    SECONDS(10)   /* for a socket of the box's to come */

/* What epoll's data points to; it says what became ready. */
enum source_kind {
	SOURCE_CONTROL,
	SOURCE_RESOLVER,
	SOURCE_NAMES,     /* the socket for questions as datagrams */
	SOURCE_REFUSALS,  /* the box's kernel says that it refused something */
	SOURCE_LISTEN,    /* a listening socket of the box's */
	SOURCE_PUBLISHED, /* one of the host's */
	SOURCE_STREAM,    /* a connection of the name service */
	SOURCE_BOX,       /* a connection's sockets */
	SOURCE_OUT,
};
struct source {
	enum source_kind kind;
	int fd;
};

/* A name that is listed and was asked for. */
enum name_state { NAME_NEW, NAME_ASKED, NAME_KNOWN, NAME_NONE, NAME_PRIVATE, NAME_FAILED };
struct name {
	enum name_state state;
	bool waits;     /* asked for, but there was no resolver to send it to */
	uint16_t index; /* the address that stands for it */
	uint16_t next;  /* in its bucket, index + 1; 0: the last */
	int64_t when;   /* the state began */
	size_t count;
	struct net_address addresses[ADDRESSES_MAX];
	char text[DNS_NAME_MAX + 1];
};

/* A question that waits for a look-up. */
struct asker {
	bool used;
	uint16_t name;         /* index */
	struct stream *stream; /* NULL: a datagram, from whom and to whom: */
	struct sockaddr_storage from;
	struct net_address to;
	struct dns_question question;
	size_t len;
	uint8_t message[DNS_MESSAGE_MAX];
};

/* A connection of the name service (RFC 7766). */
struct stream {
	struct source source;
	int64_t when;
	bool ended; /* the client's side has; answers are waited for */
	size_t len; /* read of the next message, its length in front */
	uint8_t data[2 + DNS_MESSAGE_MAX];
};

/* A port of the box that the host's clients reach. */
struct published {
	struct source source;
	uint16_t port;
	struct row *served, *unanswered; /* NULL: no memory for it */
};

/* CONN_WAITS: a client of a published port, for a socket of the box's */
enum conn_state { CONN_WAITS, CONN_DIALS, CONN_FLOWS, CONN_GONE };
struct conn {
	struct source box, out;
	enum conn_state state;
	struct conn *next, *prev;          /* of all */
	struct conn *again;                /* of those whose turn is not over */
	struct conn *later;                /* of those that wait for a socket */
	const struct published *published; /* `out` is a client of it, `box` dials; NULL: as ever */
	int family;                        /* of the socket that it waits for */
	bool queued;
	int64_t when; /* the last byte, or the beginning of an attempt */
	const struct net_rule *rule;
	struct name *name; /* NULL: dialled by address */
	uint16_t port;
	size_t tried, count; /* addresses */
	struct net_address addresses[ADDRESSES_MAX];
	int errnum; /* of the last attempt */
	struct flow flow;
	uint64_t told_sent, told_received;
	struct row *row;
	struct http http;
	bool checks, server_began, plain; /* gateway_gate.c */
	int64_t held; /* since when a greeting is not complete; 0: it is not held */
	enum gateway_reason refused;
	char other[HTTP_NAME_MAX + 1]; /* for whom it said it was */
	enum { UPGRADE_NONE, UPGRADE_ASKED, UPGRADE_DONE, UPGRADE_BAD } upgrade;
	uint8_t *answer; /* ANSWER_MAX bytes, while an upgrade is asked for */
	size_t answer_len;
};

/* What the supervisor is told; only the sums that it has not been told yet. */
struct row {
	uint32_t kind; /* GATEWAY_REFUSED, _CARRIED, _FAILED, _SERVED, _UNANSWERED */
	uint32_t reason;
	uint16_t port;
	int32_t errnum;
	uint64_t count, sent, received;
	char *host;
};

/* A socket for the next connection, made while nothing waits: IPv4's and IPv6's. */
#define SPARES 2
struct spare {
	bool used; /* one was needed since the last was made */
	int fd;    /* -1: there is none */
};

struct gateway {
	const struct network_plan *network;
	int epoll;
	int64_t now; /* of this turn */
	struct source control, resolver;
	bool box_gone;
	int64_t gone_at;

	struct source sockets[SOCKETS_MAX];
	size_t socket_count;
	bool paused; /* no room for connections: the listening sockets are looked at later */

	struct published published[NETWORK_PUBLISH_MAX];
	size_t published_count;
	struct conn *waiting; /* the first that wants a socket; in their order */
	size_t waiting_count;

	struct name *names[NETWORK_NAMES_MAX];
	size_t name_count;
	uint16_t buckets[NAME_BUCKETS];
	bool full;
	unsigned resolvers;
	bool wants_resolver;
	struct asker *askers; /* QUESTIONS_MAX, made when first needed */
	size_t asker_count;
	struct stream *streams[STREAMS_MAX];
	size_t stream_count;

	struct conn *conns, *again, *dead;
	size_t conn_count, conns_max;
	struct flow_pipes pipes;
	struct spare spares[SPARES];
	uint8_t *scratch; /* FLOW_GATE_MAX bytes */

	struct row rows[GATEWAY_ROWS_MAX];
	size_t row_count;
	bool untold;
};

/* gateway.c */
int gateway_watch(struct gateway *gw, struct source *source, uint32_t events); /* 0 or -errno */
int64_t gateway_now(void); /* CLOCK_MONOTONIC, ns */

/* gateway_confine.c: before the first hostile byte. parent: with whom it ends. 0 or -errno. */
int gateway_confine(const struct plan *plan, pid_t parent);

/* gateway_names.c */
void names_turn(struct gateway *gw, int fd);
void stream_open(struct gateway *gw, int fd); /* takes it over */
void stream_turn(struct gateway *gw, struct stream *stream);
void streams_tick(struct gateway *gw);
void streams_bury(struct gateway *gw); /* at the end of a turn */
/* The look-up has ended: answer those who wait for it. */
void names_answer(struct gateway *gw, const struct name *name);

/* gateway_refusals.c */
void refusals_turn(struct gateway *gw, const struct source *source);

/* gateway_ask.c */
/* The entry of a name, made if there is none; NULL: no more room. */
struct name *name_get(struct gateway *gw, const char *text);
struct name *name_of_address(struct gateway *gw, const struct net_address *address);
struct net_address name_address(const struct name *name);
/* Look it up, unless what is known is fresh. Its state is NAME_ASKED when one must wait. */
void name_look_up(struct gateway *gw, struct name *name);
void resolver_take(struct gateway *gw, int fd); /* -1: there is none */
void resolver_turn(struct gateway *gw);
void names_tick(struct gateway *gw);

/* gateway_relay.c */
void relay_accept(struct gateway *gw, struct source *listener);
void relay_ready(struct gateway *gw, struct conn *conn, enum flow_side side, uint32_t events);
void relay_move(struct gateway *gw, struct conn *conn);
void relay_end(struct gateway *gw, struct conn *conn, bool reset);
void relay_tick(struct gateway *gw);
/*
 * The host is reached. events: what is known of its socket; 0: it is not watched yet.
 */
void relay_connected(struct gateway *gw, struct conn *conn, uint32_t events);
/* A connection of a client of a published port. NULL: no memory, and the client was reset. */
struct conn *relay_client(struct gateway *gw, const struct published *published, int fd);

/* gateway_dial.c */
/* The next of the addresses; the first one that can be reached becomes the flow's other end. */
void dial_next(struct gateway *gw, struct conn *conn);
void dial_ready(struct gateway *gw, struct conn *conn, uint32_t events);
void dial_spare(struct gateway *gw); /* at the end of a turn */

/* gateway_publish.c */
void publish_take(struct gateway *gw, int fd, uint16_t port); /* takes it over */
void publish_accept(struct gateway *gw, struct published *published);
void publish_resume(struct gateway *gw);                    /* look at all of them again */
void publish_spare(struct gateway *gw, int fd, int family); /* takes it over */
void publish_ready(struct gateway *gw, struct conn *conn, uint32_t events);
void publish_late(
	struct gateway *gw, struct conn *conn); /* it has waited or dialled for too long */
void publish_forget(struct gateway *gw, struct conn *conn); /* it ends: it waits for nothing */
void publish_end(struct gateway *gw);                       /* the box is gone: listen no more */

/* gateway_gate.c */
flow_gate gate_look;
flow_watch gate_watch;
void gate_refused(struct gateway *gw, const struct conn *conn); /* put it on record */

/* gateway_tell.c */
void tell_refused(struct gateway *gw, enum gateway_reason reason, const char *host, uint16_t port);
void tell_failed(struct gateway *gw, const char *host, uint16_t port, int errnum);
void tell_connected(struct gateway *gw, struct conn *conn);
void tell_published(struct gateway *gw, struct published *published);
void tell_unanswered(struct gateway *gw, const struct published *published);
void tell_bytes(struct gateway *gw, struct conn *conn);
void tell_full(struct gateway *gw);
/* Send what the supervisor does not know yet, as far as the socket takes it. */
void tell_flush(struct gateway *gw);

#endif
