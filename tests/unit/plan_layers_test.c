/*
 * What a plan makes of a workspace with a private layer: the repository of a git worktree, mounts
 * inside of it, and names that are hidden. Hosts are made up.
 */
#define _GNU_SOURCE
#include "plan/host_mounts.h"
#include "plan/plan.h"
#include "plan/request.h"
#include "policy/policy.h"
#include "check.h"

#include <stdlib.h>
#include <sys/stat.h>

#define WORK   "/home/ann/wt"
#define COMMON "/home/ann/main/.git"
#define DIR    (S_IFDIR | 0755)

static struct host_path paths[] = {
	{ .path = WORK, .mode = DIR, .uid = 1000, .gid = 1000, .real = WORK },
	{ .path = COMMON, .mode = DIR, .uid = 1000, .gid = 1000, .real = COMMON },
	{ .path = WORK "/mnt", .mode = DIR, .uid = 1000, .gid = 1000, .real = WORK "/mnt" },
	{ .path = WORK "/f", .mode = S_IFREG | 0644, .uid = 1000, .gid = 1000, .real = WORK "/f" },
	{ .path = WORK "/root", .mode = DIR, .real = WORK "/root" },
	{ .path = WORK "/proc", .mode = DIR, .real = WORK "/proc" },
	{ .path = WORK "/gone", .errnum = 2 },
	{ .path = WORK "/mnt/sub", .mode = DIR, .uid = 1000, .gid = 1000, .real = WORK "/mnt/sub" },
};
static const struct host common_host = {
	.uid = 1000,
	.gid = 1000,
	.user = "ann",
	.group = "ann",
	.home = "/home/ann",
	.umask = 022,
	.box_uid = 1000,
	.box_gid = 1000,
	.pid = 77,
	.release = "6.18.0",
	.landlock_abi = 7,
	.seccomp_notify = true,
	.resolv_conf = "",
	.paths = paths,
	.path_count = sizeof paths / sizeof *paths,
};

static const char *const argv[] = { "true", NULL };
static const struct request common_request = { .argv = argv, .argc = 1, .workspace = WORK };
static const struct sock_filter program[] = { { 6, 0, 0, 0x7fff0000 } };
static const struct filter filter = {
	.program = program, .count = 1, .name = "default", .sha256 = "00"
};

struct made {
	struct policy policy;
	struct plan plan;
	struct err err;
	int r;
};

static void make(struct made *made, const char *text, const struct host *host, bool copy)
{
	static const struct policy_env env = { .home = "/home/ann" };
	static struct request request;
	request = common_request;
	request.copy_layers = copy;
	memset(made, 0, sizeof *made);
	made->r = policy_parse(text, strlen(text), "p.yaml", &env, &made->policy, &made->err);
	if (made->r == 0)
		made->r =
			plan_build(&made->policy, &request, host, &filter, &made->plan, &made->err);
}

static void done(struct made *made)
{
	if (made->r == 0)
		plan_free(&made->plan);
	policy_free(&made->policy);
}

static const struct plan_op *find(
	const struct made *made, enum plan_op_kind kind, const char *target)
{
	for (size_t i = 0; made->r == 0 && i < made->plan.op_count; i++)
		if (made->plan.ops[i].kind == kind && strcmp(made->plan.ops[i].target, target) == 0)
			return &made->plan.ops[i];
	return NULL;
}

/* How many warnings with the code speak of the path. */
static int warned(const struct made *made, const char *code, const char *path)
{
	int count = 0;
	for (size_t i = 0; made->r == 0 && i < made->plan.warning_count; i++)
		count += strcmp(made->plan.warnings[i].code, code) == 0 &&
			 strstr(made->plan.warnings[i].message, path);
	return count;
}

#define OVERLAY "version: 1\nfilesystem: {workspace: overlay}\n"

