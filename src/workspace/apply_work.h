/*
 * apply_work: what the parts of apply share. Private to this room.
 *
 * apply.c has the order of things, apply_judge.c decides what is to be done, apply_links.c which of
 * it is one file of several names; apply_stage.c puts all that is new under names of its own,
 * apply_back.c takes that away again, apply_commit.c brings it to its place, by apply_place.c;
 * apply_times.c gives directories their times, apply_sweep.c finds what others moved meanwhile,
 * apply_owner.c says as whom all that is done, journal.c remembers where it was.
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
	ACTION_TIMES = 't',    /* of a directory, when what is in it is done */
	ACTION_LEND =
		'w', /* a directory without the permission to be written; as it was, at last */
};

#define APPLY_NONE SIZE_MAX

#define APPLY_TEMP_MAX 64

/* Where on the host new files are staged. */
struct apply_cursor {
	struct dirs *lower; /* one for each layer */
	struct dirs inside; /* of the directory that is put, while it has its temporary name */
	int inside_fd;
	size_t inside_root; /* its step */
	char temp[APPLY_TEMP_MAX];
};

/* As whom root acts now: apply_owner.c. */
#define APPLY_GROUPS_MAX 1024
struct apply_self {
	bool root;
	uid_t uid;
	gid_t gid;
	gid_t own_gid;
	gid_t groups[APPLY_GROUPS_MAX];
	int group_count;
};

struct apply_work {
	const struct changes_layer *layers;
	size_t layer_count;
	struct dirs *lower, *upper; /* one for each layer */
	struct apply_cursor *staged, *linked;
	/*
	 * One step for each change, and those of directories behind them; or those of a journal.
	 * step.entry: index into entries, APPLY_NONE for those without; step.root: of
	 * ACTION_INSIDE, the step of the directory that is put; of others, the ACTION_TIMES of the
	 * directory that it is in, or APPLY_NONE; step.link: the step of whose file it is another
	 * name, or APPLY_NONE; step.seq: the number in the temporary name; step.dir_ino: of the
	 * directory that it is in, 0: not known; step.new_ino: of what was staged, likewise;
	 * step.touched: of ACTION_TIMES: something in it was done; step.lost: its directory is not
	 * where it was, and what was staged was not found.
	 */
	struct record *steps;
	size_t count;
	struct apply_entry *entries; /* NULL when a journal is carried out */
	struct arena *told;          /* of the texts in them */
	char tag[17];                /* random, in all temporary names */
	bool lost; /* a directory is not where it was: temporary names may be somewhere else */
	struct apply_self self;
	struct arena *arena;
};

void apply_work_init(struct apply_work *work, const struct changes_layer *layers, size_t count,
	struct arena *arena);
void apply_work_free(struct apply_work *work);

/* Say how a step ended otherwise than by being done; it then has no action. */
void apply_set(struct apply_work *work, struct record *step, enum apply_outcome outcome, int errnum,
	const char *reason);

/* Done, but not quite as in the box. */
void apply_note(struct apply_work *work, struct record *step, const char *reason);

/* The temporary name of a step, beside its place. */
void apply_temp_name(const struct apply_work *work, const struct record *step, char *ret_name);

/* What the step's file is to be: type and permission bits, without set-id bits. */
mode_t apply_wanted(const struct change *change);

/* Looking up what the host has of changes, one after the other in the order of a list. */
struct apply_looking {
	const struct changes_layer *layers;
	int64_t started_ns; /* as of apply_bases() */
	bool begun;
	size_t layer;
	struct dirs dirs; /* of that layer's lower tree */
};
/* 0, or -1 with *err as of apply_bases(). */
int apply_look(struct apply_looking *looking, const struct change *change, struct apply_base *ret,
	struct err *err);
void apply_look_end(struct apply_looking *looking);

/* Is this the file that the base tells of? `exact`: also by the time of its last change of any
 * kind. */
bool apply_is_base(const struct stat *st, const struct apply_base *base, bool exact);

/* Does the change bring a directory to a place where there was none? */
bool apply_makes_dir(const struct record *step);

