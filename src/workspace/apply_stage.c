/*
 * apply_stage: all that is new is put on the host under temporary names, beside the places where it
 * will be; and taken away again when it may not get there. Touches no name that was there before,
 * and follows no link.
 */
#define _GNU_SOURCE
#include "workspace/apply_work.h"
#include "base/fd.h"
#include "workspace/content.h"
#include "workspace/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Where a step's new file is staged: beside its place, or in the directory that is put. */
static const char *staged_path(
	const struct apply_work *work, const struct record *step, struct buf *out)
{
	const struct record *root = step->action == ACTION_INSIDE ? &work->steps[step->root] : step;
	const char *slash = strrchr(root->change.path, '/');
	size_t dir = slash ? (size_t)(slash - root->change.path) + 1 : 0;
	char temp[APPLY_TEMP_MAX];
	apply_temp_name(work, root, temp);
	out->len = 0;
	buf_add(out, root->change.path, dir);
	buf_adds(out, temp);
	buf_adds(out, step->change.path + strlen(root->change.path));
	return out->full ? NULL : buf_text(out);
}

/*
 * As root or with its right to: the owner of the file in whose place it comes, else of its
 * directory. By the descriptor of what was made here, never by a name that somebody could swap.
 */
static int give_owner(int fd, int dir, const char *place)
{
	struct stat st, own;
	if (getuid() != 0)
		return 0;
	if ((!place || fstatat(dir, place, &st, AT_SYMLINK_NOFOLLOW) < 0) && fstat(dir, &st) < 0)
		return -errno;
	if (fstat(fd, &own) < 0)
		return -errno;
	if (own.st_uid == st.st_uid && own.st_gid == st.st_gid)
		return 0;
	return fchown(fd, st.st_uid, st.st_gid) < 0 ? -errno : 0;
}