static void a_proven_repository_has_a_layer(void)
{
	struct made made;
	struct host host = common_host;
	host.git = (struct host_git){ .admin = COMMON "/worktrees/wt", .common = COMMON };
	make(&made, OVERLAY, &host, false);
	CHECK(made.r == 0 && made.plan.layer_count == 2);
	CHECK_TEXT(made.plan.layers[0].root, WORK);
	CHECK_TEXT(made.plan.layers[1].root, COMMON);
	const struct plan_op *op = find(&made, OP_LAYER, &COMMON[1]);
	CHECK(op && op->layer == 1 && !(op->flags & OPF_READONLY));
	CHECK(warned(&made, "gitdir_not_shown", "") == 0);
	done(&made);
	/* Granted for writing: as the policy says. */
	make(&made, "version: 1\nfilesystem: {workspace: overlay, write: [" COMMON "]}\n", &host,
		false);
	CHECK(made.r == 0 && made.plan.layer_count == 1 && find(&made, OP_BIND, &COMMON[1]));
	done(&made);
	/* Granted for reading: the layer is written, the repository is not. */
	make(&made, "version: 1\nfilesystem: {workspace: overlay, read: [" COMMON "]}\n", &host,
		false);
	CHECK(made.r == 0 && made.plan.layer_count == 2 && find(&made, OP_LAYER, &COMMON[1]));
	CHECK(!find(&made, OP_BIND, &COMMON[1]));
	done(&made);
	make(&made, "version: 1\nfilesystem: {workspace: write}\n", &host, false);
	CHECK(made.r == 0 && made.plan.layer_count == 0 && !find(&made, OP_BIND, &COMMON[1]));
	CHECK(warned(&made, "gitdir_not_shown", "write: [" COMMON "]") == 1);
	done(&made);
	make(&made, "version: 1\n", &host, false);
	CHECK(made.r == 0 && warned(&made, "gitdir_not_shown", "") == 0);
	done(&made);
	host.git.common = NULL;
	make(&made, OVERLAY, &host, false);
	CHECK(made.r == 0 && made.plan.layer_count == 1);
	CHECK(warned(&made, "gitdir_not_shown", COMMON "/worktrees/wt") == 1);
	done(&made);
}

static void a_hidden_repository_is_refused(void)
{
	struct made made;
	struct policy_pattern pattern = { .pattern = "x", .at = { .file = "p.yaml", .line = 3 } };
	struct host_match hidden = { .tree = "/home/ann", .mode = S_IFDIR, .pattern = &pattern };
	struct host host = common_host;
	host.git = (struct host_git){ .admin = COMMON "/worktrees/wt", .common = COMMON };
	host.hidden = &hidden;
	host.hidden_count = 1;
	static const char *const covers[] = { "/home/ann/main", COMMON, COMMON "/worktrees",
		COMMON "/worktrees/wt" };
	for (size_t i = 0; i < sizeof covers / sizeof *covers; i++) {
		hidden.path = covers[i];
		make(&made, OVERLAY, &host, false);
		CHECK(made.r < 0 && made.err.code == ERR_gitdir_outside_workspace);
		CHECK(made.err.line == 3 && strstr(made.err.text, COMMON));
		done(&made);
	}
	/* Beside it; and ".git" itself, by which nothing of it is wanted. */
	hidden.path = "/home/ann/main/.gi";
	make(&made, OVERLAY, &host, false);
	CHECK(made.r == 0 && made.plan.layer_count == 2);
	done(&made);
	hidden.path = WORK "/.git";
	make(&made, OVERLAY, &host, false);
	CHECK(made.r == 0 && made.plan.layer_count == 1 && !made.plan.warning_count);
	done(&made);
}

