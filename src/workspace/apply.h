/*
 * apply: brings changes from a private layer to the host, or says why not. Each file is written
 * beside its place and renamed over it; a journal makes an interrupted apply finish or roll back,
 * so that for every file the host has what it had before or what the box saw, never a part.
 *
 * It acts below the tree's descriptor only: openat2 with RESOLVE_BENEATH and without links, also
 * where somebody makes a link of a directory meanwhile. It runs no program, sets no owner, drops
 * set-id bits, makes links without following any, and leaves out FIFOs, sockets and devices.
 */
#ifndef AGENTBOX_WORKSPACE_APPLY_H
#define AGENTBOX_WORKSPACE_APPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "report/changes.h"
#include "workspace/changes.h"

/*
 * The host's file of a change as it was when the layer was kept: what apply must find again. A file
 * whose ctime is not before the start of the run was changed meanwhile, so it has a conflict from
 * the beginning.
 */
struct apply_base {
	bool there;
	bool conflict; /* changed by others while the command ran */
	mode_t mode;
	uint64_t size, ino;
	int64_t mtime_ns, ctime_ns;
};

enum apply_outcome {
	APPLY_DONE,      /* the host has it now; `reason`: but not quite as the box saw it */
	APPLY_SAME,      /* the host had it already */
	APPLY_SENSITIVE, /* left out: sensitive, and not allowed */
	APPLY_HELD,      /* left out: the policy hides or protects it */
	APPLY_UNCHOSEN,  /* left out: no pattern chose it */
	APPLY_SKIPPED,   /* left out: a FIFO, a socket or a device */
	APPLY_CONFLICT,  /* the host's file is not the one that the box saw */
	APPLY_FAILED,    /* an error, in errnum */
};

struct apply_entry {
	const struct change *change;
	enum apply_outcome outcome;
	int errnum;
	const char *reason; /* for people, NULL: nothing to say */
};

struct apply_options {
	const char *const *patterns; /* NULL-terminated, or NULL: all; as in filesystem.hide */
	bool allow_sensitive;
	bool dry_run;       /* find out, change nothing */
	int64_t started_ns; /* CLOCK_REALTIME when the box was made; 0: not known */
};

struct apply_report {
	struct apply_entry *list; /* one for each change that is not quiet, in the same order */
	size_t count;
	size_t quiet_count; /* of those that are, behind them */
	size_t counts[APPLY_FAILED + 1];
	struct arena arena;
};

/*
 * What the host has now of each change, in the order of the list; `started_ns`: CLOCK_REALTIME when
 * the box was made. *ret_bases from the arena. Errors: no_resources, workspace_unreadable.
 */
int apply_bases(const struct changes_layer *layers, const struct changes *changes,
	int64_t started_ns, struct arena *arena, struct apply_base **ret_bases, struct err *err);

/*
 * Apply. `layers[].lower` are the host's trees, `layers[].upper` where contents are read. The
 * journal is the file `journal` in the directory `state` (0700, the caller's): one that is there
 * already is finished first. Returns 0 with *ret_report (also when entries have conflicts: then
 * none of them was touched, and those that do not depend on them were applied), or -1 with *err
 * when nothing (more) could be done. Errors: apply_failed, apply_journal, no_resources.
 */
int apply_run(const struct changes_layer *layers, const struct changes *changes,
	const struct apply_base *bases, const struct apply_options *options, int state,
	const char *journal, struct apply_report *ret_report, struct err *err);
void apply_report_free(struct apply_report *report);

/* Does one of the patterns (as in struct apply_options) choose the path, or a directory above it?
 */
bool apply_chooses(const char *const *patterns, const char *path);

#endif
