/*
 * journal: what an apply was about to do, in a file, so that the next one can bring it to an end
 * when it was interrupted: by a signal that cannot be caught, or by the power going.
 *
 *	1. The journal is written, with every step. Its first line says S, for staging.
 *	2. All that is new is written under temporary names that the journal's tag and numbers tell.
 *	   Nothing that was there before has changed (but for the permission of a directory to be
 *	   written, where that is lacking and is lent; the journal knows what it was).
 *	   Interrupted here: the temporary files are removed, permissions are given back.
 *	3. All of it is made to reach the disk; then the journal is written once more and replaces
 *	   the first: C, for commit, and the inodes of what was staged.
 *	4. Deletions, exchanges, renames, modes, times. What was done shows: the temporary name is
 *	   gone; or has what was in the place, to be removed; or has something of the host's that
 *	   was not what was judged, to be put back; or still has what was staged.
 *	   Interrupted here: all steps are gone through once more, and those that are done, passed.
 *	5. The journal is removed.
 *
 * So at each moment each file is what it was or what it is to be: in its place, but for one that is
 * to go, which has the temporary name while it is looked at. A directory that is not the one that
 * it was (by its inode) was moved or replaced by others meanwhile; then all directories of the
 * tree are searched for the temporary names.
 */
#define _GNU_SOURCE
#include "workspace/apply_work.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define HEAD      "agentbox-journal 2 "
#define STATE_AT  (sizeof HEAD - 1)
#define TAG_AT    (STATE_AT + 2)
#define TAG_LEN   ((size_t)16)
#define FIRST_LEN (TAG_AT + TAG_LEN + 1)
#define STAGING   'S'
#define COMMIT    'C'

static int make_tag(char *tag)
{
	unsigned char bytes[TAG_LEN / 2];
	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		return -EIO;
	for (size_t i = 0; i < sizeof bytes; i++)
		snprintf(tag + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

static int write_steps(struct apply_work *work, int fd, char phase)
{
	struct records_writer writer;
	records_begin(&writer, fd);
	buf_addf(&writer.out, "%s%c %s\n", HEAD, phase, work->tag);
	for (size_t i = 0; i < work->count; i++) {
		const struct record *step = &work->steps[i];
		if (step->action != ACTION_NONE && step->action != ACTION_INSIDE)
			records_put(&writer, step);
	}
	return records_end(&writer);
}

/* Whole, and then in its place. */
static int write_journal(struct apply_work *work, int state, const char *name, char phase)
{
	char fresh[256];
	if (snprintf(fresh, sizeof fresh, ".new-%s", name) >= (int)sizeof fresh)
		return -ENAMETOOLONG;
	/* One that is not complete has staged nothing. */
	if (unlinkat(state, fresh, 0) < 0 && errno != ENOENT)
		return -errno;
	AUTO_FD fd =
		openat(state, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	int r = write_steps(work, fd, phase);
	if (r == 0 && (fsync(fd) < 0 || renameat(state, fresh, state, name) < 0))
		r = -errno;
	if (r < 0)
		unlinkat(state, fresh, 0);
	return r;
}

int journal_begin(struct apply_work *work, int state, const char *name)
{
	size_t seq = 0;
	int r = make_tag(work->tag);
	for (size_t i = 0; i < work->count; i++)
		work->steps[i].seq = seq++;
	if (r == 0)
		r = write_journal(work, state, name, STAGING);
	if (r == 0 && fsync(state) < 0) {
		r = -errno;
		unlinkat(state, name, 0);
	}
	return r;
}

static int write_phase(int fd, char phase)
{
	ssize_t n = pwrite(fd, &phase, 1, (off_t)STATE_AT);
	if (n != 1)
		return n < 0 ? -errno : -EIO;
	return fsync(fd) < 0 ? -errno : 0;
}

int journal_commit(struct apply_work *work, int state, const char *name)
{
	int r = write_journal(work, state, name, COMMIT);
	if (r < 0)
		return r;
	if (fsync(state) == 0)
		return 0;
	/* The caller will take all back: the journal must not say otherwise. */
	r = -errno;
	AUTO_FD fd = openat(state, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		write_phase(fd, STAGING);
	return r;
}

int journal_end(int state, const char *name)
{
	if (unlinkat(state, name, 0) < 0)
		return -errno;
	return fsync(state) < 0 ? -errno : 0;
}

static bool action_known(char action)
{
	return action && strchr("psxmdtw", action);
}

/* The first line and the steps, each of a form that the other parts can rely on. */
static int parse(struct apply_work *work, const char *text, size_t len, char *ret_phase)
{
	if (len < FIRST_LEN || memcmp(text, HEAD, STATE_AT) != 0 || text[STATE_AT + 1] != ' ' ||
		text[FIRST_LEN - 1] != '\n')
		return -EBADMSG;
	memcpy(work->tag, text + TAG_AT, TAG_LEN);
	if (strspn(work->tag, "0123456789abcdef") != TAG_LEN)
		return -EBADMSG;
	*ret_phase = text[STATE_AT];
	if (*ret_phase != STAGING && *ret_phase != COMMIT)
		return -EBADMSG;
	int r = records_read(work->arena, text + FIRST_LEN, len - FIRST_LEN, work->layer_count,
		&work->steps, &work->count);
	for (size_t i = 0; r == 0 && i < work->count; i++) {
		struct record *step = &work->steps[i];
		bool top = strcmp(step->change.path, ".") == 0;
		if (!action_known(step->action) || (top && !strchr("dtw", step->action)) ||
			work->layers[step->change.layer].lower < 0)
			r = -EBADMSG;
		step->entry = step->root = step->link = APPLY_NONE;
	}
	return r;
}

static int open_journal(int state, const char *name)
{
	struct stat st;
	AUTO_FD fd = openat(state, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return -EPERM;
	return fd_steal(&fd);
}

int journal_recover(const struct changes_layer *layers, size_t count, int state, const char *name)
{
	AUTO_FD fd = open_journal(state, name);
	if (fd < 0)
		return fd;
	struct apply_work work;
	struct arena arena = { 0 };
	char *text, phase = 0;
	size_t len;
	apply_work_init(&work, layers, count, &arena);
	int r = fd_read_file(&arena, fd, RECORDS_FILE_MAX + FIRST_LEN, &text, &len);
	if (r == 0)
		r = parse(&work, text, len, &phase);
	if (r == 0) {
		r = phase == STAGING ? apply_take_back(&work) : apply_commit(&work);
		int back = apply_return(&work);
		r = r < 0 ? r : back;
	}
	/* A step that failed for good is told of by the apply that follows. */
	if (r == 0 && phase == COMMIT)
		apply_sync(&work);
	if (r == 0)
		r = journal_end(state, name);
	apply_work_free(&work);
	arena_free(&arena);
	return r == -ENOENT ? -EIO : r;
}
