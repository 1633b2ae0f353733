/*
 * apply_commit: what was staged comes to its place, what is to go goes. Each step can be told from
 * one that was done before, or in half, so the whole may be begun again after any call of the
 * kernel. What is not as it was found is left alone.
 */
#define _GNU_SOURCE
#include "workspace/apply_work.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const why_changed = "it was changed on the host meanwhile";
static const char *const why_stays = "files stay in the host's directory";

/* Could something of it lie under its temporary name? */
static bool has_temp(const struct record *step)
{
	return step->action == ACTION_PUT || step->action == ACTION_SWAP ||
	       step->action == ACTION_DELETE;
}

/* The directory of a step's place, acting as who owns it. */
static int find_place(struct apply_work *work, struct record *step, const char **ret_name)
{
	struct dirs *dirs = &work->lower[step->change.layer];
	struct stat st;
	int dir = dirs_parent(dirs, step->change.path, ret_name);
	int r = dir < 0 ? dir : apply_act(work, dirs);
	if (r == 0 && step->dir_ino && (fstat(dir, &st) < 0 || st.st_ino != step->dir_ino))
		r = -ENOENT;
	if (r == 0)
		return dir;
	if (r == -ELOOP || r == -ENOTDIR || r == -EXDEV || r == -ENOENT) {
		step->lost = has_temp(step) && step->new_ino;
		work->lost = work->lost || has_temp(step);
		apply_set(work, step, APPLY_CONFLICT, 0, "its directory is gone from the host");
	} else {
		apply_set(work, step, APPLY_FAILED, -r, "its directory cannot be opened");
	}
	return r;
}

static void tell_restless(struct apply_work *work, struct record *step)
{
	char temp[APPLY_TEMP_MAX];
	const char *text = NULL;
	apply_temp_name(work, step, temp);
	if (work->entries)
		text = arena_printf(work->told,
			"it changes on the host all the time; '%s' beside it was there too", temp);
	apply_set(work, step, APPLY_FAILED, 0, text);
}

/* What a step has come to; what was staged for it goes, if it is still there. */
static void tell(struct apply_work *work, struct record *step, int dir, int r)
{
	char temp[APPLY_TEMP_MAX];
	apply_temp_name(work, step, temp);
	work->lost = work->lost || r == -ENOENT;
	if (r < 0 && r != -EAGAIN && step->action != ACTION_DELETE)
		apply_discard(dir, temp, step->new_ino);
	if (r == -ESTALE)
		apply_set(work, step, APPLY_CONFLICT, 0, why_changed);
	else if (r == -ENOTEMPTY)
		apply_set(work, step, APPLY_CONFLICT, 0, why_stays);
	else if (r == -EEXIST)
		apply_set(work, step, APPLY_CONFLICT, 0, "it is on the host now");
	else if (r == -EAGAIN)
		tell_restless(work, step);
	else if (r < 0)
		apply_set(work, step, APPLY_FAILED, -r,
			step->action == ACTION_DELETE ? "it could not be removed"
						      : "it could not be put in its place");
	else if (step->root != APPLY_NONE)
		work->steps[step->root].touched = true;
}

