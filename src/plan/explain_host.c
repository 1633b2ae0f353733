/*
 * explain_host: may the box reach HOST:PORT? The matching rules of network.allow as a function of
 * policy and text. One parsed form of the name is compared; no name is looked up.
 */
#define _GNU_SOURCE
#include "plan/explain.h"
#include "plan/network_build.h"
#include "policy/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_LENGTH_MAX  253 /* RFC 1035, without the root's dot */
#define LABEL_LENGTH_MAX 63
#define PORT_DEFAULT     443

struct endpoint {
	char name[NAME_LENGTH_MAX + 1]; /* lower case, without a last dot; "" for an address */
	bool is_address;
	struct net_address address; /* an IPv4 address in IPv6 dress is that IPv4 address */
	uint16_t port;
};

static int not_a_host(const char *given, const char *what, struct err *err)
{
	err_set(err, ERR_usage, 0, "%s is not a host: %s", given, what);
	return err_hint_set(err,
		"HOST:PORT, ADDRESS:PORT or [V6ADDRESS]:PORT; without a port it is %d",
		PORT_DEFAULT);
}

static bool parse_port(const char *text, uint16_t *ret_port)
{
	size_t len = strlen(text);
	if (len < 1 || len > 5 || strspn(text, "0123456789") != len)
		return false;
	long value = strtol(text, NULL, 10);
	if (value < 1 || value > 65535)
		return false;
	*ret_port = (uint16_t)value;
	return true;
}

/* NULL when it is a name, else what is wrong with it. Lowers the case in place. */
static const char *check_name(char *name)
{
	size_t label = 0;
	bool digits = true;
	for (char *c = name; *c; c++) {
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
		if (*c == '.') {
			if (!label)
				return "it has an empty label";
			label = 0;
			digits = true;
			continue;
		}
		bool digit = *c >= '0' && *c <= '9';
		if (!digit && !(*c >= 'a' && *c <= 'z') && *c != '-' && *c != '_')
			return "a name has letters, digits, - and _ in ASCII (write the xn-- form)";
		digits = digits && digit;
		if (++label > LABEL_LENGTH_MAX)
			return "a label is longer than 63 characters";
	}
	if (!label)
		return "it is empty";
	return digits ? "its last label is a number, but it is no IPv4 address" : NULL;
}

static int parse_name(
	const char *given, const char *text, size_t len, struct endpoint *endpoint, struct err *err)
{
	char host[NAME_LENGTH_MAX + 2];
	if (len >= sizeof host)
		return not_a_host(given, "it is longer than 253 characters", err);
	memcpy(host, text, len);
	host[len] = 0;
	endpoint->is_address = network_parse(host, &endpoint->address);
	if (endpoint->is_address)
		return 0;
	if (len > 1 && host[len - 1] == '.')
		host[--len] = 0;
	if (len > NAME_LENGTH_MAX)
		return not_a_host(given, "it is longer than 253 characters", err);
	const char *wrong = check_name(host);
	if (wrong)
		return not_a_host(given, wrong, err);
	memcpy(endpoint->name, host, len + 1);
	return 0;
}

static int parse_endpoint(const char *given, struct endpoint *ret_endpoint, struct err *err)
{
	struct endpoint endpoint = { .port = PORT_DEFAULT };
	const char *colon = strchr(given, ':'), *port = NULL, *host = given;
	size_t len = strlen(given);
	if (*given == '[') {
		const char *close = strchr(given, ']');
		if (!close || (close[1] && close[1] != ':'))
			return not_a_host(
				given, "[ needs a ] with :PORT or nothing behind it", err);
		host = given + 1;
		len = (size_t)(close - host);
		port = close[1] ? close + 2 : NULL;
	} else if (colon && !strchr(colon + 1, ':')) {
		len = (size_t)(colon - given);
		port = colon + 1;
	}
	if (port && !parse_port(port, &endpoint.port))
		return not_a_host(given, "a port is a number from 1 to 65535", err);
	if (parse_name(given, host, len, &endpoint, err) < 0)
		return -1;
	if (*given == '[' && !endpoint.is_address)
		return not_a_host(given, "only an IPv6 address stands in [ ]", err);
	*ret_endpoint = endpoint;
	return 0;
}

static const char *rule_words(const struct policy_host *rule, const char *more, struct arena *arena)
{
	return arena_printf(arena, "network.allow: %s%s (%s)", rule->given, more,
		explain_origin(&rule->at, arena));
}

static struct answer judge_allow(
	const struct policy *policy, const struct endpoint *endpoint, struct arena *arena)
{
	struct network_plan network;
	if (!network_build(policy, arena, &network))
		return (struct answer){ false, "network.allow: too many different ports" };
	const char *name = endpoint->is_address ? NULL : endpoint->name;
	const struct net_rule *rule =
		name ? network_by_name(&network, name, endpoint->port)
		     : network_by_address(&network, &endpoint->address, endpoint->port);
	if (rule)
		return (struct answer){ true,
			rule_words(&policy->allow[rule - network.rules], "", arena) };
	const struct net_rule *near = network_near(&network, name, &endpoint->address);
	if (near)
		return (struct answer){ false,
			rule_words(&policy->allow[near - network.rules],
				arena_printf(arena, " does not list port %d", endpoint->port),
				arena) };
	return (struct answer){ false, arena_printf(arena, "network.allow: not listed%s (%s)",
					       name ? "" : "; an address needs an address rule",
					       explain_origin(&policy->network_at, arena)) };
}

int policy_ask_host(const struct policy *policy, const char *host_port, struct arena *arena,
	struct answer *ret_answer, struct err *err)
{
	struct endpoint endpoint;
	if (parse_endpoint(host_port, &endpoint, err) < 0)
		return -1;
	if (policy->network == NETWORK_ALLOW || policy->publish_count) {
		*ret_answer = judge_allow(policy, &endpoint, arena);
		return 0;
	}
	bool allowed = policy->network == NETWORK_HOST;
	*ret_answer = (struct answer){ allowed,
		arena_printf(arena, "network: %s (%s)", allowed ? "host" : "none",
			explain_origin(&policy->network_at, arena)) };
	return 0;
}
