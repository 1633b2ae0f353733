/*
 * apply_judge: what is to be done about each change, from what the host has now, what it had when
 * the layer was kept, and what the caller chose. Changes nothing.
 */
#define _GNU_SOURCE
#include "workspace/apply_work.h"
#include "base/fd.h"
#include "base/match.h"
#include "workspace/content.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define READ_FILE (O_RDONLY | O_NONBLOCK | O_NOCTTY)

static const char *const why_link = "a directory above it is a link or a file on the host now";

struct judge {
	struct apply_work *work;
	const struct apply_options *options;
	size_t *parents; /* of each change: the step of its directory, or APPLY_NONE */
	bool *chosen;
	size_t *gone; /* of each directory that goes: how many names in it go too */
};

mode_t apply_wanted(const struct change *change)
{
	return change->mode & (S_IFMT | 01777);
}

bool apply_makes_dir(const struct record *step)
{
	return step->change.kind != CHANGE_DELETED && S_ISDIR(step->change.mode) &&
	       !(step->base.there && S_ISDIR(step->base.mode));
}

static int64_t nanoseconds(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

bool apply_is_base(const struct stat *st, const struct apply_base *base, bool exact)
{
	/* While apply is at work, a directory may have been lent permissions. */
	mode_t lent = !exact && S_ISDIR(st->st_mode) ? 0700 : 0;
	if (!base->there || st->st_ino != base->ino || (st->st_mode | lent) != (base->mode | lent))
		return false;
	/* A directory's times and size follow what is in it, which is looked at by itself. */
	if (S_ISDIR(st->st_mode))
		return true;
	return (!S_ISREG(st->st_mode) || (uint64_t)st->st_size == base->size) &&
	       nanoseconds(&st->st_mtim) == base->mtime_ns &&
	       (!exact || nanoseconds(&st->st_ctim) == base->ctime_ns);
}

/* The change of the directory that a path lies in: by halving, as the list is in order. */
static size_t find_parent(const struct apply_work *work, size_t index)
{
	const struct change *c = &work->steps[index].change;
	const char *slash = strrchr(c->path, '/'), *path = slash ? c->path : ".";
	size_t len = slash ? (size_t)(slash - c->path) : 1, low = 0, high = index;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct change *m = &work->steps[middle].change;
		int order = m->layer < c->layer ? -1 : m->layer > c->layer ? 1 : 0;
		if (order == 0)
			order = records_path_order(m->path, path, len);
		if (order == 0)
			return middle;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return APPLY_NONE;
}

bool apply_chooses(const char *const *patterns, const char *path)
{
	struct arena arena = { 0 };
	bool chosen = !patterns;
	for (; patterns && !chosen && *patterns; patterns++) {
		/* What is named with a "/" means all that is below, too. */
		chosen = match_name(*patterns, path) ||
			 (strchr(*patterns, '/') &&
				 match_path(arena_join(&arena, *patterns, "/**", ""), path));
	}
	arena_free(&arena);
	return chosen;
}

/* A new directory is chosen with whatever in it is. */
static void choose(struct judge *judge)
{
	struct apply_work *work = judge->work;
	for (size_t i = work->count; i-- > 0;) {
		const struct change *c = &work->steps[i].change;
		size_t parent = judge->parents[i];
		judge->chosen[i] =
			judge->chosen[i] || apply_chooses(judge->options->patterns, c->path);
		if (judge->chosen[i] && parent != APPLY_NONE &&
			apply_makes_dir(&work->steps[parent]) && c->kind != CHANGE_DELETED)
			judge->chosen[parent] = true;
	}
}

/* Has the host's regular file the layer's content? 1, 0 or -errno of the layer's side. */
static int content_equal(struct apply_work *work, const struct record *step, int dir,
	const char *name, const struct stat *host)
{
	const struct change *c = &step->change;
	if ((uint64_t)host->st_size != c->size)
		return 0;
	AUTO_FD there = dirs_open_name(dir, name, READ_FILE, false);
	struct stat st;
	if (there < 0 || fstat(there, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	AUTO_FD own = apply_open_new(work, c, READ_FILE, &st);
	return own < 0 ? own : content_same(there, own);
}

static bool same_link(const struct change *c, int dir, const char *name)
{
	char text[4097];
	ssize_t n = readlinkat(dir, name, text, sizeof text);
	return c->target && n >= 0 && (size_t)n == strlen(c->target) &&
	       memcmp(text, c->target, (size_t)n) == 0;
}

/*
 * Of a file or link that the host has already, but perhaps not of that time. In one that is in the
 * list for more than that somebody has brought it since, and the time is theirs.
 */
static int find_time_action(
	struct apply_work *work, const struct change *c, const struct stat *host)
{
	struct stat st;
	if (!c->quiet)
		return ACTION_NONE;
	AUTO_FD own = apply_open_new(work, c, O_PATH, &st);
	if (own < 0)
		return own;
	if (nanoseconds(&st.st_mtim) == nanoseconds(&host->st_mtim))
		return ACTION_NONE;
	return host->st_nlink > 1 ? ACTION_PUT : ACTION_MODE;
}

/* What would have to be done; ACTION_NONE: the host has it already. Or -errno. */
static int find_action(struct apply_work *work, const struct record *step, int dir,
	const char *name, const struct stat *host)
{
	const struct change *c = &step->change;
	mode_t want = apply_wanted(c);
	if (c->kind == CHANGE_DELETED)
		return host ? ACTION_DELETE : ACTION_NONE;
	if (!host)
		return ACTION_PUT;
	bool same_mode = ((host->st_mode ^ want) & 01777) == 0;
	if (S_ISDIR(want) != S_ISDIR(host->st_mode))
		return ACTION_SWAP;
	if (S_ISDIR(want))
		return same_mode ? ACTION_NONE : ACTION_DIR_MODE;
	if (S_ISLNK(want) && S_ISLNK(host->st_mode) && same_link(c, dir, name))
		return find_time_action(work, c, host);
	if (!S_ISREG(want) || !S_ISREG(host->st_mode))
		return ACTION_PUT;
	int r = content_equal(work, step, dir, name, host);
	if (r < 0)
		return r;
	/* A file with the host's set-id bits is replaced: it never had them for this content. */
	if (r == 0 || (host->st_mode & 06000))
		return ACTION_PUT;
	/* Its mode is that of its other names, too, which may lie anywhere: it gets a file of its
	 * own. */
	if (same_mode)
		return find_time_action(work, c, host);
	return host->st_nlink > 1 ? ACTION_PUT : ACTION_MODE;
}

const char *apply_conflict(const struct record *step, const struct stat *host)
{
	const struct apply_base *base = &step->base;
	if (base->conflict)
		return "it was changed on the host while the command ran";
	if (!host)
		return base->there ? "it is gone from the host" : NULL;
	/* The box saw nothing there: it was made meanwhile, or lies in something mounted. */
	if (!base->there || step->change.kind == CHANGE_CREATED)
		return "it is on the host now";
	return apply_is_base(host, base, true) ? NULL : "it was changed on the host meanwhile";
}

static void judge_host(struct judge *judge, struct record *step)
{
	struct apply_work *work = judge->work;
	const struct change *c = &step->change;
	const char *name;
	struct stat st;
	const struct stat *host = &st;
	int dir = dirs_parent(&work->lower[c->layer], c->path, &name);
	if (dir < 0 && (dir == -ELOOP || dir == -ENOTDIR || dir == -EXDEV)) {
		apply_set(work, step, APPLY_CONFLICT, 0, why_link);
		return;
	}
	if (dir == -ENOENT) {
		apply_set(work, step, c->kind == CHANGE_DELETED ? APPLY_SAME : APPLY_CONFLICT, 0,
			c->kind == CHANGE_DELETED ? NULL : "its directory is gone from the host");
		return;
	}
	if (dir >= 0 && fstat(dir, &st) == 0)
		step->dir_ino = st.st_ino;
	if (dir >= 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			host = NULL;
		else
			dir = -errno;
	}
	int action = dir < 0 ? dir : find_action(work, step, dir, name, host);
	if (action < 0)
		apply_set(work, step, APPLY_FAILED, -action, "it cannot be looked at");
	else if (action == ACTION_NONE)
		apply_set(work, step, APPLY_SAME, 0, NULL);
	else if (c->sensitive && !judge->options->allow_sensitive)
		apply_set(work, step, APPLY_SENSITIVE, 0,
			"something outside of the box may run it or obey it");
	else if (apply_conflict(step, host))
		apply_set(work, step, APPLY_CONFLICT, 0, apply_conflict(step, host));
	else
		step->action = (char)action;
}

static bool is_special(const struct change *c)
{
	return c->kind != CHANGE_DELETED && !S_ISREG(c->mode) && !S_ISDIR(c->mode) &&
	       !S_ISLNK(c->mode);
}

/* Has the host something else already in the place of this directory, as it is to have? */
static bool went_with(const struct apply_work *work, size_t parent)
{
	return parent != APPLY_NONE && !S_ISDIR(work->steps[parent].change.mode) &&
	       work->steps[parent].change.kind != CHANGE_DELETED &&
	       work->entries[parent].outcome == APPLY_SAME;
}

static void judge_one(struct judge *judge, size_t index)
{
	struct apply_work *work = judge->work;
	struct record *step = &work->steps[index];
	const struct change *c = &step->change;
	size_t parent = judge->parents[index];
	if (c->held) {
		apply_set(work, step, APPLY_HELD, 0, "the policy hides or protects it");
	} else if (!judge->chosen[index]) {
		apply_set(work, step, APPLY_UNCHOSEN, 0, NULL);
	} else if (is_special(c)) {
		apply_set(work, step, APPLY_SKIPPED, 0, "it is a FIFO, a socket or a device");
	} else if (work->layers[c->layer].lower < 0) {
		apply_set(work, step, APPLY_SKIPPED, 0, "it belongs to no directory of the host");
	} else if (c->kind == CHANGE_DELETED && went_with(work, parent)) {
		apply_set(work, step, APPLY_SAME, 0, NULL);
	} else if (parent == APPLY_NONE || !apply_makes_dir(&work->steps[parent]) ||
		   work->entries[parent].outcome == APPLY_SAME) {
		judge_host(judge, step);
	} else if (work->entries[parent].outcome != APPLY_DONE) {
		apply_set(work, step, work->entries[parent].outcome, work->entries[parent].errnum,
			"its directory is not brought to the host");
	} else if (c->kind == CHANGE_DELETED) {
		apply_set(work, step, APPLY_SAME, 0, NULL);
	} else if (c->sensitive && !judge->options->allow_sensitive) {
		apply_set(work, step, APPLY_SENSITIVE, 0,
			"something outside of the box may run it or obey it");
	} else {
		step->action = ACTION_INSIDE;
		step->root = work->steps[parent].action == ACTION_INSIDE ? work->steps[parent].root
									 : parent;
	}
}

int apply_holds_more(int parent, const char *name, size_t max)
{
	AUTO_FD fd = dirs_open_name(parent, name, O_RDONLY | O_DIRECTORY, false);
	if (fd < 0)
		return fd;
	DIR *dir = fdopendir(fd);
	if (!dir)
		return -errno;
	fd_steal(&fd);
	size_t names = 0;
	for (struct dirent *entry; names <= max && (entry = readdir(dir));)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			names++;
	closedir(dir);
	return names > max;
}

/* A directory goes only with all that is in it, so the deepest are looked at first. */
static void judge_going(struct judge *judge)
{
	struct apply_work *work = judge->work;
	for (size_t i = work->count; i-- > 0;) {
		struct record *step = &work->steps[i];
		size_t parent = judge->parents[i];
		bool goes = step->action == ACTION_DELETE || step->action == ACTION_SWAP;
		if (goes && S_ISDIR(step->base.mode) && step->base.there) {
			const char *name;
			int dir = dirs_parent(
				&work->lower[step->change.layer], step->change.path, &name);
			int more = dir < 0 ? dir : apply_holds_more(dir, name, judge->gone[i]);
			if (more > 0)
				apply_set(work, step, APPLY_CONFLICT, 0,
					"files stay in the host's directory");
			else if (more < 0)
				apply_set(
					work, step, APPLY_FAILED, -more, "it cannot be looked at");
		}
		if (step->action == ACTION_DELETE && parent != APPLY_NONE)
			judge->gone[parent]++;
	}
}

/* Is this directory of the host one that apply may not write as whom it acts there, but may lend
 * itself the permission? */
static bool is_lockable(
	const struct apply_work *work, const struct dirs *dirs, int dir, struct stat *ret)
{
	uid_t uid = geteuid();
	gid_t gid;
	if (work->self.root)
		dirs_owner(dirs, &uid, &gid);
	return uid != 0 && fstat(dir, ret) == 0 && ret->st_uid == uid &&
	       (ret->st_mode & 0300) != 0300;
}

/* Directories that the caller owns and may not write, though something in them is to change. */
static void find_lent(struct judge *judge, size_t changes)
{
	struct apply_work *work = judge->work;
	size_t last = APPLY_NONE;
	for (size_t i = 0; i < changes; i++) {
		const struct record *step = &work->steps[i];
		size_t parent = judge->parents[i], layer = step->change.layer;
		struct stat st;
		if (step->action != ACTION_PUT && step->action != ACTION_SWAP &&
			step->action != ACTION_DELETE)
			continue;
		if (parent != APPLY_NONE && work->steps[parent].action == ACTION_DIR_MODE)
			continue;
		const char *path = step->change.path, *name;
		int dir = dirs_parent(&work->lower[layer], path, &name);
		if (dir < 0 || !is_lockable(work, &work->lower[layer], dir, &st))
			continue;
		if (last != APPLY_NONE && work->steps[last].base.ino == st.st_ino)
			continue;
		struct record *lent =
			arena_push(work->arena, &work->steps, &work->count, sizeof *lent);
		lent->action = ACTION_LEND;
		lent->entry = lent->root = lent->link = APPLY_NONE;
		lent->change = (struct change){
			.path = name == path ? "."
					     : arena_strndup(work->arena, path,
						       (size_t)(name - path) - 1),
			.layer = layer,
			.kind = CHANGE_MODIFIED,
			.mode = st.st_mode,
		};
		lent->base = (struct apply_base){ .there = true, .mode = st.st_mode };
		lent->base.ino = st.st_ino;
		last = work->count - 1;
	}
}

void apply_judge(struct apply_work *work, const struct apply_options *options)
{
	size_t count = work->count;
	struct judge judge = { .work = work, .options = options };
	struct arena arena = { 0 };
	judge.parents = ARENA_ARRAY(&arena, count + 1, size_t);
	judge.chosen = ARENA_ARRAY(&arena, count + 1, bool);
	judge.gone = ARENA_ARRAY(&arena, count + 1, size_t);
	for (size_t i = 0; i < count; i++)
		judge.parents[i] = find_parent(work, i);
	choose(&judge);
	for (size_t i = 0; i < count; i++)
		judge_one(&judge, i);
	judge_going(&judge);
	apply_find_links(work, options);
	if (!options->dry_run) {
		find_lent(&judge, count);
		apply_find_times(work, options->started_ns);
	}
	arena_free(&arena);
}
