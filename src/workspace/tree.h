/*
 * tree: copying, moving and removing whole trees by descriptors: no path of more than one name is
 * ever given to the kernel, no link followed, no depth too deep (a loop, not recursion; directories
 * are reopened by ".." only after their inode was checked, or are kept as names). Nothing here
 * allocates or uses stdio, so that the box's side can use it too: it works in the caller's buffer.
 */
#ifndef AGENTBOX_WORKSPACE_TREE_H
#define AGENTBOX_WORKSPACE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum tree_flags {
	TREE_REFLINK = 1, /* share the data where the file system can (FICLONE), else copy */
	TREE_LAYER = 2,  /* keep overlayfs's marks: whiteouts (0:0) and user.overlay.* attributes */
	TREE_ONE_FS = 4, /* do not enter mounts: an empty directory, or file, is in their place */
	TREE_NO_SPECIAL =
		8, /* leave out FIFOs, sockets and devices (whiteouts under TREE_LAYER stay) */
};

struct tree_report {
	uint64_t files, directories, bytes, shared_bytes, skipped;
	uint64_t whiteouts; /* copied under TREE_LAYER, in either form */
	/*
	 * Of these, ones that could not be made as devices 0:0 and were written in the other form
	 * of overlayfs.rst: an empty file with the attribute user.overlay.whiteout in a directory
	 * with user.overlay.opaque = "x".
	 */
	uint64_t attribute_whiteouts;
	char failed[256]; /* the name that an error is about, its tail */
};

/*
 * Copy all that is in the directory `from` into the directory `to`: types, modes (with set-id bits
 * dropped), times, holes, hard links among the files copied where that is cheap. 0 or -errno.
 */
int tree_copy(int from, int to, unsigned flags, struct tree_report *ret);

/* Give a directory and all that is in it, which nobody else can reach, to another owner. 0 or
 * -errno.
 */
int tree_own(int dir, uid_t uid, gid_t gid);

/* Remove all that is in a directory, also what has no permission bits. 0 or -errno (the first). */
int tree_clear(int dir, struct tree_report *ret);

/*
 * rename(2) as renameat2(old_dir, old, new_dir, new, flags), also where overlayfs answers EXDEV for
 * a directory that comes from the layer below: then the directory is made anew and its entries
 * moved one by one, so that at each moment every file has one of its two names. It is not atomic:
 * others may see both halves, and so does who comes after a kill. After an error all is as before.
 * EXDEV stays for another mount, for other files than directories, and for other flags than
 * RENAME_NOREPLACE.
 * 0 or -errno as of rename(2).
 */
int tree_rename(int old_dir, const char *old, int new_dir, const char *new_name, unsigned flags);

#endif
