/*
 * child: what the stages share. Private to box/.
 *
 * Each stage is `int stage_NAME(struct child *, struct err *)`, 0 or -1 with the raw failure filled
 * by child_fail(). Stages decide nothing, allocate nothing and use only async-signal-safe calls:
 * the payload stages run between vfork and exec, in init's memory.
 */
#ifndef AGENTBOX_BOX_CHILD_H
#define AGENTBOX_BOX_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "box/cgroup.h"
#include "box/stages.h"
#include "plan/plan.h"

/* The task beside init that makes the network namespace: stage_network.c. */
struct network {
	pid_t pid;
	int socket;       /* in the namespace; -1: none */
	int result;       /* not negative, or -errno; valid once the task has ended */
	const char *what; /* failed */
	_Alignas(16) char stack[4096];
};

/* A file, whatever its name is by now. */
struct file_id {
	dev_t dev;
	ino_t ino;
};

struct child {
	const struct plan *plan;
	int setup_fd, status_fd;
	int stdin_fd, stdout_fd, stderr_fd; /* the command's ends; -1 with a terminal */
	int root_fd;                        /* mount of the new root */
	int tty_fd;                         /* slave of the box's terminal; -1: none */
	int ruleset_fd;                     /* of Landlock; -1: none */
	pid_t payload;
	pid_t renamer; /* the process of renames.c; 0: none */
	int signal_fd; /* for SIGCHLD; -1: not yet */
	bool joined;   /* not init, but a reaper in a kept box */
	bool have_trees;
	int trees[PLAN_GRANTS_MAX]; /* as root, by plan_op.tree: the granted trees */
	bool in_groups;             /* init is in its control groups: stage_cgroup.c */
	struct file_id members[PLAN_CGROUPS_MAX]; /* of each group, when it is in them */
	struct network network;
};

/* Fill *err with the raw failure (the supervisor makes words of it); returns -1. detail may be
 * NULL. */
int child_fail(struct err *err, enum err_code code, int errnum, const char *detail);

/* What of a control group an error is about; key NULL: the first that the group is there for. */
struct cgroup_place {
	const struct plan_cgroup *plan;
	size_t group; /* index into plan->parents */
	const char *key;
	const char *name, *file; /* below the parent, or NULL */
};

/* child_fail() with the text "KEY (PATH)". */
int cgroup_fail(const struct cgroup_place *place, enum err_code code, int errnum, struct err *err);

/* stage_mounts.c: have what the supervisor opens for init. 0 or -errno. */
int trees_wait(struct child *child);

/*
 * stage_cgroup.c: be in the control groups from here on, as a part of another stage that makes what
 * has to be counted, or to be seen in them. It does not return when that fails.
 */
void cgroup_enter(struct child *child);

/*
 * stage_cgroup.c: the control group that init is in, of v1 the one in the hierarchy with these
 * controllers: read-only, and without what lies above it. A detached mount or -errno.
 */
int cgroup_tree(const struct child *child, const char *controllers);

/* stage_mounts.c: make what `fs` was told, if telling gave 0; closes it. A detached mount or
 * -errno. */
int mount_finish(int fs, int r, unsigned attr);

/*
 * stage_layers.c: show a tree through its private layer, whose directory the supervisor is sent.
 * Takes over `lower`, a detached copy of the tree. A detached mount to be put in place, or -errno.
 */
int layer_mount(const struct child *child, const struct plan_layer *layer, int lower);

/*
 * renames.c: make the process that renames for the command; it takes `sock` (see renames.h), which
 * stays the caller's. Failure shows as the end of that socket. And end it, so that it is no process
 * of the command's.
 */
void renames_start(struct child *child, int sock);
void renames_end(struct child *child);

/* init.c: tell the supervisor how the command ended, and then what it left and used. */
struct rusage;
void tell_ended(const struct child *child, int status, const struct rusage *usage);
void tell_gone(const struct child *child, uint64_t killed, uint64_t left);

/*
 * reaper.c: in a kept box, make the process that runs one command and looks after all that comes of
 * it; `setup` stays the caller's. Failure shows as the end of that socket.
 */
void reaper_start(struct child *child, int setup);

/*
 * descendants.c: whoever descends from this process, a subreaper, as the box's /proc shows it. The
 * signal (0: none) goes to all but `except`. How many there are, or -errno.
 */
long descendants_signal(int signal, pid_t except);

/*
 * stage_sockets.c: send the supervisor a TCP socket of the box's network, for a client of a
 * published port. One that it cannot make is not sent. False: that is no family of TCP's.
 */
bool sockets_spare(const struct child *child, int family);

/* Report to the supervisor and end this process. */
_Noreturn void child_die(const struct child *child, enum stage stage, struct err *err);

/* pid 1 of the box, from its first instruction to its last. */
_Noreturn void init_main(struct child *child);

/* The command to be, from vfork to execve. */
_Noreturn void payload_main(const struct child *child);

#define STAGE_DECL_supervisor(name)
#define STAGE_DECL_init(name)               int stage_##name(struct child *child, struct err *err);
#define STAGE_DECL_payload(name)            int stage_##name(const struct child *child, struct err *err);
#define STAGE(name, process, needs, leaves) STAGE_DECL_##process(name)
#include "box/stages.def"
#undef STAGE

/* A detached mount of a new file system; options end with a key of NULL (or are NULL). -errno. */
int mount_new(const char *type, const struct plan_option *options, unsigned attr);

/*
 * sources_copy.c: a detached mount with a copy of the tree `source` (O_PATH) as the owner of the
 * operation sees it, owned by the box's outer id; or -errno. Takes as long as copying does.
 */
int source_copy(const struct plan *plan, const struct plan_op *op, int source);

/*
 * spawn.c: open the sockets and the command's pipes, ours in *box, the others in *child, and close
 * the latter. 0 or -errno, then some may be open.
 */
struct box;
int spawn_open(const struct plan *plan, struct box *box, struct child *child);
void spawn_close(struct child *child);

/*
 * sources.c: the supervisor's part when it acts as root.
 *
 * Open every granted path as a detached tree that shows the files of the path's owner as the box's
 * own, and send them all to init, which makes the rest of the box meanwhile.
 * Errors: grant_is_symlink, grant_not_found, idmap_unsupported, sources_changed, no_resources.
 */
struct sources;
int sources_give(const struct plan *plan, struct sources *sources, int setup_fd, struct err *err);

/* How many trees init is sent; 0 without root. */
size_t sources_count(const struct plan *plan);

/*
 * Take on the box's outer ids as effective ones, without supplementary groups, so that a user
 * namespace made meanwhile belongs to them and may map them; and back. 0 or -errno.
 */
#define SOURCES_GROUPS_MAX 1024
struct sources_self {
	gid_t groups[SOURCES_GROUPS_MAX];
	int group_count;
	uid_t uid;
	gid_t gid;
};
int sources_become(const struct plan *plan, struct sources_self *ret_self);
int sources_return(const struct sources_self *self);

/*
 * The user namespaces that say whose files the box has as its own: one for each owner of a granted
 * path. Made while the outer ids are the effective ones, so that they belong to them and each can
 * map itself without any right.
 */
struct sources {
	size_t count;
	struct source_owner {
		uid_t uid;
		gid_t gid;
		int userns; /* or -errno */
	} owners[PLAN_GRANTS_MAX];
};
/* Fill *sources, whose count is 0; what fails is kept in it until sources_give() needs it. */
void sources_map(const struct plan *plan, struct sources *sources);

#endif
