/*
 * apply: the order in which changes are brought to the host: finish what was interrupted, judge,
 * note, stage, commit. What each of these is, is in the files beside.
 */
#define _GNU_SOURCE
#include "workspace/apply.h"
#include "workspace/apply_work.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* The host's tree; root has to know who owns what in it. */
static void init_lower(struct dirs *dirs, int root)
{
	struct stat st;
	dirs_init(dirs, root, false);
	dirs->watch = geteuid() == 0;
	if (dirs->watch && root >= 0 && fstat(root, &st) == 0) {
		dirs->uid = st.st_uid;
		dirs->gid = st.st_gid;
	}
}

static struct apply_cursor *cursor_new(
	const struct changes_layer *layers, size_t count, struct arena *arena)
{
	struct apply_cursor *cursor = ARENA_NEW(arena, struct apply_cursor);
	cursor->inside_fd = -1;
	cursor->lower = ARENA_ARRAY(arena, count + 1, struct dirs);
	for (size_t i = 0; i < count; i++)
		init_lower(&cursor->lower[i], layers[i].lower);
	return cursor;
}

void apply_work_init(struct apply_work *work, const struct changes_layer *layers, size_t count,
	struct arena *arena)
{
	*work = (struct apply_work){ .layers = layers, .layer_count = count, .arena = arena };
	work->lower = ARENA_ARRAY(arena, count + 1, struct dirs);
	work->upper = ARENA_ARRAY(arena, count + 1, struct dirs);
	work->staged = cursor_new(layers, count, arena);
	work->linked = cursor_new(layers, count, arena);
	work->self.root = geteuid() == 0;
	for (size_t i = 0; i < count; i++) {
		init_lower(&work->lower[i], layers[i].lower);
		dirs_init(&work->upper[i], layers[i].upper, true);
	}
}

void apply_work_free(struct apply_work *work)
{
	for (size_t i = 0; i < work->layer_count; i++) {
		dirs_free(&work->lower[i]);
		dirs_free(&work->upper[i]);
		dirs_free(&work->staged->lower[i]);
		dirs_free(&work->linked->lower[i]);
	}
}

void apply_set(struct apply_work *work, struct record *step, enum apply_outcome outcome, int errnum,
	const char *reason)
{
	step->action = ACTION_NONE;
	step->errnum = errnum;
	if (!work->entries || step->entry == APPLY_NONE)
		return;
	struct apply_entry *entry = &work->entries[step->entry];
	entry->outcome = outcome;
	entry->errnum = errnum;
	entry->reason = reason;
}

void apply_note(struct apply_work *work, struct record *step, const char *reason)
{
	if (work->entries && step->entry != APPLY_NONE)
		work->entries[step->entry].reason = reason;
}

static int64_t nanoseconds(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static int find_base(
	struct dirs *dirs, const struct change *c, int64_t started_ns, struct apply_base *ret)
{
	const char *name;
	struct stat st;
	int dir = dirs_parent(dirs, c->path, &name);
	int r = dir;
	if (r >= 0)
		r = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
	/* A link in the way: the place was not there as the box saw it. */
	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EXDEV)
		return 0;
	if (r < 0)
		return r;
	ret->there = true;
	ret->mode = st.st_mode;
	ret->size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	ret->ino = st.st_ino;
	ret->mtime_ns = nanoseconds(&st.st_mtim);
	ret->ctime_ns = nanoseconds(&st.st_ctim);
	ret->conflict = !S_ISDIR(st.st_mode) && ret->ctime_ns >= started_ns;
	return 0;
}

int apply_look(struct apply_looking *looking, const struct change *c, struct apply_base *ret,
	struct err *err)
{
	if (!looking->begun || c->layer != looking->layer) {
		dirs_free(&looking->dirs);
		looking->layer = c->layer;
		looking->begun = true;
		dirs_init(&looking->dirs, looking->layers[c->layer].lower, false);
	}
	*ret = (struct apply_base){ 0 };
	int r = find_base(&looking->dirs, c, looking->started_ns, ret);
	if (r == 0)
		return 0;
	return err_set(err,
		r == -ENOMEM || r == -EMFILE || r == -ENFILE ? ERR_no_resources
							     : ERR_workspace_unreadable,
		-r, "'%.200s' cannot be looked at: %s", c->path, strerror(-r));
}

void apply_look_end(struct apply_looking *looking)
{
	dirs_free(&looking->dirs);
}

int apply_bases(const struct changes_layer *layers, const struct changes *changes,
	int64_t started_ns, struct arena *arena, struct apply_base **ret_bases, struct err *err)
{
	struct apply_base *bases = ARENA_ARRAY(arena, changes->count + 1, struct apply_base);
	struct apply_looking looking = { .layers = layers, .started_ns = started_ns };
	int r = 0;
	for (size_t i = 0; i < changes->count && r == 0; i++)
		r = apply_look(&looking, &changes->list[i], &bases[i], err);
	apply_look_end(&looking);
	if (r < 0)
		return -1;
	*ret_bases = bases;
	return 0;
}

