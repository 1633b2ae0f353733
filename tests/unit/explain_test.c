/*
 * explain_test: questions answered from made-up plans and policies, the renderings, and the
 * diagnosis of refused user namespaces from made-up facts. Asks the kernel nothing.
 */
#define _GNU_SOURCE
#include "check.h"
#include "base/buf.h"
#include "base/sys.h"
#include "plan/explain.h"
#include "plan/filter.h"
#include "plan/host_diagnosis.h"
#include "plan/plan.h"
#include "policy/policy.h"

#include <jansson.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct policy_env policy_env = { .home = "/home/ann" };

/* The policy of a text; ends the test when it is not valid. */
static void parse(const char *text, struct policy *ret_policy)
{
	struct err err = { 0 };
	if (policy_parse(text, strlen(text), "p.yaml", &policy_env, ret_policy, &err) == 0)
		return;
	fprintf(stderr, "%s:%d: %s\n", err.file, (int)err.line, err.text);
	exit(1);
}

/* A plan with one of each: system, links, made files, windows, grants, a protected file, a mask. */
static const struct plan_op ops[] = {
	{ .kind = OP_DIR, .target = "usr", .mode = 0755, .why = "made" },
	{ .kind = OP_BIND, .target = "usr", .source = "/usr", .mode = S_IFDIR, .why = "system" },
	{ .kind = OP_LINK, .target = "bin", .source = "usr/bin", .why = "system" },
	{ .kind = OP_LINK, .target = "var/up", .source = "../usr/share", .why = "system" },
	{ .kind = OP_LINK, .target = "loop", .source = "loop", .why = "system" },
	{ .kind = OP_DIR, .target = "etc", .mode = 0755, .why = "made" },
	{ .kind = OP_FILE,
		.target = "etc/passwd",
		.data = "x",
		.len = 1,
		.mode = 0644,
		.why = "made" },
	{ .kind = OP_DIR, .target = "tmp", .mode = 01777, .why = "private" },
	{ .kind = OP_FILE, .target = "dev/null", .mode = 0666, .why = "made" },
	{ .kind = OP_BIND,
		.flags = OPF_DEVICE,
		.target = "dev/null",
		.source = "/dev/null",
		.mode = S_IFCHR,
		.why = "device" },
	{ .kind = OP_SEAL, .why = "sealed" },
	{ .kind = OP_PROC, .target = "proc", .why = "private" },
	{ .kind = OP_INSIDE, .target = "tmp", .source = "tmp", .mode = S_IFDIR, .why = "private" },
	{ .kind = OP_BIND,
		.flags = OPF_GRANT | OPF_READONLY,
		.target = "srv/data",
		.source = "/srv/data",
		.mode = S_IFDIR,
		.why = "filesystem.read (p.yaml:3)" },
	{ .kind = OP_BIND,
		.flags = OPF_GRANT,
		.target = "srv/data/in",
		.source = "/srv/data/in",
		.mode = S_IFDIR,
		.why = "filesystem.write (p.yaml:4)" },
	{ .kind = OP_INSIDE,
		.flags = OPF_UNDER_GRANT | OPF_READONLY,
		.target = "srv/data/in/keep",
		.source = "srv/data/in/keep",
		.mode = S_IFREG,
		.why = "filesystem.protect (p.yaml:6)" },
	{ .kind = OP_MASK,
		.flags = OPF_UNDER_GRANT,
		.target = "srv/data/.env",
		.mode = S_IFREG,
		.why = "filesystem.hide (p.yaml:5)" },
	{ .kind = OP_BIND,
		.flags = OPF_GRANT | OPF_READONLY | OPF_RECURSIVE | OPF_UNDER_GRANT,
		.target = "srv/data/in/conf/ro",
		.source = "/srv/data/in/conf/ro",
		.mode = S_IFDIR,
		.why = "filesystem.read (p.yaml:7)" },
	{ .kind = OP_BIND,
		.flags = OPF_GRANT | OPF_RECURSIVE | OPF_UNDER_GRANT,
		.target = "srv/data/in/shut/open",
		.source = "/srv/data/in/shut/open",
		.mode = S_IFDIR,
		.why = "filesystem.write (p.yaml:8)" },
	{ .kind = OP_INSIDE,
		.flags = OPF_UNDER_GRANT | OPF_RECURSIVE,
		.target = "srv/data/in/conf",
		.source = "srv/data/in/conf",
		.mode = S_IFDIR,
		.why = "filesystem.hide (p.yaml:9)" },
	{ .kind = OP_INSIDE,
		.flags = OPF_UNDER_GRANT | OPF_READONLY,
		.target = "srv/data/in/conf/app.ini",
		.source = "srv/data/in/conf/app.ini",
		.mode = S_IFREG,
		.why = "filesystem.protect (p.yaml:6)" },
	{ .kind = OP_INSIDE,
		.flags = OPF_UNDER_GRANT | OPF_RECURSIVE | OPF_READONLY,
		.target = "srv/data/in/shut",
		.source = "srv/data/in/shut",
		.mode = S_IFDIR,
		.why = "filesystem.protect (p.yaml:10)" },
	{ .kind = OP_INSIDE,
		.flags = OPF_UNDER_GRANT | OPF_READONLY,
		.target = "srv/data/in/p.yaml",
		.source = "srv/data/in/p.yaml",
		.mode = S_IFREG,
		.why = "filesystem.protect" },
	{ .kind = OP_INSIDE,
		.target = "home/ann",
		.source = "home/ann",
		.mode = S_IFDIR,
		.why = "filesystem.home (p.yaml:11)" },
	{ .kind = OP_BIND,
		.flags = OPF_GRANT | OPF_READONLY,
		.target = "home/ann/src/lib",
		.source = "/home/ann/src/lib",
		.mode = S_IFDIR,
		.why = "filesystem.read (p.yaml:12)" },
};

