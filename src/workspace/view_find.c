/*
 * view_find: ways through a view: paths with links, what patterns hold, and walks over all that is
 * below a directory. Every name is looked up by view.c; paths here are text, and clean: absolute,
 * without links, "." or "..".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/match.h"
#include "workspace/view.h"

/* What follows `top` in a path: "" for itself, without a leading "/"; NULL: it is not below. */
static const char *below(const char *path, const char *top)
{
	size_t len = strlen(top);
	if (strncmp(path, top, len) != 0)
		return NULL;
	return path[len] == 0 ? path + len : path[len] == '/' ? path + len + 1 : NULL;
}

const struct view_tree *view_tree_of(const struct view *view, const char *path)
{
	const struct view_tree *best = NULL;
	for (size_t i = 0; i < view->count; i++) {
		const struct view_tree *tree = &view->trees[i];
		if (below(path, tree->root) && (!best || strlen(tree->root) > strlen(best->root)))
			best = tree;
	}
	return best;
}

/* Does the directory only have to be there because a tree is below it? */
static bool leads_to_tree(const struct view *view, const char *path)
{
	for (size_t i = 0; i < view->count; i++) {
		const char *rest = strcmp(path, "/") == 0 ? path : below(view->trees[i].root, path);
		if (rest && *rest)
			return true;
	}
	return false;
}

static bool is_top(const struct view_tree *tree, const char *path)
{
	return tree && strcmp(tree->root, path) == 0;
}

/* One pattern and one path, as policies mean it. */
static bool holds(const char *pattern, const struct view_tree *tree, const char *path)
{
	if (*pattern == '/')
		return match_path(pattern + 1, path + 1);
	const char *relative = below(path, tree->root);
	if (!tree->grant || !relative || !*relative)
		return false;
	const char *slash = strchr(pattern, '/') ? NULL : strrchr(relative, '/');
	return match_path(pattern, slash ? slash + 1 : relative);
}

static bool any_holds(const char *const *patterns, const struct view_tree *tree, const char *path)
{
	for (; patterns && *patterns; patterns++)
		if (holds(*patterns, tree, path))
			return true;
	return false;
}

enum view_held view_held(const struct view *view, const char *path, bool above)
{
	const struct view_tree *tree = view_tree_of(view, path);
	char part[PATH_MAX];
	size_t len = strlen(path);
	enum view_held held = VIEW_FREE;
	if (!tree || len >= sizeof part)
		return VIEW_HIDDEN;
	memcpy(part, path, len + 1);
	for (; len > strlen(tree->root); len--) {
		if (part[len] && part[len] != '/')
			continue;
		part[len] = 0;
		if (any_holds(view->hide, tree, part))
			return VIEW_HIDDEN;
		if (any_holds(view->protect, tree, part))
			held = VIEW_PROTECTED;
		if (!above)
			break;
	}
	return held;
}

static int open_top(const struct view_tree *tree, struct view_dir *ret)
{
	struct view_dir dir = { .tree = tree, .upper = -1, .lower = -1 };
	if (tree->upper >= 0)
		dir.upper = fcntl(tree->upper, F_DUPFD_CLOEXEC, 0);
	if (tree->lower >= 0)
		dir.lower = fcntl(tree->lower, F_DUPFD_CLOEXEC, 0);
	if ((tree->upper >= 0 && dir.upper < 0) || (tree->lower >= 0 && dir.lower < 0)) {
		int r = -errno;
		view_dir_close(&dir);
		return r;
	}
	*ret = dir;
	return 0;
}

/* Go from a directory into one that is in it. */
static int descend(struct view_dir *dir, const char *name)
{
	struct view_entry entry = VIEW_ENTRY_NONE;
	int r = view_lookup(dir, name, &entry);
	if (r == 0 && !S_ISDIR(entry.st.st_mode))
		r = entry.st.st_mode ? -ENOTDIR : -ENOENT;
	if (r < 0) {
		view_entry_close(&entry);
		return r;
	}
	view_dir_close(dir);
	*dir = entry.dir;
	fd_close(&entry.fd);
	return 0;
}

int view_open_dir(const struct view *view, const char *path, struct view_dir *ret)
{
	const struct view_tree *tree = view_tree_of(view, path);
	struct view_dir dir = VIEW_DIR_NONE;
	char name[NAME_MAX + 1];
	int r = tree ? open_top(tree, &dir) : -ENOENT;
	for (const char *at = tree ? below(path, tree->root) : ""; r == 0 && *at;) {
		size_t len = strcspn(at, "/");
		if (len >= sizeof name) {
			r = -ENAMETOOLONG;
			break;
		}
		memcpy(name, at, len);
		name[len] = 0;
		r = descend(&dir, name);
		at += len + (at[len] == '/');
	}
	if (r == 0)
		*ret = dir;
	else
		view_dir_close(&dir);
	return r < 0 && leads_to_tree(view, path) ? *ret = VIEW_DIR_NONE, 0 : r;
}

