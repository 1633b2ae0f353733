/*
 * policy_load_test: policies as files. How names are found, what extends, -p and options lay over
 * what, and files that are no policy. Cases B32 and B47 as far as files go.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "policy/policy.h"
#include "check.h"

#define V "version: 1\n"

/* A directory of configuration, and of policies to load by name in it. */
static char dir[] = "/tmp/policy_test.XXXXXX";
static char policies[96];

static void write_policy(const char *name, const char *text)
{
	char path[192];
	snprintf(path, sizeof path, "%s/%s", policies, name);
	FILE *file = fopen(path, "w");
	CHECK(file != NULL);
	if (!file)
		exit(1);
	fputs(text, file);
	fclose(file);
}

static int load(const char *first, const char *second, const struct policy_override *overrides,
	size_t override_count, struct policy *ret, struct err *err)
{
	const char *names[] = { first, second };
	struct policy_env here = {
		.home = "/home/u", .config_home = dir, .system_dir = "/nonexistent/s"
	};
	*err = (struct err){ 0 };
	return policy_load(names, second ? 2 : 1, overrides, override_count, &here, ret, err);
}

static void policies_are_laid_over_each_other(void)
{
	write_policy("base.yaml",
		V "name: base\ndescription: d\nfilesystem: {read: [/a], workspace: write}\n"
		  "network: {allow: [a.test]}\nlimits: {wall: 1s, pids: 5}\nenv: {set: {A: x, B: "
		  "y}}\n"
		  "code: {p: {command: [old, '{file}'], suffix: .p}}\n");
	write_policy(
		"left.yaml", V "extends: [base]\nfilesystem: {read: [rel]}\nlimits: {pids: 6}\n");
	write_policy("right.yaml",
		V "extends: [base]\nfilesystem: {workspace: none}\nenv: {set: {B: z}}\n");
	write_policy("top.yaml", V "extends: [left, ./right.yaml]\nnetwork: {allow: [b.test]}\n"
				   "code: {p: {command: ['{file}']}}\n");
	struct policy p;
	struct err err;
	char rel[192];
	CHECK(load("top", NULL, NULL, 0, &p, &err) == 0);
	CHECK_TEXT(p.name, "top");
	CHECK(p.description == NULL);
	/* base is merged once, although it is reached twice. */
	CHECK(p.source_count == 4 && p.fs.read_count == 2 && p.allow_count == 2);
	CHECK(strstr(p.sources[0], "base.yaml") && strstr(p.sources[3], "top.yaml"));
	snprintf(rel, sizeof rel, "%s/rel", policies);
	CHECK_TEXT(p.fs.read[1].path, rel);
	CHECK(strstr(p.fs.read[1].at.file, "left.yaml") && p.fs.read[1].at.line == 3);
	CHECK(p.fs.workspace == WORKSPACE_NONE && p.limits.pids.value == 6);
	CHECK(p.limits.wall_us.value == 1000000 && strstr(p.limits.wall_us.at.file, "base.yaml"));
	CHECK(p.env_set_count == 2);
	CHECK_TEXT(p.env_set[1].value, "z");
	/* A command is one value: replaced, not lengthened. */
	CHECK(p.code_count == 1 && p.code[0].command_count == 1);
	CHECK_TEXT(p.code[0].suffix, ".p");
	policy_free(&p);

	/* Later -p win, also when the policy was a base of an earlier one. */
	CHECK(load("right", "base", NULL, 0, &p, &err) == 0);
	CHECK(p.fs.workspace == WORKSPACE_WRITE && p.fs.read_count == 1 && p.source_count == 2);
	CHECK_TEXT(p.name, "base");
	policy_free(&p);
	write_policy("shut.yaml", V "network: none\n");
	CHECK(load("base", "shut", NULL, 0, &p, &err) == 0);
	CHECK(p.network == NETWORK_NONE && p.allow_count == 0);
	policy_free(&p);
}

