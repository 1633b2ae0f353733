/* finish: what the run was, in the words of the result. Looks only at what is known by then. */
#define _GNU_SOURCE
#include "supervise/run.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static bool has_rlimit(const struct plan *plan, int resource)
{
	for (size_t i = 0; i < plan->rlimit_count; i++)
		if (plan->rlimits[i].resource == resource)
			return true;
	return false;
}

/* The command's own end, if init could still tell; else it went with the box, by SIGKILL. */
static void set_end(struct run *run)
{
	struct result *result = run->result;
	int status = run->have_ended ? run->how.wait_status : SIGKILL;
	result->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	result->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void set_own_end(struct run *run)
{
	struct result *result = run->result;
	set_end(run);
	result->status = result->signal ? STATUS_SIGNALED : STATUS_EXITED;
	/* These two signals are how the kernel says that a limit was passed (setrlimit(2)). Where a
	 * group counts the time, the first is never ours. */
	if (result->signal == SIGXCPU && run->plan->cgroup.cpu_us == 0 &&
		has_rlimit(run->plan, RLIMIT_CPU)) {
		result->status = STATUS_LIMIT;
		result->limits_hit |= LIMIT_CPU;
	} else if (result->signal == SIGXFSZ && has_rlimit(run->plan, RLIMIT_FSIZE)) {
		result->status = STATUS_LIMIT;
		result->limits_hit |= LIMIT_FILE_SIZE;
	} else if (result->signal == SIGKILL &&
		   (limits_reached(run) & (LIMIT_MEMORY | LIMIT_CPU))) {
		/* The kernel killed for memory, or for RLIMIT_CPU, and this process so. */
		result->status = STATUS_LIMIT;
	}
}

static void set_by_us(struct run *run, enum status status, unsigned limit)
{
	set_end(run);
	run->result->status = status;
	run->result->limits_hit |= limit;
}

static void set_cancelled(struct run *run)
{
	struct result *result = run->result;
	result->status = STATUS_CANCELLED;
	result->exit_code = -1;
	result->signal = run->caller_signal;
}

/* The command never ran. */
static void set_error(struct run *run)
{
	struct err *error = &run->result->error;
	run->result->status = STATUS_ERROR;
	switch (run->blame) {
	case BLAME_FAILED:
		break; /* the stage's own error is there already */
	case BLAME_LATE:
		err_set(error, ERR_box_died, 0,
			"the box was not ready after %d seconds and was ended",
			(int)(SETUP_MAX_NS / 1000000000));
		err_hint_set(error, "look for a granted path on a file system that does not "
				    "answer, or a very busy host");
		break;
	case BLAME_PROTOCOL:
		err_set(error, ERR_box_died, 0,
			"the box sent a message that has no place while it was made, and was "
			"ended");
		break;
	default:
		if (limits_reached(run) & LIMIT_MEMORY) {
			err_set(error, ERR_box_died, 0,
				"the box passed limits.memory before the command was started");
			err_hint_set(error, "give limits.memory a larger value");
			break;
		}
		err_set(error, ERR_box_died, 0,
			"the box ended before the command was started, without saying why");
		err_hint_set(error, "somebody may have killed it, or the host is out of memory; "
				    "`agentbox doctor` looks further");
	}
}

/* Init is agentbox's own: whatever made it misbehave, the command was ended with it. */
static void set_misbehaved(struct run *run, const char *code, const char *words)
{
	set_end(run);
	run->result->status = run->result->signal ? STATUS_SIGNALED : STATUS_EXITED;
	result_warning(run->result, code, words);
}

/* The kernel takes init too when the box has no more memory, and so do we where we watch in its
 * place; else it was somebody outside. */
static void set_lost(struct run *run)
{
	unsigned limits = limits_reached(run) & (LIMIT_MEMORY | run->over);
	if (limits)
		set_by_us(run, STATUS_LIMIT, limits);
	else
		set_misbehaved(run, "box_killed",
			"the box's init ended unexpectedly, and the command with it");
}

static void set_status(struct run *run)
{
	switch (run->blame) {
	case BLAME_NONE:
		set_own_end(run);
		return;
	case BLAME_WALL:
		set_by_us(run, STATUS_TIMEOUT, LIMIT_WALL);
		return;
	case BLAME_CPU:
		set_by_us(run, STATUS_LIMIT, LIMIT_CPU);
		return;
	case BLAME_OUTPUT:
		set_by_us(run, STATUS_LIMIT, LIMIT_OUTPUT);
		return;
	case BLAME_DENIED:
		set_by_us(run, STATUS_DENIED, 0);
		return;
	case BLAME_CANCEL:
		set_cancelled(run);
		return;
	case BLAME_LOST:
		set_lost(run);
		return;
	case BLAME_PROTOCOL:
		if (run->started) {
			set_misbehaved(run, "box_protocol",
				"the box sent a message that has no place, and was killed");
			return;
		}
		break;
	default:
		break;
	}
	set_error(run);
}

static void set_timing(struct run *run)
{
	struct result *result = run->result;
	int64_t done = run_now();
	int64_t started = run->started ? run->started : done;
	uint64_t before = result->timing.setup_us == UNKNOWN ? 0 : result->timing.setup_us;
	result->timing.setup_us = before + (uint64_t)(started - run->begun) / 1000;
	if (!run->started)
		return;
	int64_t ended = run->ended ? run->ended : done;
	result->timing.run_us = (uint64_t)(ended - started) / 1000;
	result->timing.teardown_us = (uint64_t)(done - ended) / 1000;
}

int run_finish(struct run *run)
{
	struct result *result = run->result;
	set_timing(run);
	if (run->blame == BLAME_BROKEN)
		return -1;
	set_status(run);
	/* Whatever the end was put down to. */
	result->limits_hit |= limits_reached(run);
	/* Full to the last page at the end: then writes were refused. Less than that tells nothing.
	 */
	const uint64_t page = 4096, used = result->usage.disk_bytes;
	if (run->plan->root_size && used != UNKNOWN && used + page > run->plan->root_size)
		result->limits_hit |= LIMIT_DISK;
	return 0;
}
