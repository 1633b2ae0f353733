/*
 * cgroup: which of the policy's limits control groups hold, and where the groups are made. Decides
 * from the host's facts; what is written into the groups is cgroup_write.c.
 *
 * A v2 group can have controllers for the groups below it or processes of its own, not both; so a
 * group for the box can be made in the own one only where nobody else is, or above it. There is no
 * way around systemd or whoever else owns the tree: what is not handed over is not touched.
 */
#define _GNU_SOURCE
#include "plan/cgroup.h"

#include <string.h>

/* Processor time is counted by every v2 group, without a controller. */
static unsigned controllers(unsigned limits, bool v1)
{
	unsigned need = 0;
	if (limits & LIMIT_MEMORY)
		need |= 1u << CONTROLLER_MEMORY;
	if (limits & LIMIT_CPUS)
		need |= 1u << CONTROLLER_CPU;
	if (limits & LIMIT_PIDS)
		need |= 1u << CONTROLLER_PIDS;
	if (limits & LIMIT_CPU && v1)
		need |= 1u << CONTROLLER_CPUACCT;
	return need;
}

/* May the caller make groups at this level at all? Only for its own side of the tree. */
static bool is_ours(const struct host *host, size_t index)
{
	const struct host_cgroup *cgroup = &host->cgroup;
	if (!cgroup->levels[index].writable)
		return false;
	if (!host->root)
		return cgroup->levels[index].owned;
	if (index == 0)
		return true;
	const char *name = strrchr(cgroup->levels[0].dir, '/');
	if (index == 1 && name && strcmp(name + 1, HOST_CGROUP_LEAF) == 0)
		return true;
	for (size_t i = index; i < cgroup->level_count; i++)
		if (cgroup->levels[i].delegated)
			return true;
	return false;
}

static bool find_v2(const struct host *host, unsigned need, struct cgroup_place *ret_place)
{
	const struct host_cgroup *cgroup = &host->cgroup;
	for (size_t i = 0; i < cgroup->level_count && is_ours(host, i); i++) {
		const struct host_cgroup_level *level = &cgroup->levels[i];
		struct cgroup_place place = { .kind = CGROUP_V2, .level = level };
		place.missing = need & ~level->enabled;
		place.free = level->root || level->processes == 0;
		/* The one process of the own group is this one. */
		place.leaf = place.missing && !place.free && i == 0 && level->processes == 1;
		place.free = place.free || place.leaf;
		if (!level->domain || place.missing & ~level->available ||
			(place.missing && !place.free))
			continue;
		*ret_place = place;
		return true;
	}
	return false;
}

static bool find_v1(const struct host *host, unsigned need, struct cgroup_place *ret_place)
{
	for (int i = 0; i < CONTROLLER_COUNT_; i++) {
		const struct host_cgroup_v1 *v1 = &host->cgroup.v1[i];
		if (need & 1u << i && !(v1->dir && v1->writable))
			return false;
	}
	*ret_place = (struct cgroup_place){ .kind = CGROUP_V1 };
	return true;
}

bool cgroup_find(const struct host *host, unsigned limits, struct cgroup_place *ret_place)
{
	return find_v2(host, controllers(limits, false), ret_place) ||
	       find_v1(host, controllers(limits, true), ret_place);
}

static const char *why_not_v1(const struct host *host, unsigned need, struct arena *arena)
{
	for (int i = 0; i < CONTROLLER_COUNT_; i++) {
		const struct host_cgroup_v1 *v1 = &host->cgroup.v1[i];
		if (!(need & 1u << i))
			continue;
		if (!v1->dir)
			return arena_printf(arena,
				"this host has no control groups for %s in reach",
				host_controller_name(i));
		if (!v1->writable)
			return arena_printf(arena, "%s may not be written", v1->dir);
	}
	return "no hierarchy has all that is asked for";
}

