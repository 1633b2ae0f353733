/*
 * gateway_dial: reaches the host, by its addresses one after another. These were checked when they
 * came from the look-up; nothing is looked up here.
 */
#define _GNU_SOURCE
#include "broker/gateway_work.h"
#include "base/fd.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>

static socklen_t write_address(
	const struct net_address *address, uint16_t port, struct sockaddr_storage *ret)
{
	uint32_t v4 = network_v4(address);
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in four = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(v4)
	};
	memset(ret, 0, sizeof *ret);
	if (v4) {
		memcpy(ret, &four, sizeof four);
		return sizeof four;
	}
	memcpy(&six.sin6_addr, address->bytes, sizeof address->bytes);
	memcpy(ret, &six, sizeof six);
	return sizeof six;
}

static int make_socket(int family)
{
	int on = 1;
	AUTO_FD fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	int r = flow_prepare(fd);
	if (r < 0)
		return r;
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	return fd_steal(&fd);
}

static int take_socket(struct gateway *gw, int family)
{
	struct spare *spare = &gw->spares[family == AF_INET6];
	spare->used = true;
	return spare->fd >= 0 ? fd_steal(&spare->fd) : make_socket(family);
}

void dial_spare(struct gateway *gw)
{
	static const int families[SPARES] = { AF_INET, AF_INET6 };
	for (size_t i = 0; i < SPARES; i++) {
		struct spare *spare = &gw->spares[i];
		if (!spare->used)
			continue;
		spare->used = false;
		/* Without one, the next connection makes its own. */
		if (spare->fd < 0 && (spare->fd = make_socket(families[i])) < 0)
			spare->fd = -1;
	}
}

/*
 * Connect, or hear how it went. 1: connected; 0: it will be known later; or -errno. Only connect(2)
 * itself tells these apart: a socket that is ready may have failed, or never have tried.
 */
static int reach(int fd, const struct net_address *address, uint16_t port)
{
	struct sockaddr_storage to;
	socklen_t len = write_address(address, port, &to);
	if (connect(fd, (struct sockaddr *)&to, len) == 0)
		return 1;
	return errno == EINPROGRESS || errno == EALREADY || errno == EINTR ? 0 : -errno;
}

/* As reach(). The socket is watched when that will be known later. */
static int attempt(struct gateway *gw, struct conn *conn, const struct net_address *address)
{
	AUTO_FD fd = take_socket(gw, network_v4(address) ? AF_INET : AF_INET6);
	if (fd < 0)
		return fd;
	int r = reach(fd, address, conn->port);
	/* A host that is near has answered before the call is over. */
	if (r == 0)
		r = reach(fd, address, conn->port);
	if (r < 0)
		return r;
	conn->out.fd = fd;
	if (r == 0) {
		int watched = gateway_watch(gw, &conn->out, FLOW_EVENTS);
		if (watched < 0) {
			conn->out.fd = -1;
			return watched;
		}
	}
	(void)fd_steal(&fd);
	return r;
}

void dial_next(struct gateway *gw, struct conn *conn)
{
	fd_close(&conn->out.fd);
	while (conn->tried < conn->count) {
		int r = attempt(gw, conn, &conn->addresses[conn->tried++]);
		conn->when = gw->now;
		if (r > 0)
			relay_connected(gw, conn, 0);
		if (r >= 0)
			return;
		conn->errnum = -r;
	}
	char text[NETWORK_ADDRESS_SIZE];
	const char *host = conn->name ? conn->name->text : network_words(&conn->addresses[0], text);
	tell_failed(gw, host, conn->port, conn->errnum);
	relay_end(gw, conn, true);
}

void dial_ready(struct gateway *gw, struct conn *conn, uint32_t events)
{
	int r = reach(conn->out.fd, &conn->addresses[conn->tried - 1], conn->port);
	if (r > 0) {
		relay_connected(gw, conn, events);
	} else if (r < 0) {
		conn->errnum = -r;
		dial_next(gw, conn);
	}
}