/* Lists grow, each element with its own file; a word takes all of a map before it. */
static void maps_of_networks_add_up(void)
{
	struct policy p;
	struct err err;
	write_policy("net.yaml", V "network:\n  allow: [a.test]\n  publish: [80]\n");
	write_policy("more.yaml",
		V "network:\n  allow: [{host: a.test, any_name: true}]\n  publish: ['9:81']\n");
	write_policy("same.yaml", V "network:\n  publish:\n    - '9:80'\n");
	write_policy("none.yaml", V "network: none\n");
	write_policy("host.yaml", V "network: host\n");
	CHECK(load("net", "more", NULL, 0, &p, &err) == 0);
	CHECK(p.network == NETWORK_ALLOW && p.allow_count == 2 && p.publish_count == 2);
	CHECK(!p.allow[0].any_name && p.allow[1].any_name && p.allow[1].at.line == 3);
	CHECK(strstr(p.allow[1].at.file, "more.yaml") && strstr(p.publish[0].at.file, "net.yaml"));
	CHECK(p.publish[1].host_port == 9 && p.publish[1].port == 81 && p.publish[1].at.line == 4);
	policy_free(&p);
	CHECK(load("net", "same", NULL, 0, &p, &err) < 0 && err.code == ERR_policy_invalid);
	CHECK(strstr(err.file, "same.yaml") && err.line == 4 && err.column == 7);
	CHECK(strstr(err.text, "a second time") && strstr(err.text, "net.yaml:4"));
	CHECK(load("net", "none", NULL, 0, &p, &err) == 0);
	CHECK(p.network == NETWORK_NONE && p.allow_count == 0 && p.publish_count == 0);
	policy_free(&p);
	CHECK(load("net", "host", NULL, 0, &p, &err) == 0);
	CHECK(p.network == NETWORK_HOST && p.allow_count == 0 && p.publish_count == 0);
	policy_free(&p);
	CHECK(load("host", "same", NULL, 0, &p, &err) == 0);
	CHECK(p.network == NETWORK_NONE && p.publish_count == 1);
	policy_free(&p);
}

static void bases_that_cannot_be_had(void)
{
	struct policy p;
	struct err err;
	write_policy("x.yaml", V "extends: [y]\n");
	write_policy("y.yaml", V "extends: [x]\n");
	CHECK(load("x", NULL, NULL, 0, &p, &err) < 0 && err.code == ERR_policy_invalid);
	CHECK(strstr(err.text, "x.yaml -> ") && strstr(err.text, "y.yaml -> ") && err.line == 2);
	CHECK(load("nosuch", NULL, NULL, 0, &p, &err) < 0 && err.code == ERR_policy_not_found);
	CHECK(strstr(err.text, policies) && strstr(err.text, "/nonexistent/s"));
	CHECK(load("./nosuch.yaml", NULL, NULL, 0, &p, &err) < 0 &&
		err.code == ERR_policy_not_found);
	CHECK(load("Bad Name", NULL, NULL, 0, &p, &err) < 0 && err.code == ERR_policy_not_found);
	CHECK(load("/dev/zero", NULL, NULL, 0, &p, &err) < 0 && err.code == ERR_policy_unreadable);
	CHECK(load("/tmp/", NULL, NULL, 0, &p, &err) < 0 && err.code == ERR_policy_unreadable);
	write_policy("lost.yaml", V "extends: [nosuch]\n");
	CHECK(load("lost", NULL, NULL, 0, &p, &err) < 0 && err.code == ERR_policy_not_found);
	CHECK(err.line == 2 && err.column == 11 && strstr(err.file, "lost.yaml"));
	for (int i = 0; i <= POLICY_EXTENDS_MAX + 1; i++) {
		char name[32], text[64];
		snprintf(name, sizeof name, "d%d.yaml", i);
		snprintf(text, sizeof text, i ? V "extends: [d%d]\n" : V, i - 1);
		write_policy(name, text);
	}
	CHECK(load("d8", NULL, NULL, 0, &p, &err) == 0);
	policy_free(&p);
	CHECK(load("d9", NULL, NULL, 0, &p, &err) < 0 && strstr(err.text, "more than 8 deep"));
	char fifo[192];
	snprintf(fifo, sizeof fifo, "%s/fifo.yaml", policies);
	CHECK(mkfifo(fifo, 0600) == 0);
	alarm(5); /* a pipe without a writer must not make it wait */
	CHECK(load("fifo", NULL, NULL, 0, &p, &err) < 0 && err.code == ERR_policy_unreadable);
	alarm(0);
}

