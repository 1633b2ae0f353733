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

/* Begin to connect. 0: connected, or it will be known later; or -errno. */
static int attempt(struct gateway *gw, struct conn *conn, const struct net_address *address)
{
	struct sockaddr_storage to;
	socklen_t len = write_address(address, conn->port, &to);
	AUTO_FD fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS)
		return -errno;
	conn->out.fd = fd;
	int r = gateway_watch(gw, &conn->out, FLOW_EVENTS);
	if (r < 0) {
		conn->out.fd = -1;
		return r;
	}
	(void)fd_steal(&fd);
	return 0;
}

void dial_next(struct gateway *gw, struct conn *conn)
{
	fd_close(&conn->out.fd);
	while (conn->tried < conn->count) {
		int r = attempt(gw, conn, &conn->addresses[conn->tried++]);
		conn->when = gw->now;
		if (r == 0)
			return;
		conn->errnum = -r;
	}
	char text[NETWORK_ADDRESS_SIZE];
	const char *host = conn->name ? conn->name->text : network_words(&conn->addresses[0], text);
	tell_failed(gw, host, conn->port, conn->errnum);
	relay_end(gw, conn, true);
}

void dial_ready(struct gateway *gw, struct conn *conn)
{
	int error = 0;
	socklen_t len = sizeof error;
	if (getsockopt(conn->out.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error) {
		conn->errnum = error;
		dial_next(gw, conn);
		return;
	}
	/* Ready without an error is connected; but a socket that never tried says so too. */
	struct sockaddr_storage peer;
	len = sizeof peer;
	if (getpeername(conn->out.fd, (struct sockaddr *)&peer, &len) < 0)
		return;
	relay_connected(gw, conn);
}
