/*
 * tree_file: opening one regular file of a tree that is copied. Private to the room's tree_copy.c.
 */
#ifndef AGENTBOX_WORKSPACE_TREE_FILE_H
#define AGENTBOX_WORKSPACE_TREE_FILE_H

#include "workspace/tree_walk.h"

/*
 * Open the regular file `name` for reading, also where its owner, who is the caller, may not read
 * it: then *ret_mode is the mode to put back with tree_fchmod once the file and its attributes were
 * read, else 0. *ret: what was opened, as it was before. A descriptor or -errno; -ESTALE: it is no
 * regular file (any more).
 */
int tree_file_open(int dir, const char *name, struct tree_stat *ret, mode_t *ret_mode);

#endif
