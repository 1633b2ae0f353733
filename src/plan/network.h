/*
 * network: what of the network a box may reach, as a value, and the one place where that is
 * decided: the gateway asks here before it dials, and `explain --host` answers from here.
 *
 * Pure. A name is compared in one form: ASCII, lower case, without a last dot. An address has one
 * form as well: 16 bytes, IPv4 as ::ffff:a.b.c.d (RFC 4291), so that no dress changes what it is.
 */
#ifndef AGENTBOX_PLAN_NETWORK_H
#define AGENTBOX_PLAN_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct net_address {
	uint8_t bytes[16];
};

struct net_rule {
	const char
		*name; /* without the star of a wildcard, so with a dot in front; NULL: address */
	bool wildcard;
	bool host_loopback; /* host.internal: a port of the host's own loopback */
	bool any_name;      /* what connections say that they are for is not looked at */
	struct net_address address;
	unsigned prefix; /* bits of the 128 */
	uint16_t ports[16];
	size_t port_count;
	const char *given; /* as the policy has it */
};

#define NETWORK_PORTS_MAX                                                                          \
	128 /* different ports that are listened on, the service of names aside                    \
	     */

/* A port of the box that is reachable on the host's 127.0.0.1. */
#define NETWORK_PUBLISH_MAX 16
struct network_publish {
	uint16_t port;
	uint16_t host_port; /* 0: any free one */
};

struct network_plan {
	const struct net_rule *rules; /* none: nobody is reached from inside */
	size_t rule_count;
	const uint16_t *ports; /* of all rules, each once, without that of the service of names */
	size_t port_count;
	const struct network_publish *publish; /* with or without rules */
	size_t publish_count;
};

/*
 * The sockets that the box makes for the gateway, in this order: names by datagrams; what the box's
 * kernel refuses, to be told of (raw(7): TCP and ICMP of IPv4, then of IPv6); names by streams (and
 * whatever else is listed with that port); and one for each of `ports`.
 */
#define NETWORK_NAMES_PORT   53
#define NETWORK_REFUSALS     4
#define NETWORK_REFUSAL_SIZE 128 /* bytes of a refusing packet that are looked at */
static inline size_t network_sockets(const struct network_plan *network)
{
	return network->rule_count ? 2 + NETWORK_REFUSALS + network->port_count : 0;
}

/* Is there a gateway: has anything a way in or out? */
static inline bool network_served(const struct network_plan *network)
{
	return network->rule_count || network->publish_count;
}

/*
 * Addresses that stand for listed names inside the box: 198.18.0.0/15, which no host on the
 * internet has (RFC 2544, RFC 6890). The box's name service is told of as an address of its own
 * loopback.
 */
#define NETWORK_NAMES_FIRST 0xc6120001u /* 198.18.0.1 */
#define NETWORK_NAMES_MAX   4096u       /* names that one run may ask for */
#define NETWORK_RESOLVER    "127.0.0.1"

/* The first rule that lists the name, with whatever port; or NULL. */
const struct net_rule *network_lists(const struct network_plan *network, const char *name);

/* The rule that grants it, or NULL. Of several the one that asks least: any_name wins. */
const struct net_rule *network_by_name(
	const struct network_plan *network, const char *name, uint16_t port);
const struct net_rule *network_by_address(
	const struct network_plan *network, const struct net_address *address, uint16_t port);

/* A rule for the host that lacks the port, for words; NULL: none. name or address is NULL. */
const struct net_rule *network_near(
	const struct network_plan *network, const char *name, const struct net_address *address);

/*
 * May the address be dialled for a name that is listed? Those of the internet may; private, shared,
 * loopback, link-local, multicast, reserved and metadata addresses (RFC 6890 and its registry), and
 * IPv6 addresses that carry such an IPv4 address (RFC 6052, RFC 3056, RFC 4380), only where an
 * address rule has them with the port.
 */
bool network_may_dial(
	const struct network_plan *network, const struct net_address *address, uint16_t port);
bool network_is_public(const struct net_address *address);
/* 127.0.0.0/8 and ::1: in the box its own, outside the host's; no address rule grants them. */
bool network_is_loopback(const struct net_address *address);

/* "192.0.2.1", "2001:db8::1"; false: not an address. And back; text has room for 46 bytes. */
#define NETWORK_ADDRESS_SIZE 46
bool network_parse(const char *text, struct net_address *ret);
const char *network_words(const struct net_address *address, char text[NETWORK_ADDRESS_SIZE]);

/* The IPv4 address in host order; 0: it is an IPv6 address (or 0.0.0.0). And the other way. */
uint32_t network_v4(const struct net_address *address);
struct net_address network_of_v4(uint32_t v4);

#endif