/* Directories of a host's tree have been opened: be whom apply is below them. 0 or -errno. */
int apply_act(struct apply_work *work, const struct dirs *dirs);
int apply_act_as(struct apply_work *work, uid_t uid, gid_t gid);
/* As before. 0 or -errno. */
int apply_return(struct apply_work *work);

/* apply_judge.c: fill steps[] and entries[]; nothing is changed. */
void apply_judge(struct apply_work *work, const struct apply_options *options);

/* Why this change may not be brought to what the host has (NULL: nothing), or NULL. */
const char *apply_conflict(const struct record *step, const struct stat *host);

/* apply_links.c: which of the steps are other names of one file (step.link). */
void apply_find_links(struct apply_work *work, const struct apply_options *options);

/*
 * apply_times.c: add an ACTION_TIMES for each directory in which something is to be done.
 * `started_ns` as in struct apply_options.
 */
void apply_find_times(struct apply_work *work, int64_t started_ns);
/* Carry it out. */
void apply_commit_times(struct apply_work *work, struct record *step);

/*
 * apply_stage.c
 *
 * Open the new form of a change in its layer; its state in *ret. A descriptor, or -errno (ESTALE:
 * it is not of the type that the list says).
 */
int apply_open_new(
	struct apply_work *work, const struct change *c, uint64_t flags, struct stat *ret);
/* Give a new directory its mode and times, once all that is in it is there. `fd`: O_PATH. 0 or
 * -errno. */
int apply_finish_dir(struct apply_work *work, const struct record *step, int fd);
void apply_leave_staged(struct apply_cursor *cursor);
/* 0, or -errno when it makes no sense to go on: take it back then. */
int apply_stage(struct apply_work *work);

/* apply_back.c */

/* Are there more than `max` names in the directory `name` of `parent`? 1, 0 or -errno. */
int apply_holds_more(int parent, const char *name, size_t max);

/* Let a directory be written for as long as it takes. 0 or -errno. */
int apply_lend(struct apply_work *work, struct record *step);
/* Remove what was staged, and give directories their modes back. 0 or -errno of the last failure.
 */
int apply_take_back(struct apply_work *work);
/* Remove a temporary file or tree, if it is that inode (0: it is not known). 0 (also when it is not
 * there) or -errno. */
int apply_discard(int dir, const char *temp, uint64_t ino);

/*
 * apply_place.c: a step at its place, `dir` and `name`. All return 0 when it is done, -ESTALE: what
 * is in the place is not what was judged, and still is there; -EEXIST: the place is not free;
 * -ENOTEMPTY: files stay in a directory; -ENOENT: there is nothing under the temporary name (any
 * more); -EAGAIN: something of the host's is left under the temporary name; or another -errno.
 */
int apply_place_put(struct apply_work *work, const struct record *step, int dir, const char *name);
int apply_place_delete(
	struct apply_work *work, const struct record *step, int dir, const char *name);
/* What an interrupted one of these left under the temporary name: undo or end it. */
int apply_place_settle(
	struct apply_work *work, const struct record *step, int dir, const char *name);

/*
 * apply_sweep.c: look for temporary names in all directories of the trees, and settle or discard
 * them. 0 or -errno of the last failure.
 */
int apply_sweep(struct apply_work *work);

/* apply_commit.c: bring all to its place; each step may have been done already. 0, or -errno when
 * something that was staged may be left somewhere. */
int apply_commit(struct apply_work *work);
/* Wait until the host's trees are on disk. */
void apply_sync(struct apply_work *work);

/* journal.c */

/* Write it, for work that is about to be staged. 0 or -errno. */
int journal_begin(struct apply_work *work, int state, const char *name);
/* From here on an interrupted apply is finished, no longer taken back. 0 or -errno. */
int journal_commit(struct apply_work *work, int state, const char *name);
int journal_end(int state, const char *name);
/*
 * Finish or take back what a journal tells of, if there is one. 0; -ENOENT: there is none; or
 * another -errno, the journal being left.
 */
int journal_recover(const struct changes_layer *layers, size_t count, int state, const char *name);

#endif
