/* json: a writer of JSON that cannot nest wrongly. Never reads JSON, never holds a tree. */
#include "base/json.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void add(struct json *json, const void *data, size_t len)
{
	if (json->error)
		return;
	int r = buf_add(json->out, data, len);
	if (r < 0)
		json->error = r;
}

static void add_line(struct json *json)
{
	static const char spaces[2 * JSON_DEPTH_MAX + 1] =
		"                                                                ";
	if (!json->pretty)
		return;
	add(json, "\n", 1);
	add(json, spaces, 2 * (size_t)json->depth);
}

/*
 * Pieces of an escaped string on their way to the buf: without it a flood of NUL bytes would be a
 * million additions of six bytes.
 */
struct chunk {
	struct json *json;
	size_t len;
	char data[1024];
};

static void chunk_flush(struct chunk *chunk)
{
	add(chunk->json, chunk->data, chunk->len);
	chunk->len = 0;
}

static void chunk_add(struct chunk *chunk, const void *data, size_t len)
{
	if (len > sizeof chunk->data - chunk->len)
		chunk_flush(chunk);
	if (len > sizeof chunk->data) {
		add(chunk->json, data, len);
		return;
	}
	memcpy(chunk->data + chunk->len, data, len);
	chunk->len += len;
}

static void chunk_escape(struct chunk *chunk, uint32_t rune)
{
	static const char digits[] = "0123456789abcdef";
	static const char shorts[128] = {
		['"'] = '"',
		['\\'] = '\\',
		['\b'] = 'b',
		['\f'] = 'f',
		['\n'] = 'n',
		['\r'] = 'r',
		['\t'] = 't',
	};
	if (rune < sizeof shorts && shorts[rune]) {
		chunk_add(chunk, (const char[]){ '\\', shorts[rune] }, 2);
		return;
	}
	/* All control characters of utf8_is_control() lie below U+10000. */
	const char text[] = { '\\', 'u', digits[rune >> 12 & 15], digits[rune >> 8 & 15],
		digits[rune >> 4 & 15], digits[rune & 15] };
	chunk_add(chunk, text, sizeof text);
}

static bool plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void add_string(struct json *json, const void *data, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	struct chunk chunk;
	chunk.json = json;
	chunk.len = 0;
	const unsigned char *s = data, *end = s + len;
	chunk_add(&chunk, "\"", 1);
	while (s < end) {
		const unsigned char *run = s;
		while (s < end && plain(*s))
			s++;
		chunk_add(&chunk, run, (size_t)(s - run));
		if (s == end)
			break;
		uint32_t rune = 0;
		size_t n = utf8_decode(s, (size_t)(end - s), &rune);
		if (n == 0) {
			const char text[] = { '\\', '\\', 'x', digits[*s >> 4], digits[*s & 15] };
			chunk_add(&chunk, text, sizeof text);
			n = 1;
		} else if (rune < 0x80 || utf8_is_control(rune)) {
			chunk_escape(&chunk, rune);
		} else {
			chunk_add(&chunk, s, n);
		}
		s += n;
	}
	chunk_add(&chunk, "\"", 1);
	chunk_flush(&chunk);
}

/* Everything that stands before a value; false: it may not stand here. */
static bool before_value(struct json *json, const char *key)
{
	if (json->error)
		return false;
	bool in_object = json->depth && !json->open[json->depth - 1].array;
	if ((json->depth == 0 && json->done) || in_object != (key != NULL)) {
		json->error = -EINVAL;
		return false;
	}
	json->done = true;
	if (json->depth == 0)
		return true;
	if (json->open[json->depth - 1].filled)
		add(json, ",", 1);
	json->open[json->depth - 1].filled = true;
	add_line(json);
	if (key) {
		add_string(json, key, strlen(key));
		add(json, ": ", json->pretty ? 2 : 1);
	}
	return true;
}

static void put(struct json *json, const char *key, const char *word)
{
	if (before_value(json, key))
		add(json, word, strlen(word));
}

static void open_one(struct json *json, const char *key, bool array)
{
	if (!before_value(json, key))
		return;
	if (json->depth == JSON_DEPTH_MAX) {
		json->error = -EINVAL;
		return;
	}
	add(json, array ? "[" : "{", 1);
	json->open[json->depth].array = array;
	json->open[json->depth].filled = false;
	json->depth++;
}

void json_begin(struct json *json, struct buf *out, bool pretty)
{
	memset(json, 0, sizeof *json);
	json->out = out;
	json->start = out->len;
	json->pretty = pretty;
}

int json_end(struct json *json)
{
	if (!json->error && (json->depth || !json->done))
		json->error = -EINVAL;
	add(json, "\n", 1);
	if (json->error && json->out->data) {
		json->out->len = json->start;
		json->out->data[json->start] = 0;
	}
	return json->error;
}

void json_open_object(struct json *json, const char *key)
{
	open_one(json, key, false);
}

void json_open_array(struct json *json, const char *key)
{
	open_one(json, key, true);
}

void json_close(struct json *json)
{
	if (json->error)
		return;
	if (json->depth == 0) {
		json->error = -EINVAL;
		return;
	}
	json->depth--;
	if (json->open[json->depth].filled)
		add_line(json);
	add(json, json->open[json->depth].array ? "]" : "}", 1);
}

void json_fail(struct json *json, int error)
{
	if (!json->error)
		json->error = error;
}

void json_put_null(struct json *json, const char *key)
{
	put(json, key, "null");
}

void json_put_bool(struct json *json, const char *key, bool value)
{
	put(json, key, value ? "true" : "false");
}

void json_put_int(struct json *json, const char *key, int64_t value)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRId64, value);
	put(json, key, text);
}

void json_put_uint(struct json *json, const char *key, uint64_t value)
{
	json_put_int(json, key, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

void json_put_thousandths(struct json *json, const char *key, uint64_t value)
{
	char text[32];
	int len = snprintf(
		text, sizeof text, "%" PRIu64 ".%03u", value / 1000, (unsigned)(value % 1000));
	while (text[len - 1] == '0')
		len--;
	if (text[len - 1] == '.')
		len--;
	text[len] = 0;
	put(json, key, text);
}

void json_put_text(struct json *json, const char *key, const char *text)
{
	if (text)
		json_put_bytes(json, key, text, strlen(text));
	else
		json_put_null(json, key);
}

void json_put_bytes(struct json *json, const char *key, const void *data, size_t len)
{
	if (before_value(json, key))
		add_string(json, data, len);
}
