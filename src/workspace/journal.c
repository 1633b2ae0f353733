/*
 * journal: what an apply was about to do, in a file, so that the next one can bring it to an end
 * when it was interrupted: by a signal that cannot be caught, or by the power going.
 *
 *	1. The journal is written, with every step. Its first line says S, for staging.
 *	2. All that is new is written under temporary names that the journal's tag and numbers tell.
 *	   Nothing that was there before has changed (but for the permission of a directory to be
 *	   written, where that is lacking and is lent; the journal knows what it was).
 *	   Interrupted here: the temporary files are removed, permissions are given back.
 *	3. All of it is made to reach the disk; then S becomes C, for commit: one byte.
 *	4. Deletions, renames and modes, each one call of the kernel. Whether one was done shows:
 *the name is gone, the temporary name is gone or holds what was in the place, the mode is right.
 *	   Interrupted here: all steps are gone through once more, and those that are done, passed.
 *	5. The journal is removed.
 *
 * So at each moment each file is what it was or what it is to be.
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

#define HEAD      "agentbox-journal 1 "
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

static int write_steps(struct apply_work *work, int fd)
{
	struct records_writer writer;
	size_t seq = 0;
	records_begin(&writer, fd);
	buf_addf(&writer.out, "%s%c %s\n", HEAD, STAGING, work->tag);
	for (size_t i = 0; i < work->count; i++) {
		struct record *step = &work->steps[i];
		if (step->action == ACTION_NONE || step->action == ACTION_INSIDE)
			continue;
		step->seq = seq++;
		records_put(&writer, step);
	}
	return records_end(&writer);
}

int journal_begin(struct apply_work *work, int state, const char *name)
{
	char fresh[256];
	if (snprintf(fresh, sizeof fresh, ".new-%s", name) >= (int)sizeof fresh)
		return -ENAMETOOLONG;
	int r = make_tag(work->tag);
	if (r < 0)
		return r;
	/* One that is not complete has staged nothing. */
	if (unlinkat(state, fresh, 0) < 0 && errno != ENOENT)
		return -errno;
	AUTO_FD fd =
		openat(state, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = write_steps(work, fd);
	if (r == 0 &&
		(fsync(fd) < 0 || renameat(state, fresh, state, name) < 0 || fsync(state) < 0))
		r = -errno;
	if (r < 0) {
		unlinkat(state, fresh, 0);
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

int journal_commit(int state, const char *name)
{
	AUTO_FD fd = openat(state, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = write_phase(fd, COMMIT);
	/* The caller will take all back: the journal must not say otherwise. */
	if (r < 0)
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
	return action && strchr("psxmdw", action);
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
		if (!action_known(work->steps[i].action) ||
			work->layers[work->steps[i].change.layer].lower < 0)
			r = -EBADMSG;
		work->steps[i].entry = APPLY_NONE;
		work->steps[i].seq = i;
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
	struct apply_self self;
	if (r == 0)
		r = apply_become(&work, &self);
	if (r == 0) {
		if (phase == STAGING)
			r = apply_take_back(&work);
		else
			apply_commit(&work);
		int back = apply_return(&self);
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
