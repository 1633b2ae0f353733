/*
 * tar: writes a tar stream (POSIX pax interchange format: ustar with extended headers where a name
 * or number does not fit). Names and texts of links are written byte for byte. Reads nothing: what
 * comes in is read by a program of its own (cli/archive_main.c).
 */
#ifndef AGENTBOX_WORKSPACE_TAR_H
#define AGENTBOX_WORKSPACE_TAR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/buf.h"

/*
 * The header of an entry: a regular file, a directory or (with `target`) a symbolic link. `name` is
 * relative and clean. The owner is the caller; set-id bits and parts of seconds are left out. 0 or
 * -errno.
 */
int tar_header(struct buf *out, const char *name, const char *target, const struct stat *st);
/* How many bytes of NUL follow the data of a file. */
size_t tar_padding(uint64_t size);
/* The end of the archive. */
int tar_end(struct buf *out);

#endif
