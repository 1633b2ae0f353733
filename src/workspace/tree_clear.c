/*
 * tree_clear: removes all that is in a directory. Names are only ever removed below descriptors
 * that were opened on the way down from that directory; it follows no link and enters no mount.
 *
 * It goes as deep as it may keep open, so it never needs "..". What lies deeper is moved up into
 * the directory that is being cleared, under a name of ours, and met there again: no depth is too
 * deep, and a clearing that was killed has left nothing anywhere else.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <string.h>

#include "workspace/tree.h"
#include "workspace/tree_walk.h"

#define PASSES_MAX    64  /* of one directory; an idle one needs two */
#define SURPRISES_MAX 100 /* directories that were filled again by somebody meanwhile */

struct clearing {
	struct tree_walk *walk;
	struct tree_report *report;
	int failure; /* the first, or 0 */
	unsigned surprises;
	uint32_t moved; /* number of the next name for what is too deep */
};

static void note(struct clearing *clearing, int error, const char *name)
{
	/* Now a directory and then not: met again in the next pass, of which there is an end. */
	if (error == -ENOTDIR || error == -EISDIR || error == -ELOOP) {
		tree_level(clearing->walk)->changed = true;
		return;
	}
	if (error == 0 || clearing->failure)
		return;
	clearing->failure = error;
	tree_report_failed(clearing->report, name);
}

/* Remove one name that may be a directory. -ENOTEMPTY: it is one, and is not empty. */
static int remove_name(struct clearing *clearing, int dir, const char *name, bool is_dir)
{
	int r = -EISDIR;
	for (int tries = 0; tries < 4; tries++) { /* it may become the other kind meanwhile */
		r = tree_unlink_at(dir, name, is_dir ? AT_REMOVEDIR : 0);
		if (r != (is_dir ? -ENOTDIR : -EISDIR))
			break;
		is_dir = !is_dir;
	}
	if (r == 0) {
		tree_level(clearing->walk)->changed = true;
		*(is_dir ? &clearing->report->directories : &clearing->report->files) += 1;
	}
	if (r == -EEXIST)
		return -ENOTEMPTY;
	return r == -ENOENT ? 0 : r;
}

/* ".agentbox-deep-XXXXXXXX" */
static void deep_name(uint32_t number, char ret[32])
{
	static const char prefix[] = ".agentbox-deep-";
	size_t at = sizeof prefix - 1;
	memcpy(ret, prefix, at);
	for (int shift = 28; shift >= 0; shift -= 4)
		ret[at++] = "0123456789abcdef"[number >> shift & 15];
	ret[at] = '\0';
}

/* Move a directory up into the one that is being cleared, where only an empty one is replaced. */
static int move_up(struct clearing *clearing, const char *name)
{
	struct tree_walk *walk = clearing->walk;
	mode_t mode;
	int fd = tree_dir_open(tree_from(walk), name, true, &mode); /* to move it needs its "w" */
	tree_close(&fd);
	int r = -EEXIST;
	for (unsigned tries = 0; tries < 1000; tries++) {
		char deep[32];
		deep_name(clearing->moved++, deep);
		r = tree_rename_at(tree_from(walk), name, walk->from[0], deep, 0);
		if (r != -EEXIST && r != -ENOTEMPTY && r != -ENOTDIR)
			break;
	}
	if (r == 0) {
		tree_level(walk)->changed = true;
		walk->levels[0].changed = true;
		walk->levels[0].passes = 0;
	}
	return r == -ENOENT ? 0 : r;
}

/* Is this directory on the file system of the one that is cleared, and no mount? 0 or -EBUSY. */
static int check_mount(const struct tree_walk *walk, int fd)
{
	struct tree_stat st;
	int r = tree_stat_at(fd, "", &st);
	if (r < 0)
		return r;
	if (st.attributes_mask & TREE_ATTR_MOUNTROOT)
		return st.attributes & TREE_ATTR_MOUNTROOT ? -EBUSY : 0;
	return tree_dev(&st) == walk->levels[0].from.dev ? 0 : -EBUSY;
}

static int descend(struct clearing *clearing, const char *name)
{
	struct tree_walk *walk = clearing->walk;
	if (walk->depth + 1 >= TREE_RING)
		return move_up(clearing, name);
	mode_t mode;
	int fd = tree_dir_open(tree_from(walk), name, true, &mode);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return fd;
	int r = check_mount(walk, fd);
	if (r == 0)
		return tree_walk_enter(walk, fd, -1, name, mode);
	if (mode)
		(void)tree_fchmod(fd, mode & 07777);
	tree_close(&fd);
	return r;
}

static void clear_entry(struct clearing *clearing, const struct tree_entry *entry)
{
	int dir = tree_from(clearing->walk);
	int r = remove_name(clearing, dir, entry->name, entry->type == DT_DIR);
	if (r == -ENOTEMPTY)
		r = descend(clearing, entry->name);
	note(clearing, r, entry->name);
}

/* Go up from a directory that was read to its end, and remove it. */
static int ascend(struct clearing *clearing)
{
	struct tree_walk *walk = clearing->walk;
	const char *name;
	int r = tree_walk_leave(walk, &name);
	if (r < 0)
		return r;
	r = remove_name(clearing, tree_from(walk), name, true);
	if (r == -ENOTEMPTY && ++clearing->surprises < SURPRISES_MAX) {
		tree_level(walk)->changed = true; /* it is met again in the next pass */
		r = 0;
	}
	note(clearing, r, name);
	return tree_walk_seek(walk, tree_level(walk)->offset);
}

/*
 * A directory is read until it was found empty: places in a directory from which entries are
 * removed may shift (tmpfs before Linux 6.6). After a failure nothing is read anew, as what cannot
 * be removed would be met again and again.
 */
static bool read_again(struct clearing *clearing)
{
	struct tree_level *level = tree_level(clearing->walk);
	bool again = level->changed && !clearing->failure && level->passes < PASSES_MAX;
	level->changed = false;
	level->passes++;
	return again;
}

static int clear_all(struct clearing *clearing)
{
	struct tree_walk *walk = clearing->walk;
	for (;;) {
		const struct tree_entry *entry;
		int r = tree_walk_next(walk, &entry);
		if (r > 0) {
			clear_entry(clearing, entry);
			continue;
		}
		if (r == 0 && read_again(clearing))
			r = tree_walk_seek(walk, 0);
		else if (r == 0 && walk->depth == 0)
			return walk->levels[0].passes > PASSES_MAX ? -ENOTEMPTY : 0;
		else if (r == 0)
			r = ascend(clearing);
		if (r < 0)
			return r;
	}
}

int tree_clear(int dir, struct tree_report *ret)
{
	struct tree_report report = { 0 };
	struct clearing clearing = { .report = ret ? ret : &report };
	*clearing.report = report;
	int r = tree_walk_new(dir, -1, &clearing.walk);
	if (r < 0)
		return r;
	struct tree_level *top = &clearing.walk->levels[0];
	if ((top->mode & 0700) != 0700 && !top->opened_up)
		top->opened_up = tree_fchmod(clearing.walk->from[0], top->mode | 0700) == 0;
	note(&clearing, clear_all(&clearing), ".");
	if (top->opened_up)
		(void)tree_fchmod(clearing.walk->from[0], top->mode);
	tree_walk_free(clearing.walk);
	return clearing.failure;
}
