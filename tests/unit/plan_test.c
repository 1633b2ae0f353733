/*
 * plan_test: policy x request x made-up host -> plan. Golden plans are the planner's JSON, one file
 * each in tests/golden; AGENTBOX_GOLDEN=write in the environment writes them anew. The fail-closed
 * rules are a table of hosts that lack one thing.
 */
#define _GNU_SOURCE
#include "check.h"
#include "plan/explain.h"
#include "base/match.h"
#include "plan/plan.h"
#include "plan/host.h"
#include "plan/request.h"
#include "policy/policy.h"
#include "box/stages.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>

static const struct policy_env policy_env = { .home = "/home/ann" };

static const struct host_path top[] = {
	{ .path = "/usr", .mode = S_IFDIR | 0755 },
	{ .path = "/bin", .mode = S_IFLNK | 0777, .link = "usr/bin" },
	{ .path = "/lib64", .mode = S_IFLNK | 0777, .link = "usr/lib64" },
	{ .path = "/libx32", .errnum = 2 },
};
static const struct host_path etc[] = {
	{ .path = "/etc/ld.so.cache", .mode = S_IFREG | 0644 },
	{ .path = "/etc/localtime", .mode = S_IFLNK | 0777, .link = "/usr/share/zoneinfo/UTC" },
	{ .path = "/etc/ssl", .mode = S_IFDIR | 0755 },
};
static const struct host_path paths[] = {
	{ .path = "/home/ann/proj",
		.mode = S_IFDIR | 0755,
		.uid = 1000,
		.gid = 1000,
		.real = "/home/ann/proj" },
	{ .path = "/srv/data", .mode = S_IFDIR | 0755, .real = "/srv/data" },
	{ .path = "/srv/data/in", .mode = S_IFDIR | 0755, .real = "/srv/data/in" },
	{ .path = "/usr/share/models", .mode = S_IFDIR | 0755, .real = "/usr/share/models" },
	{ .path = "/srv/link", .mode = S_IFLNK | 0777, .link = "data", .real = "/srv/data" },
	{ .path = "/srv/socket", .mode = S_IFSOCK | 0777, .real = "/srv/socket" },
	{ .path = "/srv/gone", .errnum = 2 },
	{ .path = "/srv/file", .mode = S_IFREG | 0644, .real = "/srv/file" },
};

static const struct host common = {
	.uid = 1000,
	.gid = 1000,
	.user = "ann",
	.group = "ann",
	.home = "/home/ann",
	.pid = 77,
	.umask = 022,
	.box_uid = 1000,
	.box_gid = 1000,
	.release = "6.12.0",
	.landlock_abi = 7,
	.seccomp_notify = true,
	.seccomp_wait_killable = true,
	.top = top,
	.top_count = sizeof top / sizeof *top,
	.etc = etc,
	.etc_count = sizeof etc / sizeof *etc,
	.resolv_conf = "nameserver 192.0.2.53\n",
	.paths = paths,
	.path_count = sizeof paths / sizeof *paths,
};

static const char *const argv[] = { "true", "x", NULL };
static const char *const environ_[] = { "LANG=C.UTF-8", "LC_TIME=de_DE", "SECRET=1", "MYVAR=2",
	"BASH_FUNC_f%%=() { :; }", "TERM=dumb", NULL };
static const struct request request = {
	.argv = argv,
	.argc = 2,
	.workspace = "/home/ann/proj",
	.environ = environ_,
};

static const struct sock_filter program[] = { { 6, 0, 0, 0x7fff0000 } };
static const struct filter filter = {
	.program = program, .count = 1, .name = "default", .sha256 = "00"
};

/* Build a plan from a policy's text; the policy and the plan are the caller's to free. */
static int build(const char *text, const struct host *host, const struct request *asked,
	struct policy *policy, struct plan *plan, struct err *err)
{
	if (policy_parse(text, strlen(text), "p.yaml", &policy_env, policy, err) < 0)
		return -1;
	struct filter with = filter; /* as filter_get() would answer */
	if (policy->fs.workspace == WORKSPACE_OVERLAY && policy->fs.backend != BACKEND_COPY)
		with.renames = FILTER_RENAMEAT | FILTER_RENAMEAT2;
	return plan_build(policy, asked, host, &with, plan, err);
}

