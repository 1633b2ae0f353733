/*
 * host_search: adds what the search for hidden and protected files finds, with what links make of
 * it, and judges what cannot be searched.
 */
#define _GNU_SOURCE
#include "plan/host_search.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool search_one_place(const struct policy_pattern *pattern)
{
	return pattern->literal && strchr(pattern->pattern, '/') != NULL;
}

bool search_applies(const struct search *search, const struct policy_pattern *pattern)
{
	return search->only ? pattern == search->only : pattern->pattern[0] != '/';
}

bool search_in_layer(const struct search *search, const char *path)
{
	for (size_t i = 0; i < search->layer_count; i++) {
		size_t len = strlen(search->layers[i]);
		if (strncmp(path, search->layers[i], len) == 0 && path[len] == '/')
			return true;
	}
	return false;
}

/* In a layer a hidden path costs a name, everywhere else a mount. */
static int count_one(
	struct search *search, bool hide, const struct policy_pattern *pattern, const char *path)
{
	bool gone = hide && search_in_layer(search, path);
	size_t *count = gone ? &search->gone : &search->covered;
	int max = gone ? HOST_GONE_MAX : HOST_MATCHES_MAX;
	if (++*count <= (size_t)max)
		return 0;
	err_set(search->err, ERR_too_many_matches, 0, "'%s' matches more than %d files below '%s'",
		pattern->pattern, max, search->tree);
	return err_at(search->err, pattern->at.file, pattern->at.line, pattern->at.column);
}

static void add(struct search *search, bool hide, const struct policy_pattern *pattern,
	const char *path, mode_t mode)
{
	struct host *host = search->host;
	struct host_match *match =
		hide ? arena_push(&host->arena, &search->hidden, &host->hidden_count, sizeof *match)
		     : arena_push(&host->arena, &search->protected, &host->protected_count,
			       sizeof *match);
	match->path = arena_strdup(&host->arena, path);
	match->pattern = pattern;
	match->tree = search->tree;
	match->mode = mode;
}

static int add_one(struct search *search, bool hide, const struct policy_pattern *pattern,
	const char *path, const struct stat *st)
{
	if (count_one(search, hide, pattern, path) < 0)
		return -1;
	/* In a tree that the box writes, an earlier run may have made the other name. */
	if (search->written && S_ISREG(st->st_mode) && st->st_nlink > 1) {
		err_set(search->err, ERR_hard_linked, 0,
			"'%s' has %lu names (hard links), of which only this one would be covered",
			path, (unsigned long)st->st_nlink);
		return err_at(search->err, pattern->at.file, pattern->at.line, pattern->at.column);
	}
	add(search, hide, pattern, path, st->st_mode);
	return 0;
}

int search_add_plain(struct search *search, bool hide, const struct policy_pattern *pattern,
	const char *path, mode_t mode)
{
	struct stat st = { .st_mode = mode, .st_nlink = 1 };
	/* Only there its other names count. */
	if (search->written && !(hide && search_in_layer(search, path)) && lstat(path, &st) < 0)
		return search_unreached(search, path, errno);
	return S_ISLNK(st.st_mode) ? search_add(search, hide, pattern, path)
				   : add_one(search, hide, pattern, path, &st);
}

