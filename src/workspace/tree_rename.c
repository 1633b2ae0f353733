/*
 * tree_rename: rename(2) for directories of an overlay's lower layer, which the kernel refuses
 * (EXDEV). The directory is made anew under its new name, and what is in it is moved: all but
 * directories, and directories of the upper layer, by the kernel at once; others in the same way.
 * It never copies or removes a file, so one that is open stays open, and a file has at each moment
 * either its old name or its new one.
 *
 * The new directory is made at its own place, and not first under another name: when this is killed
 * in the middle, the two directories together have every file, each in the place that it is looked
 * for, and moving the rest by hand finishes the work. So others can see the two halves meanwhile.
 * After an error what was moved is moved back, and the tree is as before.
 */
#define _GNU_SOURCE
#include <string.h>

#include "workspace/tree.h"
#include "workspace/tree_walk.h"

#define NOREPLACE  1u /* RENAME_NOREPLACE of linux/fs.h */
#define PASSES_MAX 64 /* of one directory into which others put files meanwhile */
#define HAS_MNT_ID 0x1000u

/* What the target was before, to be made again after an error. */
struct replaced {
	bool there;
	mode_t mode;
	struct timespec times[2];
};

static void times_of(const struct tree_stat *st, struct timespec ret[2])
{
	ret[0] = (struct timespec){ .tv_sec = st->atime.sec, .tv_nsec = st->atime.nsec };
	ret[1] = (struct timespec){ .tv_sec = st->mtime.sec, .tv_nsec = st->mtime.nsec };
}

/*
 * Move one name by the kernel. A directory needs its own "w" to get another parent; what a whole
 * tree's rename would not ask for is given for that moment. 0 also when `name` is gone.
 */
static int move_once(int from, const char *name, int to)
{
	int r = tree_rename_at(from, name, to, name, NOREPLACE);
	if (r == -EACCES) {
		mode_t mode;
		int fd = tree_dir_open(from, name, true, &mode);
		if (fd < 0 || !mode) {
			tree_close(&fd);
			return r;
		}
		r = tree_rename_at(from, name, to, name, NOREPLACE);
		(void)tree_fchmod(fd, mode & 07777);
		tree_close(&fd);
	}
	return r == -ENOENT ? 0 : r;
}

/*
 * The same where both sides may have the directory: one of them is the emptied one, which goes. On
 * the way back (`whole`) it may be the old one, whose removal failed; where both are empty the one
 * that is moved is whole.
 */
static int move_name(int from, const char *name, int to, bool whole)
{
	int r = move_once(from, name, to);
	if (r != -EEXIST)
		return r;
	if (whole && tree_unlink_at(to, name, AT_REMOVEDIR) == 0)
		return move_once(from, name, to);
	return tree_unlink_at(from, name, AT_REMOVEDIR) == 0 ? 0 : r;
}

/* A new directory, without what it inherits from its parent. A descriptor or -errno. */
static int make_directory(int dir, const char *name)
{
	int r = tree_mkdir_at(dir, name, 0700);
	int fd = r < 0 ? r : tree_open_dir(dir, name);
	if (fd >= 0) {
		(void)sys_bare(SYS_fremovexattr, fd, (long)"system.posix_acl_access", 0);
		(void)sys_bare(SYS_fremovexattr, fd, (long)"system.posix_acl_default", 0);
	} else if (r == 0) {
		(void)tree_unlink_at(dir, name, AT_REMOVEDIR);
	}
	return fd;
}

/* What the new directory gets of the old one when all is in it. */
static int finish(struct tree_walk *walk)
{
	const struct tree_level *level = tree_level(walk);
	int from = tree_from(walk), to = tree_to(walk);
	int r = tree_copy_attributes(walk, from, to, "user.");
	if (r == 0 || r == -EOPNOTSUPP) /* overlayfs leaves them out, too, where they cannot be */
		r = tree_copy_attributes(walk, from, to, "system.posix_acl_");
	if (r < 0) /* it cannot be kept: let the caller copy, as it knows how to */
		return r == -ENOSPC || r == -EDQUOT ? r : -EXDEV;
	r = tree_fchmod(to, level->mode);
	return r < 0 ? r : tree_set_times(to, NULL, level->times);
}

