/* resolve_confine: what agentbox-resolve may do from its first request on. */
#ifndef AGENTBOX_BROKER_RESOLVE_CONFINE_H
#define AGENTBOX_BROKER_RESOLVE_CONFINE_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * End with the parent, act as `uid` and `gid` (root only), and give up all else but reading what
 * the C library's resolver and its modules read, sockets, threads. 0, -EOPNOTSUPP (the kernel has
 * no Landlock, and not `lax`) or -errno.
 */
int resolve_confine(uid_t uid, gid_t gid, bool lax);

#endif
