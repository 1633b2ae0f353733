/*
 * host_ahead: looks at a large index's directories from the end, while the walk comes from the
 * beginning. Waiting for memory is what looking at many directories costs, and a second processor
 * waits at the same time. Private to plan/.
 */
#ifndef AGENTBOX_PLAN_HOST_AHEAD_H
#define AGENTBOX_PLAN_HOST_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "plan/host_index.h"

#define AHEAD_BYTES_MIN ((size_t)256 << 10) /* a smaller index is not worth a process */

struct ahead {
	struct index_part index;
	size_t patterns;
	struct ahead_shared {         /* with the child */
		size_t walked;        /* the walk's place: the child need not go below it */
		unsigned char same[]; /* one for each place where a record can be */
	} * shared;
	size_t count, size;
	pid_t child; /* 0: none */
};

/*
 * Begin, if the index is large enough; a child process looks at directories below `tree`. Whatever
 * fails: nothing is known ahead. ahead_end() waits for the child, which stops then.
 */
void ahead_start(struct ahead *ahead, const struct index_part *index, size_t patterns, int tree);

/* Was the directory of the record, one without others in it, found unchanged? */
bool ahead_same(struct ahead *ahead, const struct index_part *part);

void ahead_end(struct ahead *ahead);

#endif
