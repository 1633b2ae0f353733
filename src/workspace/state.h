/*
 * state: the caller's own directory for what outlives a run.
 *
 * STATE is $XDG_STATE_HOME/agentbox (~/.local/state/agentbox without it), for root
 * /var/lib/agentbox. It and the directories in it are made 0700, and refused at each use unless
 * they are directories of the caller's that nobody else may read or write.
 */
#ifndef AGENTBOX_WORKSPACE_STATE_H
#define AGENTBOX_WORKSPACE_STATE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"

/* STATE's absolute path by the environment, or NULL when there is none to be had. */
const char *state_path(struct arena *arena);

/*
 * Open the directory STATE/NAME (NAME NULL: STATE itself), no component of the part below STATE's
 * parent being a link; `make`: it and its parents are made. A descriptor, or -1 with *err.
 * Errors: state_unusable (errno ENOENT when it is not there and was not to be made).
 */
int state_open(const char *state, const char *name, bool make, struct err *err);

#endif
