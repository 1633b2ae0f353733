/*
 * host_index: what a walk found in a tree, kept for the next run in a file of the caller's cache,
 * so that a directory which did not change is not read again. Private to plan/.
 *
 * CACHE is $XDG_CACHE_HOME/agentbox (~/.cache/agentbox without it), for root /var/cache/agentbox: a
 * directory of the caller's that nobody else may use, looked at by descriptor each time. Without
 * one, or with a file that is damaged, of another tree or of other patterns, everything is read
 * anew; a cache is never a reason to fail.
 *
 * A directory counts as unchanged while device, inode and change time are those of its reading. The
 * change time is the kernel's own (no box can set it), and must be older than the reading by more
 * than the coarsest clock's tick. Only file systems that keep it so are trusted.
 */
#ifndef AGENTBOX_PLAN_HOST_INDEX_H
#define AGENTBOX_PLAN_HOST_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/buf.h"

#define INDEX_SIZE_MAX    ((size_t)64 << 20) /* bytes of a file */
#define INDEX_ENTRIES_MIN 4096               /* a smaller tree is read as fast without */
#define INDEX_FILES_MAX   64                 /* of one caller; then the oldest goes */
#define INDEX_RACY_NS     INT64_C(2000000000)

/* One directory; behind it its list, then the records of those that the list says to enter. */
struct index_record {
	uint64_t dev, ino; /* 0: never the same */
	int64_t ctime_sec;
	uint32_t ctime_nsec;
	uint32_t size;  /* bytes of all of it, records below it included */
	uint32_t bytes; /* of the list */
	uint32_t enter; /* how many of the list are to be entered */
	uint32_t seen;  /* entries that the directory has */
	uint32_t unused;
};

/* An element of a list, in memory as it is packed in the file. */
enum index_what { INDEX_ENTER, INDEX_MATCH };
struct index_entry {
	enum index_what what;
	uint8_t type;     /* DT_* */
	uint16_t pattern; /* INDEX_MATCH: its number in the set */
	const char *name; /* not ended by NUL */
	size_t len;
};
int index_put(struct buf *list, const struct index_entry *entry);
/* The next one; *at moves on. False at the end, and for what is no entry. */
bool index_next(const char **at, const char *end, struct index_entry *ret_entry);

/* Bytes of an older index: a record and all below it, or (NULL) nothing. */
struct index_part {
	const char *at, *end;
};
/* Its record and list, strictly; false: there is none that could be used. */
bool index_read(const struct index_part *part, size_t patterns, struct index_record *ret_record,
	struct index_part *ret_list);

/* The records below one, looked up by name, fastest in the old order. */
struct index_children {
	struct index_part list, records;
	const char *entry, *record;
	size_t budget;
};
void index_children_of(const struct index_part *part, struct index_children *ret_children);
struct index_part index_child(struct index_children *children, const char *name, size_t len);

struct host_index {
	bool on;
	const char *cache; /* the directory's path */
	uint64_t dev;      /* of the tree: what is mounted in it is always read */
	char name[65];
	const char *key;
	size_t key_len;
	char *bytes; /* the whole older file, or NULL */
	size_t len;
	struct index_part old;
	/*
	 * So many bytes of the older file are also what the new one begins with. As long as
	 * that is all there is of it nothing is copied, and `new` is empty.
	 */
	size_t same;
	bool differs;
	struct buf new; /* begins with the file's head and the key */
};

/* Where the cache is; NULL: nowhere. `env` may be NULL. Arena memory. */
const char *host_index_place(struct arena *arena, const char *const *env, uid_t uid);

/* Look for an index of the open directory. `key` tells what it must have been made for. */
void host_index_open(struct host_index *index, struct arena *arena, const char *cache, int tree,
	const char *key, size_t key_len);

/* What to write down for a directory; not the same next time if it changed just now. */
void index_identify(const struct host_index *index, const struct stat *st,
	const struct timespec *now, struct index_record *record);
bool index_unchanged(const struct index_record *record, const struct stat *st);

/* A directory begins and ends; *ret_at is its place for index_end. */
size_t index_begin(struct host_index *index, const struct index_record *record, const char *list);
void index_end(struct host_index *index, size_t at);
/* Go on in a copy of what has been the same so far. */
void index_differ(struct host_index *index);

/* Write it, if it says anything new. */
void host_index_store(struct host_index *index, uint64_t seen);
void host_index_free(struct host_index *index);

/* host_index_file.c */
int index_dir_open(const char *cache, bool make); /* a descriptor or -errno */
#define INDEX_MAGIC "agentbox index 1"
struct index_head {
	char magic[16];
	uint64_t sum;   /* of all that follows */
	uint64_t bytes; /* that follow */
};
uint64_t index_sum(const char *data, size_t len);

#endif
