/*
 * network_test: who may be reached. Rules as the policy's text makes them, held against names,
 * addresses and ports; the addresses that a name may not lead to, each row of them; and the one
 * form of an address. Cases B37 and B38 as far as deciding goes.
 */
#define _GNU_SOURCE
#include "check.h"
#include "base/arena.h"
#include "plan/network.h"
#include "plan/network_build.h"
#include "policy/policy.h"

#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct made {
	struct policy policy;
	struct arena arena;
	struct network_plan network;
};

/* The elements of network.allow, as YAML; ends the test when they are none. */
static struct made *make(const char *section)
{
	static const struct policy_env env = { .home = "/home/ann" };
	struct made *made = calloc(1, sizeof *made);
	struct err err = { 0 };
	char text[16384];
	snprintf(text, sizeof text, "version: 1\nnetwork: %s\n", section);
	if (policy_parse(text, strlen(text), "p.yaml", &env, &made->policy, &err) < 0 ||
		!network_build(&made->policy, &made->arena, &made->network)) {
		fprintf(stderr, "%s: %s\n", section, err.text);
		exit(1);
	}
	return made;
}

static void drop(struct made *made)
{
	arena_free(&made->arena);
	policy_free(&made->policy);
	free(made);
}

static struct net_address address(const char *text)
{
	struct net_address address = { { 0 } };
	if (!network_parse(text, &address)) {
		fprintf(stderr, "%s is no address\n", text);
		exit(1);
	}
	return address;
}

/* -1: no rule; else its number */
static int rule_of(const struct network_plan *network, const char *host, uint16_t port, bool name)
{
	struct net_address to = name ? (struct net_address){ { 0 } } : address(host);
	const struct net_rule *rule = name ? network_by_name(network, host, port)
					   : network_by_address(network, &to, port);
	return rule ? (int)(rule - network->rules) : -1;
}

static void names_are_held_by_whole_labels(void)
{
	struct made *made = make("{allow: [Allowed.TEST., '*.Wild.test:443', git.test:22, "
				 "'*.internal', 10.0.0.0/8]}");
	static const struct {
		const char *name;
		uint16_t port;
		int rule;
		bool listed;
	} rows[] = {
		{ "allowed.test", 443, 0, true }, { "allowed.test", 80, 0, true },
		{ "allowed.test", 8080, -1, true }, { "allowed.test", 0, -1, true },
		{ "notallowed.test", 443, -1, false }, { "x.allowed.test", 443, -1, false },
		{ "allowed.test.evil.test", 443, -1, false }, { "allowed.tes", 443, -1, false },
		{ "allowed", 443, -1, false }, { "", 443, -1, false },
		{ "a.wild.test", 443, 1, true }, { "a.b.wild.test", 443, 1, true },
		{ "a.wild.test", 80, -1, true }, { "wild.test", 443, -1, false },
		{ ".wild.test", 443, -1, false }, { "evilwild.test", 443, -1, false },
		{ "a.wild.test.evil", 443, -1, false }, { "git.test", 22, 2, true },
		{ "git.test", 443, -1, true }, { "metadata.internal", 443, 3, true },
		{ "x.host.internal", 443, 3, true }, { "host.internal", 443, -1, false },
		{ "10.1.2.3", 443, -1, false }, /* a name that looks like an address is none */
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		int rule = rule_of(&made->network, rows[i].name, rows[i].port, true);
		bool listed = network_lists(&made->network, rows[i].name) != NULL;
		bool near = network_near(&made->network, rows[i].name, NULL) != NULL;
		CHECK(rule == rows[i].rule && listed == rows[i].listed && near == listed);
		if (rule != rows[i].rule || listed != rows[i].listed)
			fprintf(stderr, "   of %s:%d: %d\n", rows[i].name, rows[i].port, rule);
	}
	drop(made);
}