static const char *const argv[] = { "true", NULL };
static const char *const envp[] = { "PATH=/bin", "TOKEN=hunter2", NULL };
static const char *const no_words[] = { NULL };
static const struct sock_filter allow_all[] = { { 6, 0, 0, 0x7fff0000 } };

static struct plan make_plan(const struct policy *policy)
{
	return (struct plan){
		.name = "p",
		.uid = 1000,
		.gid = 1000,
		.outer_uid = 1000,
		.outer_gid = 1000,
		.namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID,
		.hostname = "agentbox",
		.ops = ops,
		.op_count = COUNT(ops),
		.root_size = 1 << 20,
		.filter = { allow_all, 1, "default", "00" },
		.argv = argv,
		.candidates = argv,
		.envp = envp,
		.cwd = "/srv/data/in",
		.not_enforced = no_words,
		.network = "none",
		.workspace = "none",
		.oom_score_adj = "0",
		.policy = policy,
	};
}

static const char policy_text[] =
	"version: 1\n"
	"filesystem:\n"
	"  read: [/srv/data]\n"
	"  write: [/srv/data/in]\n"
	"  hide: [.env, \"**/*.key\", \"/srv/data/in/abs*\", \"cache/**/secret\"]\n"
	"  protect: [keep, .git/hooks]\n";

