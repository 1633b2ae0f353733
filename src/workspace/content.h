/* content: the bytes of regular files, by descriptors. Private to this room. */
#ifndef AGENTBOX_WORKSPACE_CONTENT_H
#define AGENTBOX_WORKSPACE_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is known of the two file systems, so that it is not tried for each file. */
struct content_ways {
	bool reflink; /* FICLONE may work */
	bool range;   /* copy_file_range may work */
};

struct content_copy {
	int from, to;  /* `to` is empty */
	uint64_t size; /* of `from`; afterwards of `to`: less, where `from` has shrunk */
	bool holes;    /* it may have some, which then stay holes */
	struct content_ways *ways;
	char *buffer; /* the caller's, with `room` bytes */
	size_t room;
	uint64_t copied, shared; /* bytes that were */
};

/*
 * Bring the bytes over: not more than `size` also when the file grows. Allocates nothing and writes
 * no errno, as the box's side uses it too. 0 or -errno.
 */
int content_copy(struct content_copy *copy);

/* Have both the same bytes, from their beginnings? What are holes in both is not read. 1, 0 or
 * -errno. */
int content_same(int a, int b);

#endif
