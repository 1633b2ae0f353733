/* limits: which limits hold, and what holds them. */
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

/* Limits that only a control group holds get here only where best_effort lets them be missing. */
static void need_cgroup(
	struct builder *builder, const char *key, const struct policy_number *number)
{
	if (origin_set(&number->at))
		build_not_enforced(builder, key);
}

int build_limits(struct builder *builder)
{
	const struct policy_limits *limits = &builder->policy->limits;
	struct plan *plan = builder->plan;
	need_cgroup(builder, "limits.memory", &limits->memory);
	need_cgroup(builder, "limits.cpus", &limits->cpus_milli);
	need_cgroup(builder, "limits.cpu", &limits->cpu_us);
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
	 * one more for init, which is not the command's.
	 */
	if (limits->pids.value)
		rlimit(builder, RLIMIT_NPROC, limits->pids.value + 1, limits->pids.value + 1,
			"limits.pids");
	/* Only each process alone, where best_effort lets the sum go unheld; then SIGXCPU, then
	 * SIGKILL. */
	if (limits->cpu_us.value) {
		uint64_t seconds = (limits->cpu_us.value + 999999) / 1000000;
		rlimit(builder, RLIMIT_CPU, seconds, seconds + 1, "limits.cpu");
	}
	return 0;
}
