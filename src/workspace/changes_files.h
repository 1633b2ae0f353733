/*
 * changes_files: what two files of one name are to each other, and what overlayfs wrote beside a
 * file of a layer. Looks at one file or pair at a time, by directory descriptor and name.
 */
#ifndef AGENTBOX_WORKSPACE_CHANGES_FILES_H
#define AGENTBOX_WORKSPACE_CHANGES_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Room for one block of a file, one text of a link, one list of attributes. */
#define FILES_BLOCK ((size_t)64 << 10)

enum files_mark {
	FILES_OPAQUE = 1,   /* the tree's directory of that name is hidden */
	FILES_XWHITE = 2,   /* files below may be whiteouts by their attribute */
	FILES_WHITEOUT = 4, /* such an attribute; an empty file in such a directory is one */
};

/* One file by its place, and what it was found to be. */
struct files_place {
	int dir;
	const char *name;
	struct stat st;
};

/* What went wrong, and in which of the trees. */
struct files_error {
	int tree; /* enum walk_tree */
	int errnum;
};

/*
 * Do two regular files of one size have the same content? Only data is read, no holes; each block
 * is a buffer of FILES_BLOCK. 1: yes, 0: no (also when one is not there any more), -1: *ret_error.
 */
int files_same_content(const struct files_place *upper, const struct files_place *lower,
	char *block, char *other, struct files_error *ret_error);

/* The text of a symbolic link in `block` with a NUL behind it; its length or -errno. */
long files_link_text(const struct files_place *place, char *block);

/*
 * The marks (enum files_mark) of a regular file of a layer, or of a directory that is open for
 * reading; or -errno, -EUCLEAN: one that makes the layer mean something else than can be seen here.
 */
int files_marks(const struct files_place *place, char *block);
int files_dir_marks(int fd, char *block);

/*
 * May a link at `path` below `root` with that text lead out of the tree? By the texts alone, and
 * where other links could matter (".." behind a name) the answer is yes.
 */
bool files_link_escapes(const char *root, const char *path, const char *text);

#endif