/* B26: what is below a hidden or protected name is judged with it, also what does not exist yet. */
static void path_is_judged_by_the_last_operation_that_shows_it(void)
{
	static const struct {
		const char *path;
		bool read, write;
		const char *words; /* part of the answer for the denied one, else of the read */
	} rows[] = {
		{ "/usr/bin/env", true, false, "read-only: system directory" },
		{ "/bin/sh", true, false, "system directory" },
		{ "/var/up/zoneinfo", true, false, "system directory" },
		{ "/etc/passwd", true, false, "made for the box" },
		{ "/etc/shadow", false, false, "not granted; everything is denied unless granted" },
		{ "/etc/passwd/x", false, false, "not granted" },
		{ "/", true, false, "on the way to a grant" },
		{ "/srv", true, false, "on the way to a grant" },
		{ "/srv/database", false, false, "not granted" },
		{ "/usrx", false, false, "not granted" },
		{ "/tmp", false, true, "an empty /tmp of its own" },
		{ "/tmp/x/y", false, true, "an empty /tmp of its own" },
		{ "/tmp/../etc/shadow", false, false, "not granted" },
		{ "/../../tmp//./x", false, true, "the host's file is not shown" },
		{ "/dev/null", true, true, "device" },
		{ "/proc/self/status", true, true, "private to the box" },
		{ "/srv/data/x", true, false, "filesystem.read (p.yaml:3)" },
		{ "/srv/data/in", true, true, "filesystem.write (p.yaml:4)" },
		{ "x", true, true, "filesystem.write (p.yaml:4)" },
		{ "../x", true, false, "filesystem.read (p.yaml:3)" },
		{ "/srv/data/.env", false, false, "hidden: filesystem.hide (p.yaml:5)" },
		{ "/srv/data/.env/below", false, false, "hidden: filesystem.hide (p.yaml:5)" },
		{ "/srv/data/later/.env", false, false, "filesystem.hide: .env (p.yaml:5)" },
		{ "later/.env/below", false, false, "filesystem.hide: .env (p.yaml:5)" },
		{ "a/b/x.key", false, false, "filesystem.hide: **/*.key (p.yaml:5)" },
		{ "x.key.pub", true, true, "filesystem.write" },
		{ "absolute", false, false, "filesystem.hide: /srv/data/in/abs* (p.yaml:5)" },
		{ "cache/1/2/secret/x", false, false,
			"filesystem.hide: cache/**/secret (p.yaml:5)" },
		{ "keep", true, false, "read-only: filesystem.protect (p.yaml:6)" },
		{ ".git/hooks/post-checkout", true, false,
			"filesystem.protect: .git/hooks (p.yaml:6)" },
		{ ".git/config", true, true, "filesystem.write (p.yaml:4)" },
		{ "conf", true, true, "filesystem.write (p.yaml:4)" },
		{ "conf/new", true, true, "filesystem.write (p.yaml:4)" },
		{ "conf/app.ini", true, false, "read-only: filesystem.protect (p.yaml:6)" },
		{ "conf/ro", true, false, "read-only: filesystem.read (p.yaml:7)" },
		{ "conf/ro/x", true, false, "read-only: filesystem.read (p.yaml:7)" },
		{ "shut/x", true, false, "read-only: filesystem.protect (p.yaml:10)" },
		{ "shut/open/x", true, false, "read-only: filesystem.protect (p.yaml:10)" },
		{ "p.yaml", true, false, "read-only: the policy's own file" },
		{ "/home/ann/.ssh", false, true,
			"the host's file is not shown; the box has an empty home of its own: "
			"filesystem.home (p.yaml:11)" },
		{ "/home/ann", true, true, "on the way to a grant" },
		{ "/home/ann/src", true, true, "on the way to a grant" },
		{ "/home/ann/src/lib/x", true, false, "filesystem.read (p.yaml:12)" },
		{ "/home/ann/src/libx", false, true, "the host's file is not shown" },
		{ "/home/bob", false, false, "not granted" },
	};
	struct policy policy = { 0 };
	parse(policy_text, &policy);
	struct plan plan = make_plan(&policy);
	struct arena arena = { 0 };
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct answer read = { 0 }, write = { 0 };
		struct err err = { 0 };
		CHECK(plan_ask_path(&plan, rows[i].path, false, &arena, &read, &err) == 0);
		CHECK(plan_ask_path(&plan, rows[i].path, true, &arena, &write, &err) == 0);
		const char *words = !read.allowed    ? read.words
				    : !write.allowed ? write.words
						     : read.words;
		if (read.allowed == rows[i].read && write.allowed == rows[i].write &&
			strstr(words, rows[i].words))
			continue;
		check_failures++;
		fprintf(stderr, "%s: read %d write %d: %s\n", rows[i].path, read.allowed,
			write.allowed, words);
	}
	arena_free(&arena);
	policy_free(&policy);
}

/* What only holds a directory in its place is never the reason of a grant, nor hides a link. */
static void held_directory_shows_what_was_there_before(void)
{
	struct policy policy = { 0 };
	parse(policy_text, &policy);
	struct plan plan = make_plan(&policy);
	struct arena arena = { 0 };
	struct answer answer;
	struct err err;
	static const char *const paths[] = { "conf", "conf/x", "conf/app.ini", "shut", "p.yaml" };
	for (size_t i = 0; i < COUNT(paths); i++) {
		CHECK(plan_ask_path(&plan, paths[i], false, &arena, &answer, &err) == 0 &&
			answer.allowed);
		CHECK_TEXT(answer.words, "filesystem.write (p.yaml:4)");
	}
	CHECK_TEXT(plan_host_path(&plan, "conf/app.ini", &arena), "/srv/data/in/conf/app.ini");
	CHECK_TEXT(plan_host_path(&plan, "conf/ro/x", &arena), "/srv/data/in/conf/ro/x");
	CHECK(plan_host_path(&plan, "/home/ann/x", &arena) == NULL);
	CHECK(plan_ask_path(&plan, "/home/ann/.ssh", true, &arena, &answer, &err) == 0);
	CHECK_TEXT(answer.words, "private, never the host's file: filesystem.home (p.yaml:11)");
	CHECK(plan_ask_path(&plan, "/tmp/x", true, &arena, &answer, &err) == 0);
	CHECK_TEXT(answer.words, "private, never the host's file");
	arena_free(&arena);
	policy_free(&policy);
}

