/*
 * message: one datagram of a SEQPACKET socket, with or without a descriptor. Async-signal-safe, no
 * allocation. See unix(7), SCM_RIGHTS.
 */
#ifndef AGENTBOX_BASE_MESSAGE_H
#define AGENTBOX_BASE_MESSAGE_H

#include <stddef.h>
#include <sys/types.h>

/* Send all of it as one, with fd unless that is -1; `flags` as of sendmsg(2). 0 or -errno. */
int message_send(int sock, const void *data, size_t len, int fd, int flags);

#define MESSAGE_FDS_MAX 4

/*
 * Receive one, without waiting. Returns its length, 0 at the end of file (or for an empty one),
 * -EAGAIN when there is none, -EPROTO for one that is longer than `size` or carries more
 * descriptors than MESSAGE_FDS_MAX (they are closed), or -errno. The descriptors that came, `count`
 * of them, are the caller's and close at exec.
 */
struct message_fds {
	int fd[MESSAGE_FDS_MAX];
	size_t count;
};
ssize_t message_recv(int sock, void *data, size_t size, struct message_fds *ret_fds);
void message_close(struct message_fds *fds);

#endif
