/*
 * kept: private layers that outlive their run, in the caller's state directory, with all that
 * `diff` and `apply` need to know of them.
 *
 *	STATE/kept/ID/		0700, ID is the result's id
 *	    meta		what it belongs to: lines "KEY VALUE", values escaped as in JSON
 *	    base		what the host had: struct apply_base of each change, one record each
 *	    0/ 1/ ...		the layers, in the form of changes.h
 *	    journal		while an apply is under way
 *
 * STATE: state.h. A name that is not complete begins with ".new-", one that is being removed with
 *".old-".
 */
#ifndef AGENTBOX_WORKSPACE_KEPT_H
#define AGENTBOX_WORKSPACE_KEPT_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "workspace/apply.h"
#include "workspace/changes.h"

struct kept {
	int dir; /* STATE/kept/ID */
	const char *id;
	int64_t started_ns, ended_ns; /* CLOCK_REALTIME */
	const char *policy;           /* its name */
	const char *const *argv;      /* NULL-terminated */
	struct changes_layer layers[8];
	size_t layer_count;
	const char *const *held, *const *sensitive; /* as changes_rules */
	struct apply_base *bases; /* in the order of the complete list of changes */
	size_t base_count;
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

/* Copy the layers and write the rest. All or nothing. Errors: state_unusable, no_resources. */
int kept_save(const char *state, const struct kept_source *source, struct err *err);

/*
 * The kept result `id`; NULL: the latest whose first layer's root is `workspace`.
 * Opens the host's trees (layers[].lower) without following links.
 * Errors: kept_not_found, state_unusable, workspace_not_found.
 */
int kept_open(const char *state, const char *id, const char *workspace, struct kept *ret,
	struct err *err);
void kept_close(struct kept *kept);

/* Remove it. Errors as kept_open. */
int kept_remove(const char *state, const char *id, struct err *err);

#endif
