/*
 * patterns: each pattern is a row of components, and the state a set of bits, one for each place
 * between them at which a path may stand. Looks at no file.
 */
#define _GNU_SOURCE
#include "workspace/patterns.h"

#include <fnmatch.h>
#include <string.h>
#include <strings.h>

/* Bit 63 of a state: a match, and so is all below. */
#define STICKY         ((uint64_t)1 << 63)
#define COMPONENTS_MAX 62
#define NAME_BYTES_MAX 255
#define BIT(n)         ((uint64_t)1 << (n))

struct component {
	const char *text;
	size_t len;
	bool any;  /* "**" */
	bool wild; /* has a sign of fnmatch */
};

struct pattern {
	struct component *list;
	unsigned count;
	enum pattern_kind kind;
	bool absolute;
	uint64_t top; /* the state at the top of the tree at hand */
};

/* Of the table, so at every depth. */
static bool of_table(enum pattern_kind kind)
{
	return kind == PATTERN_ROW || kind == PATTERN_OUTSIDE || kind == PATTERN_INSIDE;
}

static struct component component_of(struct arena *arena, const char *text, size_t len)
{
	return (struct component){
		.text = arena_strndup(arena, text, len),
		.len = len,
		.any = len == 2 && memcmp(text, "**", 2) == 0,
		.wild = memchr(text, '*', len) || memchr(text, '?', len) || memchr(text, '[', len),
	};
}

void patterns_add(
	struct patterns *set, struct arena *arena, enum pattern_kind kind, const char *text)
{
	struct pattern *pattern = arena_push(arena, &set->list, &set->count, sizeof *set->list);
	pattern->kind = kind;
	pattern->absolute = !of_table(kind) && *text == '/';
	text += pattern->absolute;
	size_t room = 2;
	for (const char *p = text; *p; p++)
		room += *p == '/';
	if (room > COMPONENTS_MAX)
		room = COMPONENTS_MAX;
	pattern->list = ARENA_ARRAY(arena, room, struct component);
	if (of_table(kind) || (!pattern->absolute && !strchr(text, '/')))
		pattern->list[pattern->count++] = component_of(arena, "**", 2);
	/* Of one with more components the beginning counts, so it means too much, never less. */
	while (pattern->count < room) {
		const char *stop = strchrnul(text, '/');
		pattern->list[pattern->count++] = component_of(arena, text, (size_t)(stop - text));
		if (!*stop)
			break;
		text = stop + 1;
	}
}

/* "**" may stand for no component at all, but for the last one. */
static uint64_t closed(const struct pattern *pattern, uint64_t state)
{
	for (unsigned at = 0; at + 1 < pattern->count; at++)
		if ((state & BIT(at)) && pattern->list[at].any)
			state |= BIT(at + 1);
	return state;
}

static bool component_matches(const struct component *want, const char *name, size_t len, bool fold)
{
	if (len > NAME_BYTES_MAX || want->len > NAME_BYTES_MAX)
		return false;
	if (want->wild)
		return fnmatch(want->text, name, FNM_NOESCAPE | (fold ? FNM_CASEFOLD : 0)) == 0;
	return want->len == len && (fold ? strncasecmp(want->text, name, len) == 0
					 : memcmp(want->text, name, len) == 0);
}

/* The next state. *ret_named: bits that a component other than "**" led to. */
static uint64_t advance(const struct pattern *pattern, uint64_t from, const char *name, size_t len,
	uint64_t *ret_named)
{
	bool fold = pattern->kind != PATTERN_HELD;
	uint64_t to = 0, named = 0;
	for (uint64_t left = from & ~STICKY; left; left &= left - 1) {
		unsigned at = (unsigned)__builtin_ctzll(left);
		if (at >= pattern->count)
			continue;
		if (pattern->list[at].any)
			to |= BIT(at) | (at + 1 == pattern->count ? BIT(at + 1) : 0);
		else if (component_matches(&pattern->list[at], name, len, fold))
			named |= BIT(at + 1);
	}
	*ret_named = named;
	return closed(pattern, to | named);
}

