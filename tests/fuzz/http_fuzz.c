/*
 * http_fuzz: any bytes of a client. Whole, byte by byte or in other pieces, the same bytes pass;
 * and of each head that passes, a second and simpler reader says that it can be read in one way
 * only.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "broker/http.h"

#define NEED(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

#define NAME "allowed.test"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct end {
	enum http_verdict verdict;
	uint64_t passed;
	char other[HTTP_NAME_MAX + 1];
	struct http http;
};

/* Lines of a head that a careless reader takes for this field. */
static unsigned count_fields(const uint8_t *head, size_t len, const char *name, const uint8_t **ret)
{
	unsigned count = 0;
	for (size_t i = 0; i < len; i++) {
		if (head[i] != '\n' && head[i] != '\r' && head[i])
			continue;
		size_t at = i + 1;
		while (at < len && (head[at] == ' ' || head[at] == '\t'))
			at++;
		if (len - at < strlen(name) ||
			strncasecmp((const char *)head + at, name, strlen(name)) != 0)
			continue;
		at += strlen(name);
		while (at < len && (head[at] <= ' ' || head[at] == 0x7f))
			at++;
		if (at < len && head[at] == ':') {
			count++;
			*ret = head + at + 1;
		}
	}
	return count;
}

static void check_host(const uint8_t *value)
{
	while (*value == ' ' || *value == '\t')
		value++;
	NEED(strncasecmp((const char *)value, NAME, strlen(NAME)) == 0);
	value += strlen(NAME);
	if (*value == '.')
		value++;
	NEED(*value == ':' || *value == ' ' || *value == '\t' || *value == '\r');
}

/* What has passed at once, beginning with a head that is there. */
static void check_head(const uint8_t *data, size_t len, uint64_t pass, enum http_verdict verdict)
{
	const uint8_t *end = memmem(data, len, "\r\n\r\n", 4), *value = NULL, *host = NULL;
	NEED(end && data[0] != '\r' && data[0] != '\n');
	size_t head = (size_t)(end - data) + 4;
	NEED(head <= HTTP_HEAD_MAX && head <= pass && head <= len);
	for (size_t i = 0; i < head; i++)
		NEED(data[i] && (data[i] == '\n') == (i && data[i - 1] == '\r'));
	const uint8_t *line = memchr(data, '\n', head);
	NEED(line - data > 10 && memcmp(line - 10, " HTTP/1.", 8) == 0);
	bool old = line[-2] == '0';
	NEED(old || line[-2] == '1');
	const uint8_t *target = (const uint8_t *)memchr(data, ' ', head) + 1;
	NEED(memchr(target, ' ', head) == line - 10);
	if (*target != '/' && *target != '*') {
		NEED(strncasecmp((const char *)target, "http://" NAME, 7 + strlen(NAME)) == 0);
		NEED(strchr(":/?. ", target[7 + strlen(NAME)]));
	}
	unsigned hosts = count_fields(data, head, "host", &host);
	NEED(hosts == 1 || (old && !hosts));
	if (host)
		check_host(host);
	unsigned codings = count_fields(data, head, "transfer-encoding", &value);
	unsigned lengths = count_fields(data, head, "content-length", &value);
	NEED(codings + lengths <= 1 && !(codings && old));
	uint64_t body = lengths ? strtoull((const char *)value, NULL, 10) : 0;
	NEED(pass == head + body);
	if (verdict == HTTP_UPGRADE)
		NEED(!body && !codings && count_fields(data, head, "upgrade", &value));
}

/* Show the bytes as they come in, `step` at a time. */
static struct end feed(const uint8_t *data, size_t size, size_t step, bool check)
{
	struct end end = { .verdict = HTTP_MORE, .other = "?" };
	for (size_t there = 0; there < size;) {
		there = size - there < step ? size : there + step;
		while (end.passed < there) {
			const uint8_t *at = data + end.passed;
			size_t held = there - (size_t)end.passed;
			unsigned requests = end.http.requests;
			uint64_t pass = 0;
			end.verdict = http_look(&end.http, NAME, 80, at, held, &pass, end.other);
			NEED((end.verdict == HTTP_PASS || end.verdict == HTTP_UPGRADE) ==
				(pass > 0));
			NEED((end.verdict == HTTP_OTHER_HOST) == (strcmp(end.other, "?") != 0));
			NEED(end.verdict != HTTP_OTHER || !end.passed);
			NEED(end.verdict != HTTP_UPGRADE || !requests);
			if (end.http.requests != requests && check)
				check_head(at, held, pass, end.verdict);
			end.passed += pass;
			if (end.verdict == HTTP_MORE)
				break;
			if (end.verdict != HTTP_PASS)
				return end;
		}
	}
	return end;
}

/* What a server answers to an upgrade: told once, and for good. */
static void check_answer(const struct http *http, const uint8_t *answer, size_t len)
{
	struct http whole = *http, part = *http;
	enum http_verdict verdict = http_upgraded(&whole, answer, len), before = HTTP_MORE;
	NEED(verdict == HTTP_MORE || verdict == HTTP_OTHER || verdict == HTTP_PASS ||
		verdict == HTTP_BAD);
	for (size_t i = 0; i <= len; i += len / 256 + 1) {
		enum http_verdict got = http_upgraded(&part, answer, i);
		NEED(before == HTTP_MORE || got == before);
		NEED(got == HTTP_MORE || got == verdict);
		before = got;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	size_t steps[] = { 1, 1 + data[size - 1] % 32u, size / 2 + 1 };
	struct end whole = feed(data, size, size, true);
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		size_t step = steps[i] > size / 256 ? steps[i] : size / 256;
		struct end part = feed(data, size, step, false);
		NEED(part.verdict == whole.verdict && part.passed == whole.passed);
		NEED(part.http.requests == whole.http.requests);
		NEED(strcmp(part.other, whole.other) == 0);
	}
	if (whole.verdict == HTTP_UPGRADE)
		check_answer(&whole.http, data + whole.passed, size - (size_t)whole.passed);
	return 0;
}
