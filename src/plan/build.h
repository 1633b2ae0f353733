/* build: the parts of plan_build. Private to plan/; each fills its share of the plan. */
#ifndef AGENTBOX_PLAN_BUILD_H
#define AGENTBOX_PLAN_BUILD_H

#include "plan/host.h"
#include "plan/plan.h"
#include "plan/request.h"
#include "policy/policy.h"

struct builder {
	struct plan *plan;
	const struct policy *policy;
	const struct request *request;
	const struct host *host;
	struct err *err;
	struct plan_op *ops;
	struct plan_rule *rules;
	struct plan_rlimit *rlimits;
	struct plan_warning *warnings;
	const char **not_enforced;
	size_t not_enforced_count;
	struct build_grant *grants; /* by target, parents before what lies in them */
	size_t grant_count;
	bool workspace_shown;
};

/* A tree or file of the host that the policy or the command line names. */
struct build_grant {
	const char *target; /* without the leading "/" */
	const struct host_path *fact;
	bool write;
	bool under; /* its mount point lies in a tree of the host, so it is there already */
	const char *why;
};

/* "WHAT (FILE:LINE)" for `why`; WHAT alone where the origin is unset. Arena memory. */
const char *build_why(struct builder *builder, const char *what, const struct origin *at);

void build_warn(struct builder *builder, const char *code, const char *message);
void build_not_enforced(struct builder *builder, const char *what);

/* Fails with the code and the place of a policy's line. */
int build_refuse(struct builder *builder, enum err_code code, const struct origin *at,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* mounts.c, mounts_grants.c, etc.c */
int build_mounts(struct builder *builder);
int build_grant_points(struct builder *builder);
int build_grants(struct builder *builder);
/* Does a written grant, marked as dangerous, hold one of agentbox's own directories? */
bool build_covers_own(const struct builder *builder);
void build_etc(struct builder *builder);
struct plan_op *build_op(
	struct builder *builder, enum plan_op_kind kind, const char *target, const char *why);
/* Directories from the top down to target's parent, where the box makes them itself. */
void build_parents(struct builder *builder, const char *target);
/* The operation that shows a tree of the host at or above target (no leading "/"), or NULL. */
const struct plan_op *build_shown_by(const struct builder *builder, const char *target);

/* landlock.c */
int build_landlock(struct builder *builder);

/* cgroup.c: before limits and mounts, which depend on what a group holds */
int build_cgroup(struct builder *builder);

/* limits.c */
int build_limits(struct builder *builder);

/* command.c: environment, candidates, current directory */
int build_command(struct builder *builder);

#endif
