/*
 * plan_cgroup_test: policy x made-up host -> control groups. Each host is one that people have; the
 * rows say what may be done there and what must be refused.
 */
#define _GNU_SOURCE
#include "check.h"
#include "base/buf.h"
#include "plan/explain.h"
#include "plan/host.h"
#include "plan/plan.h"
#include "plan/request.h"
#include "policy/policy.h"

#include <sched.h>
#include <sys/stat.h>

#define BIT(controller) (1u << CONTROLLER_##controller)
#define ALL             (BIT(MEMORY) | BIT(PIDS) | BIT(CPU))

static const struct policy_env policy_env = { .home = "/home/ann" };
static const char *const argv[] = { "true", NULL };
static const char *const environ_[] = { NULL };
static const struct request request = {
	.argv = argv, .argc = 1, .workspace = "/home/ann/proj", .environ = environ_
};
static const struct sock_filter program[] = { { 6, 0, 0, 0x7fff0000 } };
static const struct filter filter = {
	.program = program, .count = 1, .name = "default", .sha256 = "00"
};
static const struct host_path paths[] = {
	{ .path = "/home/ann/proj", .mode = S_IFDIR | 0755, .real = "/home/ann/proj" },
};

static struct host make_host(bool root)
{
	return (struct host){
		.uid = root ? 0 : 1000,
		.user = "ann",
		.group = "ann",
		.home = "/home/ann",
		.pid = 77,
		.root = root,
		.box_uid = 1000,
		.box_gid = 1000,
		.release = "6.12.0",
		.landlock_abi = 7,
		.seccomp_notify = true,
		.resolv_conf = "",
		.paths = paths,
		.path_count = 1,
		.cgroup = { .probed = true, .online = 8, .cpus = "0-7", .number = 5 },
	};
}

static void level(
	struct host *host, const char *dir, unsigned available, unsigned enabled, int processes)
{
	host->cgroup.levels[host->cgroup.level_count++] = (struct host_cgroup_level){
		.dir = dir,
		.owned = true,
		.writable = true,
		.domain = true,
		.available = available,
		.enabled = enabled,
		.processes = processes,
	};
}

static void v1(struct host *host, enum host_controller controller, const char *dir,
	const char *mounted, bool writable)
{
	host->cgroup.v1[controller] = (struct host_cgroup_v1){
		.dir = dir, .mounted = mounted, .writable = writable, .mems = "0", .cpus = "0-7"
	};
}

static struct host v2_hierarchy_root(void)
{
	struct host host = make_host(true);
	level(&host, "/c", ALL | BIT(CPUSET), BIT(MEMORY), 2);
	host.cgroup.levels[0].root = true;
	return host;
}

static struct host v2_root_in_a_session(void)
{
	struct host host = make_host(true);
	level(&host, "/c/session.scope", ALL, 0, 2);
	host.cgroup.systemd = true;
	return host;
}

/* Root below a delegated group, and one above that is not. */
static struct host v2_root_delegated(void)
{
	struct host host = make_host(true);
	level(&host, "/c/s/d/x", ALL, 0, 2);
	level(&host, "/c/s/d", ALL, 0, 0);
	host.cgroup.levels[1].delegated = true;
	level(&host, "/c/s", ALL, ALL, 0);
	return host;
}

/* Root above the own group without a mark: not even when the facts went there. */
static struct host v2_root_unmarked(void)
{
	struct host host = make_host(true);
	level(&host, "/c/s/x", ALL, 0, 2);
	level(&host, "/c/s", ALL, ALL, 0);
	return host;
}

static struct host v2_root_in_its_leaf(void)
{
	struct host host = make_host(true);
	level(&host, "/c/s/agentbox-self", ALL, 0, 2);
	level(&host, "/c/s", ALL, ALL, 0);
	return host;
}

