/*
 * run_session: one command in a session. Two boxes may not have one layer at a time (overlayfs
 * leaves undefined what they would see), so they take turns, in any order. A box that is kept has
 * its turn until its keeper ends, and commands join it.
 */
#define _GNU_SOURCE
#include "cli/run_session.h"
#include "base/fd.h"
#include "cli/cli.h"
#include "workspace/session_keeper.h"
#include "workspace/state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAUSE_MS 20
#define WAIT_MS  600000

/* 1: ours, 0: not yet, -1 with *err. */
static int try_turn(struct run_session *run, struct err *err)
{
	if (flock(run->turn, LOCK_EX | LOCK_NB) == 0)
		return 1;
	if (errno == EWOULDBLOCK || errno == EINTR)
		return 0;
	return err_set(err, ERR_session_busy, errno, "the session '%s' cannot be locked: %s",
		run->session.name, strerror(errno));
}

/* 1: there is one, 0: not now, -1 with *err. */
static int try_keeper(struct run_session *run, struct err *err)
{
	int fd = session_keeper_connect(run->session.dir);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return err_set(err, ERR_session_broken, -fd,
			"what keeps the processes of the session '%s' cannot be reached: %s",
			run->session.name, strerror(-fd));
	run->keeper = fd;
	return 1;
}

static int wait_for_turn(struct run_session *run, bool keep, int signal_fd, struct err *err)
{
	struct pollfd signals = { .fd = signal_fd, .events = POLLIN };
	for (int waited = 0;; waited += PAUSE_MS) {
		int r = keep ? try_keeper(run, err) : 0;
		if (r == 0)
			r = try_turn(run, err);
		if (r != 0)
			return r < 0 ? r : 0;
		if (waited >= WAIT_MS || poll(&signals, 1, PAUSE_MS) > 0)
			return err_set(err, ERR_session_busy, 0,
				"another command is in the session '%s'", run->session.name);
	}
}

/* A directory that the box has as its own: the owner's as whom it acts, with a mode of its kind. */
static int ready(int dir, const char *name, mode_t mode, const struct request *request)
{
	AUTO_FD fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if ((st.st_uid != request->layers_uid || st.st_gid != request->layers_gid) &&
		fchown(fd, request->layers_uid, request->layers_gid) < 0)
		return -errno;
	if ((st.st_mode & 07777) != mode && mode && fchmod(fd, mode) < 0)
		return -errno;
	return 0;
}

static int fill(const struct session *session, struct arena *arena, struct request *request,
	struct err *err)
{
	struct stat st;
	if (stat(session->workspace, &st) < 0)
		return err_set(err, ERR_workspace_not_found, errno,
			"the workspace '%s' of the session is not there any more",
			session->workspace);
	bool root = geteuid() == 0;
	request->workspace = arena_strdup(arena, session->workspace);
	request->workspace_given = true;
	request->session = true;
	request->layers_uid = root ? st.st_uid : geteuid();
	request->layers_gid = root ? st.st_gid : getegid();
	request->layers_dir =
		arena_printf(arena, "%s/sessions/%s", state_path(arena), session->name);
	return 0;
}

int run_session_open(const char *name, struct arena *arena, struct run_session *ret,
	struct request *request, struct err *err)
{
	struct run_session run = { .turn = -1, .keeper = -1 };
	const char *state = state_path(arena);
	if (!session_name_valid(name))
		return err_set(err, ERR_bad_session_name, 0,
			"\"%.100s\" cannot be the name of a session", name);
	if (session_open(state, name, false, &run.session, err) < 0)
		return -1;
	run.open = true;
	int r = fill(&run.session, arena, request, err);
	if (r < 0)
		run_session_close(&run);
	else
		*ret = run;
	return r;
}

int run_session_enter(struct run_session *run, bool keep, const struct request *request,
	int signal_fd, struct err *err)
{
	const struct session *session = &run->session;
	run->turn = openat(session->dir, "layer", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (run->turn < 0)
		return err_set(err, ERR_session_broken, errno, "the session '%s' has no layer",
			session->name);
	if (wait_for_turn(run, keep, signal_fd, err) < 0)
		return -1;
	if (run->keeper >= 0) {
		fd_close(&run->turn);
		return 0;
	}
	/* Its keeper was killed after the session was opened. */
	int r = session_keeper_left(session->dir);
	if (r != 0)
		return err_set(err, ERR_session_broken, r < 0 ? -r : ESRCH,
			"what kept the processes of the session '%s' is gone", session->name);
	r = ready(session->dir, "home", 0, request);
	if (r == 0)
		r = ready(session->dir, "tmp", 01777, request);
	if (r < 0)
		return err_set(err, ERR_session_broken, -r,
			"the directories of the session '%s' cannot be used: %s", session->name,
			strerror(-r));
	return 0;
}

void run_session_close(struct run_session *run)
{
	if (!run->open)
		return;
	run->open = false;
	fd_close(&run->turn);
	fd_close(&run->keeper);
	session_close(&run->session);
}