static void addresses_are_held_by_their_family_and_bits(void)
{
	struct made *made = make("{allow: [10.1.0.0/16:5432, 192.0.2.7, '[2001:db8::/33]:22', "
				 "'0.0.0.0/0:99', '[::/0]:98', 172.16.0.0/13:1, a.test]}");
	static const struct {
		const char *address;
		uint16_t port;
		int rule;
	} rows[] = {
		{ "10.1.0.0", 5432, 0 },
		{ "10.1.255.255", 5432, 0 },
		{ "10.0.255.255", 5432, -1 },
		{ "10.2.0.0", 5432, -1 },
		{ "10.1.2.3", 443, -1 },
		{ "::ffff:10.1.2.3", 5432, 0 },
		{ "::10.1.2.3", 5432, -1 },
		{ "64:ff9b::10.1.2.3", 5432, -1 },
		{ "192.0.2.7", 443, 1 },
		{ "192.0.2.7", 80, 1 },
		{ "192.0.2.7", 81, -1 },
		{ "192.0.2.6", 443, -1 },
		{ "2001:db8::1", 22, 2 },
		{ "2001:db8:7fff:ffff::", 22, 2 },
		{ "2001:db8:8000::", 22, -1 },
		{ "172.23.255.255", 1, 5 },
		{ "172.24.0.0", 1, -1 },
		{ "198.51.100.1", 99, 3 },
		{ "169.254.169.254", 99, 3 },
		{ "2001:db8::1", 99, -1 }, /* all of IPv4 is no IPv6 */
		{ "2001:db8::1", 98, 4 },
		{ "198.51.100.1", 98, -1 }, /* and the other way */
		{ "::ffff:198.51.100.1", 98, -1 },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		int rule = rule_of(&made->network, rows[i].address, rows[i].port, false);
		CHECK(rule == rows[i].rule);
		if (rule != rows[i].rule)
			fprintf(stderr, "   of %s:%d: %d\n", rows[i].address, rows[i].port, rule);
	}
	drop(made);
}

/* The host's own loopback is host.internal's alone, whatever range is granted. */
static void the_host_itself_is_no_address(void)
{
	struct made *made = make("{allow: ['0.0.0.0/0:5', '[::/0]:5', '126.0.0.0/7:5', "
				 "'[::/126]:5', 'host.internal:5', '*.internal:6']}");
	static const char *const self[] = { "127.0.0.1", "127.255.255.254", "127.0.0.53", "0.0.0.0",
		"0.1.2.3", "::1", "::", "::ffff:127.0.0.1", "::ffff:0.0.0.0", "::ffff:7f00:1" };
	for (size_t i = 0; i < COUNT(self); i++) {
		struct net_address to = address(self[i]);
		bool reached = rule_of(&made->network, self[i], 5, false) >= 0 ||
			       network_may_dial(&made->network, &to, 5) ||
			       network_near(&made->network, NULL, &to);
		CHECK(!reached);
		if (reached)
			fprintf(stderr, "   of %s\n", self[i]);
	}
	CHECK(rule_of(&made->network, "126.0.0.1", 5, false) == 0);
	CHECK(rule_of(&made->network, "::2", 5, false) == 1);
	int rule = rule_of(&made->network, "host.internal", 5, true);
	CHECK(rule == 4 && made->network.rules[rule].host_loopback);
	CHECK(rule_of(&made->network, "host.internal", 6, true) == -1);
	CHECK(rule_of(&made->network, "x.internal", 6, true) == 5);
	CHECK(!made->network.rules[5].host_loopback);
	drop(made);
	made = make("{allow: ['*.internal', 'x.host.internal']}");
	CHECK(!network_lists(&made->network, "host.internal"));
	drop(made);
}

