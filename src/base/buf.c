/* buf: a growing byte buffer with a hard maximum. */
#define _GNU_SOURCE
#include "base/buf.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int buf_add(struct buf *buf, const void *data, size_t len)
{
	size_t max = buf->max ? buf->max : BUF_MAX_DEFAULT;
	if (len > max || buf->len > max - len) {
		buf->full = true;
		return -ENOSPC;
	}
	size_t need = buf->len + len + 1;
	if (need > buf->size) {
		size_t size = buf->size ? buf->size : 256;
		while (size < need)
			size *= 2;
		char *grown = realloc(buf->data, size);
		if (!grown) {
			buf->full = true;
			return -ENOSPC;
		}
		buf->data = grown;
		buf->size = size;
	}
	if (len)
		memcpy(buf->data + buf->len, data, len);
	buf->len += len;
	buf->data[buf->len] = 0;
	return 0;
}

int buf_adds(struct buf *buf, const char *text)
{
	return buf_add(buf, text, strlen(text));
}

int buf_addf(struct buf *buf, const char *fmt, ...)
{
	char small[512];
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int len = vsnprintf(small, sizeof small, fmt, ap);
	va_end(ap);
	int r;
	if (len >= 0 && (size_t)len < sizeof small) {
		r = buf_add(buf, small, (size_t)len);
	} else {
		char *large = NULL;
		len = vasprintf(&large, fmt, again);
		r = len < 0 ? -ENOSPC : buf_add(buf, large, (size_t)len);
		if (len >= 0)
			free(large);
	}
	va_end(again);
	return r;
}

int buf_add_visible(struct buf *buf, const void *data, size_t len, bool newlines)
{
	const unsigned char *s = data;
	int r = 0;
	while (len && r == 0) {
		uint32_t rune = 0;
		size_t n = utf8_decode(s, len, &rune);
		if (n == 0) {
			r = buf_addf(buf, "\\x%02x", s[0]);
			n = 1;
		} else if (rune == '\n' || rune == '\t') {
			r = newlines ? buf_add(buf, s, 1)
				     : buf_adds(buf, rune == '\n' ? "\\n" : "\\t");
		} else if (utf8_is_control(rune)) {
			r = rune < 0x80 ? buf_addf(buf, "\\x%02x", rune)
					: buf_addf(buf, "\\u{%x}", rune);
		} else {
			r = buf_add(buf, s, n);
		}
		s += n;
		len -= n;
	}
	return r;
}

const char *buf_text(const struct buf *buf)
{
	return buf->data ? buf->data : "";
}

void buf_free(struct buf *buf)
{
	free(buf->data);
	*buf = (struct buf){ .max = buf->max };
}
