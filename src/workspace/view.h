/*
 * view: a session's trees as its box sees them, for reading and writing their files without running
 * anything inside.
 *
 * Nothing is mounted. A layer of overlayfs is read by its rules: a character device 0:0 takes a
 * name away, a directory with user.overlay.opaque = "y" hides the one below. So files can be read
 * while a box has the layer mounted; a second mount of the same layer would be undefined
 * (overlayfs.rst, "Sharing and copying layers"), and needs a user namespace. Writing changes the
 * layer itself, which is allowed only while nobody has it mounted ("Changes to underlying
 * filesystems"): the caller must have the session alone.
 *
 * Paths are those of the box. Links are followed as the box would follow them, but only within the
 * view: the walk is our own, name by name, below descriptors; the kernel never follows one. A link
 * that leads elsewhere is refused. Nothing here blocks on a FIFO: only regular files and
 * directories are opened, after a look at what they are by descriptor.
 */
#ifndef AGENTBOX_WORKSPACE_VIEW_H
#define AGENTBOX_WORKSPACE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"

#define VIEW_TREES_MAX   4
#define VIEW_LINKS_MAX   40      /* followed for one path, as by the kernel */
#define VIEW_ENTRIES_MAX 1000000 /* of one directory, and of one walk */

/* What is seen at one place. The descriptors are the caller's. */
struct view_tree {
	const char *root; /* absolute path in the box, clean */
	int upper;        /* where is written and what is seen first; -1: nothing may be written */
	int lower;        /* what is seen through it; -1: nothing */
	bool layer;       /* upper is in the form of overlayfs */
	bool grant;       /* patterns without a leading "/" apply */
	bool own;    /* upper is agentbox's own: what a box closed there is opened to be read */
	uid_t owner; /* whom new files belong to, when we are root */
	gid_t group;
};

struct view {
	struct view_tree trees[VIEW_TREES_MAX];
	size_t count;
	const char *const *hide; /* patterns as in filesystem.hide, NULL-terminated, or NULL */
	const char *const *protect;
	int stage; /* a directory for files in the making; -1: nothing is written */
};

/* A directory as it is seen, by descriptors that may be O_PATH. Owned: view_close(). */
struct view_dir {
	const struct view_tree *tree; /* NULL: one that only leads to trees */
	int upper, lower;             /* -1: not there */
};
#define VIEW_DIR_NONE ((struct view_dir){ .upper = -1, .lower = -1 })

struct view_entry {
	struct stat st; /* st_mode 0: there is nothing of that name */
	int fd;         /* O_PATH; -1 for nothing */
	bool erased;    /* nothing, since the layer takes the name away */
	bool own;       /* it lies in an upper tree that is agentbox's own */
	struct view_dir dir;
};
#define VIEW_ENTRY_NONE ((struct view_entry){ .fd = -1, .dir = { .upper = -1, .lower = -1 } })

void view_dir_close(struct view_dir *dir);
void view_entry_close(struct view_entry *entry);

/* Look one name up; links are not followed. 0 (also for nothing) or -errno. */
int view_lookup(const struct view_dir *dir, const char *name, struct view_entry *ret);

/* The names in a directory, sorted by bytes; -E2BIG: too many. 0 or -errno. */
int view_names(const struct view_dir *dir, struct arena *arena, const char ***ret_names,
	size_t *ret_count);

/* Open a regular file for reading. A descriptor or -errno: -EINVAL when it is none. */
int view_read(const struct view_entry *entry);

/* The text of a link, in the arena. 0 or -errno. */
int view_link(const struct view_entry *entry, struct arena *arena, const char **ret_text);

/* view_find.c */

enum view_held { VIEW_FREE, VIEW_HIDDEN, VIEW_PROTECTED };

/* Does a pattern hold this path (absolute, clean), or with `above` a directory that it lies in? */
enum view_held view_held(const struct view *view, const char *path, bool above);

struct view_found {
	const char *path;        /* absolute, clean, without links; in the arena */
	struct view_entry entry; /* of a directory: dir is open */
};

/*
 * Follow a path, absolute or relative to `base`. The last name may not exist: then entry.st.st_mode
 * is 0, and the directory that it would be in exists unless `parents`. Hidden names do not exist.
 * 0, or -1 with *err. Errors: session_path, no_resources.
 */
int view_find(const struct view *view, const char *base, const char *path, bool parents,
	struct arena *arena, struct view_found *ret, struct err *err);
void view_found_close(struct view_found *found);

/* The tree that a clean path lies in or is the top of (the deepest), or NULL. */
const struct view_tree *view_tree_of(const struct view *view, const char *path);
/* Open the directory at a clean path. 0 or -errno; -ENOTDIR, also for a link. */
int view_open_dir(const struct view *view, const char *path, struct view_dir *ret);

/*
 * All that is below a directory, each directory before what is in it, sorted by bytes, hidden
 * names left out. `recursive` false: only what is directly in it. The function gets the path below
 * `top` and an open entry with errnum 0, or the reason why it (or what is in it) cannot be looked
 * at; it returns 0 to go on. Returns what it returned, -E2BIG, or -errno.
 */
typedef int view_function(void *data, const char *name, const struct view_entry *entry, int errnum);
int view_walk(const struct view *view, const char *top, bool recursive, view_function *function,
	void *data);

/* view_write.c: `view->stage` is needed, and that nobody else has the session */

/*
 * Put a file, a link or a directory that was made in the directory `from` at a clean path that is
 * no directory yet; what was there goes in the same moment. `parents`: missing directories are
 * made. Directories take all that is in them along. 0 or -errno: -EROFS where nothing may be
 * written, -ENOENT without parents, -EISDIR, -ENOTDIR.
 */
int view_put(const struct view *view, int from, const char *name, const char *path, bool parents);

/* Make the directory at a clean path, and its parents, if it is not there. 0 or -errno. */
int view_make_dir(const struct view *view, const char *path);

/*
 * Put all that is in the directory `from` (directories, regular files and links, nothing else)
 * into the directory at a clean path. Everything is looked at before the first is put:
 * a file in the place of a directory or the other way round, a way through a link, a hidden or
 * protected name: -1 with *err (unsafe_archive, session_path) and nothing done.
 */
int view_put_all(const struct view *view, int from, const char *path, struct err *err);

#endif
