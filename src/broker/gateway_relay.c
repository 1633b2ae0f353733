/*
 * gateway_relay: a connection of the box's, from the moment that it is taken until its bytes have
 * gone. Whom it may reach is decided once, by the address that it was made to; which host that is
 * was settled when the name was looked up.
 */
#define _GNU_SOURCE
#include "broker/gateway_work.h"
#include "base/fd.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* What is refused is reset: the program inside shall know at once. */
static void reset(int fd)
{
	struct linger none = { .l_onoff = 1, .l_linger = 0 };
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
	close(fd);
}

/* Where the program meant to connect to. 0 or -errno. */
static int dialled(int fd, struct net_address *ret_address, uint16_t *ret_port)
{
	struct sockaddr_storage storage;
	socklen_t len = sizeof storage;
	if (getsockname(fd, (struct sockaddr *)&storage, &len) < 0)
		return -errno;
	struct sockaddr_in6 six;
	struct sockaddr_in four;
	if (storage.ss_family == AF_INET6) {
		memcpy(&six, &storage, sizeof six);
		memcpy(ret_address->bytes, &six.sin6_addr, 16);
		*ret_port = ntohs(six.sin6_port);
		return 0;
	}
	memcpy(&four, &storage, sizeof four);
	*ret_address = network_of_v4(ntohl(four.sin_addr.s_addr));
	*ret_port = ntohs(four.sin_port);
	return 0;
}

/* Of a name's addresses, those that may be dialled at this port. */
static void choose(struct gateway *gw, struct conn *conn)
{
	const struct name *name = conn->name;
	for (size_t i = 0; i < name->count; i++) {
		const struct net_address *address = &name->addresses[i];
		if (conn->rule->host_loopback || network_may_dial(gw->network, address, conn->port))
			conn->addresses[conn->count++] = *address;
	}
	if (conn->count == 0 && (name->count > 0 || name->state == NAME_PRIVATE))
		tell_refused(gw, GATEWAY_PRIVATE_ADDRESS, name->text, conn->port);
	else if (conn->count == 0)
		tell_failed(gw, name->text, conn->port, EHOSTUNREACH);
}

/* Fill rule, name and addresses; false: refused, and on record. */
static bool decide(struct gateway *gw, struct conn *conn, const struct net_address *to)
{
	char text[NETWORK_ADDRESS_SIZE];
	conn->name = name_of_address(gw, to);
	if (conn->name) {
		conn->rule = network_by_name(gw->network, conn->name->text, conn->port);
		if (conn->rule)
			choose(gw, conn);
	} else {
		conn->rule = network_by_address(gw->network, to, conn->port);
		conn->addresses[conn->count++] = *to;
	}
	if (!conn->rule && !network_is_loopback(to))
		tell_refused(gw, GATEWAY_NOT_LISTED,
			conn->name ? conn->name->text : network_words(to, text), conn->port);
	conn->checks =
		conn->rule && conn->name && !conn->rule->any_name && !conn->rule->host_loopback;
	return conn->rule && conn->count > 0;
}

/* The service of names by streams, unless the policy has a host with that very port. */
static bool is_for_names(struct gateway *gw, const struct net_address *to, uint16_t port)
{
	if (port != NETWORK_NAMES_PORT)
		return false;
	const struct name *name = name_of_address(gw, to);
	return name ? !network_by_name(gw->network, name->text, port)
		    : !network_by_address(gw->network, to, port);
}

static void add(struct gateway *gw, struct conn *conn)
{
	conn->next = gw->conns;
	conn->prev = NULL;
	if (gw->conns)
		gw->conns->prev = conn;
	gw->conns = conn;
	gw->conn_count++;
}

static void take(struct gateway *gw, int fd)
{
	struct net_address to;
	uint16_t port = 0;
	if (dialled(fd, &to, &port) < 0) {
		reset(fd);
		return;
	}
	if (is_for_names(gw, &to, port)) {
		stream_open(gw, fd);
		return;
	}
	struct conn *conn = calloc(1, sizeof *conn);
	if (!conn) {
		reset(fd);
		return;
	}
	conn->box = (struct source){ SOURCE_BOX, fd };
	conn->out = (struct source){ SOURCE_OUT, -1 };
	conn->state = CONN_DIALS;
	conn->port = port;
	conn->refused = GATEWAY_MALFORMED; /* unless the gate knows better */
	conn->when = gw->now;
	if (!decide(gw, conn, &to)) {
		reset(fd);
		free(conn);
		return;
	}
	add(gw, conn);
	dial_next(gw, conn);
}

void relay_accept(struct gateway *gw, struct source *listener)
{
	while (listener->fd >= 0) {
		if (gw->conn_count >= gw->conns_max) {
			gw->paused = true;
			return;
		}
		int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			take(gw, fd);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			gw->paused = true;
		if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
			return;
	}
}

