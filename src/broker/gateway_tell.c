/*
 * gateway_tell: what the supervisor is told. Equal rows are added up here, so that nothing that the
 * box does a million times is a million messages; and there are GATEWAY_ROWS_MAX of them.
 */
#define _GNU_SOURCE
#include "broker/gateway_work.h"

#include <stdlib.h>
#include <string.h>

/* Of look-ups and of connections each; of hosts that were reached; of those that were not. */
#define ROWS_REFUSED 96
#define ROWS_CARRIED 255
#define ROWS_FAILED  16

static struct row *find(
	const struct gateway *gw, uint32_t kind, uint32_t reason, const char *host, uint16_t port)
{
	for (size_t i = 0; i < gw->row_count; i++) {
		const struct row *row = &gw->rows[i];
		if (row->kind == kind && row->reason == reason && row->port == port &&
			strcmp(row->host, host) == 0)
			return (struct row *)row;
	}
	return NULL;
}

static struct row *add(
	struct gateway *gw, uint32_t kind, uint32_t reason, const char *host, uint16_t port)
{
	char *copy = strdup(host);
	if (!copy)
		return NULL;
	struct row *row = &gw->rows[gw->row_count++];
	*row = (struct row){ .kind = kind, .reason = reason, .port = port, .host = copy };
	return row;
}

/* Rows of one kind, so that none can crowd out another. */
static size_t count(const struct gateway *gw, uint32_t kind, bool lookups)
{
	size_t n = 0;
	for (size_t i = 0; i < gw->row_count; i++)
		n += gw->rows[i].kind == kind &&
		     (kind != GATEWAY_REFUSED || !gw->rows[i].port == lookups);
	return n;
}

/* The row for it; when there are many of its kind, the one for all others. NULL: no memory. */
static struct row *get(
	struct gateway *gw, uint32_t kind, uint32_t reason, const char *host, uint16_t port)
{
	static const size_t most[] = { [GATEWAY_REFUSED] = ROWS_REFUSED,
		[GATEWAY_CARRIED] = ROWS_CARRIED,
		[GATEWAY_FAILED] = ROWS_FAILED };
	struct row *row = find(gw, kind, reason, host, port);
	if (row)
		return row;
	if (count(gw, kind, port == 0) < most[kind])
		return add(gw, kind, reason, host, port);
	/* A look-up stays a look-up: its port is 0. */
	port = port ? UINT16_MAX : 0;
	row = find(gw, kind, reason, GATEWAY_OTHERS, port);
	if (!row && gw->row_count < GATEWAY_ROWS_MAX)
		row = add(gw, kind, reason, GATEWAY_OTHERS, port);
	return row;
}

/* True: all of it has gone. */
static bool send_row(struct gateway *gw, struct row *row)
{
	struct gateway_msg msg = {
		.magic = GATEWAY_MAGIC,
		.kind = row->kind,
		.reason = row->reason,
		.port = row->port,
		.errnum = row->errnum,
		.count = row->count,
		.sent = row->sent,
		.received = row->received,
	};
	memcpy(msg.host, row->host, strnlen(row->host, sizeof msg.host - 1));
	if (gateway_send(gw->control.fd, &msg, -1) < 0)
		return false;
	row->count = row->sent = row->received = 0;
	return true;
}

void tell_flush(struct gateway *gw)
{
	bool all = true;
	for (size_t i = 0; i < gw->row_count && all; i++) {
		struct row *row = &gw->rows[i];
		if (row->count || row->sent || row->received)
			all = send_row(gw, row);
	}
	gw->untold = !all;
}

void tell_refused(struct gateway *gw, enum gateway_reason reason, const char *host, uint16_t port)
{
	struct row *row = get(gw, GATEWAY_REFUSED, reason, host, port);
	if (!row)
		return;
	/* The first one at once, so that it is known even should this process die. */
	bool first = row->count++ == 0 && !gw->untold;
	if (!first || !send_row(gw, row))
		gw->untold = true;
}

void tell_failed(struct gateway *gw, const char *host, uint16_t port, int errnum)
{
	struct row *row = get(gw, GATEWAY_FAILED, 0, host, port);
	if (!row)
		return;
	row->errnum = errnum;
	row->count++;
	gw->untold = true;
}

/* Before the box can say anything, so that there is a place for each. */
void tell_published(struct gateway *gw, struct published *published)
{
	static const char host[] = "127.0.0.1";
	published->served = get(gw, GATEWAY_SERVED, 0, host, published->port);
	published->unanswered = get(gw, GATEWAY_UNANSWERED, 0, host, published->port);
}

void tell_unanswered(struct gateway *gw, const struct published *published)
{
	if (!published->unanswered)
		return;
	published->unanswered->count++;
	gw->untold = true;
}

/* The row of a connection that the box has made. */
static struct row *carried(struct gateway *gw, const struct conn *conn)
{
	char text[NETWORK_ADDRESS_SIZE];
	const char *host = conn->name ? conn->name->text : network_words(&conn->addresses[0], text);
	return get(gw, GATEWAY_CARRIED, 0, host, conn->port);
}

void tell_connected(struct gateway *gw, struct conn *conn)
{
	conn->row = conn->published ? conn->published->served : carried(gw, conn);
	if (!conn->row)
		return;
	conn->row->count++;
	gw->untold = true;
}

void tell_bytes(struct gateway *gw, struct conn *conn)
{
	uint64_t sent = conn->flow.way[FLOW_BOX].bytes, received = conn->flow.way[FLOW_OUT].bytes;
	if (!conn->row || (sent == conn->told_sent && received == conn->told_received))
		return;
	conn->row->sent += sent - conn->told_sent;
	conn->row->received += received - conn->told_received;
	conn->told_sent = sent;
	conn->told_received = received;
	gw->untold = true;
}

void tell_full(struct gateway *gw)
{
	struct gateway_msg msg = { .magic = GATEWAY_MAGIC, .kind = GATEWAY_FULL };
	if (!gw->full)
		gw->full = gateway_send(gw->control.fd, &msg, -1) == 0;
}