static void path_that_cannot_be_judged_is_a_usage_error(void)
{
	struct policy policy = { 0 };
	parse(policy_text, &policy);
	struct plan plan = make_plan(&policy);
	struct arena arena = { 0 };
	char longest[8192];
	memset(longest, 'a', sizeof longest - 1);
	longest[0] = '/';
	longest[sizeof longest - 1] = 0;
	const char *const paths[] = { "", "/loop", "/loop/x", longest };
	for (size_t i = 0; i < COUNT(paths); i++) {
		struct answer answer = { .words = "untouched" };
		struct err err = { 0 };
		CHECK(plan_ask_path(&plan, paths[i], false, &arena, &answer, &err) == -1);
		CHECK(err.code == ERR_usage && err.text[0]);
		CHECK_TEXT(answer.words, "untouched");
	}
	arena_free(&arena);
	policy_free(&policy);
}

/* A mount may show what Landlock has no rule for; then the answer is Landlock's. */
static void path_without_a_landlock_rule_is_denied(void)
{
	static const struct plan_rule rules[] = {
		{ "/usr", SYS_LANDLOCK_FS_READ_FILE | SYS_LANDLOCK_FS_READ_DIR, false },
		{ "/tmp", SYS_LANDLOCK_FS_READ_FILE | SYS_LANDLOCK_FS_READ_DIR, false },
	};
	struct policy policy = { 0 };
	parse(policy_text, &policy);
	struct plan plan = make_plan(&policy);
	plan.landlock_abi = 7;
	plan.landlock_fs = (SYS_LANDLOCK_FS_IOCTL_DEV << 1) - 1;
	plan.rules = rules;
	plan.rule_count = COUNT(rules);
	struct arena arena = { 0 };
	struct answer answer;
	struct err err;
	CHECK(plan_ask_path(&plan, "/usr/x", false, &arena, &answer, &err) == 0 && answer.allowed);
	CHECK(plan_ask_path(&plan, "/tmp/x", false, &arena, &answer, &err) == 0 && !answer.allowed);
	CHECK(strstr(answer.words, "the host's file is not shown") != NULL);
	CHECK(plan_ask_path(&plan, "/tmp/x", true, &arena, &answer, &err) == 0 && !answer.allowed);
	CHECK(strstr(answer.words, "Landlock") != NULL);
	CHECK(plan_ask_path(&plan, "/srv/data/x", false, &arena, &answer, &err) == 0 &&
		!answer.allowed);
	arena_free(&arena);
	policy_free(&policy);
}

static const char network_text[] = "version: 1\n"
				   "network:\n"
				   "  allow:\n"
				   "    - allowed.test\n"
				   "    - \"*.wild.test:443\"\n"
				   "    - git.test:22\n"
				   "    - 10.1.0.0/16:5432\n"
				   "    - 192.0.2.7:80\n"
				   "    - \"[2001:db8::/32]:443\"\n"
				   "    - host.internal:5432\n"
				   "    - {host: map.test:22, any_name: true}\n"
				   "    - 0.0.0.0/0:99\n"
				   "    - \"[::/0]:99\"\n";

/* B37: one form of the name, whole labels; B38: addresses only by rules for addresses. */
static void host_is_allowed_only_by_a_rule_that_names_it(void)
{
	static const struct {
		const char *host;
		bool allowed;
		const char *words;
	} rows[] = {
		{ "allowed.test", true, "network.allow: allowed.test (p.yaml:4)" },
		{ "allowed.test:80", true, "(p.yaml:4)" },
		{ "ALLOWED.test:443", true, "(p.yaml:4)" },
		{ "allowed.test.:443", true, "(p.yaml:4)" },
		{ "allowed.test:8080", false, "does not list port 8080" },
		{ "notallowed.test", false, "not listed (p.yaml:" },
		{ "allowed.test.evil.test", false, "not listed" },
		{ "x.allowed.test", false, "not listed" },
		{ "a.wild.test", true, "(p.yaml:5)" },
		{ "a.b.wild.test:443", true, "(p.yaml:5)" },
		{ "wild.test", false, "not listed" },
		{ "evilwild.test", false, "not listed" },
		{ "a.wild.test:80", false, "does not list port 80" },
		{ "git.test:22", true, "(p.yaml:6)" },
		{ "10.1.2.3:5432", true, "(p.yaml:7)" },
		{ "10.2.0.1:5432", false, "does not list port 5432 (p.yaml:12)" },
		{ "[::ffff:10.1.2.3]:5432", true, "(p.yaml:7)" },
		{ "192.0.2.7:80", true, "(p.yaml:8)" },
		{ "192.0.2.8:80", false, "does not list port 80 (p.yaml:12)" },
		{ "[2001:db8::1]:443", true, "(p.yaml:9)" },
		{ "2001:db8::1", true, "(p.yaml:9)" },
		{ "[2001:db9::1]:443", false, "does not list port 443 (p.yaml:13)" },
		{ "host.internal:5432", true, "(p.yaml:10)" },
		{ "host.internal:22", false, "does not list port 22" },
		{ "map.test:22", true, "network.allow: map.test:22 (p.yaml:11)" },
		{ "map.test", false, "does not list port 443 (p.yaml:11)" },
		{ "198.51.100.1:99", true, "(p.yaml:12)" },
		{ "[2001:db9::1]:99", true, "(p.yaml:13)" },
		{ "127.0.0.1:5432", false, "needs an address rule" },
		{ "127.0.0.1:99", false, "not listed" },
		{ "0.0.0.0:99", false, "not listed" },
		{ "[::1]:99", false, "not listed" },
		{ "[::ffff:127.0.0.1]:99", false, "not listed" },
	};
	struct policy policy = { 0 };
	parse(network_text, &policy);
	struct arena arena = { 0 };
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct answer answer = { .words = "" };
		struct err err = { 0 };
		int r = policy_ask_host(&policy, rows[i].host, &arena, &answer, &err);
		if (r == 0 && answer.allowed == rows[i].allowed &&
			strstr(answer.words, rows[i].words))
			continue;
		check_failures++;
		fprintf(stderr, "%s: %d, allowed %d: %s%s\n", rows[i].host, r, answer.allowed,
			answer.words, err.text);
	}
	arena_free(&arena);
	policy_free(&policy);
}

