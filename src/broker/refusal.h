/*
 * refusal: what a packet by which the box's kernel refused something says of it. Pure; the packets
 * are the kernel's, but the box can send some of its own making to itself.
 *
 * Sources: RFC 9293 section 3.5.2 (a reset that answers the first segment has the sequence number
 * 0), RFC 792 and RFC 4443 (destination unreachable, with the head of what was sent).
 */
#ifndef AGENTBOX_BROKER_REFUSAL_H
#define AGENTBOX_BROKER_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/network.h"

struct refusal {
	bool datagram; /* UDP; else a TCP connection */
	struct net_address to;
	uint16_t port;
};

/* `packet` begins with its IPv4 header. False: it refuses neither of these. */
bool refusal_read(const uint8_t *packet, size_t len, struct refusal *ret);

/* `body` is what stands behind the IPv6 header, `from` whence it came; icmp: ICMPv6, else TCP. */
bool refusal_read6(const uint8_t *body, size_t len, bool icmp, const struct net_address *from,
	struct refusal *ret);

#endif
