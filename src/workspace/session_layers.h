/*
 * session_layers: which trees a session has layers of beside its workspace's: the repository of a
 * linked git worktree. The plan finds them anew for each command; what was written through a layer
 * belongs to the tree that it was made over and to no other, so that is noted before the first
 * command can write.
 *
 * The file "layers" in the session's directory: the absolute paths of the trees, each with a NUL
 * behind; the first is that of layer.1. It is the caller's own; a damaged one is an error.
 */
#ifndef AGENTBOX_WORKSPACE_SESSION_LAYERS_H
#define AGENTBOX_WORKSPACE_SESSION_LAYERS_H

#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

#define SESSION_LAYERS_MAX 7 /* beside the workspace's */

/*
 * Note the trees `roots`, `count` of them, of a session whose directory is `dir`; what is noted
 * already must be the same. Errors: session_broken, state_unusable, no_resources.
 */
int session_layers_note(int dir, const char *const *roots, size_t count, struct err *err);

/* What is noted, in the arena; none is no error. Errors: session_broken, no_resources. */
int session_layers_read(
	int dir, struct arena *arena, const char ***ret_roots, size_t *ret_count, struct err *err);

#endif