/* What to write in place of a name that leads nowhere, on the command line and in extends. */
static void names_that_lead_nowhere_have_a_hint(void)
{
	static const struct {
		const char *name, *hint, *extends_hint;
	} rows[] = {
		{ "bsae", "did you mean 'base'?", "did you mean 'base'?" },
		{ "Base", "names are lower-case: base", "names are lower-case: base" },
		{ "base,left", "give the option once for each: -p base -p left",
			"each is an element of its own: [base, left]" },
		{ "base.yaml", "/base.yaml is meant by its name alone: -p base", NULL },
		{ "./nosuchthing.yaml", "counts from the current directory: /",
			"counts from the directory of the file it is written in: /" },
		{ "./rihgt.yaml", "counts from the current directory",
			"did you mean './right.yaml'?" },
		{ "/nonexistent/nosuch.yaml", "there is no directory /nonexistent/",
			"there is no directory /nonexistent/" },
		{ "/tmp/nosuchthing.yaml", "check the spelling", "check the spelling" },
	};
	struct policy p;
	struct err err;
	char text[128];
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int before = check_failures;
		CHECK(load(rows[i].name, NULL, NULL, 0, &p, &err) < 0);
		CHECK(err.code == ERR_policy_not_found && strstr(err.hint, rows[i].hint));
		if (rows[i].extends_hint) {
			snprintf(text, sizeof text, V "extends: ['%s']\n", rows[i].name);
			write_policy("child.yaml", text);
			CHECK(load("child", NULL, NULL, 0, &p, &err) < 0 && err.line == 2 &&
				err.column == 11);
			CHECK(strstr(err.hint, rows[i].extends_hint));
		}
		if (check_failures != before)
			fprintf(stderr, "   of %s: %s [%s]\n", rows[i].name, err.text, err.hint);
	}
	/* A file beside the one that names it, or in the current directory. */
	write_policy("work.yaml", V);
	CHECK(chdir(policies) == 0);
	const char *name = "work";
	const struct policy_env nowhere = { .system_dir = "/nonexistent" };
	CHECK(policy_load(&name, 1, NULL, 0, &nowhere, &p, &err) < 0);
	CHECK_TEXT(err.hint, "the file here is meant by its whole name: -p ./work.yaml");
	CHECK(chdir("/") == 0);
}

static void a_policy_that_extends_itself(void)
{
	char system[128], text[256];
	struct policy p;
	struct err err = { 0 };
	snprintf(system, sizeof system, "%s/system", dir);
	CHECK(mkdir(system, 0700) == 0);
	write_policy("../../system/own.yaml", V);
	write_policy("own.yaml", V "extends: [own]\n");
	const struct policy_env env = { .config_home = dir, .system_dir = system };
	const char *name = "own";
	CHECK(policy_load(&name, 1, NULL, 0, &env, &p, &err) < 0);
	CHECK(err.code == ERR_policy_invalid && err.line == 2 && err.column == 11);
	CHECK_TEXT(err.text, "'own' is this file itself");
	snprintf(text, sizeof text, "path: extends: [%s/own.yaml]", system);
	CHECK(strstr(err.hint, "another name") && strstr(err.hint, text));
	write_policy("own.yaml", V "extends: [./own.yaml]\n");
	CHECK(policy_load(&name, 1, NULL, 0, &env, &p, &err) < 0);
	CHECK_TEXT(err.hint, "take it out of extends");
}

