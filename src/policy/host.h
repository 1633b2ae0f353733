/* host: an entry of network.allow or network.publish as text. Nothing is resolved. */
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

/*
 * Why an entry that host_parse() took could never let anybody be reached, as static words; NULL: it
 * can. Addresses that are the host itself to whoever dials them are the box inside of it.
 */
const char *host_unreachable(const struct host_entry *entry);

/*
 * PORT or HOSTPORT:PORT, each from 1 to 65535. Returns NULL and fills both (*ret_host_port 0: any
 * free one), or says what is wrong (static words).
 */
const char *publish_parse(const char *text, uint16_t *ret_port, uint16_t *ret_host_port);

#endif
