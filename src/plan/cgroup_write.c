/*
 * cgroup_write: what a group at a place that was found consists of: directories, what is enabled,
 * files with their values. Pure; carries nothing out.
 */
#define _GNU_SOURCE
#include "plan/cgroup.h"
#include "plan/cpulist.h"

#include <string.h>

/* A share of processors is a share of each tenth of a second, which is what a new group has. */
#define PERIOD_US 100000u

struct writing {
	struct builder *builder;
	struct plan_cgroup *cgroup;
	struct plan_cgroup_file *files;
};

static const char *text_of(struct writing *w, uint64_t value)
{
	return arena_printf(&w->builder->plan->arena, "%llu", (unsigned long long)value);
}

static struct plan_cgroup_file *put(
	struct writing *w, int group, const char *key, const char *file, const char *value)
{
	struct plan_cgroup_file *added = arena_push(
		&w->builder->plan->arena, &w->files, &w->cgroup->file_count, sizeof *added);
	*added = (struct plan_cgroup_file){
		.group = group, .file = file, .value = value, .key = key
	};
	w->cgroup->files = w->files;
	return added;
}

static uint64_t quota_us(const struct policy_limits *limits)
{
	return limits->cpus_milli.value * (PERIOD_US / 1000);
}

/*
 * A whole number of processors is also given as processors, when the machine has more: programs
 * then see how many threads are of use. Which ones differs from box to box, so that boxes spread.
 */
static const char *pinned(struct writing *w)
{
	const struct host *host = w->builder->host;
	uint64_t milli = w->builder->policy->limits.cpus_milli.value, count = milli / 1000;
	if (!milli || milli % 1000 || !host->cgroup.cpus)
		return NULL;
	return cpulist_pick(&w->builder->plan->arena, host->cgroup.cpus, (size_t)count,
		(uint64_t)host->cgroup.number * count);
}

/* With agentbox's own; but the kernel takes no more than its own largest number of processes. */
static uint64_t pids_max(const struct writing *w, const struct policy_limits *asked)
{
	const uint64_t kernel_max = 4194304; /* PID_MAX_LIMIT */
	uint64_t own = plan_own_processes(w->builder->plan);
	return asked->pids.value < kernel_max - own ? asked->pids.value + own : kernel_max;
}

/* "+memory +pids"; NULL for none. */
static const char *enabling(struct arena *arena, unsigned set)
{
	const char *text = NULL;
	for (int i = 0; i < CONTROLLER_COUNT_; i++)
		if (set & 1u << i)
			text = arena_printf(arena, "%s%s+%s", text ? text : "", text ? " " : "",
				host_controller_name(i));
	return text;
}

static void write_v2(struct writing *w, const struct cgroup_place *place, unsigned limits)
{
	const struct policy_limits *asked = &w->builder->policy->limits;
	const struct host_cgroup_level *level = place->level;
	struct plan_cgroup *cgroup = w->cgroup;
	struct arena *arena = &w->builder->plan->arena;
	const char *cpus = limits & LIMIT_CPUS ? pinned(w) : NULL;
	/* Beside what must be there: what is of use and costs nothing more. */
	unsigned wanted = (asked->pids.value ? 1u << CONTROLLER_PIDS : 0) |
			  (cpus ? 1u << CONTROLLER_CPUSET : 0);
	unsigned enable = place->missing;
	if (place->free)
		enable |= wanted & level->available & ~level->enabled;
	unsigned there = level->enabled | enable;
	cgroup->parents[0] = level->dir;
	cgroup->count = 1;
	cgroup->leaf = place->leaf ? HOST_CGROUP_LEAF : NULL;
	cgroup->enable = enabling(arena, enable);
	cgroup->memory = there & 1u << CONTROLLER_MEMORY ? 0 : -1;
	cgroup->pids = there & 1u << CONTROLLER_PIDS ? 0 : -1;
	cgroup->cpu = there & 1u << CONTROLLER_CPU ? 0 : -1;
	cgroup->cpuacct = 0;
	if (limits & LIMIT_MEMORY) {
		put(w, 0, "limits.memory", "memory.max", text_of(w, asked->memory.value));
		put(w, 0, "limits.memory", "memory.swap.max", "0")->optional = true;
	}
	if (asked->pids.value && cgroup->pids == 0)
		put(w, 0, "limits.pids", "pids.max", text_of(w, pids_max(w, asked)));
	if (limits & LIMIT_CPUS)
		put(w, 0, "limits.cpus", "cpu.max",
			arena_printf(
				arena, "%llu %u", (unsigned long long)quota_us(asked), PERIOD_US));
	if (cpus && there & 1u << CONTROLLER_CPUSET)
		put(w, 0, "limits.cpus", "cpuset.cpus", cpus)->optional = true;
}

