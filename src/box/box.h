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
	pid_t pid;    /* init, as the supervisor sees it */
	int pidfd;    /* of init; readable when it has ended */
	bool reaped;  /* init has ended and was waited for */
	int setup_fd; /* see sync.h; -1 once it has ended */
	int status_fd;
	int stdin_fd;  /* write end, -1: the command reads end of file; with a terminal -1 */
	int stdout_fd; /* read ends; -1 with a terminal */
	int stderr_fd;
	int layers[PLAN_LAYERS_MAX]; /* the directories that private layers are written to */
	size_t layer_count;          /* how many of them have come */
	struct cgroup cgroup; /* to be removed once init is reaped; those of a box without any are
				 none */
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

/* SIGKILL to init (and so to all of the box); never fails in a way that matters. */
void box_kill(const struct box *box);

/* Close what is open, but for the control groups: cgroup_remove() does that. Does not wait. */
void box_close(struct box *box);

/*
 * What an error from inside means for people: fills text and hint of *err from code, stage, errno
 * and the raw words that the child could give (it cannot format). Called by the supervisor.
 */
void box_explain_failure(const struct plan *plan, struct err *err);

#endif
