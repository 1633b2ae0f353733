/* http_head: one whole head of a request. What can be read in two ways is refused. */
#define _GNU_SOURCE
#include "broker/http_head.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "broker/hostname.h"

_Static_assert(HOSTNAME_MAX <= HTTP_NAME_MAX, "a name fits");

static bool digit(uint8_t byte)
{
	return byte >= '0' && byte <= '9';
}

bool http_token_byte(uint8_t byte)
{
	uint8_t lower = hostname_lower(byte);
	return (lower >= 'a' && lower <= 'z') || digit(byte) ||
	       (byte && strchr("!#$%&'*+-.^_`|~", byte));
}

static bool is(struct http_value value, const char *word)
{
	return value.len == strlen(word) &&
	       strncasecmp((const char *)value.text, word, value.len) == 0;
}

static bool begins(struct http_value value, const char *word)
{
	return value.len >= strlen(word) &&
	       strncasecmp((const char *)value.text, word, strlen(word)) == 0;
}

/* The part of `from` before the first `byte`, which with it is taken off; all of it without one. */
static struct http_value cut(struct http_value *from, uint8_t byte)
{
	const uint8_t *end = from->len ? memchr(from->text, byte, from->len) : NULL;
	struct http_value part = { from->text, end ? (size_t)(end - from->text) : from->len };
	size_t used = part.len + (end ? 1 : 0);
	from->text += used;
	from->len -= used;
	return part;
}

static struct http_value trim(struct http_value value)
{
	while (value.len && (value.text[0] == ' ' || value.text[0] == '\t')) {
		value.text++;
		value.len--;
	}
	while (value.len && (value.text[value.len - 1] == ' ' || value.text[value.len - 1] == '\t'))
		value.len--;
	return value;
}

/* A host name with an optional port. */
static int read_place(struct http_value text, struct http_place *ret)
{
	bool has_port = text.len && memchr(text.text, ':', text.len);
	struct http_value host = cut(&text, ':');
	struct http_place got = { 0 };
	if (hostname_read(host.text, host.len, got.host))
		return -EBADMSG;
	if (has_port) {
		if (!text.len || text.len > 5)
			return -EBADMSG;
		for (size_t i = 0; i < text.len; i++) {
			if (!digit(text.text[i]))
				return -EBADMSG;
			got.port = got.port * 10 + (unsigned)(text.text[i] - '0');
		}
		if (!got.port || got.port > 65535)
			return -EBADMSG;
	}
	*ret = got;
	return 0;
}

static bool scheme_ok(struct http_value scheme)
{
	for (size_t i = 0; i < scheme.len; i++) {
		uint8_t byte = scheme.text[i], lower = hostname_lower(byte);
		if (!(lower >= 'a' && lower <= 'z') &&
			(!i || (!digit(byte) && byte != '+' && byte != '-' && byte != '.')))
			return false;
	}
	return scheme.len != 0;
}

static int read_url(struct http_value url, struct http_head *ret)
{
	struct http_value scheme = cut(&url, ':');
	if (!scheme_ok(scheme) || url.len < 2 || memcmp(url.text, "//", 2) != 0)
		return -EBADMSG;
	url.text += 2;
	url.len -= 2;
	size_t end = 0;
	while (end < url.len && url.text[end] != '/' && url.text[end] != '?')
		end++;
	ret->scheme_is_other = !is(scheme, "http");
	return read_place((struct http_value){ url.text, end }, &ret->url);
}

/* METHOD SP target SP HTTP/1.x, one space each. */
static int read_request_line(struct http_value line, struct http_head *ret)
{
	struct http_value method = cut(&line, ' '), target = cut(&line, ' ');
	if (!method.len || !target.len)
		return -EBADMSG;
	for (size_t i = 0; i < method.len; i++)
		if (!http_token_byte(method.text[i]))
			return -EBADMSG;
	for (size_t i = 0; i < target.len; i++)
		if (target.text[i] <= ' ' || target.text[i] == 0x7f)
			return -EBADMSG;
	if (line.len != 8 || memcmp(line.text, "HTTP/1.", 7) != 0 ||
		(line.text[7] != '0' && line.text[7] != '1'))
		return -EBADMSG;
	ret->old = line.text[7] == '0';
	ret->connect = is(method, "CONNECT");
	if (ret->connect) {
		/* Refused anyhow; where to is only told. */
		if (read_place(target, &ret->url))
			ret->url.host[0] = 0;
		return 0;
	}
	if (target.text[0] == '/')
		return 0;
	if (is(target, "*"))
		return is(method, "OPTIONS") ? 0 : -EBADMSG;
	return read_url(target, ret);
}

