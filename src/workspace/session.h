/*
 * session: a box whose workspace layer, home and /tmp outlive one command. What a session is lies
 * in the caller's state directory; there is no process while nothing runs, unless its policy keeps
 * processes.
 *
 *	STATE/sessions/NAME/	0700
 *	    meta		the policy (its text after `extends`, as it was when the session was
 *				made), the workspace, times; lines "KEY VALUE"; texts in quotes with
 *				JSON's escapes (bytes that are not UTF-8 stay as they are)
 *	    layer/upper, layer/work	of the workspace
 *	    layer.1/, layers	of the repository of a linked git worktree, and which that is
 *				(session_layers.h)
 *	    home/ tmp/		as the box has them
 *	    lock		open file description lock (fcntl(2), which can be asked about
 *				without being taken): shared by each exec and reader, exclusive by
 *				who writes files and by rm. Its mtime is when the session was used
 *	    keeper		"PID START", when processes are kept: the keeper's number and its
 *				start time as in /proc/PID/stat
 *	    socket		the keeper's (session_keeper.h)
 *
 * As root, layer/upper, home and tmp belong to the workspace's owner: as whom the box acts.
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
	const char *workspace;     /* absolute path on the host */
	const char *policy;        /* name, for people */
	const char *policy_text;   /* YAML of one document, complete */
	const char *policy_sha256; /* of the sources, as in struct policy */
	const char **sources;      /* files that it was read from, the outermost base first */
	size_t source_count;
	int64_t created_ns, used_ns;
	struct arena arena;
};

struct session_source {
	const char *name, *workspace, *policy, *policy_text, *policy_sha256;
	const char **sources;
	size_t source_count;
};

#define SESSION_COUNT_MAX 4096
#define SESSION_META_MAX  ((size_t)8 << 20) /* bytes of meta */

/* Is it a name that a session may have? */
bool session_name_valid(const char *name);
/* "ready", "running", "broken" */
const char *session_state_name(enum session_state state);

/* All of it or nothing, also when it is killed. Errors: session_exists, usage (the name),
 * state_unusable, workspace_not_found, no_resources. */
int session_new(const char *state, const struct session_source *source, struct err *err);
/*
 * `exclusive`: nobody else has it, for writing its files. Waits for others for a moment. The lock
 * goes with ret->lock, also in a child that keeps that descriptor. Errors: session_not_found,
 * session_busy, session_broken, state_unusable.
 */
int session_open(
	const char *state, const char *name, bool exclusive, struct session *ret, struct err *err);
void session_close(struct session *session);
/*
 * All of them, by name; those that cannot be opened are `broken`, with what is known of them (texts
 * NULL, times 0). No descriptor is open in them; the arena is the caller's. Takes no lock.
 * Errors: state_unusable, no_resources.
 */
int session_list(const char *state, struct arena *arena, struct session **ret, size_t *ret_count,
	struct err *err);
/*
 * Remove it, also a broken one and what only has its name; follows no link. From the first step on
 * the name is free; what a killed call leaves the next one removes. Processes that it keeps end, as
 * long as no command is under way. Errors: session_not_found,
 * session_busy, state_unusable.
 */
int session_remove(const char *state, const char *name, struct err *err);

#endif
