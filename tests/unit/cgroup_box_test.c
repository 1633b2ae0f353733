/*
 * Control groups as a box has them: made, entered, read, removed, below the groups that this test
 * runs in; and nothing left, whatever fails. Boxes in them are in cgroup_enter_test.c. Needs root,
 * and v1 or v2; else it is skipped.
 */
#define _GNU_SOURCE
#include "box/cgroup.h"
#include "box/stages.h"
#include "base/fd.h"
#include "base/sys.h"
#include "check.h"
#include "own_groups.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void sleep_ms(int ms)
{
	poll(NULL, 0, ms);
}

/* A child in the v1 groups that does something there; its wait status. */
static int in_groups(const struct cgroup *groups, void (*work)(void))
{
	pid_t pid = fork();
	if (pid == 0) {
		for (size_t i = 0; i < PLAN_CGROUPS_MAX; i++)
			if (groups->tasks[i] >= 0 && write(groups->tasks[i], "0", 1) != 1)
				_exit(99);
		work();
		_exit(0);
	}
	int status = -1;
	waitpid(pid, &status, 0);
	return status;
}

static void use_processor(void)
{
	struct timespec used;
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	while (used.tv_nsec < 30000000 && used.tv_sec == 0);
}

static void fork_too_often(void)
{
	for (int i = 0; i < 4; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			sleep_ms(50);
			_exit(0);
		}
		if (pid < 0 && errno == EAGAIN)
			_exit(7);
	}
}

static void use_memory(void)
{
	size_t size = 64u << 20;
	char *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; data != MAP_FAILED && i < size; i += 4096)
		((volatile char *)data)[i] = 1;
}

static void v1_memory_is_held(void)
{
	static const struct plan_cgroup_file files[] = {
		{ 0, "memory.limit_in_bytes", "8388608", false, "limits.memory" },
		{ 0, "memory.memsw.limit_in_bytes", "8388608", true, "limits.memory" },
		{ 0, "memory.there_is_no_such_file", "1", true, "limits.memory" },
	};
	if (!places[MEMORY][0])
		return;
	struct plan plan = v1_plan((int[]){ MEMORY }, 1);
	plan.cgroup.files = files;
	plan.cgroup.file_count = COUNT(files);
	struct cgroup groups;
	struct err err = { 0 };
	CHECK(cgroup_make(&plan, &groups, &err) == 0);
	CHECK(is_there(MEMORY));
	int status = in_groups(&groups, use_memory);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	struct cgroup_counters counters;
	cgroup_read(&groups, true, &counters);
	CHECK(counters.oom_kills == 1);
	CHECK(counters.memory_peak_bytes > 4u << 20 && counters.memory_peak_bytes <= 8u << 20);
	CHECK(counters.pids_peak == UINT64_MAX && counters.cpu_user_us == UINT64_MAX);
	uint64_t us;
	CHECK(cgroup_cpu_time(&groups, &us) == -ENODATA);
	CHECK(cgroup_remove(&groups) == 0);
	CHECK(!any_left());
}

static void v1_pids_are_held(void)
{
	static const struct plan_cgroup_file files[] = { { 0, "pids.max", "3", false,
		"limits.pids" } };
	if (!places[PIDS][0])
		return;
	struct plan plan = v1_plan((int[]){ PIDS }, 1);
	plan.cgroup.files = files;
	plan.cgroup.file_count = 1;
	struct cgroup groups;
	struct err err = { 0 };
	CHECK(cgroup_make(&plan, &groups, &err) == 0);
	int status = in_groups(&groups, fork_too_often);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	struct cgroup_counters counters;
	cgroup_read(&groups, true, &counters);
	CHECK(counters.pids_refused == 1);
	CHECK(counters.pids_peak == 3 || counters.pids_peak == UINT64_MAX);
	/* Two grandchildren still sleep there: removing waits for them. */
	CHECK(cgroup_remove(&groups) == 0);
	CHECK(!any_left());
}