/* What a row of the table says. */
static unsigned row_says(const struct pattern *row, uint64_t to, uint64_t named)
{
	bool match = to & BIT(row->count);
	if (row->kind == PATTERN_OUTSIDE)
		return match ? MATCH_OUTSIDE : 0;
	if (row->kind == PATTERN_INSIDE)
		return match ? MATCH_INSIDE : 0;
	unsigned says = 0;
	/* Places 0 and 1 are the "**" that each row begins with. */
	uint64_t inner = ~(BIT(0) | BIT(1) | BIT(row->count) | STICKY);
	if (match)
		says |= row->list[row->count - 1].any ? MATCH_BELOW : MATCH_FILE;
	if (named & inner)
		says |= MATCH_PREFIX;
	if (to & inner)
		says |= MATCH_THROUGH;
	return says;
}

/* Did a component that says more than "*" lead to one of the places? */
static bool by_name(const struct pattern *pattern, uint64_t places)
{
	for (; places; places &= places - 1) {
		unsigned at = (unsigned)__builtin_ctzll(places);
		if (strcmp(pattern->list[at - 1].text, "*") != 0)
			return true;
	}
	return false;
}

/* What one of the policy says: a match holds for all below, too. */
static unsigned own_says(const struct pattern *pattern, uint64_t from, uint64_t *to, uint64_t named)
{
	if ((from & STICKY) || (*to & BIT(pattern->count)))
		*to |= STICKY;
	if (pattern->kind == PATTERN_SENSITIVE)
		return *to & STICKY ? MATCH_SENSITIVE : 0;
	if (*to & STICKY)
		return MATCH_HELD;
	if (by_name(pattern, named))
		return MATCH_WAY;
	return *to & ~pattern->top ? MATCH_THROUGH : 0;
}

unsigned patterns_step(const struct patterns *set, const uint64_t *from, const char *name,
	size_t len, uint64_t *to)
{
	unsigned says = 0;
	for (size_t i = 0; i < set->count; i++) {
		const struct pattern *pattern = &set->list[i];
		uint64_t named = 0;
		uint64_t next = advance(pattern, from[i], name, len, &named);
		says |= of_table(pattern->kind) ? row_says(pattern, next, named)
						: own_says(pattern, from[i], &next, named);
		if (to)
			to[i] = next;
	}
	if ((says & (MATCH_OUTSIDE | MATCH_INSIDE)) == MATCH_OUTSIDE)
		says |= MATCH_FILE;
	return says;
}

/* Walk down the components of a root. */
static uint64_t along(const struct pattern *pattern, uint64_t state, const char *root)
{
	while (*root) {
		const char *stop = strchrnul(root, '/');
		size_t len = (size_t)(stop - root);
		char name[NAME_BYTES_MAX + 1];
		if (len > 0) {
			size_t kept = len < sizeof name ? len : 0;
			memcpy(name, root, kept);
			name[kept] = 0;
			uint64_t named, from = state;
			state = advance(pattern, from, name, len, &named);
			if (!of_table(pattern->kind))
				own_says(pattern, from, &state, named);
		}
		root = *stop ? stop + 1 : stop;
	}
	return state;
}

/* One pattern at the top of a tree at `root`. */
static uint64_t start_of(const struct pattern *pattern, const char *root)
{
	uint64_t state = closed(pattern, BIT(0));
	if (!root)
		return pattern->absolute ? 0 : state;
	if (!of_table(pattern->kind) && !pattern->absolute)
		return state;
	state = along(pattern, state, root);
	/* What a row says of all below a directory is not said of a root that lies there. */
	if (pattern->kind == PATTERN_ROW && pattern->list[pattern->count - 1].any)
		state &= ~(BIT(pattern->count) | BIT(pattern->count - 1));
	return state;
}

void patterns_start(struct patterns *set, const char *root, uint64_t *state)
{
	for (size_t i = 0; i < set->count; i++)
		state[i] = set->list[i].top = start_of(&set->list[i], root);
}
