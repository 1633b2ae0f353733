/* diff_file: the two forms of one changed file. Private to diff*.c. */
#ifndef AGENTBOX_WORKSPACE_DIFF_FILE_H
#define AGENTBOX_WORKSPACE_DIFF_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "report/changes.h"
#include "workspace/changes.h"
#include "workspace/dirs.h"

struct diff_side {
	bool there;
	const char *mode; /* as git writes it: "100644", "100755", "120000" */
	bool binary;      /* also when it is too large to be compared by lines */
	bool huge;        /* above DIFF_BINARY_MAX: not read, and `hash` is not known */
	int fd;           /* of a file that is not in `text`, else -1 */
	uint64_t size;
	const char *text; /* NULL: not held */
	char hash[41];    /* of the blob that git would make of it */
};

struct diff_file {
	struct diff_side old, new;
	struct arena arena;
};

/* Is this something that a patch can have: a regular file or a link, before or after? */
bool diff_file_fits(const struct change *change);

/*
 * Look at both forms. A form that is neither a regular file nor a link is none. 0 or -errno;
 * -ESTALE: it changed while it was read.
 */
int diff_file_open(
	struct dirs *lower, struct dirs *upper, const struct change *change, struct diff_file *ret);
void diff_file_close(struct diff_file *file);

#endif