/* Where agentbox is installed is no part of a golden plan. */
static void hide_prefix(struct buf *plan)
{
	static const char place[] = AGENTBOX_DEVDIR;
	size_t len = sizeof place - 1;
	struct buf out = { 0 };
	const char *from = buf_text(plan), *at;
	for (; (at = strstr(from, place)); from = at + len) {
		CHECK(buf_add(&out, from, (size_t)(at - from)) == 0);
		CHECK(buf_adds(&out, "DEVDIR") == 0);
	}
	CHECK(buf_adds(&out, from) == 0);
	buf_free(plan);
	*plan = out;
}

static void golden(
	const char *name, const char *text, const struct host *host, const struct request *asked)
{
	struct policy policy = { 0 };
	struct plan plan = { 0 };
	struct err err = { 0 };
	AUTO_BUF out = { 0 };
	if (build(text, host, asked, &policy, &plan, &err) < 0 ||
		plan_explain_json(&plan, &out) < 0) {
		fprintf(stderr, "%s: %s\n", name, err.text);
		CHECK(!"the plan could be built");
		policy_free(&policy);
		return;
	}
	hide_prefix(&out);
	char path[512];
	snprintf(path, sizeof path, "%s/%s.json", GOLDEN_DIR, name);
	const char *mode = getenv("AGENTBOX_GOLDEN");
	if (mode && strcmp(mode, "write") == 0) {
		FILE *file = fopen(path, "w");
		CHECK(file && fwrite(out.data, 1, out.len, file) == out.len && fclose(file) == 0);
	} else {
		FILE *file = fopen(path, "r");
		char *want = calloc(1, out.len + 2);
		size_t len = file ? fread(want, 1, out.len + 1, file) : 0;
		if (file)
			fclose(file);
		if (len != out.len || memcmp(want, out.data, len) != 0)
			fprintf(stderr, "%s: the plan is now\n%s", path, buf_text(&out));
		CHECK(len == out.len && memcmp(want, out.data, len) == 0);
		free(want);
	}
	plan_free(&plan);
	policy_free(&policy);
}

static void golden_plans_are_as_committed(void)
{
	golden("plain", "version: 1\nname: plain\n", &common, &request);

	struct host root = common;
	root.uid = root.gid = 0;
	root.user = root.group = "root";
	root.home = "/root";
	root.root = true;
	root.box_uid = root.box_gid = 1879048269;
	golden("root",
		"version: 1\nname: root\nfilesystem: {workspace: write, read: [/srv/data]}\n",
		&root, &request);

	struct host_match hidden[] = {
		{ .path = "/home/ann/proj/.env", .tree = "/home/ann/proj", .mode = S_IFREG }
	};
	struct host_match protected[] = {
		{ .path = "/home/ann/proj/.git/hooks", .tree = "/home/ann/proj", .mode = S_IFDIR },
		{ .path = "/home/ann/proj/.bashrc", .tree = "/home/ann/proj", .mode = S_IFLNK },
	};
	struct policy_pattern pattern = { .pattern = "x", .at = { .file = "p.yaml", .line = 3 } };
	hidden[0].pattern = protected[0].pattern = protected[1].pattern = &pattern;
	struct host matched = common;
	matched.hidden = hidden;
	matched.hidden_count = 1;
	matched.protected = protected;
	matched.protected_count = 2;
	golden("grants",
		"version: 1\nname: grants\nnesting: deny\n"
		"filesystem: {workspace: write, write: [/srv/data/in], read: [/srv/data, "
		"/usr/share/models]}\n"
		"limits: {open_files: 64, file_size: 1MiB, pids: 8, disk: 64MiB, wall: 5s}\n"
		"env: {pass: [MYVAR], set: {A: b}}\n",
		&matched, &request);
	golden("overlay", "version: 1\nname: overlay\nfilesystem: {workspace: overlay}\n", &matched,
		&request);
	struct host installed = common;
	installed.ready_dev = true;
	golden("ready-dev",
		"version: 1\nname: ready\nfilesystem: {backend: copy, workspace: overlay}\n",
		&installed, &request);
	golden("host-network",
		"version: 1\nname: host\nnetwork: host\nfilesystem: {workspace: none}\n", &common,
		&request);

	golden("allow",
		"version: 1\nname: allow\nfilesystem: {workspace: none}\nnetwork:\n  allow:\n"
		"    - a.test\n    - {host: \"*.b.test:443\", any_name: true}\n"
		"    - 10.1.0.0/16:5432\n    - host.internal:53\n",
		&common, &request);

	struct host grouped = common;
	grouped.cgroup = (struct host_cgroup){ .probed = true,
		.levels = { { .dir = "/sys/fs/cgroup/a.scope",
			.owned = true,
			.writable = true,
			.domain = true,
			.available = 1u << CONTROLLER_MEMORY | 1u << CONTROLLER_PIDS |
				     1u << CONTROLLER_CPU | 1u << CONTROLLER_CPUSET,
			.processes = 1 } },
		.level_count = 1,
		.online = 4,
		.cpus = "0-3",
		.number = 5 };
	golden("cgroup",
		"version: 1\nname: cgroup\nfilesystem: {workspace: none}\n"
		"limits: {memory: 64MiB, cpu: 1500ms, cpus: 2, pids: 8}\n",
		&grouped, &request);
}

