/*
 * cpulist: lists of processors as the kernel writes them ("0-3,8"). Private to plan/. Pure: knows
 * no machine.
 */
#ifndef AGENTBOX_PLAN_CPULIST_H
#define AGENTBOX_PLAN_CPULIST_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

#define CPULIST_MAX 8192 /* processors; later ones are not looked at */

/* How many are listed; 0 for an empty or malformed list. */
size_t cpulist_count(const char *list);

/*
 * `count` of the listed ones, beginning with number `offset` of them and going around at the end,
 * as a list in the arena. NULL when that would be all of them, or none.
 */
const char *cpulist_pick(struct arena *arena, const char *list, size_t count, uint64_t offset);

/* The list of the bits set in `bits` (`size` bytes, processor 0 is the lowest bit of the first). */
const char *cpulist_of_bits(struct arena *arena, const uint8_t *bits, size_t size);

#endif
