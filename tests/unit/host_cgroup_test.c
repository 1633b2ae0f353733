/*
 * host_cgroup_test: where this process's control groups are, from made-up texts and a made-up tree
 * in a temporary directory; lists of processors; which policies ask for groups at all.
 */
#define _GNU_SOURCE
#include "check.h"
#include "plan/cpulist.h"
#include "plan/host_cgroup.h"
#include "policy/policy.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define BIT(controller) (1u << CONTROLLER_##controller)

static const char v2_mount[] = "22 1 0:20 / / rw - ext4 /dev/vda rw\n"
			       "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 master:3 - cgroup2 "
			       "cgroup2 rw,nsdelegate\n";
static const char v1_mounts[] =
	"31 22 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
	"32 31 0:29 / /sys/fs/cgroup/unified rw shared:1 - cgroup2 cgroup2 rw,nsdelegate\n"
	"33 31 0:30 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
	"34 31 0:31 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
	"35 31 0:32 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset,clone_children\n"
	"36 31 0:33 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	"37 31 0:34 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n";

struct row {
	const char *name, *cgroup, *mountinfo;
	const char *controller; /* NULL: v2 */
	const char *want;       /* NULL: not to be found */
	const char *mounted;    /* v1 */
};

static const struct row rows[] = {
	{ "v2", "0::/user.slice/a.scope\n", v2_mount, NULL, "/sys/fs/cgroup/user.slice/a.scope" },
	{ "v2, at the root", "0::/\n", v2_mount, NULL, "/sys/fs/cgroup" },
	{ "no text at all", "", "", NULL, NULL },
	{ "no newline at the end", "0::/a", "1 1 0:1 / /c rw - cgroup2 x rw", NULL, "/c/a" },
	{ "cut lines", "0:\n0\n:\n0::\n", "1 1 0:1 / /c\n1 1 0:1 / /c rw -\n\n", NULL, NULL },
	{ "v2 is not mounted", "0::/a\n", "1 1 0:1 / /c rw - tmpfs x rw\n", NULL, NULL },
	{ "a removed group", "0::/a (deleted)\n", v2_mount, NULL, NULL },
	{ "colons in a name", "0::/a:b/c\n", v2_mount, NULL, "/sys/fs/cgroup/a:b/c" },
	{ "escapes", "0::/a b\n", "1 1 0:1 /a\\040b /m\\040n\\134 rw - cgroup2 x rw\n", NULL,
		"/m n\\" },
	{ "a mount of a part", "0::/docker/ab/c\n", "1 1 0:1 /docker/ab /c rw - cgroup2 x rw\n",
		NULL, "/c/c" },
	{ "a mount of another part", "0::/docker/abc\n",
		"1 1 0:1 /docker/ab /c rw - cgroup2 x rw\n", NULL, NULL },
	{ "outside of the namespace", "0::/../a\n", v2_mount, NULL, NULL },
	{ "a mount from before the namespace", "0::/\n", "1 1 0:1 /.. /c rw - cgroup2 x rw\n", NULL,
		NULL },
	{ "the first that is writable", "0::/a\n",
		"1 0 0:1 / /x ro - cgroup2 x rw\n2 0 0:1 / /y rw - cgroup2 x rw\n"
		"3 0 0:1 / /z rw - cgroup2 x rw\n",
		NULL, "/y/a" },
	{ "read-only as the last resort", "0::/a\n", "1 0 0:1 / /x rw - cgroup2 x ro\n", NULL,
		"/x/a" },
	{ "one that is covered", "0::/a\n",
		"1 0 0:1 / /x rw - cgroup2 x rw\n2 1 0:2 / /x rw - tmpfs x rw\n"
		"3 0 0:1 / /y rw - cgroup2 x rw\n",
		NULL, "/y/a" },
	{ "hybrid", "4:memory:/m\n1:name=systemd:/s\n0::/u\n", v1_mounts, NULL,
		"/sys/fs/cgroup/unified/u" },
	{ "v1", "4:memory:/m\n0::/u\n", v1_mounts, "memory", "/sys/fs/cgroup/memory/m", "memory" },
	{ "v1, co-mounted", "5:cpu,cpuacct:/c\n", v1_mounts, "cpuacct",
		"/sys/fs/cgroup/cpu,cpuacct/c", "cpu,cpuacct" },
	{ "v1, a part of a name", "5:cpu,cpuacct:/c\n6:cpuset:/s\n", v1_mounts, "cpuset",
		"/sys/fs/cgroup/cpuset/s", "cpuset" },
	{ "v1, not there", "5:cpu,cpuacct:/c\n", v1_mounts, "memory", NULL },
	{ "v1, a named hierarchy", "1:name=x,memory:/s\n", v1_mounts, "memory", NULL },
	{ "v1, not mounted", "9:memory:/m\n", v2_mount, "memory", NULL },
	{ "v1 in a container", "4:memory:/docker/ab\n",
		"9 1 0:1 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n", "memory",
		"/sys/fs/cgroup/memory", "memory" },
};

