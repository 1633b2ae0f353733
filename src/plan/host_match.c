/*
 * host_match: which files the hide and protect patterns mean. A pattern that names one place costs
 * one look; only patterns that can match anywhere make the granted trees be walked, within bounds
 * that are errors when passed, never silently.
 */
#define _GNU_SOURCE
#include "plan/host_match.h"
#include "plan/host_guard.h"
#include "plan/host_index.h"
#include "plan/host_search.h"
#include "plan/host_walk.h"
#include "base/match.h"
#include "plan/host.h"
#include "plan/places.h"
#include "plan/request.h"
#include "policy/policy.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* A pattern that names one place: look there. */
static int look(
	struct search *search, bool hide, const struct policy_pattern *pattern, bool *ret_found)
{
	struct arena *arena = &search->host->arena;
	const char *path = pattern->pattern[0] == '/'
				   ? pattern->pattern
				   : arena_printf(arena, "%s/%s", search->tree, pattern->pattern);
	struct stat st;
	*ret_found = lstat(path, &st) == 0;
	if (*ret_found)
		return search_add(search, hide, pattern, path);
	return search_unreached(search, path, errno);
}

static void note_missing(struct search *search)
{
	const struct policy *policy = search->policy;
	for (size_t i = 0; search->written && i < policy->fs.protect_count; i++) {
		if (search->found[i] || !search_applies(search, &policy->fs.protect[i]))
			continue;
		struct host_missing *missing = arena_push(&search->host->arena, &search->missing,
			&search->host->missing_count, sizeof *missing);
		missing->pattern = &policy->fs.protect[i];
		missing->tree = search->tree;
	}
}

/* The pattern's text from the top of the tree at hand. */
static const char *below_tree(const struct search *search, const char *pattern)
{
	return *pattern == '/' ? pattern + strlen(search->tree) : pattern;
}

static int add_list(struct search *search, struct row_set *set, struct arena *arena, bool hide)
{
	const struct policy *policy = search->policy;
	const struct policy_pattern *patterns = hide ? policy->fs.hide : policy->fs.protect;
	size_t count = hide ? policy->fs.hide_count : policy->fs.protect_count;
	for (size_t i = 0; i < count; i++) {
		const struct policy_pattern *pattern = &patterns[i];
		if (!search_applies(search, pattern) || search_one_place(pattern))
			continue;
		if (row_set_add(set, arena, pattern, below_tree(search, pattern->pattern),
			    !strchr(pattern->pattern, '/'), hide, i) == 0)
			continue;
		err_set(search->err, ERR_unsupported, 0,
			"the pattern '%s' has more than %d components", pattern->pattern,
			ROW_PARTS_MAX);
		return err_at(search->err, pattern->at.file, pattern->at.line, pattern->at.column);
	}
	return 0;
}

static int walk_tree(struct search *search)
{
	struct row_set set = { 0 };
	struct arena arena = { 0 };
	int r = add_list(search, &set, &arena, true);
	if (r == 0 && (search->written || search->layered))
		r = add_list(search, &set, &arena, false);
	if (r == 0)
		r = host_walk(search, &set, search->cache);
	arena_free(&arena);
	return r;
}

/* A grant of a single file: patterns without a "/" mean its own name, too. */
static int judge_file(struct search *search)
{
	const struct policy *policy = search->policy;
	const char *name = strrchr(search->tree, '/') + 1;
	for (size_t i = 0; i < policy->fs.hide_count; i++) {
		const struct policy_pattern *pattern = &policy->fs.hide[i];
		if (!strchr(pattern->pattern, '/') && match_path(pattern->pattern, name))
			return search_add(search, true, pattern, search->tree);
	}
	return 0;
}

/* One kind of pattern in the tree at hand; *ret_walk is set when one can match anywhere. */
static int look_all(struct search *search, bool hide, bool *ret_walk)
{
	const struct policy *policy = search->policy;
	const struct policy_pattern *patterns = hide ? policy->fs.hide : policy->fs.protect;
	size_t count = hide ? policy->fs.hide_count : policy->fs.protect_count;
	for (size_t i = 0; i < count; i++) {
		bool found = false;
		if (!search_applies(search, &patterns[i]))
			continue;
		if (!search_one_place(&patterns[i])) {
			*ret_walk = true;
			if (search_linked_prefix(search, &patterns[i]) < 0)
				return -1;
			continue;
		}
		if (look(search, hide, &patterns[i], &found) < 0)
			return -1;
		if (!hide)
			search->found[i] = found;
	}
	return 0;
}

