/*
 * gateway_refusals: what nobody listens for is refused by the box's own kernel, at once and without
 * us; so that the result can tell of it, we hear the refusal.
 */
#define _GNU_SOURCE
#include "broker/gateway_work.h"
#include "broker/refusal.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

static void tell(struct gateway *gw, const struct refusal *refusal)
{
	char text[NETWORK_ADDRESS_SIZE];
	const struct name *name = name_of_address(gw, &refusal->to);
	const char *host = name ? name->text : network_words(&refusal->to, text);
	/* Nothing is wrong with a port of the box's own that nobody listens at. */
	if (network_is_loopback(&refusal->to))
		return;
	tell_refused(
		gw, refusal->datagram ? GATEWAY_PROTOCOL : GATEWAY_NOT_LISTED, host, refusal->port);
}

void refusals_turn(struct gateway *gw, const struct source *source)
{
	/* In the order of plan/network.h, behind the one for names. */
	size_t n = (size_t)(source - gw->sockets) - 1;
	bool is_six = n >= 2, icmp = n % 2;
	uint8_t packet[NETWORK_REFUSAL_SIZE];
	for (int i = 0; i < MESSAGES_A_TURN; i++) {
		struct sockaddr_in6 six = { 0 };
		socklen_t len = sizeof six;
		struct net_address from;
		struct refusal refusal;
		ssize_t got = recvfrom(source->fd, packet, sizeof packet, MSG_DONTWAIT,
			(struct sockaddr *)&six, &len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return;
		memcpy(from.bytes, &six.sin6_addr, sizeof from.bytes);
		if (is_six ? refusal_read6(packet, (size_t)got, icmp, &from, &refusal)
			   : refusal_read(packet, (size_t)got, &refusal))
			tell(gw, &refusal);
	}
}
