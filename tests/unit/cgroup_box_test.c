/*
 * Control groups as a box has them: made, entered, read, removed, below the groups that this test
 * runs in; and nothing left, whatever fails. Needs root, and v1 or v2; else it is skipped.
 */
#define _GNU_SOURCE
#include "box/box.h"
#include "box/cgroup.h"
#include "box/stages.h"
#include "box/sync.h"
#include "base/fd.h"
#include "base/sys.h"
#include "check.h"
#include "own_groups.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
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
#define OUTER        64123 /* an id that owns nothing */

static bool may_box = true; /* there are user namespaces */

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

/* A whole box, with little in it: `line` is what its shell runs; what that printed. */
static void run_box(struct plan *plan, const char *line, char *out, size_t size)
{
	static const struct plan_op base[] = {
		{ .kind = OP_DIR, .target = "usr", .mode = 0755 },
		{ .kind = OP_LINK, .target = "bin", .source = "usr/bin" },
		{ .kind = OP_LINK, .target = "lib", .source = "usr/lib" },
		{ .kind = OP_LINK, .target = "lib64", .source = "usr/lib64" },
		{ .kind = OP_DIR, .target = "proc", .mode = 0755 },
		{ .kind = OP_DIR, .target = "sys", .mode = 0755 },
		{ .kind = OP_BIND, .target = "usr", .source = "/usr", .flags = OPF_RECURSIVE },
		{ .kind = OP_SEAL },
		{ .kind = OP_PROC, .target = "proc" },
	};
	static const struct plan_option options[] = { { "size", "1048576" }, { NULL, NULL } };
	static const struct sock_filter allow[] = { { BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW } };
	struct plan_op ops[COUNT(base) + 1];
	memcpy(ops, base, sizeof base);
	ops[COUNT(base)] = (struct plan_op){
		.kind = OP_CGROUP, .target = "sys", .source = plan->cgroup.controllers[0]
	};
	const char *argv[] = { "sh", "-c", line, NULL };
	plan->uid = plan->gid = 1000;
	plan->outer_uid = plan->outer_gid = OUTER;
	plan->uid_map = plan->gid_map = "1000 64123 1\n";
	plan->as_root = true;
	plan->namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWCGROUP;
	plan->oom_score_adj = "1000";
	plan->root_options = options;
	plan->ops = ops;
	plan->op_count = COUNT(ops);
	plan->filter = (struct filter){ .program = allow, .count = 1 };
	plan->argv = argv;
	plan->candidates = (const char *const[]){ "/usr/bin/sh", NULL };
	plan->envp = (const char *const[]){ "PATH=/usr/bin", NULL };
	plan->cwd = "/";
	struct box box;
	struct err err = { 0 };
	out[0] = 0;
	if (box_spawn(plan, &box, &err) < 0 || box_groups(plan, &box, &err) < 0) {
		snprintf(out, size, "error %s: %s", err_info(err.code)->name, err.text);
		return;
	}
	size_t len = 0;
	ssize_t n = -1;
	struct pollfd fds = { .fd = box.stdout_fd, .events = POLLIN };
	while (poll(&fds, 1, 20000) > 0 && len < size - 1 &&
		(n = read(box.stdout_fd, out + len, size - 1 - len)) > 0)
		len += (size_t)n;
	out[len] = 0;
	box_kill(&box);
	CHECK(waitpid(box.pid, NULL, 0) == box.pid);
	struct sync_msg msg;
	int fd = -1;
	while (sync_recv(box.setup_fd, &msg, &fd) == 1) {
		if (msg.kind == SYNC_FAILED) {
			box_explain_failure(plan, &msg.err);
			snprintf(
				out, size, "%s: %s", stage_info(msg.err.stage)->name, msg.err.text);
		}
		fd_close(&fd);
	}
	box_close(&box);
	struct cgroup_counters counters;
	cgroup_read(&box.cgroup, true, &counters);
	if (plan->cgroup.kind == CGROUP_V2)
		CHECK(counters.cpu_user_us + counters.cpu_system_us > 100);
	else if (plan->cgroup.pids >= 0)
		CHECK(counters.pids_peak >= 2);
	CHECK(cgroup_remove(&box.cgroup) == 0);
	CHECK(!any_left());
}

static void a_box_is_in_its_groups(void)
{
	static const struct plan_cgroup_file files[] = {
		{ 0, "pids.max", "17", false, "limits.pids" },
	};
	char out[4096];
	if (places[PIDS][0] && may_box) {
		struct plan plan = v1_plan((int[]){ PIDS, MEMORY }, places[MEMORY][0] ? 2 : 1);
		plan.cgroup.files = files;
		plan.cgroup.file_count = 1;
		run_box(&plan,
			"cat sys/pids.max; grep -c ':pids:/$' proc/self/cgroup;"
			"(echo 99 >sys/pids.max) 2>sys/x || (echo 0 >sys/tasks) 2>sys/x || echo no",
			out, sizeof out);
		CHECK_TEXT(out, "17\n1\nno\n");
	}
	if (places[V2][0] && may_box) {
		struct plan plan = v2_plan();
		run_box(&plan,
			"grep '^0:' proc/self/cgroup; grep -c usage_usec sys/cpu.stat;"
			"(echo 0 >sys/cgroup.procs) 2>sys/x || echo no; ls proc/self/fd | wc -l",
			out, sizeof out);
		/* The fourth is ls's own. */
		CHECK_TEXT(out, "0::/\n1\nno\n4\n");
	}
}

static void a_box_without_its_group_is_none(void)
{
	char out[4096];
	struct plan plan = v1_plan((int[]){ PIDS }, 1);
	plan.cgroup.parents[0] = "/sys/fs/cgroup/there-is/no-such-group";
	run_box(&plan, "echo ran", out, sizeof out);
	CHECK_TEXT(out, "error cgroup_unavailable: the control group for limits.cpu "
			"(/sys/fs/cgroup/there-is/no-such-group) cannot be used: "
			"No such file or directory");
}

/* Descriptors are given back, too. */
static int open_descriptors(void)
{
	int count = 0;
	DIR *dir = opendir("/proc/self/fd");
	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

int main(void)
{
	if (geteuid() != 0)
		return 77;
	find_places();
	if (!places[PIDS][0] && !places[V2][0])
		return 77;
	pid_t pid = fork();
	if (pid == 0)
		_exit(unshare(CLONE_NEWUSER) < 0);
	int status = 1;
	waitpid(pid, &status, 0);
	may_box = status == 0;
	int before = open_descriptors();
	RUN(v1_memory_is_held);
	RUN(v1_pids_are_held);
	RUN(v1_time_is_counted);
	RUN(a_failure_leaves_nothing);
	RUN(the_living_are_left_alone);
	RUN(v2_kills_what_is_left);
	RUN(v2_makes_room_first);
	RUN(a_box_is_in_its_groups);
	RUN(a_box_without_its_group_is_none);
	CHECK(open_descriptors() == before);
	return CHECK_STATUS();
}
