/*
 * tree_walk: where a walk through one tree (and beside it through its copy) is: a stack of levels
 * without names, of which only the deepest few are open. Private to the room's tree_*.c.
 *
 * A level that was closed is found again by ".." of the one below it, and is taken only when it is
 * the directory that was left. Reading goes on at the place in the directory that the level
 * remembers. So neither depth nor a renamed directory leads anywhere but where the walk has been.
 */
#ifndef AGENTBOX_WORKSPACE_TREE_WALK_H
#define AGENTBOX_WORKSPACE_TREE_WALK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "workspace/tree.h"
#include "workspace/tree_call.h"

#define TREE_RING      24    /* levels that are open; two descriptors each */
#define TREE_DEPTH_MAX 32768 /* past it: -ENAMETOOLONG */
#define TREE_DENTS     32768
#define TREE_BUFFER    131072
#define TREE_NAME      (NAME_MAX + 1)

/* struct linux_dirent64 of getdents64(2) */
struct tree_entry {
	uint64_t ino;
	int64_t offset;
	uint16_t size;
	uint8_t type;
	char name[];
};

struct tree_id {
	uint64_t dev, ino;
};

struct tree_level {
	struct tree_id from, to;
	struct timespec times[2]; /* from's, before anything was done in it */
	int64_t offset;           /* where reading `from` goes on */
	uint16_t mode;            /* from's, before it was made accessible */
	bool opened_up;           /* it was: give it its mode again */
	bool opaque;              /* copy: overlayfs's mark "y" is on it */
	bool changed;             /* clear, rename: something was taken out since the last start */
	uint16_t passes;          /* clear, rename: times that reading has begun anew */
};

struct tree_walk {
	size_t depth;
	size_t lowest; /* levels from here to `depth` are open */
	int from[TREE_RING], to[TREE_RING];
	char names[TREE_RING][TREE_NAME]; /* of each open level: its name in the level above */
	bool reopened;                    /* by the last tree_walk_leave: by ".." */
	size_t used, next;                /* of dents */
	_Alignas(8) char dents[TREE_DENTS];
	char buffer[TREE_BUFFER]; /* for the caller: texts of links, file contents */
	struct tree_level levels[TREE_DEPTH_MAX];
};

static inline int tree_from(const struct tree_walk *walk)
{
	return walk->from[walk->depth % TREE_RING];
}

static inline int tree_to(const struct tree_walk *walk)
{
	return walk->to[walk->depth % TREE_RING];
}

static inline struct tree_level *tree_level(struct tree_walk *walk)
{
	return &walk->levels[walk->depth];
}

/*
 * Begin a walk through `from`, with `to` (-1: none) beside it; both are reopened for the walk and
 * stay the caller's. The walk's memory is mapped, and only what is used of it costs anything.
 */
int tree_walk_new(int from, int to, struct tree_walk **ret);
void tree_walk_free(struct tree_walk *walk);

/* The next entry of the current directory but "." and "..": 1, 0 at the end, or -errno. */
int tree_walk_next(struct tree_walk *walk, const struct tree_entry **ret);

/* Read the current directory from `offset` on (0: from its start). */
int tree_walk_seek(struct tree_walk *walk, int64_t offset);

/*
 * Go down: `from` (opened by tree_dir_open, `mode` 0 or as it said) and `to` are taken, in every
 * case. `name`: what both are called in the current directory.
 */
int tree_walk_enter(struct tree_walk *walk, int from, int to, const char *name, mode_t mode);

/*
 * Go up. *ret_name is the name of the level that was left, or NULL when it is not known any more.
 * Reading must be set with tree_walk_seek. -ESTALE: ".." is another directory than before.
 */
int tree_walk_leave(struct tree_walk *walk, const char **ret_name);

/*
 * Open the directory `name` for reading and searching (`all`: and for writing) also where its
 * owner, who is the caller, may not: *ret_mode is then the mode to put back later, else 0.
 * A descriptor or -errno; -ENOTDIR, -ELOOP: it is no directory.
 */
int tree_dir_open(int dir, const char *name, bool all, mode_t *ret_mode);

/* Set the mode of what an O_PATH descriptor is of. -EACCES: an old kernel, and no /proc. */
int tree_path_chmod(int path, mode_t mode);
/* The same by name, of a file that is of the type `type` (S_IFMT). */
int tree_name_chmod(int dir, const char *name, mode_t type, mode_t mode);

/* "/proc/self/fd/N" */
void tree_proc_name(int fd, char ret[32]);

/* Copy those attributes whose name begins with `prefix`. `walk`: for its buffer. 0 or -errno. */
int tree_copy_attributes(struct tree_walk *walk, int from, int to, const char *prefix);

/* Put the tail of `name` into a report. */
void tree_report_failed(struct tree_report *report, const char *name);

#endif
