/* source: finding and reading the files of policies. Private to policy/. */
#ifndef AGENTBOX_POLICY_SOURCE_H
#define AGENTBOX_POLICY_SOURCE_H

#include <sys/types.h>

#include "policy/tree.h"

#define SOURCE_FILES_MAX 64 /* of one policy, all extends together */

struct source_file {
	struct source source;
	const char *text;
	size_t len;
	struct node *root;
	dev_t dev; /* with ino: which file it is; 0 for text in memory */
	ino_t ino;
};

struct loader {
	struct arena *arena;
	const struct policy_env *env;
	struct err *err;
	const char *cwd;            /* NULL until it is asked for */
	struct source_file **files; /* in the order in which they are merged */
	size_t count;
	struct source_file
		*chain[POLICY_EXTENDS_MAX + 1]; /* from the named file to the one at hand */
	int depth;
};

/* The current directory, or NULL when it cannot be told. */
const char *source_cwd(struct loader *l);

/* Where relative paths in `file` count from, or NULL when that cannot be told. */
const char *source_dir(struct loader *l, const char *file);

/* Where names are looked up, in this order; some may be NULL. */
void source_dirs(struct loader *l, const char *ret_dirs[3]);

/* Is this the path of a file, not a policy's name? */
bool source_is_file(const char *name);

/*
 * Open a policy by name or file; the name stands in `at` (an element of extends) or, with at NULL,
 * on the command line. *ret has source, dev and ino; *ret_fd is the caller's.
 * Errors: policy_not_found, policy_unreadable, policy_invalid (too large).
 */
int source_open(struct loader *l, const char *name, const struct node *at, struct source_file *ret,
	int *ret_fd);

/* Read the text of an opened one. */
int source_read(struct loader *l, int fd, struct source_file *file);

#endif
