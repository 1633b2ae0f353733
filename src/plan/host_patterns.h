/*
 * host_patterns: hide and protect patterns made ready for a walk. Each is a row of components, and
 * where a path stands in it is a set of bits, one for each place between two components; so an
 * entry costs the comparison of its own name, whatever the depth. Looks at no file. Private to
 * plan/.
 */
#ifndef AGENTBOX_PLAN_HOST_PATTERNS_H
#define AGENTBOX_PLAN_HOST_PATTERNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct policy_pattern;

#define ROW_PARTS_MAX 62 /* of one pattern; consecutive "**" count as one */

enum row_kind { ROW_EXACT, ROW_ENDS, ROW_BEGINS, ROW_WILD, ROW_ANY };

struct row_part {
	const char *text; /* without the star of "*.key" (ROW_ENDS) or "id_*" (ROW_BEGINS) */
	size_t len;
	enum row_kind kind;
};

struct row {
	const struct policy_pattern *from;
	bool hide;
	size_t number; /* in its list of the policy */
	struct row_part *list;
	unsigned count;
	uint64_t any; /* places before a "**" that may stand for nothing */
};

struct row_set {
	struct row *list; /* hide before protect */
	size_t count;
};

/*
 * Add one. `text`: the pattern as it counts from the walked tree's top; `anywhere`: at any depth.
 * `from` outlives the set, the rest is arena memory. -E2BIG: too many components.
 */
int row_set_add(struct row_set *set, struct arena *arena, const struct policy_pattern *from,
	const char *text, bool anywhere, bool hide, size_t number);

/* Where a path stands at the tree's top. */
uint64_t row_begin(const struct row *pattern);

/* Where it stands after one more component; `name` ends with a NUL. */
uint64_t row_step(const struct row *pattern, uint64_t from, const char *name, size_t len);

/* The path so far matches. */
static inline bool row_matches(const struct row *pattern, uint64_t state)
{
	return state >> pattern->count & 1;
}

/* Something below it can match. */
static inline bool row_alive(const struct row *pattern, uint64_t state)
{
	return (state & ((UINT64_C(1) << pattern->count) - 1)) != 0;
}

#endif
