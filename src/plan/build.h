/* build: the parts of plan_build. Private to plan/; each fills its share of the plan. */
#ifndef AGENTBOX_PLAN_BUILD_H
#define AGENTBOX_PLAN_BUILD_H

#include <string.h>

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
	struct plan_layer *layers;
	/* mounts_pins.c: a table of paths that are mounted onto themselves, each an index into
	 * ops plus 1; what of ops is in it. */
	uint32_t *pins;
	size_t pins_size, pins_count, pins_known;
	bool workspace_shown;
	bool ready_dev; /* /dev is the installed directory, not one of the box's own */
};

/* A tree or file of the host that the policy or the command line names. */
struct build_grant {
	const char *target; /* without the leading "/" */
	const struct host_path *fact;
	bool write;
	int layer;   /* index into the plan's layers; -1: shown directly */
	bool nested; /* a mount of the host in a layer's tree, which nobody asked for by name */
	bool point;  /* its mount point is made in a session's directory */
	bool under;  /* its mount point lies in a tree of the host, so it is there already */
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
/* One more tree; `layer` as in struct build_grant. */
int build_add_grant(struct builder *builder, const struct host_path *fact, bool write, int layer,
	const char *why);
/* Is it a place that the box makes itself, so that nothing of the host can stand there? */
bool build_reserved(const char *target);

/* Does a path lie in a tree? Neither begins with "/", or both do. */
static inline bool build_lies_in(const char *path, const char *tree)
{
	size_t len = strlen(tree);
	return strncmp(path, tree, len) == 0 && path[len] == '/';
}

/* mounts_git.c: the repository of a workspace that is a linked git worktree */
int build_gitdir(struct builder *builder);

/* mounts_nested.c: mounts of the host in what is shown through a layer */
int build_nested(struct builder *builder);

/* The match that hides a path or a directory that it lies in, or NULL. */
const struct host_match *build_hidden_by(const struct builder *builder, const char *path);

/* mounts_pins.c */
/* The grant that shows a path in the end: the deepest that it is or lies in; or NULL. */
const struct build_grant *build_grant_of(const struct builder *builder, const char *target);
void build_hold_parents(struct builder *builder, const struct build_grant *grant,
	const char *target, const char *why);
void build_protect(struct builder *builder, const struct host_match *match);
void build_hide(struct builder *builder, const struct host_match *match);
void build_cover_own(struct builder *builder);

/* layers.c */
#define LAYERS_DIR "run/agentbox.layers" /* where they are put together, covered afterwards */
/* Are layers made by copying? */
bool build_copies(const struct builder *builder);
/* A new layer for the tree at `root`; its index. */
int build_layer(struct builder *builder, const char *root, const char *why);
/* The directories that are made before the seal. */
void build_layer_points(struct builder *builder);
/* What must be there before the first layer is mounted, and what covers it after the last one. */
void build_layer_dirs(struct builder *builder);
void build_layer_cover(struct builder *builder);
/* A name that the box must not see in the layer's tree; `path` is absolute. */
void build_layer_gone(struct builder *builder, int layer, const char *path);
/* All are known: put them in their order. */
void build_layer_sort(struct builder *builder);
/* How many files and directories the box's memory holds for hidden names, once they are sorted. */
size_t build_layer_inodes(const struct builder *builder);

struct plan_op *build_op(
	struct builder *builder, enum plan_op_kind kind, const char *target, const char *why);
/* Directories from the top down to target's parent, where the box makes them itself. */
void build_parents(struct builder *builder, const char *target);
/*
 * Does the target lie in a directory of the session's, which is the host's? Then the points below
 * it are made only when it is there: build_session_points().
 */
bool build_in_session(const struct builder *builder, const char *target);
void build_session_points(struct builder *builder, const char *target, bool dir);
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
