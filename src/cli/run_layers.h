/* run_layers: the private layers of one run, seen from outside. */
#ifndef AGENTBOX_CLI_RUN_LAYERS_H
#define AGENTBOX_CLI_RUN_LAYERS_H

#include <stddef.h>
#include <stdint.h>

#include "box/box.h"
#include "plan/plan.h"
#include "report/changes.h"
#include "report/result.h"
#include "workspace/changes.h"

struct run_layers {
	struct changes_layer list[PLAN_LAYERS_MAX]; /* the descriptors are owned */
	size_t count;
	struct changes_rules rules; /* in the result's arena */
	struct changes changes;     /* what the result shows */
	int64_t started_ns;         /* CLOCK_REALTIME, before the box was made */
};

/* Zeroed is empty. Before the box is made: when that is, and whose names count. */
void run_layers_begin(struct run_layers *layers, const struct policy *policy, struct arena *arena);

/*
 * The command has ended: take the layers' directories from the box, open the trees below them, and
 * find what changed; result->changes points to it then. What cannot be told is a warning
 * (changes_unknown).
 */
void run_layers_collect(
	struct run_layers *layers, const struct plan *plan, struct box *box, struct result *result);

void run_layers_free(struct run_layers *layers);

#endif