static void v1_time_is_counted(void)
{
	if (!places[CPUACCT][0])
		return;
	struct plan plan = v1_plan((int[]){ CPUACCT }, 1);
	struct cgroup groups;
	struct err err = { 0 };
	CHECK(cgroup_make(&plan, &groups, &err) == 0);
	uint64_t us = 1;
	CHECK(cgroup_cpu_time(&groups, &us) == 0 && us == 0);
	CHECK(in_groups(&groups, use_processor) == 0);
	CHECK(cgroup_cpu_time(&groups, &us) == 0 && us >= 29000 && us < 5000000);
	struct cgroup_counters counters;
	cgroup_read(&groups, true, &counters);
	uint64_t both = counters.cpu_user_us + counters.cpu_system_us;
	CHECK(both == us);
	CHECK(cgroup_remove(&groups) == 0);
	CHECK(!any_left());
}

/* The last of several cannot be made as planned: the first ones go as well. */
static void a_failure_leaves_nothing(void)
{
	static const struct plan_cgroup_file refused[] = {
		{ 0, "cgroup.clone_children", "0", false, "limits.memory" },
		{ 1, "pids.max", "many", false, "limits.pids" },
	};
	static const struct plan_cgroup_file missing[] = {
		{ 1, "pids.there_is_no_such_file", "1", false, "limits.pids" },
	};
	if (!places[MEMORY][0] || !places[PIDS][0])
		return;
	struct plan plan = v1_plan((int[]){ MEMORY, PIDS }, 2);
	struct cgroup groups;
	struct err err = { 0 };
	plan.cgroup.files = refused;
	plan.cgroup.file_count = COUNT(refused);
	CHECK(cgroup_make(&plan, &groups, &err) == -1);
	CHECK(err.code == ERR_limit_refused && err.errnum == EINVAL);
	CHECK(strncmp(err.text, "limits.pids (/", 14) == 0 && strstr(err.text, "/pids.max)"));
	CHECK(!any_left());
	plan.cgroup.files = missing;
	plan.cgroup.file_count = COUNT(missing);
	CHECK(cgroup_make(&plan, &groups, &err) == -1);
	CHECK(err.code == ERR_cgroup_unavailable && err.errnum == ENOENT);
	CHECK(!any_left());
	plan.cgroup.parents[1] = "/sys/fs/cgroup/there-is/no-such-group";
	plan.cgroup.files = refused;
	plan.cgroup.file_count = COUNT(refused);
	CHECK(cgroup_make(&plan, &groups, &err) == -1);
	CHECK(err.code == ERR_cgroup_unavailable && err.errnum == ENOENT);
	CHECK_TEXT(err.text, "limits.pids (/sys/fs/cgroup/there-is/no-such-group)");
	CHECK(!any_left());
	/* No group's directory at all: nothing is made there. */
	char place[] = "/tmp/abx-cgroup-XXXXXX";
	CHECK(mkdtemp(place) != NULL);
	plan.cgroup.parents[1] = place;
	CHECK(cgroup_make(&plan, &groups, &err) == -1);
	CHECK(err.code == ERR_cgroup_unavailable && err.errnum == EOPNOTSUPP);
	CHECK(!any_left());
	CHECK(rmdir(place) == 0);
}

static void the_living_are_left_alone(void)
{
	int place = places[PIDS][0] ? PIDS : V2;
	if (!places[place][0])
		return;
	struct plan plan = place == V2 ? v2_plan() : v1_plan((int[]){ PIDS }, 1);
	char path[PATH_MAX + 80];
	snprintf(path, sizeof path, "%s/%s", places[place], group_name);
	struct cgroup groups, other;
	struct err err = { 0 };
	CHECK(cgroup_remove_at(AT_FDCWD, path) == 0);
	/* One that was left by a killed process of the same name is replaced. */
	CHECK(mkdir(path, 0755) == 0);
	CHECK(cgroup_make(&plan, &groups, &err) == 0);
	/* One whose maker is alive is not. */
	CHECK(cgroup_remove_at(AT_FDCWD, path) == -EBUSY);
	CHECK(cgroup_make(&plan, &other, &err) == -1);
	CHECK(err.code == ERR_cgroup_unavailable && err.errnum == EBUSY);
	CHECK(is_there(place));
	struct stat st;
	CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0755);
	/* As if the maker was killed. */
	fd_close(&groups.dir[0]);
	fd_close(&groups.parent[0]);
	fd_close(&groups.tasks[0]);
	CHECK(cgroup_remove_at(AT_FDCWD, path) == 0);
	CHECK(!any_left());
}

