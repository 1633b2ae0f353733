/*
 * http: walks along the requests of one connection. Reads from left to right; a verdict depends on
 * the bytes alone, not on how many of them were there when it was asked for.
 */
#define _GNU_SOURCE
#include "broker/http.h"

#include <string.h>
#include <strings.h>

#include "broker/hostname.h"
#include "broker/http_head.h"

#define METHOD_MAX  255
#define SIZE_DIGITS 15 /* of a chunk: below 2^60 */

enum where {
	AT_REQUEST, /* in the first line of a head */
	AT_FIELDS,  /* behind it; all of the head is still held */
	AT_CHUNK,
	AT_CHUNK_END, /* the CR LF behind a chunk */
	AT_TRAILER,
	AT_ANSWER, /* an upgrade was asked for */
	UPGRADED,
	UPGRADE_REFUSED
};

/* Bytes that some languages split a line at, as at a space. */
static bool is_space(uint8_t byte)
{
	return byte == ' ' || (byte >= '\t' && byte <= '\r') || (byte >= 0x1c && byte <= 0x1f) ||
	       byte == 0x85 || byte == 0xa0;
}

/*
 * Whether a server might take these bytes, which begin with a word and a space, for a request. A
 * line that is cut short by a byte that is in none may have gone on with anything, so there the
 * word alone counts.
 */
static bool like_request(const uint8_t *line, size_t word, size_t len, bool cut_short)
{
	if (word == 3 && memcmp(line, "GET", 3) == 0)
		return true; /* HTTP/0.9 has no version */
	size_t upper = 0;
	while (upper < word && ((line[upper] >= 'A' && line[upper] <= 'Z') || line[upper] == '-' ||
				       line[upper] == '_'))
		upper++;
	if (cut_short && upper == word)
		return true;
	for (size_t i = word; i + 5 <= len; i++)
		if (strncasecmp((const char *)line + i, "HTTP/", 5) == 0)
			return true;
	return false;
}

/* Whether a line, which ends before `len` with a line feed, ends with a version that is read here.
 */
static bool has_version(const uint8_t *line, size_t len)
{
	return len > 10 && memcmp(line + len - 10, " HTTP/1.", 8) == 0 && line[len - 1] == '\r';
}

/*
 * The first line of a head, as far as it is there. HTTP_PASS: it has ended, and is to be read when
 * all of the head is there. What is like a request, but not in the one form that all servers read
 * in the same way, is bad here, and never something else.
 */
static enum http_verdict look_line(size_t seen, const uint8_t *data, size_t len)
{
	size_t start = 0;
	while (start < len && start <= METHOD_MAX && is_space(data[start]))
		start++;
	size_t end = start;
	while (end < len && end <= METHOD_MAX && http_token_byte(data[end]))
		end++;
	if (end > METHOD_MAX)
		return HTTP_BAD;
	if (end == len)
		return HTTP_MORE;
	bool odd = start || data[end] != ' ';
	if (!is_space(data[end]) || end == start)
		return HTTP_OTHER;
	/* It would stand before a request, and say that the request is from somebody else. */
	if (end - start == 5 && memcmp(data + start, "PROXY", 5) == 0)
		return HTTP_BAD;
	for (size_t i = seen > end ? seen : end; i < len; i++) {
		bool stop = data[i] == '\n', cut_short = data[i] < ' ' && !is_space(data[i]);
		if (!stop && !cut_short)
			continue;
		if (!like_request(data + start, end - start, i - start, cut_short))
			return HTTP_OTHER;
		bool good = stop && !odd && has_version(data, i);
		return good ? HTTP_PASS : HTTP_BAD;
	}
	return HTTP_MORE;
}

/*
 * Lines end with CR LF and have no NUL. HTTP_PASS: the empty line was found, *ret_head is the
 * length with it.
 */
static enum http_verdict look_fields(size_t seen, const uint8_t *data, size_t len, size_t *ret_head)
{
	for (size_t i = seen ? seen : 1; i < len; i++) {
		bool after_cr = data[i - 1] == '\r';
		if (!data[i] || (data[i] == '\n') != after_cr)
			return HTTP_BAD;
		if (data[i] == '\n' && i >= 3 && data[i - 2] == '\n') {
			*ret_head = i + 1;
			return HTTP_PASS;
		}
	}
	return HTTP_MORE;
}

