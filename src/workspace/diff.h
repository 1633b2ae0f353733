/*
 * diff: changes of private layers as people and `git apply` read them. The old form of a file is
 * what the host has now, the new one what the layer has. Follows no link, changes nothing.
 */
#ifndef AGENTBOX_WORKSPACE_DIFF_H
#define AGENTBOX_WORKSPACE_DIFF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "report/changes.h"
#include "workspace/changes.h"

/* Files above this are not compared line by line: a patch has them as binary ones, whole. */
#define DIFF_TEXT_MAX ((size_t)8 << 20)

/* Of files above this a patch says only that they differ, as git does of binary ones without
 * --binary: they may have no end that anybody could wait for, and cost nothing on disk. */
#define DIFF_BINARY_MAX ((size_t)64 << 20)

/*
 * Write a patch for `git apply` of the chosen changes (chosen[i]; NULL: all) to a descriptor:
 * regular files and links of the first tree. Directories, FIFOs, sockets and what lies in other
 * trees have no place in such a patch, nor have the contents of files above DIFF_BINARY_MAX; how
 * many of these were chosen is *ret_left (directories not counted). Memory is bounded whatever the
 * files' sizes, and so is the time to compare two, but for the data that two huge files have in
 * common. Errors: workspace_unreadable, result_unwritable, no_resources.
 */
int diff_patch(const struct changes_layer *layers, const struct changes *changes,
	const bool *chosen, int fd, size_t *ret_left, struct err *err);

/*
 * Append a table of how many lines were added and removed, at most `columns` wide.
 * Errors: workspace_unreadable, no_resources.
 */
int diff_stat(const struct changes_layer *layers, const struct changes *changes, const bool *chosen,
	unsigned columns, struct buf *out, struct err *err);

#endif