static void nested_mounts_are_read_only(void)
{
	struct made made;
	struct host_mount mounts[] = { { .path = WORK "/mnt" }, { .path = WORK "/f" },
		{ .path = WORK "/root" }, { .path = WORK "/proc", .kernels = true },
		{ .path = WORK "/gone" } };
	struct host host = common_host;
	host.mounts = mounts;
	host.mount_count = sizeof mounts / sizeof *mounts;
	make(&made, OVERLAY, &host, false);
	const struct plan_op *op = find(&made, OP_BIND, &WORK[1]);
	CHECK(made.r == 0 && !op);
	op = find(&made, OP_BIND, &WORK "/mnt"[1]);
	CHECK(op && (op->flags & OPF_READONLY) && (op->flags & OPF_RECURSIVE) &&
		(op->flags & OPF_GRANT));
	CHECK(find(&made, OP_BIND, &WORK "/f"[1]) && find(&made, OP_BIND, &WORK "/root"[1]));
	CHECK(!find(&made, OP_BIND, &WORK "/proc"[1]) && !find(&made, OP_BIND, &WORK "/gone"[1]));
	CHECK(warned(&made, "nested_mount_readonly", WORK) == 3);
	CHECK(warned(&made, "nested_mount_not_shown", WORK "/proc") == 1);
	done(&made);
	make(&made, OVERLAY, &host, true);
	CHECK(made.r == 0 && find(&made, OP_BIND, &WORK "/f"[1]));
	CHECK(warned(&made, "nested_mount_readonly", WORK "/f") == 1);
	done(&made);
	/* As root the box acts for the owner of the workspace, and for no other. */
	host.root = true;
	make(&made, OVERLAY, &host, false);
	CHECK(made.r == 0 && !find(&made, OP_BIND, &WORK "/root"[1]));
	CHECK(warned(&made, "nested_mount_not_shown", WORK "/root") == 1);
	done(&made);
	/* Nor can it show what takes no id map: the planner knows of it and copies. */
	struct host_path facts[8];
	CHECK(host.path_count <= sizeof facts / sizeof *facts);
	memcpy(facts, host.paths, host.path_count * sizeof *facts);
	for (size_t i = 0; i < host.path_count; i++)
		facts[i].unmapped = strcmp(facts[i].path, WORK) == 0;
	host.paths = facts;
	make(&made, OVERLAY, &host, false);
	CHECK(made.r == 0 && made.plan.layers[0].copy && made.plan.layers[0].forced);
	CHECK_TEXT(made.plan.workspace, "copy");
	done(&made);
	host.root = false;
	make(&made, OVERLAY, &host, false);
	CHECK(made.r == 0 && !made.plan.layers[0].copy && !made.plan.layers[0].forced);
	done(&made);
	host.paths = common_host.paths;
	/* A grant by name holds. */
	make(&made, "version: 1\nfilesystem: {workspace: overlay, write: [" WORK "/mnt]}\n", &host,
		false);
	op = find(&made, OP_BIND, &WORK "/mnt"[1]);
	CHECK(op && !(op->flags & OPF_READONLY));
	CHECK(warned(&made, "nested_mount_readonly", WORK "/mnt") == 0);
	done(&made);
	mounts[0].path = WORK "/mnt/sub";
	make(&made, "version: 1\nfilesystem: {workspace: overlay, write: [" WORK "/mnt]}\n", &host,
		false);
	CHECK(made.r == 0 && !find(&made, OP_BIND, &WORK "/mnt/sub"[1]));
	done(&made);
}

static void hidden_mounts_stay_hidden_and_too_many_are_refused(void)
{
	struct made made;
	struct policy_pattern pattern = { .pattern = "x" };
	struct host_match hidden = {
		.tree = WORK, .path = WORK "/mnt", .mode = S_IFDIR, .pattern = &pattern
	};
	struct host_mount mounts[33] = { { .path = WORK "/mnt" }, { .path = WORK "/mnt/sub" } };
	struct host host = common_host;
	host.hidden = &hidden;
	host.hidden_count = 1;
	host.mounts = mounts;
	host.mount_count = 2;
	make(&made, OVERLAY, &host, false);
	CHECK(made.r == 0 && !find(&made, OP_BIND, &WORK "/mnt"[1]) &&
		!find(&made, OP_BIND, &WORK "/mnt/sub"[1]));
	CHECK(made.plan.layers[0].gone_count == 1);
	done(&made);
	for (size_t i = 0; i < 33; i++)
		mounts[i].path = WORK "/gone";
	host.mount_count = 32;
	make(&made, OVERLAY, &host, false);
	CHECK(made.r == 0);
	done(&made);
	host.mount_count = 33;
	make(&made, OVERLAY, &host, false);
	CHECK(made.r < 0 && made.err.code == ERR_unsupported);
	done(&made);
}