/* First and last address of each range that is not the internet's, and their neighbours outside. */
static const struct {
	const char *address;
	bool public;
} ranges[] = {
	{ "0.0.0.0", false },
	{ "0.255.255.255", false },
	{ "1.0.0.0", true },
	{ "9.255.255.255", true },
	{ "10.0.0.0", false },
	{ "10.255.255.255", false },
	{ "11.0.0.0", true },
	{ "100.63.255.255", true },
	{ "100.64.0.0", false },
	{ "100.100.100.200", false },
	{ "100.127.255.255", false },
	{ "100.128.0.0", true },
	{ "126.255.255.255", true },
	{ "127.0.0.0", false },
	{ "127.255.255.255", false },
	{ "128.0.0.0", true },
	{ "168.63.129.15", true },
	{ "168.63.129.16", false },
	{ "168.63.129.17", true },
	{ "169.253.255.255", true },
	{ "169.254.0.0", false },
	{ "169.254.169.254", false },
	{ "169.254.255.255", false },
	{ "169.255.0.0", true },
	{ "172.15.255.255", true },
	{ "172.16.0.0", false },
	{ "172.31.255.255", false },
	{ "172.32.0.0", true },
	{ "191.255.255.255", true },
	{ "192.0.0.0", false },
	{ "192.0.0.192", false },
	{ "192.0.0.255", false },
	{ "192.0.1.0", true },
	{ "192.167.255.255", true },
	{ "192.168.0.0", false },
	{ "192.168.255.255", false },
	{ "192.169.0.0", true },
	{ "198.17.255.255", true },
	{ "198.18.0.0", false },
	{ "198.19.255.255", false },
	{ "198.20.0.0", true },
	{ "223.255.255.255", true },
	{ "224.0.0.0", false },
	{ "239.255.255.255", false },
	{ "240.0.0.0", false },
	{ "255.255.255.255", false },
	{ "::", false },
	{ "::1", false },
	{ "::7f00:1", false },
	{ "::ffff:ffff", false },
	{ "::1:0:0", false },
	{ "::ffff:10.0.0.1", false },
	{ "::ffff:8.8.8.8", true },
	{ "64:ff9a:ffff::", false },
	{ "64:ff9b:1::", false },
	{ "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", false },
	{ "64:ff9b:2::", false },
	{ "100::", false },
	{ "100::ffff:ffff:ffff:ffff", false },
	{ "100:0:0:1::", false },
	{ "1fff:ffff::", false },
	{ "2000:ffff::", true },
	{ "3ffe:ffff::", true },
	{ "4000::", false },
	{ "::ffff:0:a01:203", false }, /* ::ffff:0:10.1.2.3, RFC 2765 */
	{ "2001::", false },
	{ "2001:0:5ef5:79fd::1", false },
	{ "2001:1ff:ffff::", false },
	{ "2001:200::", true },
	{ "2606:4700::1111", true },
	{ "5eff:ffff::", false },
	{ "5f00::", false },
	{ "5f00:ffff::", false },
	{ "5f01::", false },
	{ "fbff:ffff::", false },
	{ "fc00::", false },
	{ "fd00:ec2::254", false },
	{ "fdff:ffff::", false },
	{ "fe00::", false },
	{ "fe7f:ffff::", false },
	{ "fe80::", false },
	{ "febf:ffff::", false },
	{ "fec0::", false },
	{ "feff:ffff::", false },
	{ "ff00::", false },
	{ "ff02::1", false },
	{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false },
	/* Addresses that carry an IPv4 address are what that is. */
	{ "64:ff9b::8.8.8.8", true },
	{ "64:ff9b::127.0.0.1", false },
	{ "64:ff9b::10.0.0.1", false },
	{ "64:ff9b::169.254.169.254", false },
	{ "64:ff9b::192.168.1.1", false },
	{ "64:ff9b::168.63.129.16", false },
	{ "64:ff9b::0.0.0.0", false },
	{ "2002:808:808::1", true },
	{ "2002:7f00:1::1", false },
	{ "2002:a00:1::", false },
	{ "2002:a9fe:a9fe::1", false },
	{ "2002:c0a8:101::1", false },
};

