/* diff_out: a patch on its way to a descriptor, in pieces. Private to diff*.c. */
#ifndef AGENTBOX_WORKSPACE_DIFF_OUT_H
#define AGENTBOX_WORKSPACE_DIFF_OUT_H

#include "base/buf.h"
#include "workspace/diff_file.h"

struct diff_out {
	int fd;
	int error; /* the first -errno; what follows is dropped */
	struct buf buf;
	size_t huge; /* files of which it says only that they differ */
};

void diff_out_flush(struct diff_out *out);
/* Make room: write what is there if it is much. */
void diff_out_poll(struct diff_out *out);

/* A path as git writes it: with quotes and escapes where it needs them. `prefix`: "a/". */
void diff_quote(struct buf *out, const char *prefix, const char *path);

/*
 * The form `side` as a whole, as a "GIT binary patch" has it: "literal", its size, and lines of
 * base 85 of a zlib stream, which here is stored, not compressed. 0 or -errno of reading.
 */
int diff_put_literal(struct diff_out *out, const struct diff_side *side);

#endif
