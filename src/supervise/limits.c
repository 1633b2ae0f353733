/*
 * limits: what the kernel counts for the box's control groups, and what of it means that a limit
 * was reached. Processor time is looked at while the command runs, everything else once, after the
 * box's end. Never decides how the run ended: that is machine.c's and finish.c's.
 */
#define _GNU_SOURCE
#include "supervise/run.h"

/*
 * Between two looks. At most so much is used beyond the limit, on all processors together, before
 * it is seen; a look costs some 10 us, so even the shortest interval is no load.
 */
#define LOOK_BEYOND_US 100000
#define LOOK_MIN_US    1000
#define LOOK_USUAL_US  5000 /* enough where there are few processors */
#define LOOK_MAX_US    1000000

static uint64_t counted(uint64_t number)
{
	return number == UNKNOWN ? 0 : number;
}

int64_t limits_due(const struct run *run)
{
	const struct plan_cgroup *plan = &run->plan->cgroup;
	bool runs = run->state == STATE_RUNNING || run->state == STATE_TERMINATING;
	return runs && plan->kind != CGROUP_NONE && plan->cpu_us ? run->next_look : NEVER;
}

/* Even on all its processors at once the box cannot have used the rest before that. */
static uint64_t interval_us(uint64_t left, unsigned width)
{
	if (width == 0)
		width = 1;
	uint64_t least = LOOK_BEYOND_US / width, wait = left / width;
	if (least > LOOK_USUAL_US)
		least = LOOK_USUAL_US;
	if (least < LOOK_MIN_US)
		least = LOOK_MIN_US;
	if (wait < least)
		return least;
	return wait < LOOK_MAX_US ? wait : LOOK_MAX_US;
}

void limits_look(struct run *run)
{
	const struct plan_cgroup *plan = &run->plan->cgroup;
	uint64_t used = 0;
	int r = cgroup_cpu_time(&run->box->cgroup, &used);
	if (r < 0) {
		/* A limit that cannot be watched any more does not hold. */
		run_broken(run, ERR_no_resources, -r,
			"limits.cpu: the processor time of the box cannot be read");
		return;
	}
	if (used >= plan->cpu_us) {
		/* Said here, for the end may already be put down to something else. */
		run->result->limits_hit |= LIMIT_CPU;
		run_event(run, EVENT_CPU_LIMIT);
		return;
	}
	uint64_t wait = interval_us(plan->cpu_us - used, plan->cpu_width);
	run->next_look = run_now() + (int64_t)wait * 1000;
}

void limits_read(struct run *run)
{
	if (run->plan->cgroup.kind == CGROUP_NONE)
		return;
	struct usage *usage = &run->result->usage;
	struct cgroup_counters *is = &run->counters;
	cgroup_read(&run->box->cgroup, is);
	/* Both or neither, so that they are of one source. */
	if (is->cpu_user_us != UNKNOWN && is->cpu_system_us != UNKNOWN) {
		usage->cpu_user_us = is->cpu_user_us;
		usage->cpu_system_us = is->cpu_system_us;
	}
	if (is->memory_peak_bytes != UNKNOWN)
		usage->memory_peak_bytes = is->memory_peak_bytes;
	/* Init is not the command's. */
	if (is->pids_peak != UNKNOWN && is->pids_peak > 0)
		usage->pids_peak = is->pids_peak - 1;
	usage->read_bytes = is->read_bytes;
	usage->write_bytes = is->write_bytes;
}

unsigned limits_reached(const struct run *run)
{
	const struct plan_cgroup *plan = &run->plan->cgroup;
	const struct cgroup_counters *is = &run->counters;
	unsigned reached = 0;
	/* Without a limit of ours somebody else's was reached, further up or the whole host's. */
	if (plan->memory_max && counted(is->oom_kills))
		reached |= LIMIT_MEMORY;
	/*
	 * Before Linux 6.11 a v2 group, and a v1 group still, counts what a group above it refused;
	 * but then there were fewer than ours takes. The peak is not exact to the last one; an
	 * unknown one is larger than all.
	 */
	if (plan->pids_max && counted(is->pids_refused) && is->pids_peak >= plan->pids_max)
		reached |= LIMIT_PIDS;
	return reached;
}