/* `refused`: what the kernel answered to moving it. */
static int enter(struct tree_walk *walk, const char *name, int refused)
{
	if (walk->depth + 1 >= TREE_DEPTH_MAX)
		return -ENAMETOOLONG;
	mode_t mode;
	int from = tree_dir_open(tree_from(walk), name, true, &mode);
	if (from == -ENOTDIR || from == -ELOOP)
		return refused;
	if (from < 0)
		return from;
	int to = make_directory(tree_to(walk), name);
	if (to >= 0)
		return tree_walk_enter(walk, from, to, name, mode);
	if (mode)
		(void)tree_fchmod(from, mode & 07777);
	tree_close(&from);
	return to;
}

/*
 * Move all of `walk`'s current directory that the kernel moves. 0: it is empty; 1: it has entered a
 * directory that the kernel does not move, unless `whole`; -errno.
 */
static int move_entries(struct tree_walk *walk, bool whole)
{
	for (;;) {
		const struct tree_entry *entry;
		struct tree_level *level = tree_level(walk);
		int r = tree_walk_next(walk, &entry);
		if (r == 0) {
			if (!level->changed || level->passes++ >= PASSES_MAX)
				return 0;
			level->changed = false;
			r = tree_walk_seek(walk, 0);
		} else if (r > 0) {
			level->changed = true;
			r = move_name(tree_from(walk), entry->name, tree_to(walk), whole);
			/* Of a directory that may not be written EACCES is said before EXDEV. */
			if ((r == -EXDEV || r == -EACCES) && !whole) {
				r = enter(walk, entry->name, r);
				return r < 0 ? r : 1;
			}
		}
		if (r < 0)
			return r;
	}
}

/* Go up from a directory that is empty now, and remove it. */
static int leave(struct tree_walk *walk)
{
	int r = finish(walk);
	if (r < 0)
		return r;
	const char *name;
	r = tree_walk_leave(walk, &name);
	if (r < 0)
		return r;
	if (name) {
		r = tree_unlink_at(tree_from(walk), name, AT_REMOVEDIR);
		if (r < 0 && r != -ENOENT && r != -ENOTEMPTY && r != -EEXIST)
			return r;
	}
	/* A name that is not known is met again from the start. What was reopened has other places.
	 */
	return tree_walk_seek(walk, name ? tree_level(walk)->offset : 0);
}

static int move_all(struct tree_walk *walk)
{
	for (;;) {
		int r = move_entries(walk, false);
		if (r == 0 && walk->depth == 0)
			return finish(walk);
		if (r == 0)
			r = leave(walk);
		if (r < 0)
			return r;
	}
}

static void turn(struct tree_walk *walk)
{
	size_t slot = walk->depth % TREE_RING;
	int from = walk->from[slot];
	walk->from[slot] = walk->to[slot];
	walk->to[slot] = from;
}

/*
 * Move all back, from the level where it went wrong up to the first. What is in a new directory is
 * whole: files, and directories that are of the upper layer by now, which the kernel moves.
 */
static void move_back(struct tree_walk *walk)
{
	for (;;) {
		struct tree_level *level = tree_level(walk);
		(void)tree_fchmod(tree_to(walk), 0700);
		(void)tree_fchmod(tree_from(walk), level->mode | 0700);
		level->changed = false;
		level->passes = 0;
		turn(walk);
		int r = tree_walk_seek(walk, 0);
		if (r == 0)
			r = move_entries(walk, true);
		turn(walk);
		(void)tree_fchmod(tree_from(walk), level->mode);
		(void)tree_set_times(tree_from(walk), NULL, level->times);
		const char *name;
		if (r < 0 || walk->depth == 0 || tree_walk_leave(walk, &name) < 0)
			return;
		if (name)
			(void)tree_unlink_at(tree_to(walk), name, AT_REMOVEDIR);
	}
}

