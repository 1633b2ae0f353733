/* filter_sim: what a program can answer to a call whose arguments are not known. */
#ifndef AGENTBOX_PLAN_FILTER_SIM_H
#define AGENTBOX_PLAN_FILTER_SIM_H

#include <stdint.h>

#include "plan/filter_table.h"

struct filter;

enum filter_outcome {
	OUTCOME_ALLOW = 1,
	OUTCOME_REFUSE = 2, /* the listener is told */
	OUTCOME_ABSENT = 4, /* an errno from the filter itself */
	OUTCOME_OTHER = 8,  /* ends the process, or not a valid program */
};

/* The set of answers that some arguments lead to. May hold more than can happen, never less. */
unsigned filter_outcomes(const struct filter *filter, enum filter_arch arch, uint32_t number);

#endif
