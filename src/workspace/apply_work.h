/*
 * apply_work: what the parts of apply share. Private to this room.
 *
 * apply.c has the order of things, apply_judge.c decides what is to be done, apply_stage.c puts all
 * that is new under names of its own, apply_commit.c brings it to its place, journal.c remembers
 * where it was.
 */
#ifndef AGENTBOX_WORKSPACE_APPLY_WORK_H
#define AGENTBOX_WORKSPACE_APPLY_WORK_H

#include <stdbool.h>
#include <sys/stat.h>

#include "workspace/apply.h"
#include "workspace/records.h"
#include "workspace/dirs.h"

enum apply_action {
	ACTION_NONE = '-',
	ACTION_PUT = 'p',    /* the new file, under its temporary name, comes to its place */
	ACTION_INSIDE = 'i', /* lies in a directory that is put; nothing to do of its own */
	ACTION_SWAP = 's',   /* as put, where one of the two is a directory and the other is not */
	ACTION_DELETE = 'x',
	ACTION_MODE = 'm',     /* of a file whose content is the same */
	ACTION_DIR_MODE = 'd', /* of a directory that stays; set when all else is done */
	ACTION_LEND =
		'w', /* a directory without the permission to be written; as it was, at last */
};

#define APPLY_NONE SIZE_MAX

struct apply_work {
	const struct changes_layer *layers;
	size_t layer_count;
	struct dirs *lower, *upper; /* one for each layer */
	/*
	 * One step for each change, and ACTION_LEND ones behind them; or those of a journal.
	 * step.entry: index into entries, APPLY_NONE for those without; step.root: of
	 * ACTION_INSIDE, the step of the directory that is put; step.seq: the number in the
	 * journal, and in the temporary name.
	 */
	struct record *steps;
	size_t count;
	struct apply_entry *entries; /* NULL when a journal is carried out */
	char tag[17];                /* random, in all temporary names */
	struct arena *arena;
};

void apply_work_init(struct apply_work *work, const struct changes_layer *layers, size_t count,
	struct arena *arena);
void apply_work_free(struct apply_work *work);

/* Say how a step ended otherwise than by being done; it then has no action. */
void apply_set(struct apply_work *work, struct record *step, enum apply_outcome outcome, int errnum,
	const char *reason);

/* The temporary name of a step, beside its place. */
#define APPLY_TEMP_MAX 64
void apply_temp_name(const struct apply_work *work, const struct record *step, char *ret_name);

/* What the step's file is to be: type and permission bits, without set-id bits. */
mode_t apply_wanted(const struct change *change);

/* Is this the file that the base tells of? `exact`: also by the time of its last change of any
 * kind. */
bool apply_is_base(const struct stat *st, const struct apply_base *base, bool exact);

/* Does the change bring a directory to a place where there was none? */
bool apply_makes_dir(const struct record *step);

/* apply_owner.c: act as the owner of the first tree, where root would; and as before again. 0 or
 * -errno. */
#define APPLY_GROUPS_MAX 1024
struct apply_self {
	gid_t groups[APPLY_GROUPS_MAX];
	int group_count;
	gid_t gid;
	bool changed;
};
int apply_become(const struct apply_work *work, struct apply_self *ret);
int apply_return(const struct apply_self *self);

/* apply_judge.c: fill steps[] and entries[]; nothing is changed. */
void apply_judge(struct apply_work *work, const struct apply_options *options);

/*
 * apply_stage.c
 *
 * Open the new form of a change in its layer; its state in *ret. A descriptor, or -errno (ESTALE:
 * it is not of the type that the list says).
 */
int apply_open_new(
	struct apply_work *work, const struct change *c, uint64_t flags, struct stat *ret);
/* Give a new directory its mode and times, once all that is in it is there. 0 or -errno. */
int apply_finish_dir(struct apply_work *work, const struct record *step, int dir, const char *name);
/* 0, or -errno when it makes no sense to go on: take it back then. */
int apply_stage(struct apply_work *work);
/* Remove what was staged, and give directories their modes back. 0 or -errno of the last failure.
 */
int apply_take_back(struct apply_work *work);
/* Remove one temporary file or tree. 0 (also when it is not there) or -errno. */
int apply_discard(int dir, const char *temp);

/* apply_commit.c: bring all to its place; each step may have been done already. */
void apply_commit(struct apply_work *work);
/* Wait until the host's trees are on disk. */
void apply_sync(struct apply_work *work);

/* journal.c */

/* Write it, for work that is about to be staged. 0 or -errno. */
int journal_begin(struct apply_work *work, int state, const char *name);
/* From here on an interrupted apply is finished, no longer taken back. 0 or -errno. */
int journal_commit(int state, const char *name);
int journal_end(int state, const char *name);
/*
 * Finish or take back what a journal tells of, if there is one. 0; -ENOENT: there is none; or
 * another -errno, the journal being left.
 */
int journal_recover(const struct changes_layer *layers, size_t count, int state, const char *name);

#endif