static struct host v2_user_delegated(void)
{
	struct host host = make_host(false);
	level(&host, "/c/u/x.scope", ALL, 0, 2);
	level(&host, "/c/u", ALL | BIT(CPUSET), BIT(PIDS), 0);
	level(&host, "/c", ALL | BIT(CPUSET), ALL, 0);
	host.cgroup.levels[2].owned = false;
	return host;
}

static struct host v2_user_alone(void)
{
	struct host host = make_host(false);
	level(&host, "/c/u/x.scope", ALL, 0, 1);
	level(&host, "/c/u", ALL, ALL, 2);
	host.cgroup.levels[1].owned = false;
	return host;
}

static struct host v2_user_without(void)
{
	struct host host = make_host(false);
	level(&host, "/c/session.scope", ALL, ALL, 0);
	host.cgroup.levels[0].owned = host.cgroup.levels[0].writable = false;
	host.cgroup.systemd = true;
	return host;
}

static struct host v2_user_few_controllers(void)
{
	struct host host = make_host(false);
	level(&host, "/c/u/x.scope", BIT(MEMORY) | BIT(PIDS), 0, 0);
	return host;
}

static struct host v2_threaded(void)
{
	struct host host = make_host(false);
	level(&host, "/c/t", ALL, ALL, 0);
	host.cgroup.levels[0].domain = false;
	return host;
}

static struct host container(void)
{
	struct host host = make_host(true);
	level(&host, "/c", ALL, 0, 2);
	return host;
}

static struct host container_alone(void)
{
	struct host host = make_host(true);
	level(&host, "/c", ALL, 0, 1);
	return host;
}

static struct host container_read_only(void)
{
	struct host host = container_alone();
	host.cgroup.levels[0].writable = false;
	return host;
}

static struct host with_v1(struct host host, bool writable)
{
	v1(&host, CONTROLLER_MEMORY, "/m/own", "memory", writable);
	v1(&host, CONTROLLER_PIDS, "/p", "pids", writable);
	v1(&host, CONTROLLER_CPU, "/cpu", "cpu,cpuacct", writable);
	v1(&host, CONTROLLER_CPUACCT, "/cpu", "cpu,cpuacct", writable);
	v1(&host, CONTROLLER_CPUSET, "/set", "cpuset", writable);
	return host;
}

static struct host v1_root(void)
{
	return with_v1(make_host(true), true);
}

static struct host v1_user(void)
{
	return with_v1(make_host(false), false);
}

static struct host v1_one_hierarchy(void)
{
	struct host host = make_host(true);
	for (int i = 0; i < CONTROLLER_COUNT_; i++)
		v1(&host, i, "/all", "cpuset,cpu,cpuacct,memory,pids", true);
	return host;
}

static struct host v1_only_counting(void)
{
	struct host host = make_host(true);
	v1(&host, CONTROLLER_CPUACCT, "/a", "cpuset,cpuacct", true);
	v1(&host, CONTROLLER_CPUSET, "/a", "cpuset,cpuacct", true);
	return host;
}

static struct host hybrid(void)
{
	struct host host = make_host(true);
	level(&host, "/u", 0, 0, 2);
	host.cgroup.levels[0].root = true;
	return with_v1(host, true);
}

static struct host no_groups(void)
{
	return make_host(true);
}

static void show(struct buf *out, const struct plan_cgroup *cgroup)
{
	static const char *const kinds[] = { "none", "v2", "v1" };
	buf_adds(out, kinds[cgroup->kind]);
	for (size_t i = 0; i < cgroup->count; i++) {
		buf_addf(out, " %s", cgroup->parents[i]);
		if (cgroup->controllers[i])
			buf_addf(out, "(%s)", cgroup->controllers[i]);
	}
	if (cgroup->leaf)
		buf_adds(out, " leaf");
	if (cgroup->enable)
		buf_addf(out, " [%s]", cgroup->enable);
	for (size_t i = 0; i < cgroup->file_count; i++) {
		const struct plan_cgroup_file *file = &cgroup->files[i];
		buf_addf(out, " %d:%s=%s%s", file->group, file->file, file->value,
			file->optional ? "?" : "");
	}
}