static bool is_layered(const struct search *search, const char *tree)
{
	for (size_t i = 0; i < search->layer_count; i++)
		if (strcmp(search->layers[i], tree) == 0)
			return true;
	return false;
}

static int search_tree(struct search *search, const char *tree, bool written)
{
	const struct host_path *fact = host_find(search->host, tree);
	if (!fact || fact->errnum || !fact->real || fact->link || fact->through_link)
		return 0; /* the planner refuses it */
	search->tree = tree;
	search->written = written;
	search->layered = !written && is_layered(search, tree);
	search->only = NULL;
	search->found =
		ARENA_ARRAY(&search->host->arena, search->policy->fs.protect_count + 1, bool);
	bool must_walk = false;
	if (!S_ISDIR(fact->mode))
		return judge_file(search);
	if (look_all(search, true, &must_walk) < 0)
		return -1;
	if ((written || search->layered) && look_all(search, false, &must_walk) < 0)
		return -1;
	if (must_walk && walk_tree(search) < 0)
		return -1;
	note_missing(search);
	return 0;
}

/* An absolute pattern: its fixed beginning is the tree, wherever that is. */
static int search_absolute(struct search *search, const struct policy_pattern *pattern, bool hide)
{
	bool must_walk = false;
	size_t fixed = strcspn(pattern->pattern, "*?[");
	while (fixed > 1 && pattern->pattern[fixed - 1] != '/')
		fixed--;
	search->only = pattern;
	search->written = !hide;
	search->layered = false;
	search->tree =
		arena_strndup(&search->host->arena, pattern->pattern, fixed > 1 ? fixed - 1 : 1);
	search->found =
		ARENA_ARRAY(&search->host->arena, search->policy->fs.protect_count + 1, bool);
	int r = look_all(search, hide, &must_walk);
	if (r == 0 && must_walk)
		r = walk_tree(search);
	if (r == 0 && !hide)
		note_missing(search);
	return r;
}

static int match_patterns(struct search *search, const struct request *request)
{
	const struct policy *policy = search->policy;
	int r = 0;
	for (size_t i = 0; r == 0 && i < policy->fs.read_count; i++)
		r = search_tree(search, policy->fs.read[i].path, false);
	for (size_t i = 0; r == 0 && i < policy->fs.write_count; i++)
		r = search_tree(search, policy->fs.write[i].path, true);
	if (r == 0 && policy->fs.workspace != WORKSPACE_NONE &&
		!places_not_workspace(request->workspace, search->host->home))
		r = search_tree(
			search, request->workspace, policy->fs.workspace == WORKSPACE_WRITE);
	if (r == 0 && policy->fs.workspace == WORKSPACE_OVERLAY && search->host->git.common)
		r = search_tree(search, search->host->git.common, false);
	for (size_t i = 0; r == 0 && i < policy->fs.hide_count; i++)
		if (policy->fs.hide[i].pattern[0] == '/')
			r = search_absolute(search, &policy->fs.hide[i], true);
	for (size_t i = 0; r == 0 && i < policy->fs.protect_count; i++)
		if (policy->fs.protect[i].pattern[0] == '/')
			r = search_absolute(search, &policy->fs.protect[i], false);
	return r;
}

int host_match(const struct policy *policy, const struct request *request, struct host *host,
	struct err *err)
{
	struct search search = { .policy = policy, .host = host, .err = err };
	int r = 0;
	search.cache = host_index_place(&host->arena, request->environ, host->uid);
	if (policy->fs.workspace == WORKSPACE_OVERLAY)
		search.layers[search.layer_count++] = request->workspace;
	if (policy->fs.workspace == WORKSPACE_OVERLAY && host->git.common)
		search.layers[search.layer_count++] = host->git.common;
	if (policy->fs.hide_count || policy->fs.protect_count)
		r = match_patterns(&search, request);
	if (r == 0 && (policy->fs.write_count || policy->fs.workspace == WORKSPACE_WRITE))
		r = host_guard(&search, request);
	host->hidden = search.hidden;
	host->protected = search.protected;
	host->missing = search.missing;
	return r;
}
