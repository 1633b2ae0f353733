/*
 * command_hint: what to do about a command that could not be started. Only once it has failed, and
 * only words: nothing is tried again.
 */
#include "cli/command_hint.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "plan/explain.h"
#include "plan/host.h"
#include "policy/policy.h"

/* What `path` of the box is on the host; false when nothing of the host is shown there. */
static bool look(const struct plan *plan, const char *path, struct arena *arena, struct stat *ret)
{
	const char *inside = plan_inside_path(plan, path, arena);
	const char *host = inside ? plan_host_path(plan, inside, arena) : NULL;
	return host && stat(host, ret) == 0;
}

/* A directory of the host's, or one that the plan makes. */
static bool is_directory(const struct plan *plan, const char *path, struct arena *arena)
{
	struct stat st;
	if (look(plan, path, arena, &st))
		return S_ISDIR(st.st_mode);
	const char *inside = plan_inside_path(plan, path, arena);
	if (!inside)
		return false;
	for (size_t i = 0; i < plan->op_count; i++) {
		const struct plan_op *op = &plan->ops[i];
		bool dir = op->kind == OP_DIR || op->kind == OP_PROC || op->kind == OP_DEVPTS;
		if (dir && strcmp(op->target, inside + 1) == 0)
			return true;
	}
	return !inside[1];
}

static bool is_builtin(const char *name)
{
	static const char *const names[] = { "cd", "export", "source", ".", "alias", "set", "unset",
		"ulimit", "umask", "eval", "exit", "type", "shopt", "declare" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static const char *value_in(const char *const *environ, const char *name)
{
	size_t len = strlen(name);
	for (size_t i = 0; environ && environ[i]; i++)
		if (strncmp(environ[i], name, len) == 0 && environ[i][len] == '=')
			return environ[i] + len + 1;
	return NULL;
}

/* Who set PATH: -e, or a line of the policy; NULL: nobody, it is the box's own. */
static const char *path_setter(
	const struct request *request, const struct policy *policy, struct arena *arena)
{
	for (size_t i = request->env_count; i > 0; i--)
		if (strcmp(request->env[i - 1].name, "PATH") == 0)
			return "-e";
	for (size_t i = policy->env_set_count; i > 0; i--)
		if (strcmp(policy->env_set[i - 1].name, "PATH") == 0)
			return explain_origin(&policy->env_set[i - 1].at, arena);
	for (size_t i = policy->env_pass_count; i > 0; i--)
		if (strcmp(policy->env_pass[i - 1].value, "PATH") == 0)
			return explain_origin(&policy->env_pass[i - 1].at, arena);
	return NULL;
}

/* Where the caller's own PATH has the command, on the host; NULL: nowhere. */
static const char *on_host(const struct request *request, const char *name, struct arena *arena)
{
	const char *path = value_in(request->environ, "PATH");
	while (path && *path) {
		size_t len = strcspn(path, ":");
		const char *file = arena_printf(arena, "%.*s/%s", (int)len, path, name);
		struct stat st;
		if (*path == '/' && stat(file, &st) == 0 && S_ISREG(st.st_mode) &&
			access(file, X_OK) == 0)
			return file;
		path += len + (path[len] == ':');
	}
	return NULL;
}

static void not_found_by_name(const struct request *request, const struct plan *plan,
	const char *name, struct arena *arena, struct err *err)
{
	struct stat st;
	const char *setter = path_setter(request, plan->policy, arena);
	const char *host = on_host(request, name, arena);
	if (is_builtin(name))
		err_hint_set(err, "it is a word of the shell's own: sh -c '%.100s ...'", name);
	else if (look(plan, name, arena, &st) && S_ISREG(st.st_mode))
		err_hint_set(err,
			"it is in the directory where the command starts: write ./%.100s%s", name,
			st.st_mode & 0111 ? "" : ", behind its interpreter or made executable");
	else if (setter)
		err_hint_set(err, "PATH in the box, set by %.150s, is %.250s", setter,
			value_in(plan->envp, "PATH"));
	else if (host)
		err_hint_set(err,
			"on the host it is %.150s; grant what it needs with filesystem.read, and "
			"add "
			"its directory to PATH with env.set",
			host);
}

static void not_found(const struct request *request, const struct plan *plan, const char *name,
	struct arena *arena, struct err *err)
{
	struct stat st;
	if (strpbrk(name, " \t\n;|&") && !look(plan, name, arena, &st))
		err_hint_set(err,
			"this is one word with blanks or signs of the shell in it: leave out the "
			"quotes, or use sh -c");
	else if (!strchr(name, '/'))
		not_found_by_name(request, plan, name, arena, err);
	else if (stat(name, &st) == 0 && !look(plan, name, arena, &st))
		err_hint_set(err, "it is on the host, but not granted: filesystem.read");
}

/* Is the file the caller's, and in the work that is done here? */
static bool own_work(const struct request *request, const struct plan *plan, const char *path,
	const struct stat *st, struct arena *arena)
{
	const char *inside = plan_inside_path(plan, path, arena);
	size_t len = strlen(request->workspace);
	return inside && st->st_uid == plan->host->uid &&
	       strncmp(inside, request->workspace, len) == 0 && inside[len] == '/';
}

static void not_executable(const struct request *request, const struct plan *plan, const char *name,
	struct arena *arena, struct err *err)
{
	struct stat st;
	/* "." and ".." are looked for like any name without a slash. */
	bool dots = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
	if (dots || (strchr(name, '/') && is_directory(plan, name, arena))) {
		struct err raw = *err;
		err_set(err, raw.code, raw.errnum, "'%.200s' is a directory", name);
		err->stage = raw.stage;
		err_hint_set(err,
			dots ? "sh -c '. FILE' reads a file into a shell" : "name a program in it");
		return;
	}
	if (!strchr(name, '/') || !look(plan, name, arena, &st))
		err_hint_set(err, "look at the rights of the file and of its directories");
	else if (st.st_mode & 0111)
		err_hint_set(err, "it is marked as a program: look at the rights of its "
				  "directories and of its interpreter");
	else if (own_work(request, plan, name, &st, arena))
		err_hint_set(err, "chmod +x %.300s", name);
	else
		err_hint_set(err, "it is not marked as a program; if it is a script, put its "
				  "interpreter before it");
}

void command_hint(const struct request *request, const struct plan *plan, struct err *err)
{
	struct arena arena = { 0 };
	const char *name = request->argv[0];
	/* What starts a snippet is the policy's, and its maker knows what it is. */
	if (request->code_path || err->hint[0])
		return;
	if (err->code == ERR_command_not_found)
		not_found(request, plan, name, &arena, err);
	else if (err->code == ERR_not_executable)
		not_executable(request, plan, name, &arena, err);
	arena_free(&arena);
}
