/*
 * session: making, opening, listing and removing sessions. A session has its name from the moment
 * on at which it is whole, and loses it before the first of its files goes.
 */
#define _GNU_SOURCE
#include "workspace/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "workspace/session_files.h"
#include "workspace/session_keeper.h"
#include "workspace/state.h"

/* How long others are waited for, and how often they are looked at. */
#define WAIT_MS   1000
#define PAUSE_NS  10000000
#define ENDING_MS 10000 /* for a process that is on its way out */

bool session_name_valid(const char *name)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t len = strlen(name);
	return len > 0 && len <= SESSION_NAME_MAX && name[0] != '.' && name[0] != '-' &&
	       strspn(name, letters) == len;
}

const char *session_state_name(enum session_state state)
{
	return state == SESSION_READY ? "ready" : state == SESSION_RUNNING ? "running" : "broken";
}

static int refuse_name(const char *name, struct err *err)
{
	err_set(err, ERR_usage, 0, "\"%.100s\" cannot be the name of a session", name);
	return err_hint_set(err,
		"at most %d letters, digits, \".\", \"_\" and \"-\", not beginning with \".\" or "
		"\"-\"",
		SESSION_NAME_MAX);
}

static int not_found(const char *name, struct err *err)
{
	return err_set(err, ERR_session_not_found, ENOENT, "there is no session \"%s\"", name);
}

static int fail(const char *name, const char *what, int r, struct err *err)
{
	enum err_code code =
		r == -ENOSPC || r == -EDQUOT || r == -EMFILE || r == -ENFILE || r == -ENOMEM
			? ERR_no_resources
			: ERR_state_unusable;
	return err_set(err, code, -r, "session \"%s\" %s: %s", name, what, strerror(-r));
}

/* Where the sessions are; without `make`, ENOENT in *err when there was never one. */
static int open_place(const char *state, bool make, struct err *err)
{
	return state_open(state, SESSION_PLACE, make, err);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Is the name still that of the directory that we hold? */
static bool still_there(int place, const char *name, int dir)
{
	struct stat ours, theirs;
	return fstat(dir, &ours) == 0 && fstatat(place, name, &theirs, AT_SYMLINK_NOFOLLOW) == 0 &&
	       same_file(&ours, &theirs);
}

/* A name that no living call uses. */
static void hidden_name(const char *prefix, char ret_name[SESSION_HIDDEN_SIZE])
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(ret_name, SESSION_HIDDEN_SIZE, "%s%d-%lld%09ld", prefix, (int)getpid(),
		(long long)now.tv_sec, now.tv_nsec);
}

