/*
 * files: the files of a session for `read`, `write`, `list`, `put` and `get`: from the session and
 * its policy to a view of its trees.
 */
#ifndef AGENTBOX_CLI_FILES_H
#define AGENTBOX_CLI_FILES_H

#include "cli/cli.h"
#include "workspace/session.h"
#include "workspace/view.h"

#define FILES_DESCRIPTORS 5

struct files {
	struct session session;
	struct policy policy; /* of the session */
	struct view view;
	const char *base; /* what relative paths count from */
	uint64_t max;     /* bytes that one call may write: the policy's limits.disk */
	int fds[FILES_DESCRIPTORS];
	size_t fd_count;
	struct arena arena;
};

/*
 * Open a session by name; `write`: nobody else has it, and there is a stage. Closed in both cases.
 * Errors: of session_open(), of policy_parse(), workspace_not_found, grant_is_symlink.
 */
int files_open(const char *name, bool write, struct files *ret, struct err *err);
void files_close(struct files *files);

/* view_find() for a path of the command line. `write`: refuses what may not be written. */
int files_find(struct files *files, const char *path, bool write, bool parents,
	struct view_found *ret, struct err *err);

/* A regular file's content to stdout, as long as it was at the beginning. */
int files_copy_out(const struct view_entry *entry, const char *path, struct err *err);

/* stdin, at most files->max bytes, becomes the file at a path; `mode` -1: as it was, or 0644. */
int files_copy_in(struct files *files, const char *path, bool parents, int mode, struct err *err);

/*
 * From an error to what a command returns: CLI_NO, with the error told, when the answer to what was
 * asked is no; else -1.
 */
int files_answer(struct err *err);

/* archive.c */

/*
 * Unpack the tar stream on stdin into the stage, by the program agentbox-archive, which checks each
 * entry. Errors: unsafe_archive, unsupported (the program is not there), landlock_insufficient,
 * no_resources.
 */
int archive_unpack(struct files *files, const struct view_tree *tree, struct err *err);

#endif