/* The target, when it may be replaced, is removed and made anew. A descriptor or -errno. */
static int make_target(int dir, const char *name, unsigned flags, struct replaced *ret)
{
	int fd = make_directory(dir, name);
	if (fd != -EEXIST || (flags & NOREPLACE))
		return fd;
	struct tree_stat st;
	int r = tree_stat_at(dir, name, &st);
	if (r < 0)
		return r;
	if (!S_ISDIR(st.mode))
		return -ENOTDIR;
	r = tree_unlink_at(dir, name, AT_REMOVEDIR);
	if (r < 0)
		return r == -EEXIST ? -ENOTEMPTY : r;
	*ret = (struct replaced){ .there = true, .mode = st.mode & 07777 };
	times_of(&st, ret->times);
	fd = make_directory(dir, name);
	return fd == -EEXIST ? -ENOTEMPTY : fd;
}

static void remove_target(int dir, const char *name, const struct replaced *replaced)
{
	int r = tree_unlink_at(dir, name, AT_REMOVEDIR);
	if ((r < 0 && r != -ENOENT) || !replaced->there)
		return;
	int fd = make_directory(dir, name);
	if (fd < 0)
		return;
	(void)tree_fchmod(fd, replaced->mode);
	(void)tree_set_times(fd, NULL, replaced->times);
	tree_close(&fd);
}

/* On another mount nothing can be moved: that is what the kernel's answer meant. */
static int check_mount(int from, int new_dir, struct tree_stat *ret)
{
	struct tree_stat st;
	int r = tree_stat_at(from, "", ret);
	if (r == 0)
		r = tree_stat_at(new_dir, "", &st);
	if (r < 0)
		return r;
	if ((ret->mask & st.mask & HAS_MNT_ID) && ret->mnt_id != st.mnt_id)
		return -EXDEV;
	return tree_dev(ret) == tree_dev(&st) ? 0 : -EXDEV;
}

/* Move from one open directory to the other, and remove the old one; or all back. */
static int move_tree(
	int from, int to, int old_dir, const char *old, const struct tree_stat *st, mode_t mode)
{
	struct tree_walk *walk;
	int r = tree_walk_new(from, to, &walk);
	if (r < 0)
		return r;
	struct tree_level *top = tree_level(walk);
	if (mode) {
		top->mode = mode & 07777;
		top->opened_up = true;
	}
	times_of(st, top->times);
	r = move_all(walk);
	if (r == 0)
		r = tree_unlink_at(old_dir, old, AT_REMOVEDIR);
	if (r < 0)
		move_back(walk);
	tree_walk_free(walk);
	return r == -EEXIST ? -ENOTEMPTY : r;
}

int tree_rename(int old_dir, const char *old, int new_dir, const char *new_name, unsigned flags)
{
	/*
	 * The kernel has held all of rename(2)'s rules before it answers EXDEV, but for those about
	 * a target directory that is there: that a directory is not moved into itself, above all,
	 * with the tree locked, which no walk of ours could do better.
	 */
	int r = tree_rename_at(old_dir, old, new_dir, new_name, flags);
	if (r != -EXDEV || (flags & ~NOREPLACE) || strchr(old, '/') || strchr(new_name, '/'))
		return r;
	/* Between two mounts it says so before it has looked for either name. */
	struct tree_stat st;
	if (check_mount(old_dir, new_dir, &st) < 0)
		return r;
	mode_t mode;
	int from = tree_dir_open(old_dir, old, true, &mode);
	if (from < 0)
		return from == -ENOTDIR || from == -ELOOP ? -EXDEV : from;
	struct replaced replaced = { 0 };
	r = check_mount(from, new_dir, &st);
	int to = -1;
	if (r == 0)
		r = to = make_target(new_dir, new_name, flags, &replaced);
	if (to >= 0)
		r = move_tree(from, to, old_dir, old, &st, mode);
	if (r < 0 && (to >= 0 || replaced.there))
		remove_target(new_dir, new_name, &replaced);
	if (r < 0 && mode)
		(void)tree_fchmod(from, mode & 07777);
	tree_close(&to);
	tree_close(&from);
	return r;
}