/* A host that lacks one thing, or a policy that asks for one too many: what must come of it. */
struct refusal {
	const char *name, *policy;
	void (*take)(struct host *host);
	enum err_code code;
	int line;
};

static void no_landlock(struct host *host)
{
	host->landlock_abi = 0;
}

static void landlock_one(struct host *host)
{
	host->landlock_abi = 1;
}

static void landlock_five(struct host *host)
{
	host->landlock_abi = 5;
}

static void no_notify(struct host *host)
{
	host->seccomp_notify = false;
}

static void nothing(struct host *host)
{
	(void)host;
}

static const struct refusal refusals[] = {
	{ "no Landlock", "version: 1\n", no_landlock, ERR_landlock_insufficient, 0 },
	{ "Landlock 1 (B51)", "version: 1\n", landlock_one, ERR_landlock_insufficient, 0 },
	{ "host network without scopes (B14)", "version: 1\nnetwork: host\n", landlock_five,
		ERR_landlock_insufficient, 2 },
	{ "no user notification", "version: 1\n", no_notify, ERR_seccomp_unavailable, 0 },
	{ "a published port that is dialled by",
		"version: 1\nnetwork:\n  allow: [a.test]\n"
		"  publish: [81, 80]\n",
		nothing, ERR_policy_invalid, 4 },
	{ "a published port that is that of names",
		"version: 1\nnetwork:\n  allow: ['a.test:7']\n"
		"  publish:\n  - 8080\n  - 53\n",
		nothing, ERR_policy_invalid, 6 },
	{ "memory", "version: 1\nlimits:\n  memory: 1GiB\n", nothing, ERR_cgroup_unavailable, 3 },
	{ "cpus", "version: 1\nlimits: {cpus: 0.5}\n", nothing, ERR_cgroup_unavailable, 2 },
	{ "cpu", "version: 1\nlimits: {cpu: 2s}\n", nothing, ERR_cgroup_unavailable, 2 },
	{ "secrets", "version: 1\nsecrets: {K: {env: K}}\n", nothing, ERR_unsupported, 2 },
	{ "tools", "version: 1\ntools:\n  t: {command: [/bin/true]}\n", nothing, ERR_unsupported,
		3 },
	{ "audit", "version: 1\naudit: {log: /tmp/l}\n", nothing, ERR_unsupported, 2 },
	{ "link (B31)", "version: 1\nfilesystem: {write: [/srv/link]}\n", nothing,
		ERR_grant_is_symlink, 2 },
	{ "gone", "version: 1\nfilesystem: {read: [/srv/gone]}\n", nothing, ERR_grant_not_found,
		2 },
	{ "a file to be written (A16)", "version: 1\nfilesystem:\n  write: [/srv/file]\n", nothing,
		ERR_file_grant_not_replaceable, 3 },
	{ "socket (B13)", "version: 1\nfilesystem: {read: [/srv/socket]}\n", nothing,
		ERR_dangerous_grant, 2 },
};

static void nothing_missing_is_ever_ignored(void)
{
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		const struct refusal *row = &refusals[i];
		struct host host = common;
		struct policy policy = { 0 };
		struct plan plan = { 0 };
		struct err err = { 0 };
		row->take(&host);
		int r = build(row->policy, &host, &request, &policy, &plan, &err);
		if (r == 0 || err.code != (int)row->code || err.line != row->line)
			fprintf(stderr, "%s: %d, %s, line %d: %s\n", row->name, r,
				err_info(err.code)->name, err.line, err.text);
		CHECK(r == -1);
		CHECK(err.code == (int)row->code);
		CHECK(err.line == row->line);
		if (r == 0)
			plan_free(&plan);
		policy_free(&policy);
	}
}

