/*
 * Boxes and their control groups: each is in its own before anything runs, sees that one alone, and
 * without it nothing runs and nothing is left. Needs root, and v1 or v2; else it is skipped.
 */
#define _GNU_SOURCE
#include "box/box.h"
#include "box/stages.h"
#include "box/sync.h"
#include "base/fd.h"
#include "base/sys.h"
#include "check.h"
#include "own_groups.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define OUTER        64123 /* an id that owns nothing */

static const char *moves_to; /* where this process goes once a box's init exists */

/* What a box with little in it needs; its shell runs a line. */
struct small_box {
	struct plan_op ops[10];
	const char *argv[4];
};

static void small_plan(struct plan *plan, const char *line, struct small_box *parts)
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
	static const char *const candidates[] = { "/usr/bin/sh", NULL };
	static const char *const envp[] = { "PATH=/usr/bin", NULL };
	memcpy(parts->ops, base, sizeof base);
	parts->ops[COUNT(base)] = (struct plan_op){
		.kind = OP_CGROUP, .target = "sys", .source = plan->cgroup.controllers[0]
	};
	memcpy(parts->argv, (const char *[]){ "sh", "-c", line, NULL }, sizeof parts->argv);
	plan->uid = plan->gid = 1000;
	plan->outer_uid = plan->outer_gid = OUTER;
	plan->uid_map = plan->gid_map = "1000 64123 1\n";
	plan->as_root = true;
	plan->namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWCGROUP;
	plan->oom_score_adj = "1000";
	plan->root_options = options;
	plan->ops = parts->ops;
	plan->op_count = COUNT(base) + 1;
	plan->filter = (struct filter){ .program = allow, .count = 1 };
	plan->argv = parts->argv;
	plan->candidates = candidates;
	plan->envp = envp;
	plan->cwd = "/";
}

/* Until whoever may write it is gone; as a string. */
static void read_all(int fd, char *out, size_t size)
{
	size_t len = 0;
	ssize_t n = -1;
	struct pollfd fds = { .fd = fd, .events = POLLIN };
	while (poll(&fds, 1, 20000) > 0 && len < size - 1 &&
		(n = read(fd, out + len, size - 1 - len)) > 0)
		len += (size_t)n;
	out[len] = 0;
}

