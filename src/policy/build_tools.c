/* build_tools: secrets and tools of struct policy. */
#define _GNU_SOURCE
#include "policy/build.h"

#include <string.h>

#include "policy/value.h"

int build_secrets(struct build *b, struct node *root)
{
	struct policy *p = b->policy;
	struct node *secrets = node_get(root, "secrets");
	if (!secrets || !secrets->count)
		return 0;
	p->secrets = ARENA_ARRAY(&p->arena, secrets->count, struct policy_secret);
	for (struct node *node = secrets->first; node; node = node->next) {
		struct node *env = node_get(node, "env"), *file = node_get(node, "file");
		if (!env == !file)
			return node_error(node, true, b->err,
				"secret '%s' comes from one of env and file", node->key);
		if (file && build_absolute(b, file) < 0)
			return -1;
		p->secrets[p->secret_count++] = (struct policy_secret){
			.name = node->key,
			.env = env ? env->text : NULL,
			.file = file ? file->text : NULL,
			.at = node_origin(node),
		};
	}
	return 0;
}

/* Each {NAME} in a word of the command must be an argument; marks the ones that are used. */
static int check_placeholders(
	struct build *b, const struct node *word, const struct policy_tool *tool, bool *used)
{
	char name[65];
	for (const char *p = strchr(word->text, '{'); p; p = strchr(p, '{')) {
		size_t len = strcspn(++p, "}");
		if (p[len] != '}' || len >= sizeof name)
			continue;
		memcpy(name, p, len);
		name[len] = 0;
		if (!value_is_tool(name))
			continue;
		size_t i = 0;
		while (i < tool->arg_count && strcmp(tool->args[i].name, name) != 0)
			i++;
		if (i == tool->arg_count)
			return node_error(word, false, b->err,
				"'{%s}' is not in the args of tool '%s'", name, tool->name);
		used[i] = true;
	}
	return 0;
}

static int build_command(struct build *b, struct node *node, struct policy_tool *tool)
{
	struct node *command;
	if (build_required(b, node, K_tools_command, &command) < 0)
		return -1;
	build_words(b, node, K_tools_command, &tool->command, &tool->command_count);
	if (command->first->text[0] != '/')
		return node_error(
			command->first, false, b->err, "the program of a tool is an absolute path");
	if (strchr(command->first->text, '{'))
		return node_error(command->first, false, b->err,
			"the program of a tool is fixed; arguments stand behind it");
	bool *used = ARENA_ARRAY(&b->policy->arena, tool->arg_count + 1, bool);
	for (const struct node *word = command->first; word; word = word->next)
		if (check_placeholders(b, word, tool, used) < 0)
			return -1;
	const struct node *arg = tool->arg_count ? node_get(node, "args")->first : NULL;
	for (size_t i = 0; arg; arg = arg->next, i++)
		if (!used[i])
			return node_error(arg, true, b->err,
				"no word of the command of tool '%s' holds {%s}", tool->name,
				arg->key);
	return 0;
}

static void build_args(struct build *b, struct node *args, struct policy_tool *tool)
{
	if (!args || !args->count)
		return;
	tool->args = ARENA_ARRAY(&b->policy->arena, args->count, struct policy_tool_arg);
	for (struct node *node = args->first; node; node = node->next) {
		struct policy_number max = { 0 };
		build_number(b, node, K_tools_args_max, &max);
		tool->args[tool->arg_count++] = (struct policy_tool_arg){
			.name = node->key,
			.pattern = build_text(b, node, K_tools_args_pattern),
			.max = max.value,
			.at = node_origin(node),
		};
	}
}

/* secret:NAME must be one of the secrets. */
static int check_secrets(struct build *b, const struct node *env)
{
	const struct policy *p = b->policy;
	for (const struct node *node = env ? env->first : NULL; node; node = node->next) {
		if (strncmp(node->text, "secret:", 7) != 0)
			continue;
		size_t i = 0;
		while (i < p->secret_count && strcmp(p->secrets[i].name, node->text + 7) != 0)
			i++;
		char shown[SHOWN_MAX];
		if (i == p->secret_count)
			return node_error(node, false, b->err, "'%s' is not one of the secrets",
				text_shown(node->text + 7, shown));
	}
	return 0;
}

static int build_tool(struct build *b, struct node *node, struct policy_tool *tool)
{
	struct policy_number in = { 0 }, out = { 0 }, calls = { 0 }, timeout = { 0 };
	tool->name = node->key;
	tool->at = node_origin(node);
	tool->description = build_text(b, node, K_tools_description);
	build_args(b, node_get(node, "args"), tool);
	if (build_command(b, node, tool) < 0 || check_secrets(b, node_get(node, "env")) < 0)
		return -1;
	build_env(b, node_get(node, "env"), &tool->env, &tool->env_count);
	build_number(b, node, K_tools_stdin, &in);
	build_number(b, node, K_tools_output, &out);
	build_number(b, node, K_tools_calls, &calls);
	build_number(b, node, K_tools_timeout, &timeout);
	tool->stdin_max = in.value;
	tool->output_max = out.value;
	tool->calls = calls.value;
	tool->timeout_us = timeout.value;
	return 0;
}

int build_tools(struct build *b, struct node *root)
{
	struct policy *p = b->policy;
	struct node *tools = node_get(root, "tools");
	if (!tools || !tools->count)
		return 0;
	p->tools = ARENA_ARRAY(&p->arena, tools->count, struct policy_tool);
	for (struct node *node = tools->first; node; node = node->next)
		if (build_tool(b, node, &p->tools[p->tool_count++]) < 0)
			return -1;
	return 0;
}