/* Where agentbox keeps what later runs rely on: refused, and in a marked grant covered. */
static void its_own_places_are_never_written(void)
{
	static const struct host_path own[] = {
		{ .path = "/run/user/1000/agentbox", .errnum = 2 },
		{ .path = "/srv/data/in/state/agentbox", .mode = S_IFDIR | 0700 },
	};
	static const struct {
		const char *policy;
		bool refused;
	} rows[] = {
		{ "{workspace: write}", false },
		{ "{workspace: none, write: [/srv/data/other]}", false },
		{ "{workspace: none, write: [/srv/data/in/state/agentbox-not]}", false },
		{ "{workspace: none, read: [/srv/data]}", false },
		{ "{workspace: none, write: [/srv/data]}", true },
		{ "{workspace: none, write: [/srv/data/in]}", true },
		{ "{workspace: none, write: [/srv/data/in/state/agentbox]}", true },
		{ "{workspace: none, write: [/srv/data/in/state/agentbox/runs]}", true },
		{ "{workspace: none, write: [{path: /srv/data/in/state/agentbox/runs, dangerous: "
		  "true}]}",
			true },
		{ "{workspace: none, write: [/home/bob/.local/state/agentbox]}", true },
		{ "{workspace: none, write: [/home/bob/.local/state/agentbox/kept/x]}", true },
		{ "{workspace: none, write: [/home/bob/.local/state/agentboxes]}", false },
		{ "{workspace: none, write: [/run/user/7/agentbox/runs]}", true },
		{ "{workspace: none, write: [{path: /srv/data, dangerous: true}]}", false },
	};
	static const char *const more[] = { "/srv/data/other", "/srv/data/in/state/agentbox-not",
		"/srv/data/in/state/agentbox", "/srv/data/in/state/agentbox/runs",
		"/home/bob/.local/state/agentbox", "/home/bob/.local/state/agentbox/kept/x",
		"/home/bob/.local/state/agentboxes", "/run/user/7/agentbox/runs" };
	struct host_path facts[32];
	struct host host = common;
	memcpy(facts, paths, sizeof paths);
	host.paths = facts;
	for (size_t i = 0; i < sizeof more / sizeof *more; i++)
		facts[host.path_count++] = (struct host_path){
			.path = more[i], .mode = S_IFDIR | 0755, .real = more[i]
		};
	host.own = own;
	host.own_count = 2;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct policy policy = { 0 };
		struct plan plan = { 0 };
		struct err err = { 0 };
		char text[256];
		snprintf(text, sizeof text, "version: 1\nfilesystem: %s\n", rows[i].policy);
		int r = build(text, &host, &request, &policy, &plan, &err);
		if ((r < 0) != rows[i].refused)
			fprintf(stderr, "%s: %d: %s\n", rows[i].policy, r, err.text);
		CHECK((r < 0) == rows[i].refused);
		CHECK(r == 0 || (err.code == ERR_dangerous_grant && err.line == 2));
		size_t covered = 0;
		for (size_t k = 0; r == 0 && k < plan.op_count; k++)
			covered += plan.ops[k].kind == OP_MASK;
		CHECK(covered == (i + 1 == sizeof rows / sizeof *rows));
		if (r == 0)
			plan_free(&plan);
		policy_free(&policy);
	}
	struct host at_work = common;
	struct host_path here = { .path = "/home/ann/proj/x/agentbox", .errnum = 2 };
	struct policy policy = { 0 };
	struct plan plan = { 0 };
	struct err err = { 0 };
	at_work.own = &here;
	at_work.own_count = 1;
	CHECK(build("version: 1\nfilesystem: {workspace: write}\n", &at_work, &request, &policy,
		      &plan, &err) < 0);
	CHECK(err.code == ERR_dangerous_grant && strstr(err.text, here.path));
	policy_free(&policy);
}

static void best_effort_names_what_is_missing(void)
{
	struct policy policy = { 0 };
	struct plan plan = { 0 };
	struct err err = { 0 };
	struct host host = common;
	host.landlock_abi = 0;
	CHECK(build("version: 1\nlimits: {memory: 1GiB}\nbest_effort: [cgroup, landlock]\n", &host,
		      &request, &policy, &plan, &err) == 0);
	CHECK(plan.not_enforced && plan.not_enforced[0] && plan.not_enforced[1] &&
		!plan.not_enforced[2]);
	if (plan.not_enforced && plan.not_enforced[0]) {
		CHECK_TEXT(plan.not_enforced[0], "limits.memory");
		CHECK_TEXT(plan.not_enforced[1], "landlock");
	}
	CHECK(plan.landlock_abi == 0 && plan.rule_count == 0);
	plan_free(&plan);
	policy_free(&policy);
}

