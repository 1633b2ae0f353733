/*
 * publish: the host's end of published ports. The listening sockets are opened here, by the caller
 * and with no more than its rights, and handed to the gateway; who comes in is the gateway's work.
 */
#define _GNU_SOURCE
#include "supervise/run.h"
#include "base/fd.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 4096

/*
 * A listening socket. SO_REUSEADDR lets a given port be taken again while connections of an earlier
 * run fade away (tcp(7), TIME_WAIT); nobody can bind a port whose socket listens, and of two that
 * have bound it one alone can listen. Without SO_REUSEPORT no other process can share it.
 * 0 or -errno.
 */
static int open_port(struct published_port *port)
{
	int on = 1;
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_port = htons(port->host_port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof address;
	AUTO_FD sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0 ||
		(port->host_port &&
			setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0) ||
		bind(sock, (struct sockaddr *)&address, sizeof address) < 0 ||
		listen(sock, BACKLOG) < 0 ||
		getsockname(sock, (struct sockaddr *)&address, &len) < 0)
		return -errno;
	port->host_port = ntohs(address.sin_port);
	port->sock = fd_steal(&sock);
	return 0;
}

static int refuse(const struct network_publish *asked, int errnum, struct err *err)
{
	if (!asked->host_port)
		return err_set(err, ERR_network_failed, errnum,
			"no port of the host could be had for port %u of the box: %s", asked->port,
			strerror(errnum));
	err_set(err, ERR_network_failed, errnum,
		"port %u of the host's 127.0.0.1 cannot be published: %s", asked->host_port,
		strerror(errnum));
	return err_hint_set(err,
		"network: {publish: [%u]} takes a free port; --ports-fd and the result tell which",
		asked->port);
}

int published_open(const struct network_plan *network, struct published *ret, struct err *err)
{
	struct published published = { .count = 0 };
	for (size_t i = 0; i < network->publish_count; i++) {
		const struct network_publish *asked = &network->publish[i];
		struct published_port *port = &published.ports[i];
		*port = (struct published_port){ -1, asked->port, asked->host_port };
		int r = open_port(port);
		if (r < 0) {
			published_close(&published);
			return refuse(asked, -r, err);
		}
		published.count++;
	}
	*ret = published;
	return 0;
}

void published_close(struct published *published)
{
	for (size_t i = 0; i < published->count; i++)
		fd_close(&published->ports[i].sock);
}

void published_hand(struct run *run)
{
	struct published *published = run->io->published;
	if (!published)
		return;
	for (size_t i = 0; i < published->count; i++) {
		struct published_port *port = &published->ports[i];
		struct gateway_msg msg = {
			.magic = GATEWAY_MAGIC, .kind = GATEWAY_PUBLISH, .port = port->port
		};
		if (run->network.sock >= 0 && port->sock >= 0)
			/* Its end would show at the other end of this socket. */
			(void)gateway_send(run->network.sock, &msg, port->sock);
		fd_close(&port->sock);
	}
}

/* Only while the command runs: init has other things to do before and after. */
static void want(struct run *run, int family)
{
	struct sync_msg msg;
	bool runs = run->state == STATE_RUNNING || run->state == STATE_TERMINATING;
	/* The gateway asks for no more than that; so init's socket always has room. */
	if (!runs || run->network.wanted >= GATEWAY_WANTED_MAX || run->box->status_fd < 0 ||
		!run->plan->reach.publish_count)
		return;
	memset(&msg, 0, sizeof msg);
	msg.magic = SYNC_MAGIC;
	msg.kind = SYNC_WANTED;
	msg.family = family;
	if (sync_send(run->box->status_fd, &msg, -1) == 0)
		run->network.wanted++;
}

void published_spare(struct run *run)
{
	struct gateway_msg msg = {
		.magic = GATEWAY_MAGIC, .kind = GATEWAY_SPARE, .family = (uint16_t)run->msg.family
	};
	AUTO_FD sock = fd_steal(&run->msg_fd);
	run->network.wanted--;
	/* Without it the client waits for a while, and is then refused. */
	if (run->network.sock >= 0)
		(void)gateway_send(run->network.sock, &msg, sock);
}

void published_hear(struct run *run, const struct gateway_msg *msg)
{
	struct served served = { .port = msg->port };
	if (msg->kind == GATEWAY_WANTED) {
		want(run, msg->family);
		return;
	}
	if (msg->kind == GATEWAY_UNANSWERED) {
		served.unanswered = msg->count;
	} else {
		served.connections = msg->count;
		served.sent = msg->sent;
		served.received = msg->received;
	}
	result_served(run->result, &served);
}
