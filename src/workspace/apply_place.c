/*
 * apply_place: one name on the host gets its new file, or goes.
 *
 * Others may be at work there, and between a look at what is in a place and what is done to it they
 * could put something else there. So it is taken out of the place in the same step in which the new
 * comes (RENAME_EXCHANGE), or is renamed away, then looked at, and put back where it is not what
 * was judged. While it is put back, too, others may be at it: what was put in a place later stays
 * there, as it would have if apply had not been there. What is looked at is held open, so that its
 * inode cannot become another file's. Files that are not apply's own are removed only as what was
 * judged, or as what another one of theirs has replaced; a directory only when it is empty.
 *
 * Where a file system knows no RENAME_EXCHANGE, or no RENAME_NOREPLACE, it is a look and then the
 * deed.
 */
#define _GNU_SOURCE
#include "workspace/apply_work.h"
#include "base/fd.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define EXCHANGE 2u /* RENAME_EXCHANGE */

/* Times that something is put back. Each time others must have been quicker than one call. */
#define ROUNDS 10000

/* A file, held so that no other can get its inode. */
struct held {
	int fd;
	struct stat st;
};

static void let_go(struct held *held)
{
	fd_close(&held->fd);
}

#define AUTO_HELD __attribute__((cleanup(let_go))) struct held

static int hold(int dir, const char *name, struct held *ret)
{
	AUTO_FD fd = dirs_open_name(dir, name, O_PATH, false);
	if (fd < 0)
		return fd;
	if (fstat(fd, &ret->st) < 0)
		return -errno;
	ret->fd = fd_steal(&fd);
	return 0;
}

static bool is_dir(const struct held *held)
{
	return S_ISDIR(held->st.st_mode);
}

static bool is_same(const struct held *a, const struct held *b)
{
	return a->st.st_dev == b->st.st_dev && a->st.st_ino == b->st.st_ino;
}

static int exchange(int dir, const char *a, const char *b)
{
	return (int)sys_ret(syscall(SYS_renameat2, dir, a, dir, b, EXCHANGE));
}

/* Does the kernel or the file system not know what it was asked for? */
static bool is_unknown(int r)
{
	return r == -EINVAL || r == -ENOSYS || r == -EXDEV || r == -EOPNOTSUPP;
}

/* A file, or an empty directory. Gone already is as well. */
static int remove_one(int dir, const char *name, bool dir_there)
{
	int r = unlinkat(dir, name, dir_there ? AT_REMOVEDIR : 0) < 0 ? -errno : 0;
	return r == -ENOENT ? 0 : r == -EEXIST ? -ENOTEMPTY : r;
}

/* Rename to a name that must be free, also where the file system cannot be told so. */
static int rename_free(int dir, const char *from, const char *name, bool dir_there)
{
	int r = sys_rename_noreplace(dir, from, dir, name);
	if (!is_unknown(r))
		return r;
	struct stat st;
	if (dir_there) {
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return -EEXIST;
		return renameat(dir, from, dir, name) < 0 ? -errno : 0;
	}
	if (linkat(dir, from, dir, name, 0) < 0)
		return -errno;
	return unlinkat(dir, from, 0) < 0 ? -errno : 0;
}

/*
 * `temp` has `out`, which belongs in the place, where we put `last`: exchange them again. Where
 * something else than `last` comes out, others have put it there since, and it is that which
 * belongs there. 0: `temp` has `last` as it was first, or nothing; or -EAGAIN.
 */
static int put_back(
	int dir, const char *name, const char *temp, struct held *last, struct held *out)
{
	bool first = true;
	for (int i = 0; i < ROUNDS; i++) {
		AUTO_HELD came = { .fd = -1 };
		int r = exchange(dir, temp, name);
		if (r == -ENOENT) {
			/* It was removed there. What is put back could be removed once more. */
			r = rename_free(dir, temp, name, is_dir(out));
			if (r == -EEXIST)
				continue;
			return r == 0 || r == -ENOENT ? 0 : -EAGAIN;
		}
		if (r == 0)
			r = hold(dir, temp, &came);
		if (r < 0)
			return r == -ENOENT ? 0 : -EAGAIN;
		if (is_same(&came, last)) {
			if (!first)
				r = remove_one(dir, temp, is_dir(last));
			return r < 0 ? -EAGAIN : 0;
		}
		struct held next = *last;
		*last = *out;
		*out = came;
		came = next;
		first = false;
	}
	return -EAGAIN;
}

/* What was in the place is under the temporary name now, and `ours` in the place. */
static int take_out(
	const struct record *step, int dir, const char *name, const char *temp, struct held *ours)
{
	AUTO_HELD out = { .fd = -1 };
	int r = hold(dir, temp, &out);
	if (r < 0)
		return r == -ENOENT ? 0 : -EAGAIN;
	if (apply_is_base(&out.st, &step->base, false)) {
		r = remove_one(dir, temp, is_dir(&out));
		if (r == 0)
			return 0;
	} else {
		r = -ESTALE;
	}
	int back = put_back(dir, name, temp, ours, &out);
	return back < 0 ? back : r;
}

