/* network_build: the rules of a policy as the value that is held. Private to plan/. */
#ifndef AGENTBOX_PLAN_NETWORK_BUILD_H
#define AGENTBOX_PLAN_NETWORK_BUILD_H

#include <stdbool.h>

#include "base/arena.h"
#include "plan/network.h"
#include "policy/policy.h"

/*
 * The i-th rule is that of the policy's i-th entry; none where the policy allows nothing.
 * What it publishes is there either way. Memory
 * from `arena`, and the policy's. False: more than NETWORK_PORTS_MAX different ports.
 */
bool network_build(const struct policy *policy, struct arena *arena, struct network_plan *ret);

/*
 * The first port that is published and also one where the gateway listens inside for listed hosts,
 * so that no server of the box's could; as an index into `publish`, whose count says: none.
 */
size_t network_clash(const struct network_plan *network);

#endif
