/*
 * applied: which of the host's files an apply of a session wrote, and how they were right after it.
 * Only so the next apply can tell its own work from that of others, who may have changed a file
 * since.
 *
 * The file "applied" in the session's directory: records "INODE CTIME PATH", each with a NUL
 * behind; CTIME in nanoseconds, PATH below the workspace, or absolute below the tree of another
 * layer. It is the caller's own; a damaged one is an error.
 */
#ifndef AGENTBOX_WORKSPACE_APPLIED_H
#define AGENTBOX_WORKSPACE_APPLIED_H

#include "base/err.h"
#include "workspace/apply.h"
#include "workspace/changes.h"

/*
 * What is noted as our own work, and is as it was left, is no conflict. `dir`: the session's
 * directory. Errors: session_broken.
 */
int applied_forgive(int dir, const struct changes *changes, struct apply_base *bases,
	const struct changes_layer *layers, struct err *err);

/*
 * Note what an apply has brought to the host, beside what is noted already. Errors: no_resources,
 * session_broken.
 */
int applied_note(int dir, const struct apply_report *report, const struct changes_layer *layers,
	struct err *err);

#endif
