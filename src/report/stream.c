/*
 * stream: what is kept of the command's output: its head, its tail and the count of all of it.
 * Never reads from a descriptor, never interprets the bytes but to cut between characters.
 */
#include "report/result.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE ((size_t)1024)

void stream_init(struct stream *stream, size_t max)
{
	*stream = (struct stream){ .head_max = max / 2, .tail_max = max - max / 2 };
}

void stream_free(struct stream *stream)
{
	free(stream->head);
	free(stream->tail);
	*stream = (struct stream){ 0 };
}

/*
 * Room for `need` bytes, at most *max of them. Without memory what is there becomes the maximum, so
 * that no bytes are ever missing in the middle of a part.
 */
static int reserve(uint8_t **data, size_t *size, size_t *max, size_t need)
{
	if (need > *max)
		need = *max;
	if (need <= *size)
		return 0;
	size_t grown = *size > *max / 2 ? *max : *size * 2;
	if (grown < FIRST_SIZE)
		grown = FIRST_SIZE < *max ? FIRST_SIZE : *max;
	if (grown < need)
		grown = need;
	uint8_t *p = realloc(*data, grown);
	if (!p) {
		*max = *size;
		return -ENOMEM;
	}
	*data = p;
	*size = grown;
	return 0;
}

static int add_tail(struct stream *stream, const uint8_t *data, size_t len)
{
	size_t need = len > stream->tail_max ? stream->tail_max : stream->tail_len + len;
	int r = reserve(&stream->tail, &stream->tail_size, &stream->tail_max, need);
	size_t max = stream->tail_max;
	if (len >= max) {
		if (max)
			memcpy(stream->tail, data + len - max, max);
		stream->tail_len = max;
		stream->tail_at = 0;
		return r;
	}
	/* The ring only goes round once it has its full size, so growing never has to unroll it. */
	size_t at = stream->tail_at + stream->tail_len;
	if (at >= max)
		at -= max;
	size_t first = len < max - at ? len : max - at;
	memcpy(stream->tail + at, data, first);
	memcpy(stream->tail, data + first, len - first);
	if (len <= max - stream->tail_len) {
		stream->tail_len += len;
	} else {
		stream->tail_at += stream->tail_len + len - max;
		if (stream->tail_at >= max)
			stream->tail_at -= max;
		stream->tail_len = max;
	}
	return r;
}

int stream_add(struct stream *stream, const void *data, size_t len)
{
	const uint8_t *p = data;
	int r = 0;
	stream->total += len;
	size_t n = stream->head_max - stream->head_len;
	if (n && len) {
		if (n > len)
			n = len;
		r = reserve(
			&stream->head, &stream->head_size, &stream->head_max, stream->head_len + n);
		if (n > stream->head_max - stream->head_len)
			n = stream->head_max - stream->head_len;
		if (n)
			memcpy(stream->head + stream->head_len, p, n);
		stream->head_len += n;
		p += n;
		len -= n;
	}
	if (len) {
		int tail = add_tail(stream, p, len);
		r = r < 0 ? r : tail;
	}
	return r;
}

bool stream_truncated(const struct stream *stream)
{
	return stream->total > stream->head_len + stream->tail_len;
}

/* What is kept, as up to three stretches of bytes: head, and the ring from its oldest byte. */
struct part {
	const uint8_t *data;
	size_t len;
};

static void parts(const struct stream *stream, struct part ret[3])
{
	size_t size = stream->tail_size, first = size - stream->tail_at;
	if (first > stream->tail_len)
		first = stream->tail_len;
	ret[0] = (struct part){ stream->head, stream->head_len };
	ret[1] = (struct part){ stream->tail ? stream->tail + stream->tail_at : NULL, first };
	ret[2] = (struct part){ stream->tail, stream->tail_len - first };
}

/* How many bytes at the end of the text are a character that was cut off. */
static size_t cut_end(const uint8_t *s, size_t len)
{
	for (size_t n = 1; n <= 3 && n <= len; n++) {
		uint8_t c = s[len - n];
		if ((c & 0xc0) == 0x80)
			continue;
		size_t want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
		return want > n ? n : 0;
	}
	return 0;
}

/* How many bytes at the beginning are the rest of a character that was cut off. */
static size_t cut_start(const uint8_t *s, size_t len)
{
	size_t n = 0;
	while (n < 3 && n < len && (s[n] & 0xc0) == 0x80)
		n++;
	return n;
}

static int add_base64(struct buf *out, const uint8_t *s, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char text[4096];
	size_t n = 0;
	for (; len; s += 3) {
		size_t have = len < 3 ? len : 3;
		uint32_t bits = (uint32_t)s[0] << 16 | (have > 1 ? (uint32_t)s[1] << 8 : 0) |
				(have > 2 ? s[2] : 0);
		text[n++] = digits[bits >> 18];
		text[n++] = digits[bits >> 12 & 63];
		text[n++] = have > 1 ? digits[bits >> 6 & 63] : '=';
		text[n++] = have > 2 ? digits[bits & 63] : '=';
		len -= have;
		if (n == sizeof text || len == 0) {
			int r = buf_add(out, text, n);
			if (r < 0)
				return r;
			n = 0;
		}
	}
	return 0;
}

static void shorten(struct buf *out, size_t len)
{
	out->len = len;
	if (out->data)
		out->data[len] = 0;
}

/* Head, gap line if there is a gap, tail. */
static int add_parts(struct buf *out, const struct part p[3], uint64_t left_out, bool gap)
{
	int r = p[0].len ? buf_add(out, p[0].data, p[0].len) : 0;
	if (r == 0 && gap)
		r = buf_addf(out, "\n[agentbox: %" PRIu64 " bytes left out]\n", left_out);
	for (int i = 1; i < 3 && r == 0; i++)
		if (p[i].len)
			r = buf_add(out, p[i].data, p[i].len);
	return r;
}

int stream_render(const struct stream *stream, struct buf *out, bool *ret_base64)
{
	struct part p[3];
	parts(stream, p);
	bool gap = stream_truncated(stream);
	uint64_t kept = stream->head_len + stream->tail_len;
	size_t start = out->len;

	/* The ring's seam may lie within a character, so text is looked at as it will be shown. */
	size_t end_cut = gap ? cut_end(p[0].data, p[0].len) : 0;
	struct part text[3] = { { p[0].data, p[0].len - end_cut }, p[1], p[2] };
	size_t start_cut = 0;
	for (int i = 1; gap && i < 3 && start_cut < 3; i++) {
		if (!text[i].len)
			continue;
		size_t n = cut_start(text[i].data, text[i].len);
		if (n > 3 - start_cut)
			n = 3 - start_cut;
		start_cut += n;
		text[i].data += n;
		text[i].len -= n;
		if (text[i].len)
			break;
	}
	int r = add_parts(out, text, stream->total - kept + end_cut + start_cut, gap);
	if (r == 0 && (out->len == start || utf8_valid(out->data + start, out->len - start))) {
		*ret_base64 = false;
		return 0;
	}
	shorten(out, start);
	if (r < 0)
		return r;

	AUTO_BUF raw = { .max = SIZE_MAX };
	r = add_parts(&raw, p, stream->total - kept, gap);
	if (r == 0)
		r = add_base64(out, (const uint8_t *)raw.data, raw.len);
	if (r < 0) {
		shorten(out, start);
		return r;
	}
	*ret_base64 = true;
	return 0;
}