static bool same_place(const struct http_place *place, const char *name, uint16_t port)
{
	return !place->host[0] ||
	       (strcmp(place->host, name) == 0 && (!place->port || place->port == port));
}

/* Methods whose body many servers take for the next request (RFC 9110, section 9.3.1). */
static bool is_without_body(const uint8_t *data)
{
	static const char *const methods[] = { "GET ", "HEAD ", "TRACE " };
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
		if (memcmp(data, methods[i], strlen(methods[i])) == 0)
			return true;
	return false;
}

static enum http_verdict judge(struct http *http, const char *name, uint16_t port,
	const uint8_t *data, size_t len, uint64_t *ret_pass, char *ret_other)
{
	struct http_head head;
	if (http_head_read(data, len, &head) ||
		((head.length || head.chunked) && is_without_body(data)))
		return HTTP_BAD;
	if (head.connect || head.scheme_is_other || !same_place(&head.url, name, port)) {
		memcpy(ret_other, head.url.host, sizeof head.url.host);
		return HTTP_OTHER_HOST;
	}
	if (!same_place(&head.host, name, port)) {
		memcpy(ret_other, head.host.host, sizeof head.host.host);
		return HTTP_OTHER_HOST;
	}
	bool first = !http->requests++;
	http->seen = 0;
	*ret_pass = len + head.length;
	if (head.upgrade && first) {
		http->nested = head.nested;
		http->where = AT_ANSWER;
		return HTTP_UPGRADE;
	}
	http->where = head.chunked ? AT_CHUNK : AT_REQUEST;
	return HTTP_PASS;
}

static enum http_verdict look_head(struct http *http, const char *name, uint16_t port,
	const uint8_t *data, size_t len, uint64_t *ret_pass, char *ret_other)
{
	bool full = len >= HTTP_HEAD_MAX;
	if (full)
		len = HTTP_HEAD_MAX;
	size_t head, seen = http->seen < len ? http->seen : len;
	enum http_verdict verdict = HTTP_PASS;
	if (http->where == AT_REQUEST) {
		verdict = look_line(seen, data, len);
		if (verdict == HTTP_OTHER && http->requests)
			verdict = HTTP_BAD;
		if (verdict == HTTP_PASS) {
			http->where = AT_FIELDS;
			seen = 0;
		}
	}
	if (verdict == HTTP_PASS)
		verdict = look_fields(seen, data, len, &head);
	if (verdict == HTTP_PASS)
		return judge(http, name, port, data, head, ret_pass, ret_other);
	if (verdict != HTTP_MORE)
		return verdict;
	http->seen = len;
	return full ? HTTP_BAD : HTTP_MORE;
}

/* A line of a chunked body with its end; HTTP_PASS: *ret_len is the length without CR LF. */
static enum http_verdict find_line(const uint8_t *data, size_t len, size_t *ret_len)
{
	for (size_t i = 0; i < len && i < HTTP_LINE_MAX; i++) {
		bool after_cr = i && data[i - 1] == '\r';
		if ((data[i] == '\n') != after_cr || !data[i])
			return HTTP_BAD;
		if (data[i] == '\n') {
			*ret_len = i - 1;
			return HTTP_PASS;
		}
	}
	return len >= HTTP_LINE_MAX ? HTTP_BAD : HTTP_MORE;
}

/* Hexadecimal digits, then nothing or extensions behind a semicolon, whose sense is of no matter.
 */
static bool read_size(const uint8_t *line, size_t len, uint64_t *ret)
{
	uint64_t size = 0;
	size_t i = 0;
	for (; i < len && i <= SIZE_DIGITS; i++) {
		uint8_t byte = hostname_lower(line[i]);
		if (byte >= '0' && byte <= '9')
			size = size << 4 | (uint64_t)(byte - '0');
		else if (byte >= 'a' && byte <= 'f')
			size = size << 4 | (uint64_t)(byte - 'a' + 10);
		else
			break;
	}
	if (!i || i > SIZE_DIGITS || (i < len && line[i] != ';'))
		return false;
	for (; i < len; i++)
		if ((line[i] < ' ' && line[i] != '\t') || line[i] == 0x7f)
			return false;
	*ret = size;
	return true;
}

