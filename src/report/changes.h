/*
 * changes: what a command changed in the trees that it wrote through a private layer, as a value.
 * Filled by workspace/changes.c, written by report/, carried out by workspace/apply.c.
 */
#ifndef AGENTBOX_REPORT_CHANGES_H
#define AGENTBOX_REPORT_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"

enum change_kind { CHANGE_CREATED, CHANGE_MODIFIED, CHANGE_DELETED };

struct change {
	const char
		*path; /* below the layer's tree, as the bytes are; no leading "/"; ".": itself */
	size_t layer;  /* index into changes.roots */
	enum change_kind kind;
	mode_t mode;    /* with S_IFMT: of what is there now; deleted: of what was there */
	uint64_t size;  /* of a regular file, else 0 */
	bool sensitive; /* something outside may run it or act on it later: sensitive.def */
	bool held;      /* the policy hides or protects the name: never applied */
	bool escapes;   /* a link that is there now and may lead out of the tree, by its text */
	bool quiet;     /* only its times, or which names are one file, differ: for apply, not for
			   people */
	const char *target; /* text of a symbolic link (deleted: that it had), NULL for all else */
};

struct changes {
	/*
	 * The trees, the workspace first. Where there are more, a path of those behind it is shown
	 * as an absolute one.
	 */
	const char *const *roots; /* absolute paths of the host */
	size_t root_count;
	/*
	 * By layer; within one "." first, then as a walk gives them that takes the names of a
	 * directory by their bytes and goes down at once: "a", "a/z", "a b", "a.b". So they are
	 * sorted by the bytes of the paths, with "/" before all others, and a directory stands
	 * before what is below it.
	 */
	struct change *list;
	size_t count;
	uint64_t left_out; /* found, but past CHANGES_MAX entries or CHANGES_TEXT_MAX bytes of names
			    */
	struct arena arena; /* holds all of it */
};

struct json;

/* Words: "created", "modified", "deleted"; "file", "directory", ... */
const char *changes_kind(const struct change *change);
const char *changes_type(const struct change *change);
/* The path as it is shown; raw bytes. */
void changes_path(const struct changes *changes, const struct change *change, struct buf *out);
/* One entry, as an object of the array at hand. */
void changes_put_one(struct json *json, const struct changes *changes, const struct change *change);
/* The list as the member "changes" of the object at hand. */
void changes_put(struct json *json, const struct changes *changes);

/* What the result lists at most; what is kept for `apply` has no such bound. */
#define CHANGES_MAX      ((size_t)10000)
#define CHANGES_TEXT_MAX ((size_t)4 << 20)

#endif