/* The index of the group in the hierarchy that has the controller; hierarchies may have several. */
static int group_v1(struct writing *w, enum host_controller controller)
{
	const struct host_cgroup_v1 *v1 = &w->builder->host->cgroup.v1[controller];
	struct plan_cgroup *cgroup = w->cgroup;
	for (size_t i = 0; i < cgroup->count; i++)
		if (strcmp(cgroup->controllers[i], v1->mounted) == 0)
			return (int)i;
	cgroup->parents[cgroup->count] = v1->dir;
	cgroup->controllers[cgroup->count] = v1->mounted;
	return (int)cgroup->count++;
}

/* A hierarchy that is used anyway also counts what else it can. */
static int counted_v1(struct writing *w, enum host_controller controller)
{
	const char *mounted = w->builder->host->cgroup.v1[controller].mounted;
	for (size_t i = 0; mounted && i < w->cgroup->count; i++)
		if (strcmp(w->cgroup->controllers[i], mounted) == 0)
			return (int)i;
	return -1;
}

static void write_v1(struct writing *w, unsigned limits)
{
	const struct policy_limits *asked = &w->builder->policy->limits;
	const struct host_cgroup_v1 *v1 = w->builder->host->cgroup.v1;
	struct plan_cgroup *cgroup = w->cgroup;
	int group;
	if (limits & LIMIT_MEMORY) {
		group = group_v1(w, CONTROLLER_MEMORY);
		const char *bytes = text_of(w, asked->memory.value);
		put(w, group, "limits.memory", "memory.limit_in_bytes", bytes);
		put(w, group, "limits.memory", "memory.memsw.limit_in_bytes", bytes)->optional =
			true;
	}
	if (asked->pids.value && v1[CONTROLLER_PIDS].dir && v1[CONTROLLER_PIDS].writable)
		put(w, group_v1(w, CONTROLLER_PIDS), "limits.pids", "pids.max",
			text_of(w, pids_max(w, asked)));
	if (limits & LIMIT_CPUS) {
		group = group_v1(w, CONTROLLER_CPU);
		put(w, group, "limits.cpus", "cpu.cfs_quota_us", text_of(w, quota_us(asked)));
	}
	if (limits & LIMIT_CPU)
		(void)group_v1(w, CONTROLLER_CPUACCT);
	const struct host_cgroup_v1 *set = &v1[CONTROLLER_CPUSET];
	const char *cpus = limits & LIMIT_CPUS ? pinned(w) : NULL;
	if (cpus && set->dir && set->writable && set->mems && *set->mems) {
		group = group_v1(w, CONTROLLER_CPUSET);
		put(w, group, "limits.cpus", "cpuset.mems", set->mems);
		put(w, group, "limits.cpus", "cpuset.cpus", cpus);
	} else if ((group = counted_v1(w, CONTROLLER_CPUSET)) >= 0) {
		/* In one hierarchy with another controller: nobody enters while these are empty. */
		const char *key = limits & LIMIT_MEMORY ? "limits.memory"
				  : limits & LIMIT_CPUS ? "limits.cpus"
				  : limits & LIMIT_CPU  ? "limits.cpu"
							: "limits.pids";
		put(w, group, key, "cpuset.mems", set->mems);
		put(w, group, key, "cpuset.cpus", set->cpus);
	}
	cgroup->memory = counted_v1(w, CONTROLLER_MEMORY);
	cgroup->pids = counted_v1(w, CONTROLLER_PIDS);
	cgroup->cpu = counted_v1(w, CONTROLLER_CPU);
	cgroup->cpuacct = counted_v1(w, CONTROLLER_CPUACCT);
}

void cgroup_write(struct builder *builder, const struct cgroup_place *place, unsigned limits)
{
	const struct policy_limits *asked = &builder->policy->limits;
	const struct host *host = builder->host;
	struct plan_cgroup *cgroup = &builder->plan->cgroup;
	struct writing w = { .builder = builder, .cgroup = cgroup };
	cgroup->kind = place->kind;
	cgroup->name = arena_printf(&builder->plan->arena, "agentbox-%d-%llu", (int)host->pid,
		(unsigned long long)host->cgroup.number);
	if (place->kind == CGROUP_V2)
		write_v2(&w, place, limits);
	else
		write_v1(&w, limits);
	cgroup->memory_max = limits & LIMIT_MEMORY ? asked->memory.value : 0;
	cgroup->pids_max = cgroup->pids >= 0 ? asked->pids.value : 0;
	cgroup->cpu_us = limits & LIMIT_CPU ? asked->cpu_us.value : 0;
	uint64_t width = (asked->cpus_milli.value + 999) / 1000;
	if (limits & LIMIT_CPUS && width < cgroup->cpu_width)
		cgroup->cpu_width = (unsigned)width;
}
