/*
 * apply_stage: all that is new is put on the host under temporary names, beside the places where it
 * will be; and taken away again when it may not get there. Touches no name that was there before,
 * and follows no link.
 */
#define _GNU_SOURCE
#include "workspace/apply_work.h"
#include "base/fd.h"
#include "workspace/content.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The directory that is put, which a step lies in, under its temporary name; and no other that
 * somebody has put there. It is nobody's but ours to look into, so all below it is ours. */
static int enter_staged(struct apply_work *work, struct apply_cursor *cursor, size_t root)
{
	const struct record *step = &work->steps[root];
	struct dirs *lower = &cursor->lower[step->change.layer];
	const char *name;
	struct stat st;
	if (cursor->inside_fd >= 0 && cursor->inside_root == root)
		return 0;
	apply_leave_staged(cursor);
	int dir = dirs_parent(lower, step->change.path, &name);
	int r = dir < 0 ? dir : apply_act(work, lower);
	if (r < 0)
		return r;
	apply_temp_name(work, step, cursor->temp);
	AUTO_FD fd = dirs_open_name(dir, cursor->temp, O_PATH | O_DIRECTORY, false);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || st.st_ino != step->new_ino)
		return -ESTALE;
	cursor->inside_fd = fd_steal(&fd);
	cursor->inside_root = root;
	dirs_init(&cursor->inside, cursor->inside_fd, false);
	return 0;
}

void apply_leave_staged(struct apply_cursor *cursor)
{
	dirs_free(&cursor->inside);
	fd_close(&cursor->inside_fd);
}

/*
 * Where a step's new file is staged: beside its place, or in the directory that is put. The
 * directory, which is the cursor's; *ret_name lives as long.
 */
static int staged_dir(struct apply_work *work, struct apply_cursor *cursor,
	const struct record *step, const char **ret_name)
{
	struct dirs *lower = &cursor->lower[step->change.layer];
	struct stat st;
	if (step->action == ACTION_INSIDE) {
		const struct record *root = &work->steps[step->root];
		int r = enter_staged(work, cursor, step->root);
		const char *path = step->change.path + strlen(root->change.path) + 1;
		return r < 0 ? r : dirs_parent(&cursor->inside, path, ret_name);
	}
	int dir = dirs_parent(lower, step->change.path, ret_name);
	int r = dir < 0 ? dir : apply_act(work, lower);
	if (r == 0 && step->dir_ino && (fstat(dir, &st) < 0 || st.st_ino != step->dir_ino))
		r = -ESTALE;
	apply_temp_name(work, step, cursor->temp);
	*ret_name = cursor->temp;
	return r < 0 ? r : dir;
}

/*
 * As root or with its right to: the owner of the file in whose place it comes, if that is still the
 * one that was judged; what else lies there by now, somebody may have put there to be given a file
 * of another's. By the descriptor of what was made here, never by a name that somebody could swap.
 */
static int give_owner(const struct record *step, int fd, int dir, const char *place)
{
	struct stat st, own;
	if (getuid() != 0 || !place || !step->base.there)
		return 0;
	if (fstatat(dir, place, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!apply_is_base(&st, &step->base, false))
		return 0;
	if (fstat(fd, &own) < 0)
		return -errno;
	if (own.st_uid == st.st_uid && own.st_gid == st.st_gid)
		return 0;
	return fchown(fd, st.st_uid, st.st_gid) < 0 ? -errno : 0;
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
	char buffer[32 << 10];
	struct content_ways ways = { .reflink = true, .range = true };
	struct content_copy copy = {
		.from = from,
		.to = to,
		.size = (uint64_t)st->st_size,
		.holes = st->st_blocks < (st->st_size + 511) / 512,
		.ways = &ways,
		.buffer = buffer,
		.room = sizeof buffer,
	};
	int r = content_copy(&copy);
	if (r == 0 && copy.size != (uint64_t)st->st_size)
		r = -EIO;
	if (r < 0)
		return r;
	const struct timespec times[2] = { st->st_atim, st->st_mtim };
	return fchmod(to, apply_wanted(&step->change) & 01777) < 0 || futimens(to, times) < 0
		       ? -errno
		       : 0;
}

/* Another name of a file that is staged already. 0 or -errno. */
static int stage_again(struct apply_work *work, struct record *step, int dir, const char *temp)
{
	const struct record *first = &work->steps[step->link];
	const char *name;
	char path[40];
	struct stat st;
	if (first->action == ACTION_NONE || !first->new_ino)
		return -ENOENT;
	int there = staged_dir(work, work->linked, first, &name);
	AUTO_FD fd = there < 0 ? there : dirs_open_name(there, name, O_PATH, false);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || st.st_ino != first->new_ino || !S_ISREG(st.st_mode))
		return -ESTALE;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, path, dir, temp, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	step->new_ino = st.st_ino;
	return 0;
}

