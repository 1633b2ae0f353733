/* lookup_hint: what to write in place of a policy's name that led nowhere. Private to policy/. */
#ifndef AGENTBOX_POLICY_LOOKUP_HINT_H
#define AGENTBOX_POLICY_LOOKUP_HINT_H

#include "policy/source.h"

/*
 * Each adds a hint to the error that was just set, if it knows one; all return -1. `at`: the
 * element of extends that names it, NULL: the command line. `dirs` are three, each may be NULL.
 */

/* A name that no policy can have: "Python", "a,b". */
int hint_bad_name(const struct loader *l, const char *name, const struct node *at);

/* A name that is in none of the directories. */
int hint_no_name(
	struct loader *l, const char *name, const struct node *at, const char *const dirs[3]);

/* A file that is not there; `path` is how it was looked for. */
int hint_no_file(struct loader *l, const char *name, const struct node *at, const char *path,
	const char *const dirs[3]);

#endif