static void v2_kills_what_is_left(void)
{
	if (!places[V2][0])
		return;
	struct plan plan = v2_plan();
	struct cgroup groups;
	struct err err = { 0 };
	CHECK(cgroup_make(&plan, &groups, &err) == 0);
	struct sys_clone_args args = { .flags = SYS_CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)groups.dir[0] };
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
	if (pid == 0) {
		close(groups.dir[0]); /* and its share in the lock, as init does */
		sleep_ms(20000);
		_exit(0);
	}
	CHECK(pid > 0);
	uint64_t us;
	CHECK(cgroup_cpu_time(&groups, &us) == 0);
	/* Busy for more than the second that is waited. */
	char path[PATH_MAX + 80];
	snprintf(path, sizeof path, "%s/%s", places[V2], group_name);
	struct cgroup copy = groups;
	copy.dir[0] = dup(groups.dir[0]);
	copy.parent[0] = dup(groups.parent[0]);
	CHECK(cgroup_remove(&copy) == -EBUSY);
	CHECK(is_there(V2));
	fd_close(&groups.dir[0]);
	fd_close(&groups.parent[0]);
	CHECK(cgroup_remove_at(AT_FDCWD, path) == 0);
	int status = 0;
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	CHECK(!any_left());
}

/* What a process of the v2 group `top` sees when its controllers are to be handed down. */
static void make_below(const char *top)
{
	struct plan plan = v2_plan();
	struct cgroup groups;
	struct err err = { 0 };
	char own[PATH_MAX], leaf[PATH_MAX + 100];
	snprintf(leaf, sizeof leaf, "%s/abx-self", top);
	plan.cgroup.parents[0] = top;
	plan.cgroup.leaf = "abx-self";
	plan.cgroup.enable = "+no-such-controller";
	CHECK(cgroup_make(&plan, &groups, &err) == -1);
	CHECK(err.code == ERR_cgroup_unavailable && err.errnum == EINVAL);
	CHECK(strstr(err.text, "/cgroup.subtree_control)") != NULL);
	CHECK(find_own("", own) && strcmp(strrchr(own, '/') + 1, group_name) == 0);
	CHECK(access(leaf, F_OK) < 0);
	plan.cgroup.enable = NULL;
	for (int i = 0; i < 2; i++) { /* the second time it is there already */
		CHECK(cgroup_make(&plan, &groups, &err) == 0);
		CHECK(find_own("", own) && strcmp(strrchr(own, '/') + 1, "abx-self") == 0);
		CHECK(cgroup_remove(&groups) == 0);
	}
}

static void v2_makes_room_first(void)
{
	if (!places[V2][0])
		return;
	struct plan plan = v2_plan();
	struct cgroup groups;
	struct err err = { 0 };
	CHECK(cgroup_make(&plan, &groups, &err) == 0);
	char top[PATH_MAX + 80], path[PATH_MAX + 100];
	snprintf(top, sizeof top, "%s/%s", places[V2], group_name);
	snprintf(path, sizeof path, "%s/cgroup.procs", top);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		int fd = open(path, O_WRONLY | O_CLOEXEC);
		CHECK(fd >= 0 && write(fd, "0", 1) == 1);
		make_below(top);
		_exit(CHECK_STATUS());
	}
	int status = -1;
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	snprintf(path, sizeof path, "%s/abx-self", top);
	CHECK(cgroup_remove_at(AT_FDCWD, path) == 0);
	CHECK(cgroup_remove(&groups) == 0);
	CHECK(!any_left());
}

int main(void)
{
	if (geteuid() != 0)
		return 77;
	find_places();
	if (!places[PIDS][0] && !places[V2][0])
		return 77;
	int before = open_descriptors();
	RUN(v1_memory_is_held);
	RUN(v1_pids_are_held);
	RUN(v1_time_is_counted);
	RUN(a_failure_leaves_nothing);
	RUN(the_living_are_left_alone);
	RUN(v2_kills_what_is_left);
	RUN(v2_makes_room_first);
	CHECK(open_descriptors() == before);
	return CHECK_STATUS();
}