static int set_times(int dir, const char *name, const struct stat *from)
{
	const struct timespec times[2] = { from->st_atim, from->st_mtim };
	return utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

int apply_open_new(
	struct apply_work *work, const struct change *c, uint64_t flags, struct stat *ret)
{
	const char *name;
	int dir = dirs_parent(&work->upper[c->layer], c->path, &name);
	if (dir < 0)
		return dir;
	AUTO_FD fd = dirs_open_name(dir, name, flags, true);
	if (fd < 0)
		return fd;
	if (fstat(fd, ret) < 0)
		return -errno;
	return (ret->st_mode & S_IFMT) == (c->mode & S_IFMT) ? fd_steal(&fd) : -ESTALE;
}

static int fill_file(int from, int to, const struct record *step, const struct stat *st)
{
	int r = content_copy(from, to, (uint64_t)st->st_size);
	if (r < 0)
		return r;
	const struct timespec times[2] = { st->st_atim, st->st_mtim };
	return fchmod(to, apply_wanted(&step->change) & 01777) < 0 || futimens(to, times) < 0
		       ? -errno
		       : 0;
}

static int stage_file(struct apply_work *work, const struct record *step, int dir, const char *temp,
	const char *place)
{
	struct stat st;
	AUTO_FD from = apply_open_new(work, &step->change, O_RDONLY | O_NONBLOCK | O_NOCTTY, &st);
	if (from < 0)
		return from;
	AUTO_FD to = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	int r = fill_file(from, to, step, &st);
	return r < 0 ? r : give_owner(to, dir, place);
}

static int stage_link(struct apply_work *work, const struct record *step, int dir, const char *temp)
{
	struct stat st;
	char text[4097];
	AUTO_FD link = apply_open_new(work, &step->change, O_PATH, &st);
	if (link < 0)
		return link;
	ssize_t n = readlinkat(link, "", text, sizeof text - 1);
	if (n < 0 || n >= (ssize_t)sizeof text - 1)
		return n < 0 ? -errno : -ENAMETOOLONG;
	text[n] = 0;
	/* Exactly what the list shows is made, or nothing. */
	if (step->change.target && strcmp(text, step->change.target) != 0)
		return -ESTALE;
	if (symlinkat(text, dir, temp) < 0)
		return -errno;
	return set_times(dir, temp, &st);
}

static int stage_one(struct apply_work *work, struct record *step, struct buf *path)
{
	const char *staged = staged_path(work, step, path), *temp;
	if (!staged)
		return -ENAMETOOLONG;
	int dir = dirs_parent(&work->lower[step->change.layer], staged, &temp);
	if (dir < 0)
		return dir;
	const char *place = NULL;
	if (step->action != ACTION_INSIDE) {
		place = strrchr(step->change.path, '/');
		place = place ? place + 1 : step->change.path;
	}
	if (S_ISREG(step->change.mode))
		return stage_file(work, step, dir, temp, place);
	if (S_ISLNK(step->change.mode))
		return stage_link(work, step, dir, temp);
	return mkdirat(dir, temp, 0700) < 0 ? -errno : 0;
}

/* What makes it senseless to try the next one. */
static bool is_fatal(int r)
{
	switch (-r) {
	case ENOSPC:
	case EDQUOT:
	case EIO:
	case EROFS:
	case ENOMEM:
	case EMFILE:
	case ENFILE:
		return true;
	default:
		return false;
	}
}

int apply_discard(int dir, const char *temp)
{
	struct tree_report report = { 0 };
	if (unlinkat(dir, temp, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	AUTO_FD place = dirs_open_name(dir, temp, O_PATH | O_DIRECTORY, false);
	if (place < 0)
		return place;
	int r = dirs_chmod(place, 0700);
	AUTO_FD tree = r < 0 ? r : openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tree < 0)
		return r < 0 ? r : -errno;
	r = tree_clear(tree, &report);
	if (r < 0)
		return r;
	return unlinkat(dir, temp, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

/* A file that could not be staged as a whole is no file. */
static void give_up(struct apply_work *work, struct record *step, struct buf *path, int errnum)
{
	const char *staged = staged_path(work, step, path), *temp;
	int dir = staged ? dirs_parent(&work->lower[step->change.layer], staged, &temp) : -ENOENT;
	if (dir >= 0)
		apply_discard(dir, temp);
	apply_set(work, step, APPLY_FAILED, errnum, "it could not be copied");
}

int apply_finish_dir(struct apply_work *work, const struct record *step, int dir, const char *name)
{
	struct stat from, st;
	AUTO_FD own = apply_open_new(work, &step->change, O_PATH | O_DIRECTORY, &from);
	AUTO_FD fd = dirs_open_name(dir, name, O_PATH | O_DIRECTORY, false);
	if (own < 0 || fd < 0)
		return own < 0 ? own : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	int r = set_times(dir, name, &from);
	/* A group's bit that the host's directory above handed down stays. */
	mode_t mode = (apply_wanted(&step->change) & 01777) | (st.st_mode & S_ISGID);
	return r < 0 ? r : dirs_chmod(fd, mode);
}

/* Modes and times of the directories inside of a new one; from the deepest, as the mode may lock.
 */
static void finish_dirs(struct apply_work *work, struct buf *path)
{
	for (size_t i = work->count; i-- > 0;) {
		struct record *step = &work->steps[i];
		const char *name;
		if (step->action != ACTION_INSIDE || !S_ISDIR(step->change.mode))
			continue;
		const char *staged = staged_path(work, step, path);
		int dir = staged ? dirs_parent(&work->lower[step->change.layer], staged, &name)
				 : -ENOENT;
		int r = dir < 0 ? dir : apply_finish_dir(work, step, dir, name);
		if (r < 0 && work->entries)
			apply_set(work, step, APPLY_FAILED, -r, "its mode could not be set");
	}
}

/* Let a directory be written for as long as it takes. */
static int lend(struct apply_work *work, struct record *step)
{
	const char *name;
	struct stat st;
	int dir = dirs_parent(&work->lower[step->change.layer], step->change.path, &name);
	AUTO_FD fd = dir < 0 ? dir : dirs_open_name(dir, name, O_PATH | O_DIRECTORY, false);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || st.st_ino != step->base.ino || st.st_mode != step->base.mode)
		return -ESTALE;
	return dirs_chmod(fd, st.st_mode | 0700);
}

int apply_stage(struct apply_work *work)
{
	AUTO_BUF path = { 0 };
	int r = 0;
	for (size_t i = 0; i < work->count && r == 0; i++) {
		struct record *step = &work->steps[i];
		bool locked = geteuid() != 0 && (step->base.mode & 0300) != 0300;
		if (step->action == ACTION_LEND || (step->action == ACTION_DIR_MODE && locked))
			lend(work, step); /* where it fails, what is in it will tell */
	}
	for (size_t i = 0; i < work->count; i++) {
		struct record *step = &work->steps[i];
		if (step->action == ACTION_INSIDE &&
			work->steps[step->root].action == ACTION_NONE) {
			apply_set(work, step, APPLY_FAILED, work->steps[step->root].errnum,
				"its directory could not be made");
			continue;
		}
		if (step->action != ACTION_PUT && step->action != ACTION_SWAP &&
			step->action != ACTION_INSIDE)
			continue;
		/* A swap for a file stages one, a swap for nothing does not exist. */
		r = stage_one(work, step, &path);
		if (r < 0 && is_fatal(r))
			return r;
		if (r < 0)
			give_up(work, step, &path, -r);
	}
	finish_dirs(work, &path);
	return 0;
}

/* The directory that a step's place is in; -ENOENT when what was there cannot be reached any more.
 */
static int place_of(struct apply_work *work, const struct record *step, const char **ret_name)
{
	int dir = dirs_parent(&work->lower[step->change.layer], step->change.path, ret_name);
	return dir == -ELOOP || dir == -ENOTDIR || dir == -EXDEV ? -ENOENT : dir;
}

static int unlend(struct apply_work *work, const struct record *step)
{
	const char *name;
	struct stat st;
	int dir = place_of(work, step, &name);
	AUTO_FD fd = dir < 0 ? dir : dirs_open_name(dir, name, O_PATH | O_DIRECTORY, false);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fd == -ENOENT || fd >= 0 ? 0 : fd;
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
		int r = dir < 0 ? dir : apply_discard(dir, temp);
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
	return failed;
}