int http_field_read(
	const uint8_t *line, size_t len, enum http_field *ret_field, struct http_value *ret_value)
{
	static const struct {
		const char *name;
		enum http_field field;
	} fields[] = { { "host", HTTP_FIELD_HOST }, { "content-length", HTTP_FIELD_LENGTH },
		{ "transfer-encoding", HTTP_FIELD_CODING }, { "upgrade", HTTP_FIELD_UPGRADE } };
	size_t end = 0;
	while (end < len && http_token_byte(line[end]))
		end++;
	if (!end || end == len || line[end] != ':')
		return -EBADMSG;
	for (size_t i = end; i < len; i++)
		if ((line[i] < ' ' && line[i] != '\t') || line[i] == 0x7f)
			return -EBADMSG;
	*ret_field = HTTP_FIELD_ANY;
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (is((struct http_value){ line, end }, fields[i].name))
			*ret_field = fields[i].field;
	*ret_value = trim((struct http_value){ line + end + 1, len - end - 1 });
	return 0;
}

static int read_length(struct http_value value, uint64_t *ret)
{
	uint64_t length = 0;
	if (!value.len)
		return -EBADMSG;
	for (size_t i = 0; i < value.len; i++) {
		if (!digit(value.text[i]))
			return -EBADMSG;
		uint64_t more = (uint64_t)(value.text[i] - '0');
		if (length > (INT64_MAX - more) / 10)
			return -EBADMSG;
		length = length * 10 + more;
	}
	*ret = length;
	return 0;
}

/* Whether one of the protocols of an Upgrade field has requests, or hides them. */
static bool nests(struct http_value list)
{
	static const char *const names[] = { "h2", "http", "tls", "ssl", "spdy" };
	while (list.len) {
		struct http_value item = trim(cut(&list, ','));
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			if (begins(item, names[i]))
				return true;
	}
	return false;
}

static int read_field(struct http_value line, unsigned counts[], struct http_head *ret)
{
	enum http_field field;
	struct http_value value;
	if (http_field_read(line.text, line.len, &field, &value))
		return -EBADMSG;
	counts[field]++;
	switch (field) {
	case HTTP_FIELD_HOST:
		return read_place(value, &ret->host);
	case HTTP_FIELD_LENGTH:
		return read_length(value, &ret->length);
	case HTTP_FIELD_CODING:
		ret->chunked = true;
		return is(value, "chunked") ? 0 : -EBADMSG;
	case HTTP_FIELD_UPGRADE:
		ret->upgrade = true;
		ret->nested = ret->nested || nests(value);
		return 0;
	case HTTP_FIELD_ANY:
		break;
	}
	return 0;
}

int http_head_read(const uint8_t *head, size_t len, struct http_head *ret)
{
	struct http_value rest = { head, len };
	struct http_head got = { 0 };
	unsigned counts[HTTP_FIELD_UPGRADE + 1] = { 0 };
	for (bool first = true;; first = false) {
		struct http_value line = cut(&rest, '\n');
		if (!line.len || line.text[line.len - 1] != '\r')
			return -EBADMSG;
		if (!--line.len && !first)
			break;
		if (first ? read_request_line(line, &got) : read_field(line, counts, &got))
			return -EBADMSG;
	}
	if (rest.len || counts[HTTP_FIELD_HOST] > 1 || (!got.old && !counts[HTTP_FIELD_HOST]))
		return -EBADMSG;
	if (counts[HTTP_FIELD_LENGTH] + counts[HTTP_FIELD_CODING] > 1 || (got.old && got.chunked))
		return -EBADMSG;
	if (got.upgrade && (got.chunked || got.length))
		return -EBADMSG;
	*ret = got;
	return 0;
}