static void the_own_group_is_found_in_the_texts(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *row = &rows[i];
		struct arena arena = { 0 };
		const char *second = NULL;
		const char *got = row->controller ? host_cgroup_v1_dir(row->cgroup, row->mountinfo,
							    row->controller, &arena, &second)
						  : host_cgroup_v2_dir(row->cgroup, row->mountinfo,
							    &arena, &second);
		bool same = row->want ? got && strcmp(got, row->want) == 0 : !got;
		if (!same)
			fprintf(stderr, "%s: got %s\n", row->name, got ? got : "nothing");
		CHECK(same);
		if (row->mounted)
			CHECK_TEXT(second, row->mounted);
		arena_free(&arena);
	}
}

/* A made-up tree. */
static char base[64];

static const char *in_tree(const char *path)
{
	static char full[4][512];
	static int turn;
	char *text = full[turn++ % 4];
	snprintf(text, sizeof full[0], "%s/%s", base, path);
	return text;
}

static void put(const char *dir, const char *name, const char *text)
{
	char path[600];
	snprintf(path, sizeof path, "%s/%s", in_tree(dir), name);
	FILE *file = fopen(path, "w");
	CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void group(const char *dir, const char *type, const char *available, const char *enabled,
	const char *procs)
{
	CHECK(mkdir(in_tree(dir), 0755) == 0);
	if (type)
		put(dir, "cgroup.type", type);
	put(dir, "cgroup.controllers", available);
	put(dir, "cgroup.subtree_control", enabled);
	put(dir, "cgroup.procs", procs);
}

static const char *tree_mounts(struct arena *arena)
{
	return arena_printf(arena,
		"1 0 0:1 / %s/v2 rw - cgroup2 x rw\n2 0 0:2 / %s/cpuset rw - cgroup x rw,cpuset\n"
		"3 0 0:3 / %s/mem rw - cgroup x rw,memory\n4 0 0:4 / %s/pids rw - cgroup x "
		"rw,pids\n",
		base, base, base, base);
}

static void make_tree(void)
{
	group("v2", NULL, "cpuset cpu io memory pids\n", "cpu memory pids\n", "1\n2\n3\n");
	group("v2/u", "domain\n", "cpu memory pids\n", "memory pids\n", "");
	group("v2/u/t", "domain threaded\n", "cpu\n", "\n", "");
	group("v2/u/s", "domain\n", "memory pids\n", "\n", "77\n");
	group("v2/u/s/agentbox-self", "domain\n", "\n", "\n", "77\n0\n");
	CHECK(mkdir(in_tree("cpuset"), 0755) == 0 && mkdir(in_tree("mem"), 0755) == 0 &&
		mkdir(in_tree("mem/a"), 0755) == 0);
	put("cpuset", "tasks", "");
	put("cpuset", "cpuset.mems", "0\n");
	put("cpuset", "cpuset.cpus", "0-3\n");
	put("mem/a", "tasks", "");
}

#define WANTED BIT(CPUSET)

static void levels_go_up_to_where_it_is_anothers(void)
{
	struct arena arena = { 0 };
	struct host_cgroup facts = { 0 };
	host_cgroup_read("0::/u/s\n2:cpuset:/\n3:memory:/a\n4:pids:/gone\n", tree_mounts(&arena),
		WANTED, geteuid(), false, &arena, &facts);
	CHECK(facts.level_count == 3);
	const struct host_cgroup_level *own = &facts.levels[0], *up = &facts.levels[1],
				       *root = &facts.levels[2];
	CHECK_TEXT(own->dir, in_tree("v2/u/s"));
	CHECK(own->owned && own->writable && own->domain && !own->root && own->processes == 1);
	CHECK(own->available == (BIT(MEMORY) | BIT(PIDS)) && own->enabled == 0);
	CHECK_TEXT(up->dir, in_tree("v2/u"));
	CHECK(up->processes == 0 && up->enabled == (BIT(MEMORY) | BIT(PIDS)));
	CHECK_TEXT(root->dir, in_tree("v2"));
	CHECK(root->root && root->domain && root->processes == 2);
	CHECK(root->available == (BIT(CPUSET) | BIT(CPU) | BIT(MEMORY) | BIT(PIDS)));
	CHECK_TEXT(facts.v1[CONTROLLER_CPUSET].mems, "0");
	CHECK_TEXT(facts.v1[CONTROLLER_CPUSET].cpus, "0-3");
	CHECK(!facts.v1[CONTROLLER_MEMORY].dir);

	/* What a v1 hierarchy has, v2 has not. */
	memset(&facts, 0, sizeof facts);
	host_cgroup_read("0::/u/s\n2:cpuset:/\n3:memory:/a\n4:pids:/gone\n", tree_mounts(&arena),
		BIT(MEMORY) | BIT(PIDS), geteuid(), false, &arena, &facts);
	CHECK(facts.level_count == 0 && !facts.v1[CONTROLLER_CPUSET].dir);
	CHECK_TEXT(facts.v1[CONTROLLER_MEMORY].dir, in_tree("mem/a"));
	CHECK(facts.v1[CONTROLLER_MEMORY].writable);
	CHECK(!facts.v1[CONTROLLER_PIDS].dir && !facts.v1[CONTROLLER_CPU].dir);

	/* Another user's from the first on: it is looked at, and nothing above it. */
	memset(&facts, 0, sizeof facts);
	host_cgroup_read(
		"0::/u/s\n", tree_mounts(&arena), WANTED, geteuid() + 1, false, &arena, &facts);
	CHECK(facts.level_count == 1 && !facts.levels[0].owned);
	memset(&facts, 0, sizeof facts);
	host_cgroup_read(
		"0::/u/t\n", tree_mounts(&arena), WANTED, geteuid(), false, &arena, &facts);
	CHECK(facts.level_count == 3 && !facts.levels[0].domain);
	memset(&facts, 0, sizeof facts);
	host_cgroup_read(
		"0::/nonsuch\n", tree_mounts(&arena), WANTED, geteuid(), false, &arena, &facts);
	CHECK(facts.level_count == 0);
	arena_free(&arena);
}

static void root_goes_up_only_by_a_mark(void)
{
	struct arena arena = { 0 };
	struct host_cgroup facts = { 0 };
	host_cgroup_read("0::/u/s\n", tree_mounts(&arena), WANTED, geteuid(), true, &arena, &facts);
	CHECK(facts.level_count == 1);
	memset(&facts, 0, sizeof facts);
	host_cgroup_read("0::/u/s/agentbox-self\n", tree_mounts(&arena), WANTED, geteuid(), true,
		&arena, &facts);
	CHECK(facts.level_count == 2 && facts.levels[0].processes == 2);
	/* Not every file system takes such an attribute. */
	if (setxattr(in_tree("v2/u"), "user.delegate", "1", 1, 0) == 0) {
		memset(&facts, 0, sizeof facts);
		host_cgroup_read("0::/u/s/agentbox-self\n", tree_mounts(&arena), WANTED, geteuid(),
			true, &arena, &facts);
		CHECK(facts.level_count == 3);
		CHECK(!facts.levels[1].delegated && facts.levels[2].delegated);
	}
	arena_free(&arena);
}

static void processors_are_counted_and_picked(void)
{
	static const struct {
		const char *list;
		size_t count, pick;
		uint64_t offset;
		const char *want;
	} lists[] = {
		{ "0-3", 4, 2, 0, "0-1" },
		{ "0-3", 4, 2, 3, "0,3" },
		{ "0-3,8,10-11\n", 7, 3, 3, "3,8,10" },
		{ "0-3,8,10-11", 7, 6, 8000000002, "1-3,8,10-11" },
		{ "5", 1, 1, 0, NULL },
		{ "0-1", 2, 0, 0, NULL },
		{ "0-1", 2, 5, 0, NULL },
		{ "", 0, 1, 0, NULL },
		{ "3-1", 0, 1, 0, NULL },
		{ "0-99999999", 0, 1, 0, NULL },
		{ "a", 0, 1, 0, NULL },
		{ "-1", 0, 1, 0, NULL },
	};
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		struct arena arena = { 0 };
		const char *got =
			cpulist_pick(&arena, lists[i].list, lists[i].pick, lists[i].offset);
		CHECK(cpulist_count(lists[i].list) == lists[i].count);
		if (lists[i].want)
			CHECK_TEXT(got, lists[i].want);
		else
			CHECK(got == NULL);
		arena_free(&arena);
	}
	CHECK(cpulist_count(NULL) == 0);
}