struct row {
	const char *name;
	struct host (*host)(void);
	const char *limits; /* flow map */
	const char *want;   /* as show() has it; or what an error says, with line 2 */
	bool refused;
};

#define MEMORY "memory: 64MiB"
#define V2MEM  "0:memory.max=67108864 0:memory.swap.max=0?"

static const struct row rows[] = {
	{ "nothing asked", v2_hierarchy_root, "wall: 1s", "none" },
	{ "v2 root host", v2_hierarchy_root, MEMORY, "v2 /c [+pids] " V2MEM " 0:pids.max=257" },
	{ "v2 root host, cpus", v2_hierarchy_root, "cpus: 2, pids: 8",
		"v2 /c [+pids +cpu +cpuset] 0:pids.max=9 0:cpu.max=200000 100000 "
		"0:cpuset.cpus=2-3?" },
	{ "cpus not whole", v2_hierarchy_root, "cpus: 1.5",
		"v2 /c [+pids +cpu] 0:pids.max=257 0:cpu.max=150000 100000" },
	{ "more cpus than there are", v2_hierarchy_root, "cpus: 16",
		"v2 /c [+pids +cpu] 0:pids.max=257 0:cpu.max=1600000 100000" },
	{ "session", v2_root_in_a_session, MEMORY, "/c/session.scope has other processes", true },
	{ "session, cpu is counted without a controller", v2_root_in_a_session, "cpu: 2s",
		"v2 /c/session.scope" },
	{ "session, pids alone", v2_root_in_a_session, "pids: 8", "none" },
	{ "root, delegated", v2_root_delegated, MEMORY,
		"v2 /c/s/d [+memory +pids] " V2MEM " 0:pids.max=257" },
	{ "root, no mark", v2_root_unmarked, MEMORY, "has other processes", true },
	{ "root, again from the leaf", v2_root_in_its_leaf, MEMORY,
		"v2 /c/s " V2MEM " 0:pids.max=257" },
	{ "user, delegated", v2_user_delegated, MEMORY,
		"v2 /c/u [+memory] " V2MEM " 0:pids.max=257" },
	{ "user, pids alone", v2_user_delegated, "pids: 8", "v2 /c/u 0:pids.max=9" },
	{ "user, alone in its group", v2_user_alone, MEMORY,
		"v2 /c/u/x.scope leaf [+memory +pids] " V2MEM " 0:pids.max=257" },
	{ "user, alone, nothing to enable", v2_user_alone, "cpu: 2s", "v2 /c/u/x.scope" },
	{ "user, without", v2_user_without, MEMORY, "/c/session.scope may not be written", true },
	{ "user, without, cpu", v2_user_without, "cpu: 2s", "may not be written", true },
	{ "user, without, pids", v2_user_without, "pids: 8", "none" },
	{ "user, no cpu controller", v2_user_few_controllers, "memory: 1GiB, cpus: 1",
		"'limits.cpus' needs a control group, and none can be made: /c/u/x.scope has no "
		"controller cpu",
		true },
	{ "threaded", v2_threaded, MEMORY, "threaded", true },
	{ "container", container, MEMORY, "/c has other processes", true },
	{ "container, alone", container_alone, MEMORY,
		"v2 /c leaf [+memory +pids] " V2MEM " 0:pids.max=257" },
	{ "container, read-only", container_read_only, "cpu: 1s", "/c may not be written", true },
	{ "v1", v1_root, "memory: 64MiB, pids: 8",
		"v1 /m/own(memory) /p(pids) 0:memory.limit_in_bytes=67108864 "
		"0:memory.memsw.limit_in_bytes=67108864? 1:pids.max=9" },
	{ "v1, co-mounted", v1_root, "cpus: 0.5, cpu: 2s",
		"v1 /p(pids) /cpu(cpu,cpuacct) 0:pids.max=257 "
		"1:cpu.cfs_quota_us=50000" },
	{ "v1, whole cpus", v1_root, "cpus: 3",
		"v1 /p(pids) /cpu(cpu,cpuacct) /set(cpuset) 0:pids.max=257 "
		"1:cpu.cfs_quota_us=300000 2:cpuset.mems=0 "
		"2:cpuset.cpus=0-1,7" },
	{ "v1, user", v1_user, MEMORY, "/m/own may not be written", true },
	{ "v1, user, cpu", v1_user, "cpu: 1s", "/cpu may not be written", true },
	{ "v1, all in one", v1_one_hierarchy, "cpu: 1s",
		"v1 /all(cpuset,cpu,cpuacct,memory,pids) 0:pids.max=257 0:cpuset.mems=0 "
		"0:cpuset.cpus=0-7" },
	{ "v1, only time is counted", v1_only_counting, "cpu: 1s",
		"v1 /a(cpuset,cpuacct) 0:cpuset.mems=0 0:cpuset.cpus=0-7" },
	{ "hybrid, memory", hybrid, MEMORY,
		"v1 /m/own(memory) /p(pids) 0:memory.limit_in_bytes=67108864 "
		"0:memory.memsw.limit_in_bytes=67108864? 1:pids.max=257" },
	{ "hybrid, cpu", hybrid, "cpu: 1s", "v2 /u" },
	{ "hybrid, cpu and pids", hybrid, "cpu: 1s, pids: 8",
		"v1 /p(pids) /cpu(cpu,cpuacct) 0:pids.max=9" },
	{ "no groups at all", no_groups, "cpus: 1", "no control groups in reach", true },
};

