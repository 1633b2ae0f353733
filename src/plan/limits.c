/* limits: which limits hold, and what holds them. Those that a group holds are cgroup.c's. */
#define _GNU_SOURCE
#include "plan/build.h"

#include <stdint.h>

static void rlimit(
	struct builder *builder, int resource, uint64_t soft, uint64_t hard, const char *why)
{
	struct plan *plan = builder->plan;
	struct plan_rlimit *limit =
		arena_push(&plan->arena, &builder->rlimits, &plan->rlimit_count, sizeof *limit);
	limit->resource = resource;
	limit->limit = (struct rlimit){ .rlim_cur = soft, .rlim_max = hard };
	limit->why = why;
}

/*
 * Where a group counts the time of all, the supervisor ends the box at the limit, and this is the
 * second wall far behind it: for each process alone, and counted by the clock's ticks, which on a
 * busy host can be a third too much. Where best_effort lets the group be missing it is all there
 * is: SIGXCPU at the limit, SIGKILL a second later.
 */
static void cpu_limit(struct builder *builder)
{
	uint64_t us = builder->policy->limits.cpu_us.value;
	uint64_t seconds = (us + 999999) / 1000000;
	if (!us)
		return;
	if (builder->plan->cgroup.cpu_us)
		rlimit(builder, RLIMIT_CPU, 2 * seconds + 10, 2 * seconds + 10, "limits.cpu");
	else
		rlimit(builder, RLIMIT_CPU, seconds, seconds + 1, "limits.cpu");
}

int build_limits(struct builder *builder)
{
	const struct policy_limits *limits = &builder->policy->limits;
	struct plan *plan = builder->plan;
	plan->wall_us = limits->wall_us.value;
	plan->grace_us = 1000000;
	plan->output_max = limits->output.value;
	plan->output_kill = limits->output_action == OUTPUT_KILL;
	plan->oom_score_adj = "500";
	plan->umask = builder->host->umask;

	/*
	 * One byte, not none: core(5), a limit of 1 is the only one that keeps the kernel from
	 * starting the host's crash handler where core_pattern is a pipe. No file of one byte is
	 * ever written.
	 */
	rlimit(builder, RLIMIT_CORE, 1, 1, "no core files, no crash handler");
	if (limits->open_files.value)
		rlimit(builder, RLIMIT_NOFILE, limits->open_files.value, limits->open_files.value,
			"limits.open_files");
	if (limits->file_size.value)
		rlimit(builder, RLIMIT_FSIZE, limits->file_size.value, limits->file_size.value,
			"limits.file_size");
	/*
	 * Since Linux 5.14 RLIMIT_NPROC counts within the user namespace, so it is exact for a box;
	 * one more for init, which is not the command's, and one for the process that does its
	 * renames. Not beside a group that holds the same:
	 * only the group counts how often it refused, so nothing else may refuse first.
	 */
	if (limits->pids.value && !plan->cgroup.pids_max)
		rlimit(builder, RLIMIT_NPROC, limits->pids.value + plan_own_processes(plan),
			limits->pids.value + plan_own_processes(plan), "limits.pids");
	cpu_limit(builder);
	return 0;
}
