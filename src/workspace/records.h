/*
 * records: lists of changes in a file, each with what the host had of it. Lines of text in which
 * every byte that is a blank, a control character or a backslash is written \xNN; a path is the
 * number of bytes that it shares with the one before it, and the rest, so that deep trees cost
 * little. The last line tells how many there are: a file that was cut off is no list.
 * The reader takes nothing for granted. Private to this room.
 */
#ifndef AGENTBOX_WORKSPACE_RECORDS_H
#define AGENTBOX_WORKSPACE_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "report/changes.h"
#include "workspace/apply.h"

#define RECORDS_FILE_MAX ((size_t)256 << 20) /* bytes of a file */
#define RECORDS_TEXT_MAX ((size_t)1 << 30)   /* bytes of all paths and targets, written out */

struct record {
	struct change change;
	struct apply_base base;
	char action; /* enum apply_action, or "-" */
	/* Of a step, whose action is not "-": inodes of its directory and of what was staged. */
	uint64_t seq, dir_ino, new_ino;
	/* Not in the file; apply's own, see apply_work.h. */
	size_t entry, root, link;
	bool touched, lost;
	int errnum;
};

struct records_writer {
	int fd; /* borrowed */
	int error;
	struct buf out;
	struct buf last; /* the path before */
	uint64_t count;
	size_t bytes;
};

void records_begin(struct records_writer *writer, int fd);
void records_put(struct records_writer *writer, const struct record *record);
/* Write what is left, and the last line. 0, or the first -errno; -EFBIG past a maximum. */
int records_end(struct records_writer *writer);

/*
 * Read a list from text[0..len-1], whose layers are below `layer_count`. All in the arena.
 * 0, -EBADMSG for a wrong form, -EFBIG past a maximum.
 */
int records_read(struct arena *arena, const char *text, size_t len, size_t layer_count,
	struct record **ret_list, size_t *ret_count);

/*
 * Likewise, one after the other and without a list: it may be long. How many there are is best
 * found out before, as nothing is allocated for a list that turns out to be damaged.
 */
typedef void records_visit(void *data, const struct record *record);
int records_each(struct arena *arena, const char *text, size_t len, size_t layer_count,
	records_visit *visit, void *data);
int records_count(const char *text, size_t len, size_t layer_count, size_t *ret_count);

/* Append bytes with \xNN for what would end a word; and back, in the arena: NULL for a wrong form.
 */
void records_escape(struct buf *out, const char *text, size_t len);
char *records_unescape(struct arena *arena, const char *text, size_t len);

/* Is this a relative path whose every component is a real name? ("." is none.) */
bool records_path_valid(const char *path);

/*
 * The order of a list of changes: ".", then name by name, each by its bytes, so that what is in a
 * directory follows it at once. Below, at or above 0, as of strcmp(); b[0..len-1] is the other
 * path.
 */
int records_path_order(const char *a, const char *b, size_t len);

#endif
