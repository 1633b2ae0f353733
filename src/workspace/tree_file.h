/*
 * tree_file: opening one regular file of a tree that is copied, and bringing its data over. Private
 * to the room's tree_copy.c.
 */
#ifndef AGENTBOX_WORKSPACE_TREE_FILE_H
#define AGENTBOX_WORKSPACE_TREE_FILE_H

#include <stdbool.h>

#include "workspace/tree_walk.h"

/* What was found out of the two file systems, so that it is not tried for each file. */
struct tree_file_ways {
	bool reflink; /* FICLONE may work */
	bool range;   /* copy_file_range may work */
};

/*
 * Open the regular file `name` for reading, also where its owner, who is the caller, may not read
 * it: then *ret_mode is the mode to put back with tree_fchmod once the file and its attributes were
 * read, else 0. *ret: what was opened, as it was before. A descriptor or -errno; -ESTALE: it is no
 * regular file (any more).
 */
int tree_file_open(int dir, const char *name, struct tree_stat *ret, mode_t *ret_mode);

/*
 * Bring the data of `from`, whose size was `size`, into the empty file `to`: not more than that
 * also when it grows, less when it shrinks; what is a hole stays one. 0 or -errno.
 */
int tree_file_data(struct tree_walk *walk, struct tree_file_ways *ways, int from, int to,
	const struct tree_stat *st, struct tree_report *report);

#endif