static void a_name_leads_only_to_the_internet(void)
{
	struct made *made = make("{allow: [a.test]}");
	for (size_t i = 0; i < COUNT(ranges); i++) {
		struct net_address to = address(ranges[i].address);
		CHECK(network_is_public(&to) == ranges[i].public);
		CHECK(network_may_dial(&made->network, &to, 443) == ranges[i].public);
		if (network_is_public(&to) != ranges[i].public)
			fprintf(stderr, "   of %s\n", ranges[i].address);
	}
	drop(made);
}

/* A private one only where a rule for addresses has it with that very port. */
static void a_name_leads_to_what_an_address_rule_has(void)
{
	struct made *made = make("{allow: [a.test, 10.0.0.0/8:443, '[fd00::/8]:443']}");
	static const struct {
		const char *address;
		uint16_t port;
		bool may;
	} rows[] = {
		{ "10.0.0.1", 443, true },
		{ "10.0.0.1", 80, false },
		{ "192.168.0.1", 443, false },
		{ "fd00::1", 443, true },
		{ "fd00::1", 22, false },
		{ "fc00::1", 443, false },
		{ "64:ff9b::10.0.0.1", 443, false },
		{ "2002:a00:1::", 443, false },
		{ "8.8.8.8", 22, true },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct net_address to = address(rows[i].address);
		CHECK(network_may_dial(&made->network, &to, rows[i].port) == rows[i].may);
	}
	drop(made);
}

/* Rules add up, in whatever order they stand. */
static void any_name_is_found_behind_a_stricter_rule(void)
{
	static const char *const sections[] = {
		"{allow: ['*.b.test', {host: 'a.b.test:443', any_name: true}]}",
		"{allow: [{host: 'a.b.test:443', any_name: true}, '*.b.test']}",
	};
	for (size_t i = 0; i < COUNT(sections); i++) {
		struct made *made = make(sections[i]);
		const struct net_rule *rule;
		CHECK((rule = network_by_name(&made->network, "a.b.test", 443)) && rule->any_name);
		CHECK((rule = network_by_name(&made->network, "a.b.test", 80)) && !rule->any_name);
		CHECK((rule = network_by_name(&made->network, "c.b.test", 443)) && !rule->any_name);
		CHECK(!network_by_name(&made->network, "a.b.test", 22));
		drop(made);
	}
}

static void addresses_have_one_form(void)
{
	static const struct {
		const char *text, *words;
		uint32_t v4;
	} rows[] = {
		{ "192.0.2.1", "192.0.2.1", 0xc0000201 },
		{ "::ffff:192.0.2.1", "192.0.2.1", 0xc0000201 },
		{ "::FFFF:c000:0201", "192.0.2.1", 0xc0000201 },
		{ "255.255.255.255", "255.255.255.255", 0xffffffff },
		{ "0.0.0.0", "0.0.0.0", 0 },
		{ "198.18.0.1", "198.18.0.1", NETWORK_NAMES_FIRST },
		{ NETWORK_RESOLVER, NETWORK_RESOLVER, 0x7f000001 },
		{ "2001:DB8:0::1", "2001:db8::1", 0 },
		{ "::", "::", 0 },
		{ "::192.0.2.1", "::192.0.2.1", 0 },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255",
			"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 0 },
	};
	char text[NETWORK_ADDRESS_SIZE];
	struct net_address again;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct net_address to = address(rows[i].text);
		CHECK_TEXT(network_words(&to, text), rows[i].words);
		CHECK(network_parse(text, &again) && memcmp(&again, &to, sizeof to) == 0);
		CHECK(network_v4(&to) == rows[i].v4);
		if (!rows[i].v4)
			continue;
		again = network_of_v4(rows[i].v4);
		CHECK(memcmp(&again, &to, sizeof to) == 0);
	}
	static const char *const none[] = { "", "a.test", "1.2.3", "1.2.3.4.5", "1.2.3.256",
		"127.1", "0x7f.0.0.1", "1.2.3.4/8", "[::1]", "::1%lo", "fe80::1%1", " ::1", "1:2",
		":::" };
	for (size_t i = 0; i < COUNT(none); i++) {
		memset(&again, 7, sizeof again);
		CHECK(!network_parse(none[i], &again) && again.bytes[0] == 7);
	}
}