static void the_kernels_list_is_read(void)
{
	char text[] = "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
		      "30 21 0:20 / /w rw - tmpfs none rw\n"
		      "31 21 0:21 / /w/a\\040b\\011\\134 rw shared:7 master:2 - tmpfs x rw\n"
		      "32 21 0:22 / /wx/no rw - tmpfs none rw\n"
		      "33 21 0:23 / /w/c/d rw - tmpfs none rw\n"
		      "34 33 0:24 / /w/c rw - tmpfs none rw\n"
		      "35 21 0:25 / /w/p rw - ext4 none rw\n"
		      "36 35 0:26 / /w/p/proc rw - proc none rw\n"
		      "37 21 0:27 / /w/twice rw - tmpfs none rw\n"
		      "38 37 0:28 / /w/twice rw - sysfs none rw\n"
		      "39 21 0:29 / /g/in rw - fuse.sshfs none rw\n"
		      "40 21 broken\n"
		      "41 21 0:30 / w/relative rw - tmpfs none rw\n"
		      "42 21 0:31 / /w/last rw -";
	const char *const trees[] = { "/w", "/g" };
	struct host host = { 0 };
	host_mounts_parse(text, trees, 2, &host);
	CHECK(host.mount_count == 5);
	CHECK_TEXT(host.mounts[0].path, "/w/a b\t\\");
	CHECK_TEXT(host.mounts[1].path, "/w/c");
	CHECK(!host.mounts[0].kernels && !host.mounts[1].kernels);
	CHECK_TEXT(host.mounts[2].path, "/w/p");
	CHECK(host.mounts[2].kernels);
	CHECK_TEXT(host.mounts[3].path, "/w/twice");
	CHECK(host.mounts[3].kernels);
	CHECK_TEXT(host.mounts[4].path, "/g/in");
	arena_free(&host.arena);
}

static void names_that_are_gone_have_inodes(void)
{
	struct made made;
	struct policy_pattern pattern = { .pattern = "x" };
	struct host_match hidden[] = { { .path = WORK "/b/c/2" }, { .path = WORK "/b/1" },
		{ .path = WORK "/b/c/1" }, { .path = WORK "/b/c/1" }, { .path = WORK "/bb/1" } };
	for (size_t i = 0; i < 5; i++) {
		hidden[i].pattern = &pattern;
		hidden[i].tree = WORK;
		hidden[i].mode = S_IFREG;
	}
	struct host host = common_host;
	host.hidden = hidden;
	host.hidden_count = 5;
	make(&made, "version: 1\nfilesystem: {workspace: overlay}\nlimits: {disk: 64MiB}\n", &host,
		false);
	CHECK(made.r == 0 && made.plan.layers[0].gone_count == 4);
	CHECK_TEXT(made.plan.layers[0].gone[0], "b/1");
	CHECK_TEXT(made.plan.layers[0].gone[3], "bb/1");
	CHECK_TEXT(made.plan.root_options[2].key, "nr_inodes");
	CHECK(strtoul(made.plan.root_options[2].value, NULL, 10) == 16384 + 4 + 3);
	done(&made);
}

int main(void)
{
	RUN(a_proven_repository_has_a_layer);
	RUN(a_hidden_repository_is_refused);
	RUN(nested_mounts_are_read_only);
	RUN(hidden_mounts_stay_hidden_and_too_many_are_refused);
	RUN(the_kernels_list_is_read);
	RUN(names_that_are_gone_have_inodes);
	return CHECK_STATUS();
}
