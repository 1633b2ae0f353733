/*
 * apply_commit: what was staged comes to its place, what is to go goes. Each step is one call of
 * the kernel, and can be told from one that was done before, so the whole may be begun again after
 * any of them. What is not as it was found is left alone.
 */
#define _GNU_SOURCE
#include "workspace/apply_work.h"
#include "base/fd.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXCHANGE 2u /* RENAME_EXCHANGE */

static const char *const why_changed = "it was changed on the host meanwhile";

static int exchange(int dir, const char *a, const char *b)
{
	return (int)sys_ret(syscall(SYS_renameat2, dir, a, dir, b, EXCHANGE));
}

/* Is the place as the base says? */
static bool place_is_base(int dir, const char *name, const struct apply_base *base)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT && !base->there;
	/* The ctime of a file with several names was moved when one of them went. */
	return apply_is_base(&st, base, false);
}

/* What was staged for a place that is not free, or not as it was, goes away. */
static void refuse(
	struct apply_work *work, struct record *step, int dir, const char *temp, const char *why)
{
	apply_discard(dir, temp);
	apply_set(work, step, APPLY_CONFLICT, 0, why);
}

static void fail(struct apply_work *work, struct record *step, int dir, const char *temp, int r)
{
	apply_discard(dir, temp);
	apply_set(work, step, APPLY_FAILED, -r, "it could not be put in its place");
}

/* Rename to a name that must be free, also where the file system cannot be told so. */
static int rename_free(int dir, const char *temp, const char *name, bool is_dir)
{
	int r = sys_rename_noreplace(dir, temp, dir, name);
	if (r != -EINVAL && r != -ENOSYS)
		return r;
	struct stat st;
	if (is_dir) {
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return -EEXIST;
		return renameat(dir, temp, dir, name) < 0 ? -errno : 0;
	}
	if (linkat(dir, temp, dir, name, 0) < 0)
		return -errno;
	return unlinkat(dir, temp, 0) < 0 ? -errno : 0;
}

static void put(
	struct apply_work *work, struct record *step, int dir, const char *name, const char *temp)
{
	bool is_dir = S_ISDIR(step->change.mode);
	int r = is_dir ? apply_finish_dir(work, step, dir, temp) : 0;
	if (r < 0) {
		fail(work, step, dir, temp, r);
	} else if (!step->base.there) {
		r = rename_free(dir, temp, name, is_dir);
		if (r == -EEXIST)
			refuse(work, step, dir, temp, "it is on the host now");
		else if (r < 0)
			fail(work, step, dir, temp, r);
	} else if (!place_is_base(dir, name, &step->base)) {
		refuse(work, step, dir, temp, why_changed);
	} else if (renameat(dir, temp, dir, name) < 0) {
		fail(work, step, dir, temp, -errno);
	}
}

/* What was in the place is under the temporary name now, and goes. */
static void drop_old(
	struct apply_work *work, struct record *step, int dir, const char *name, const char *temp)
{
	bool was_dir = S_ISDIR(step->base.mode);
	if (unlinkat(dir, temp, was_dir ? AT_REMOVEDIR : 0) == 0)
		return;
	int r = -errno;
	if (exchange(dir, temp, name) < 0)
		apply_set(work, step, APPLY_FAILED, -r, "what it replaced could not be removed");
	else if (r == -ENOTEMPTY || r == -EEXIST)
		refuse(work, step, dir, temp, "files stay in the host's directory");
	else
		fail(work, step, dir, temp, r);
}

static void swap(struct apply_work *work, struct record *step, int dir, const char *name,
	const char *temp, const struct stat *staged)
{
	struct dirs *dirs = &work->lower[step->change.layer];
	bool is_dir = S_ISDIR(step->change.mode);
	dirs_forget(dirs, step->change.path, strlen(step->change.path));
	if (S_ISDIR(staged->st_mode) != is_dir) {
		drop_old(work, step, dir, name, temp); /* exchanged before an interruption */
		return;
	}
	if (!place_is_base(dir, name, &step->base)) {
		refuse(work, step, dir, temp, why_changed);
		return;
	}
	int r = is_dir ? apply_finish_dir(work, step, dir, temp) : 0;
	if (r == 0)
		r = exchange(dir, temp, name);
	if (r == -EINVAL || r == -ENOSYS) {
		/* The file system knows no exchange: for a moment there is neither. */
		r = unlinkat(dir, name, is_dir ? 0 : AT_REMOVEDIR) < 0 ? -errno : 0;
		if (r == 0)
			r = renameat(dir, temp, dir, name) < 0 ? -errno : 0;
	} else if (r == 0) {
		drop_old(work, step, dir, name, temp);
		return;
	}
	if (r == -ENOTEMPTY || r == -EEXIST)
		refuse(work, step, dir, temp, "files stay in the host's directory");
	else if (r < 0)
		fail(work, step, dir, temp, r);
}

