/* tree_own: gives a whole tree to another owner. Follows nothing; for a tree that nobody else has.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>

#include "workspace/tree.h"
#include "workspace/tree_walk.h"

static int give(int dir, const char *name, uid_t uid, gid_t gid, int flags)
{
	return (int)sys_bare6(SYS_fchownat, dir, (long)name, (long)uid, (long)gid, flags, 0);
}

/* One entry; a directory is entered. 0 or -errno. */
static int own_entry(struct tree_walk *walk, const struct tree_entry *entry, uid_t uid, gid_t gid)
{
	mode_t mode;
	int r = give(tree_from(walk), entry->name, uid, gid, AT_SYMLINK_NOFOLLOW);
	if (r < 0 || entry->type != DT_DIR)
		return r;
	if (walk->depth + 1 >= TREE_DEPTH_MAX)
		return -ENAMETOOLONG;
	int fd = tree_dir_open(tree_from(walk), entry->name, false, &mode);
	return fd < 0 ? fd : tree_walk_enter(walk, fd, -1, entry->name, mode);
}

int tree_own(int dir, uid_t uid, gid_t gid)
{
	struct tree_walk *walk;
	int r = give(dir, "", uid, gid, AT_EMPTY_PATH);
	if (r == 0)
		r = tree_walk_new(dir, -1, &walk);
	if (r < 0)
		return r;
	for (;;) {
		const struct tree_entry *entry;
		const char *name;
		r = tree_walk_next(walk, &entry);
		if (r > 0)
			r = own_entry(walk, entry, uid, gid);
		else if (r == 0 && walk->depth == 0)
			break;
		else if (r == 0)
			r = tree_walk_leave(walk, &name) < 0
				    ? -ESTALE
				    : tree_walk_seek(walk, tree_level(walk)->offset);
		if (r < 0)
			break;
	}
	tree_walk_free(walk);
	return r;
}
