/*
 * host_guard: the box cannot touch its judge. What a later run goes by is protected wherever a
 * grant would let it be written.
 */
#define _GNU_SOURCE
#include "plan/host_guard.h"
#include "plan/host_index.h"
#include "plan/places.h"
#include "plan/request.h"
#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* One that is not fit for it the planner refuses. */
static bool workspace_written(const struct search *search, const struct request *request)
{
	return search->policy->fs.workspace == WORKSPACE_WRITE &&
	       !places_not_workspace(request->workspace, search->host->home);
}

/* The tree that is written directly and holds the path, or NULL. */
static const char *written_tree(
	const struct search *search, const struct request *request, const char *path)
{
	const struct policy *policy = search->policy;
	for (size_t i = 0; i <= policy->fs.write_count; i++) {
		const char *tree = i < policy->fs.write_count           ? policy->fs.write[i].path
				   : workspace_written(search, request) ? request->workspace
									: NULL;
		size_t len = tree ? strlen(tree) : 0;
		if (tree && strncmp(path, tree, len) == 0 && path[len] == '/')
			return tree;
	}
	return NULL;
}

/* Where a place leads that may not be there yet. Arena memory. */
static const char *resolve(struct arena *arena, const char *place)
{
	char *real = realpath(place, NULL);
	const char *path = real ? arena_strdup(arena, real) : NULL;
	const char *slash = strrchr(place, '/');
	if (!path && slash > place) {
		real = realpath(arena_strndup(arena, place, (size_t)(slash - place)), NULL);
		path = real ? arena_join(arena, real, slash, "") : NULL;
	}
	free(real);
	return path ? path : place;
}

static int protect(struct search *search, const char *tree, const char *path)
{
	static const struct policy_pattern judge = { .pattern = "the policies of agentbox",
		.literal = true };
	search->tree = tree;
	search->written = true;
	return search_add(search, false, &judge, path);
}

/*
 * A policy's own files, and the directories where a later run looks for policies, are protected
 * wherever a grant would let them be written.
 */
static int guard_place(
	struct search *search, const struct request *request, const char *place, bool must)
{
	const char *path = resolve(&search->host->arena, place);
	struct stat st;
	const char *tree = written_tree(search, request, path);
	if (!tree)
		return 0;
	if (lstat(path, &st) == 0)
		return protect(search, tree, path);
	if (!must)
		return 0;
	return err_set(search->err, ERR_protect_missing, errno,
		"'%s', where policies are looked up, does not exist in '%s', which is written "
		"directly: the box "
		"could make it",
		path, tree);
}

/*
 * An index says what need not be hidden. Its directory is agentbox's own and no harm, so where it
 * is missing it is made, as the first index would.
 */
static int guard_cache(struct search *search, const struct request *request)
{
	const struct policy *policy = search->policy;
	if (!search->cache)
		return 0;
	const char *path = resolve(&search->host->arena, search->cache);
	size_t len = strlen(path);
	for (size_t i = 0; i < policy->fs.write_count; i++) {
		const struct policy_path *grant = &policy->fs.write[i];
		if (strncmp(grant->path, path, len) != 0 ||
			(grant->path[len] && grant->path[len] != '/'))
			continue;
		err_set(search->err, ERR_dangerous_grant, 0,
			"'%s' is where agentbox keeps what later runs go by: the box could forge "
			"it",
			grant->given);
		err_hint_set(search->err, "grant another directory");
		return err_at(search->err, grant->at.file, grant->at.line, grant->at.column);
	}
	const char *tree = written_tree(search, request, path);
	if (!tree)
		return 0;
	AUTO_FD dir = index_dir_open(search->cache, true);
	if (dir >= 0)
		return protect(search, tree, path);
	err_set(search->err, ERR_protect_missing, -dir,
		"'%s', where agentbox keeps what later runs go by, is not a directory of your own "
		"that nobody else can use, but lies in '%s', which is written directly",
		path, tree);
	return err_hint_set(search->err, "remove it, or grant less");
}

static int guard_policies(struct search *search, const struct request *request)
{
	struct arena *arena = &search->host->arena;
	int r = 0;
	for (size_t i = 0; r == 0 && i < search->policy->source_count; i++)
		r = guard_place(search, request, search->policy->sources[i], false);
	/* The program that is to judge the next run, where it stands in such a tree. */
	if (r == 0)
		r = guard_place(search, request, "/proc/self/exe", false);
	/* And what it executes, reads and shows. */
	static const char *const own[] = { AGENTBOX_LIBEXECDIR, AGENTBOX_POLICYDIR,
		AGENTBOX_DEVDIR };
	for (size_t i = 0; r == 0 && i < sizeof own / sizeof *own; i++)
		r = guard_place(search, request, own[i], false);
	const char *config = NULL, *home = NULL;
	for (size_t i = 0; request->environ && request->environ[i]; i++) {
		if (strncmp(request->environ[i], "XDG_CONFIG_HOME=/", 17) == 0)
			config = request->environ[i] + 16;
		if (strncmp(request->environ[i], "HOME=/", 6) == 0)
			home = request->environ[i] + 5;
	}
	if (r == 0 && (config || home))
		r = guard_place(search, request,
			config ? arena_printf(arena, "%s/agentbox", config)
			       : arena_printf(arena, "%s/.config/agentbox", home),
			true);
	return r == 0 ? guard_place(search, request, "/etc/agentbox", true) : r;
}

int host_guard(struct search *search, const struct request *request)
{
	return guard_policies(search, request) < 0 ? -1 : guard_cache(search, request);
}
