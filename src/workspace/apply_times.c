/*
 * apply_times: directories in which something was done get the time that they had in the box, as
 * apply's own work has moved it. The ones in which nothing was done keep theirs: a time that went
 * back to what it was would hide what others did meanwhile.
 */
#define _GNU_SOURCE
#include "workspace/apply_work.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* A directory on the way down, and the step for it (or APPLY_NONE). */
struct level {
	const char *path;
	size_t len, layer, step;
};

struct finder {
	struct apply_work *work;
	int64_t started_ns;
	struct level *levels;
	size_t depth, room;
	struct arena arena;
};

static int64_t nanoseconds(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static bool leads_to(const struct level *level, const char *path, size_t len, size_t layer)
{
	return level->layer == layer && level->len <= len &&
	       memcmp(level->path, path, level->len) == 0 &&
	       (level->len == 0 || level->len == len || path[level->len] == '/');
}

/*
 * Is the directory's time the box's to set? Not where others have done something in it since the
 * box began, later than the box.
 */
static bool may_set(const struct finder *finder, const struct stat *host, const struct stat *box)
{
	return nanoseconds(&host->st_ctim) < finder->started_ns ||
	       nanoseconds(&host->st_mtim) <= nanoseconds(&box->st_mtim);
}

/* The step for a directory, or APPLY_NONE. */
static size_t add_step(struct finder *finder, const char *path, size_t len, size_t layer)
{
	struct apply_work *work = finder->work;
	struct change change = {
		.path = len ? arena_strndup(work->arena, path, len) : ".",
		.layer = layer,
		.kind = CHANGE_MODIFIED,
		.mode = S_IFDIR,
	};
	const char *name;
	struct stat host, box;
	int dir = dirs_parent(&work->lower[layer], change.path, &name);
	if (dir < 0 || fstatat(dir, name, &host, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(host.st_mode))
		return APPLY_NONE;
	AUTO_FD own = apply_open_new(work, &change, O_PATH | O_DIRECTORY, &box);
	if (own < 0 || !may_set(finder, &host, &box))
		return APPLY_NONE;
	struct record *step = arena_push(work->arena, &work->steps, &work->count, sizeof *step);
	change.mode = host.st_mode;
	step->change = change;
	step->action = ACTION_TIMES;
	step->entry = step->root = step->link = APPLY_NONE;
	step->base = (struct apply_base){ .there = true, .mode = host.st_mode };
	step->base.ino = host.st_ino;
	step->base.mtime_ns = nanoseconds(&host.st_mtim);
	return work->count - 1;
}

static struct level *push(struct finder *finder)
{
	if (finder->depth == finder->room) {
		size_t room = finder->room ? finder->room * 2 : 64;
		struct level *grown = ARENA_ARRAY(&finder->arena, room, struct level);
		if (finder->depth > 0)
			memcpy(grown, finder->levels, finder->depth * sizeof *grown);
		finder->levels = grown;
		finder->room = room;
	}
	return &finder->levels[finder->depth++];
}

static size_t find_step(struct finder *finder, const char *path, size_t len, size_t layer)
{
	while (finder->depth > 0 && !leads_to(&finder->levels[finder->depth - 1], path, len, layer))
		finder->depth--;
	const struct level *top = finder->depth ? &finder->levels[finder->depth - 1] : NULL;
	if (top && top->len == len)
		return top->step;
	size_t step = add_step(finder, path, len, layer);
	*push(finder) = (struct level){ path, len, layer, step };
	return step;
}

void apply_find_times(struct apply_work *work, int64_t started_ns)
{
	struct finder finder = { .work = work, .started_ns = started_ns };
	size_t count = work->count;
	for (size_t i = 0; i < count; i++) {
		const struct record *step = &work->steps[i];
		const char *path = step->change.path, *slash = strrchr(path, '/');
		size_t len = slash ? (size_t)(slash - path) : 0;
		bool alone = step->change.quiet && S_ISDIR(step->change.mode) &&
			     work->entries[step->entry].outcome == APPLY_SAME;
		if (step->action == ACTION_DIR_MODE || alone)
			len = strcmp(path, ".") == 0 ? 0 : strlen(path);
		else if (step->action != ACTION_PUT && step->action != ACTION_SWAP &&
			 step->action != ACTION_DELETE)
			continue;
		size_t found = find_step(&finder, path, len, step->change.layer);
		work->steps[i].root = found;
		if (alone && found != APPLY_NONE)
			work->steps[found].touched = true;
	}
	arena_free(&finder.arena);
}

void apply_commit_times(struct apply_work *work, struct record *step)
{
	struct dirs *lower = &work->lower[step->change.layer];
	const char *name;
	struct stat host, box;
	/* Of a journal it is not known what had been done. */
	if (work->entries && !step->touched)
		return;
	int dir = dirs_parent(lower, step->change.path, &name);
	if (dir < 0 || apply_act(work, lower) < 0)
		return;
	AUTO_FD fd = dirs_open_name(dir, name, O_PATH | O_DIRECTORY, false);
	if (fd < 0 || fstat(fd, &host) < 0 || host.st_ino != step->base.ino)
		return;
	AUTO_FD own = apply_open_new(work, &step->change, O_PATH | O_DIRECTORY, &box);
	/* Only an owner may. It is not worth a failure. */
	if (own >= 0)
		(void)dirs_set_mtime(fd, &box.st_mtim);
}