/* B36: what is not a name is refused before it is compared with anything. */
static void host_that_is_none_is_a_usage_error(void)
{
	static const char *const hosts[] = { "", ":443", ".", "a..b", ".a", "a:0", "a:65536",
		"a:", "a:x", "a:-1", "a:443x", "[::1", "[a]:1", "[::1]x", "[10.1.2.3", "1.2.3",
		"1.2.3.4.5", "999.1.1.1", "evil.test\r\n.allowed.test", "evil.test%00.allowed.test",
		"a b", "*.allowed.test", "\xd0\xb0llowed.test", "a/b", "user@allowed.test" };
	char label[80], name[300];
	memset(label, 'a', 64);
	label[64] = 0;
	memset(name, 'a', sizeof name - 1);
	name[sizeof name - 1] = 0;
	struct policy policy = { 0 };
	parse(network_text, &policy);
	struct arena arena = { 0 };
	for (size_t i = 0; i < COUNT(hosts) + 2; i++) {
		const char *host = i < COUNT(hosts) ? hosts[i] : i == COUNT(hosts) ? label : name;
		struct answer answer = { .words = "untouched" };
		struct err err = { 0 };
		if (policy_ask_host(&policy, host, &arena, &answer, &err) == -1 &&
			err.code == ERR_usage && strcmp(answer.words, "untouched") == 0)
			continue;
		check_failures++;
		fprintf(stderr, "host \"%s\" was taken\n", host);
	}
	arena_free(&arena);
	policy_free(&policy);
}

/* B35: every way to write an empty network means none. */
static void no_network_denies_every_host_with_the_line(void)
{
	static const struct {
		const char *text, *words;
	} rows[] = {
		{ "version: 1\nnetwork: none\n", "network: none (p.yaml:2)" },
		{ "version: 1\nnetwork: {allow: []}\n", "network: none (p.yaml:2)" },
		{ "version: 1\nnetwork: {}\n", "network: none (p.yaml:2)" },
		{ "version: 1\nnetwork: null\n", "network: none (p.yaml:2)" },
		{ "version: 1\n", "network: none (default)" },
		{ "version: 1\nnetwork: {publish: [443]}\n",
			"network.allow: not listed (p.yaml:2)" },
	};
	struct arena arena = { 0 };
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct policy policy = { 0 };
		struct answer answer = { .allowed = true };
		struct err err;
		parse(rows[i].text, &policy);
		CHECK(policy_ask_host(&policy, "evil.test:443", &arena, &answer, &err) == 0);
		CHECK(!answer.allowed);
		CHECK_TEXT(answer.words, rows[i].words);
		policy_free(&policy);
	}
	struct policy policy = { 0 };
	struct answer answer = { 0 };
	struct err err;
	parse("version: 1\nnetwork: host\n", &policy);
	CHECK(policy_ask_host(&policy, "evil.test:443", &arena, &answer, &err) == 0 &&
		answer.allowed);
	policy_free(&policy);
	arena_free(&arena);
}

