/*
 * greeting: the server name of a ClientHello. Reads from left to right and stops at the first byte
 * that is missing or wrong, so what it says of some bytes it also says of more.
 */
#include "broker/greeting.h"

#include <stdbool.h>
#include <string.h>

#include "broker/hostname.h"

#define RECORD_MAX       16384 /* bytes of a record that is not encrypted (RFC 8446 section 5.1) */
#define RECORD_HANDSHAKE 22
#define CLIENT_HELLO     1
#define SERVER_NAME      0
#define HOST_NAME        0

_Static_assert(HOSTNAME_MAX <= GREETING_NAME_MAX, "a name fits");

struct hello {
	const uint8_t *data;
	size_t len, at;
	size_t record;      /* bytes left in this record */
	enum greeting stop; /* why nothing more was taken: GREETING_MORE or GREETING_BAD */
};

static bool stop(struct hello *in, enum greeting why)
{
	in->stop = why;
	return false;
}

/* A record's head. Nothing but handshake records may stand before the end of a ClientHello. */
static bool begin_record(struct hello *in)
{
	const uint8_t *head = in->data + in->at;
	if (in->at + 5 > GREETING_MAX)
		return stop(in, GREETING_BAD);
	if (in->len - in->at < 5)
		return stop(in, GREETING_MORE);
	size_t len = (size_t)(head[3] << 8 | head[4]);
	if (head[0] != RECORD_HANDSHAKE || head[1] != 3 || !len || len > RECORD_MAX)
		return stop(in, GREETING_BAD);
	in->at += 5;
	in->record = len;
	return true;
}

/* The next byte of the message; `left` is what the field around it has, and it may have too few. */
static bool take(struct hello *in, size_t *left, uint8_t *ret)
{
	if (!*left)
		return stop(in, GREETING_BAD);
	if (!in->record && !begin_record(in))
		return false;
	if (in->at >= GREETING_MAX)
		return stop(in, GREETING_BAD);
	if (in->at >= in->len)
		return stop(in, GREETING_MORE);
	*ret = in->data[in->at++];
	in->record--;
	--*left;
	return true;
}

static bool number(struct hello *in, size_t *left, int bytes, size_t *ret)
{
	size_t value = 0;
	for (int i = 0; i < bytes; i++) {
		uint8_t byte;
		if (!take(in, left, &byte))
			return false;
		value = value << 8 | byte;
	}
	*ret = value;
	return true;
}

static bool skip(struct hello *in, size_t *left, size_t count)
{
	if (count > *left)
		return stop(in, GREETING_BAD);
	for (uint8_t byte; count; count--)
		if (!take(in, left, &byte))
			return false;
	return true;
}

/* A field of bytes with its length, between min and max, before it. */
static bool skip_field(struct hello *in, size_t *left, int bytes, size_t min, size_t max)
{
	size_t count;
	if (!number(in, left, bytes, &count))
		return false;
	if (count < min || count > max)
		return stop(in, GREETING_BAD);
	return skip(in, left, count);
}

/* The content of a server_name extension: one list of one name, and nothing else. */
static bool read_name(struct hello *in, size_t len, char ret[HOSTNAME_MAX + 1])
{
	size_t list, type, count;
	if (!number(in, &len, 2, &list))
		return false;
	if (list != len)
		return stop(in, GREETING_BAD);
	if (!number(in, &len, 1, &type))
		return false;
	if (type != HOST_NAME)
		return stop(in, GREETING_BAD);
	if (!number(in, &len, 2, &count))
		return false;
	if (count != len || count > GREETING_NAME_MAX)
		return stop(in, GREETING_BAD);
	uint8_t text[GREETING_NAME_MAX];
	for (size_t i = 0; i < count; i++)
		if (!take(in, &len, &text[i]))
			return false;
	return hostname_read(text, count, ret) == 0 || stop(in, GREETING_BAD);
}

static bool read_extensions(struct hello *in, size_t *left, bool *ret_named, char *name)
{
	size_t all, type, len;
	if (!number(in, left, 2, &all))
		return false;
	if (all != *left)
		return stop(in, GREETING_BAD);
	while (*left) {
		if (!number(in, left, 2, &type) || !number(in, left, 2, &len))
			return false;
		if (len > *left || (type == SERVER_NAME && *ret_named))
			return stop(in, GREETING_BAD);
		if (type == SERVER_NAME) {
			if (!read_name(in, len, name))
				return false;
			*left -= len;
			*ret_named = true;
		} else if (!skip(in, left, len)) {
			return false;
		}
	}
	return true;
}

static bool read_hello(struct hello *in, bool *ret_named, char *name)
{
	size_t left = 4, type, len;
	if (!number(in, &left, 1, &type))
		return false;
	if (type != CLIENT_HELLO)
		return stop(in, GREETING_BAD);
	if (!number(in, &left, 3, &len))
		return false;
	if (len > GREETING_MAX)
		return stop(in, GREETING_BAD);
	left = len;
	if (!skip(in, &left, 2 + 32) ||                /* version, random */
		!skip_field(in, &left, 1, 0, 32) ||    /* session */
		!skip_field(in, &left, 2, 2, 65534) || /* cipher suites */
		!skip_field(in, &left, 1, 1, 255))     /* compression */
		return false;
	/* Before TLS 1.3 there may be no extensions at all. */
	if (left && !read_extensions(in, &left, ret_named, name))
		return false;
	/* A ClientHello ends with its record (RFC 8446 section 5.1): no second one behind it. */
	return !in->record || stop(in, GREETING_BAD);
}

/* SSL 2's record: length with the upper bit, message 1, version 3.x (or 0.2). */
static enum greeting read_ssl2(const uint8_t *data, size_t len)
{
	if ((len > 2 && data[2] != CLIENT_HELLO) || (len > 3 && data[3] != 3 && data[3] != 0) ||
		(len > 4 && data[3] == 0 && data[4] != 2))
		return GREETING_OTHER;
	return len > 4 ? GREETING_BAD : GREETING_MORE;
}

enum greeting greeting_read(const uint8_t *data, size_t len, char name[GREETING_NAME_MAX + 1])
{
	if (!len)
		return GREETING_MORE;
	if (data[0] & 0x80)
		return read_ssl2(data, len);
	if (data[0] < 20 || data[0] > 24)
		return GREETING_OTHER;
	if (data[0] != RECORD_HANDSHAKE || (len > 1 && data[1] != 3))
		return GREETING_BAD;
	struct hello in = { .data = data, .len = len };
	char got[HOSTNAME_MAX + 1];
	bool named = false;
	if (!read_hello(&in, &named, got))
		return in.stop;
	if (!named)
		return GREETING_BARE;
	memcpy(name, got, strlen(got) + 1);
	return GREETING_TLS;
}
