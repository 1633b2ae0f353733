/* run_layers: the private layers of one run, seen from outside. */
#ifndef AGENTBOX_CLI_RUN_LAYERS_H
#define AGENTBOX_CLI_RUN_LAYERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "box/box.h"
#include "cli/runs.h"
#include "plan/plan.h"
#include "plan/request.h"
#include "report/changes.h"
#include "report/result.h"
#include "workspace/changes.h"

struct run_layers {
	struct changes_layer list[PLAN_LAYERS_MAX]; /* the descriptors are owned */
	size_t count;
	struct changes_rules rules; /* in the result's arena */
	struct changes changes;     /* what the result shows */
	int64_t started_ns;         /* CLOCK_REALTIME, before the box was made */
	bool scratch;               /* there is a directory of this run's own, to be removed */
	int dir;                    /* it, locked */
	const char *id;             /* its name */
};

/*
 * Where the policy wants the layers on disk, and they are not a session's: make a directory for
 * them and name it in *request. Errors: state_unusable, no_resources.
 */
int run_layers_place(struct run_layers *layers, const struct policy *policy,
	struct request *request, struct result *result, struct err *err);

/* Before the box is made: when that is, whose names count, and what layers on disk need. */
int run_layers_begin(struct run_layers *layers, const struct plan *plan,
	const struct request *request, struct arena *arena, struct err *err);

/*
 * The command has ended: take the layers' directories from the box, open the trees below them, and
 * find what changed; result->changes points to it then. What cannot be told is a warning
 * (changes_unknown).
 */
void run_layers_collect(
	struct run_layers *layers, const struct plan *plan, struct box *box, struct result *result);

/* Close all, and remove the directory that run_layers_place() made. */
void run_layers_free(struct run_layers *layers);

/* Find such directories of killed runs, and remove them unless `dry`. Never fails. */
void run_layers_collect_dead(bool dry, struct runs_findings *findings);
/* The same for what was to be kept, and is not whole. */
void run_layers_collect_kept(bool dry, struct runs_findings *findings);

#endif
