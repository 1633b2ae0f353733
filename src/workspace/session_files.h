/*
 * session_files: the files of a session's directory, between the session*.c. Everything is opened
 * below a descriptor, without following links, and looked at before it is believed.
 */
#ifndef AGENTBOX_WORKSPACE_SESSION_FILES_H
#define AGENTBOX_WORKSPACE_SESSION_FILES_H

#include "workspace/session.h"

#define SESSION_PLACE       "sessions"
#define SESSION_NEW         ".new-"  /* begins the name of one that is being made */
#define SESSION_GONE        ".gone-" /* begins the name of one that is being removed */
#define SESSION_HIDDEN_SIZE 64       /* of such a name, with its end */

/* Write meta into a session's directory. 0 or -errno. */
int session_meta_write(int dir, const struct session_source *source, int64_t created_ns);
/*
 * Fill the texts and times of *ret into its arena. 0, -errno, -EINVAL for what is no meta or not of
 * this version.
 */
int session_meta_read(int dir, struct session *ret);

/* The parts of a session's directory, made or judged. NULL, or the one that failed, with errno. */
const char *session_parts_make(int dir, uid_t owner, gid_t group);
const char *session_parts_check(int dir);
/*
 * A command may have closed what the session cannot be without, even to its owner: the owner's
 * rights are given back. What cannot be mended shows when it is used.
 */
void session_parts_mend(int dir);

/* Open a directory of the caller's alone. A descriptor; -EPERM when it is not that, or -errno. */
int session_open_own(int parent, const char *name);
/* Open the lock, a file of the caller's. A descriptor or -errno. */
int session_open_lock(int dir);
/* 0, -EBUSY when others have it, or -errno. */
int session_lock(int lock, bool exclusive);
/* Has anybody a lock? 1, 0 or -errno. */
int session_locked(int lock);
/* session_keeper.c: what the file keeper says: 0 there is none, 1 it lives, -ESRCH it is gone, or
 * -errno. */
int session_keeper(int dir);

/*
 * Remove what killed calls left, and count the sessions. Each hidden directory has a flock of its
 * maker's while that lives. 0 or -errno.
 */
int session_sweep(int place, size_t *ret_count);
/* Remove the directory `name` with all that is in it; the caller has its flock. 0 or -errno. */
int session_clear(int place, const char *name);

#endif
