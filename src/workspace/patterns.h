/*
 * patterns: many patterns of paths held against a walk of a tree, one name at a time. What a name
 * costs does not grow with the depth it is found at. The meaning of a pattern is that of
 * base/match.h, and what lies below a match is matched too. Looks at no file.
 */
#ifndef AGENTBOX_WORKSPACE_PATTERNS_H
#define AGENTBOX_WORKSPACE_PATTERNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* Where a pattern comes from, and so what a match of it means. */
enum pattern_kind {
	PATTERN_ROW,     /* of sensitive.def: at every depth, in upper and lower case */
	PATTERN_OUTSIDE, /* likewise, but not what a PATTERN_INSIDE matches */
	PATTERN_INSIDE,
	PATTERN_SENSITIVE, /* the policy's: as match_name, in upper and lower case */
	PATTERN_HELD,      /* the policy's: as match_name */
};

/* What the patterns say of a path. */
enum pattern_match {
	MATCH_FILE = 1,    /* a row names it, as a file */
	MATCH_BELOW = 2,   /* a row names all below a directory that it is in */
	MATCH_PREFIX = 4,  /* a row names something that would be below it */
	MATCH_THROUGH = 8, /* likewise, or the policy holds it, by "**" perhaps: so only if it
			    * leads somewhere else */
	MATCH_SENSITIVE = 16,
	MATCH_HELD = 32,
	MATCH_OUTSIDE = 64, /* between the two: patterns_step makes MATCH_FILE of them */
	MATCH_INSIDE = 128,
	MATCH_WAY = 256, /* the policy holds something that would be below it */
};

struct patterns {
	struct pattern *list;
	size_t count;
};

/* A pattern of the policy that begins with "/" is held against the absolute path. */
void patterns_add(
	struct patterns *set, struct arena *arena, enum pattern_kind kind, const char *text);

/* All rows of sensitive.def. */
void patterns_add_table(struct patterns *set, struct arena *arena);

/*
 * A state: the place in each pattern at which a directory stands, patterns.count values.
 * The one at the top of a tree that lies at `root` (absolute), or at an unknown place (NULL).
 * Parts of a pattern may match components of the root: in the tree /r/.git "config" is what it is
 * in /r as ".git/config". A root that is itself below such a directory as .claude does not make all
 * of its files sensitive.
 * The set remembers it: a "**" that a pattern of the policy begins with says nothing of a place.
 */
void patterns_start(struct patterns *set, const char *root, uint64_t *state);

/*
 * One name (longer than 255 bytes: any) below `from`: the state there (`to`, NULL: not asked for)
 * and what the patterns say of it, enum pattern_match.
 */
unsigned patterns_step(const struct patterns *set, const uint64_t *from, const char *name,
	size_t len, uint64_t *to);

#endif
