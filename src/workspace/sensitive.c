/* sensitive: the table of sensitive.def, and what it says of a path. Looks at no file. */
#define _GNU_SOURCE
#include "workspace/changes.h"
#include "workspace/patterns.h"

#include <string.h>

static const struct {
	const char *pattern, *inside;
} rows[] = {
#define SENSITIVE(pattern, why)                 { pattern, NULL },
#define SENSITIVE_OUTSIDE(pattern, inside, why) { pattern, inside },
#include "workspace/sensitive.def"
#undef SENSITIVE
#undef SENSITIVE_OUTSIDE
};

void patterns_add_table(struct patterns *set, struct arena *arena)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		bool outside = rows[i].inside != NULL;
		patterns_add(set, arena, outside ? PATTERN_OUTSIDE : PATTERN_ROW, rows[i].pattern);
		if (outside)
			patterns_add(set, arena, PATTERN_INSIDE, rows[i].inside);
	}
}

bool changes_sensitive(const char *path, const char *const *extra)
{
	struct arena arena = { 0 };
	struct patterns set = { 0 };
	patterns_add_table(&set, &arena);
	for (; extra && *extra; extra++)
		patterns_add(&set, &arena, PATTERN_SENSITIVE, *extra);
	uint64_t *state = ARENA_ARRAY(&arena, set.count, uint64_t);
	patterns_start(&set, NULL, state);
	unsigned says = 0;
	for (;;) {
		const char *stop = strchrnul(path, '/');
		size_t len = (size_t)(stop - path);
		char name[256];
		size_t kept = len < sizeof name ? len : 0;
		memcpy(name, path, kept);
		name[kept] = 0;
		says = patterns_step(&set, state, name, len, state);
		if (!*stop)
			break;
		path = stop + 1;
	}
	arena_free(&arena);
	return says & (MATCH_FILE | MATCH_BELOW | MATCH_SENSITIVE);
}