static void tool_and_syscall_are_answered(void)
{
	struct policy policy = { 0 };
	struct arena arena = { 0 };
	struct answer answer;
	struct err err = { 0 };
	struct filter filter;
	parse("version: 1\ntools:\n  mail: {command: [/bin/true]}\n", &policy);
	policy_ask_tool(&policy, "mail", &arena, &answer);
	CHECK(answer.allowed);
	CHECK_TEXT(answer.words, "tools (p.yaml:3)");
	policy_ask_tool(&policy, "mai", &arena, &answer);
	CHECK(!answer.allowed);
	CHECK(filter_get(&policy, &arena, &filter, &err) == 0);
	CHECK(filter_ask_syscall(&filter, &policy, "read", &arena, &answer, &err) == 0 &&
		answer.allowed);
	CHECK(filter_ask_syscall(&filter, &policy, "bpf", &arena, &answer, &err) == 0 &&
		!answer.allowed);
	CHECK(filter_ask_syscall(&filter, &policy, "socket", &arena, &answer, &err) == 0 &&
		answer.allowed);
	CHECK(filter_ask_syscall(&filter, &policy, "nonsuch", &arena, &answer, &err) == -1);
	CHECK(err.code == ERR_usage);
	arena_free(&arena);
	policy_free(&policy);
}

/* Values may be secret, names are not. */
static void json_is_complete_and_has_no_values_of_variables(void)
{
	struct policy policy = { 0 };
	parse(policy_text, &policy);
	struct plan plan = make_plan(&policy);
	AUTO_BUF out = { 0 };
	CHECK(plan_explain_json(&plan, &out) == 0);
	CHECK(!strstr(buf_text(&out), "hunter2"));
	CHECK(out.len && strchr(buf_text(&out), '\n') == out.data + out.len - 1);
	json_t *root = json_loads(buf_text(&out), 0, NULL);
	CHECK(root != NULL);
	CHECK(json_array_size(json_object_get(root, "operations")) == COUNT(ops));
	json_t *env = json_object_get(json_object_get(root, "command"), "env");
	CHECK(json_array_size(env) == 2);
	CHECK_TEXT(json_string_value(json_array_get(env, 1)), "TOKEN");
	CHECK(json_array_size(json_object_get(root, "namespaces")) == 4);
	json_t *op = json_array_get(json_object_get(root, "operations"), 13);
	CHECK_TEXT(json_string_value(json_object_get(op, "op")), "bind");
	CHECK_TEXT(json_string_value(json_object_get(op, "target")), "srv/data");
	CHECK_TEXT(json_string_value(json_object_get(op, "why")), "filesystem.read (p.yaml:3)");
	json_decref(root);
	policy_free(&policy);
}

/* A flag without a name is printed as its number rather than left out. */
static void json_drops_no_unknown_bit(void)
{
	struct policy policy = { 0 };
	parse(policy_text, &policy);
	struct plan plan = make_plan(&policy);
	plan.namespaces = CLONE_NEWUSER | 0x1;
	AUTO_BUF out = { 0 };
	CHECK(plan_explain_json(&plan, &out) == 0);
	CHECK(strstr(buf_text(&out), "\"namespaces\":[\"user\",1]") != NULL);
	policy_free(&policy);
}

/* B59: what a name holds reaches no terminal as it is. */
static void words_name_lines_and_show_control_characters(void)
{
	static const struct plan_op evil[] = {
		{ .kind = OP_SEAL },
		{ .kind = OP_BIND,
			.flags = OPF_GRANT,
			.target = "srv/a\033]0;t\007\nallowed: b",
			.source = "/srv/a",
			.mode = S_IFDIR,
			.why = "filesystem.write (p.yaml:4)" },
	};
	struct policy policy = { 0 };
	parse(policy_text, &policy);
	struct plan plan = make_plan(&policy);
	AUTO_BUF out = { 0 };
	CHECK(plan_explain_words(&plan, &out) == 0);
	CHECK(strstr(buf_text(&out), "filesystem.read (p.yaml:3)") != NULL);
	CHECK(strstr(buf_text(&out), "Network: none") != NULL);
	CHECK(!strstr(buf_text(&out), "hunter2"));
	CHECK(strstr(buf_text(&out), "\n  in place    /srv/data/in/conf - ") != NULL);
	CHECK(strstr(buf_text(&out), "/srv/data/in/p.yaml - the policy's own file\n") != NULL);
	buf_free(&out);
	plan.ops = evil;
	plan.op_count = COUNT(evil);
	CHECK(plan_explain_words(&plan, &out) == 0);
	CHECK(!strchr(buf_text(&out), '\033') && !strchr(buf_text(&out), '\007'));
	CHECK(!strstr(buf_text(&out), "\nallowed: b"));
	CHECK(strstr(buf_text(&out), "\\x1b") != NULL);
	policy_free(&policy);
}