/* A path on its way. */
struct way {
	const struct view *view;
	const char *given; /* for words */
	char at[PATH_MAX]; /* where we are; clean */
	char rest[2 * PATH_MAX];
	struct view_entry entry; /* what is at `at` */
	int links;
	bool beyond; /* nothing is there any more: the rest is to be made */
	bool parents;
	struct err *err;
};

static int refuse(struct way *way, int errnum, const char *why)
{
	return err_set(way->err, ERR_session_path, errnum, "'%.300s' %s", way->given, why);
}

static int fail(struct way *way, int r)
{
	if (r == -EMFILE || r == -ENFILE || r == -ENOMEM)
		return err_set(
			way->err, ERR_no_resources, -r, "'%.300s': %s", way->given, strerror(-r));
	return err_set(way->err, ERR_session_path, -r, "'%.300s': %s", way->given, strerror(-r));
}

/* Put `text` in front of what is left. */
static int put_in_front(struct way *way, const char *text, const char *rest)
{
	char all[sizeof way->rest];
	int len = snprintf(all, sizeof all, "%s/%s", text, rest);
	if (len < 0 || (size_t)len >= sizeof all)
		return fail(way, -ENAMETOOLONG);
	memcpy(way->rest, all, (size_t)len + 1);
	return 0;
}

/* Be at a directory that is known to be one. */
static int go_to(struct way *way, const char *path)
{
	view_entry_close(&way->entry);
	int r = view_open_dir(way->view, path, &way->entry.dir);
	if (r < 0)
		return fail(way, r);
	if (path != way->at)
		memcpy(way->at, path, strlen(path) + 1);
	int top = way->entry.dir.upper >= 0 ? way->entry.dir.upper : way->entry.dir.lower;
	if (top < 0)
		way->entry.st.st_mode = S_IFDIR | 0755;
	else if (fstat(top, &way->entry.st) < 0 ||
		 (way->entry.fd = fcntl(top, F_DUPFD_CLOEXEC, 0)) < 0)
		return fail(way, -errno);
	return 0;
}

static int go_up(struct way *way)
{
	if (way->beyond)
		return refuse(way, ENOENT, "goes back from what does not exist");
	char *slash = strrchr(way->at, '/');
	slash[slash == way->at] = 0;
	return go_to(way, way->at);
}

static int follow(struct way *way, const struct view_entry *link, const char *rest)
{
	struct arena arena = { 0 };
	const char *text;
	int r = view_link(link, &arena, &text);
	if (r == 0 && ++way->links > VIEW_LINKS_MAX)
		r = -ELOOP;
	r = r < 0 ? fail(way, r) : put_in_front(way, text, rest);
	if (r == 0 && *text == '/')
		r = go_to(way, "/");
	arena_free(&arena);
	return r;
}

/* One name further. `rest` is behind it. */
static int step(struct way *way, const char *name, const char *rest)
{
	char path[PATH_MAX];
	bool top = strcmp(way->at, "/") == 0;
	int len = snprintf(path, sizeof path, "%s/%s", top ? "" : way->at, name);
	if (len < 0 || (size_t)len >= sizeof path || strlen(name) > NAME_MAX)
		return fail(way, -ENAMETOOLONG);
	const struct view_tree *tree = view_tree_of(way->view, path);
	if (is_top(tree, path) || (!tree && leads_to_tree(way->view, path)))
		return go_to(way, path);
	if (!tree)
		return refuse(way, EXDEV,
			way->links ? "leads through a link out of the session's files"
				   : "is not among the session's files");
	struct view_entry entry = VIEW_ENTRY_NONE;
	bool hidden = view_held(way->view, path, false) == VIEW_HIDDEN;
	int r = hidden || way->beyond ? 0 : view_lookup(&way->entry.dir, name, &entry);
	if (r < 0)
		return fail(way, r);
	if (!entry.st.st_mode && leads_to_tree(way->view, path))
		return go_to(way, path);
	if (!entry.st.st_mode && *rest && !way->parents)
		return refuse(way, ENOENT, "is in a directory that does not exist");
	if (S_ISLNK(entry.st.st_mode)) {
		r = follow(way, &entry, rest);
		view_entry_close(&entry);
		return r;
	}
	way->beyond |= !entry.st.st_mode;
	view_entry_close(&way->entry);
	way->entry = entry;
	memcpy(way->at, path, (size_t)len + 1);
	return 0;
}

static int walk_path(struct way *way)
{
	char name[NAME_MAX + 2], rest[sizeof way->rest];
	while (*way->rest) {
		size_t len = strcspn(way->rest, "/");
		const char *next = way->rest + len;
		next += strspn(next, "/");
		if (len >= sizeof name)
			return fail(way, -ENAMETOOLONG);
		memcpy(name, way->rest, len);
		name[len] = 0;
		memcpy(rest, next, strlen(next) + 1);
		memcpy(way->rest, rest, strlen(rest) + 1);
		if (len == 0 || strcmp(name, ".") == 0)
			continue;
		if (!way->beyond && !S_ISDIR(way->entry.st.st_mode))
			return fail(way, -ENOTDIR);
		if (strcmp(name, "..") == 0 ? go_up(way) : step(way, name, rest))
			return -1;
	}
	return 0;
}

