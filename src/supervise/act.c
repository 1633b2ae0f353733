/* act: carries out what the table answers. The only place where the state changes. */
#define _GNU_SOURCE
#include "supervise/run.h"
#include "base/fd.h"

#include <signal.h>
#include <string.h>

/* Each state's time; the set-up's is one for both of its states. */
static int64_t deadline_of(const struct run *run, enum machine_state state)
{
	int64_t now = run_now();
	uint64_t us;
	switch (state) {
	case STATE_SETUP:
	case STATE_EXECING:
		return run->deadline;
	case STATE_RUNNING:
		if (run->plan->wall_us == 0)
			return NEVER;
		us = run->plan->wall_us;
		break;
	case STATE_TERMINATING:
		us = run->plan->grace_us;
		break;
	case STATE_ENDING:
		return now + ENDING_MAX_NS;
	case STATE_KILLING:
		/* A reaper does not end at once, as init does: it is given a time. */
		return run->box->joined ? now + REAPING_MAX_NS : NEVER;
	default:
		return NEVER;
	}
	return us < (uint64_t)(NEVER - now) / 1000 ? now + (int64_t)us * 1000 : NEVER;
}

void run_signal(struct run *run, int signal)
{
	struct sync_msg msg;
	memset(&msg, 0, sizeof msg);
	msg.magic = SYNC_MAGIC;
	msg.kind = SYNC_SIGNAL;
	msg.signal = signal;
	if (run->box->status_fd >= 0)
		(void)sync_send(run->box->status_fd, &msg, -1);
}

static void started(struct run *run)
{
	run->started = run_now();
	terminal_start(run);
	published_hand(run);
	if (run->in.from >= 0 && run->in.to >= 0)
		run->in.wait = INPUT_FROM;
}

static void ended(struct run *run)
{
	run->ended = run_now();
	run->have_ended = true;
	run->how = run->msg.ended;
	/* Nobody is left to read it, whatever the caller may still want to say. */
	input_close(&run->in);
}

static void gone(struct run *run)
{
	run->have_gone = true;
	run->last = run->msg.gone;
	run->box->left = run->box->joined && run->msg.gone.left;
	if (run->box->left)
		hold_output(run);
	run->result->leftover_killed = run->msg.gone.leftover_killed;
	run->result->usage.disk_bytes = run->msg.gone.disk_bytes;
}

static void failed(struct run *run)
{
	if (run->result->error.code != ERR_none)
		return;
	run->result->error = run->msg.err;
	box_explain_failure(run->plan, &run->result->error);
}

static void perform(struct run *run, unsigned actions)
{
	if (actions & ACT_TAKE_TERMINAL)
		terminal_take(run, fd_steal(&run->msg_fd));
	if (actions & ACT_TAKE_LAYER)
		run->box->layers[run->box->layer_count++] = fd_steal(&run->msg_fd);
	if (actions & ACT_TAKE_SOCKET)
		network_give(run);
	if (actions & ACT_TAKE_SPARE)
		published_spare(run);
	if (actions & ACT_TAKE_LISTENER)
		run->listener = fd_steal(&run->msg_fd);
	if (actions & ACT_STARTED)
		started(run);
	if (actions & ACT_FAIL)
		failed(run);
	if (actions & ACT_ENDED)
		ended(run);
	if (actions & ACT_GONE)
		gone(run);
	if (actions & ACT_COUNT)
		usage_told(run);
	/* When init cannot be reached the grace period sees to it. */
	if (actions & ACT_TERM)
		run_signal(run, SIGTERM);
	if (actions & ACT_KILL)
		box_kill(run->box);
	if (actions & ACT_REAP) {
		input_close(&run->in);
		usage_reap(run);
	}
	if (actions & ACT_ABANDON) {
		output_close(&run->out[0]);
		output_close(&run->out[1]);
	}
}

void run_event(struct run *run, enum machine_event event)
{
	struct machine_cell cell = machine_step(run->state, event);
	if (run->blame == BLAME_NONE || cell.blame == BLAME_BROKEN)
		run->blame = cell.blame;
	/* The state first: an action that fails is an event of its own, and of the new state. */
	if (cell.next != run->state) {
		run->deadline = deadline_of(run, cell.next);
		run->state = cell.next;
	}
	perform(run, cell.actions);
}

void run_broken(struct run *run, enum err_code code, int errnum, const char *what)
{
	if (run->blame != BLAME_BROKEN)
		err_set(run->err, code, errnum, "%s: %s", what,
			errnum ? strerror(errnum) : "failed");
	run_event(run, EVENT_BROKEN);
}
