/* network_build: from the policy's lines to the rules that are held. */
#define _GNU_SOURCE
#include "plan/network_build.h"

#include <string.h>

static bool known(const uint16_t *ports, size_t count, uint16_t port)
{
	for (size_t i = 0; i < count; i++)
		if (ports[i] == port)
			return true;
	return false;
}

static struct net_rule rule_of(const struct policy_host *host)
{
	struct net_rule rule = {
		.wildcard = host->wildcard,
		.host_loopback = host->host_loopback,
		.any_name = host->any_name,
		.given = host->given,
		.port_count = host->port_count,
	};
	memcpy(rule.ports, host->ports, sizeof rule.ports);
	if (!host->address) {
		rule.name = host->host + (host->wildcard ? 1 : 0);
		return rule;
	}
	/* The policy's reader let only addresses through. */
	(void)network_parse(host->host, &rule.address);
	unsigned inner = strchr(host->host, ':') ? 0 : 96;
	rule.prefix = host->prefix < 0 ? 128 : inner + (unsigned)host->prefix;
	return rule;
}

_Static_assert(POLICY_PUBLISH_MAX == NETWORK_PUBLISH_MAX, "a policy's ports have room in the plan");

static void publish(const struct policy *policy, struct arena *arena, struct network_plan *network)
{
	if (policy->publish_count == 0)
		return;
	struct network_publish *list = arena_alloc(arena, policy->publish_count * sizeof *list);
	for (size_t i = 0; i < policy->publish_count; i++)
		list[i] = (struct network_publish){ policy->publish[i].port,
			policy->publish[i].host_port };
	network->publish = list;
	network->publish_count = policy->publish_count;
}

bool network_build(const struct policy *policy, struct arena *arena, struct network_plan *ret)
{
	struct network_plan network = { 0 };
	*ret = network;
	if (policy->network != NETWORK_HOST)
		publish(policy, arena, &network);
	if (policy->network != NETWORK_ALLOW || policy->allow_count == 0) {
		*ret = network;
		return true;
	}
	struct net_rule *rules = arena_alloc(arena, policy->allow_count * sizeof *rules);
	uint16_t *ports = arena_alloc(arena, NETWORK_PORTS_MAX * sizeof *ports);
	size_t count = 0;
	for (size_t i = 0; i < policy->allow_count; i++) {
		rules[i] = rule_of(&policy->allow[i]);
		for (size_t k = 0; k < rules[i].port_count; k++) {
			if (rules[i].ports[k] == NETWORK_NAMES_PORT ||
				known(ports, count, rules[i].ports[k]))
				continue;
			if (count == NETWORK_PORTS_MAX)
				return false;
			ports[count++] = rules[i].ports[k];
		}
	}
	network.rules = rules;
	network.rule_count = policy->allow_count;
	network.ports = ports;
	network.port_count = count;
	*ret = network;
	return true;
}

size_t network_clash(const struct network_plan *network)
{
	size_t i = 0;
	while (i < network->publish_count &&
		!(network->rule_count && (network->publish[i].port == NETWORK_NAMES_PORT ||
						 known(network->ports, network->port_count,
							 network->publish[i].port))))
		i++;
	return i;
}
