/*
 * cgroup: which control groups could hold a set of the policy's limits on a host. Private to plan/,
 * shared by the decision (cgroup.c) and what comes of it (cgroup_write.c). Pure.
 */
#ifndef AGENTBOX_PLAN_CGROUP_H
#define AGENTBOX_PLAN_CGROUP_H

#include <stdbool.h>

#include "plan/build.h"

/* Limits that a group can hold. */
enum cgroup_limit {
	LIMIT_MEMORY = 1,
	LIMIT_CPUS = 2,
	LIMIT_CPU = 4,
	LIMIT_PIDS = 8,
};

/* Where a group can be made. */
struct cgroup_place {
	enum plan_cgroup_kind kind;
	const struct host_cgroup_level *level; /* v2 */
	bool leaf;                             /* v2: the supervisor moves into one first */
	bool free;                             /* v2: more controllers may be enabled there */
	unsigned missing; /* v2: controllers to be enabled, 1 << enum host_controller */
};

/*
 * Can a group hold all of the limits (1 | 2 ...)? v2 before v1, and never some in one and some in
 * the other. *ret_place is filled then.
 */
bool cgroup_find(const struct host *host, unsigned limits, struct cgroup_place *ret_place);

/* Why not, for people: the end of a sentence. Arena memory or static. */
const char *cgroup_why_not(const struct host *host, unsigned limits, struct arena *arena);

/* Fill plan->cgroup: a group at the place that holds these limits. */
void cgroup_write(struct builder *builder, const struct cgroup_place *place, unsigned limits);

#endif