static int build(const char *text, const struct host *host, struct policy *policy,
	struct plan *plan, struct err *err)
{
	if (policy_parse(text, strlen(text), "p.yaml", &policy_env, policy, err) < 0)
		return -1;
	return plan_build(policy, &request, host, &filter, plan, err);
}

static void check_row(const struct row *row)
{
	struct host host = row->host();
	struct policy policy = { 0 };
	struct plan plan = { 0 };
	struct err err = { 0 };
	AUTO_BUF got = { 0 };
	char text[256];
	snprintf(text, sizeof text, "version: 1\nlimits: {%s}\n", row->limits);
	if (build(text, &host, &policy, &plan, &err) < 0)
		buf_adds(&got, err.text);
	else
		show(&got, &plan.cgroup);
	bool same = row->refused ? strstr(buf_text(&got), row->want) != NULL
				 : strcmp(buf_text(&got), row->want) == 0;
	if (!same || row->refused != (err.code != 0))
		fprintf(stderr, "%s:\n\t%s\n\t%s\n", row->name, buf_text(&got), row->want);
	CHECK(same);
	CHECK(row->refused == (err.code != 0));
	if (row->refused) {
		CHECK(err.code == ERR_cgroup_unavailable && err.line == 2);
		CHECK(strstr(err_hint(&err), "best_effort: [cgroup]") != NULL);
		CHECK(!host.cgroup.systemd ||
			strstr(err_hint(&err), host.root ? "run --scope" : "run --user --scope"));
	} else {
		plan_free(&plan);
	}
	policy_free(&policy);

	/* With best_effort the same run goes on, and says what does not hold. */
	snprintf(text, sizeof text, "version: 1\nlimits: {%s}\nbest_effort: [cgroup]\n",
		row->limits);
	CHECK(build(text, &host, &policy, &plan, &err) == 0);
	CHECK((plan.not_enforced[0] != NULL) == row->refused);
	CHECK(!row->refused || strncmp(plan.not_enforced[0], "limits.", 7) == 0);
	plan_free(&plan);
	policy_free(&policy);
}

static void a_group_is_made_where_it_may_be_and_nowhere_else(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		check_row(&rows[i]);
}

