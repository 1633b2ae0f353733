/*
 * join: a command on its way into a kept box. What of a plan belongs to the command and not to the
 * box travels as one block of bytes in a memfd, the order; everything else is the box's own plan,
 * which its init has.
 */
#ifndef AGENTBOX_BOX_JOIN_H
#define AGENTBOX_BOX_JOIN_H

#include <stddef.h>

#include "plan/plan.h"

#define ORDER_MAX ((size_t)16 << 20) /* bytes; more than execve(2) takes */

#define ORDER_RLIMITS_MAX 16

/* What TREES carries to a reaper, in this order. */
enum { JOIN_ORDER, JOIN_STATUS, JOIN_STDIN, JOIN_STDOUT, JOIN_STDERR, JOIN_COUNT };

/*
 * Write argv, candidates, envp, cwd, umask and resource limits of the plan into a new memfd.
 * Allocates nothing. Its descriptor, or -errno: -E2BIG when it is too large.
 */
int order_write(const struct plan *plan);

/*
 * Read an order: *plan, a copy of the box's, has its command replaced. What it points to lies in
 * memory of its own, *ret_memory of *ret_size bytes, to be given back with munmap(2). 0, -EPROTO
 * for what is no order, or -errno. On failure *plan is as it was.
 */
int order_read(int fd, struct plan *plan, void **ret_memory, size_t *ret_size);

#endif
