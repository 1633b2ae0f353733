/*
 * json: a writer of JSON that cannot nest wrongly. Values go straight into a buf; open objects and
 * arrays are a stack, and a call that would break the nesting (a key in an array, none in an
 * object, a second document) makes the whole document fail instead. Strings are made from any
 * bytes: what leaves here is always valid UTF-8 in which a terminal finds nothing to act on.
 *
 * It is not built on a tree: a captured stream can be as large as the policy's `output`, and would
 * be held twice more. Reading is jansson's; the unit tests and the fuzzer hold this writer to it.
 */
#ifndef AGENTBOX_BASE_JSON_H
#define AGENTBOX_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define JSON_DEPTH_MAX 32

struct json {
	struct buf *out; /* borrowed */
	size_t start;    /* length of *out before the document */
	int error;       /* the first failure; everything after it is skipped */
	bool pretty;
	bool done; /* the top-level value is complete */
	unsigned depth;
	struct {
		bool array, filled;
	} open[JSON_DEPTH_MAX];
};

/* Begin a document at the end of *out. `pretty`: indented by two spaces, else one line. */
void json_begin(struct json *json, struct buf *out, bool pretty);

/*
 * Finish it with a newline. 0; -EINVAL when the nesting was wrong or something is still open,
 * -ENOSPC when *out is full; on failure *out is as it was before json_begin.
 */
int json_end(struct json *json);

/* In an object each value has a key (trusted text, still escaped); in an array key is NULL. */
void json_open_object(struct json *json, const char *key);
void json_open_array(struct json *json, const char *key);
void json_close(struct json *json); /* the innermost one */

/* The document fails with this -errno, as a value for it could not be had. */
void json_fail(struct json *json, int error);

void json_put_null(struct json *json, const char *key);
void json_put_bool(struct json *json, const char *key, bool value);
void json_put_int(struct json *json, const char *key, int64_t value);
/* Past INT64_MAX it stays there: many readers refuse larger integers. */
void json_put_uint(struct json *json, const char *key, uint64_t value);
/* value / 1000 with at most three decimals, exact: 14200 is 14.2. */
void json_put_thousandths(struct json *json, const char *key, uint64_t value);
/* NULL: null. */
void json_put_text(struct json *json, const char *key, const char *text);
/*
 * A string from any bytes. Bytes that are not UTF-8 become the four characters \xNN; C0, DEL, C1
 * and bidirectional controls are escaped as JSON escapes them, NUL too.
 */
void json_put_bytes(struct json *json, const char *key, const void *data, size_t len);

#endif
