/*
 * supervise: begins and ends one run; owns what the caller sees of this room. The waiting is in
 * loop.c, the decisions are in machine.c.
 */
#define _GNU_SOURCE
#include "supervise/run.h"
#include "base/fd.h"

#include <sys/wait.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

int supervise_signals(sigset_t *ret_old)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGQUIT, SIGWINCH };
	sigset_t set, old;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaddset(&set, signals[i]);
	/* nohup(1): a blocked signal is kept even when it is ignored, so it must stay unblocked. */
	struct sigaction hangup;
	if (sigaction(SIGHUP, NULL, &hangup) < 0)
		return -errno;
	if (hangup.sa_handler != SIG_IGN)
		sigaddset(&set, SIGHUP);
	/* signal(7): the children of a process that ignores SIGCHLD are never there to be waited
	 * for. */
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGCHLD, SIG_DFL) == SIG_ERR ||
		sigprocmask(SIG_BLOCK, &set, &old) < 0)
		return -errno;
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0) {
		int r = -errno;
		sigprocmask(SIG_SETMASK, &old, NULL);
		return r;
	}
	*ret_old = old;
	return fd;
}

static void run_begin(struct run *run)
{
	const struct plan *plan = run->plan;
	const struct supervise_io *io = run->io;
	struct result *result = run->result;
	run->begun = run_now();
	run->deadline = run->begun + SETUP_MAX_NS;
	result->live = io->stdout_fd >= 0 || io->stderr_fd >= 0;
	output_init(&run->out[0], fd_steal(&run->box->stdout_fd), &result->out, plan->output_max,
		io->stdout_fd);
	output_init(&run->out[1], fd_steal(&run->box->stderr_fd), &result->err_out,
		plan->output_max, io->stderr_fd);
	/* The caller's stdin is not touched before the command runs: it may never run. */
	input_init(&run->in, io->stdin_fd, fd_steal(&run->box->stdin_fd), false);
}

static void run_end(struct run *run)
{
	terminal_restore(run);
	input_close(&run->in);
	output_close(&run->out[0]);
	output_close(&run->out[1]);
	renames_close(run);
	fd_close(&run->listener);
	fd_close(&run->msg_fd);
	fd_close(&run->held[0]);
	fd_close(&run->held[1]);
	fd_close(&run->box->setup_fd);
	fd_close(&run->box->status_fd);
	watch_close(run->watch);
	run->watch = NULL;
}

int supervise_run(const struct plan *plan, struct box *box, const struct supervise_io *io,
	struct result *result, struct err *err)
{
	/* Not on the stack, which a caller may have made small; a page costs only when it is read
	 * into. */
	char *chunk = malloc(CHUNK);
	if (!chunk) {
		box_kill(box);
		return err_set(err, ERR_no_resources, ENOMEM, "no memory to supervise the box");
	}
	struct run run = {
		.plan = plan,
		.box = box,
		.io = io,
		.result = result,
		.err = err,
		.state = STATE_SETUP,
		.msg_fd = -1,
		.listener = -1,
		.renames = { .sock = -1 },
		.network = { .sock = -1 },
		.tty = { .master = -1, .caller = -1 },
		.held = { -1, -1 },
		.counters = CGROUP_NOTHING_COUNTED,
		.before = CGROUP_NOTHING_COUNTED,
		.chunk = chunk,
	};
	run_begin(&run);
	limits_begin(&run);
	network_begin(&run);
	run_loop(&run);
	network_end(&run);
	if (box->left)
		hold_start(&run);
	run_end(&run);
	free(chunk);
	return run_finish(&run);
}

int supervise_end(struct box *box)
{
	if (box->joined)
		box_leave(box);
	/* What a command left in a kept box lives on, and its reaper with it. */
	if (box->left)
		return 0;
	/* Its own pidfd: nobody else's end can be taken for it. */
	struct pollfd end = { .fd = box->pidfd, .events = POLLIN };
	if (!box->reaped && poll(&end, 1, (int)(ENDING_MAX_NS / 1000000)) <= 0)
		box_kill(box);
	while (!box->reaped && !box->joined && waitpid(box->pid, NULL, 0) < 0 && errno == EINTR)
		;
	box->reaped = true;
	return cgroup_remove(&box->cgroup);
}
