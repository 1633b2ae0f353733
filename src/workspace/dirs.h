/*
 * dirs: directories of one tree by their paths, with few descriptors however deep the tree is. Only
 * openat2 below the tree's descriptor, through no link, and never with more than a part of a path.
 * Private to this room.
 */
#ifndef AGENTBOX_WORKSPACE_DIRS_H
#define AGENTBOX_WORKSPACE_DIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define DIRS_OPEN 48 /* descriptors that one of these holds at most */

struct dirs {
	int root; /* borrowed */
	/*
	 * The tree is a layer of the caller's own: a directory or file there that lacks the
	 * permission to be read is lent it for the moment of opening.
	 */
	bool lend;
	/* Find out who owns the directories on the way. */
	bool watch;
	uid_t uid; /* of the tree's own directory, where they are watched */
	gid_t gid;
	char *path; /* of the deepest open directory */
	size_t size;
	size_t depth;
	struct {
		int fd;
		size_t len; /* of its path */
		uid_t uid;  /* of the first one on the way that is not root's, else 0 */
		gid_t gid;
	} at[DIRS_OPEN];
};

void dirs_init(struct dirs *dirs, int root, bool lend);
void dirs_free(struct dirs *dirs);

/*
 * The directory whose path is path[0..len-1], "" being the tree's own. The descriptor is ours
 * and holds until its next call. -errno: ELOOP for a link in the way, ENOTDIR, ENOENT, EACCES.
 */
int dirs_open(struct dirs *dirs, const char *path, size_t len);

/* The directory that `path` lies in, as dirs_open; *ret_name is its last component. */
int dirs_parent(struct dirs *dirs, const char *path, const char **ret_name);

/* Forget what is open at or below a path: it was renamed or removed. */
void dirs_forget(struct dirs *dirs, const char *path, size_t len);

/*
 * Open one name in a directory without following a link. `lend` as in struct dirs. The caller's own
 * descriptor, or -errno.
 */
int dirs_open_name(int dir, const char *name, uint64_t flags, bool lend);

/* Whose the directory is that was opened last, or who above it could have put it there: the first
 * owner from the top that is not root. Only of watched ones. */
void dirs_owner(const struct dirs *dirs, uid_t *ret_uid, gid_t *ret_gid);

/* Set the time of a file's last change of content by an O_PATH descriptor. 0 or -errno. */
int dirs_set_mtime(int fd, const struct timespec *time);

/* Set a file's permission bits by an O_PATH descriptor. 0 or -errno. */
int dirs_chmod(int fd, unsigned mode);

#endif