/* One line of a chunked body, and the chunk behind it; *ret_used may be more than there is. */
static enum http_verdict look_piece(
	struct http *http, const uint8_t *data, size_t len, uint64_t *ret_used)
{
	size_t line;
	uint64_t size = 0;
	enum http_verdict verdict = find_line(data, len, &line);
	if (http->where == AT_CHUNK_END && data[0] != '\r')
		return HTTP_BAD; /* so the line is empty, as a CR has nothing but LF behind it */
	if (verdict != HTTP_PASS)
		return verdict;
	if (http->where == AT_CHUNK_END) {
		http->where = AT_CHUNK;
	} else if (http->where == AT_CHUNK) {
		if (!read_size(data, line, &size))
			return HTTP_BAD;
		http->where = size ? AT_CHUNK_END : AT_TRAILER;
	} else if (!line) {
		http->where = AT_REQUEST;
	} else {
		enum http_field field;
		struct http_value value;
		if (http_field_read(data, line, &field, &value) || field != HTTP_FIELD_ANY)
			return HTTP_BAD;
	}
	*ret_used = line + 2 + size;
	return HTTP_PASS;
}

static enum http_verdict look_chunks(
	struct http *http, const uint8_t *data, size_t len, uint64_t *ret_pass)
{
	uint64_t pass = 0, used;
	while (pass < len && http->where != AT_REQUEST) {
		enum http_verdict verdict =
			look_piece(http, data + pass, len - (size_t)pass, &used);
		if (verdict != HTTP_PASS && !pass)
			return verdict;
		if (verdict != HTTP_PASS)
			break;
		pass += used;
	}
	*ret_pass = pass;
	return HTTP_PASS;
}

enum http_verdict http_look(struct http *http, const char *name, uint16_t port, const uint8_t *data,
	size_t len, uint64_t *ret_pass, char ret_other[HTTP_NAME_MAX + 1])
{
	if (!len)
		return HTTP_MORE;
	switch ((enum where)http->where) {
	case AT_REQUEST:
	case AT_FIELDS:
		return look_head(http, name, port, data, len, ret_pass, ret_other);
	case AT_CHUNK:
	case AT_CHUNK_END:
	case AT_TRAILER:
		return look_chunks(http, data, len, ret_pass);
	case AT_ANSWER:
		return HTTP_MORE;
	case UPGRADED:
		return HTTP_OTHER;
	case UPGRADE_REFUSED:
		break;
	}
	return HTTP_BAD;
}

/* The status of an answer's first line: 0 not there yet, -1 it has none. */
static int read_status(const uint8_t *answer, size_t len)
{
	static const char form[] = "HTTP/1.d ddd";
	int status = 0;
	for (size_t i = 0; i < sizeof form - 1; i++) {
		if (i >= len)
			return 0;
		bool is_digit = answer[i] >= '0' && answer[i] <= '9';
		if (form[i] == 'd' ? !is_digit : answer[i] != (uint8_t)form[i])
			return -1;
		if (i >= 9)
			status = status * 10 + (answer[i] - '0');
	}
	return status ? status : -1;
}

/* The length of an answer's head; 0: not there yet. */
static size_t answer_head(const uint8_t *answer, size_t len)
{
	for (size_t i = 1; i < len; i++)
		if (answer[i] == '\n' &&
			(answer[i - 1] == '\n' ||
				(i > 1 && answer[i - 1] == '\r' && answer[i - 2] == '\n')))
			return i + 1;
	return 0;
}

enum http_verdict http_upgraded(struct http *http, const uint8_t *answer, size_t len)
{
	if (http->where == UPGRADED)
		return HTTP_OTHER;
	if (http->where == UPGRADE_REFUSED)
		return HTTP_BAD;
	size_t at = 0;
	while (http->where == AT_ANSWER) {
		int status = read_status(answer + at, len - at);
		if (status == 0)
			return HTTP_MORE;
		if (status == 101) {
			http->where = http->nested ? UPGRADE_REFUSED : UPGRADED;
			return http->nested ? HTTP_BAD : HTTP_OTHER;
		}
		/* Answers of this kind stand before the one that counts. */
		size_t head = status / 100 == 1 ? answer_head(answer + at, len - at) : 0;
		if (status / 100 == 1 && !head && len < HTTP_HEAD_MAX)
			return HTTP_MORE;
		if (!head || at + head >= HTTP_HEAD_MAX)
			http->where = AT_REQUEST;
		at += head;
	}
	return HTTP_PASS;
}