/* A whole box: `line` is what its shell runs; what that printed, or why it did not. */
static void run_box(struct plan *plan, const char *line, char *out, size_t size)
{
	struct small_box parts;
	small_plan(plan, line, &parts);
	struct box box;
	struct err err = { 0 };
	out[0] = 0;
	if (box_spawn(plan, &box, &err) < 0 || (moves_to && chdir(moves_to) < 0) ||
		box_groups(plan, &box, &err) < 0) {
		snprintf(out, size, "error %s: %s", err_info(err.code)->name, err.text);
		return;
	}
	read_all(box.stdout_fd, out, size);
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
	else if (plan->cgroup.pids >= 0 && strncmp(out, "mounts: ", 8) != 0)
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
	if (places[PIDS][0]) {
		struct plan plan = v1_plan((int[]){ PIDS, MEMORY }, places[MEMORY][0] ? 2 : 1);
		plan.cgroup.files = files;
		plan.cgroup.file_count = 1;
		run_box(&plan,
			"cat sys/pids.max; grep -c ':pids:/$' proc/self/cgroup;"
			"(echo 99 >sys/pids.max) 2>sys/x || (echo 0 >sys/tasks) 2>sys/x || echo no",
			out, sizeof out);
		CHECK_TEXT(out, "17\n1\nno\n");
	}
	if (places[V2][0]) {
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

/* The host's directory is found by its path: something else in its place is not shown. */
static void a_box_sees_no_other_group(void)
{
	if (!places[PIDS][0])
		return;
	char decoys[PATH_MAX + 40], decoy[PATH_MAX + 160], out[4096];
	snprintf(decoys, sizeof decoys, "%s/abx-decoy-%d", places[PIDS], (int)getpid());
	snprintf(decoy, sizeof decoy, "%s/%s", decoys, group_name);
	int before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(before >= 0 && mkdir(decoys, 0755) == 0 && mkdir(decoy, 0755) == 0);
	struct plan plan = v1_plan((int[]){ PIDS }, 1);
	plan.cgroup.parents[0] = ".";
	/* Init stays where it was born. */
	CHECK(chdir(decoys) == 0);
	moves_to = places[PIDS];
	run_box(&plan, "echo ran", out, sizeof out);
	CHECK(strncmp(out, "mounts: ", 8) == 0);
	CHECK(chdir(places[PIDS]) == 0);
	run_box(&plan, "echo ran", out, sizeof out);
	CHECK_TEXT(out, "ran\n");
	moves_to = NULL;
	CHECK(rmdir(decoy) == 0 && rmdir(decoys) == 0);
	CHECK(fchdir(before) == 0);
	close(before);
}

/* Where the box's own id may not go, the hierarchy is mounted anew. */
static void a_box_sees_its_group_where_the_way_is_barred(void)
{
	char top[PATH_MAX + 40], out[4096];
	for (int i = 0; i < 2; i++) {
		if (!places[i == 0 ? PIDS : V2][0])
			continue;
		struct plan plan = i == 0 ? v1_plan((int[]){ PIDS }, 1) : v2_plan();
		snprintf(
			top, sizeof top, "%s/abx-barred-%d", plan.cgroup.parents[0], (int)getpid());
		CHECK(mkdir(top, 0700) == 0);
		plan.cgroup.parents[0] = top;
		run_box(&plan,
			"ls -d sys/cgroup.procs; ls sys | grep abx; (echo 0 >sys/cgroup.procs) "
			"2>proc/x",
			out, sizeof out);
		CHECK_TEXT(out, "sys/cgroup.procs\n");
		CHECK(rmdir(top) == 0);
	}
}

/*
 * The mount is the host's file system: a user namespace of the command's own, with every right in
 * it and without Landlock, changes neither it nor what it covers.
 */
static void what_is_shown_cannot_be_changed_from_below(void)
{
	char out[4096];
	for (int i = 0; i < 2; i++) {
		if (!places[i == 0 ? PIDS : V2][0])
			continue;
		struct plan plan = i == 0 ? v1_plan((int[]){ PIDS }, 1) : v2_plan();
		run_box(&plan,
			"exec 2>&-; unshare -Urm --propagation unchanged sh -c '"
			"mount -o remount,bind,rw /sys && echo rw; mount -o remount,rw /sys && "
			"echo rw;"
			"umount /sys && echo gone; mkdir /sys/below && echo made;"
			"(echo 0 >/sys/cgroup.procs) && echo moved;"
			"mount --bind /sys /usr && echo bound; [ -e /usr/cgroup.procs ] && echo "
			"there;"
			"/usr/bin/true || echo over'",
			out, sizeof out);
		CHECK_TEXT(out, "bound\nthere\nover\n");
	}
}

/* Whoever was to make the groups is gone, or init is. */
static void without_groups_nothing_runs(void)
{
	if (!places[PIDS][0])
		return;
	for (int i = 0; i < 2; i++) {
		struct plan plan = v1_plan((int[]){ PIDS }, 1);
		struct small_box parts;
		struct box box;
		struct err err = { 0 };
		char out[64];
		int status = 0;
		siginfo_t info;
		small_plan(&plan, "echo ran", &parts);
		CHECK(box_spawn(&plan, &box, &err) == 0);
		CHECK(!any_left());
		if (i == 0)
			fd_close(&box.setup_fd);
		else
			box_kill(&box);
		read_all(box.stdout_fd, out, sizeof out);
		CHECK_TEXT(out, "");
		CHECK(waitid(P_PID, (id_t)box.pid, &info, WEXITED | WNOWAIT) == 0);
		/* Its end is for the supervisor to see, and no failure of the groups. */
		if (i == 1)
			CHECK(box_groups(&plan, &box, &err) == 0 && is_there(PIDS));
		CHECK(waitpid(box.pid, &status, 0) == box.pid && status != 0);
		box_close(&box);
		CHECK(cgroup_remove(&box.cgroup) == 0);
		CHECK(!any_left());
	}
}

int main(void)
{
	if (geteuid() != 0)
		return 77;
	find_places();
	if (!places[PIDS][0] && !places[V2][0])
		return 77;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		_exit(unshare(CLONE_NEWUSER) < 0);
	int status = 1;
	if (waitpid(pid, &status, 0) != pid || status != 0)
		return 77;
	int before = open_descriptors();
	RUN(a_box_is_in_its_groups);
	RUN(a_box_without_its_group_is_none);
	RUN(a_box_sees_no_other_group);
	RUN(a_box_sees_its_group_where_the_way_is_barred);
	RUN(what_is_shown_cannot_be_changed_from_below);
	RUN(without_groups_nothing_runs);
	CHECK(open_descriptors() == before);
	return CHECK_STATUS();
}
