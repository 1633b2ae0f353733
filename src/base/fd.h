/*
 * fd: descriptors as owned values. They start at -1 and are close-on-exec from birth.
 * Leaf functions return 0 (or a count) or -errno.
 */
#ifndef AGENTBOX_BASE_FD_H
#define AGENTBOX_BASE_FD_H

#include <stddef.h>
#include <sys/types.h>

/* Close *fd unless it is negative, set it to -1, keep errno. */
void fd_close(int *fd);

/* Give up ownership: returns *fd and sets it to -1. */
int fd_steal(int *fd);

/*
 * Close all descriptors of this process but these (-1: none), which it sorts. 0 or -errno.
 */
int fd_close_others(int *keep, size_t count);

/* A local descriptor that is closed when its scope ends. */
#define AUTO_FD __attribute__((cleanup(fd_close))) int

/*
 * Read until `len` bytes or end of file, across interruptions.
 * Returns the count (short at end of file) or -errno.
 */
ssize_t fd_read_full(int fd, void *data, size_t len);

/* Write all of it, across interruptions; 0 or -errno. */
int fd_write_full(int fd, const void *data, size_t len);

/*
 * Read a whole regular file of at most `max` bytes into arena memory with a NUL behind it.
 * *ret_len excludes the NUL. Returns 0, -EFBIG when it is longer, or -errno.
 */
struct arena;
int fd_read_file(struct arena *arena, int fd, size_t max, char **ret_data, size_t *ret_len);

#endif