/* Fill a directory that is still hidden. */
static int fill(int dir, const struct session_source *source, struct err *err)
{
	struct timespec now;
	struct stat st;
	if (stat(source->workspace, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(err, ERR_workspace_not_found, errno, "workspace \"%.200s\": %s",
			source->workspace, strerror(errno));
	const char *part = session_parts_make(dir, st.st_uid, st.st_gid);
	if (part)
		return fail(source->name, "cannot be made", -errno, err);
	clock_gettime(CLOCK_REALTIME, &now);
	int r = session_meta_write(dir, source, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
	AUTO_FD lock = openat(dir, "lock", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (r == 0 && lock < 0)
		r = -errno;
	return r < 0 ? fail(source->name, "cannot be made", r, err) : 0;
}

static int make_hidden(
	int place, const char *hidden, const struct session_source *source, struct err *err)
{
	if (mkdirat(place, hidden, 0700) < 0)
		return fail(source->name, "cannot be made", -errno, err);
	AUTO_FD dir = openat(place, hidden, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || fchmod(dir, 0700) < 0 || flock(dir, LOCK_EX | LOCK_NB) < 0) {
		int r = -errno;
		(void)unlinkat(place, hidden, AT_REMOVEDIR);
		return fail(source->name, "cannot be made", r, err);
	}
	int r = 0;
	if (fill(dir, source, err) == 0) {
		r = sys_rename_noreplace(place, hidden, place, source->name);
		if (r == 0)
			return 0;
		if (r == -EEXIST)
			err_set(err, ERR_session_exists, EEXIST,
				"there is a session \"%s\" already", source->name);
		else
			fail(source->name, "cannot be made", r, err);
	}
	(void)session_clear(place, hidden);
	return -1;
}

int session_new(const char *state, const struct session_source *source, struct err *err)
{
	char hidden[SESSION_HIDDEN_SIZE];
	size_t count = 0;
	if (!session_name_valid(source->name))
		return refuse_name(source->name, err);
	AUTO_FD place = open_place(state, true, err);
	if (place < 0)
		return -1;
	int r = session_sweep(place, &count);
	if (r < 0)
		return fail(source->name, "cannot be made", r, err);
	if (count >= SESSION_COUNT_MAX)
		return err_set(err, ERR_no_resources, 0,
			"there are %d sessions already, more are not made", SESSION_COUNT_MAX);
	hidden_name(SESSION_NEW, hidden);
	return make_hidden(place, hidden, source, err);
}

static int broken(const char *name, const char *why, int errnum, struct err *err)
{
	err_set(err, ERR_session_broken, errnum, "session \"%s\" is broken: %s", name, why);
	return err_hint_set(err, "agentbox session rm %s", name);
}

/* Everything but the locks. */
static int look_into(struct session *session, const char *name, struct err *err)
{
	char why[128];
	int r = session_meta_read(session->dir, session);
	if (r < 0)
		return broken(name, "its file meta cannot be used", -r, err);
	const char *part = session_parts_check(session->dir);
	if (part) {
		snprintf(why, sizeof why, "its directory %s cannot be used: %s", part,
			strerror(errno));
		return broken(name, why, errno, err);
	}
	r = session_keeper(session->dir);
	if (r < 0)
		return broken(name,
			r == -ESRCH ? "what kept its processes is gone"
				    : "its file keeper cannot be used",
			-r, err);
	session->state = r > 0 ? SESSION_RUNNING : SESSION_READY;
	return 0;
}

/* When it was used: the kernel's clock for files is behind the one for all else. */
static int64_t used(int lock, int64_t created_ns)
{
	struct stat st;
	if (fstat(lock, &st) < 0)
		return created_ns;
	int64_t ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	return ns > created_ns ? ns : created_ns;
}

static int take_lock(struct session *session, const char *name, bool exclusive, struct err *err)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	session->lock = session_open_lock(session->dir);
	if (session->lock < 0)
		return broken(name, "its file lock cannot be used", -session->lock, err);
	int r = session_lock(session->lock, exclusive);
	for (int ms = 0; r == -EBUSY && ms < WAIT_MS; ms += PAUSE_NS / 1000000) {
		nanosleep(&pause, NULL);
		r = session_lock(session->lock, exclusive);
	}
	if (r == -EBUSY)
		return err_set(err, ERR_session_busy, EBUSY, "session \"%s\" is in use", name);
	return r < 0 ? fail(name, "cannot be locked", r, err) : 0;
}

static int open_locked(
	int place, const char *name, bool exclusive, struct session *session, struct err *err)
{
	session->dir = session_open_own(place, name);
	if (session->dir == -ENOENT)
		return not_found(name, err);
	if (session->dir < 0)
		return broken(name, "it is not a directory of your own that nobody else can use",
			-session->dir, err);
	if (take_lock(session, name, exclusive, err) < 0)
		return -1;
	/* Removed, and perhaps made again, before we had the lock. */
	if (!still_there(place, name, session->dir))
		return not_found(name, err);
	session_parts_mend(session->dir);
	return look_into(session, name, err);
}

int session_open(
	const char *state, const char *name, bool exclusive, struct session *ret, struct err *err)
{
	struct session session = { .dir = -1, .lock = -1 };
	if (!session_name_valid(name))
		return refuse_name(name, err);
	AUTO_FD place = open_place(state, false, err);
	if (place < 0)
		return err && err->errnum == ENOENT ? not_found(name, err) : -1;
	if (open_locked(place, name, exclusive, &session, err) < 0) {
		session_close(&session);
		return -1;
	}
	session.name = arena_strdup(&session.arena, name);
	session.used_ns = used(session.lock, session.created_ns);
	(void)futimens(session.lock, NULL);
	*ret = session;
	return 0;
}

void session_close(struct session *session)
{
	fd_close(&session->lock);
	fd_close(&session->dir);
	arena_free(&session->arena);
	*session = (struct session){ .dir = -1, .lock = -1 };
}

/* One line of the list; whatever is wrong with it is its state. */
static void judge(int place, const char *name, struct arena *arena, struct session *ret)
{
	struct session session = { .dir = session_open_own(place, name), .lock = -1 };
	ret->dir = ret->lock = -1;
	ret->name = name;
	ret->state = SESSION_BROKEN;
	if (session.dir >= 0 && look_into(&session, name, NULL) == 0) {
		session.lock = session_open_lock(session.dir);
		int locked = session.lock < 0 ? -1 : session_locked(session.lock);
		if (locked >= 0)
			ret->state = locked ? SESSION_RUNNING : session.state;
		if (session.lock >= 0)
			ret->used_ns = used(session.lock, session.created_ns);
	}
	ret->created_ns = session.created_ns;
	if (session.workspace)
		ret->workspace = arena_strdup(arena, session.workspace);
	if (session.policy)
		ret->policy = arena_strdup(arena, session.policy);
	session_close(&session);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct session *)a)->name, ((const struct session *)b)->name);
}

