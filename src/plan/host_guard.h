/* host_guard: holds what the next run will go by. Private to plan/. */
#ifndef AGENTBOX_PLAN_HOST_GUARD_H
#define AGENTBOX_PLAN_HOST_GUARD_H

#include "plan/host_search.h"

/*
 * Protect the policy's own files, the program, the directories where a later run looks for policies
 * and the one where indexes are kept, if they lie in a tree that is written directly. Errors:
 * protect_missing, where one is not there that the box could make.
 */
int host_guard(struct search *search, const struct request *request);

#endif