static void ports_are_collected_once(void)
{
	struct made *made =
		make("{allow: [a.test, b.test, 'c.test:53', 'd.test:443', 'e.test:22'], "
		     "publish: [8080, '9000:3000']}");
	static const uint16_t wanted[] = { 443, 80, 22 };
	CHECK(made->network.rule_count == 5 && made->network.port_count == COUNT(wanted));
	for (size_t i = 0; i < COUNT(wanted) && i < made->network.port_count; i++)
		CHECK(made->network.ports[i] == wanted[i]);
	CHECK(network_sockets(&made->network) == 2 + NETWORK_REFUSALS + COUNT(wanted));
	CHECK_TEXT(made->network.rules[2].given, "c.test:53");
	CHECK(made->network.publish_count == 2 && network_served(&made->network));
	CHECK(network_clash(&made->network) == 2);
	CHECK(made->network.publish[0].port == 8080 && made->network.publish[0].host_port == 0);
	CHECK(made->network.publish[1].port == 3000 && made->network.publish[1].host_port == 9000);
	drop(made);

	static const char *const none[] = { "none", "host", "{}", "{allow: []}" };
	for (size_t i = 0; i < COUNT(none); i++) {
		made = make(none[i]);
		CHECK(made->network.rule_count == 0 && made->network.publish_count == 0);
		CHECK(network_sockets(&made->network) == 0);
		CHECK(rule_of(&made->network, "8.8.8.8", 443, false) == -1);
		CHECK(rule_of(&made->network, "a.test", 443, true) == -1);
		drop(made);
	}
	made = make("{publish: [80]}");
	CHECK(made->network.rule_count == 0 && made->network.publish_count == 1);
	CHECK(network_sockets(&made->network) == 0);
	drop(made);
}

/* As many different ports as there are sockets for, and one more. */
static void too_many_ports_are_refused(void)
{
	for (int count = NETWORK_PORTS_MAX; count <= NETWORK_PORTS_MAX + 1; count++) {
		static const struct policy_env env = { .home = "/home/ann" };
		char text[8192];
		size_t len =
			(size_t)snprintf(text, sizeof text, "version: 1\nnetwork: {allow: [a:53");
		for (int i = 0; i < count; i++)
			len += (size_t)snprintf(
				text + len, sizeof text - len, ", 'a.test:%d'", 1000 + i);
		len += (size_t)snprintf(text + len, sizeof text - len, "]}\n");
		struct policy policy = { 0 };
		struct arena arena = { 0 };
		struct network_plan network;
		struct err err = { 0 };
		CHECK(policy_parse(text, len, "p.yaml", &env, &policy, &err) == 0);
		CHECK(network_build(&policy, &arena, &network) == (count == NETWORK_PORTS_MAX));
		CHECK(count == NETWORK_PORTS_MAX || network.rule_count == 0);
		arena_free(&arena);
		policy_free(&policy);
	}
}

int main(void)
{
	RUN(names_are_held_by_whole_labels);
	RUN(addresses_are_held_by_their_family_and_bits);
	RUN(the_host_itself_is_no_address);
	RUN(a_name_leads_only_to_the_internet);
	RUN(a_name_leads_to_what_an_address_rule_has);
	RUN(any_name_is_found_behind_a_stricter_rule);
	RUN(addresses_have_one_form);
	RUN(ports_are_collected_once);
	RUN(too_many_ports_are_refused);
	return CHECK_STATUS();
}
