/* diff_out: the parts of a patch that are git's own forms. Opens nothing. */
#include "workspace/diff_out.h"
#include "base/fd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#define FLUSH_AT ((size_t)64 << 10)
#define LINE     52              /* bytes that one line of base 85 tells */
#define BLOCK    ((size_t)65535) /* bytes of a stored block, at most (RFC 1951, 3.2.4) */

void diff_out_flush(struct diff_out *out)
{
	if (out->error == 0 && out->buf.full)
		out->error = -ENOSPC;
	if (out->error == 0)
		out->error = fd_write_full(out->fd, out->buf.data, out->buf.len);
	out->buf.len = 0;
}

void diff_out_poll(struct diff_out *out)
{
	if (out->buf.len >= FLUSH_AT)
		diff_out_flush(out);
}

static bool is_odd(unsigned char c)
{
	/* git itself takes a blank as it is, and then cannot always tell where the name ends. */
	return c <= ' ' || c >= 0x7f || c == '"' || c == '\\';
}

static void quote_byte(struct buf *out, unsigned char c)
{
	static const char named[] = "a\ab\bt\tn\nv\vf\fr\r\"\"\\\\";
	for (size_t i = 0; i + 1 < sizeof named; i += 2) {
		if ((unsigned char)named[i + 1] == c) {
			buf_addf(out, "\\%c", named[i]);
			return;
		}
	}
	if (is_odd(c) && c != ' ')
		buf_addf(out, "\\%03o", c);
	else
		buf_add(out, &c, 1);
}

void diff_quote(struct buf *out, const char *prefix, const char *path)
{
	bool odd = false;
	for (const char *at = path; *at; at++)
		odd = odd || is_odd((unsigned char)*at);
	if (!odd) {
		buf_adds(out, prefix);
		buf_adds(out, path);
		return;
	}
	buf_adds(out, "\"");
	buf_adds(out, prefix);
	for (const char *at = path; *at; at++)
		quote_byte(out, (unsigned char)*at);
	buf_adds(out, "\"");
}

/* Bytes on their way into lines of base 85. */
struct encoder {
	struct diff_out *out;
	unsigned char line[LINE];
	size_t len;
};

static void put_line(struct encoder *e)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwx"
				     "yz!#$%&()*+-;<=>?@^_`{|}~";
	char text[1 + LINE / 4 * 5 + 1];
	size_t at = 0;
	if (e->len == 0)
		return;
	text[at++] = (char)(e->len <= 26 ? 'A' + e->len - 1 : 'a' + e->len - 27);
	memset(e->line + e->len, 0, LINE - e->len);
	for (size_t i = 0; i < e->len; i += 4, at += 5) {
		uint32_t value = (uint32_t)e->line[i] << 24 | (uint32_t)e->line[i + 1] << 16 |
				 (uint32_t)e->line[i + 2] << 8 | e->line[i + 3];
		for (size_t digit = 5; digit-- > 0; value /= 85)
			text[at + digit] = digits[value % 85];
	}
	text[at++] = '\n';
	buf_add(&e->out->buf, text, at);
	diff_out_poll(e->out);
	e->len = 0;
}

static void encode(struct encoder *e, const unsigned char *data, size_t len)
{
	while (len > 0) {
		size_t n = LINE - e->len < len ? LINE - e->len : len;
		memcpy(e->line + e->len, data, n);
		e->len += n;
		data += n;
		len -= n;
		if (e->len == LINE)
			put_line(e);
	}
}

/* Adler-32 of RFC 1950, section 8.2. */
struct sum {
	uint32_t a, b;
};

static void add_sum(struct sum *sum, const unsigned char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		sum->a = (sum->a + data[i]) % 65521;
		sum->b = (sum->b + sum->a) % 65521;
	}
}

static void put_block(struct encoder *e, const unsigned char *data, size_t len, bool last)
{
	unsigned char head[5] = { last, (unsigned char)(len & 0xff), (unsigned char)(len >> 8) };
	head[3] = (unsigned char)~head[1];
	head[4] = (unsigned char)~head[2];
	encode(e, head, sizeof head);
	encode(e, data, len);
}

int diff_put_literal(struct diff_out *out, const struct diff_side *side)
{
	static const unsigned char zlib_head[2] = { 0x78, 0x01 };
	struct encoder e = { .out = out };
	struct sum sum = { .a = 1 };
	unsigned char block[BLOCK];
	buf_addf(&out->buf, "literal %" PRIu64 "\n", side->size);
	encode(&e, zlib_head, sizeof zlib_head);
	uint64_t left = side->size;
	do {
		size_t want = left < BLOCK ? (size_t)left : BLOCK;
		const unsigned char *data = block;
		if (side->text)
			data = (const unsigned char *)side->text + (side->size - left);
		else if (want && fd_read_full(side->fd, block, want) != (ssize_t)want)
			return -ESTALE;
		left -= want;
		add_sum(&sum, data, want);
		put_block(&e, data, want, left == 0);
	} while (left > 0);
	unsigned char tail[4] = { (unsigned char)(sum.b >> 8), (unsigned char)sum.b,
		(unsigned char)(sum.a >> 8), (unsigned char)sum.a };
	encode(&e, tail, sizeof tail);
	put_line(&e);
	buf_adds(&out->buf, "\n");
	return 0;
}
