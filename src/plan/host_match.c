/*
 * host_match: which files the hide and protect patterns mean. A pattern that names one place costs
 * one look; only patterns that can match anywhere make the granted trees be walked, within bounds
 * that are errors when passed, never silently.
 */
#define _GNU_SOURCE
#include "plan/host_match.h"
#include "plan/host_search.h"
#include "base/fd.h"
#include "base/match.h"
#include "plan/host.h"
#include "plan/places.h"
#include "plan/request.h"
#include "policy/policy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Does a pattern name one place below the tree (or an absolute one), so that one look is enough? */
static bool one_place(const struct policy_pattern *pattern)
{
	return pattern->literal && strchr(pattern->pattern, '/') != NULL;
}

/* Absolute patterns are looked for by themselves, relative ones in each tree. */
static bool applies(const struct search *search, const struct policy_pattern *pattern)
{
	return search->only ? pattern == search->only : pattern->pattern[0] != '/';
}

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

static bool matches(
	const struct search *search, const struct policy_pattern *pattern, const char *path)
{
	if (pattern->pattern[0] == '/')
		return match_path(pattern->pattern + 1, path + 1);
	const char *relative = path + strlen(search->tree) + 1;
	if (!strchr(pattern->pattern, '/')) {
		const char *slash = strrchr(relative, '/');
		return match_path(pattern->pattern, slash ? slash + 1 : relative);
	}
	return match_path(pattern->pattern, relative);
}

/* Judge one entry; *ret_hidden: it is hidden, so nothing below it needs a look. */
static int judge(struct search *search, const char *path, bool *ret_hidden)
{
	const struct policy *policy = search->policy;
	*ret_hidden = false;
	for (size_t i = 0; i < policy->fs.hide_count; i++) {
		const struct policy_pattern *pattern = &policy->fs.hide[i];
		if (!applies(search, pattern) || one_place(pattern) ||
			!matches(search, pattern, path))
			continue;
		*ret_hidden = true;
		return search_add(search, true, pattern, path);
	}
	for (size_t i = 0; search->written && i < policy->fs.protect_count; i++) {
		const struct policy_pattern *pattern = &policy->fs.protect[i];
		if (!applies(search, pattern) || one_place(pattern) ||
			!matches(search, pattern, path))
			continue;
		search->found[i] = true;
		return search_add(search, false, pattern, path);
	}
	return 0;
}

static mode_t type_of(int dir, const struct dirent *entry)
{
	if (entry->d_type != DT_UNKNOWN)
		return DTTOIF(entry->d_type);
	struct stat st;
	return fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mode & S_IFMT : 0;
}

/* Walk one directory; takes over fd. Depth is bounded by the length of a path. */
static int walk(struct search *search, int fd, const char *path, int depth)
{
	DIR *dir = fdopendir(fd);
	if (!dir) {
		int errnum = errno;
		close(fd);
		return search_unsearchable(search, path, errnum);
	}
	int r = 0;
	struct dirent *entry;
	while (r == 0 && (errno = 0, entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (++search->looked_at > HOST_WALK_MAX || depth > 128) {
			r = err_set(search->err, ERR_too_many_matches, 0,
				"'%s' is too large or deep a tree to look for patterns in (more "
				"than %d entries)",
				search->tree, HOST_WALK_MAX);
			break;
		}
		struct arena scratch = { 0 };
		const char *child = arena_printf(&scratch, "%s/%s", path, entry->d_name);
		mode_t mode = type_of(dirfd(dir), entry);
		bool hidden;
		r = judge(search, child, &hidden);
		if (r == 0 && !hidden && S_ISDIR(mode)) {
			int next = openat(dirfd(dir), entry->d_name,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			r = next >= 0 ? walk(search, next, child, depth + 1)
				      : search_unsearchable(search, child, errno);
		}
		arena_free(&scratch);
		errno = 0;
	}
	if (r == 0 && errno)
		r = search_unsearchable(search, path, errno);
	closedir(dir);
	return r;
}

static void note_missing(struct search *search)
{
	const struct policy *policy = search->policy;
	for (size_t i = 0; search->written && i < policy->fs.protect_count; i++) {
		if (search->found[i] || !applies(search, &policy->fs.protect[i]))
			continue;
		struct host_missing *missing = arena_push(&search->host->arena, &search->missing,
			&search->host->missing_count, sizeof *missing);
		missing->pattern = &policy->fs.protect[i];
		missing->tree = search->tree;
	}
}

static int walk_tree(struct search *search)
{
	int fd = open(search->tree, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 ? walk(search, fd, search->tree, 0)
		       : search_unsearchable(search, search->tree, errno);
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
		if (!applies(search, &patterns[i]))
			continue;
		if (!one_place(&patterns[i])) {
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

static int search_tree(struct search *search, const char *tree, bool written)
{
	const struct host_path *fact = host_find(search->host, tree);
	if (!fact || fact->errnum || !fact->real || fact->link || fact->through_link)
		return 0; /* the planner refuses it */
	search->tree = tree;
	search->written = written;
	search->only = NULL;
	search->found =
		ARENA_ARRAY(&search->host->arena, search->policy->fs.protect_count + 1, bool);
	bool must_walk = false;
	if (!S_ISDIR(fact->mode))
		return judge_file(search);
	if (look_all(search, true, &must_walk) < 0)
		return -1;
	if (written && look_all(search, false, &must_walk) < 0)
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

/*
 * The box cannot touch its judge: a policy's own files, and the directories where a later run looks
 * for policies, are protected wherever a grant would let them be written.
 */
static int guard_place(
	struct search *search, const struct request *request, const char *place, bool must)
{
	static const struct policy_pattern judge = { .pattern = "the policies of agentbox",
		.literal = true };
	char *real = realpath(place, NULL);
	const char *path = real ? arena_strdup(&search->host->arena, real) : place;
	free(real);
	struct stat st;
	const char *tree = written_tree(search, request, path);
	if (!tree)
		return 0;
	search->tree = tree;
	search->written = true;
	if (lstat(path, &st) == 0)
		return search_add(search, false, &judge, path);
	if (!must)
		return 0;
	return err_set(search->err, ERR_protect_missing, errno,
		"'%s', where policies are looked up, does not exist in '%s', which is written "
		"directly: the box "
		"could make it",
		path, tree);
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
	if (policy->fs.hide_count || policy->fs.protect_count)
		r = match_patterns(&search, request);
	if (r == 0 && (policy->fs.write_count || policy->fs.workspace == WORKSPACE_WRITE))
		r = guard_policies(&search, request);
	host->hidden = search.hidden;
	host->protected = search.protected;
	host->missing = search.missing;
	return r;
}
