/*
 * loop: waits, and turns what it finds into events. Decides nothing, keeps nothing.
 *
 * The order within a turn is part of the meaning: whatever the box said before it ended is heard
 * before its end is.
 */
#define _GNU_SOURCE
#include "supervise/run.h"
#include "base/fd.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int64_t run_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void read_signals(struct run *run)
{
	struct signalfd_siginfo info[4];
	ssize_t n = read(run->io->signal_fd, info, sizeof info);
	for (ssize_t i = 0; i < n / (ssize_t)sizeof *info; i++) {
		if (info[i].ssi_signo == SIGWINCH) {
			terminal_resize(run);
			continue;
		}
		if (run->caller_signals++ == 0)
			run->caller_signal = (int)info[i].ssi_signo;
		run_event(run, run->caller_signals == 1 ? EVENT_CANCEL : EVENT_CANCEL_AGAIN);
	}
}

/*
 * One message, or the end, of a socket as an event. Returns false when there is nothing (more) to
 * read. `*sock` is closed at its end.
 */
static bool read_message(struct run *run, int *sock, enum machine_event *ret_event)
{
	if (*sock < 0)
		return false;
	int r = sync_recv(*sock, &run->msg, &run->msg_fd);
	/* Init left with a word of ours unread. The error stands before the messages, once. */
	if (r == -ECONNRESET)
		r = sync_recv(*sock, &run->msg, &run->msg_fd);
	bool setup = sock == &run->box->setup_fd;
	switch (r) {
	case -EAGAIN:
		return false;
	case 1:
		*ret_event = EVENT_PROTOCOL;
		if (setup && run->msg.kind == SYNC_FDS && run->plan->tty && run->tty.master < 0)
			*ret_event = EVENT_FDS;
		else if (setup && run->msg.kind == SYNC_LAYER &&
			 run->box->layer_count < run->plan->layer_count)
			*ret_event = EVENT_LAYER;
		else if (setup && run->msg.kind == SYNC_SOCKET &&
			 run->network.sockets < network_sockets(&run->plan->reach))
			*ret_event = EVENT_SOCKET;
		else if (setup && run->msg.kind == SYNC_EXECING &&
			 run->plan->tty == (run->tty.master >= 0) &&
			 run->box->layer_count == run->plan->layer_count &&
			 run->network.sockets == network_sockets(&run->plan->reach))
			*ret_event = EVENT_EXECING;
		else if (setup && run->msg.kind == SYNC_FAILED)
			*ret_event = EVENT_FAILED;
		else if (!setup && run->msg.kind == SYNC_ENDED)
			*ret_event = EVENT_ENDED;
		else if (!setup && run->msg.kind == SYNC_SPARE && run->network.wanted > 0)
			*ret_event = EVENT_SPARE;
		else if (!setup && run->msg.kind == SYNC_GONE)
			*ret_event = EVENT_GONE;
		return true;
	case 0:
		fd_close(sock);
		*ret_event = setup ? EVENT_SETUP_EOF : EVENT_STATUS_EOF;
		return true;
	case -EPROTO:
		*ret_event = EVENT_PROTOCOL;
		return true;
	default:
		/* A descriptor that did not fit, no memory: the conversation has a hole. */
		run_broken(run, ERR_no_resources, -r, "a message of the box could not be received");
		fd_close(sock);
		return false;
	}
}

static void read_socket(struct run *run, int *sock, bool all)
{
	enum machine_event event;
	do {
		if (!read_message(run, sock, &event))
			return;
		run_event(run, event);
		fd_close(&run->msg_fd);
	} while (all);
}

static void want(struct run *run, int slot, int fd, short events)
{
	run->fds[slot] = (struct pollfd){ .fd = fd, .events = events };
}