int view_find(const struct view *view, const char *base, const char *path, bool parents,
	struct arena *arena, struct view_found *ret, struct err *err)
{
	struct way way = { .view = view,
		.given = path,
		.entry = VIEW_ENTRY_NONE,
		.parents = parents,
		.err = err };
	int len = snprintf(way.rest, sizeof way.rest, "%s/%s", *path == '/' ? "" : base, path);
	int r = !*path || len < 0 || (size_t)len >= sizeof way.rest
			? fail(&way, *path ? -ENAMETOOLONG : -ENOENT)
			: go_to(&way, "/");
	if (r == 0)
		r = walk_path(&way);
	if (r == 0 && !view_tree_of(view, way.at))
		r = refuse(&way, EXDEV, "is not among the session's files");
	if (r < 0) {
		view_entry_close(&way.entry);
		return -1;
	}
	ret->path = arena_strdup(arena, way.at);
	ret->entry = way.entry;
	return 0;
}

void view_found_close(struct view_found *found)
{
	view_entry_close(&found->entry);
}

/* What is still to be visited, the next one last. */
struct walk {
	const struct view *view;
	const char *top;
	struct arena arena;
	const char **list;
	size_t count, room, seen;
	struct view_dir dir;  /* of the entry before */
	const char *dir_path; /* in `path`; what dir is */
	view_function *function;
	void *data;
};

/* Not arena_push(), which is for lists that only grow. */
static void push(struct walk *walk, const char *name)
{
	if (walk->count == walk->room) {
		walk->room = walk->room ? 2 * walk->room : 64;
		const char **grown = ARENA_ARRAY(&walk->arena, walk->room, const char *);
		if (walk->count)
			memcpy(grown, walk->list, walk->count * sizeof *grown);
		walk->list = grown;
	}
	walk->list[walk->count++] = name;
}

/* Push what is in a directory; `name` is its path below the top, "" for the top itself. */
static int push_names(struct walk *walk, const struct view_dir *dir, const char *name)
{
	const char **names;
	size_t count;
	int r = view_names(dir, &walk->arena, &names, &count);
	if (r < 0)
		return r;
	walk->seen += count;
	if (walk->seen > VIEW_ENTRIES_MAX)
		return -E2BIG;
	while (count-- > 0)
		push(walk,
			*name ? arena_join(&walk->arena, name, "/", names[count]) : names[count]);
	return 0;
}

/* Have the directory of `path` open; neighbours share it. */
static int open_parent(struct walk *walk, const char *path)
{
	size_t len = (size_t)(strrchr(path, '/') - path);
	if (walk->dir_path && strlen(walk->dir_path) == len &&
		memcmp(walk->dir_path, path, len) == 0)
		return 0;
	walk->dir_path = NULL;
	view_dir_close(&walk->dir);
	char *parent = arena_strndup(&walk->arena, path, len);
	int r = view_open_dir(walk->view, parent, &walk->dir);
	walk->dir_path = r == 0 ? parent : NULL;
	return r;
}

static int visit(struct walk *walk, const char *name, bool recursive)
{
	struct view_entry entry = VIEW_ENTRY_NONE;
	if (strlen(walk->top) + 1 + strlen(name) >= PATH_MAX)
		return walk->function(walk->data, name, &entry, ENAMETOOLONG);
	const char *path = arena_join(&walk->arena, walk->top, "/", name);
	if (view_held(walk->view, path, false) == VIEW_HIDDEN)
		return 0;
	int r = open_parent(walk, path);
	if (r == 0)
		r = view_lookup(&walk->dir, strrchr(path, '/') + 1, &entry);
	/* It may be gone by now: an exec may be under way. */
	if (r == -ENOENT || (r == 0 && !entry.st.st_mode))
		return 0;
	r = walk->function(walk->data, name, &entry, r < 0 ? -r : 0);
	if (r == 0 && recursive && S_ISDIR(entry.st.st_mode) &&
		!is_top(view_tree_of(walk->view, path), path)) {
		r = push_names(walk, &entry.dir, name);
		if (r < 0 && r != -E2BIG && r != -ENOENT)
			r = walk->function(walk->data, name, &entry, -r);
		/* What is in it comes next. */
		view_dir_close(&walk->dir);
		walk->dir = entry.dir;
		walk->dir_path = path;
		entry.dir = VIEW_DIR_NONE;
	}
	view_entry_close(&entry);
	return r;
}

int view_walk(const struct view *view, const char *top, bool recursive, view_function *function,
	void *data)
{
	struct walk walk = {
		.view = view, .top = top, .dir = VIEW_DIR_NONE, .function = function, .data = data
	};
	struct view_dir dir = VIEW_DIR_NONE;
	int r = view_open_dir(view, top, &dir);
	if (r == 0)
		r = push_names(&walk, &dir, "");
	view_dir_close(&dir);
	while (r == 0 && walk.count > 0)
		r = visit(&walk, walk.list[--walk.count], recursive);
	view_dir_close(&walk.dir);
	arena_free(&walk.arena);
	return r;
}
