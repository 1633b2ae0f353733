/*
 * own_groups: where a test of control groups may make some, which is below the groups that it runs
 * in, and plans for them.
 */
#ifndef AGENTBOX_TESTS_OWN_GROUPS_H
#define AGENTBOX_TESTS_OWN_GROUPS_H

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plan/plan.h"

enum { MEMORY, PIDS, CPU, CPUACCT, V2, PLACES };
static const char *const names[PLACES] = { "memory", "pids", "cpu", "cpuacct", "" };
static char places[PLACES][PATH_MAX]; /* "": there is none that can be used */
static char group_name[64];

/* The mount point and root of a hierarchy; for v2 "" asks. */
static inline bool find_mount(const char *controller, char point[PATH_MAX], char root[PATH_MAX])
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[8192], type[64], options[1024], want[80];
	bool found = false;
	snprintf(want, sizeof want, ",%s,", controller);
	while (file && !found && fgets(line, sizeof line, file)) {
		char *rest = strstr(line, " - "), held[1100];
		if (!rest || sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) != 2 ||
			sscanf(rest, " - %63s %*s %1023s", type, options) != 2)
			continue;
		snprintf(held, sizeof held, ",%s,", options);
		found = *controller ? strcmp(type, "cgroup") == 0 && strstr(held, want)
				    : strcmp(type, "cgroup2") == 0;
	}
	if (file)
		fclose(file);
	return found;
}

/* The own group's path in a hierarchy. */
static inline bool find_own(const char *controller, char path[PATH_MAX])
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX + 256], want[80];
	bool found = false;
	snprintf(want, sizeof want, ",%s,", controller);
	while (file && !found && fgets(line, sizeof line, file)) {
		char *words = strchr(line, ':'), *own = words ? strchr(words + 1, ':') : NULL;
		if (!own)
			continue;
		char held[300];
		snprintf(held, sizeof held, ",%.*s,", (int)(own - words - 1), words + 1);
		found = *controller ? strstr(held, want) != NULL : own == words + 1;
		own[strcspn(own, "\n")] = 0;
		snprintf(path, PATH_MAX, "%.*s", PATH_MAX - 1, own + 1);
	}
	if (file)
		fclose(file);
	return found;
}

static inline void find_places(void)
{
	for (int i = 0; i < PLACES; i++) {
		char point[PATH_MAX], root[PATH_MAX], own[PATH_MAX];
		if (!find_mount(names[i], point, root) || !find_own(names[i], own) ||
			strcmp(root, "/") != 0)
			continue;
		snprintf(places[i], sizeof places[i], "%.2000s%.2000s", point,
			strcmp(own, "/") == 0 ? "" : own);
		char probe[PATH_MAX + 32];
		snprintf(probe, sizeof probe, "%.4095s/abx-probe-%d", places[i], (int)getpid());
		if (mkdir(probe, 0755) < 0 || rmdir(probe) < 0)
			places[i][0] = 0;
		for (int k = 0; k < i; k++) /* cpu,cpuacct is one */
			if (strcmp(places[k], places[i]) == 0)
				places[i][0] = 0;
	}
	snprintf(group_name, sizeof group_name, "abx-test-%d", (int)getpid());
}

static inline bool is_there(int place)
{
	char path[PATH_MAX + 80];
	snprintf(path, sizeof path, "%.4095s/%s", places[place], group_name);
	return access(path, F_OK) == 0;
}

static inline bool any_left(void)
{
	for (int i = 0; i < PLACES; i++)
		if (places[i][0] && is_there(i))
			return true;
	return false;
}

/* Descriptors are given back, too. */
static inline int open_descriptors(void)
{
	int count = 0;
	DIR *dir = opendir("/proc/self/fd");
	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

/* A plan with v1 groups for these places. */
static inline struct plan v1_plan(const int *which, size_t count)
{
	struct plan plan = { 0 };
	struct plan_cgroup *cgroup = &plan.cgroup;
	cgroup->kind = CGROUP_V1;
	cgroup->name = group_name;
	cgroup->memory = cgroup->pids = cgroup->cpu = cgroup->cpuacct = -1;
	for (size_t i = 0; i < count; i++) {
		int *index = which[i] == MEMORY ? &cgroup->memory
			     : which[i] == PIDS ? &cgroup->pids
			     : which[i] == CPU  ? &cgroup->cpu
						: &cgroup->cpuacct;
		*index = (int)i;
		cgroup->parents[i] = places[which[i]];
		cgroup->controllers[i] = names[which[i]];
	}
	cgroup->count = count;
	return plan;
}

static inline struct plan v2_plan(void)
{
	struct plan plan = { 0 };
	plan.cgroup = (struct plan_cgroup){ .kind = CGROUP_V2,
		.parents = { places[V2] },
		.count = 1,
		.name = group_name,
		.memory = -1,
		.pids = -1,
		.cpu = -1,
		.cpuacct = -1 };
	return plan;
}

#endif