static int stage_file(
	struct apply_work *work, struct record *step, int dir, const char *temp, const char *place)
{
	struct stat st, own;
	if (step->link != APPLY_NONE && stage_again(work, step, dir, temp) == 0)
		return 0;
	if (step->link != APPLY_NONE)
		apply_note(work, step, "it is a file of its own, as it could not be linked");
	AUTO_FD from = apply_open_new(work, &step->change, O_RDONLY | O_NONBLOCK | O_NOCTTY, &st);
	if (from < 0)
		return from;
	AUTO_FD to = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0 || fstat(to, &own) < 0)
		return -errno;
	step->new_ino = own.st_ino;
	int r = fill_file(from, to, step, &st);
	return r < 0 ? r : give_owner(step, to, dir, place);
}

static int stage_link(struct apply_work *work, struct record *step, int dir, const char *temp)
{
	struct stat st, own;
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
	const struct timespec times[2] = { st.st_atim, st.st_mtim };
	if (symlinkat(text, dir, temp) < 0 || fstatat(dir, temp, &own, AT_SYMLINK_NOFOLLOW) < 0 ||
		utimensat(dir, temp, times, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	step->new_ino = own.st_ino;
	return 0;
}

/* Nobody but us can look into it, or has anything in it. */
static int stage_dir(struct record *step, int dir, const char *temp)
{
	struct stat st;
	if (mkdirat(dir, temp, 0700) < 0)
		return -errno;
	AUTO_FD fd = dirs_open_name(dir, temp, O_PATH | O_DIRECTORY, false);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() || (st.st_mode & 0777) != 0700)
		return -ESTALE;
	/* Who may rename here could have put another one of ours there, which is nobody's to look
	 * into either, and will get the mode of the new one. */
	int more = apply_holds_more(fd, ".", 0);
	if (more != 0)
		return more < 0 ? more : -ESTALE;
	step->new_ino = st.st_ino;
	return 0;
}

static int stage_one(struct apply_work *work, struct record *step)
{
	const char *temp, *place = NULL;
	int dir = staged_dir(work, work->staged, step, &temp);
	if (dir < 0)
		return dir;
	if (step->action != ACTION_INSIDE) {
		place = strrchr(step->change.path, '/');
		place = place ? place + 1 : step->change.path;
	}
	if (S_ISREG(step->change.mode))
		return stage_file(work, step, dir, temp, place);
	if (S_ISLNK(step->change.mode))
		return stage_link(work, step, dir, temp);
	return stage_dir(step, dir, temp);
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

/* A file that could not be staged as a whole is no file. */
static void give_up(struct apply_work *work, struct record *step, int errnum)
{
	const char *temp;
	int dir = staged_dir(work, work->staged, step, &temp);
	if (dir >= 0 && step->new_ino)
		apply_discard(dir, temp, step->new_ino);
	apply_set(work, step, APPLY_FAILED, errnum, "it could not be copied");
}

int apply_finish_dir(struct apply_work *work, const struct record *step, int fd)
{
	struct stat from, st;
	AUTO_FD own = apply_open_new(work, &step->change, O_PATH | O_DIRECTORY, &from);
	if (own < 0)
		return own;
	if (fstat(fd, &st) < 0)
		return -errno;
	int r = dirs_set_mtime(fd, &from.st_mtim);
	/* A group's bit that the host's directory above handed down stays. */
	mode_t mode = (apply_wanted(&step->change) & 01777) | (st.st_mode & S_ISGID);
	return r < 0 ? r : dirs_chmod(fd, mode);
}

/* Modes and times of the directories inside of a new one; from the deepest, as the mode may lock.
 */
static void finish_dirs(struct apply_work *work)
{
	for (size_t i = work->count; i-- > 0;) {
		struct record *step = &work->steps[i];
		const char *name;
		if (step->action != ACTION_INSIDE || !S_ISDIR(step->change.mode))
			continue;
		int dir = staged_dir(work, work->staged, step, &name);
		AUTO_FD fd = dir < 0 ? dir : dirs_open_name(dir, name, O_PATH | O_DIRECTORY, false);
		int r = fd < 0 ? fd : apply_finish_dir(work, step, fd);
		if (r < 0 && work->entries)
			apply_set(work, step, APPLY_FAILED, -r, "its mode could not be set");
	}
}

static int stage_all(struct apply_work *work)
{
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
		int r = stage_one(work, step);
		if (r < 0 && is_fatal(r))
			return r;
		if (r < 0)
			give_up(work, step, -r);
	}
	finish_dirs(work);
	return 0;
}

int apply_stage(struct apply_work *work)
{
	for (size_t i = 0; i < work->count; i++) {
		struct record *step = &work->steps[i];
		bool locked = (step->base.mode & 0300) != 0300;
		if (step->action == ACTION_LEND || (step->action == ACTION_DIR_MODE && locked))
			apply_lend(work, step); /* where it fails, what is in it will tell */
	}
	int r = stage_all(work);
	apply_leave_staged(work->staged);
	apply_leave_staged(work->linked);
	return r;
}
