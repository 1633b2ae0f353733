/*
 * session: a box whose workspace layer, home and /tmp outlive one command. What a session is lies
 *in the caller's state directory; there is no process while nothing runs, unless its policy keeps
 * processes.
 *
 *	STATE/sessions/NAME/	0700
 *	    meta		policy (its text after `extends`, as it was when the session was
 *made), workspace, times; lines "KEY VALUE", values escaped as in JSON layer/upper, layer/work of
 *the workspace home/ tmp/		as the box has them
 *	    lock		flock: shared by each exec, exclusive by rm
 *	    keeper		its pid and start time, when processes are kept
 */
#ifndef AGENTBOX_WORKSPACE_SESSION_H
#define AGENTBOX_WORKSPACE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

#define SESSION_NAME_MAX 64 /* letters, digits, ".", "_" and "-", not beginning with "." or "-" */

enum session_state {
	SESSION_READY,
	SESSION_RUNNING, /* an exec is under way, or processes are kept */
	SESSION_BROKEN,  /* its keeper is gone, or its directory is not whole */
};

struct session {
	int dir, lock; /* descriptors; -1: not open */
	const char *name;
	enum session_state state;
	const char *workspace;   /* absolute path on the host */
	const char *policy;      /* name, for people */
	const char *policy_text; /* YAML of one document, complete */
	int64_t created_ns, used_ns;
	struct arena arena;
};

struct session_source {
	const char *name, *workspace, *policy, *policy_text;
};

/* Errors: session_exists, session_name, state_unusable, no_resources. */
int session_new(const char *state, const struct session_source *source, struct err *err);
/* `exclusive`: for rm. Errors: session_not_found, session_busy, session_broken, state_unusable. */
int session_open(
	const char *state, const char *name, bool exclusive, struct session *ret, struct err *err);
void session_close(struct session *session);
/* All of them, by name; those that cannot be opened are `broken`. The arena is the caller's. */
int session_list(const char *state, struct arena *arena, struct session **ret, size_t *ret_count,
	struct err *err);
/* Remove it, also a broken one. Errors: session_not_found, session_busy, state_unusable. */
int session_remove(const char *state, const char *name, struct err *err);

#endif