static int find_place(struct apply_work *work, struct record *step, const char **ret_name)
{
	int dir = dirs_parent(&work->lower[step->change.layer], step->change.path, ret_name);
	if (dir == -ELOOP || dir == -ENOTDIR || dir == -EXDEV || dir == -ENOENT)
		apply_set(work, step, APPLY_CONFLICT, 0, "its directory is gone from the host");
	else if (dir < 0)
		apply_set(work, step, APPLY_FAILED, -dir, "its directory cannot be opened");
	return dir;
}

static void commit_new(struct apply_work *work, struct record *step)
{
	char temp[APPLY_TEMP_MAX];
	const char *name;
	struct stat st;
	int dir = find_place(work, step, &name);
	if (dir < 0)
		return;
	apply_temp_name(work, step, temp);
	if (fstatat(dir, temp, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		/* In a journal that is carried out, this is a step that was done. */
		if (work->entries)
			apply_set(work, step, APPLY_FAILED, errno, "its new file is gone");
	} else if (step->action == ACTION_SWAP) {
		swap(work, step, dir, name, temp, &st);
	} else {
		put(work, step, dir, name, temp);
	}
}

static void commit_delete(struct apply_work *work, struct record *step)
{
	const char *name;
	struct stat st;
	int dir = find_place(work, step, &name);
	if (dir < 0)
		return;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			apply_set(work, step, APPLY_FAILED, errno, "it cannot be looked at");
		return;
	}
	if (!apply_is_base(&st, &step->base, false)) {
		apply_set(work, step, APPLY_CONFLICT, 0, why_changed);
		return;
	}
	dirs_forget(&work->lower[step->change.layer], step->change.path, strlen(step->change.path));
	if (unlinkat(dir, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) == 0)
		return;
	if (errno == ENOTEMPTY || errno == EEXIST)
		apply_set(work, step, APPLY_CONFLICT, 0, "files stay in the host's directory");
	else
		apply_set(work, step, APPLY_FAILED, errno, "it could not be removed");
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
	mode_t want = apply_wanted(&step->change) & 01777;
	if (S_ISDIR(st.st_mode))
		want |= st.st_mode & S_ISGID;
	if (step->action == ACTION_LEND)
		want = step->base.mode & 07777;
	bool same = st.st_ino == step->base.ino && ((st.st_mode ^ step->base.mode) & S_IFMT) == 0 &&
		    (S_ISDIR(st.st_mode) || st.st_nlink == 1);
	if (same && S_ISREG(st.st_mode) && (st.st_mode & 07777) != want)
		same = apply_is_base(&st, &step->base, false);
	if (!same) {
		apply_set(work, step, APPLY_CONFLICT, 0, why_changed);
		return;
	}
	int r = (st.st_mode & 07777) == want ? 0 : dirs_chmod(fd, want);
	if (r < 0)
		apply_set(work, step, APPLY_FAILED, -r, "its mode could not be set");
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

void apply_commit(struct apply_work *work)
{
	for (size_t i = work->count; i-- > 0;)
		if (work->steps[i].action == ACTION_DELETE)
			commit_delete(work, &work->steps[i]);
	for (size_t i = 0; i < work->count; i++)
		if (work->steps[i].action == ACTION_PUT || work->steps[i].action == ACTION_SWAP)
			commit_new(work, &work->steps[i]);
	for (size_t i = work->count; i-- > 0;)
		if (work->steps[i].action == ACTION_MODE)
			commit_mode(work, &work->steps[i]);
	/* The modes of directories last, as they may lock what is in them. */
	for (size_t i = work->count; i-- > 0;)
		if (work->steps[i].action == ACTION_DIR_MODE ||
			work->steps[i].action == ACTION_LEND)
			commit_mode(work, &work->steps[i]);
	tell_inside(work);
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
	snprintf(ret_name, APPLY_TEMP_MAX, ".agentbox-apply-%s-%zu", work->tag, step->seq);
}
