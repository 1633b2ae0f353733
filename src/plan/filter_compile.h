/*
 * filter_compile: from one action per system call number to a seccomp program. Pure; for any of the
 * known architectures, so that all of them are tested on one.
 */
#ifndef AGENTBOX_PLAN_FILTER_COMPILE_H
#define AGENTBOX_PLAN_FILTER_COMPILE_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

#include "plan/filter_table.h"
#include "plan/plan.h"

#define FILTER_PROGRAM_MAX 1024 /* instructions; the most that FILTER_NUMBERS can need */

/* What a profile does with each number: ret_actions[number] is an enum filter_action. */
void filter_actions(
	enum filter_arch arch, bool strict, bool nesting, uint8_t ret_actions[FILTER_NUMBERS]);

/*
 * Let the listener have the renames that these actions allow; one that is refused stays refused.
 * Returns which they are (enum filter_renames).
 */
unsigned filter_rename_actions(enum filter_arch arch, uint8_t actions[FILTER_NUMBERS]);

/* Which calls the listener gets to look at, though they are no violation: enum filter_handed. */
unsigned filter_handed(enum filter_arch arch, const uint8_t actions[FILTER_NUMBERS]);

/*
 * Write the program for these actions. Returns the number of instructions, or -E2BIG (nothing
 * that is written then means anything).
 */
int filter_compile(enum filter_arch arch, const uint8_t actions[FILTER_NUMBERS],
	struct sock_filter ret_program[FILTER_PROGRAM_MAX]);

#endif
