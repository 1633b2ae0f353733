/* command: what is executed, with which environment, from which directory. */
#define _GNU_SOURCE
#include "plan/build.h"

#include <string.h>

#define PATH_INSIDE "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct env {
	struct builder *builder;
	const char **vars; /* "NAME=VALUE" */
	size_t count;
};

static void env_set(struct env *env, const char *name, const char *value)
{
	struct arena *arena = &env->builder->plan->arena;
	size_t len = strlen(name);
	const char *text = arena_join(arena, name, "=", value);
	for (size_t i = 0; i < env->count; i++)
		if (strncmp(env->vars[i], name, len) == 0 && env->vars[i][len] == '=') {
			env->vars[i] = text;
			return;
		}
	const char **slot = arena_push(arena, &env->vars, &env->count, sizeof *slot);
	*slot = text;
}

static const char *env_get(const struct env *env, const char *name)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < env->count; i++)
		if (strncmp(env->vars[i], name, len) == 0 && env->vars[i][len] == '=')
			return env->vars[i] + len + 1;
	return NULL;
}

static bool name_fit(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = name[i];
		bool ok = c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
			  (i > 0 && c >= '0' && c <= '9');
		if (!ok)
			return false;
	}
	return len > 0;
}

/* Pass the caller's variables whose name is `pattern`, or begins with it up to a final star. */
static void env_pass(struct env *env, const char *pattern)
{
	const char *const *environ_ = env->builder->request->environ;
	size_t len = strlen(pattern);
	bool star = len && pattern[len - 1] == '*';
	for (size_t i = 0; environ_ && environ_[i]; i++) {
		const char *equals = strchr(environ_[i], '=');
		size_t name_len = equals ? (size_t)(equals - environ_[i]) : 0;
		if (!name_fit(environ_[i], name_len))
			continue;
		if (star ? name_len >= len - 1 && memcmp(environ_[i], pattern, len - 1) == 0
			 : name_len == len && memcmp(environ_[i], pattern, len) == 0)
			env_set(env,
				arena_strndup(&env->builder->plan->arena, environ_[i], name_len),
				equals + 1);
	}
}

static void build_env(struct builder *builder, struct env *env)
{
	const struct policy *policy = builder->policy;
	const struct request *request = builder->request;
	const struct host *host = builder->host;
	static const char *const usual[] = { "LANG", "LC_*", "TZ", "TERM" };
	env_set(env, "PATH", PATH_INSIDE);
	env_set(env, "HOME", policy->fs.home == HOME_PRIVATE ? host->home : "/");
	env_set(env, "USER", host->user);
	env_set(env, "LOGNAME", host->user);
	env_set(env, "TMPDIR", "/tmp");
	env_set(env, "AGENTBOX", AGENTBOX_VERSION);
	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
		env_pass(env, usual[i]);
	for (size_t i = 0; i < policy->env_pass_count; i++)
		env_pass(env, policy->env_pass[i].value);
	for (size_t i = 0; i < policy->env_set_count; i++)
		env_set(env, policy->env_set[i].name, policy->env_set[i].value);
	for (size_t i = 0; i < request->env_count; i++) {
		if (request->env[i].value)
			env_set(env, request->env[i].name, request->env[i].value);
		else
			env_pass(env, request->env[i].name);
	}
	const char **end = arena_push(&builder->plan->arena, &env->vars, &env->count, sizeof *end);
	*end = NULL;
	env->count--;
}

/* The files to try, in order: the name itself when it has a "/", else once for each part of PATH.
 */
static void build_candidates(struct builder *builder, const char *path)
{
	struct plan *plan = builder->plan;
	const char *name = plan->argv[0];
	const char **list = NULL;
	size_t count = 0;
	if (strchr(name, '/')) {
		*(const char **)arena_push(&plan->arena, &list, &count, sizeof *list) = name;
		path = "";
	}
	while (*path && *name) {
		const char *colon = strchrnul(path, ':');
		/* An empty or relative part would mean the current directory: never searched. */
		if (*path == '/')
			*(const char **)arena_push(&plan->arena, &list, &count, sizeof *list) =
				arena_printf(
					&plan->arena, "%.*s/%s", (int)(colon - path), path, name);
		path = *colon ? colon + 1 : colon;
	}
	*(const char **)arena_push(&plan->arena, &list, &count, sizeof *list) = NULL;
	plan->candidates = list;
}

/* Copies: the originals are cleared in the box (struct request, words). */
static const char *const *copy_argv(struct builder *builder)
{
	const struct request *request = builder->request;
	struct arena *arena = &builder->plan->arena;
	const char **argv = ARENA_ARRAY(arena, request->argc + 1, const char *);
	for (size_t i = 0; i < request->argc; i++)
		argv[i] = arena_strdup(arena, request->argv[i]);
	return argv;
}

static void build_shell_argv(struct builder *builder)
{
	const struct request *request = builder->request;
	const char **argv = ARENA_ARRAY(&builder->plan->arena, request->argc + 2, const char *);
	argv[0] = "/bin/sh";
	argv[1] = builder->plan->argv[0];
	for (size_t i = 1; i < request->argc; i++)
		argv[i + 1] = builder->plan->argv[i];
	builder->plan->shell_argv = argv;
}

static int build_cwd(struct builder *builder)
{
	struct plan *plan = builder->plan;
	const char *cwd = builder->request->cwd;
	const char *usual = builder->workspace_shown                   ? builder->request->workspace
			    : builder->policy->fs.home == HOME_PRIVATE ? builder->host->home
								       : "/";
	if (!cwd)
		plan->cwd = usual;
	else if (cwd[0] == '/')
		plan->cwd = arena_strdup(&plan->arena, cwd);
	else
		plan->cwd = arena_printf(
			&plan->arena, "%s/%s", strcmp(usual, "/") == 0 ? "" : usual, cwd);
	return 0;
}

int build_command(struct builder *builder)
{
	struct plan *plan = builder->plan;
	struct env env = { .builder = builder };
	build_env(builder, &env);
	plan->envp = env.vars;
	plan->argv = copy_argv(builder);
	const char *path = env_get(&env, "PATH");
	build_candidates(builder, path ? path : PATH_INSIDE);
	build_shell_argv(builder);
	return build_cwd(builder);
}