static void make_steps(struct apply_work *work, const struct changes *changes,
	const struct apply_base *bases, struct apply_report *report)
{
	report->list = ARENA_ARRAY(&report->arena, changes->count + 1, struct apply_entry);
	report->count = changes->count;
	work->entries = report->list;
	/* As much as arena_push() would have made room for, at once. */
	size_t room = 8;
	while (room < changes->count)
		room *= 2;
	work->steps = ARENA_ARRAY(work->arena, room, struct record);
	work->count = changes->count;
	work->told = &report->arena;
	for (size_t i = 0; i < changes->count; i++) {
		struct record *step = &work->steps[i];
		step->change = changes->list[i];
		step->base = bases[i];
		step->action = ACTION_NONE;
		step->entry = i;
		step->root = step->link = APPLY_NONE;
		report->list[i].change = &changes->list[i];
	}
}

static bool has_work(const struct apply_work *work)
{
	for (size_t i = 0; i < work->count; i++)
		if (work->steps[i].action != ACTION_NONE)
			return true;
	return false;
}

static int fail(struct err *err, enum err_code code, int r, const char *text)
{
	if (r == -ENOSPC || r == -EDQUOT || r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		code = ERR_no_resources;
	return err_set(err, code, -r, "%s: %s", text, strerror(-r));
}

/* One part of it, in which apply acts as the owners of directories. */
static int as_owner(struct apply_work *work, int (*part)(struct apply_work *))
{
	int r = part(work), back = apply_return(work);
	return r < 0 ? r : back;
}

/* Stage, commit, and the journal around both. */
static int carry_out(struct apply_work *work, int state, const char *journal, struct err *err)
{
	int r = journal_begin(work, state, journal);
	if (r < 0)
		return fail(err, ERR_apply_failed, r, "the journal cannot be written");
	r = as_owner(work, apply_stage);
	if (r == 0) {
		apply_sync(work);
		r = journal_commit(work, state, journal);
	}
	if (r < 0) {
		int back = as_owner(work, apply_take_back);
		if (back == 0)
			back = journal_end(state, journal);
		return back == 0 ? fail(err, ERR_apply_failed, r, "nothing was changed")
				 : fail(err, ERR_apply_journal, back,
					   "what was begun could not be taken back");
	}
	r = as_owner(work, apply_commit);
	if (r < 0)
		return fail(err, ERR_apply_journal, r, "what was begun could not be finished");
	apply_sync(work);
	r = journal_end(state, journal);
	return r < 0 ? fail(err, ERR_apply_journal, r, "the journal cannot be removed") : 0;
}

/* Those that are told come first, and are counted. */
static void leave_loud(struct apply_report *report)
{
	size_t all = report->count, silent = 0;
	for (size_t i = 0; i < all; i++)
		silent += report->list[i].change->quiet;
	struct apply_entry *quiet = ARENA_ARRAY(&report->arena, silent + 1, struct apply_entry);
	report->count = report->quiet_count = 0;
	for (size_t i = 0; i < all; i++) {
		if (report->list[i].change->quiet) {
			quiet[report->quiet_count++] = report->list[i];
			continue;
		}
		report->counts[report->list[i].outcome]++;
		report->list[report->count++] = report->list[i];
	}
	memcpy(report->list + report->count, quiet, report->quiet_count * sizeof *quiet);
}

static int run(const struct changes_layer *layers, const struct changes *changes,
	const struct apply_base *bases, const struct apply_options *options, int state,
	const char *journal, struct apply_report *report, struct err *err)
{
	int r = 0;
	if (options->dry_run)
		r = faccessat(state, journal, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ? -EBUSY : 0;
	else
		r = journal_recover(layers, changes->root_count, state, journal);
	if (r == -EBUSY)
		return err_set(err, ERR_apply_journal, 0,
			"an earlier apply was interrupted: finish it first, without a dry run");
	if (r < 0 && r != -ENOENT)
		return fail(err, ERR_apply_journal, r,
			r == -EBADMSG ? "the journal is damaged"
				      : "an interrupted apply could not be finished");
	struct apply_work work;
	struct arena arena = { 0 };
	apply_work_init(&work, layers, changes->root_count, &arena);
	make_steps(&work, changes, bases, report);
	apply_judge(&work, options);
	r = 0;
	if (!options->dry_run && has_work(&work))
		r = carry_out(&work, state, journal, err);
	leave_loud(report);
	apply_work_free(&work);
	arena_free(&arena);
	return r;
}

int apply_run(const struct changes_layer *layers, const struct changes *changes,
	const struct apply_base *bases, const struct apply_options *options, int state,
	const char *journal, struct apply_report *ret_report, struct err *err)
{
	struct apply_report report = { 0 };
	/* A second apply of the same must not take the first one's staging for an interrupted one.
	 */
	AUTO_FD lock = openat(state, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, ERR_apply_failed, errno,
			errno == EWOULDBLOCK ? "another apply of the same changes is under way"
					     : "the state directory cannot be locked");
	if (run(layers, changes, bases, options, lock, journal, &report, err) < 0) {
		apply_report_free(&report);
		return -1;
	}
	*ret_report = report;
	return 0;
}

void apply_report_free(struct apply_report *report)
{
	arena_free(&report->arena);
	*report = (struct apply_report){ 0 };
}
