/*
 * tree_copy: a whole tree into an empty directory. It reads and never changes the tree, but for the
 * modes of files and directories whose owner may not read them, which are put back. What others
 * change meanwhile is copied as it was or as it is, and nothing outside the two trees is touched.
 *
 * Hard links: a file with more than one name gets another one in a directory of ours at the top of
 * the copy, called by its inode; the next name of that inode is linked from there. So there is no
 * table and no limit. The directory is removed at the end.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/sysmacros.h>

#include "workspace/content.h"
#include "workspace/tree.h"
#include "workspace/tree_file.h"
#include "workspace/tree_walk.h"

#define TRIES          4 /* for a name that is always something else than a moment before */
#define ATTR_OPAQUE    "user.overlay.opaque"
#define ATTR_WHITEOUT  "user.overlay.whiteout"
#define ATTR_LAYER     "user.overlay."
#define LINK_NAME_SIZE 34

struct copying {
	struct tree_walk *walk;
	struct tree_report *report;
	unsigned flags;
	struct content_ways ways;
	int top;                         /* of the copy: the walk's own descriptor may be closed */
	int links;                       /* the directory of hard links, -1: none yet */
	char links_name[LINK_NAME_SIZE]; /* in the top of the copy */
};

static void hex(uint64_t value, char *ret)
{
	for (int i = 0; i < 16; i++)
		ret[i] = "0123456789abcdef"[value >> (60 - 4 * i) & 15];
	ret[16] = '\0';
}

static void times_of(const struct tree_stat *st, struct timespec ret[2])
{
	ret[0] = (struct timespec){ .tv_sec = st->atime.sec, .tv_nsec = st->atime.nsec };
	ret[1] = (struct timespec){ .tv_sec = st->mtime.sec, .tv_nsec = st->mtime.nsec };
}

/* ------------------------------------------------------------------------ hard links */

static int links_open(struct copying *copying)
{
	if (copying->links >= 0)
		return 0;
	static const char prefix[] = ".agentbox-links-";
	uint64_t number;
	if (sys_bare(SYS_getrandom, (long)&number, sizeof number, 0) != sizeof number)
		return -EIO;
	memcpy(copying->links_name, prefix, sizeof prefix - 1);
	hex(number, copying->links_name + sizeof prefix - 1);
	int top = copying->top;
	int r = tree_mkdir_at(top, copying->links_name, 0700);
	if (r == 0)
		r = copying->links = tree_open_dir(top, copying->links_name);
	return r < 0 ? r : 0;
}

static int links_close(struct copying *copying)
{
	if (copying->links < 0)
		return 0;
	int r = tree_clear(copying->links, NULL);
	tree_close(&copying->links);
	int removed = tree_unlink_at(copying->top, copying->links_name, AT_REMOVEDIR);
	return r < 0 ? r : removed;
}

static void link_name(const struct tree_stat *st, char ret[LINK_NAME_SIZE])
{
	hex(tree_dev(st), ret);
	ret[16] = '-';
	hex(st->ino, ret + 17);
}

/* Make `name` a link to the copy of this inode: 1, or 0 when there is none. */
static int link_again(struct copying *copying, const struct tree_stat *st, const char *name)
{
	if (st->nlink < 2 || copying->links < 0)
		return 0;
	char key[LINK_NAME_SIZE];
	link_name(st, key);
	return sys_bare6(SYS_linkat, copying->links, (long)key, tree_to(copying->walk), (long)name,
		       0, 0) == 0;
}

/* Without it the next name of the inode becomes a file of its own, which is no failure. */
static void link_remember(struct copying *copying, const struct tree_stat *st, const char *name)
{
	if (st->nlink < 2 || links_open(copying) < 0)
		return;
	char key[LINK_NAME_SIZE];
	link_name(st, key);
	(void)sys_bare6(
		SYS_linkat, tree_to(copying->walk), (long)name, copying->links, (long)key, 0, 0);
}

/* ------------------------------------------------------------- what is no directory */

static int fill_file(struct copying *copying, int from, int to, const struct tree_stat *st)
{
	struct content_copy copy = {
		.from = from,
		.to = to,
		.size = st->size,
		.holes = st->blocks < (st->size + 511) / 512,
		.ways = &copying->ways,
		.buffer = copying->walk->buffer,
		.room = TREE_BUFFER,
	};
	/* One that shrinks meanwhile is as short as it is by now. */
	int r = content_copy(&copy);
	copying->report->bytes += copy.copied;
	copying->report->shared_bytes += copy.shared;
	if (r == 0 && (copying->flags & TREE_LAYER))
		r = tree_copy_attributes(copying->walk, from, to, ATTR_LAYER);
	if (r == 0)
		r = tree_fchmod(to, st->mode & 01777);
	struct timespec times[2];
	times_of(st, times);
	return r == 0 ? tree_set_times(to, NULL, times) : r;
}

