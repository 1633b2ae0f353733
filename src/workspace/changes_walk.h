/*
 * changes_walk: two trees walked side by side, by descriptors, in the order of report/changes.h.
 * It is a loop over frames on the heap, so no tree is too deep, and holds a bounded number of
 * descriptors: those further up are closed and found again by "..", after a look at the inode.
 * Follows no link, enters no mount of the lower tree, decides nothing about what it finds.
 */
#ifndef AGENTBOX_WORKSPACE_CHANGES_WALK_H
#define AGENTBOX_WORKSPACE_CHANGES_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum walk_tree { WALK_UPPER, WALK_LOWER };

/* Bytes of names that are held at a time, of all directories on the way down. */
#define WALK_NAMES_MAX ((size_t)256 << 20)

/* One directory of one of the trees. */
struct walk_side {
	bool there;
	int fd; /* -1: closed meanwhile */
	bool listed;
	struct stat st; /* as it was found */
	bool put_back;  /* st.st_mode must be put back: it was made readable */
};

struct walk_names {
	char *text;
	const char **list; /* sorted */
	size_t count, next, bytes;
};

/* A directory, in one tree or both. */
struct walk_frame {
	struct walk_side side[2];
	struct walk_names names[2];
	bool full;   /* names of both trees were read; else the upper's only */
	bool xwhite; /* whiteouts may be attributes of files */
	bool own_state;
	uint64_t *state; /* of patterns.h */
	size_t path_len;
};

struct walk {
	struct walk_frame *frames;
	size_t depth, room, names_bytes;
	char *scratch; /* WALK_SCRATCH bytes */
};

#define WALK_SCRATCH ((size_t)64 << 10)

/* All return 0 or -errno. */

/* `scratch` is the caller's and must live as long. */
void walk_begin(struct walk *walk, char *scratch);

/*
 * Open the directory `name` of `parent`, for its names or only to look at single ones of them. What
 * is the caller's in the upper tree is made readable where it is not. -EXDEV: a mount point of the
 * lower tree.
 */
int walk_open(enum walk_tree tree, int parent, const char *name, bool list, struct walk_side *ret);
void walk_close(struct walk_side *side);

/* Go down. Takes `frame`'s sides and state over, also when it fails. */
int walk_push(struct walk *walk, struct walk_frame *frame);

/* The directory that is looked at; NULL at the end. */
struct walk_frame *walk_top(const struct walk *walk);

/* Is something mounted on a name of the lower tree, which is no directory? */
bool walk_is_mount(int parent, const char *name);

/* Its next name, and which of the lists has it; NULL at the end. */
const char *walk_next(struct walk_frame *frame, bool in[2]);

/* Go up. -ESTALE: a directory was moved meanwhile. */
int walk_pop(struct walk *walk);

/* Go up to the end, whatever fails. */
void walk_end(struct walk *walk);

/* A regular file of the upper tree for reading, also where its mode forbids it; or -errno. */
int walk_open_file(enum walk_tree tree, int parent, const char *name);

#endif
