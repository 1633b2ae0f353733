/* host_search: what the search for hidden and protected files shares. Private to plan/. */
#ifndef AGENTBOX_PLAN_HOST_SEARCH_H
#define AGENTBOX_PLAN_HOST_SEARCH_H

#include <stdbool.h>

#include "plan/host.h"
#include "policy/policy.h"

struct request;

#define SEARCH_LAYERS_MAX 2

struct search {
	const struct policy *policy;
	struct host *host;
	struct host_match *hidden, *protected;
	struct host_missing *missing;
	bool *found;                           /* for each protect pattern: in the tree at hand */
	const char *tree;                      /* the granted tree at hand, absolute */
	bool written;                          /* it is written directly */
	bool layered;                          /* it is written through a private layer */
	const char *layers[SEARCH_LAYERS_MAX]; /* trees that are shown through a layer */
	size_t layer_count;
	size_t gone, covered; /* matches in layers, and all others */
	const char *cache;    /* where indexes are kept; NULL: nowhere */
	const struct policy_pattern
		*only; /* an absolute pattern at hand; NULL: all relative ones */
	size_t looked_at;
	struct err *err;
};

/*
 * Add what a path means: itself, what it leads to through links, and for protect each link on the
 * way, since one that can be replaced leads elsewhere. Errors: too_many_matches, hard_linked.
 */
int search_add(
	struct search *search, bool hide, const struct policy_pattern *pattern, const char *path);

/*
 * Add a path that is no link, nor passes through one, without a look at it where none is needed;
 * `mode`: its type.
 */
int search_add_plain(struct search *search, bool hide, const struct policy_pattern *pattern,
	const char *path, mode_t mode);

/* Does a path lie in a tree that is shown through a layer? */
bool search_in_layer(const struct search *search, const char *path);

/* Does a pattern name one place below the tree (or an absolute one), so that a look is enough? */
bool search_one_place(const struct policy_pattern *pattern);

/* Absolute patterns are looked for by themselves, relative ones in each tree. */
bool search_applies(const struct search *search, const struct policy_pattern *pattern);

/* A pattern whose fixed beginning leads through a link would be looked for in the wrong place. */
int search_linked_prefix(struct search *search, const struct policy_pattern *pattern);

/*
 * A directory that we cannot search. What the command cannot search either hides itself; but where
 * the caller owns the directory, or may open names in it without listing them, the command can get
 * at what we do not see, now or in a later run: then nothing is run.
 */
int search_unsearchable(struct search *search, const char *path, int errnum);

/* The same for a path that could not be looked at: the directory in the way is what is judged. */
int search_unreached(struct search *search, const char *path, int errnum);

#endif
