/*
 * greeting_fuzz: any first bytes of a connection. A verdict is the same for more bytes, and for the
 * same ClientHello in records of another size; a name is one, and is in it.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "broker/greeting.h"

#define NEED(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const char *name, const uint8_t *message, size_t len)
{
	size_t name_len = strlen(name), label = 0;
	NEED(name_len && name_len <= 253 && name[name_len - 1] != '.');
	for (size_t i = 0; i < name_len; i++) {
		unsigned char byte = (unsigned char)name[i];
		label = byte == '.' ? 0 : label + 1;
		NEED(byte == '.' ? i && name[i - 1] != '.' : label <= 63);
		NEED(byte == '.' || byte == '-' || byte == '_' || isdigit(byte) || islower(byte));
	}
	for (size_t i = 0; i + name_len <= len; i++)
		if (strncasecmp((const char *)message + i, name, name_len) == 0)
			return;
	abort();
}

/* The message of whole records; its length. */
static size_t take_message(const uint8_t *data, size_t size, uint8_t *ret)
{
	size_t len = 0, want = 4;
	for (size_t at = 0; len < want; at += 5) {
		NEED(size - at >= 5 && data[at] == 22 && data[at + 1] == 3);
		size_t record = (size_t)(data[at + 3] << 8 | data[at + 4]);
		for (; record && len < want; record--, at++) {
			NEED(at + 5 < size);
			ret[len++] = data[at + 5];
			if (len == 4)
				want = 4 + (size_t)(ret[1] << 16 | ret[2] << 8 | ret[3]);
		}
		NEED(!record); /* ends with its record */
	}
	return len;
}

static size_t put_records(const uint8_t *message, size_t len, size_t piece, uint8_t *ret)
{
	size_t out = 0;
	for (size_t at = 0; at < len; at += piece) {
		size_t part = len - at < piece ? len - at : piece;
		memcpy(ret + out, "\026\003\001", 3);
		ret[out + 3] = (uint8_t)(part >> 8);
		ret[out + 4] = (uint8_t)part;
		memcpy(ret + out + 5, message + at, part);
		out += 5 + part;
	}
	return out;
}

static void check_records(
	const uint8_t *data, size_t size, enum greeting verdict, const char *name, size_t piece)
{
	static uint8_t message[GREETING_MAX], records[6 * GREETING_MAX];
	size_t len = take_message(data, size, message);
	if (verdict == GREETING_TLS)
		check_name(name, message, len);
	size_t records_len = put_records(message, len, piece, records);
	char again[GREETING_NAME_MAX + 1];
	enum greeting got = greeting_read(records, records_len, again);
	NEED(got == (records_len > GREETING_MAX ? GREETING_BAD : verdict));
	if (got == GREETING_TLS)
		NEED(strcmp(name, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[GREETING_NAME_MAX + 1] = "?", part_name[GREETING_NAME_MAX + 1];
	enum greeting verdict = greeting_read(data, size, name), before = GREETING_MORE;
	NEED((verdict == GREETING_TLS) == (strcmp(name, "?") != 0));
	size_t step = size / 96 + 1;
	for (size_t len = 0; len < size; len += step) {
		enum greeting part = greeting_read(data, len, part_name);
		NEED(part == GREETING_MORE || part == verdict);
		NEED(before == GREETING_MORE || part == before);
		NEED(part != GREETING_TLS || strcmp(part_name, name) == 0);
		before = part;
	}
	if (size && data[0] >= 20 && data[0] <= 24)
		NEED(verdict != GREETING_OTHER);
	if (verdict == GREETING_TLS || verdict == GREETING_BARE) {
		check_records(data, size, verdict, name, 1);
		check_records(data, size, verdict, name, 1 + data[size - 1] % 64u);
		check_records(data, size, verdict, name, 16384);
	}
	return 0;
}
