/* content: the bytes of regular files, by descriptors. Private to this room. */
#ifndef AGENTBOX_WORKSPACE_CONTENT_H
#define AGENTBOX_WORKSPACE_CONTENT_H

#include <stdint.h>

/*
 * Fill the empty file `to` with the `size` bytes of `from`: shared with it where the file system
 * can, with holes where it has them. 0 or -errno; -EIO when `from` is shorter by now.
 */
int content_copy(int from, int to, uint64_t size);

/* Have both the same bytes, from their beginnings? 1, 0 or -errno. */
int content_same(int a, int b);

#endif