/* What can be held is held; only the rest is named. */
static void best_effort_gives_up_no_more_than_it_must(void)
{
	struct host host = v2_user_few_controllers();
	struct policy policy = { 0 };
	struct plan plan = { 0 };
	struct err err = { 0 };
	CHECK(build("version: 1\nlimits: {memory: 1GiB, cpus: 1, cpu: 2s}\nbest_effort: [cgroup]\n",
		      &host, &policy, &plan, &err) == 0);
	CHECK(plan.cgroup.kind == CGROUP_V2 && plan.cgroup.memory_max == (uint64_t)1 << 30);
	CHECK(plan.cgroup.cpu_us == 2000000 && plan.cgroup.cpu_width == 8);
	CHECK_TEXT(plan.not_enforced[0], "limits.cpus");
	CHECK(!plan.not_enforced[1]);
	plan_free(&plan);
	policy_free(&policy);
}

/* The process that renames is not the command's, so it must not take one of its processes away. */
static void a_process_for_renames_has_room_of_its_own(void)
{
	struct filter renaming = filter;
	renaming.renames = FILTER_RENAMEAT2;
	static const struct {
		uint64_t pids;
		const char *max;
	} sizes[] = { { 8, "0:pids.max=10" }, { 4194302, "0:pids.max=4194304" },
		{ 4194304, "0:pids.max=4194304" } };
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct host host = v2_user_delegated();
		struct policy policy = { 0 };
		struct plan plan = { 0 };
		struct err err = { 0 };
		AUTO_BUF got = { 0 };
		char text[128];
		snprintf(text, sizeof text, "version: 1\nlimits: {pids: %u}\n",
			(unsigned)sizes[i].pids);
		CHECK(policy_parse(text, strlen(text), "p.yaml", &policy_env, &policy, &err) == 0);
		CHECK(plan_build(&policy, &request, &host, &renaming, &plan, &err) == 0);
		show(&got, &plan.cgroup);
		CHECK(strstr(buf_text(&got), sizes[i].max));
		CHECK(plan.cgroup.pids_max == sizes[i].pids);
		plan_free(&plan);
		policy_free(&policy);
	}
}

static const struct plan_rlimit *rlimit_of(const struct plan *plan, int resource)
{
	for (size_t i = 0; i < plan->rlimit_count; i++)
		if (plan->rlimits[i].resource == resource)
			return &plan->rlimits[i];
	return NULL;
}

static void the_rest_of_the_plan_fits_the_group(void)
{
	struct host host = v1_root();
	struct policy policy = { 0 };
	struct plan plan = { 0 };
	struct err err = { 0 };
	CHECK(build("version: 1\nlimits: {memory: 64MiB, cpu: 1500ms, cpus: 2.5, pids: 8}\n", &host,
		      &policy, &plan, &err) == 0);
	const struct plan_cgroup *cgroup = &plan.cgroup;
	CHECK_TEXT(cgroup->name, "agentbox-77-5");
	CHECK(cgroup->memory == 0 && cgroup->pids == 1 && cgroup->cpu == 2 && cgroup->cpuacct == 2);
	CHECK(cgroup->memory_max == 64 << 20 && cgroup->pids_max == 8);
	CHECK(cgroup->cpu_us == 1500000 && cgroup->cpu_width == 3);
	/* A full disk is no reason to be killed. */
	CHECK(plan.root_size == 32 << 20);
	const struct plan_rlimit *cpu = rlimit_of(&plan, RLIMIT_CPU);
	CHECK(cpu && cpu->limit.rlim_cur == 14 && cpu->limit.rlim_max == 14);
	/* Only the group refuses. */
	CHECK(!rlimit_of(&plan, RLIMIT_NPROC));
	CHECK(plan.namespaces & CLONE_NEWCGROUP);
	/* What programs size themselves by is shown. */
	static const char *const want[] = { "memory", "cpu" };
	static const char *const sources[] = { "memory", "cpu,cpuacct" };
	size_t seen = 0, made = 0, seal = 0;
	for (size_t i = 0; i < plan.op_count; i++) {
		const struct plan_op *op = &plan.ops[i];
		char target[64];
		snprintf(target, sizeof target, "sys/fs/cgroup/%s", seen < 2 ? want[seen] : "");
		made += op->kind == OP_DIR && !seal && strncmp(op->target, "sys", 3) == 0;
		seal += op->kind == OP_SEAL;
		if (op->kind != OP_CGROUP)
			continue;
		CHECK(seal && seen < 2);
		CHECK_TEXT(op->target, target);
		CHECK_TEXT(op->source, sources[seen++ % 2]);
	}
	CHECK(seen == 2 && made == 5);
	bool rule = false;
	for (size_t i = 0; i < plan.rule_count; i++)
		rule = rule || strcmp(plan.rules[i].path, "/sys") == 0;
	CHECK(rule);
	AUTO_BUF out = { 0 };
	CHECK(plan_explain_words(&plan, &out) == 0);
	CHECK(strstr(
		buf_text(&out), "held by memory.limit_in_bytes of a control group (p.yaml:2)"));
	CHECK(strstr(buf_text(&out), "\n  made        /m/own/agentbox-77-5\n"));
	buf_free(&out);
	CHECK(plan_explain_json(&plan, &out) == 0);
	CHECK(strstr(buf_text(&out), "\"cgroup\":{\"kind\":\"v1\",\"name\":\"agentbox-77-5\""));
	plan_free(&plan);
	policy_free(&policy);
}

