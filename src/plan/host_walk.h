/* host_walk: looks for patterns that can match anywhere in a tree. Private to plan/. */
#ifndef AGENTBOX_PLAN_HOST_WALK_H
#define AGENTBOX_PLAN_HOST_WALK_H

#include "plan/host_patterns.h"
#include "plan/host_search.h"

/*
 * Look for the set's patterns below search->tree and add what they match; search->found is set for
 * protect patterns that did. Nothing below a hidden directory is looked at. `cache`: where the
 * index of the tree is kept (host_index_place()); NULL: none.
 */
int host_walk(struct search *search, const struct row_set *set, const char *cache);

#endif
