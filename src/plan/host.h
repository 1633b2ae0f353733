/*
 * host: what this kernel and this caller offer, as a value. host_probe() is the only function of
 * plan/ that looks at the kernel; tests make hosts up.
 */
#ifndef AGENTBOX_PLAN_HOST_H
#define AGENTBOX_PLAN_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "plan/host_cgroup.h"

struct policy;
struct policy_pattern;
struct request;

/* What is at a path, without following a link in its last component. */
struct host_path {
	const char *path; /* absolute */
	int errnum;       /* 0: it is there; else why not (ENOENT, EACCES, ...) */
	mode_t mode;      /* file type and permission bits */
	uid_t uid;        /* of the file */
	gid_t gid;
	const char *link;  /* text of the link, when it is one */
	const char *real;  /* where it leads in the end (no link in any component); NULL: nowhere */
	bool through_link; /* a component before the last one is a symbolic link */
	bool unmapped; /* only as root: its file system (overlayfs) cannot be shown under other ids
			*/
};

/* A match of a hide or protect pattern below a granted tree. */
struct host_match {
	const char *path; /* absolute */
	const struct policy_pattern *pattern;
	const char *tree; /* the granted tree that it was found in */
	mode_t mode;
};

/*
 * A protect pattern that names one place (no wildcard, with a "/") and found nothing there, in a
 * tree that is written directly; or any-depth ones, whose later matches cannot be known.
 */
struct host_missing {
	const struct policy_pattern *pattern;
	const char *tree;
};

/* A mount inside of a tree that is shown through a layer, and in no other such mount. */
struct host_mount {
	const char *path; /* absolute */
	bool kernels; /* it is, or holds, a file system of the kernel's own (proc, sysfs, ...) */
	bool inner;   /* while they are looked for: it lies in another one */
};

/* The repository that the workspace's ".git", a file, names (plan/host_git.h). */
struct host_git {
	const char *admin;  /* the directory that it names, outside of the workspace; NULL: none */
	const char *common; /* the repository's, which holds it, if it names the workspace back */
};

struct host {
	/* the caller */
	uid_t uid; /* effective */
	gid_t gid;
	const char *user, *group; /* names; never NULL ("user" when there is none) */
	const char *home; /* absolute; $HOME if it is fit, else the user database's; never NULL */
	mode_t umask;     /* the caller's */
	pid_t pid;        /* of the supervisor */
	bool root; /* may act for other ids: effective id 0 with CAP_SETUID and CAP_SYS_ADMIN */
	bool global_root; /* the caller's id is that of the host's root, whatever its number here */
	uid_t box_uid;    /* root: an id outside that owns nothing, for the box; else uid */
	gid_t box_gid;

	/* the kernel */
	const char *release;        /* uname -r */
	int landlock_abi;           /* 0: none */
	int landlock_errnum;        /* why none */
	bool seccomp_notify;        /* user notification */
	bool seccomp_wait_killable; /* SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (Linux 5.19) */

	/* control groups; only looked at when the policy asks for what needs one */
	struct host_cgroup cgroup;

	/* the system directories: entries of / and of /etc that the plan may show, found or not */
	const struct host_path *top; /* "/usr", "/bin", ... in the order of the planner's table */
	size_t top_count;
	const struct host_path *etc;
	size_t etc_count;
	bool ready_dev;          /* AGENTBOX_DEVDIR is there, and whole */
	const char *resolv_conf; /* content of /etc/resolv.conf, links followed; "" when there is
				    none */

	/* the paths that policy and request name */
	const struct host_path *paths;
	size_t path_count;
	struct host_git git;
	const struct host_mount *mounts; /* only looked at with a layer */
	size_t mount_count;
	const struct host_match *hidden, *protected;
	size_t hidden_count, protected_count;
	const struct host_missing *missing; /* protect patterns without any match in a tree */
	size_t missing_count;
	/* agentbox's own directories; only looked at when anything is granted for writing */
	const struct host_path *own;
	size_t own_count;

	struct arena arena;
};

/*
 * Fill *ret_host. Never fails for what the host lacks (that is a fact, and the planner's business);
 * fails for what makes probing itself impossible, e.g. too_many_matches.
 */
int host_probe(const struct policy *policy, const struct request *request, struct host *ret_host,
	struct err *err);
/*
 * Look at the control groups again, after this process has gone into another one. Never fails.
 * host_probe() has done it once.
 */
void host_probe_cgroup(
	const struct policy *policy, const struct request *request, struct host *host);
void host_free(struct host *host);

/* The facts of a path that was probed, or NULL. */
const struct host_path *host_find(const struct host *host, const char *path);

#define HOST_MATCHES_MAX 32768   /* of all hide and protect patterns together ... */
#define HOST_GONE_MAX    131072  /* ... but hidden files in trees that are shown through a layer */
#define HOST_WALK_MAX    5000000 /* entries looked at for patterns */

#endif