int session_list(const char *state, struct arena *arena, struct session **ret, size_t *ret_count,
	struct err *err)
{
	struct session *list = NULL;
	size_t count = 0;
	struct err trouble = { 0 };
	AUTO_FD place = open_place(state, false, &trouble);
	if (place < 0 && trouble.errnum != ENOENT) {
		*err = trouble;
		return -1;
	}
	DIR *names = place < 0 ? NULL : fdopendir(place);
	if (place >= 0 && !names)
		return err_set(err, ERR_no_resources, errno, "the sessions cannot be listed: %s",
			strerror(errno));
	for (const struct dirent *entry; names && (entry = readdir(names));) {
		if (entry->d_name[0] == '.')
			continue;
		if (count == 2 * SESSION_COUNT_MAX)
			break; /* none of ours: session_new() makes half as many at most */
		struct session *session = arena_push(arena, &list, &count, sizeof *session);
		session->name = arena_strdup(arena, entry->d_name);
	}
	for (size_t i = 0; i < count; i++)
		judge(place, list[i].name, arena, &list[i]);
	if (names) {
		closedir(names);
		place = -1;
	}
	if (count)
		qsort(list, count, sizeof *list, by_name);
	*ret = list;
	*ret_count = count;
	return 0;
}

/* A directory that says nobody may open it is opened all the same: it is ours to remove. */
static int open_anyhow(int place, const char *name)
{
	char link[32];
	struct stat st;
	AUTO_FD path = openat(place, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (path < 0 || fstat(path, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	snprintf(link, sizeof link, "/proc/self/fd/%d", path);
	if ((st.st_mode & 0700) != 0700 && chmod(link, 0700) < 0)
		return -errno;
	int fd = openat(path, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Nobody may have it. A lock that is none cannot be held; its directory can. */
static int seize(struct session *session, const char *name, struct err *err)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	int stopped = session_keeper_stop(session->dir);
	if (stopped < 0)
		return err_set(err, ERR_session_busy, -stopped, "session \"%s\" is in use", name);
	if (flock(session->dir, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? not_found(name, err)
					    : fail(name, "cannot be locked", -errno, err);
	int r = session->lock = session_open_lock(session->dir);
	if (r >= 0)
		r = session_lock(session->lock, true);
	/* What a keeper had is free a moment after it has closed the socket. */
	for (int ms = 0; stopped && r == -EBUSY && ms < WAIT_MS; ms += PAUSE_NS / 1000000) {
		nanosleep(&pause, NULL);
		r = session_lock(session->lock, true);
	}
	/* One that lives has the lock: if we have it, this one is about to end, and none begins. */
	for (int ms = 0; r == 0 && session_keeper(session->dir) == 1 && ms < ENDING_MS;
		ms += PAUSE_NS / 1000000)
		nanosleep(&pause, NULL);
	if (r == -EBUSY || session_keeper(session->dir) == 1)
		return err_set(err, ERR_session_busy, EBUSY, "session \"%s\" is in use", name);
	return 0;
}

static int remove_directory(int place, const char *name, struct session *session, struct err *err)
{
	char hidden[SESSION_HIDDEN_SIZE];
	if (seize(session, name, err) < 0)
		return -1;
	if (!still_there(place, name, session->dir))
		return not_found(name, err);
	hidden_name(SESSION_GONE, hidden);
	int r = sys_rename_noreplace(place, name, place, hidden);
	if (r == 0)
		r = session_clear(place, hidden);
	return r < 0 ? fail(name, "cannot be removed in full", r, err) : 0;
}

int session_remove(const char *state, const char *name, struct err *err)
{
	struct session session = { .dir = -1, .lock = -1 };
	size_t count;
	if (!session_name_valid(name))
		return refuse_name(name, err);
	AUTO_FD place = open_place(state, false, err);
	if (place < 0)
		return err && err->errnum == ENOENT ? not_found(name, err) : -1;
	int r = session.dir = open_anyhow(place, name);
	if (r == -ENOENT)
		return not_found(name, err);
	if (r == -ENOTDIR)
		r = unlinkat(place, name, 0) < 0 ? -errno : 0;
	else if (r >= 0)
		r = remove_directory(place, name, &session, err) < 0 ? 1 : 0;
	session_close(&session);
	(void)session_sweep(place, &count);
	if (r < 0)
		return fail(name, "cannot be removed", r, err);
	return r == 0 ? 0 : -1;
}