static int copy_file(struct copying *copying, const char *name)
{
	struct tree_walk *walk = copying->walk;
	struct tree_stat st;
	mode_t mode;
	int from = tree_file_open(tree_from(walk), name, &st, &mode);
	if (from < 0)
		return from;
	int r = 0, to = -1;
	if (link_again(copying, &st, name) == 0) {
		r = to = tree_open_at(tree_to(walk), name, O_WRONLY | O_CREAT | O_EXCL, 0600);
		if (to >= 0)
			r = fill_file(copying, from, to, &st);
		if (r == 0)
			link_remember(copying, &st, name);
	}
	copying->report->files += r == 0;
	if (mode)
		(void)tree_fchmod(from, mode & 07777);
	tree_close(&to);
	tree_close(&from);
	return r;
}

static int copy_link(struct copying *copying, const char *name, const struct tree_stat *st)
{
	struct tree_walk *walk = copying->walk;
	long n = sys_bare6(
		SYS_readlinkat, tree_from(walk), (long)name, (long)walk->buffer, PATH_MAX, 0, 0);
	if (n < 0)
		return n == -EINVAL ? -ESTALE : (int)n;
	walk->buffer[n] = '\0';
	int r = (int)sys_bare(SYS_symlinkat, (long)walk->buffer, tree_to(walk), (long)name);
	if (r < 0)
		return r;
	copying->report->files++;
	struct timespec times[2];
	times_of(st, times);
	return tree_set_times(tree_to(walk), name, times);
}

static int copy_special(struct copying *copying, const char *name, const struct tree_stat *st)
{
	mode_t type = st->mode & S_IFMT;
	if ((copying->flags & TREE_NO_SPECIAL) || (type != S_IFIFO && type != S_IFSOCK)) {
		copying->report->skipped++;
		return 0;
	}
	int to = tree_to(copying->walk);
	int r = tree_mknod_at(to, name, type | 0600);
	if (r == 0)
		r = tree_name_chmod(to, name, type, st->mode & 01777);
	if (r < 0)
		return r;
	copying->report->files++;
	struct timespec times[2];
	times_of(st, times);
	return tree_set_times(to, name, times);
}

static int set_attribute(int fd, const char *name, const char *value)
{
	return (int)sys_bare6(
		SYS_fsetxattr, fd, (long)name, (long)value, (long)strlen(value), 0, 0);
}