const char *cgroup_why_not(const struct host *host, unsigned limits, struct arena *arena)
{
	const struct host_cgroup *cgroup = &host->cgroup;
	unsigned need = controllers(limits, false);
	const struct host_cgroup_level *own = &cgroup->levels[0];
	bool in_v1 = false, in_v2 = cgroup->level_count > 0;
	for (int i = 0; i < CONTROLLER_COUNT_; i++)
		in_v1 = in_v1 || (need & 1u << i && cgroup->v1[i].dir);
	if (in_v1 || (!in_v2 && cgroup->v1[CONTROLLER_CPUACCT].dir))
		return why_not_v1(host, controllers(limits, true), arena);
	if (!in_v2)
		return "this host has no control groups in reach";
	if (!own->writable)
		return arena_printf(arena, "%s may not be written", own->dir);
	if (!is_ours(host, 0))
		return arena_printf(arena, "%s belongs to another user", own->dir);
	if (!own->domain)
		return arena_printf(arena, "%s is a threaded group", own->dir);
	unsigned available = 0;
	for (size_t i = 0; i < cgroup->level_count && is_ours(host, i); i++)
		available |= cgroup->levels[i].available;
	for (int i = 0; i < CONTROLLER_COUNT_; i++)
		if (need & ~available & 1u << i)
			return arena_printf(arena, "%s has no controller %s", own->dir,
				host_controller_name(i));
	return arena_printf(arena, "%s has other processes in it", own->dir);
}

static int refuse(struct builder *builder, const char *key, const struct origin *at, unsigned limit)
{
	const struct host *host = builder->host;
	struct cgroup_place alone;
	build_refuse(builder, ERR_cgroup_unavailable, at,
		"'%s' needs a control group, and none can be made: %s", key,
		cgroup_find(host, limit, &alone)
			? "this host has its controller in another hierarchy than those of the "
			  "other limits"
			: cgroup_why_not(host, limit, &builder->plan->arena));
	if (host->cgroup.systemd)
		return err_hint_set(builder->err,
			"systemd-run %s--scope -p Delegate=yes agentbox run ... gives it a group "
			"of "
			"its own; or best_effort: [cgroup]",
			host->root ? "" : "--user ");
	if (host->cgroup.level_count && is_ours(host, 0))
		return err_hint_set(builder->err,
			"start agentbox in a control group that has no other process; or "
			"best_effort: [cgroup]");
	return err_hint_set(builder->err,
		host->root ? "have the control groups mounted writable; or best_effort: [cgroup]"
			   : "have a control group delegated to you (cgroups(7)), or run agentbox "
			     "as root; or best_effort: [cgroup]");
}

/* The supervisor holds what it can of what no group does; cpus it cannot. */
static void watch(struct builder *builder, unsigned let_go)
{
	const struct policy_limits *limits = &builder->policy->limits;
	struct plan_watch *watch = &builder->plan->watch;
	watch->memory_max = let_go & LIMIT_MEMORY ? limits->memory.value : 0;
	watch->cpu_us = let_go & LIMIT_CPU ? limits->cpu_us.value : 0;
	watch->width = builder->plan->cgroup.cpu_width;
	/* RLIMIT_NPROC holds them; where an old kernel lets more pass it is seen. */
	if (watch->memory_max || watch->cpu_us)
		watch->pids_max = builder->plan->cgroup.pids_max ? 0 : limits->pids.value;
}

/* What is held by nothing else is held here, or refused, or named. */
int build_cgroup(struct builder *builder)
{
	const struct policy_limits *limits = &builder->policy->limits;
	const struct host *host = builder->host;
	const struct {
		unsigned limit;
		const char *key;
		const struct policy_number *number;
	} rows[] = {
		{ LIMIT_MEMORY, "limits.memory", &limits->memory },
		{ LIMIT_CPUS, "limits.cpus", &limits->cpus_milli },
		{ LIMIT_CPU, "limits.cpu", &limits->cpu_us },
	};
	struct plan_cgroup *cgroup = &builder->plan->cgroup;
	struct cgroup_place place = { 0 };
	unsigned held = 0, let_go = 0;
	cgroup->memory = cgroup->pids = cgroup->cpu = cgroup->cpuacct = -1;
	/* Unknown is as many as limits.cpus can be, which only means to look more often. */
	cgroup->cpu_width = host->cgroup.online ? host->cgroup.online : 1024;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (!rows[i].number->value)
			continue;
		unsigned more = held | rows[i].limit;
		if (cgroup_find(host, more, &place)) {
			held = more;
			continue;
		}
		if (!policy_best_effort(builder->policy, "cgroup"))
			return refuse(builder, rows[i].key, &rows[i].number->at, rows[i].limit);
		build_not_enforced(builder, rows[i].key);
		let_go |= rows[i].limit;
	}
	/* Where no group can, RLIMIT_NPROC holds the number of processes. */
	if (host_cgroup_pids_asked(builder->policy) && cgroup_find(host, held | LIMIT_PIDS, &place))
		held |= LIMIT_PIDS;
	if (held)
		cgroup_write(builder, &place, held);
	watch(builder, let_go);
	return 0;
}
