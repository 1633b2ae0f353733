/*
 * apply_back: the way back: what was staged is removed, and directories that were lent the
 * permission to be written have it no more.
 */
#define _GNU_SOURCE
#include "workspace/apply_work.h"
#include "base/fd.h"
#include "workspace/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Could others have renamed what is ours in this directory? */
static bool others_rename(int dir)
{
	struct stat st;
	if (fstat(dir, &st) < 0 || st.st_uid != geteuid())
		return true;
	return (st.st_mode & 022) && !(st.st_mode & S_ISVTX);
}

int apply_discard(int dir, const char *temp, uint64_t ino)
{
	struct tree_report report = { 0 };
	struct stat st;
	AUTO_FD place = dirs_open_name(dir, temp, O_PATH, false);
	if (place < 0)
		return place == -ENOENT ? 0 : place;
	if (fstat(place, &st) < 0)
		return -errno;
	/* Somebody put it there, and it is not apply's to remove. */
	if (ino && st.st_ino != ino)
		return -ESTALE;
	if (!S_ISDIR(st.st_mode))
		return unlinkat(dir, temp, 0) < 0 && errno != ENOENT ? -errno : 0;
	/* As it is staged. Who may write to a directory of root's could move another one there. */
	if (!ino && (st.st_uid != geteuid() || (st.st_mode & 0777) != 0700))
		return 0;
	/* Then it may be any of ours, moved there since: no more goes than they could remove. */
	if (!ino && others_rename(dir))
		return unlinkat(dir, temp, AT_REMOVEDIR) < 0 && errno != ENOENT &&
				       errno != ENOTEMPTY && errno != EEXIST
			       ? -errno
			       : 0;
	int r = dirs_chmod(place, 0700);
	AUTO_FD tree = r < 0 ? r : openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tree < 0)
		return r < 0 ? r : -errno;
	r = tree_clear(tree, &report);
	if (r < 0)
		return r;
	return unlinkat(dir, temp, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

/* The directory that a step's place is in, acting as who owns it; -ENOENT when what was there
 * cannot be reached any more. */
static int place_of(struct apply_work *work, struct record *step, const char **ret_name)
{
	struct dirs *dirs = &work->lower[step->change.layer];
	struct stat st;
	int dir = dirs_parent(dirs, step->change.path, ret_name);
	if (dir == -ELOOP || dir == -ENOTDIR || dir == -EXDEV)
		dir = -ENOENT;
	int r = dir < 0 ? dir : apply_act(work, dirs);
	if (r == 0 && step->dir_ino && (fstat(dir, &st) < 0 || st.st_ino != step->dir_ino))
		r = -ENOENT;
	if (r == -ENOENT) {
		work->lost = true;
		step->lost = step->new_ino != 0;
	}
	return r < 0 ? r : dir;
}

static int open_dir(struct apply_work *work, struct record *step, struct stat *ret)
{
	const char *name;
	int dir = place_of(work, step, &name);
	AUTO_FD fd = dir < 0 ? dir : dirs_open_name(dir, name, O_PATH | O_DIRECTORY, false);
	if (fd >= 0 && fstat(fd, ret) < 0)
		return -errno;
	return fd_steal(&fd);
}

int apply_lend(struct apply_work *work, struct record *step)
{
	struct stat st;
	AUTO_FD fd = open_dir(work, step, &st);
	if (fd < 0 || geteuid() == 0)
		return fd < 0 ? fd : 0;
	if (st.st_ino != step->base.ino || st.st_mode != step->base.mode)
		return -ESTALE;
	return dirs_chmod(fd, st.st_mode | 0700);
}

static int unlend(struct apply_work *work, struct record *step)
{
	struct stat st;
	AUTO_FD fd = open_dir(work, step, &st);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (st.st_ino != step->base.ino || st.st_mode != (step->base.mode | 0700))
		return 0;
	return dirs_chmod(fd, step->base.mode);
}

int apply_take_back(struct apply_work *work)
{
	int failed = 0;
	for (size_t i = 0; i < work->count; i++) {
		struct record *step = &work->steps[i];
		char temp[APPLY_TEMP_MAX];
		const char *name;
		if (step->action != ACTION_PUT && step->action != ACTION_SWAP)
			continue;
		int dir = place_of(work, step, &name);
		apply_temp_name(work, step, temp);
		int r = dir < 0 ? dir : apply_discard(dir, temp, step->new_ino);
		if (r < 0 && r != -ENOENT)
			failed = r;
	}
	for (size_t i = work->count; i-- > 0;) {
		struct record *step = &work->steps[i];
		int r = 0;
		if (step->action == ACTION_LEND || step->action == ACTION_DIR_MODE)
			r = unlend(work, step);
		if (r < 0)
			failed = r;
	}
	int r = work->lost ? apply_sweep(work) : 0;
	return r < 0 ? r : failed;
}