/* The other form. In an opaque directory nothing is below that a whiteout could take away. */
static int write_whiteout(struct copying *copying, const char *name)
{
	struct tree_walk *walk = copying->walk;
	if (tree_level(walk)->opaque)
		return 0;
	int fd = tree_open_at(tree_to(walk), name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return fd;
	int r = set_attribute(fd, ATTR_WHITEOUT, "y");
	if (r == 0)
		r = set_attribute(tree_to(walk), ATTR_OPAQUE, "x");
	tree_close(&fd);
	if (r < 0)
		(void)tree_unlink_at(tree_to(walk), name, 0);
	copying->report->attribute_whiteouts += r == 0;
	return r;
}

static int copy_whiteout(struct copying *copying, const char *name)
{
	int r = tree_mknod_at(tree_to(copying->walk), name, S_IFCHR);
	/* Before Linux 5.8 it is a device like others; some file systems know no devices. */
	if (r == -EPERM || r == -EOPNOTSUPP || r == -EINVAL)
		r = write_whiteout(copying, name);
	copying->report->whiteouts += r == 0;
	return r;
}

/* ----------------------------------------------------------------------- directories */

static bool is_mount(const struct copying *copying, const struct tree_stat *st)
{
	if (!(copying->flags & TREE_ONE_FS))
		return false;
	if (st->attributes_mask & TREE_ATTR_MOUNTROOT)
		return st->attributes & TREE_ATTR_MOUNTROOT;
	return S_ISDIR(st->mode) && tree_dev(st) != copying->walk->levels[0].from.dev;
}

static int read_opaque(struct copying *copying)
{
	struct tree_walk *walk = copying->walk;
	char value[2];
	long n = sys_bare6(
		SYS_fgetxattr, tree_from(walk), (long)ATTR_OPAQUE, (long)value, sizeof value, 0, 0);
	tree_level(walk)->opaque = n == 1 && value[0] == 'y';
	return tree_copy_attributes(walk, tree_from(walk), tree_to(walk), ATTR_LAYER);
}

/* What a copied directory gets when all is in it. */
static int finish(int to, mode_t mode, const struct timespec times[2])
{
	int r = tree_fchmod(to, mode & 01777);
	return r < 0 ? r : tree_set_times(to, NULL, times);
}

/* Anything else that something is mounted on becomes an empty file: a place to mount it on again.
 */
static int leave_out_file(struct copying *copying, const struct tree_stat *st, const char *name)
{
	int to = tree_open_at(tree_to(copying->walk), name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (to < 0)
		return to;
	copying->report->skipped++;
	copying->report->files++;
	struct timespec times[2];
	times_of(st, times);
	int r = finish(to, st->mode, times);
	tree_close(&to);
	return r;
}

/* A mount that is not entered becomes an empty directory. */
static int leave_out(struct copying *copying, const struct tree_stat *st, int to)
{
	copying->report->skipped++;
	copying->report->directories++;
	struct timespec times[2];
	times_of(st, times);
	return finish(to, st->mode, times);
}

static int copy_directory(struct copying *copying, const char *name)
{
	struct tree_walk *walk = copying->walk;
	if (walk->depth + 1 >= TREE_DEPTH_MAX)
		return -ENAMETOOLONG;
	mode_t mode;
	int to = -1, from = tree_dir_open(tree_from(walk), name, false, &mode);
	if (from < 0)
		return from == -ENOTDIR || from == -ELOOP ? -ESTALE : from;
	struct tree_stat st;
	int r = tree_stat_at(from, "", &st);
	if (r == 0)
		r = tree_mkdir_at(tree_to(walk), name, 0700);
	if (r == 0)
		r = to = tree_open_dir(tree_to(walk), name);
	if (r >= 0 && !is_mount(copying, &st)) {
		r = tree_walk_enter(walk, from, to, name, mode);
		return r == 0 && (copying->flags & TREE_LAYER) ? read_opaque(copying) : r;
	}
	if (mode)
		(void)tree_fchmod(from, mode & 07777);
	if (r >= 0)
		r = leave_out(copying, &st, to);
	tree_close(&to);
	tree_close(&from);
	return r;
}

static int leave(struct copying *copying)
{
	struct tree_walk *walk = copying->walk;
	struct tree_level *level = tree_level(walk);
	if (level->opened_up)
		(void)tree_fchmod(tree_from(walk), level->mode);
	level->opened_up = false;
	int r = finish(tree_to(walk), level->mode, level->times);
	if (r < 0)
		return r;
	copying->report->directories++;
	const char *name;
	r = tree_walk_leave(walk, &name);
	return r < 0 ? r : tree_walk_seek(walk, tree_level(walk)->offset);
}

/* After a failure: put back the modes of the directories that the walk is in. */
static void put_back(struct tree_walk *walk)
{
	for (;;) {
		const char *name;
		const struct tree_level *level = tree_level(walk);
		if (level->opened_up)
			(void)tree_fchmod(tree_from(walk), level->mode);
		if (walk->depth == 0 || tree_walk_leave(walk, &name) < 0)
			break;
	}
}

/* ---------------------------------------------------------------------------- the walk */

static int copy_once(struct copying *copying, const char *name)
{
	struct tree_stat st;
	int r = tree_stat_at(tree_from(copying->walk), name, &st);
	if (r < 0)
		return r;
	if (S_ISDIR(st.mode))
		return copy_directory(copying, name);
	if (is_mount(copying, &st))
		return leave_out_file(copying, &st, name);
	if (S_ISCHR(st.mode) && st.rdev_major == 0 && st.rdev_minor == 0 &&
		(copying->flags & TREE_LAYER))
		return copy_whiteout(copying, name);
	if (!S_ISREG(st.mode) && link_again(copying, &st, name)) {
		copying->report->files++;
		return 0;
	}
	if (S_ISREG(st.mode))
		return copy_file(copying, name);
	r = S_ISLNK(st.mode) ? copy_link(copying, name, &st) : copy_special(copying, name, &st);
	if (r == 0)
		link_remember(copying, &st, name);
	return r;
}

/* A name that vanishes while it is looked at was removed by then; one that changes is tried anew.
 */
static int copy_entry(struct copying *copying, const char *name)
{
	int r = 0;
	size_t depth = copying->walk->depth;
	for (int tries = 0; tries < TRIES; tries++) {
		r = copy_once(copying, name);
		struct tree_stat st;
		if (copying->walk->depth != depth) /* entered: the name is not of this directory */
			break;
		if (r == -ENOENT && tree_stat_at(tree_from(copying->walk), name, &st) == -ENOENT)
			return 0;
		if (r != -ENOENT && r != -ESTALE)
			break;
	}
	if (r < 0)
		tree_report_failed(copying->report, name);
	return r == -ESTALE ? -EBUSY : r;
}

static int copy_all(struct copying *copying)
{
	struct tree_walk *walk = copying->walk;
	for (;;) {
		const struct tree_entry *entry;
		int r = tree_walk_next(walk, &entry);
		if (r == 0 && walk->depth == 0)
			return 0;
		if (r > 0) {
			r = copy_entry(copying, entry->name);
		} else {
			if (r == 0)
				r = leave(copying);
			if (r < 0)
				tree_report_failed(copying->report, ".");
		}
		if (r < 0)
			return r;
	}
}

int tree_copy(int from, int to, unsigned flags, struct tree_report *ret)
{
	struct tree_report report = { 0 };
	struct copying copying = {
		.report = ret ? ret : &report,
		.flags = flags,
		.ways = { .reflink = flags & TREE_REFLINK, .range = true },
		.top = to,
		.links = -1,
	};
	*copying.report = report;
	int r = tree_walk_new(from, to, &copying.walk);
	if (r < 0)
		return r;
	if (flags & TREE_LAYER)
		r = read_opaque(&copying);
	if (r == 0)
		r = copy_all(&copying);
	put_back(copying.walk);
	tree_walk_free(copying.walk);
	int closed = links_close(&copying);
	return r < 0 ? r : closed;
}
