/*
 * plan: what will be done, everything decided. Built once by plan_build(), then walked by the box's
 * stages, which decide nothing, and printed by `explain` and `run --dry-run`. Lists are in the
 * order in which they are carried out. All pointers belong to the plan's arena or outlive it
 * (policy, request, host).
 */
#ifndef AGENTBOX_PLAN_PLAN_H
#define AGENTBOX_PLAN_PLAN_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "plan/network.h"

struct policy;
struct request;
struct host;

/* One step in putting the box's file system together. */
enum plan_op_kind {
	OP_DIR,    /* make a directory (missing parents too) */
	OP_LINK,   /* make a symbolic link with the text `source` */
	OP_FILE,   /* make a file holding data */
	OP_BIND,   /* show `source` of the host at target */
	OP_LAYER,  /* show `source` of the host at target through the private layer `layer` */
	OP_INSIDE, /* show `source`, a path of the box made before, at target once more */
	OP_MASK,   /* cover target with an unreadable empty file or directory */
	OP_PROC,   /* a new /proc */
	OP_DEVPTS, /* a new devpts instance */
	OP_CGROUP, /* the box's own control group, read-only; `source`: of v1 the controllers, else
		      NULL */
	OP_SEAL,   /* everything attached so far becomes read-only, nosuid, nodev */
};

enum plan_op_flags {
	OPF_READONLY = 1,  /* this mount alone is read-only (after the seal) */
	OPF_RECURSIVE = 2, /* with the mounts below the source */
	OPF_NOEXEC = 4,
	OPF_DEVICE = 8, /* a device node: without nodev */
	OPF_GRANT = 16, /* named by the policy or the command line: opened without following links,
			   and as root by the supervisor, shown as the box's own (id-mapped) */
	OPF_UNDER_GRANT =
		32, /* the target lies in a tree of the host: resolved without following links */
	OPF_LINK_ITSELF =
		64,         /* source and target are a symbolic link itself, not what it leads to */
	OPF_OPTIONAL = 128, /* a target that is gone by now is no error (a host file went away) */
};

/* Maxima that plan_build holds, so that the box needs no memory of its own. */
#define PLAN_OPS_MAX    65536 /* mounts mostly: 15 us each; the kernel has 100000 at most */
#define PLAN_GRANTS_MAX 250   /* operations with OPF_GRANT */

struct plan_op {
	enum plan_op_kind kind;
	unsigned flags;     /* enum plan_op_flags */
	const char *target; /* path in the box, without the leading "/"; "" is its root */
	const char *source;
	const char *data; /* OP_FILE */
	size_t len;
	mode_t mode; /* OP_DIR, OP_FILE; OP_MASK, OP_BIND, OP_INSIDE: S_IFMT part of what is shown
		      */
	int tree;    /* OPF_GRANT: its number among them, from 0 */
	int layer;   /* OP_LAYER: index into plan->layers */
	uid_t owner; /* OPF_GRANT as root: the owner on the host that the box acts as */
	gid_t group;
	const char *why; /* for people: "filesystem.read (policy.yaml:7)", "system", "made" */
};

/* Does an operation show a part of the host that the policy or the command line names? */
static inline bool plan_op_grants(const struct plan_op *op)
{
	return (op->kind == OP_BIND || op->kind == OP_LAYER) && (op->flags & OPF_GRANT);
}

/*
 * A tree of the host that is written through a private layer: overlayfs, or a copy of the whole.
 * The layer is a directory of the box's own tmpfs or one of the host that is shown there, with
 * "upper" (what was written, or the copy) and "work" (the kernel's own).
 */
#define PLAN_LAYERS_MAX 8
struct plan_layer {
	const char *root; /* of the tree, absolute; in the box it is at the same place */
	bool copy;
	bool forced; /* copied although the policy did not ask for it: overlayfs could not do it */
	const char *source;      /* of the layer on the host, absolute; NULL: in the box's memory */
	const char *dir, *lower; /* paths in the box, where it is put together */
	const char *const *gone; /* names below root that are hidden, sorted; the layer begins with
				    them taken away */
	size_t gone_count;
	const char *why;
};

/* One Landlock rule: what may be done beneath a path of the box. */
struct plan_rule {
	const char *path; /* absolute, inside */
	uint64_t access;  /* LANDLOCK_ACCESS_FS_* */
	bool optional;    /* a path that is gone by now is no error */
};

struct plan_rlimit {
	int resource; /* RLIMIT_* */
	struct rlimit limit;
	const char *why;
};

/*
 * The control groups in which the box is counted and held: one (v2), or one in each hierarchy that
 * is needed (v1). All have the same name, in the directories `parents`.
 */
enum plan_cgroup_kind { CGROUP_NONE, CGROUP_V2, CGROUP_V1 };
#define PLAN_CGROUPS_MAX 6

struct plan_cgroup_file {
	int group;         /* index into parents */
	const char *file;  /* "memory.max" */
	const char *value; /* what to write */
	bool optional;     /* a kernel that does not have it is no error */
	const char *key;   /* the policy's key that it holds, for errors: "limits.memory" */
};

struct plan_cgroup {
	enum plan_cgroup_kind kind;
	const char *parents[PLAN_CGROUPS_MAX]; /* absolute directories of the host */
	const char
		*controllers[PLAN_CGROUPS_MAX]; /* v1: of that hierarchy, "cpu,cpuacct"; v2: NULL */
	size_t count;
	const char *name;   /* of the directory that is made in each: "agentbox-PID-NUMBER" */
	const char *leaf;   /* v2: the supervisor first moves itself into this group, made below
			       parents[0] if it is not there: "agentbox-self"; NULL: need not */
	const char *enable; /* v2: to be written to parents[0]'s cgroup.subtree_control; NULL */
	const struct plan_cgroup_file *files; /* in this order, before anybody enters */
	size_t file_count;
	/* v1: which group counts what; -1: none does. v2: 0 or -1 */
	int memory, pids, cpu, cpuacct;
	/* what is held, for the supervisor's judgement; 0: not asked for */
	uint64_t memory_max; /* bytes */
	uint64_t pids_max;   /* of the command, without init */
	uint64_t cpu_us;     /* summed processor time of all processes; watched, then SIGKILL */
	unsigned cpu_width;  /* how many processors it can use at once, at least 1 */
};