/* A start with a shipped policy must not even look. */
static void shipped_number_of_processes_asks_for_no_group(void)
{
	static const struct policy_env env = { .home = "/home/ann" };
	static const struct {
		const char *file, *text;
		bool asked;
	} asks[] = {
		{ "p.yaml", "version: 1\n", false },
		{ AGENTBOX_POLICYDIR "/default.yaml", "version: 1\nlimits: {pids: 8}\n", false },
		{ "p.yaml", "version: 1\nlimits: {pids: 8}\n", true },
		{ "p.yaml", "version: 1\nlimits: {wall: 1s, disk: 2MiB}\n", false },
		{ "p.yaml", "version: 1\nlimits: {memory: 8MiB}\n", true },
		{ "p.yaml", "version: 1\nlimits: {cpu: 1s}\n", true },
		{ AGENTBOX_POLICYDIR "/x.yaml", "version: 1\nlimits: {cpus: 1}\n", true },
	};
	for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
		struct policy policy;
		struct err err;
		CHECK(policy_parse(asks[i].text, strlen(asks[i].text), asks[i].file, &env, &policy,
			      &err) == 0);
		CHECK(host_cgroup_asked(&policy) == asks[i].asked);
		policy_free(&policy);
	}
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(base, sizeof base, "%s/cgroup-XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
	if (!mkdtemp(base))
		return 1;
	RUN(the_own_group_is_found_in_the_texts);
	make_tree();
	RUN(levels_go_up_to_where_it_is_anothers);
	RUN(root_goes_up_only_by_a_mark);
	RUN(processors_are_counted_and_picked);
	RUN(shipped_number_of_processes_asks_for_no_group);
	char remove[128];
	snprintf(remove, sizeof remove, "rm -rf '%s'", base);
	CHECK(system(remove) == 0);
	return CHECK_STATUS();
}
