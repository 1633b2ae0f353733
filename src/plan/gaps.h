/*
 * gaps: what a policy may say and this version cannot hold. The one list of it: the planner refuses
 * by it, `explain` and `check -v` tell it. It shrinks as mechanisms come.
 */
#ifndef AGENTBOX_PLAN_GAPS_H
#define AGENTBOX_PLAN_GAPS_H

#include <stddef.h>

struct policy;
struct origin;

struct plan_gap {
	const char *key;         /* "audit.log" */
	const struct origin *at; /* the policy's line */
	const char *why;         /* end of a sentence: "'KEY' WHY" */
	const char *hint;        /* NULL: leave the key out */
};

#define PLAN_GAPS_MAX 5

/* Fill gaps from the policy; returns their number. */
size_t plan_gaps(const struct policy *policy, struct plan_gap gaps[PLAN_GAPS_MAX]);

#endif
