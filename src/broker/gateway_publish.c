/*
 * gateway_publish: clients of the host's, which come in by published ports. For each of them the
 * gateway asks for a socket of the box's network, which only the box's init can make, and connects
 * it to the server at the box's loopback; then it is a connection as any other. Nothing that the
 * box does makes it listen anywhere.
 */
#define _GNU_SOURCE
#include "broker/gateway_work.h"
#include "base/fd.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <unistd.h>

/* In which order a server is looked for. */
static const int families[] = { AF_INET, AF_INET6 };
enum { FAMILIES = sizeof families / sizeof *families };

void publish_take(struct gateway *gw, int fd, uint16_t port)
{
	if (gw->published_count == NETWORK_PUBLISH_MAX) {
		close(fd);
		return;
	}
	struct published *published = &gw->published[gw->published_count++];
	published->source = (struct source){ SOURCE_PUBLISHED, fd };
	published->port = port;
	tell_published(gw, published);
	if (flow_prepare(fd) < 0 || gateway_watch(gw, &published->source, EPOLLIN | EPOLLET) < 0)
		fd_close(&published->source.fd);
}

static void give_up(struct gateway *gw, struct conn *conn)
{
	tell_unanswered(gw, conn->published);
	relay_end(gw, conn, true);
}

static void queue(struct gateway *gw, struct conn *conn)
{
	struct conn **end = &gw->waiting;
	while (*end)
		end = &(*end)->later;
	*end = conn;
	conn->later = NULL;
	gw->waiting_count++;
}

static void unqueue(struct gateway *gw, struct conn *conn)
{
	struct conn **at = &gw->waiting;
	while (*at && *at != conn)
		at = &(*at)->later;
	if (!*at)
		return;
	*at = conn->later;
	gw->waiting_count--;
}

/* Have it wait for a socket of the next family; or it has tried them all. */
static void next(struct gateway *gw, struct conn *conn)
{
	fd_close(&conn->box.fd);
	if (conn->tried == FAMILIES) {
		give_up(gw, conn);
		return;
	}
	conn->family = families[conn->tried++];
	conn->state = CONN_WAITS;
	conn->when = gw->now;
	queue(gw, conn);
	struct gateway_msg msg = {
		.magic = GATEWAY_MAGIC, .kind = GATEWAY_WANTED, .family = (uint16_t)conn->family
	};
	if (gateway_send(gw->control.fd, &msg, -1) < 0)
		give_up(gw, conn);
}

void publish_accept(struct gateway *gw, struct published *published)
{
	while (published->source.fd >= 0) {
		if (gw->conn_count >= gw->conns_max || gw->waiting_count >= GATEWAY_WANTED_MAX) {
			gw->paused = true;
			return;
		}
		int fd = accept4(published->source.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		struct conn *conn = fd >= 0 ? relay_client(gw, published, fd) : NULL;
		if (conn)
			next(gw, conn);
		if (fd >= 0)
			continue;
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			gw->paused = true;
		if (errno != EINTR && errno != ECONNABORTED)
			return;
	}
}

void publish_resume(struct gateway *gw)
{
	for (size_t i = 0; i < gw->published_count; i++)
		publish_accept(gw, &gw->published[i]);
}

/* Connect to the box's loopback, or hear how it went. 1, 0: it will be known later; or -errno. */
static int reach(const struct conn *conn)
{
	struct sockaddr_in four = { .sin_family = AF_INET,
		.sin_port = htons(conn->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
		.sin6_port = htons(conn->port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	bool is_six = conn->family == AF_INET6;
	if (connect(conn->box.fd, is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four,
		    is_six ? sizeof six : sizeof four) == 0 ||
		errno == EISCONN)
		return 1;
	return errno == EINPROGRESS || errno == EALREADY || errno == EINTR ? 0 : -errno;
}

/* It will be known by an event of the socket's. 0 or -errno. */
static int dial(struct gateway *gw, struct conn *conn)
{
	int r = flow_prepare(conn->box.fd);
	if (r == 0)
		r = reach(conn);
	return r < 0 ? r : gateway_watch(gw, &conn->box, FLOW_EVENTS);
}

void publish_spare(struct gateway *gw, int fd, int family)
{
	struct conn *conn = gw->waiting;
	while (conn && conn->family != family)
		conn = conn->later;
	if (!conn) {
		/* Its client has given up. */
		close(fd);
		return;
	}
	unqueue(gw, conn);
	conn->box.fd = fd;
	conn->state = CONN_DIALS;
	conn->when = gw->now;
	if (dial(gw, conn) < 0)
		next(gw, conn);
}

/* Others who have had the descriptor may not have closed it yet, and epoll(7) would go on. */
static void unwatch(struct gateway *gw, struct conn *conn)
{
	if (conn->box.fd >= 0)
		(void)epoll_ctl(gw->epoll, EPOLL_CTL_DEL, conn->box.fd, NULL);
}

void publish_ready(struct gateway *gw, struct conn *conn, uint32_t events)
{
	int r = reach(conn);
	if (r > 0) {
		relay_connected(gw, conn, events);
	} else if (r < 0) {
		unwatch(gw, conn);
		next(gw, conn);
	}
}

void publish_late(struct gateway *gw, struct conn *conn)
{
	/* A server whose queue is full is one that may still answer. */
	if (gw->now - conn->when > (conn->state == CONN_WAITS ? SPARE_MAX_NS : DIAL_MAX_NS))
		give_up(gw, conn);
}

void publish_forget(struct gateway *gw, struct conn *conn)
{
	if (conn->state == CONN_WAITS)
		unqueue(gw, conn);
	unwatch(gw, conn);
}

void publish_end(struct gateway *gw)
{
	for (size_t i = 0; i < gw->published_count; i++)
		fd_close(&gw->published[i].source.fd);
}
