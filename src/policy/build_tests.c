/* build_tests: code and tests of struct policy. */
#define _GNU_SOURCE
#include "policy/build.h"

#include <stdlib.h>
#include <string.h>

#include "policy/host.h"

int build_code(struct build *b, struct node *root)
{
	struct policy *p = b->policy;
	struct node *code = node_get(root, "code");
	if (!code || !code->count)
		return 0;
	p->code = ARENA_ARRAY(&p->arena, code->count, struct policy_code);
	for (struct node *node = code->first; node; node = node->next) {
		struct policy_code *c = &p->code[p->code_count++];
		struct node *command;
		c->lang = node->key;
		c->at = node_origin(node);
		if (build_required(b, node, K_code_command, &command) < 0)
			return -1;
		build_words(b, node, K_code_command, &c->command, &c->command_count);
		size_t files = 0;
		for (size_t i = 0; i < c->command_count; i++)
			files += strstr(c->command[i].value, "{file}") != NULL;
		if (files != 1)
			return node_error(command, false, b->err,
				"exactly one word of the command of '%s' holds {file}", c->lang);
		struct node *suffix = node_get(node, "suffix");
		c->suffix = suffix ? suffix->text : "";
		if (c->suffix[0] && (c->suffix[0] != '.' || strchr(c->suffix, '/')))
			return node_error(suffix, false, b->err,
				"a suffix begins with a dot and has no slash");
	}
	return 0;
}

static int number_of(const struct node *map, const char *key)
{
	const struct node *node = node_get(map, key);
	return node ? (int)strtol(node->text, NULL, 10) : -1;
}

/* What a test expects; `question`: it asks for allowed or denied. */
static int build_expect(struct build *b, struct node *node, bool question, struct policy_test *t)
{
	struct node *expect;
	if (build_required(b, node, K_tests_expect, &expect) < 0)
		return -1;
	t->allowed = t->exit_code = -1;
	if (question) {
		if (expect->kind != NODE_SCALAR)
			return node_error(expect, false, b->err,
				"a path, host, tool or system call is expected to be allowed or "
				"denied");
		t->allowed = strcmp(expect->text, "allowed") == 0;
		return 0;
	}
	if (expect->kind != NODE_MAP || !expect->count) {
		node_error(expect, false, b->err,
			"of a command or snippet exit_code, status, stdout or stderr are expected");
		return err_hint_set(b->err, "expect: {exit_code: 0}");
	}
	t->exit_code = number_of(expect, "exit_code");
	t->status = build_text(b, expect, K_tests_status);
	t->stdout_text = build_text(b, expect, K_tests_stdout);
	t->stderr_text = build_text(b, expect, K_tests_stderr);
	t->stdout_contains = build_text(b, expect, K_tests_stdout_contains);
	t->stderr_contains = build_text(b, expect, K_tests_stderr_contains);
	return 0;
}

static int check_lang(struct build *b, const struct node *lang)
{
	char shown[SHOWN_MAX];
	const struct policy *p = b->policy;
	for (size_t i = 0; i < p->code_count; i++)
		if (strcmp(p->code[i].lang, lang->text) == 0)
			return 0;
	return node_error(lang, false, b->err, "'%s' is not one of the languages of code",
		text_shown(lang->text, shown));
}

static int check_host(struct build *b, const struct node *host)
{
	struct host_entry entry;
	host_parse(host->text, &entry);
	if (!entry.wildcard &&
		(!entry.address || entry.prefix == (strchr(entry.host, ':') ? 128 : 32)))
		return 0;
	return node_error(host, false, b->err, "a test asks for one host, without star and prefix");
}

static int build_test(struct build *b, struct node *node, struct policy_test *t)
{
	static const char *const kinds[] = { "run", "lang", "path", "host", "tool", "syscall" };
	const struct node *lang = node_get(node, "lang"), *host = node_get(node, "host");
	struct node *path = node_get(node, "path");
	size_t found = 0;
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		found += node_get(node, kinds[i]) != NULL;
	if (found != 1)
		return node_error(node, false, b->err,
			"a test has exactly one of run, lang with code, path, host, tool and "
			"syscall");
	t->at = node_origin(node);
	t->lang = build_text(b, node, K_tests_lang);
	t->code = build_text(b, node, K_tests_code);
	if (!t->lang != !t->code)
		return node_error(node, false, b->err, "in a test, lang and code go together");
	if (!path && node_get(node, "access"))
		return node_error(node_get(node, "access"), true, b->err, "access goes with path");
	if (path && build_absolute(b, path) < 0)
		return -1;
	if ((lang && check_lang(b, lang) < 0) || (host && check_host(b, host) < 0))
		return -1;
	build_words(b, node, K_tests_run, &t->run, &t->run_count);
	t->path = path ? path->text : NULL;
	t->access = path ? build_text(b, node, K_tests_access) : NULL;
	t->host = host ? host->text : NULL;
	t->tool = build_text(b, node, K_tests_tool);
	t->syscall = build_text(b, node, K_tests_syscall);
	return build_expect(b, node, !t->run && !t->lang, t);
}

int build_tests(struct build *b, struct node *root)
{
	struct policy *p = b->policy;
	struct node *tests = node_get(root, "tests");
	if (!tests || !tests->count)
		return 0;
	p->tests = ARENA_ARRAY(&p->arena, tests->count, struct policy_test);
	for (struct node *node = tests->first; node; node = node->next)
		if (build_test(b, node, &p->tests[p->test_count++]) < 0)
			return -1;
	return 0;
}
