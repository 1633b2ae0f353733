/*
 * changes: turns a walk of a layer and the tree below it into the list of what differs. Decides
 * what a pair of files means; walking, comparing and matching are changes_walk.c, changes_files.c
 * and patterns.c.
 */
#define _GNU_SOURCE
#include "workspace/changes.h"
#include "workspace/changes_files.h"
#include "workspace/changes_pair.h"
#include "workspace/changes_walk.h"
#include "workspace/patterns.h"
#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

/* Bytes of all paths and texts of links, where the caller sets no maximum. */
#define TEXT_MAX ((size_t)1 << 30)

struct finder {
	const struct changes_layer *layer;
	size_t index;
	struct arena arena; /* of the patterns */
	struct patterns patterns;
	uint64_t *top;   /* state of the patterns at the top of the tree */
	uint64_t *state; /* of the entry that is looked at */
	unsigned says;   /* of it: enum pattern_match */
	struct walk walk;
	struct buf path;
	char *block, *other, *scratch;
	size_t max, text;
	struct changes *ret; /* NULL: they are told one by one */
	changes_visit *visit;
	void *data;
	bool quiet;
	struct err *err;
};

static int fail(struct finder *finder, int tree, int errnum)
{
	if (errnum == ENOMEM || errnum == EMFILE || errnum == ENFILE)
		return err_set(finder->err, ERR_no_resources, errnum,
			"the changes cannot be looked at: %s", strerror(errnum));
	const char *path = buf_text(&finder->path);
	size_t len = strlen(path);
	const char *tail = len > 200 ? path + len - 200 : path;
	const char *where = tree == WALK_UPPER ? " in its private layer" : "";
	if (errnum == EUCLEAN)
		return err_set(finder->err, ERR_workspace_unreadable, 0,
			"'%.200s%s%s'%s has a mark of overlayfs that cannot be there",
			finder->layer->root, len > 200 ? "/..." : "/", tail, where);
	return err_set(finder->err, ERR_workspace_unreadable, errnum,
		"'%.200s%s%s'%s cannot be looked at: %s", finder->layer->root,
		len > 200 ? "/..." : "/", tail, where, strerror(errnum));
}

/* The path of a directory further up, of which this one has that many bytes. */
static void cut_path(struct finder *finder, size_t len)
{
	finder->path.len = len;
	finder->path.data[len] = 0;
}

/* What the kernel takes for "this name is not there". */
static bool is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

