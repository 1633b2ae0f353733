/* host: an entry of network.allow as text. Nothing is resolved. */
#ifndef AGENTBOX_POLICY_HOST_H
#define AGENTBOX_POLICY_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct host_entry {
	char host[256]; /* as in struct policy_host */
	bool wildcard, address, host_loopback;
	int prefix;
	uint16_t ports[2];
	size_t port_count;
};

/*
 * NAME, *.NAME, host.internal, IPv4[/PREFIX] or [IPv6[/PREFIX]], each with or without :PORT.
 * Returns NULL and fills *ret, or says what is wrong (static words).
 */
const char *host_parse(const char *text, struct host_entry *ret);

#endif
