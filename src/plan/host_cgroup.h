/*
 * host_cgroup: which control groups this process is in, and what it may do there, as facts. What
 * comes of them is the planner's business (plan/cgroup.c). Part of plan/host.h.
 *
 * Sources: cgroups(7), proc(5), the kernel's cgroup-v1 and cgroup-v2 documents, systemd's
 * documentation of delegation (the attributes trusted.delegate and user.delegate).
 */
#ifndef AGENTBOX_PLAN_HOST_CGROUP_H
#define AGENTBOX_PLAN_HOST_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"

struct policy;
struct request;
struct host;

/* Controllers that limits are held by or counted with. */
enum host_controller {
	CONTROLLER_MEMORY,
	CONTROLLER_PIDS,
	CONTROLLER_CPU,
	CONTROLLER_CPUACCT, /* v1 only */
	CONTROLLER_CPUSET,
	CONTROLLER_COUNT_
};
const char *host_controller_name(enum host_controller controller);

#define HOST_CGROUP_LEVELS_MAX 16
/* The group that a supervisor moves itself into, to have the one above free of processes. */
#define HOST_CGROUP_LEAF "agentbox-self"

/* One directory of the v2 hierarchy. */
struct host_cgroup_level {
	const char *dir;    /* absolute, of the host */
	bool owned;         /* by the caller's id */
	bool writable;      /* the directory and its cgroup.procs, by the caller */
	bool delegated;     /* marked so by systemd; only looked at for root */
	bool root;          /* of the whole hierarchy */
	bool domain;        /* may have groups of whole processes below it */
	unsigned available; /* 1 << enum host_controller: could be enabled */
	unsigned enabled;   /* for the groups below it */
	int processes;      /* in it, not below: 0, 1, or 2 for more or unknown */
};

/* The own group in the v1 hierarchy that has a controller. */
struct host_cgroup_v1 {
	const char *dir;     /* absolute, of the host; NULL: there is none */
	const char *mounted; /* all controllers of that hierarchy: "cpu,cpuacct" */
	bool writable;
	const char *mems, *cpus; /* cpuset: its memory nodes and processors; "" when unknown */
};

struct host_cgroup {
	bool probed; /* false: the policy needs none, and all else here is zero */
	/* v2: the own group first, then the one above it, as far as it can be the caller's */
	struct host_cgroup_level levels[HOST_CGROUP_LEVELS_MAX];
	size_t level_count; /* 0: no v2 hierarchy that we are to be found in */
	struct host_cgroup_v1 v1[CONTROLLER_COUNT_];
	bool systemd;     /* a manager (as a user: the user's) could be asked for a scope */
	unsigned online;  /* processors; 0: not asked, since limits.cpus says how many are used */
	const char *cpus; /* those that this process may use, "0-3,8"; NULL: unknown, not asked */
	uint64_t number;  /* differs from run to run */
};

/*
 * Does the policy ask for something that wants a group: memory, cpu or cpus, or pids? The pids of
 * the shipped policies do not count: RLIMIT_NPROC holds them, and a start must not cost more.
 */
bool host_cgroup_asked(const struct policy *policy);
bool host_cgroup_pids_asked(const struct policy *policy);

/*
 * Text in, facts out; nothing is looked up. `cgroup` is /proc/self/cgroup, `mountinfo` is
 * /proc/self/mountinfo. The directory of the own group in the v2 hierarchy and the place that it is
 * mounted on; in arena memory. NULL: it is not to be found.
 */
const char *host_cgroup_v2_dir(const char *cgroup, const char *mountinfo, struct arena *arena,
	const char **ret_mount_point);
/* The same in the v1 hierarchy that has the controller, and the list of all its controllers. */
const char *host_cgroup_v1_dir(const char *cgroup, const char *mountinfo, const char *controller,
	struct arena *arena, const char **ret_mounted);

/* The own group's path within it, wherever that is mounted. */
const char *host_cgroup_v1_path(
	const char *cgroup, const char *controller, struct arena *arena, const char **ret_mounted);

/*
 * Fill levels and v1 from the two texts and the directories that they name. wanted: 1 << enum
 * host_controller of those that a limit needs; v2 is left out when one of them is in a v1
 * hierarchy, as it cannot be in both, and a controller of v1 that is not wanted, too.
 */
void host_cgroup_read(const char *cgroup, const char *mountinfo, unsigned wanted, uid_t uid,
	bool root, struct arena *arena, struct host_cgroup *ret_cgroup);

/* Fill host->cgroup when the policy asks for a group; host's uid, root and pid must be known. */
void host_cgroup_probe(
	const struct policy *policy, const struct request *request, struct host *host);

#endif
