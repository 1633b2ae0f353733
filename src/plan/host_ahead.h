/*
 * host_ahead: looks at the second half of a large index's directories while the walk is busy with
 * the first. Waiting for memory is what looking at many directories costs, and a second processor
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
	const char *half;
	size_t patterns;
	unsigned char *same; /* shared with the child; one for each place where a record can be */
	size_t count;
	pid_t child; /* 0: none */
};

/*
 * Begin, if the index is large enough; a child process looks at directories below `tree`. Whatever
 * fails: nothing is known ahead. ahead_end() waits for the child.
 */
void ahead_start(struct ahead *ahead, const struct index_part *index, size_t patterns, int tree);

/* Was the directory of the record, one without others in it, found unchanged? */
bool ahead_same(struct ahead *ahead, const struct index_part *part);

void ahead_end(struct ahead *ahead);

#endif
