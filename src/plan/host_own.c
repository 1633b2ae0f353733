/*
 * host_own: finds agentbox's own directories, and tells what has to do with them. Looks at names
 * and links only; what is in there is of no interest here.
 */
#define _GNU_SOURCE
#include "plan/host.h"
#include "plan/host_own.h"
#include "plan/request.h"
#include "policy/policy.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NAME "/agentbox"

static const char *variable(const struct request *request, const char *name)
{
	size_t len = strlen(name);
	for (size_t i = 0; request->environ && request->environ[i]; i++) {
		const char *entry = request->environ[i];
		if (strncmp(entry, name, len) == 0 && entry[len] == '=')
			return entry[len + 1] == '/' ? entry + len + 1 : NULL;
	}
	return NULL;
}

/* Where a path leads, also when its end, or more of it, is not there yet. */
static const char *real_of(struct arena *arena, const char *path)
{
	char part[PATH_MAX];
	size_t len = strlen(path);
	if (len >= sizeof part)
		return path;
	memcpy(part, path, len + 1);
	for (;;) {
		char *real = realpath(part, NULL);
		if (real) {
			const char *whole = arena_join(
				arena, strcmp(real, "/") == 0 ? "" : real, path + strlen(part), "");
			free(real);
			return whole;
		}
		char *slash = strrchr(part, '/');
		if ((errno != ENOENT && errno != EACCES) || !slash || slash == part)
			return path;
		*slash = 0;
	}
}

struct list {
	struct host *host;
	struct host_path *paths;
};

static void add(struct list *list, const char *base, const char *below)
{
	struct arena *arena = &list->host->arena;
	struct stat st;
	if (!base)
		return;
	const char *path = real_of(arena, arena_join(arena, base, below, NAME));
	for (size_t i = 0; i < list->host->own_count; i++)
		if (strcmp(list->paths[i].path, path) == 0)
			return;
	struct host_path *fact =
		arena_push(arena, &list->paths, &list->host->own_count, sizeof *fact);
	*fact = (struct host_path){ .path = path };
	if (lstat(path, &st) < 0)
		fact->errnum = errno;
	else
		fact->mode = st.st_mode;
	list->host->own = list->paths;
}

void host_own_probe(const struct policy *policy, const struct request *request, struct host *host)
{
	static const char state[] = "/.local/state";
	struct list list = { .host = host };
	char runtime[64];
	if (policy->fs.write_count == 0 && policy->fs.workspace != WORKSPACE_WRITE &&
		policy->fs.workspace != WORKSPACE_OVERLAY)
		return;
	snprintf(runtime, sizeof runtime, "/run/user/%u", (unsigned)host->uid);
	add(&list, variable(request, "XDG_RUNTIME_DIR"), "");
	add(&list, variable(request, "XDG_STATE_HOME"), "");
	add(&list, variable(request, "HOME"), state);
	add(&list, host->home, state);
	add(&list, runtime, "");
	add(&list, "/run", "");
	add(&list, "/var/lib", "");
}

/* Is it `tree` or in it? */
static bool is_within(const char *path, const char *tree)
{
	size_t len = strcmp(tree, "/") == 0 ? 0 : strlen(tree);
	return strncmp(path, tree, len) == 0 && (path[len] == 0 || path[len] == '/');
}

/* As anybody's are called who has not set a variable: for root, whom nothing keeps from them. */
static bool is_usual(const char *path)
{
	static const char state[] = "/.local/state" NAME, users[] = "/run/user/";
	const char *at = strstr(path, state);
	if (at && (at[sizeof state - 1] == 0 || at[sizeof state - 1] == '/'))
		return true;
	if (strncmp(path, users, sizeof users - 1) != 0)
		return false;
	at = strchr(path + sizeof users - 1, '/');
	return at && is_within(at, NAME);
}

const struct host_path *host_own_find(const struct host *host, const char *path, bool *ret_holds)
{
	static const struct host_path others = { .path = "~/.local/state" NAME };
	*ret_holds = false;
	for (size_t i = 0; i < host->own_count; i++)
		if (is_within(path, host->own[i].path))
			return &host->own[i];
	if (is_usual(path))
		return &others;
	*ret_holds = true;
	for (size_t i = 0; i < host->own_count; i++)
		if (is_within(host->own[i].path, path))
			return &host->own[i];
	return NULL;
}
