/*
 * host_git: where the repository of a workspace lies that is a linked git worktree. Its ".git" is a
 * file that any box which wrote the workspace may have made, so what it names is only believed if
 * the place itself names the workspace back. Private to plan/.
 */
#ifndef AGENTBOX_PLAN_HOST_GIT_H
#define AGENTBOX_PLAN_HOST_GIT_H

#include <sys/types.h>

#include "base/arena.h"
#include "plan/host.h"

/*
 * Fill *git for the workspace, a real path whose owner is `owner`. Never fails: what cannot be read
 * names nothing. `home` is the box's.
 */
void host_git_probe(struct arena *arena, const char *workspace, uid_t owner, const char *home,
	struct host_git *git);

#endif