struct conn *relay_client(struct gateway *gw, const struct published *published, int fd)
{
	struct conn *conn = calloc(1, sizeof *conn);
	if (!conn) {
		reset(fd);
		return NULL;
	}
	conn->box = (struct source){ SOURCE_BOX, -1 };
	conn->out = (struct source){ SOURCE_OUT, fd };
	conn->published = published;
	conn->port = published->port;
	add(gw, conn);
	return conn;
}

void relay_connected(struct gateway *gw, struct conn *conn, uint32_t events)
{
	conn->state = CONN_FLOWS;
	conn->when = gw->now;
	flow_init(&conn->flow, conn->box.fd, conn->out.fd, &gw->pipes);
	if (conn->checks) {
		conn->flow.gate = gate_look;
		conn->flow.watch = gate_watch;
		conn->flow.owner = conn;
	}
	tell_connected(gw, conn);
	/* The event that told of the connection will not come again. The first bytes of who
	 * connected to us are most often there: they go on before the sockets are watched. */
	enum flow_side dialled = conn->published ? FLOW_BOX : FLOW_OUT;
	flow_ready(&conn->flow, dialled, events | EPOLLOUT);
	flow_ready(&conn->flow, conn->published ? FLOW_OUT : FLOW_BOX, EPOLLIN | EPOLLOUT);
	relay_move(gw, conn);
	if (conn->state != CONN_FLOWS)
		return;
	/* What has come meanwhile is an event then. */
	if (gateway_watch(gw, conn->published ? &conn->out : &conn->box, FLOW_EVENTS) < 0 ||
		(!events && gateway_watch(gw, &conn->out, FLOW_EVENTS) < 0))
		relay_end(gw, conn, true);
}

void relay_end(struct gateway *gw, struct conn *conn, bool with_reset)
{
	if (conn->published)
		publish_forget(gw, conn);
	if (conn->state == CONN_FLOWS) {
		tell_bytes(gw, conn);
		flow_close(&conn->flow, with_reset);
	} else {
		if (conn->box.fd >= 0)
			reset(conn->box.fd);
		if (conn->out.fd >= 0)
			reset(conn->out.fd);
	}
	conn->state = CONN_GONE;
	if (conn->prev)
		conn->prev->next = conn->next;
	else
		gw->conns = conn->next;
	if (conn->next)
		conn->next->prev = conn->prev;
	gw->conn_count--;
	conn->next = gw->dead;
	gw->dead = conn;
}

static uint64_t moved(const struct conn *conn)
{
	return conn->flow.way[FLOW_BOX].bytes + conn->flow.way[FLOW_OUT].bytes;
}

void relay_move(struct gateway *gw, struct conn *conn)
{
	uint64_t before = moved(conn);
	enum flow_state state = flow_move(&conn->flow, gw->scratch);
	if (moved(conn) != before)
		conn->when = gw->now;
	switch (state) {
	case FLOW_RUNNING:
		return;
	case FLOW_AGAIN:
		if (!conn->queued) {
			conn->queued = true;
			conn->again = gw->again;
			gw->again = conn;
		}
		return;
	case FLOW_DONE:
		relay_end(gw, conn, false);
		return;
	case FLOW_REFUSED:
		gate_refused(gw, conn);
		relay_end(gw, conn, true);
		return;
	case FLOW_BROKEN:
		/* By a gate alone: a socket of a connection without one may run out of them too. */
		if (conn->checks && conn->flow.error == ENOBUFS) {
			conn->refused = GATEWAY_HELD;
			gate_refused(gw, conn);
		}
		relay_end(gw, conn, true);
		return;
	}
}

void relay_ready(struct gateway *gw, struct conn *conn, enum flow_side side, uint32_t events)
{
	if (conn->state == CONN_DIALS && side == (conn->published ? FLOW_BOX : FLOW_OUT)) {
		if (conn->published)
			publish_ready(gw, conn, events);
		else
			dial_ready(gw, conn, events);
		return;
	}
	if (conn->state != CONN_FLOWS)
		return;
	flow_ready(&conn->flow, side, events);
	relay_move(gw, conn);
}

static bool is_late(struct gateway *gw, const struct conn *conn)
{
	if (conn->held && gw->now - conn->held > GREETING_MAX_NS) {
		gate_refused(gw, conn);
		return true;
	}
	bool half = conn->flow.way[FLOW_BOX].ended || conn->flow.way[FLOW_OUT].ended;
	return gw->now - conn->when > (half ? HALF_MAX_NS : IDLE_MAX_NS);
}

void relay_tick(struct gateway *gw)
{
	struct conn *next;
	for (struct conn *conn = gw->conns; conn; conn = next) {
		next = conn->next;
		if (conn->published && conn->state != CONN_FLOWS) {
			publish_late(gw, conn);
			continue;
		}
		if (conn->state == CONN_DIALS) {
			bool last = conn->tried == conn->count;
			if (gw->now - conn->when > (last ? DIAL_MAX_NS : ATTEMPT_MAX_NS)) {
				conn->errnum = ETIMEDOUT;
				dial_next(gw, conn);
			}
			continue;
		}
		tell_bytes(gw, conn);
		if (is_late(gw, conn))
			relay_end(gw, conn, true);
	}
}
