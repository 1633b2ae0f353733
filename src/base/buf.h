/*
 * buf: a growing byte buffer with a hard maximum. Past the maximum nothing is added and `full` is
 * set; the caller decides what that means.
 */
#ifndef AGENTBOX_BASE_BUF_H
#define AGENTBOX_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data; /* NUL behind the last byte once anything was added; owned */
	size_t len, size;
	size_t max; /* 0: BUF_MAX_DEFAULT */
	bool full;
};

#define BUF_MAX_DEFAULT ((size_t)64 << 20)

/* Append; 0, or -ENOSPC with nothing added (and full set). */
int buf_add(struct buf *buf, const void *data, size_t len);
int buf_adds(struct buf *buf, const char *text);
int buf_addf(struct buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Append untrusted text so that a terminal only ever shows it: C0, DEL, C1, bidirectional
 * controls and bytes that are not UTF-8 become visible escapes (\x1b, \u{202e}); with
 * `newlines`, \n and \t pass as they are. Same return as buf_add.
 */
int buf_add_visible(struct buf *buf, const void *data, size_t len, bool newlines);

/* "" when empty; valid until the next change. */
const char *buf_text(const struct buf *buf);

void buf_free(struct buf *buf);
#define AUTO_BUF __attribute__((cleanup(buf_free))) struct buf

#endif