/* See whether a name is there, and what. */
static int look(struct finder *finder, struct pair *pair, enum walk_tree tree, int dir)
{
	struct files_place *place = &pair->place[tree];
	*place = (struct files_place){ .dir = dir, .name = pair->name };
	if (fstatat(dir, pair->name, &place->st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
		/* The tree below may be of a kind with shorter names. */
		return errno == ENOENT || errno == ENAMETOOLONG ? 0 : fail(finder, tree, errno);
	/* In the tree below, too, overlayfs takes it for nothing. */
	pair->there[tree] = finder->layer->whole || !is_whiteout(&place->st);
	return 0;
}

/* What overlayfs wrote beside a regular file of the layer: it may be a whiteout in this form. */
static int look_file_marks(struct finder *finder, struct pair *pair, bool xwhite)
{
	const struct files_place *place = &pair->place[WALK_UPPER];
	if (!pair->there[WALK_UPPER] || finder->layer->whole || !S_ISREG(place->st.st_mode))
		return 0;
	int marks = files_marks(place, finder->block);
	if (marks < 0)
		return fail(finder, WALK_UPPER, -marks);
	if (place->st.st_size == 0 && xwhite && (marks & FILES_WHITEOUT))
		pair->there[WALK_UPPER] = false;
	return 0;
}

/* The upper one of the two, which is a directory, and what overlayfs wrote beside it. */
static int open_upper(struct finder *finder, struct pair *pair, int dir)
{
	struct walk_side *side = &pair->side[WALK_UPPER];
	int r = walk_open(WALK_UPPER, dir, pair->name, true, side);
	if (r == 0 && !finder->layer->whole) {
		pair->marks = files_dir_marks(side->fd, finder->block);
		r = pair->marks < 0 ? pair->marks : 0;
	}
	return r < 0 ? fail(finder, WALK_UPPER, -r) : 0;
}

/* Open the directories among the two, for what is below. */
static int open_sides(struct finder *finder, struct pair *pair, bool full)
{
	if (pair_is_dir(pair, WALK_UPPER) &&
		open_upper(finder, pair, pair->place[WALK_UPPER].dir) < 0)
		return -1;
	if (!pair_is_dir(pair, WALK_LOWER))
		return 0;
	struct files_place *place = &pair->place[WALK_LOWER];
	bool list = full || (pair->marks & FILES_OPAQUE) || !pair_is_dir(pair, WALK_UPPER);
	int r = walk_open(WALK_LOWER, place->dir, pair->name, list, &pair->side[WALK_LOWER]);
	pair->covered = r == -EXDEV;
	/* What was removed or replaced meanwhile has nothing below it. */
	if (r < 0 && r != -EXDEV && r != -ENOENT && r != -ENOTDIR && r != -ELOOP)
		return fail(finder, WALK_LOWER, -r);
	return 0;
}

/* 1: the two are the same, 0: they are not, -1 with an error. */
static int same_link(struct finder *finder, const struct pair *pair)
{
	char *const blocks[2] = { finder->block, finder->other };
	long len[2];
	for (int i = 0; i < 2; i++) {
		len[i] = files_link_text(&pair->place[i], blocks[i]);
		if (len[i] == -ENOENT || len[i] == -EINVAL)
			return 0;
		if (len[i] < 0)
			return fail(finder, i, (int)-len[i]);
	}
	return len[0] == len[1] && memcmp(blocks[0], blocks[1], (size_t)len[0]) == 0;
}

/* Is something mounted on the lower one, which is no directory? */
static bool is_mounted_on(const struct pair *pair)
{
	const struct files_place *lower = &pair->place[WALK_LOWER];
	return !S_ISDIR(lower->st.st_mode) && walk_is_mount(lower->dir, pair->name);
}

static int same_files(struct finder *finder, const struct pair *pair)
{
	const struct files_place *upper = &pair->place[WALK_UPPER];
	const struct files_place *lower = &pair->place[WALK_LOWER];
	mode_t mode = upper->st.st_mode;
	if ((mode & S_IFMT) != (lower->st.st_mode & S_IFMT))
		return 0;
	if (S_ISLNK(mode))
		return same_link(finder, pair);
	if (pair->covered)
		return 1;
	if (mode != lower->st.st_mode)
		return 0;
	if (S_ISCHR(mode) || S_ISBLK(mode))
		return upper->st.st_rdev == lower->st.st_rdev;
	if (!S_ISREG(mode))
		return 1;
	if (upper->st.st_size != lower->st.st_size)
		return 0;
	struct files_error error;
	int r = files_same_content(upper, lower, finder->block, finder->other, &error);
	if (r < 0 && error.errnum == EXDEV && error.tree == WALK_LOWER)
		return 0; /* something is mounted on it: see same() */
	return r < 0 ? fail(finder, error.tree, error.errnum) : r;
}

/* Only what seems to differ is worth the question what is mounted. */
static int same(struct finder *finder, const struct pair *pair)
{
	int r = same_files(finder, pair);
	if (r != 0 || !is_mounted_on(pair))
		return r;
	const struct stat *upper = &pair->place[WALK_UPPER].st;
	return S_ISREG(upper->st_mode) && upper->st_size == 0;
}

/* Add the text of a link to an entry. */
static int add_target(struct finder *finder, const struct files_place *place, struct arena *arena,
	struct change *change)
{
	long len = files_link_text(place, finder->block);
	if (len < 0)
		return (int)len;
	change->target = arena_strndup(arena, finder->block, (size_t)len);
	change->escapes = change->kind != CHANGE_DELETED &&
			  files_link_escapes(finder->layer->root, change->path, change->target);
	return 0;
}

/* Is there room in the list for this entry? Once there is none, nothing more is listed. */
static bool has_room(struct finder *finder, const struct stat *st)
{
	size_t text = finder->path.len + 1;
	if (S_ISLNK(st->st_mode) && st->st_size > 0)
		text += (size_t)st->st_size + 1;
	if (finder->ret->left_out || (finder->max && finder->ret->count >= finder->max) ||
		finder->text + text > (finder->max ? CHANGES_TEXT_MAX : TEXT_MAX)) {
		finder->ret->left_out++;
		return false;
	}
	finder->text += text;
	return true;
}

/* Fill in what is known; 0 or -1 with an error. */
static int describe(
	struct finder *finder, const struct pair *pair, struct arena *arena, struct change *change)
{
	int tree = pair->there[WALK_UPPER] ? WALK_UPPER : WALK_LOWER;
	const struct files_place *place = &pair->place[tree];
	change->layer = finder->index;
	change->kind = tree == WALK_LOWER        ? CHANGE_DELETED
		       : pair->there[WALK_LOWER] ? CHANGE_MODIFIED
						 : CHANGE_CREATED;
	change->mode = place->st.st_mode;
	change->size = S_ISREG(change->mode) ? (uint64_t)place->st.st_size : 0;
	change->sensitive = pair_is_sensitive(finder->says, pair);
	change->held = pair_is_held(finder->says, pair);
	int r = S_ISLNK(change->mode) ? add_target(finder, place, arena, change) : 0;
	/* A link of the lower tree that went away meanwhile was there all the same. */
	if (r == 0 || (tree == WALK_LOWER && (r == -ENOENT || r == -EINVAL)))
		return 0;
	return fail(finder, tree, -r);
}

static int tell(struct finder *finder, const struct pair *pair, bool quiet)
{
	struct arena arena = { 0 };
	struct change change = { .path = buf_text(&finder->path), .quiet = quiet };
	int r = describe(finder, pair, &arena, &change);
	if (r == 0)
		r = finder->visit(finder->data, &change, finder->err);
	arena_free(&arena);
	return r;
}

static int add(struct finder *finder, const struct pair *pair, bool quiet)
{
	int tree = pair->there[WALK_UPPER] ? WALK_UPPER : WALK_LOWER;
	/* Hidden before the command began, or protected: it was not the command that took it away.
	 */
	if (pair_is_held(finder->says, pair) && (tree == WALK_LOWER || quiet))
		return 0;
	if (finder->visit)
		return tell(finder, pair, quiet);
	if (!has_room(finder, &pair->place[tree].st)) {
		if (finder->max)
			return 0;
		return err_set(finder->err, ERR_no_resources, 0,
			"the names of the files that were changed take more than %zu bytes",
			TEXT_MAX);
	}
	struct changes *ret = finder->ret;
	struct change *change = arena_push(&ret->arena, &ret->list, &ret->count, sizeof *ret->list);
	change->path = arena_strndup(&ret->arena, finder->path.data, finder->path.len);
	change->quiet = quiet;
	return describe(finder, pair, &ret->arena, change);
}

/*
 * The same in both trees to all who do not look at times and links. What has other names in the
 * layer may have got them there.
 */
static bool is_quiet(const struct finder *finder, const struct pair *pair)
{
	const struct stat *a = &pair->place[WALK_UPPER].st, *b = &pair->place[WALK_LOWER].st;
	mode_t type = a->st_mode & S_IFMT;
	if (!finder->quiet || pair->covered ||
		(type != S_IFREG && type != S_IFDIR && type != S_IFLNK))
		return false;
	return a->st_mtim.tv_sec != b->st_mtim.tv_sec || a->st_mtim.tv_nsec != b->st_mtim.tv_nsec ||
	       (type == S_IFREG && a->st_nlink > 1);
}

/* Hand the sides over to the walk, with the patterns' state. */
static int descend(struct finder *finder, struct pair *pair, bool full)
{
	size_t size = finder->patterns.count * sizeof(uint64_t);
	struct walk_frame *above = walk_top(&finder->walk);
	struct walk_frame frame = {
		.side = { pair->side[0], pair->side[1] },
		.full = full || (pair->marks & FILES_OPAQUE),
		.xwhite = pair->marks & FILES_XWHITE,
		.path_len = finder->path.len,
		.state = above ? above->state : finder->top,
	};
	pair->side[0].there = pair->side[1].there = false;
	/* Nearly all directories say nothing to any pattern, and so share their parent's state. */
	if (above && memcmp(above->state, finder->state, size) != 0) {
		frame.state = malloc(size);
		frame.own_state = true;
		if (!frame.state) {
			walk_close(&frame.side[0]);
			walk_close(&frame.side[1]);
			return fail(finder, WALK_UPPER, ENOMEM);
		}
		memcpy(frame.state, finder->state, size);
	}
	int r = walk_push(&finder->walk, &frame);
	return r < 0 ? fail(finder, frame.side[WALK_UPPER].there ? WALK_UPPER : WALK_LOWER, -r) : 0;
}

/* What became of one name; and go down where there is something below it. */
static int visit(struct finder *finder, const struct walk_frame *frame, struct pair *pair)
{
	if (open_sides(finder, pair, frame->full) < 0)
		return -1;
	int r = pair->there[WALK_UPPER] && pair->there[WALK_LOWER] ? same(finder, pair) : 0;
	if (r < 0)
		return -1;
	bool below = pair->side[0].there || pair->side[1].there;
	bool quiet = r == 1 && is_quiet(finder, pair);
	if (r == 1 && !below && !quiet)
		return 0;
	finder->says = patterns_step(
		&finder->patterns, frame->state, pair->name, strlen(pair->name), finder->state);
	if ((r == 0 || quiet) && add(finder, pair, quiet) < 0)
		return -1;
	return below ? descend(finder, pair, frame->full) : 0;
}

/* The next name of the directory at the top; 0 when there was one, 1 at its end. */
static int step(struct finder *finder)
{
	struct walk_frame *frame = walk_top(&finder->walk);
	bool in[2];
	const char *name = walk_next(frame, in);
	if (!name)
		return 1;
	cut_path(finder, frame->path_len);
	if ((frame->path_len && buf_add(&finder->path, "/", 1) < 0) ||
		buf_adds(&finder->path, name) < 0)
		return fail(finder, WALK_UPPER, ENOMEM);
	struct pair pair = { .name = name };
	if (in[WALK_UPPER] && (look(finder, &pair, WALK_UPPER, frame->side[WALK_UPPER].fd) < 0 ||
				      look_file_marks(finder, &pair, frame->xwhite) < 0))
		return -1;
	if (frame->side[WALK_LOWER].there && (in[WALK_LOWER] || !frame->full) &&
		look(finder, &pair, WALK_LOWER, frame->side[WALK_LOWER].fd) < 0)
		return -1;
	int r = pair.there[0] || pair.there[1] ? visit(finder, frame, &pair) : 0;
	walk_close(&pair.side[0]);
	walk_close(&pair.side[1]);
	return r;
}

/* The mode of the tree's own directory, without set-id bits, which a layer's top never has. */
static int compare_tops(struct finder *finder, struct pair *top)
{
	if (!top->side[WALK_LOWER].there || finder->layer->unused)
		return 0;
	for (int i = 0; i < 2; i++) {
		top->there[i] = true;
		top->place[i].st = top->side[i].st;
		top->place[i].st.st_mode &= S_IFMT | 01777;
	}
	bool same = top->place[WALK_UPPER].st.st_mode == top->place[WALK_LOWER].st.st_mode;
	if (same && !is_quiet(finder, top))
		return 0;
	finder->says = 0;
	if (buf_adds(&finder->path, ".") < 0)
		return fail(finder, WALK_UPPER, ENOMEM);
	int r = add(finder, top, same);
	cut_path(finder, 0);
	return r;
}

/* Both tops. */
static int enter(struct finder *finder)
{
	const struct changes_layer *layer = finder->layer;
	struct pair top = { .name = "." };
	int r = open_upper(finder, &top, layer->upper);
	bool full = layer->whole || (top.marks & FILES_OPAQUE);
	if (r == 0 && layer->lower >= 0) {
		r = walk_open(WALK_LOWER, layer->lower, ".", full, &top.side[WALK_LOWER]);
		r = r < 0 ? fail(finder, WALK_LOWER, -r) : 0;
	}
	if (r == 0)
		r = compare_tops(finder, &top);
	if (r == 0) {
		patterns_start(&finder->patterns, layer->root, finder->top);
		r = descend(finder, &top, full);
	}
	walk_close(&top.side[0]);
	walk_close(&top.side[1]);
	return r;
}

static int find_layer(struct finder *finder)
{
	if (buf_adds(&finder->path, "/") < 0)
		return fail(finder, WALK_UPPER, ENOMEM);
	cut_path(finder, 0);
	walk_begin(&finder->walk, finder->scratch);
	int r = enter(finder);
	while (r == 0 && walk_top(&finder->walk)) {
		r = step(finder);
		if (r == 1) {
			cut_path(finder, walk_top(&finder->walk)->path_len);
			r = walk_pop(&finder->walk);
			r = r < 0 ? fail(finder, WALK_LOWER, -r) : 0;
		}
	}
	walk_end(&finder->walk);
	return r;
}

static void add_patterns(struct finder *finder, const struct changes_rules *rules)
{
	struct patterns *set = &finder->patterns;
	patterns_add_table(set, &finder->arena);
	for (const char *const *p = rules ? rules->sensitive : NULL; p && *p; p++)
		patterns_add(set, &finder->arena, PATTERN_SENSITIVE, *p);
	for (const char *const *p = rules ? rules->held : NULL; p && *p; p++)
		patterns_add(set, &finder->arena, PATTERN_HELD, *p);
}

static int find_all(struct finder *finder, const struct changes_layer *layers, size_t count,
	const struct changes_rules *rules)
{
	struct arena *arena = &finder->arena;
	add_patterns(finder, rules);
	finder->quiet = rules && rules->quiet;
	finder->top = ARENA_ARRAY(arena, finder->patterns.count, uint64_t);
	finder->state = ARENA_ARRAY(arena, finder->patterns.count, uint64_t);
	finder->block = arena_alloc(arena, FILES_BLOCK);
	finder->other = arena_alloc(arena, FILES_BLOCK);
	finder->scratch = arena_alloc(arena, WALK_SCRATCH);
	int r = 0;
	for (size_t i = 0; r == 0 && i < count; i++) {
		finder->layer = &layers[i];
		finder->index = i;
		r = find_layer(finder);
	}
	buf_free(&finder->path);
	arena_free(arena);
	return r;
}

int changes_find(const struct changes_layer *layers, size_t count,
	const struct changes_rules *rules, size_t max, struct changes *ret, struct err *err)
{
	struct changes found = { .root_count = count };
	struct finder finder = { .max = max, .ret = &found, .err = err };
	const char **roots = ARENA_ARRAY(&found.arena, count + 1, const char *);
	found.roots = roots;
	for (size_t i = 0; i < count; i++)
		roots[i] = arena_strdup(&found.arena, layers[i].root);
	int r = find_all(&finder, layers, count, rules);
	if (r < 0)
		arena_free(&found.arena);
	else
		*ret = found;
	return r;
}

int changes_each(const struct changes_layer *layers, size_t count,
	const struct changes_rules *rules, changes_visit *call, void *data, struct err *err)
{
	struct finder finder = { .visit = call, .data = data, .err = err };
	return find_all(&finder, layers, count, rules);
}

void changes_free(struct changes *changes)
{
	arena_free(&changes->arena);
	*changes = (struct changes){ 0 };
}
