/*
 * gateway_ask: the names that the box has asked for. Each has an address of its own inside, and
 * the addresses that it has outside are asked for once in a while, of agentbox-resolve. A name that
 * is not listed never gets here.
 */
#define _GNU_SOURCE
#include "broker/gateway_work.h"
#include "base/fd.h"
#include "base/message.h"
#include "broker/resolve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

static unsigned bucket_of(const char *text)
{
	uint32_t hash = 2166136261u; /* FNV-1a */
	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 16777619u;
	return (hash ^ hash >> 16) % NAME_BUCKETS;
}

struct name *name_get(struct gateway *gw, const char *text)
{
	uint16_t *bucket = &gw->buckets[bucket_of(text)];
	for (uint16_t at = *bucket; at; at = gw->names[at - 1]->next)
		if (strcmp(gw->names[at - 1]->text, text) == 0)
			return gw->names[at - 1];
	struct name *name = gw->name_count < NETWORK_NAMES_MAX ? calloc(1, sizeof *name) : NULL;
	if (!name) {
		tell_full(gw);
		return NULL;
	}
	name->index = (uint16_t)gw->name_count;
	name->next = *bucket;
	memcpy(name->text, text, strlen(text) + 1);
	gw->names[gw->name_count++] = name;
	*bucket = (uint16_t)gw->name_count;
	return name;
}

struct net_address name_address(const struct name *name)
{
	return network_of_v4(NETWORK_NAMES_FIRST + name->index);
}

struct name *name_of_address(struct gateway *gw, const struct net_address *address)
{
	uint32_t index = network_v4(address) - NETWORK_NAMES_FIRST;
	return index < gw->name_count ? gw->names[index] : NULL;
}

static void settle(struct gateway *gw, struct name *name, enum name_state state)
{
	name->state = state;
	name->when = gw->now;
	name->waits = false;
	if (state == NAME_PRIVATE)
		tell_refused(gw, GATEWAY_PRIVATE_ADDRESS, name->text, 0);
	names_answer(gw, name);
}

static void ask(struct gateway *gw, struct name *name)
{
	struct resolve_request request;
	if (!resolve_request_make(name->index, name->text, &request)) {
		settle(gw, name, NAME_NONE);
		return;
	}
	if (message_send(gw->resolver.fd, &request, sizeof request, -1, MSG_DONTWAIT) < 0)
		settle(gw, name, NAME_FAILED);
	else
		name->waits = false;
}

void name_look_up(struct gateway *gw, struct name *name)
{
	int64_t age = gw->now - name->when;
	if (name->state == NAME_ASKED || (name->state == NAME_KNOWN && age < FRESH_NS) ||
		(name->state > NAME_KNOWN && age < STALE_NS))
		return;
	/* Its addresses are the host's own loopback, whatever the host's resolver may say. */
	const struct net_rule *rule = network_lists(gw->network, name->text);
	if (rule && rule->host_loopback) {
		name->state = NAME_KNOWN;
		name->when = gw->now;
		name->count = 2;
		(void)network_parse("127.0.0.1", &name->addresses[0]);
		(void)network_parse("::1", &name->addresses[1]);
		return;
	}
	name->state = NAME_ASKED;
	name->when = gw->now;
	if (gw->resolver.fd >= 0) {
		ask(gw, name);
		return;
	}
	name->waits = true;
	struct gateway_msg msg = { .magic = GATEWAY_MAGIC, .kind = GATEWAY_RESOLVE };
	if (gw->wants_resolver)
		return;
	gw->wants_resolver =
		gw->resolvers < RESOLVERS_MAX && gateway_send(gw->control.fd, &msg, -1) == 0;
	if (!gw->wants_resolver)
		settle(gw, name, NAME_FAILED);
}

/* There is no resolver any more: what was asked of it will not be answered. */
static void give_up(struct gateway *gw)
{
	for (size_t i = 0; i < gw->name_count; i++)
		if (gw->names[i]->state == NAME_ASKED)
			settle(gw, gw->names[i], NAME_FAILED);
}

void resolver_take(struct gateway *gw, int fd)
{
	if (!gw->wants_resolver || gw->resolver.fd >= 0) {
		fd_close(&fd);
		return;
	}
	gw->wants_resolver = false;
	gw->resolvers++;
	gw->resolver.fd = fd;
	if (fd < 0 || gateway_watch(gw, &gw->resolver, EPOLLIN) < 0) {
		fd_close(&gw->resolver.fd);
		give_up(gw);
		return;
	}
	for (size_t i = 0; i < gw->name_count; i++)
		if (gw->names[i]->waits)
			ask(gw, gw->names[i]);
}

static struct net_address address_of(const struct resolve_address *from)
{
	struct net_address address;
	if (from->family == 6)
		memcpy(address.bytes, from->bytes, sizeof address.bytes);
	else
		address = network_of_v4((uint32_t)from->bytes[0] << 24 |
					(uint32_t)from->bytes[1] << 16 |
					(uint32_t)from->bytes[2] << 8 | from->bytes[3]);
	return address;
}

/*
 * Keep the addresses that a listed name may have; which of them a port may be dialled at is decided
 * with the port. A name with none but private ones is as good as not there.
 */
static void take(struct gateway *gw, struct name *name, const struct resolve_answer *answer)
{
	if (answer->status != RESOLVE_FAILED && answer->status != RESOLVE_AGAIN)
		name->count = 0;
	if (answer->status != RESOLVE_OK) {
		settle(gw, name, answer->status == RESOLVE_NO_NAME ? NAME_NONE : NAME_FAILED);
		return;
	}
	for (size_t i = 0; i < answer->count && name->count < ADDRESSES_MAX; i++) {
		struct net_address address = address_of(&answer->addresses[i]);
		if (network_is_public(&address) || network_near(gw->network, NULL, &address))
			name->addresses[name->count++] = address;
	}
	settle(gw, name, name->count ? NAME_KNOWN : NAME_PRIVATE);
}

void resolver_turn(struct gateway *gw)
{
	struct resolve_answer in, answer;
	struct message_fds fds;
	ssize_t n;
	while ((n = message_recv(gw->resolver.fd, &in, sizeof in, &fds)) > 0) {
		message_close(&fds);
		if (resolve_answer_parse(&in, (size_t)n, &answer) < 0)
			break;
		struct name *name = answer.id < gw->name_count ? gw->names[answer.id] : NULL;
		if (name && name->state == NAME_ASKED)
			take(gw, name, &answer);
	}
	if (n == -EAGAIN)
		return;
	fd_close(&gw->resolver.fd);
	give_up(gw);
}

void names_tick(struct gateway *gw)
{
	if (gw->asker_count == 0)
		return;
	for (size_t i = 0; i < gw->name_count; i++) {
		struct name *name = gw->names[i];
		if (name->state == NAME_ASKED && gw->now - name->when > LOOKUP_MAX_NS)
			settle(gw, name, NAME_FAILED);
	}
}
