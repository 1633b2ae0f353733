/* path: paths and patterns as text. Nothing is looked up; ".." is resolved by the letters alone. */
#ifndef AGENTBOX_POLICY_PATH_H
#define AGENTBOX_POLICY_PATH_H

#include "policy/policy.h"

/* Each can fit any number of components, and each multiplies the work of matching. */
#define PATTERN_DEEP_MAX 4 /* components "**" of one pattern */

/*
 * What is wrong with the form of a path or pattern, as words; NULL: nothing. *ret_hint is set when
 * there is something to do about it. Both static.
 */
const char *path_form(const char *text, const char **ret_hint);
const char *pattern_form(const char *text, const char **ret_hint);

/*
 * Absolute and clean: ~ is `home`, a relative path counts from `dir` (both absolute, or NULL: not
 * known). NULL with *ret_why (static words) when that cannot be done. The form was checked before.
 */
const char *path_absolute(struct arena *arena, const char *text, const char *home, const char *dir,
	const char **ret_why);

/* The same for patterns: with a leading / or ~ absolute, else without doubled and trailing "/". */
const char *pattern_clean(
	struct arena *arena, const char *text, const char *home, const char **ret_why);

/* Does the pattern hold no *, ? or [ ? */
bool pattern_literal(const char *pattern);

/*
 * Why granting this absolute, clean path would hand over the host or somebody's home, or NULL. A
 * path that contains such a place counts as much. home NULL: no home is known. Static words.
 */
const char *policy_dangerous(const char *path, const char *home);

#endif
