/*
 * cgroup: a box's control groups while they exist, from the supervisor's side: made before init
 * (v2) or beside it (v1), read while it runs, removed after it. What is to be made was decided in
 * plan->cgroup.
 * Sources: cgroups(7), the kernel's cgroup-v1 and cgroup-v2 documents.
 */
#ifndef AGENTBOX_BOX_CGROUP_H
#define AGENTBOX_BOX_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "plan/plan.h"

/* Live groups. A value of cgroup_init() has none. All descriptors close at exec. */
struct cgroup {
	const struct plan_cgroup *plan; /* NULL: none; outlives this */
	int parent[PLAN_CGROUPS_MAX];   /* where each is made; -1: not yet */
	int dir[PLAN_CGROUPS_MAX];      /* of each group, with its lock (flock(2)); -1 */
	int tasks[PLAN_CGROUPS_MAX];    /* v1: its file `tasks`, for init to write "0" to; else, and
					   once init has it, -1 */
};

/* What the kernel counted, children that ended included; UINT64_MAX: it does not say. */
struct cgroup_counters {
	uint64_t cpu_us;
	uint64_t cpu_user_us, cpu_system_us; /* their sum is cpu_us, the division is not exact */
	uint64_t memory_peak_bytes;          /* v2: from Linux 5.19 on */
	uint64_t pids_peak;                  /* init is one of them */
	uint64_t read_bytes, write_bytes;    /* block devices; only v2, with the controller "io" */
	/*
	 * Processes of the box that the kernel killed for want of memory: 0 when the box's own
	 * limit was never reached, for then it was one further up, or the whole host.
	 */
	uint64_t oom_kills;
	/* New processes refused because of the pids limit; in v1, and in v2 before Linux 6.11,
	 * because of one further up as well. */
	uint64_t pids_refused;
};

#define CGROUP_NOTHING_COUNTED                                                                     \
	{                                                                                          \
		UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,            \
			UINT64_MAX, UINT64_MAX, UINT64_MAX                                         \
	}

void cgroup_init(struct cgroup *cgroup);

/*
 * Make the groups of plan->cgroup (kind CGROUP_NONE: nothing) with all their settings. They are
 * locked as long as this process, or a copy of it that has not closed them, lives. On failure
 * nothing of them is left; *ret_cgroup then stays as it is. What is left of an earlier process with
 * the same name is replaced. plan->cgroup.leaf, once it was needed, stays: this process is in it.
 *
 * Errors: cgroup_unavailable, limit_refused (a value that the kernel does not take), no_resources.
 * They are raw, with the key and the place in the text: box_explain_failure() makes a sentence of
 * them, when their stage is set to STAGE_cgroup.
 */
int cgroup_make(const struct plan *plan, struct cgroup *ret_cgroup, struct err *err);

/* Summed processor time so far, in microseconds. 0 or -errno; -ENODATA: no group counts it. */
int cgroup_cpu_time(const struct cgroup *cgroup, uint64_t *ret_us);

/*
 * All counters; never fails. divided: also how cpu_us is divided, which in v1 takes two more files.
 */
void cgroup_read(const struct cgroup *cgroup, bool divided, struct cgroup_counters *ret_counters);

/* Fill cpu_user_us and cpu_system_us: the total, divided as the other two are to each other. */
void cgroup_divide(uint64_t total, uint64_t user, uint64_t system, struct cgroup_counters *ret);

/*
 * Remove the groups, waiting up to a second in all for the kernel to let go of ended processes, and
 * close everything: *cgroup is as after cgroup_init(). 0, or -errno when a group is left (-EBUSY:
 * somebody lives in it). A group that is gone already is none.
 */
int cgroup_remove(struct cgroup *cgroup);

/*
 * Remove the group `name` in the directory `parent`, for what a killed agentbox left. v2 kills what
 * may live in it (cgroup.kill) first. Waits up to a second. 0 (also when it is gone), -EBUSY when
 * its maker is alive or somebody lives in it still, or -errno.
 */
int cgroup_remove_at(int parent, const char *name);

#endif
