/*
 * limits: what the kernel counts for the box's control groups, and what of it means that a limit
 * was reached. Processor time is looked at while the command runs, and so is everything that no
 * group counts (watch.c), and whether the disk is full; all else once, after the box's end. Never
 * decides how the run ended: that is machine.c's and finish.c's.
 */
#define _GNU_SOURCE
#include "supervise/run.h"

#include <linux/magic.h>
#include <signal.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * Between two looks. At most so much is used beyond the limit, on all processors together, before
 * it is seen; a look costs some 10 us, so even the shortest interval is no load.
 */
#define LOOK_BEYOND_US 100000
#define LOOK_MIN_US    1000
#define LOOK_USUAL_US  5000 /* enough where there are few processors */
#define LOOK_MAX_US    1000000

/*
 * Between two looks at what no group counts. A box takes memory in at some GiB/s at most, so less
 * often is enough while little is used; and never do looks cost more than a part of the time.
 */
#define WATCH_MIN_US    10000
#define WATCH_MAX_US    250000
#define WATCH_BYTES_US  4096 /* bytes that may come in a microsecond */
#define WATCH_COST_PART 8

/*
 * Between two looks at the room that a private layer has. No box fills it faster, so it is looked
 * at often only when it is nearly full; and then it stays full for about as long, since tmpfs
 * counts the pages of a file that goes as used until the last of them is free.
 */
#define DISK_BYTES_US   4096  /* bytes that may come in a microsecond */
#define DISK_FREED_US   32768 /* bytes that may go */
#define DISK_LEAST_US   250
#define DISK_USUAL_US   2000
#define DISK_LONGEST_US 250000