/* Is the place as it was judged? */
static int check_base(const struct record *step, int dir, const char *name)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	/* The ctime of a file with several names was moved when one of them went. */
	return apply_is_base(&st, &step->base, false) ? 0 : -ESTALE;
}

/* No exchange: where one of the two is a directory there is neither for a moment. */
static int replace_plain(const struct record *step, int dir, const char *name, const char *temp)
{
	bool was_dir = S_ISDIR(step->base.mode);
	int r = 0;
	if (was_dir || S_ISDIR(step->change.mode))
		r = remove_one(dir, name, was_dir);
	if (r == 0)
		r = renameat(dir, temp, dir, name) < 0 ? -errno : 0;
	return r;
}

int apply_place_put(struct apply_work *work, const struct record *step, int dir, const char *name)
{
	char temp[APPLY_TEMP_MAX];
	AUTO_HELD ours = { .fd = -1 };
	apply_temp_name(work, step, temp);
	int r = hold(dir, temp, &ours);
	if (r == 0 && (ours.st.st_ino != step->new_ino ||
			      ((ours.st.st_mode ^ step->change.mode) & S_IFMT) != 0))
		r = -ENOENT;
	if (r == 0 && is_dir(&ours))
		r = apply_finish_dir(work, step, ours.fd);
	if (r < 0)
		return r;
	if (!step->base.there)
		return rename_free(dir, temp, name, is_dir(&ours));
	r = check_base(step, dir, name);
	/* Where names cannot be exchanged, it was interrupted with neither in the place. */
	if (r == -ESTALE && !work->entries && step->action == ACTION_SWAP)
		return rename_free(dir, temp, name, is_dir(&ours)) < 0 ? -ESTALE : 0;
	if (r < 0)
		return r;
	r = exchange(dir, temp, name);
	if (is_unknown(r))
		return replace_plain(step, dir, name, temp);
	if (r < 0)
		return r == -ENOENT ? -ESTALE : r;
	return take_out(step, dir, name, temp, &ours);
}

int apply_place_delete(
	struct apply_work *work, const struct record *step, int dir, const char *name)
{
	char temp[APPLY_TEMP_MAX];
	AUTO_HELD out = { .fd = -1 };
	apply_temp_name(work, step, temp);
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	int r = check_base(step, dir, name);
	if (r < 0)
		return r;
	/* An empty directory is nothing that could be lost. */
	if (S_ISDIR(step->base.mode))
		return remove_one(dir, name, true);
	r = sys_rename_noreplace(dir, name, dir, temp);
	if (is_unknown(r))
		return remove_one(dir, name, false);
	if (r == 0)
		r = hold(dir, temp, &out);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (apply_is_base(&out.st, &step->base, false))
		return remove_one(dir, temp, false);
	r = rename_free(dir, temp, name, is_dir(&out));
	/* What is there now came later. */
	if (r == -EEXIST)
		r = remove_one(dir, temp, is_dir(&out));
	return r == 0 || r == -ENOENT ? -ESTALE : -EAGAIN;
}

static bool is_newer(const struct held *a, const struct held *b)
{
	const struct timespec *one = &a->st.st_mtim, *other = &b->st.st_mtim;
	return one->tv_sec != other->tv_sec ? one->tv_sec > other->tv_sec
					    : one->tv_nsec > other->tv_nsec;
}

int apply_place_settle(
	struct apply_work *work, const struct record *step, int dir, const char *name)
{
	char temp[APPLY_TEMP_MAX];
	AUTO_HELD out = { .fd = -1 };
	AUTO_HELD now = { .fd = -1 };
	apply_temp_name(work, step, temp);
	int r = hold(dir, temp, &out);
	if (r < 0)
		return r;
	bool put = step->action != ACTION_DELETE;
	/* Not there yet, or out of it again. */
	if (put && out.st.st_ino == step->new_ino)
		return apply_discard(dir, temp, step->new_ino);
	if (apply_is_base(&out.st, &step->base, false) && remove_one(dir, temp, is_dir(&out)) == 0)
		return 0;
	r = hold(dir, name, &now);
	if (r == -ENOENT)
		r = rename_free(dir, temp, name, is_dir(&out));
	else if (r == 0 && put && now.st.st_ino == step->new_ino)
		r = put_back(dir, name, temp, &now, &out) < 0
			    ? -EAGAIN
			    : apply_discard(dir, temp, step->new_ino);
	else if (r == 0 && !is_newer(&out, &now))
		/* Both are the others'; which one came later, nobody can tell but by this. */
		r = remove_one(dir, temp, is_dir(&out));
	else if (r == 0)
		r = put_back(dir, name, temp, &now, &out) < 0 ? -EAGAIN
							      : remove_one(dir, temp, is_dir(&now));
	return r == 0 ? 0 : -EAGAIN;
}
