/* archive_confine: what agentbox-archive may do from its first byte of an archive on. */
#ifndef AGENTBOX_CLI_ARCHIVE_CONFINE_H
#define AGENTBOX_CLI_ARCHIVE_CONFINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CONFINE_NO_LANDLOCK 1 /* the kernel has none, and it must not be missing */

/*
 * End with the parent, act as `uid` and `gid` (root only), and give up all else: new rights, files
 * but what is made below `dir`, the system calls that unpacking does not need, memory and
 * descriptors. 0, CONFINE_NO_LANDLOCK or -errno.
 */
int confine(int dir, uid_t uid, gid_t gid, uint64_t file_max, bool lax);

#endif