/*
 * Limits that no control group holds and best_effort lets go: the supervisor looks at the box's
 * processes now and then, and kills the box once it sees that one was passed. 0: not watched.
 */
struct plan_watch {
	uint64_t memory_max; /* bytes */
	uint64_t cpu_us;     /* as in struct plan_cgroup */
	uint64_t pids_max;
	unsigned width; /* how many processors the box can use at once, at least 1 */
};

/*
 * A ready seccomp program. `renames`: the calls of the rename family (FILTER_RENAME_*) that it
 * hands to the listener though it does not refuse them: the supervisor has them done on the
 * caller's behalf. `handed`: likewise of calls that the supervisor looks at or acts upon.
 */
enum filter_handed { FILTER_CLONE3 = 1, FILTER_KILL_ALL = 2 };
enum filter_renames { FILTER_RENAME = 1, FILTER_RENAMEAT = 2, FILTER_RENAMEAT2 = 4 };
struct filter {
	const struct sock_filter *program;
	size_t count;       /* instructions */
	const char *name;   /* "default", "strict", "custom" */
	const char *sha256; /* of the program; hex */
	unsigned renames;   /* enum filter_renames; 0: they are the kernel's, or refused */
	unsigned handed;    /* enum filter_handed */
};

struct plan {
	const char *name; /* of the policy */

	/* ids */
	uid_t uid, gid;  /* inside */
	uid_t outer_uid; /* outside: the caller's, or the one that owns nothing */
	gid_t outer_gid;
	const char *uid_map, *gid_map; /* lines for /proc/self/{uid,gid}_map */
	bool as_root;        /* the supervisor acts for another id; grants are opened by it */
	uint64_t namespaces; /* CLONE_NEW* for clone3 */
	const char *hostname;
	bool loopback_up;          /* only with a network namespace of its own */
	struct network_plan reach; /* whom the gateway connects it with; no rules: there is none */

	/* file system */
	const struct plan_op *ops;
	size_t op_count;
	/*
	 * The box's root is one new tmpfs; /tmp, /dev/shm and home are writable windows on its
	 * directories, so one size holds for all of them together.
	 */
	const struct plan_option {
		const char *key, *value;
	} * root_options;   /* for fsconfig(2), key NULL at the end */
	uint64_t root_size; /* bytes; the option "size" */

	const struct plan_layer *layers; /* the workspace's first */
	size_t layer_count;

	/* Landlock; abi 0: not used (and then named in not_enforced) */
	int landlock_abi;
	uint64_t landlock_fs, landlock_scoped; /* handled */
	const struct plan_rule *rules;
	size_t rule_count;

	/* limits */
	const struct plan_rlimit *rlimits;
	size_t rlimit_count;
	const char *oom_score_adj; /* for /proc/self/oom_score_adj */
	mode_t umask;
	uint64_t wall_us;    /* 0: none */
	uint64_t grace_us;   /* between SIGTERM and SIGKILL */
	uint64_t output_max; /* bytes kept of each stream */
	bool output_kill;    /* past it the box is killed; else truncated */

	struct plan_cgroup cgroup;
	struct plan_watch watch;

	/* system calls */
	struct filter filter;
	unsigned filter_flags; /* SECCOMP_FILTER_FLAG_* for the installation */
	bool kill_on_violation;
	bool renames; /* some renames are done by a process of agentbox's in the box */
	bool keep;    /* the box outlives its commands, which join it: no command is started with
			 it, and each one's processes are told apart by a reaper (box/sync.h) */
	bool nesting; /* processes of the box can have a root directory of their own */

	/* the command */
	const char *const *argv; /* NULL-terminated */
	const char **shell_argv; /* for a script without #!: {"/bin/sh", FILE, ...}; the payload
				    fills in [1] */
	const char *const
		*candidates;     /* files to try in order, NULL-terminated: the PATH search, done */
	const char *const *envp; /* NULL-terminated */
	const char *cwd;         /* inside, absolute */
	bool tty, pass_stdin;
	char *words; /* request->words: init clears its copy of them */
	size_t words_len;
	bool new_keyring; /* the policy allows calls on keyrings: not on the caller's */

	/* for the result */
	const char *const *not_enforced; /* NULL-terminated */
	const char *network;             /* "none", "allow", "host" */
	const char *workspace;           /* "overlay", "copy", "bind", "none" */
	const struct plan_warning {
		const char *code, *message;
	} * warnings;
	size_t warning_count;

	const struct policy *policy;
	const struct host *host;
	struct arena arena;
};

/* How many processes of a box are agentbox's own, and not counted as the command's. */
static inline uint64_t plan_own_processes(const struct plan *plan)
{
	return plan->renames ? 2 : 1;
}

/*
 * Decide everything. Asks the kernel nothing. Errors: unsupported, grant_is_symlink,
 * grant_not_found, dangerous_grant, landlock_insufficient, bad_cwd, ... with the policy's line.
 * The plan keeps pointers into all four arguments.
 */
int plan_build(const struct policy *policy, const struct request *request, const struct host *host,
	const struct filter *filter, struct plan *ret_plan, struct err *err);
void plan_free(struct plan *plan);

#endif
