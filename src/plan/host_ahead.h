/*
 * host_ahead: looks at a large index's directories from the end, while the walk comes from the
 * beginning. Waiting for memory is what looking at many directories costs, and other processors
 * wait at the same time. Private to plan/.
 */
#ifndef AGENTBOX_PLAN_HOST_AHEAD_H
#define AGENTBOX_PLAN_HOST_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "plan/host_index.h"

#define AHEAD_BYTES_MIN    ((size_t)256 << 10) /* for less of an index a process is not worth it */
#define AHEAD_CHILDREN_MAX 3
#define AHEAD_LINE         64 /* bytes that processors hand to each other at once */

struct ahead {
	struct index_part index;
	size_t patterns;
	struct ahead_shared {  /* with the children */
		size_t walked; /* the walk's place: nobody need go below it */
		unsigned char alone[AHEAD_LINE - sizeof(size_t)];
		unsigned char same[]; /* one for each place where a record can be */
	} * shared;
	size_t count, size;
	size_t first, last; /* a child's part: places from `first` up to before `last` */
	unsigned looks;     /* at leaves, by this child */
	pid_t children[AHEAD_CHILDREN_MAX];
	unsigned child_count;
};

/*
 * Begin, if the index is large enough; child processes look at directories below `tree`, each in a
 * part of its own. Whatever fails: less is known ahead. ahead_end() waits for them; they stop then.
 */
void ahead_start(struct ahead *ahead, const struct index_part *index, size_t patterns, int tree);

/* Was the directory of the record, one without others in it, found unchanged? */
bool ahead_same(struct ahead *ahead, const struct index_part *part);

void ahead_end(struct ahead *ahead);

#endif
