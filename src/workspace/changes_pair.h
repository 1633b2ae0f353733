/*
 * changes_pair: one name in both trees, and what the policy's patterns make of what is there.
 */
#ifndef AGENTBOX_WORKSPACE_CHANGES_PAIR_H
#define AGENTBOX_WORKSPACE_CHANGES_PAIR_H

#include <stdbool.h>

#include "workspace/changes_files.h"
#include "workspace/changes_walk.h"

/* One name in both trees. */
struct pair {
	const char *name;
	struct files_place place[2];
	bool there[2];
	int marks;    /* enum files_mark, of the upper one */
	bool covered; /* the lower one is a mount point: what the layer was made over is below it */
	struct walk_side side[2];
};

bool pair_is_dir(const struct pair *pair, enum walk_tree tree);

/*
 * Is what happens at this name sensitive? says: enum pattern_match, of its path. A directory on the
 * way to a sensitive place is not, as long as it stays one: what is below it speaks for itself.
 */
bool pair_is_sensitive(unsigned says, const struct pair *pair);

/*
 * Does the policy hold it? A link on the way to such a name as well: whoever looks for it on the
 * host would find what the box has put at the link's end.
 */
bool pair_is_held(unsigned says, const struct pair *pair);

#endif