static uint64_t counted(uint64_t number)
{
	return number == UNKNOWN ? 0 : number;
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

static bool runs(const struct run *run)
{
	return run->state == STATE_RUNNING || run->state == STATE_TERMINATING;
}

static int64_t time_due(const struct run *run)
{
	const struct plan_cgroup *plan = &run->plan->cgroup;
	if (!runs(run) || plan->kind == CGROUP_NONE || plan->cpu_us == 0)
		return NEVER;
	if (run->next_look)
		return run->next_look;
	return run->started + (int64_t)interval_us(plan->cpu_us, plan->cpu_width) * 1000;
}

/* Not at once: the shortest commands are over before it is of use. */
static int64_t watch_due(const struct run *run)
{
	const struct plan_watch *plan = &run->plan->watch;
	if (!runs(run) || (plan->memory_max == 0 && plan->cpu_us == 0))
		return NEVER;
	return run->next_watch ? run->next_watch : run->started + WATCH_MIN_US * INT64_C(1000);
}

/* `room` of `size` bytes is left; ns. */
static int64_t disk_wait(uint64_t room, uint64_t size)
{
	uint64_t us = room / DISK_BYTES_US, least = size / DISK_FREED_US;
	if (least > DISK_USUAL_US)
		least = DISK_USUAL_US;
	if (least < DISK_LEAST_US)
		least = DISK_LEAST_US;
	if (us < least)
		us = least;
	return (int64_t)(us < DISK_LONGEST_US ? us : DISK_LONGEST_US) * 1000;
}

/* Only a layer tells less at the end than it knew: overlayfs undoes a copy that found no room. */
static int64_t disk_due(const struct run *run)
{
	const struct plan *plan = run->plan;
	if (!runs(run) || run->box->layer_count == 0 || plan->layers[0].source ||
		run->result->limits_hit & LIMIT_DISK)
		return NEVER;
	return run->next_disk ? run->next_disk
			      : run->started + disk_wait(plan->root_size, plan->root_size);
}

int64_t limits_due(const struct run *run)
{
	int64_t time = time_due(run), watch = watch_due(run), disk = disk_due(run);
	if (watch < time)
		time = watch;
	return disk < time ? disk : time;
}

static void look_at_time(struct run *run)
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

/* 0 bytes or microseconds left: a limit was passed, or just reached. */
static uint64_t left_of(uint64_t max, uint64_t used)
{
	return used < max ? max - used : 0;
}

static uint64_t time_of(const struct watch_usage *is)
{
	return is->cpu_user_us + is->cpu_system_us;
}

static uint64_t watch_interval_us(
	const struct plan_watch *plan, const struct watch_usage *is, uint64_t cost_us)
{
	uint64_t wait = WATCH_MAX_US;
	if (plan->memory_max && left_of(plan->memory_max, is->memory_bytes) / WATCH_BYTES_US < wait)
		wait = left_of(plan->memory_max, is->memory_bytes) / WATCH_BYTES_US;
	if (plan->cpu_us && left_of(plan->cpu_us, time_of(is)) / plan->width < wait)
		wait = left_of(plan->cpu_us, time_of(is)) / plan->width;
	if (wait < WATCH_MIN_US)
		wait = WATCH_MIN_US;
	return wait > cost_us * WATCH_COST_PART ? wait : cost_us * WATCH_COST_PART;
}

/* The box goes as it would if the kernel had ended it for the limit. */
static void watch_over(struct run *run, unsigned limit)
{
	run->over |= limit;
	box_kill(run->box);
}

static void take_usage(struct run *run, unsigned wants, struct watch_usage *ret_is)
{
	struct watch_usage *seen = &run->seen;
	watch_look(run->watch, run->box->pid, wants, ret_is);
	if (wants & WATCH_CPU && time_of(ret_is) > time_of(seen)) {
		seen->cpu_user_us = ret_is->cpu_user_us;
		seen->cpu_system_us = ret_is->cpu_system_us;
	}
}

static void judge(struct run *run, const struct watch_usage *is)
{
	const struct plan_watch *plan = &run->plan->watch;
	if (is->memory_bytes > run->seen.memory_bytes)
		run->seen.memory_bytes = is->memory_bytes;
	/* Agentbox's own are not the command's. */
	if (plan->pids_max && is->tasks > plan->pids_max + plan_own_processes(run->plan))
		watch_over(run, LIMIT_PIDS);
	if (plan->memory_max && is->memory_bytes > plan->memory_max)
		watch_over(run, LIMIT_MEMORY);
	if (plan->cpu_us && time_of(is) >= plan->cpu_us) {
		run->result->limits_hit |= LIMIT_CPU;
		run_event(run, EVENT_CPU_LIMIT);
	}
}

/* Of the processor, in ns: what a look costs does not depend on who else is busy. */
static int64_t own_time(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void look_at_all(struct run *run)
{
	const struct plan_watch *plan = &run->plan->watch;
	int64_t begin = own_time();
	if (!run->watch)
		run->watch = watch_open("/proc", getpid());
	if (!run->watch) {
		run->next_watch = NEVER;
		result_warning(run->result, "limits_not_watched",
			"what the box uses could not be watched: /proc does not show it");
		return;
	}
	struct watch_usage is;
	take_usage(run, plan->cpu_us ? WATCH_CPU : 0, &is);
	/* With what is shared counted for each it may not be so much. */
	if (plan->memory_max && is.memory_bytes > plan->memory_max)
		take_usage(run, WATCH_CPU | WATCH_SHARES, &is);
	uint64_t cost_us = (uint64_t)(own_time() - begin) / 1000;
	run->next_watch = run_now() + (int64_t)watch_interval_us(plan, &is, cost_us) * 1000;
	judge(run, &is);
}

/* The layer is in the box's own file system. Full to the last page: then writes are refused. */
static void look_at_disk(struct run *run)
{
	struct statfs fs;
	uint64_t size = run->plan->root_size;
	run->next_disk = NEVER;
	if (fstatfs(run->box->layers[0], &fs) < 0 || (unsigned long)fs.f_type != TMPFS_MAGIC ||
		fs.f_blocks == 0)
		return;
	if (fs.f_bfree == 0)
		run->result->limits_hit |= LIMIT_DISK;
	else
		run->next_disk =
			run_now() + disk_wait((uint64_t)fs.f_bfree * (uint64_t)fs.f_bsize, size);
}

void limits_look(struct run *run)
{
	int64_t now = run_now();
	if (now >= time_due(run))
		look_at_time(run);
	if (now >= watch_due(run))
		look_at_all(run);
	if (now >= disk_due(run))
		look_at_disk(run);
}

/* Killed with its init, nobody has waited for the command: what was seen of it is all there is. */
static void read_seen(struct run *run)
{
	struct usage *usage = &run->result->usage;
	const struct watch_usage *seen = &run->seen;
	if (usage->cpu_user_us != UNKNOWN &&
		time_of(seen) > usage->cpu_user_us + usage->cpu_system_us) {
		usage->cpu_user_us = seen->cpu_user_us;
		usage->cpu_system_us = seen->cpu_system_us;
	}
	if (usage->memory_peak_bytes != UNKNOWN && seen->memory_bytes > usage->memory_peak_bytes)
		usage->memory_peak_bytes = seen->memory_bytes;
}

void limits_begin(struct run *run)
{
	if (run->box->joined && run->box->cgroup.plan)
		cgroup_read(&run->box->cgroup, false, &run->before);
}

/* The groups of a kept box count all of its commands: only what came with this one is its own. */
static void read_since(struct run *run)
{
	struct cgroup_counters is = CGROUP_NOTHING_COUNTED;
	if (run->box->cgroup.plan)
		cgroup_read(&run->box->cgroup, false, &is);
	run->counters.pids_peak = is.pids_peak;
	run->counters.oom_kills = left_of(counted(is.oom_kills), counted(run->before.oom_kills));
	run->counters.pids_refused =
		left_of(counted(is.pids_refused), counted(run->before.pids_refused));
}

void limits_read(struct run *run)
{
	read_seen(run);
	if (run->plan->cgroup.kind == CGROUP_NONE)
		return;
	if (run->box->joined) {
		read_since(run);
		return;
	}
	struct usage *usage = &run->result->usage;
	struct cgroup_counters *is = &run->counters;
	/* What init has waited for, which is everybody, is divided already. */
	bool divided = !run->have_ended || usage->cpu_user_us == UNKNOWN;
	cgroup_read(&run->box->cgroup, divided, is);
	/* v1 counts from where init enters; what was waited for is all of its making, too. */
	if (!divided && run->plan->cgroup.kind == CGROUP_V1 && is->cpu_us != UNKNOWN &&
		is->cpu_us < usage->cpu_user_us + usage->cpu_system_us)
		is->cpu_us = usage->cpu_user_us + usage->cpu_system_us;
	if (!divided && is->cpu_user_us == UNKNOWN && is->cpu_us != UNKNOWN)
		cgroup_divide(is->cpu_us, usage->cpu_user_us, usage->cpu_system_us, is);
	/* Both or neither, so that they are of one source. */
	if (is->cpu_user_us != UNKNOWN && is->cpu_system_us != UNKNOWN) {
		usage->cpu_user_us = is->cpu_user_us;
		usage->cpu_system_us = is->cpu_system_us;
	}
	if (is->memory_peak_bytes != UNKNOWN)
		usage->memory_peak_bytes = is->memory_peak_bytes;
	/* Init is not the command's, and neither is the process that renames, if there was one. */
	uint64_t own = run->renames.started ? 2 : 1;
	if (is->pids_peak != UNKNOWN && is->pids_peak >= own)
		usage->pids_peak = is->pids_peak - own;
	usage->read_bytes = is->read_bytes;
	usage->write_bytes = is->write_bytes;
}

/*
 * RLIMIT_CPU, the hard one, ends a process by a signal that anybody can send. Where it is what
 * holds the time, so much was used only if it, or what it holds, was passed.
 */
static bool ended_by_rlimit(const struct run *run)
{
	const struct usage *usage = &run->result->usage;
	uint64_t max = run->plan->watch.cpu_us;
	if (max == 0 || !run->have_ended || !WIFSIGNALED(run->how.wait_status) ||
		WTERMSIG(run->how.wait_status) != SIGKILL || usage->cpu_user_us == UNKNOWN)
		return false;
	return usage->cpu_user_us + usage->cpu_system_us >= max;
}

unsigned limits_reached(const struct run *run)
{
	const struct plan_cgroup *plan = &run->plan->cgroup;
	const struct cgroup_counters *is = &run->counters;
	unsigned reached = run->over;
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
	if (ended_by_rlimit(run))
		reached |= LIMIT_CPU;
	return reached;
}
