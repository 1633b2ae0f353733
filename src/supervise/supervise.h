/*
 * supervise: the parent after spawn. Captures, times, answers the seccomp listener, passes signals
 * on, and fills the result. No threads, no globals; the decisions are the table in machine.h.
 */
#ifndef AGENTBOX_SUPERVISE_SUPERVISE_H
#define AGENTBOX_SUPERVISE_SUPERVISE_H

#include <stdbool.h>
#include <signal.h>

#include "base/err.h"
#include "plan/network.h"

struct plan;
struct box;
struct result;

/* Listening sockets on the host's 127.0.0.1, each of which leads to a port of the box. */
struct published {
	struct published_port {
		int sock; /* -1: handed on, or closed */
		uint16_t port, host_port;
	} ports[NETWORK_PUBLISH_MAX];
	size_t count;
};

/*
 * Open what the plan publishes, in its order, with the caller's own rights and in its own network.
 * Before box_spawn: a port that cannot be had is then told before anything was made. All or none.
 * Errors: network_failed, no_resources. Closing is for what supervise_run() has not handed on.
 */
int published_open(const struct network_plan *network, struct published *ret, struct err *err);
void published_close(struct published *published);

struct supervise_io {
	int stdin_fd;  /* the caller's stdin when it is passed through or for a terminal, else -1 */
	int stdout_fd; /* --result, --tty: where output goes live; -1: it is captured */
	int stderr_fd;
	int signal_fd;               /* from supervise_signals() */
	struct published *published; /* handed to the gateway once the command runs; or NULL */
};

/*
 * Block SIGINT, SIGTERM, SIGHUP (unless the caller ignores it, as nohup(1) does), SIGQUIT and
 * SIGWINCH, ignore SIGPIPE, give SIGCHLD its default action (ignored, it would take the usage from
 * us), and return a signalfd for those that are blocked, or -errno. Before box_spawn, so that
 * nothing is missed. *ret_old: the mask to give back (the box's session stage sets an empty mask
 * and default actions itself).
 */
int supervise_signals(sigset_t *ret_old);

/*
 * Run until the command and all that it left are gone. Fills status, exit code, signal, streams,
 * usage, limits, violations, leftovers, timing of *result, and result->error with status error when
 * the command never ran. A timing.setup_us that is there already (what box_spawn took) is added to.
 * Returns 0, or -1 with *err only for failures of the supervisor itself (then the box is killed).
 * When it returns no process of the box is left but, perhaps, its init, which is about to end:
 * supervise_end() must follow, and what takes time and needs no more of the box belongs between.
 */
int supervise_run(const struct plan *plan, struct box *box, const struct supervise_io *io,
	struct result *result, struct err *err);

/*
 * Wait until init has ended, which its kernel's clean-up of the box makes worth some tenths of a
 * millisecond, and remove the control groups. An init that does not end is killed after a time.
 * 0, or -errno when a control group is left.
 */
int supervise_end(struct box *box);

/*
 * The keeper of a box that outlives its commands (plan->keep). supervise_keep_begin() waits until
 * the box is made. 0 or -1 with the error of a stage, or no_resources; then the box is killed.
 *
 * supervise_keep() hands to the box whoever connects to `listener` (a listening SEQPACKET socket
 * in the file system, non-blocking), is this very user and has the file of the descriptor `lock`
 * open for writing, as no box can, and returns when it is to end: 0 when it was asked to, by a
 * connection or a signal, -1 when the box has ended by itself. supervise_end() must follow.
 * Connections stay open until this process ends: their end of file tells that all is gone.
 */
int supervise_keep_begin(const struct plan *plan, struct box *box, int signal_fd, struct err *err);
int supervise_keep(struct box *box, int listener, int lock, int signal_fd);

#endif
