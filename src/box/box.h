/*
 * box: a live box, and the one function that makes it. The child side executes the plan; it decides
 * nothing, allocates nothing, prints nothing.
 */
#ifndef AGENTBOX_BOX_BOX_H
#define AGENTBOX_BOX_BOX_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "box/cgroup.h"
#include "plan/plan.h"

struct box {
	pid_t pid;     /* init, as the supervisor sees it */
	int pidfd;     /* of init; readable when it has ended */
	bool reaped;   /* init has ended and was waited for */
	bool joined;   /* a kept box: pid and pidfd are of the reaper, which is no child of ours */
	bool left;     /* of a joined one: processes live on that the command left */
	int kills;     /* of a joined one: how often box_kill() was called */
	int keeper_fd; /* of a joined one: as long as it is open its keeper counts the command */
	int setup_fd;  /* see sync.h; -1 once it has ended */
	int status_fd;
	int stdin_fd;  /* write end, -1: the command reads end of file; with a terminal -1 */
	int stdout_fd; /* read ends; -1 with a terminal */
	int stderr_fd;
	int layers[PLAN_LAYERS_MAX]; /* the directories that private layers are written to */
	size_t layer_count;          /* how many of them have come */
	struct cgroup cgroup; /* to be removed once init is reaped; those of a box without any are
				 none; of a joined one only to be read */
};

/* All descriptors -1, no control groups. */
void box_init(struct box *box);

/*
 * Make the box: pipes, sockets, a v2 control group, clone3. Returns as soon as init exists; what
 * happens then arrives over setup_fd. All descriptors are close-on-exec, the sockets and the pipe
 * ends non-blocking. On failure nothing is left. Errors: userns_denied, no_resources,
 * cgroup_unavailable, limit_refused, grant_is_symlink, idmap_unsupported, internal.
 */
int box_spawn(const struct plan *plan, struct box *ret_box, struct err *err);

/*
 * To be called after box_spawn(): make the box's v1 control groups, which init waits for before it
 * goes the last steps; in all other cases there is nothing to do. 0; or -1 and nothing of the box
 * is left. Errors: cgroup_unavailable, limit_refused, no_resources.
 */
int box_groups(const struct plan *plan, struct box *box, struct err *err);

/*
 * Run the plan's command in a box that somebody keeps: `keeper` is a connection to its keeper
 * (blocking; with a time limit of its own), which belongs to the box from here on. All as with
 * box_spawn(), but that a reaper takes the place of init and that the layers are there already.
 * Errors: session_broken, session_busy, no_resources, what a stage before exec fails with.
 */
int box_join(const struct plan *plan, int keeper, struct box *ret_box, struct err *err);

/* Let go of a joined box's control groups, which are its keeper's and stay. */
void box_leave(struct box *box);

/*
 * SIGKILL to init (and so to all of the box); never fails in a way that matters. A reaper is first
 * told to end what is its command's, and killed by the second call.
 */
void box_kill(struct box *box);

/* Close what is open, but for the control groups: cgroup_remove() does that. Does not wait. */
void box_close(struct box *box);

/*
 * What an error from inside means for people: fills text and hint of *err from code, stage, errno
 * and the raw words that the child could give (it cannot format). Called by the supervisor.
 */
void box_explain_failure(const struct plan *plan, struct err *err);

#endif
