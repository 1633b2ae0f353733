/*
 * kept: private layers that outlive their run, in the caller's state directory, with all that
 * `diff` and `apply` need to know of them.
 *
 *	STATE/kept/ID/		0700, ID is the result's id
 *	    meta		what it belongs to: lines "KEY VALUE", odd bytes as \xNN
 *	    base		the complete list of changes, each with what the host had of it
 *	    0/ 1/ ...		the layers, in the form of changes.h
 *	    journal		while an apply is under way
 *
 * STATE: state.h. A name that is not complete begins with ".new-", one that is being removed with
 * ".old-". The list is kept, not found again: the host may have moved on, or have part of it by an
 * apply. What is read is not trusted: a damaged or hostile file is an error.
 */
#ifndef AGENTBOX_WORKSPACE_KEPT_H
#define AGENTBOX_WORKSPACE_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "report/changes.h"
#include "workspace/apply.h"
#include "workspace/changes.h"

#define KEPT_LAYERS_MAX 8
#define KEPT_ID_MAX     64 /* letters and digits */

struct kept {
	int dir; /* STATE/kept/ID */
	const char *id;
	int64_t started_ns, ended_ns; /* CLOCK_REALTIME */
	const char *policy;           /* its name */
	const char *const *argv;      /* NULL-terminated */
	struct changes_layer layers[KEPT_LAYERS_MAX];
	size_t layer_count;
	const char *const *held, *const *sensitive; /* as changes_rules */
	struct changes changes;   /* the complete list; its memory is of the arena below */
	struct apply_base *bases; /* in the order of that list */
	struct arena arena;
};

/* What kept_save() is told. */
struct kept_source {
	const char *id;
	int64_t started_ns, ended_ns;
	const char *policy;
	const char *const *argv;
	const struct changes_layer *layers;
	size_t layer_count;
	struct changes_rules rules;
};

/*
 * Copy the layers and write the rest. All or nothing.
 * Errors: state_unusable, no_resources, workspace_unreadable.
 */
int kept_save(const char *state, const struct kept_source *source, struct err *err);

/*
 * The kept result `id`; NULL: the latest whose first layer's root is `workspace`.
 * Opens the host's trees (layers[].lower) without following links.
 * Errors: kept_not_found, state_unusable, workspace_not_found.
 */
int kept_open(const char *state, const char *id, const char *workspace, struct kept *ret,
	struct err *err);
void kept_close(struct kept *kept);

/* Remove it. Errors: kept_not_found, state_unusable. */
int kept_remove(const char *state, const char *id, struct err *err);

/* Remove what killed calls of these left (`dry`: only count). How many. */
size_t kept_sweep(const char *state, bool dry);

/* One of kept_list(). */
struct kept_entry {
	const char *id;
	const char *workspace; /* root of its first layer; NULL: what is there is damaged */
	const char *policy;
	int64_t started_ns, ended_ns;
};

/* All of them, the latest first. The arena is the caller's. Errors: state_unusable. */
int kept_list(const char *state, struct arena *arena, struct kept_entry **ret, size_t *ret_count,
	struct err *err);

#endif