static void unsupported_policy_is_explained_and_names_its_keys(void)
{
	static const char text[] = "version: 1\n"
				   "audit: {trace: [exec]}\n"
				   "network: {publish: [80, '81:82']}\n"
				   "limits: {memory: 1GiB}\n";
	struct policy policy = { 0 };
	parse(text, &policy);
	struct err why;
	err_set(&why, ERR_unsupported, 0, "audit.trace is not in this version");
	AUTO_BUF out = { 0 };
	CHECK(policy_explain_words(&policy, &why, &out) == 0);
	CHECK(strstr(buf_text(&out), "audit.trace is not in this version") != NULL);
	CHECK(strstr(buf_text(&out), "\n  audit.trace (p.yaml:2)\n") != NULL);
	CHECK(!strstr(buf_text(&out), "\n  network.publish"));
	CHECK(strstr(buf_text(&out), "Network: none to reach from inside (p.yaml:3)\n") != NULL);
	CHECK(strstr(
		buf_text(&out), "port 80 at the host's 127.0.0.1:(any free port) - p.yaml:3\n"));
	CHECK(strstr(buf_text(&out), "port 82 at the host's 127.0.0.1:81 - p.yaml:3\n") != NULL);
	CHECK(strstr(buf_text(&out), "1GiB       needs a control group (p.yaml:4)\n") != NULL);
	CHECK(!strstr(buf_text(&out), "\n  limits.memory"));
	CHECK(!strstr(buf_text(&out), "\n  tools"));
	policy_free(&policy);
}

/* What holds an allow-list is said where there is one, and only there. */
static void allow_list_is_explained_with_what_holds_it(void)
{
	static const struct net_rule rules[] = {
		{ .name = "a.test", .ports = { 443, 80 }, .port_count = 2, .given = "a.test" },
		{ .name = "b.test",
			.any_name = true,
			.ports = { 22 },
			.port_count = 1,
			.given = "b.test:22" },
	};
	static const struct network_publish publish[] = { { 80, 0 }, { 81, 82 } };
	struct policy policy = { 0 };
	parse("version: 1\nnetwork:\n  allow:\n  - a.test\n"
	      "  - {host: 'b.test:22', any_name: true}\n",
		&policy);
	struct plan plan = make_plan(&policy);
	AUTO_BUF out = { 0 }, without = { 0 }, json = { 0 };
	plan.namespaces |= CLONE_NEWNET;
	CHECK(plan_explain_words(&plan, &without) == 0);
	CHECK(!strstr(buf_text(&without), "gateway"));
	CHECK(plan_explain_json(&plan, &json) == 0 && !strstr(buf_text(&json), "\"reach\""));
	buf_free(&json);
	plan.network = "allow";
	plan.reach.rules = rules;
	plan.reach.rule_count = COUNT(rules);
	plan.reach.publish = publish;
	plan.reach.publish_count = COUNT(publish);
	CHECK(plan_explain_words(&plan, &out) == 0);
	CHECK(strstr(buf_text(&out), "Network: only what is listed (p.yaml:2)\n") != NULL);
	CHECK(strstr(buf_text(&out), "  allow       a.test ports 443 80 - p.yaml:4\n") != NULL);
	CHECK(strstr(buf_text(&out), "b.test:22 port 22 for any name that is asked for there - "
				     "p.yaml:5\n"));
	CHECK(strstr(buf_text(&out), "by TCP only; names are looked up outside") != NULL);
	CHECK(strstr(buf_text(&out), "a network namespace without a way out; a gateway process"));
	CHECK(plan_explain_json(&plan, &json) == 0);
	CHECK(strstr(buf_text(&json),
		"\"network\":\"allow\",\"reach\":{\"allow\":[{\"host\":\"a.test\",\"ports\":[443,"
		"80],"
		"\"any_name\":false},{\"host\":\"b.test:22\",\"ports\":[22],\"any_name\":true}],"
		"\"publish\":[{\"port\":80,\"host_port\":null},{\"port\":81,\"host_port\":82}]}"));
	policy_free(&policy);
}

static void small_buffer_is_an_error_not_a_cut_text(void)
{
	struct policy policy = { 0 };
	parse(policy_text, &policy);
	struct plan plan = make_plan(&policy);
	AUTO_BUF out = { .max = 200 };
	CHECK(plan_explain_words(&plan, &out) < 0);
	buf_free(&out);
	CHECK(plan_explain_json(&plan, &out) < 0);
	policy_free(&policy);
}

