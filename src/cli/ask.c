/* ask: answers about a policy on this host. Runs nothing and writes nothing. */
#define _GNU_SOURCE
#include "cli/ask.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

/* A plan is always one for a command; answers do not depend on which. */
static const char *const any_command[] = { "true", NULL };

void ask_init(struct ask *ask, const struct policy *policy, const char *workspace,
	const char *const *caller_env)
{
	*ask = (struct ask){
		.policy = policy,
		.request = {
			.argv = any_command,
			.argc = 1,
			.workspace = workspace,
			.environ = caller_env,
		},
	};
	cli_run_init(&ask->run);
}

void ask_free(struct ask *ask)
{
	cli_run_free(&ask->run);
	arena_free(&ask->arena);
}

static void restart(struct ask *ask)
{
	cli_run_free(&ask->run);
	cli_run_init(&ask->run);
}

int ask_plan(struct ask *ask)
{
	if (ask->refused)
		return -1;
	if (ask->planned)
		return 0;
	if (cli_run_plan(ask->policy, &ask->request, &ask->run, &ask->why) < 0) {
		ask->refused = true;
		restart(ask);
		return -1;
	}
	ask->planned = true;
	return 0;
}

const char *ask_refusal(struct ask *ask)
{
	const struct err *why = &ask->why;
	if (ask_plan(ask) == 0)
		return NULL;
	if (!why->file[0] || why->line <= 0)
		return arena_strdup(&ask->arena, why->text);
	return arena_printf(&ask->arena, "%s (%s:%d)", why->text, why->file, (int)why->line);
}

/* A workspace that is written through an overlay has, seen from inside, the rights of a written
 * one. */
static void drop_unsupported(const struct policy *policy, struct policy *ret_supported)
{
	struct policy p = *policy;
	if (p.fs.workspace == WORKSPACE_OVERLAY)
		p.fs.workspace = WORKSPACE_WRITE;
	p.limits.memory = p.limits.cpu_us = p.limits.cpus_milli = (struct policy_number){ 0 };
	p.publish_count = 0;
	p.tool_count = p.secret_count = p.trace_count = 0;
	p.audit_log = NULL;
	*ret_supported = p;
}

int ask_ready(struct ask *ask, struct err *err)
{
	if (ask->planned || ask_plan(ask) == 0)
		return 0;
	if (ask->why.code != ERR_unsupported) {
		*err = ask->why;
		return -1;
	}
	drop_unsupported(ask->policy, &ask->supported);
	if (cli_run_plan(&ask->supported, &ask->request, &ask->run, err) < 0)
		return -1;
	ask->planned = true;
	return 0;
}

#define LINKS_MAX 40 /* as the kernel's */

/* The text of the link at the path inside that ends at `end`, or NULL when there is none. */
static const char *link_at(struct ask *ask, const char *path, size_t end)
{
	char text[PATH_MAX];
	const char *part = arena_strndup(&ask->arena, path, end);
	const char *host = plan_host_path(&ask->run.plan, part, &ask->arena);
	ssize_t len = host ? readlink(host, text, sizeof text) : -1;
	return len > 0 && len < (ssize_t)sizeof text ? arena_strndup(&ask->arena, text, (size_t)len)
						     : NULL;
}

/*
 * The path after the links that the shown trees of the host hold, as the command would follow them
 * inside. NULL: too many or too long.
 */
static const char *follow_host_links(struct ask *ask, const char *given)
{
	const struct plan *plan = &ask->run.plan;
	const char *path = plan_inside_path(plan, given, &ask->arena);
	for (int links = 0; path;) {
		const char *link = NULL;
		size_t end = 0, start = 0;
		while (!link && path[end]) {
			start = end + 1;
			end = start + strcspn(path + start, "/");
			link = end > start ? link_at(ask, path, end) : NULL;
		}
		if (!link)
			return path;
		if (++links > LINKS_MAX)
			return NULL;
		bool absolute = *link == '/';
		path = plan_inside_path(plan,
			arena_printf(&ask->arena, "%.*s%s%s", absolute ? 0 : (int)start, path, link,
				path + end),
			&ask->arena);
	}
	return NULL;
}

static int ask_path(
	struct ask *ask, const char *text, bool write, struct answer *ret_answer, struct err *err)
{
	if (!*text)
		return err_set(err, ERR_usage, 0, "the path is empty");
	const char *path = follow_host_links(ask, text);
	if (!path)
		return err_set(err, ERR_usage, 0,
			"%s is too long, or has too many links on its way", text);
	return plan_ask_path(&ask->run.plan, path, write, &ask->arena, ret_answer, err);
}

const char *question_name(enum question kind)
{
	static const char *const names[] = {
		[QUESTION_PATH] = "path",
		[QUESTION_HOST] = "host",
		[QUESTION_TOOL] = "tool",
		[QUESTION_SYSCALL] = "syscall",
	};
	return names[kind];
}

int ask_question(struct ask *ask, enum question kind, const char *text, bool write,
	struct answer *ret_answer, struct err *err)
{
	switch (kind) {
	case QUESTION_PATH:
		if (ask_ready(ask, err) < 0)
			return -1;
		return ask_path(ask, text, write, ret_answer, err);
	case QUESTION_HOST:
		return policy_ask_host(ask->policy, text, &ask->arena, ret_answer, err);
	case QUESTION_TOOL:
		policy_ask_tool(ask->policy, text, &ask->arena, ret_answer);
		return 0;
	case QUESTION_SYSCALL:
		if (!ask->filtered && filter_get(ask->policy, &ask->arena, &ask->filter, err) < 0)
			return -1;
		ask->filtered = true;
		return filter_ask_syscall(
			&ask->filter, ask->policy, text, &ask->arena, ret_answer, err);
	}
	return err_set(err, ERR_internal, 0, "an unknown question");
}