static void without_a_group_nothing_of_it_is_planned(void)
{
	struct host host = v2_user_without();
	struct policy policy = { 0 };
	struct plan plan = { 0 };
	struct err err = { 0 };
	CHECK(build("version: 1\nlimits: {memory: 64MiB, cpu: 1500ms}\nbest_effort: [cgroup]\n",
		      &host, &policy, &plan, &err) == 0);
	const struct plan_cgroup *cgroup = &plan.cgroup;
	CHECK(cgroup->kind == CGROUP_NONE && !cgroup->count && !cgroup->name);
	CHECK(cgroup->memory == -1 && cgroup->pids == -1 && cgroup->cpu == -1 &&
		cgroup->cpuacct == -1 && cgroup->cpu_width == 8);
	CHECK(plan.root_size == (uint64_t)512 << 20);
	const struct plan_rlimit *cpu = rlimit_of(&plan, RLIMIT_CPU);
	CHECK(cpu && cpu->limit.rlim_cur == 2 && cpu->limit.rlim_max == 3);
	for (size_t i = 0; i < plan.op_count; i++)
		CHECK(plan.ops[i].kind != OP_CGROUP && strncmp(plan.ops[i].target, "sys", 3) != 0);
	AUTO_BUF out = { 0 };
	CHECK(plan_explain_words(&plan, &out) == 0);
	CHECK(strstr(buf_text(&out),
		"64MiB      watched on this host; past it the box is killed (p.yaml:2)"));
	CHECK(strstr(buf_text(&out), "watched on this host; past it the box is killed (p.yaml:2)"));
	CHECK(strstr(buf_text(&out), "\n  limits.memory: watched, not held: "));
	CHECK(strstr(buf_text(&out), "\n  limits.cpu: watched, not held: "));
	const struct plan_watch *watch = &plan.watch;
	CHECK(watch->memory_max == (uint64_t)64 << 20 && watch->cpu_us == 1500000);
	CHECK(watch->pids_max == policy.limits.pids.value && watch->width == 8);
	buf_free(&out);
	CHECK(plan_explain_json(&plan, &out) == 0);
	CHECK(strstr(buf_text(&out), "\"watched\":{\"memory_bytes\":67108864,"));
	plan_free(&plan);
	policy_free(&policy);
}

int main(void)
{
	RUN(a_group_is_made_where_it_may_be_and_nowhere_else);
	RUN(best_effort_gives_up_no_more_than_it_must);
	RUN(a_process_for_renames_has_room_of_its_own);
	RUN(the_rest_of_the_plan_fits_the_group);
	RUN(without_a_group_nothing_of_it_is_planned);
	return CHECK_STATUS();
}
