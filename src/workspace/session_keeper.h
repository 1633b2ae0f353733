/*
 * session_keeper: how the keeper of a session's processes is found by others. In the session's
 * directory are the file "keeper" (see session.h), there as long as it lives or when it was killed,
 * and "socket", a SEQPACKET socket on which it hears sync.h's messages of its kind. Everything is
 * below the descriptor of that directory, which is the caller's alone.
 */
#ifndef AGENTBOX_WORKSPACE_SESSION_KEEPER_H
#define AGENTBOX_WORKSPACE_SESSION_KEEPER_H

/* Write down that this process is the keeper; remove what one leaves. 0 or -errno. */
int session_keeper_note(int dir);
void session_keeper_forget(int dir);

/* Is there a record, of a keeper that lives or is gone? 1, 0 or -errno. */
int session_keeper_left(int dir);

/*
 * Make the socket, in place of a dead keeper's. The caller has the lock that every living keeper
 * has (flock of "layer"). A non-blocking descriptor or -errno.
 */
int session_keeper_listen(int dir);

/*
 * Connect to the keeper and show it the session's lock. A blocking descriptor, each step of which
 * has a time limit; -ENOENT when there is none, -EPERM for what is no socket or not this user's, or
 * -errno.
 */
int session_keeper_connect(int dir);

/*
 * Have the keeper end, with all processes, and wait until it has. 1, 0 when there is none, -EBUSY
 * when a command is under way.
 */
int session_keeper_stop(int dir);

#endif
