/*
 * http_head: one whole head of a request, read strictly, and what it means for the connection.
 * Internal to the room; knows no state.
 */
#ifndef AGENTBOX_BROKER_HTTP_HEAD_H
#define AGENTBOX_BROKER_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/http.h"

/* Which fields matter here. */
enum http_field {
	HTTP_FIELD_ANY,
	HTTP_FIELD_HOST,
	HTTP_FIELD_LENGTH,
	HTTP_FIELD_CODING,
	HTTP_FIELD_UPGRADE
};

struct http_value {
	const uint8_t *text; /* in the head */
	size_t len;
};

struct http_place {
	char host[HTTP_NAME_MAX + 1]; /* lower case; "": none was said */
	unsigned port;                /* 0: none was said */
};

struct http_head {
	bool old;               /* HTTP/1.0 */
	bool connect;           /* the method */
	bool scheme_is_other;   /* the target is a URL, and not of http */
	struct http_place url;  /* of the target */
	struct http_place host; /* of the Host field */
	uint64_t length;        /* of the body, 0 without one or when it is in chunks */
	bool chunked, upgrade;
	bool nested; /* the upgrade may be to a protocol with requests of its own */
};

/* tchar of RFC 9110: what methods and field names are made of. */
bool http_token_byte(uint8_t byte);

/*
 * One field line without its CR LF. 0, or -EBADMSG; the value is without the space around it.
 */
int http_field_read(
	const uint8_t *line, size_t len, enum http_field *ret_field, struct http_value *ret_value);

/*
 * All of a head: lines that end with CR LF, the last of them empty. 0: *ret is filled, and the head
 * agrees with itself; -EBADMSG: refuse.
 */
int http_head_read(const uint8_t *head, size_t len, struct http_head *ret);

#endif