/* In a journal: what it left in half. Is there nothing more to do? */
static bool settle(
	struct apply_work *work, struct record *step, int dir, const char *name, const char *temp)
{
	struct stat st;
	if (work->entries)
		return false;
	if (fstatat(dir, temp, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return step->action != ACTION_DELETE; /* it is in its place */
	if (step->action != ACTION_DELETE && st.st_ino == step->new_ino)
		return false;
	int r = apply_place_settle(work, step, dir, name);
	if (r < 0)
		tell_restless(work, step);
	return true;
}

static void commit_one(struct apply_work *work, struct record *step)
{
	char temp[APPLY_TEMP_MAX];
	const char *name, *path = step->change.path;
	int dir = find_place(work, step, &name), r;
	if (dir < 0)
		return;
	apply_temp_name(work, step, temp);
	if (S_ISDIR(step->base.mode) || S_ISDIR(step->change.mode))
		dirs_forget(&work->lower[step->change.layer], path, strlen(path));
	if (settle(work, step, dir, name, temp))
		r = 0;
	else if (step->action == ACTION_DELETE)
		r = apply_place_delete(work, step, dir, name);
	else
		r = apply_place_put(work, step, dir, name);
	tell(work, step, dir, r);
}

/* What the bits of a file that stays are to be. */
static mode_t wanted_bits(const struct record *step, const struct stat *st)
{
	if (step->action == ACTION_LEND)
		return step->base.mode & 07777;
	mode_t inherited = S_ISDIR(st->st_mode) ? st->st_mode & S_ISGID : 0;
	return (apply_wanted(&step->change) & 01777) | inherited;
}

/* The time of its content comes with the mode of a file. */
static int bring_time(struct apply_work *work, const struct record *step, int fd)
{
	struct stat st;
	AUTO_FD own = apply_open_new(work, &step->change, O_PATH, &st);
	return own < 0 ? own : dirs_set_mtime(fd, &st.st_mtim);
}

static void commit_mode(struct apply_work *work, struct record *step)
{
	const char *name;
	struct stat st;
	int dir = find_place(work, step, &name);
	if (dir < 0)
		return;
	AUTO_FD fd = dirs_open_name(dir, name, O_PATH, false);
	if (fd < 0 || fstat(fd, &st) < 0) {
		int errnum = fd < 0 ? -fd : errno;
		if (errnum != ENOENT || step->action != ACTION_LEND)
			apply_set(work, step, APPLY_FAILED, errnum, "it cannot be opened");
		return;
	}
	mode_t want = wanted_bits(step, &st);
	bool same = st.st_ino == step->base.ino && ((st.st_mode ^ step->base.mode) & S_IFMT) == 0 &&
		    (S_ISDIR(st.st_mode) || st.st_nlink == 1);
	bool moded = (st.st_mode & 07777) == want;
	if (same && S_ISREG(st.st_mode) && !moded)
		same = apply_is_base(&st, &step->base, false);
	if (!same) {
		apply_set(work, step, APPLY_CONFLICT, 0, why_changed);
		return;
	}
	int r = moded ? 0 : dirs_chmod(fd, want);
	if (r < 0)
		apply_set(work, step, APPLY_FAILED, -r, "its mode could not be set");
	else if (!S_ISDIR(st.st_mode) &&
		 st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec ==
			 step->base.mtime_ns)
		(void)bring_time(work, step, fd);
}

/* What lies in a directory that did not get to its place did not either. */
static void tell_inside(struct apply_work *work)
{
	for (size_t i = 0; work->entries && i < work->count; i++) {
		struct record *step = &work->steps[i];
		if (step->action != ACTION_INSIDE)
			continue;
		const struct apply_entry *root = &work->entries[work->steps[step->root].entry];
		if (root->outcome != APPLY_DONE)
			apply_set(work, step, root->outcome, root->errnum,
				"its directory is not brought to the host");
	}
}

static int deepest_first(const void *a, const void *b)
{
	const struct change *one = &(*(struct record *const *)a)->change;
	const struct change *other = &(*(struct record *const *)b)->change;
	if (one->layer != other->layer)
		return one->layer < other->layer ? 1 : -1;
	return records_path_order(other->path, one->path, strlen(one->path));
}

/* The modes of directories last, as they may lock what is in them. */
static void commit_dirs(struct apply_work *work)
{
	struct record **list = ARENA_ARRAY(work->arena, work->count + 1, struct record *);
	size_t count = 0;
	for (size_t i = 0; i < work->count; i++)
		if (work->steps[i].action == ACTION_DIR_MODE ||
			work->steps[i].action == ACTION_LEND)
			list[count++] = &work->steps[i];
	if (count > 0)
		qsort(list, count, sizeof *list, deepest_first);
	for (size_t i = 0; i < count; i++)
		commit_mode(work, list[i]);
}

/* What was staged is nowhere in the tree: say at least what it is called. */
static void tell_lost(struct apply_work *work)
{
	char temp[APPLY_TEMP_MAX];
	for (size_t i = 0; i < work->count; i++) {
		struct record *step = &work->steps[i];
		if (!step->lost || !work->entries || step->entry == APPLY_NONE)
			continue;
		apply_temp_name(work, step, temp);
		apply_note(work, step,
			arena_printf(work->told,
				"its directory is gone from the host, and '%s' with it", temp));
	}
}

int apply_commit(struct apply_work *work)
{
	for (size_t i = work->count; i-- > 0;)
		if (work->steps[i].action == ACTION_DELETE)
			commit_one(work, &work->steps[i]);
	for (size_t i = 0; i < work->count; i++)
		if (work->steps[i].action == ACTION_PUT || work->steps[i].action == ACTION_SWAP)
			commit_one(work, &work->steps[i]);
	for (size_t i = work->count; i-- > 0;)
		if (work->steps[i].action == ACTION_MODE)
			commit_mode(work, &work->steps[i]);
	for (size_t i = 0; i < work->count; i++)
		if (work->steps[i].action == ACTION_DIR_MODE && work->steps[i].root != APPLY_NONE)
			work->steps[work->steps[i].root].touched = true;
	for (size_t i = work->count; i-- > 0;)
		if (work->steps[i].action == ACTION_TIMES)
			apply_commit_times(work, &work->steps[i]);
	commit_dirs(work);
	tell_inside(work);
	int r = work->lost ? apply_sweep(work) : 0;
	tell_lost(work);
	return r;
}

void apply_sync(struct apply_work *work)
{
	for (size_t i = 0; i < work->layer_count; i++) {
		if (work->layers[i].lower < 0)
			continue;
		/* syncfs() refuses O_PATH. */
		AUTO_FD fd = openat(work->layers[i].lower, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			syncfs(fd);
	}
}

void apply_temp_name(const struct apply_work *work, const struct record *step, char *ret_name)
{
	snprintf(ret_name, APPLY_TEMP_MAX, ".agentbox-apply-%s-%llu", work->tag,
		(unsigned long long)step->seq);
}