static struct userns_facts fine_host(void)
{
	return (struct userns_facts){ .compiled_in = true,
		.max_namespaces = 15000,
		.clone_allowed = -1,
		.apparmor_restricts = -1,
		.exe = "/usr/bin/agentbox" };
}

/* A32, A33: the remedy names the setting, the profile and its file. */
static void refused_user_namespace_has_a_cause_and_a_remedy(void)
{
	struct userns_facts f = fine_host();
	char text[512];
	CHECK(host_userns_cause(&f) == USERNS_UNKNOWN);
	f.seccomp = 2;
	f.container = true;
	CHECK(host_userns_cause(&f) == USERNS_SECCOMP);
	host_userns_judge(&f, text, sizeof text);
	CHECK(strstr(text, "--security-opt seccomp=") != NULL);
	f.chrooted = true;
	CHECK(host_userns_cause(&f) == USERNS_CHROOT);
	f.apparmor_restricts = 1;
	CHECK(host_userns_cause(&f) == USERNS_APPARMOR);
	host_userns_judge(&f, text, sizeof text);
	CHECK(strstr(text, "kernel.apparmor_restrict_unprivileged_userns") != NULL);
	CHECK(strstr(text, "/etc/apparmor.d/agentbox") != NULL);
	CHECK(strstr(text, "profile agentbox /usr/{local/,}bin/agentbox flags=(unconfined) { "
			   "userns, }") != NULL);
	f.clone_allowed = 0;
	CHECK(host_userns_cause(&f) == USERNS_CLONE_SYSCTL);
	host_userns_judge(&f, text, sizeof text);
	CHECK(strstr(text, "kernel.unprivileged_userns_clone=1") != NULL);
	f.max_namespaces = 0;
	CHECK(host_userns_cause(&f) == USERNS_MAX_ZERO);
	host_userns_judge(&f, text, sizeof text);
	CHECK(strstr(text, "user.max_user_namespaces=") != NULL);
	f.compiled_in = false;
	CHECK(host_userns_cause(&f) == USERNS_NOT_COMPILED);
}

static void settings_for_others_do_not_bind_the_privileged(void)
{
	struct userns_facts f = fine_host();
	f.privileged = true;
	f.clone_allowed = 0;
	f.apparmor_restricts = 1;
	CHECK(host_userns_cause(&f) == USERNS_UNKNOWN);
}

static void profile_names_the_program_only_when_its_path_is_plain(void)
{
	struct userns_facts f = fine_host();
	char text[400], hint[512];
	strcpy(f.exe, "/opt/agentbox-1.0/bin/agentbox");
	host_apparmor_profile(&f, text, sizeof text);
	CHECK(strstr(text, " /opt/agentbox-1.0/bin/agentbox ") != NULL);
	strcpy(f.exe, "/opt/x { capability, }/agentbox");
	host_apparmor_profile(&f, text, sizeof text);
	CHECK(strstr(text, "capability") == NULL);
	memset(f.exe, 'a', sizeof f.exe - 1);
	f.exe[0] = '/';
	f.exe[sizeof f.exe - 1] = 0;
	f.apparmor_restricts = 1;
	host_userns_judge(&f, hint, sizeof hint);
	CHECK(strstr(hint, "apparmor_parser") !=
		NULL); /* the whole of it fits in an error's hint */
}

int main(void)
{
	RUN(path_is_judged_by_the_last_operation_that_shows_it);
	RUN(held_directory_shows_what_was_there_before);
	RUN(path_that_cannot_be_judged_is_a_usage_error);
	RUN(path_without_a_landlock_rule_is_denied);
	RUN(host_is_allowed_only_by_a_rule_that_names_it);
	RUN(host_that_is_none_is_a_usage_error);
	RUN(no_network_denies_every_host_with_the_line);
	RUN(tool_and_syscall_are_answered);
	RUN(json_is_complete_and_has_no_values_of_variables);
	RUN(json_drops_no_unknown_bit);
	RUN(words_name_lines_and_show_control_characters);
	RUN(unsupported_policy_is_explained_and_names_its_keys);
	RUN(allow_list_is_explained_with_what_holds_it);
	RUN(small_buffer_is_an_error_not_a_cut_text);
	RUN(refused_user_namespace_has_a_cause_and_a_remedy);
	RUN(settings_for_others_do_not_bind_the_privileged);
	RUN(profile_names_the_program_only_when_its_path_is_plain);
	return CHECK_STATUS();
}
