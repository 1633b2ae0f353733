/* network: who may be reached. Compares; asks and looks up nothing. */
#define _GNU_SOURCE
#include "plan/network.h"

#include <arpa/inet.h>
#include <string.h>

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

static bool is_v4(const struct net_address *address)
{
	return memcmp(address->bytes, mapped, sizeof mapped) == 0;
}

uint32_t network_v4(const struct net_address *address)
{
	const uint8_t *b = address->bytes + 12;
	if (!is_v4(address))
		return 0;
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

struct net_address network_of_v4(uint32_t v4)
{
	struct net_address address = { { 0 } };
	memcpy(address.bytes, mapped, sizeof mapped);
	for (int i = 0; i < 4; i++)
		address.bytes[12 + i] = (uint8_t)(v4 >> (24 - 8 * i));
	return address;
}

bool network_parse(const char *text, struct net_address *ret)
{
	struct net_address address;
	uint8_t v4[4];
	if (inet_pton(AF_INET, text, v4) == 1) {
		memcpy(address.bytes, mapped, sizeof mapped);
		memcpy(address.bytes + 12, v4, sizeof v4);
	} else if (inet_pton(AF_INET6, text, address.bytes) != 1) {
		return false;
	}
	*ret = address;
	return true;
}

const char *network_words(const struct net_address *address, char text[NETWORK_ADDRESS_SIZE])
{
	bool v4 = is_v4(address);
	if (!inet_ntop(v4 ? AF_INET : AF_INET6, address->bytes + (v4 ? 12 : 0), text,
		    NETWORK_ADDRESS_SIZE))
		text[0] = 0;
	return text;
}

static bool same_prefix(const uint8_t *a, const uint8_t *b, unsigned prefix)
{
	unsigned bytes = prefix / 8, bits = prefix % 8;
	if (memcmp(a, b, bytes) != 0)
		return false;
	return !bits || ((a[bytes] ^ b[bytes]) >> (8 - bits)) == 0;
}

static bool names(const struct net_rule *rule, const char *name)
{
	if (!rule->name)
		return false;
	/* That name is nobody's on the internet, and no star stands for it. */
	if (!rule->wildcard || strcmp(name, "host.internal") == 0)
		return strcmp(rule->name, name) == 0;
	size_t len = strlen(name), suffix = strlen(rule->name);
	return len > suffix && strcmp(name + len - suffix, rule->name) == 0;
}

/*
 * Addresses that are this host itself to whoever dials them here, 0.0.0.0 among them (ip(7)). In
 * the box they are the box; outside, no address rule reaches the host's own loopback: host.internal
 * does.
 */
static bool is_self(const struct net_address *address)
{
	uint32_t v4 = network_v4(address);
	static const uint8_t high[15] = { 0 };
	if (is_v4(address))
		return v4 >> 24 == 0 || v4 >> 24 == 127;
	return memcmp(address->bytes, high, sizeof high) == 0 && address->bytes[15] <= 1;
}

bool network_is_loopback(const struct net_address *address)
{
	static const struct net_address six = { { [15] = 1 } };
	return network_v4(address) >> 24 == 127 || memcmp(address, &six, sizeof six) == 0;
}

/* Each family by rules of its own: [::/0] speaks of IPv6 addresses only. */
static bool covers(const struct net_rule *rule, const struct net_address *address)
{
	return !rule->name && !is_self(address) && is_v4(&rule->address) == is_v4(address) &&
	       same_prefix(rule->address.bytes, address->bytes, rule->prefix);
}

static bool has_port(const struct net_rule *rule, uint16_t port)
{
	for (size_t i = 0; i < rule->port_count; i++)
		if (rule->ports[i] == port)
			return true;
	return false;
}

/* port NULL: any */
static const struct net_rule *find_name(
	const struct network_plan *network, const char *name, const uint16_t *port)
{
	const struct net_rule *found = NULL;
	for (size_t i = 0; i < network->rule_count; i++) {
		const struct net_rule *rule = &network->rules[i];
		if (!names(rule, name) || (port && !has_port(rule, *port)))
			continue;
		/* Rules add up, whatever their order: a policy may loosen what one below it says.
		 */
		if (!found || (rule->any_name && !found->any_name))
			found = rule;
	}
	return found;
}

static const struct net_rule *find_address(
	const struct network_plan *network, const struct net_address *address, const uint16_t *port)
{
	for (size_t i = 0; i < network->rule_count; i++)
		if (covers(&network->rules[i], address) &&
			(!port || has_port(&network->rules[i], *port)))
			return &network->rules[i];
	return NULL;
}

const struct net_rule *network_lists(const struct network_plan *network, const char *name)
{
	return find_name(network, name, NULL);
}

const struct net_rule *network_by_name(
	const struct network_plan *network, const char *name, uint16_t port)
{
	return find_name(network, name, &port);
}

const struct net_rule *network_by_address(
	const struct network_plan *network, const struct net_address *address, uint16_t port)
{
	return find_address(network, address, &port);
}

const struct net_rule *network_near(
	const struct network_plan *network, const char *name, const struct net_address *address)
{
	return name ? find_name(network, name, NULL) : find_address(network, address, NULL);
}

/*
 * The IANA registries of special addresses (RFC 6890), but for those that are for documentation:
 * nobody is there, so nothing is protected by refusing them.
 */
static const struct special {
	uint8_t bytes[16];
	uint8_t prefix;
} specials[] = {
#define V4(a, b, c, d, bits)                                                                       \
	{                                                                                          \
		{ [10] = 0xff, [11] = 0xff, a, b, c, d }, 96 + (bits)                              \
	}
	V4(0, 0, 0, 0, 8),        /* this network */
	V4(10, 0, 0, 0, 8),       /* private */
	V4(100, 64, 0, 0, 10),    /* shared: carriers, and overlays such as Tailscale */
	V4(127, 0, 0, 0, 8),      /* loopback */
	V4(169, 254, 0, 0, 16),   /* link-local: cloud metadata */
	V4(172, 16, 0, 0, 12),    /* private */
	V4(192, 0, 0, 0, 24),     /* protocol assignments; Oracle's metadata is 192.0.0.192 */
	V4(192, 168, 0, 0, 16),   /* private */
	V4(198, 18, 0, 0, 15),    /* benchmarks; the box's own names */
	V4(224, 0, 0, 0, 4),      /* multicast */
	V4(240, 0, 0, 0, 4),      /* reserved, broadcast */
	V4(168, 63, 129, 16, 32), /* Azure's metadata and DHCP, on a public address */
#undef V4
	{ { 0 }, 96 },                                  /* unspecified, loopback, IPv4-compatible */
	{ { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 }, 48 }, /* local translation */
	{ { 0x01, 0x00 }, 64 },                         /* discard */
	{ { 0x20, 0x01, 0x00, 0x00 }, 23 }, /* protocol assignments, Teredo among them */
	{ { 0x5f, 0x00 }, 16 },             /* segment routing */
	{ { 0xfc }, 7 },                    /* unique local */
	{ { 0xfe, 0x80 }, 10 },             /* link-local */
	{ { 0xfe, 0xc0 }, 10 },             /* site-local, of old */
	{ { 0xff }, 8 },                    /* multicast */
};

static bool is_special(const struct net_address *address)
{
	for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
		if (same_prefix(specials[i].bytes, address->bytes, specials[i].prefix))
			return true;
	return false;
}

bool network_is_public(const struct net_address *address)
{
	static const uint8_t nat64[12] = { 0x00, 0x64, 0xff, 0x9b }; /* RFC 6052 */
	static const uint8_t six_to_four[2] = { 0x20, 0x02 };        /* RFC 3056 */
	struct net_address inner = { { [10] = 0xff, [11] = 0xff } };
	if (is_special(address))
		return false;
	if (memcmp(address->bytes, nat64, sizeof nat64) == 0)
		memcpy(inner.bytes + 12, address->bytes + 12, 4);
	else if (memcmp(address->bytes, six_to_four, sizeof six_to_four) == 0)
		memcpy(inner.bytes + 12, address->bytes + 2, 4);
	else
		return is_v4(address) || address->bytes[0] >> 5 == 1; /* 2000::/3, RFC 4291 */
	return !is_special(&inner);
}

bool network_may_dial(
	const struct network_plan *network, const struct net_address *address, uint16_t port)
{
	return network_is_public(address) || network_by_address(network, address, port);
}
