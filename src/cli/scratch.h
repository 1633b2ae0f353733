/*
 * scratch: a directory of our own below $TMPDIR or /tmp that serves as a workspace and is gone
 * afterwards, whatever a command left in it.
 */
#ifndef AGENTBOX_CLI_SCRATCH_H
#define AGENTBOX_CLI_SCRATCH_H

#include "base/arena.h"
#include "base/err.h"

/* Make one, mode 0700; *ret_path is absolute and without links. Errors: no_resources. */
int scratch_make(struct arena *arena, const char **ret_path, struct err *err);

/*
 * Remove it with all that is in it: follows no link, needs no more descriptors or stack for a deep
 * tree than for a flat one. 0 or -errno. Nobody else may be at work in it.
 */
int scratch_remove(const char *path);

#endif