static void prepare(struct run *run)
{
	for (int slot = 0; slot < SLOT_COUNT; slot++)
		want(run, slot, -1, 0);
	want(run, SLOT_SIGNAL, run->io->signal_fd, POLLIN);
	/* At the end init's descriptors only close, and each would wake us. */
	if (run->state != STATE_DRAINING) {
		want(run, SLOT_SETUP, run->box->setup_fd, POLLIN);
		want(run, SLOT_STATUS, run->box->status_fd, POLLIN);
		want(run, SLOT_PIDFD, run->box->pidfd, POLLIN);
		if (!renames_full(run))
			want(run, SLOT_LISTENER, run->listener, POLLIN);
		want(run, SLOT_RENAMES, run->renames.sock, POLLIN);
		want(run, SLOT_NETWORK, run->network.sock, POLLIN);
	}
	output_poll(&run->out[0], &run->fds[SLOT_OUT], &run->fds[SLOT_OUT_TO]);
	output_poll(&run->out[1], &run->fds[SLOT_ERR], &run->fds[SLOT_ERR_TO]);
	input_poll(&run->in, &run->fds[SLOT_IN], &run->fds[SLOT_IN_TO]);
}

/* Returns false when nothing has happened but time. */
static bool wait_for(struct run *run)
{
	struct timespec limit, *timeout = NULL;
	int64_t until = limits_due(run);
	if (run->deadline < until)
		until = run->deadline;
	if (until != NEVER) {
		int64_t left = until - run_now();
		if (left < 0)
			left = 0;
		limit = (struct timespec){ .tv_sec = left / 1000000000,
			.tv_nsec = left % 1000000000 };
		timeout = &limit;
	}
	int n = ppoll(run->fds, SLOT_COUNT, timeout, NULL);
	if (n >= 0)
		return n > 0;
	if (errno != EINTR) {
		/* Without memory for a poll the box still has to go; only then do we wait
		 * otherwise. */
		run_broken(run, ERR_no_resources, errno, "ppoll");
		struct timespec pause = { .tv_nsec = 10000000 };
		nanosleep(&pause, NULL);
		siginfo_t info = { 0 };
		if (!run->box->reaped &&
			waitid(P_PID, (id_t)run->box->pid, &info, WEXITED | WNOHANG | WNOWAIT) ==
				0 &&
			info.si_pid != 0)
			run_event(run, EVENT_INIT_EXIT);
	}
	return false;
}

static void dispatch(struct run *run)
{
	const struct pollfd *fds = run->fds;
	bool gone = fds[SLOT_PIDFD].revents;
	/* What init says on the other socket comes after what was said here: read this one first.
	 */
	if (fds[SLOT_SETUP].revents || fds[SLOT_STATUS].revents || gone)
		read_socket(run, &run->box->setup_fd, true);
	if (fds[SLOT_SIGNAL].revents)
		read_signals(run);
	if (fds[SLOT_RENAMES].revents)
		renames_turn(run);
	if (fds[SLOT_NETWORK].revents)
		network_turn(run);
	if (fds[SLOT_LISTENER].revents)
		listener_turn(run, fds[SLOT_LISTENER].revents);
	if (fds[SLOT_OUT].revents | fds[SLOT_OUT_TO].revents)
		output_turn(run, &run->out[0]);
	if (fds[SLOT_ERR].revents | fds[SLOT_ERR_TO].revents)
		output_turn(run, &run->out[1]);
	if (fds[SLOT_IN].revents | fds[SLOT_IN_TO].revents)
		input_turn(run, fds[SLOT_IN].revents, fds[SLOT_IN_TO].revents);
	if (fds[SLOT_STATUS].revents || gone)
		read_socket(run, &run->box->status_fd, gone);
	if (gone)
		run_event(run, EVENT_INIT_EXIT);
}

static void drain(struct run *run)
{
	for (int i = 0; i < 2; i++)
		output_drain(run, &run->out[i]);
	if (!output_busy(&run->out[0]) && !output_busy(&run->out[1]))
		run_event(run, EVENT_DRAINED);
}

void run_loop(struct run *run)
{
	while (run->state != STATE_DONE) {
		prepare(run);
		if (wait_for(run))
			dispatch(run);
		int64_t look = limits_due(run);
		if (look != NEVER && run_now() >= look)
			limits_look(run);
		if (run->deadline != NEVER && run_now() >= run->deadline)
			run_event(run, EVENT_TIMER);
		if (run->state == STATE_DRAINING)
			drain(run);
	}
}