static void options_are_laid_on_top(void)
{
	const struct policy_override good[] = { { "limits.memory", "1GiB", "--memory" },
		{ "limits.wall", "5s", "--wall" }, { "best_effort", "cgroup", "--best-effort" } };
	const struct policy_override bad = { "limits.memory", "1MB2", "--memory" };
	const struct policy_override unknown = { "tools.*.calls", "1", "--calls" };
	struct policy p;
	struct err err;
	CHECK(load("base", NULL, good, 3, &p, &err) == 0);
	CHECK(p.limits.memory.value == (uint64_t)1 << 30 && p.limits.wall_us.value == 5000000);
	CHECK_TEXT(p.limits.memory.at.file, "--memory");
	CHECK(p.limits.memory.at.line == 0 && policy_best_effort(&p, "cgroup"));
	policy_free(&p);
	CHECK(load("base", NULL, &bad, 1, &p, &err) < 0 && err.code == ERR_policy_invalid);
	CHECK(strncmp(err.text, "--memory: '1MB2'", 16) == 0 && err.line == 0);
	CHECK(load("base", NULL, &unknown, 1, &p, &err) < 0 && err.code == ERR_internal);
}

static void sources_shape_the_digest(void)
{
	struct policy p, q;
	struct err err;
	write_policy("one.yaml", V);
	write_policy("two.yaml", V "\n");
	write_policy("bare.yaml", "version: 1");
	CHECK(load("one", NULL, NULL, 0, &p, &err) == 0 &&
		load("two", NULL, NULL, 0, &q, &err) == 0);
	char one[POLICY_SHA256_SIZE], two[POLICY_SHA256_SIZE];
	policy_sha256(&p, one);
	policy_sha256(&q, two);
	CHECK(strcmp(one, two) != 0);
	policy_free(&p);
	policy_free(&q);
	/* The length, eight bytes with the lowest first, then the text. */
	CHECK(load("bare", NULL, NULL, 0, &p, &err) == 0);
	policy_sha256(&p, one);
	CHECK_TEXT(one, "80b152604ce955030ed38c159021c3979e47329a62e45e57a4de68548b0e7744");
	policy_free(&p);
}

static void show_names_each_file(void)
{
	struct policy p;
	struct err err;
	AUTO_BUF origins = { 0 };
	CHECK(load("top", NULL, NULL, 0, &p, &err) == 0 && policy_show_yaml(&p, &origins) == 0);
	CHECK(!strstr(origins.data, "extends") && strstr(origins.data, "wall: 1s  # ") &&
		strstr(origins.data, "base.yaml:5\n") && strstr(origins.data, "  # default\n"));
	policy_free(&p);
}

static void a_file_of_100_megabytes_is_not_read(void)
{
	char path[192];
	struct policy p;
	struct err err;
	snprintf(path, sizeof path, "%s/big.yaml", policies);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && ftruncate(fd, 100 << 20) == 0);
	close(fd);
	CHECK(load("big", NULL, NULL, 0, &p, &err) < 0 && err.code == ERR_policy_invalid);
	CHECK(strstr(err.text, "104857600 bytes long; the maximum is 1048576"));
}

int main(void)
{
	char agentbox[64];
	if (!mkdtemp(dir))
		return 1;
	snprintf(agentbox, sizeof agentbox, "%s/agentbox", dir);
	snprintf(policies, sizeof policies, "%s/policies", agentbox);
	if (mkdir(agentbox, 0700) < 0 || mkdir(policies, 0700) < 0)
		return 1;
	RUN(policies_are_laid_over_each_other);
	RUN(maps_of_networks_add_up);
	RUN(bases_that_cannot_be_had);
	RUN(names_that_lead_nowhere_have_a_hint);
	RUN(a_policy_that_extends_itself);
	RUN(options_are_laid_on_top);
	RUN(sources_shape_the_digest);
	RUN(show_names_each_file);
	RUN(a_file_of_100_megabytes_is_not_read);
	char command[128];
	snprintf(command, sizeof command, "rm -r %s", dir);
	return system(command) == 0 ? CHECK_STATUS() : 1;
}
