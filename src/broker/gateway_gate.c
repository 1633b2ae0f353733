/*
 * gateway_gate: a connection that was made to a name must also say that name, in the two protocols
 * whose servers would else let it reach another one of theirs: TLS by its greeting, HTTP by each
 * request. What is neither passes, and so does all behind a server's word that comes first: the
 * name's own server decides what it means.
 */
#define _GNU_SOURCE
#include "broker/gateway_work.h"
#include "broker/greeting.h"

#include <stdlib.h>
#include <string.h>

static uint64_t refuse(struct conn *conn, enum gateway_reason reason, const char *other)
{
	conn->refused = reason;
	memcpy(conn->other, other, strlen(other) + 1);
	return FLOW_STOP;
}

/* 0: more bytes are needed; since when is known. */
static uint64_t hold(struct conn *conn)
{
	if (!conn->held)
		conn->held = gateway_now();
	return 0;
}

static uint64_t look_http(struct conn *conn, const uint8_t *data, size_t len)
{
	uint64_t pass = 0;
	char other[HTTP_NAME_MAX + 1] = "";
	conn->plain = true;
	switch (http_look(&conn->http, conn->name->text, conn->port, data, len, &pass, other)) {
	case HTTP_MORE:
		return hold(conn);
	case HTTP_UPGRADE:
		conn->upgrade = UPGRADE_ASKED;
		conn->flow.watch = gate_watch;
		conn->held = 0;
		return pass;
	case HTTP_PASS:
		conn->held = 0;
		return pass;
	case HTTP_OTHER:
		conn->held = 0;
		return FLOW_ALL;
	case HTTP_OTHER_HOST:
		return refuse(conn, GATEWAY_HOST_MISMATCH, other);
	case HTTP_BAD:
		break;
	}
	return refuse(conn, GATEWAY_MALFORMED, conn->name->text);
}

uint64_t gate_look(void *owner, const uint8_t *data, size_t len)
{
	struct conn *conn = owner;
	char name[GREETING_NAME_MAX + 1];
	switch (conn->upgrade) {
	case UPGRADE_ASKED:
		/* Until the server has answered nobody knows what these bytes are. */
		return FLOW_HOLD;
	case UPGRADE_DONE:
		return FLOW_ALL;
	case UPGRADE_BAD:
		return refuse(conn, GATEWAY_MALFORMED, conn->name->text);
	case UPGRADE_NONE:
		break;
	}
	/* In both protocols it is the client that begins. */
	if (conn->server_began && !conn->flow.way[FLOW_OUT].ended)
		return FLOW_ALL;
	if (conn->plain)
		return look_http(conn, data, len);
	switch (greeting_read(data, len, name)) {
	case GREETING_MORE:
		return hold(conn);
	case GREETING_OTHER:
		return look_http(conn, data, len);
	case GREETING_TLS:
		if (strcmp(name, conn->name->text) != 0)
			return refuse(conn, GATEWAY_SNI_MISMATCH, name);
		conn->held = 0;
		return FLOW_ALL;
	case GREETING_BARE:
		return refuse(conn, GATEWAY_SNI_MISMATCH, "");
	case GREETING_BAD:
		break;
	}
	return refuse(conn, GATEWAY_MALFORMED, conn->name->text);
}

/* The answer is read from its first byte on, so what came of it is kept until it is understood. */
static enum http_verdict read_answer(struct conn *conn, const uint8_t *data, size_t len)
{
	if (!conn->answer)
		conn->answer = malloc(ANSWER_MAX);
	if (!conn->answer)
		return HTTP_BAD;
	size_t room = ANSWER_MAX - conn->answer_len;
	memcpy(conn->answer + conn->answer_len, data, len < room ? len : room);
	conn->answer_len += len < room ? len : room;
	enum http_verdict verdict = http_upgraded(&conn->http, conn->answer, conn->answer_len);
	return verdict == HTTP_MORE && len > room ? HTTP_BAD : verdict;
}

/*
 * Is it a server of these two protocols that speaks before it was spoken to: a timeout's answer, an
 * alert, the settings of HTTP/2? What could still become one is.
 */
static bool begins_as_ours(const uint8_t *data, size_t len)
{
	static const char http[] = "HTTP/";
	bool tls = data[0] >= 20 && data[0] <= 24 && (len < 2 || data[1] == 3);
	bool text = memcmp(data, http, len < 5 ? len : 5) == 0;
	bool settings = data[0] == 0 && (len < 4 || data[3] == 4);
	return tls || text || settings;
}

bool gate_watch(void *owner, const uint8_t *data, size_t len)
{
	struct conn *conn = owner;
	if (conn->upgrade == UPGRADE_NONE) {
		conn->server_began =
			conn->flow.way[FLOW_BOX].bytes == 0 && !begins_as_ours(data, len);
		flow_ask_again(&conn->flow);
		return false;
	}
	enum http_verdict verdict = read_answer(conn, data, len);
	if (verdict == HTTP_MORE)
		return true;
	conn->upgrade = verdict == HTTP_OTHER  ? UPGRADE_DONE
			: verdict == HTTP_PASS ? UPGRADE_NONE
					       : UPGRADE_BAD;
	free(conn->answer);
	conn->answer = NULL;
	flow_ask_again(&conn->flow);
	return false;
}

void gate_refused(struct gateway *gw, const struct conn *conn)
{
	/* What it said, or the name that it should have said. */
	const char *host = conn->other[0] ? conn->other : conn->name->text;
	tell_refused(gw, conn->refused, host, conn->port);
}
