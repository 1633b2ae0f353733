/*
 * hold: in a kept box, what goes on for a command's processes once the command has ended and its
 * result is told: refused calls are answered, renames are done, output is read and dropped. That is
 * the loop of the run itself, in a process of its own that has let go of everything of the
 * caller's. Whatever ends it ends those processes, as they then have nobody who answers for them.
 */
#define _GNU_SOURCE
#include "supervise/run.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define LET_GO_MAX_MS 10000

void hold_output(struct run *run)
{
	for (int i = 0; i < 2; i++)
		if (run->out[i].fd >= 0 && run->held[i] < 0)
			run->held[i] = fcntl(run->out[i].fd, F_DUPFD_CLOEXEC, 3);
}

/* 0, 1 and 2, which are free, are the null device, so that nothing else gets these numbers. */
static int open_null(void)
{
	for (int i = 0; i < 3; i++)
		if (open("/dev/null", O_RDWR | (i ? 0 : O_NOCTTY)) != i)
			return -EBADF;
	return 0;
}

/* The run, as if its command still ran, without limit and without anybody who listens. */
static void begin_again(struct run *run)
{
	run->state = STATE_RUNNING;
	run->deadline = NEVER;
	run->next_look = run->next_watch = NEVER;
	run->have_ended = false;
	for (int i = 0; i < 2; i++) {
		run->out[i] = (struct output){ .fd = fd_steal(&run->held[i]),
			.stream = run->out[i].stream,
			.live = true,
			.sink = { .fd = -1 } };
	}
	run->in.from = run->in.to = -1;
	run->in.wait = INPUT_OFF;
	run->tty.raw = false;
	run->tty.master = -1;
}

static _Noreturn void hold_main(struct run *run, int told)
{
	struct plan plan = *run->plan;
	int keep[] = { run->box->pidfd, run->box->status_fd, run->listener, run->held[0],
		run->held[1], run->io->signal_fd, run->renames.sock, told };
	plan.wall_us = 0;
	plan.output_kill = false;
	memset(&plan.watch, 0, sizeof plan.watch);
	run->plan = &plan;
	if (setsid() < 0 || fd_close_others(keep, sizeof keep / sizeof *keep) < 0 ||
		open_null() < 0 || chdir("/") < 0)
		_exit(125);
	fd_close(&told);
	run->box->keeper_fd = run->box->setup_fd = run->msg_fd = -1;
	(void)prctl(PR_SET_NAME, "agentbox-hold", 0, 0, 0);
	begin_again(run);
	renames_again(run);
	run_loop(run);
	_exit(0);
}

/*
 * Wait until the other end is closed: until then the new process has the session's lock and the
 * connection to its keeper, too, and the session would be in use after the command's end was told.
 */
static void await_let_go(int fd)
{
	struct pollfd wait = { .fd = fd };
	while (poll(&wait, 1, LET_GO_MAX_MS) < 0 && errno == EINTR)
		;
}

void hold_start(struct run *run)
{
	int told[2] = { -1, -1 };
	pid_t pid = pipe2(told, O_CLOEXEC) < 0 ? -1 : fork();
	if (pid == 0)
		hold_main(run, told[1]);
	fd_close(&told[1]);
	if (pid < 0)
		result_warning(run->result, "processes_ended",
			"what the command left running was ended: there is no memory, process or "
			"descriptor for what answers for it");
	else
		await_let_go(told[0]);
	fd_close(&told[0]);
}