/* `done` has no links in it, `rest` is to do. */
int search_add(
	struct search *search, bool hide, const struct policy_pattern *pattern, const char *path)
{
	enum { HOPS_MAX = 40 };
	char done[PATH_MAX] = "", rest[2 * PATH_MAX], link[PATH_MAX];
	struct stat st = { 0 };
	int hops = 0;
	if (strlen(path) >= PATH_MAX)
		return search_unsearchable(search, path, ENAMETOOLONG);
	memcpy(rest, path, strlen(path) + 1);
	for (char *at = rest; *(at += strspn(at, "/"));) {
		char *end = strchrnul(at, '/');
		size_t len = (size_t)(end - at), have = strlen(done);
		bool last = !end[strspn(end, "/")];
		if (len == 2 && memcmp(at, "..", 2) == 0)
			*(strrchr(done, '/') ?: done) = 0;
		if (at[0] == '.' && (len == 1 || (len == 2 && at[1] == '.'))) {
			at = end;
			continue;
		}
		if (have + len + 2 > sizeof done)
			return search_unsearchable(search, path, ENAMETOOLONG);
		done[have] = '/';
		memcpy(done + have + 1, at, len);
		done[have + 1 + len] = 0;
		if (lstat(done, &st) < 0) /* also where a link leads nowhere */
			return search_unreached(search, done, errno);
		at = end;
		if (!S_ISLNK(st.st_mode))
			continue;
		if ((!hide || last) && add_one(search, hide, pattern, done, &st) < 0)
			return -1;
		ssize_t text = readlink(done, link, sizeof link - 1);
		size_t left = strlen(end) + 1;
		if (++hops > HOPS_MAX)
			return 0; /* nobody can open it (path_resolution(7)) */
		if (text <= 0 || (size_t)text + left > sizeof rest)
			return search_unsearchable(search, done, text < 0 ? errno : ENAMETOOLONG);
		memmove(rest + text, end, left);
		memcpy(rest, link, (size_t)text);
		done[link[0] == '/' ? 0 : have] = 0;
		at = rest;
	}
	/* Once more, for a path that ends in "..". */
	if (lstat(done[0] ? done : "/", &st) < 0)
		return search_unreached(search, done, errno);
	return S_ISLNK(st.st_mode) ? 0 : add_one(search, hide, pattern, done, &st);
}

int search_linked_prefix(struct search *search, const struct policy_pattern *pattern)
{
	struct arena *arena = &search->host->arena;
	size_t fixed = strcspn(pattern->pattern, "*?[");
	while (fixed > 0 && pattern->pattern[fixed - 1] != '/')
		fixed--;
	if (fixed < 2)
		return 0;
	const char *prefix = arena_strndup(arena, pattern->pattern, fixed - 1);
	const char *path = prefix[0] == '/' ? prefix : arena_join(arena, search->tree, "/", prefix);
	char *real = realpath(path, NULL);
	int r = 0;
	if (real && strcmp(real, path) != 0) {
		err_set(search->err, ERR_pattern_unsearchable, 0,
			"'%s' passes through a symbolic link; it leads to '%s'", path, real);
		err_hint_set(search->err, "write the pattern for '%s'", real);
		r = err_at(search->err, pattern->at.file, pattern->at.line, pattern->at.column);
	}
	free(real);
	return r;
}

int search_unsearchable(struct search *search, const char *path, int errnum)
{
	if (errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP)
		return 0;
	struct stat st;
	bool there = lstat(path, &st) == 0;
	if (errnum == EACCES && there && st.st_uid != geteuid() && access(path, X_OK) < 0)
		return 0;
	if (errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM)
		return err_set(search->err, ERR_no_resources, errnum,
			"'%s' cannot be searched for hidden or protected files: %s", path,
			strerror(errnum));
	return err_set(search->err, ERR_pattern_unsearchable, errnum,
		"'%s' cannot be searched for hidden or protected files: %s", path,
		strerror(errnum));
}

/* The first directory on the way to a path that lets us not through. */
static const char *barrier(struct arena *arena, const char *path)
{
	struct stat st;
	char *prefix = arena_strdup(arena, path);
	for (char *slash = strrchr(prefix, '/'); slash && slash > prefix;
		slash = strrchr(prefix, '/')) {
		*slash = 0;
		if (lstat(prefix, &st) == 0)
			break;
	}
	return prefix;
}

int search_unreached(struct search *search, const char *path, int errnum)
{
	const char *where = errnum == EACCES ? barrier(&search->host->arena, path) : path;
	return search_unsearchable(search, where, errnum);
}
