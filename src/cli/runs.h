/*
 * runs: the records of runs that have control groups, so that what a killed agentbox leaves is
 * found and removed by a later one. A record is a file of the caller's own: its name is that of the
 * run's groups, its lines say where they are ("cgroup PATH"), and the run holds a lock on it as
 * long as it lives. A record that can be locked is a dead run's.
 *
 * They are in /run/agentbox/runs for root, for others in agentbox/runs below $XDG_RUNTIME_DIR (when
 * that is theirs alone) or below $XDG_STATE_HOME (~/.local/state without it).
 */
#ifndef AGENTBOX_CLI_RUNS_H
#define AGENTBOX_CLI_RUNS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "plan/plan.h"

/* The record of the run that this process makes. */
struct run_record {
	const struct plan_cgroup *groups; /* outlives it */
	int dir, file;                    /* -1: there is none */
};

/*
 * Write the record, before the groups are made; of CGROUP_NONE there is none. 0, or -errno with no
 * record left.
 */
int run_record_make(const struct plan_cgroup *groups, struct run_record *ret_record);

/*
 * The run is over: remove the record. While a group is left it stays, as that of a dead run. gone:
 * the groups are known to be removed; else each is looked for.
 */
void run_record_end(struct run_record *record, bool gone);

/* Something of a dead run. */
struct runs_finding {
	bool removed;
	const char *kind;   /* "cgroup", "record", "directory" (of records) */
	const char *path;   /* absolute */
	const char *reason; /* why it was not removed; else NULL */
};

/* A zeroed one is empty. The arena, which holds all, is the caller's to free. */
struct runs_findings {
	struct runs_finding *list;
	size_t count;
	size_t left;    /* how many of them were not removed */
	size_t running; /* records of living runs, which are none of the findings */
	struct arena arena;
};

enum runs_how {
	RUNS_PASSING, /* beside a run: looks at RUNS_PASSING_MAX records, waits once at most */
	RUNS_ALL,
	RUNS_DRY, /* finds out what there is, and says that it was removed */
};
#define RUNS_PASSING_MAX 64

/* Remove what dead runs of this user left. Never fails: what could not be removed is a finding. */
void runs_collect(enum runs_how how, struct runs_findings *findings);

/* One line for each finding: `verb` (for people), or "not removed", what it is, and why. */
void runs_words(
	const struct runs_findings *findings, const char *verb, bool only_left, struct buf *out);

/* Between runs.c and runs_collect.c: */

#define RUNS_BASES_MAX  2
#define RUNS_RECORD_MAX ((size_t)32768) /* bytes of a record */
#define RUNS_NAME_SIZE  64              /* of the name of a run's groups, with its end */
#define RUNS_FORMAT     "cgroup "       /* what begins a line that names a group */

/*
 * Open the at-th directory that records can be in (0 is where new ones go), made when asked for.
 * Its descriptor, or -errno: -ENOENT also when there is no such place for this user, -EPERM when
 * somebody else could write in it. ret_path (PATH_MAX bytes) gets its name; "" when there is none.
 */
int runs_open(size_t at, bool make, char *ret_path);

/* Is it the name of a run's groups: agentbox-PID-NUMBER? */
bool runs_is_name(const char *name);

/*
 * What a record's name once began with until it was complete: a file of that kind which can be
 * locked belongs to a run that made nothing.
 */
#define RUNS_NEW_PREFIX ".new-"

#endif