static void only_the_listed_environment_passes(void)
{
	struct policy policy = { 0 };
	struct plan plan = { 0 };
	struct err err = { 0 };
	static const struct request_env extra[] = { { "TERM", "vt100" }, { "SECRET", NULL } };
	struct request asked = request;
	CHECK(build("version: 1\n", &common, &asked, &policy, &plan, &err) == 0);
	for (size_t i = 0; plan.envp[i]; i++)
		CHECK(strncmp(plan.envp[i], "SECRET", 6) != 0 &&
			strncmp(plan.envp[i], "BASH", 4) != 0 &&
			strncmp(plan.envp[i], "MYVAR", 5) != 0);
	plan_free(&plan);
	policy_free(&policy);
	asked.env = extra;
	asked.env_count = 2;
	int seen = 0;
	CHECK(build("version: 1\n", &common, &asked, &policy, &plan, &err) == 0);
	for (size_t i = 0; plan.envp[i]; i++)
		seen += strcmp(plan.envp[i], "TERM=vt100") == 0 ||
			strcmp(plan.envp[i], "SECRET=1") == 0;
	CHECK(seen == 2);
	plan_free(&plan);
	policy_free(&policy);
}

static void a_home_is_no_workspace(void)
{
	struct policy policy = { 0 };
	struct plan plan = { 0 };
	struct err err = { 0 };
	struct request asked = request;
	asked.workspace = "/home/ann";
	CHECK(build("version: 1\n", &common, &asked, &policy, &plan, &err) == 0);
	CHECK_TEXT(plan.workspace, "none");
	CHECK(plan.warning_count == 1);
	CHECK_TEXT(plan.cwd, "/home/ann");
	plan_free(&plan);
	policy_free(&policy);
	asked.workspace_given = true;
	CHECK(build("version: 1\n", &common, &asked, &policy, &plan, &err) == -1);
	CHECK(err.code == ERR_dangerous_grant);
	policy_free(&policy);
}

static void patterns_match_by_component(void)
{
	static const struct {
		const char *pattern, *path;
		bool match;
	} rows[] = {
		{ "a", "a", true },
		{ "a", "b", false },
		{ "a", "a/b", false },
		{ "*", "a/b", false },
		{ "*.key", "x.key", true },
		{ "**/*.key", "x.key", true },
		{ "**/*.key", "a/b/x.key", true },
		{ "a/**", "a/b/c", true },
		{ "a/**/d", "a/d", true },
		{ "a/**/d", "a/b/c/d", true },
		{ "a/**/d", "a/b/c", false },
		{ "a/*/c", "a/b/c", true },
		{ "a/*/c", "a/b/b/c", false },
		{ "a?c", "abc", true },
		{ "a?c", "a/c", false },
		{ "[ab]c", "bc", true },
		{ "**", "a/b", true },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		bool got = match_path(rows[i].pattern, rows[i].path);
		if (got != rows[i].match)
			fprintf(stderr, "%s against %s\n", rows[i].pattern, rows[i].path);
		CHECK(got == rows[i].match);
	}
}

/* Each stage comes after those that it needs, and the processes come in their order. */
static void stages_are_in_order(void)
{
	for (int i = 1; i < STAGE_COUNT_; i++) {
		char needs[256];
		snprintf(needs, sizeof needs, "%s", stage_info(i)->needs);
		char *save = NULL;
		for (char *need = strtok_r(needs, " ", &save); need;
			need = strtok_r(NULL, " ", &save)) {
			int at = 0;
			for (int k = 1; k < STAGE_COUNT_; k++)
				if (strcmp(stage_info(k)->name, need) == 0)
					at = k;
			CHECK(at > 0 && at < i);
		}
		if (i > 1)
			CHECK(strcmp(stage_info(i - 1)->process, "payload") != 0 ||
				strcmp(stage_info(i)->process, "payload") == 0);
	}
}

int main(void)
{
	RUN(golden_plans_are_as_committed);
	RUN(nothing_missing_is_ever_ignored);
	RUN(its_own_places_are_never_written);
	RUN(best_effort_names_what_is_missing);
	RUN(only_the_listed_environment_passes);
	RUN(a_home_is_no_workspace);
	RUN(patterns_match_by_component);
	RUN(stages_are_in_order);
	return CHECK_STATUS();
}
