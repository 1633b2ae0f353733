/* stream_test: what is kept of the command's output, and how it is shown. */
#include <errno.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "report/result.h"
#include "check.h"

static bool render(const struct stream *stream, struct buf *out)
{
	bool base64 = false;
	buf_free(out);
	CHECK(stream_render(stream, out, &base64) == 0);
	return base64;
}

static void stream_keeps_all_that_fits(void)
{
	AUTO_BUF out = { 0 };
	struct stream s;
	stream_init(&s, 11);
	CHECK(s.head == NULL && s.tail == NULL);
	CHECK(!render(&s, &out) && out.len == 0);
	for (size_t i = 0; i < 11; i++)
		stream_add(&s, &"hello\0world"[i], 1);
	CHECK(!stream_truncated(&s) && s.total == 11);
	CHECK(!render(&s, &out) && out.len == 11 && memcmp(out.data, "hello\0world", 11) == 0);
	stream_add(&s, "!", 1);
	CHECK(stream_truncated(&s) && !render(&s, &out));
	CHECK(out.len > 5 && memcmp(out.data, "hello", 5) == 0);
	CHECK_TEXT(out.data, "hello\n[agentbox: 1 bytes left out]\nworld!");
	stream_free(&s);
}

/* Every way of cutting the same bytes into pieces keeps the same head and tail. */
static void stream_ring_is_exact(void)
{
	char text[301], want[400];
	for (size_t i = 0; i < 300; i++)
		text[i] = (char)('0' + i * 7 % 75);
	text[300] = 0;
	for (size_t max = 0; max < 64; max++) {
		size_t head = max / 2, tail = max - head;
		snprintf(want, sizeof want, "%.*s\n[agentbox: %zu bytes left out]\n%s", (int)head,
			text, 300 - max, text + 300 - tail);
		for (size_t step = 1; step <= 300; step += step < 70 ? 1 : 57) {
			struct stream s;
			AUTO_BUF out = { 0 };
			stream_init(&s, max);
			for (size_t at = 0; at < 300; at += step)
				CHECK(stream_add(&s, text + at,
					      step < 300 - at ? step : 300 - at) == 0);
			CHECK(s.total == 300 && !render(&s, &out));
			CHECK_TEXT(buf_text(&out), want);
			CHECK(s.head_size <= s.head_max && s.tail_size <= s.tail_max);
			stream_free(&s);
		}
	}
}

/* A50: the error is at the end, and memory is what is kept. */
static void stream_takes_a_flood(void)
{
	struct stream s;
	AUTO_BUF out = { 0 };
	static char block[65536];
	memset(block, 'y', sizeof block);
	stream_init(&s, 1 << 20);
	stream_add(&s, "BEGIN", 5);
	CHECK(s.head_size <= 4096 && s.tail == NULL);
	for (int i = 0; i < 4096; i++)
		stream_add(&s, block, sizeof block);
	stream_add(&s, "END\n", 4);
	CHECK(s.total == 5 + ((uint64_t)4096 << 16) + 4);
	CHECK(s.head_size + s.tail_size == 1 << 20);
	CHECK(!render(&s, &out));
	CHECK(strncmp(out.data, "BEGINy", 6) == 0);
	CHECK_TEXT(out.data + out.len - 5, "yEND\n");
	CHECK(strstr(out.data, "y\n[agentbox: 267386889 bytes left out]\ny") != NULL);
	stream_free(&s);
}

/* The number of bytes in the gap line, and what stands around it, always add up to the total. */
static void stream_cuts_between_characters(void)
{
	static const char *const units[] = { "a", "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x90\xa7" };
	for (size_t u = 0; u < 4; u++) {
		size_t unit = strlen(units[u]);
		for (size_t max = 0; max < 40; max++) {
			struct stream s;
			AUTO_BUF out = { 0 };
			stream_init(&s, max);
			stream_add(&s, "x", 1);
			for (int i = 0; i < 50; i++)
				stream_add(&s, units[u], unit);
			CHECK(!render(&s, &out));
			CHECK(utf8_valid(out.data, out.len));
			char *gap = strstr(out.data, "\n[agentbox: ");
			CHECK(gap != NULL);
			if (!gap)
				break;
			char *end = NULL;
			size_t left_out = strtoul(gap + 12, &end, 10);
			CHECK(strncmp(end, " bytes left out]\n", 17) == 0);
			size_t head = (size_t)(gap - out.data), tail = strlen(end + 17);
			CHECK(head + tail + left_out == 1 + 50 * unit);
			CHECK(head <= max / 2 && head + unit > max / 2);
			CHECK(tail % unit == 0 && tail + unit > max - max / 2);
			stream_free(&s);
		}
	}
}

/* A51 */
static void stream_encodes_what_is_no_text(void)
{
	uint8_t all[256];
	for (int i = 0; i < 256; i++)
		all[i] = (uint8_t)i;
	struct stream s;
	AUTO_BUF out = { 0 };
	stream_init(&s, 1024);
	stream_add(&s, all, sizeof all);
	CHECK(render(&s, &out));
	CHECK(out.len == 344 && strncmp(out.data, "AAECAwQFBgcICQ", 14) == 0);
	CHECK_TEXT(out.data + 336, "/P3+/w==");
	stream_free(&s);

	static const struct {
		const char *bytes, *want;
	} short_ones[] = { { "\xff", "/w==" }, { "\xff\xfe", "//4=" }, { "\xff\xfe\xfd", "//79" },
		{ "ok \xe2\x82", "b2sg4oI=" } };
	for (size_t i = 0; i < 4; i++) {
		stream_init(&s, 1024);
		stream_add(&s, short_ones[i].bytes, strlen(short_ones[i].bytes));
		CHECK(render(&s, &out));
		CHECK_TEXT(buf_text(&out), short_ones[i].want);
		stream_free(&s);
	}
	/* Truncated and no text: nothing is trimmed, and the gap line is encoded with the rest. */
	stream_init(&s, 4);
	stream_add(&s, "\xff\x80zzzz\x80\xff", 8);
	CHECK(render(&s, &out));
	CHECK_TEXT(buf_text(&out), "/4AKW2FnZW50Ym94OiA0IGJ5dGVzIGxlZnQgb3V0XQqA/w==");
	stream_free(&s);
}

static void stream_render_respects_the_buf(void)
{
	struct stream s;
	stream_init(&s, 100);
	AUTO_BUF out = { .max = 8 };
	bool base64 = true;
	buf_adds(&out, "kept");
	stream_add(&s, "too long for it", 15);
	CHECK(stream_render(&s, &out, &base64) == -ENOSPC);
	CHECK_TEXT(buf_text(&out), "kept");
	CHECK(base64);
	stream_free(&s);
}

int main(void)
{
	RUN(stream_keeps_all_that_fits);
	RUN(stream_ring_is_exact);
	RUN(stream_takes_a_flood);
	RUN(stream_cuts_between_characters);
	RUN(stream_encodes_what_is_no_text);
	RUN(stream_render_respects_the_buf);
	return CHECK_STATUS();
}
