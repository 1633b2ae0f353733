/*
 * run_session: one command in a session. Two commands may not have one layer at a time (overlayfs
 * leaves undefined what they would see), so they take turns, in any order.
 */
#define _GNU_SOURCE
#include "cli/run_session.h"
#include "base/fd.h"
#include "cli/cli.h"
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

static int wait_for_turn(int turn, int signal_fd, const char *name, struct err *err)
{
	struct pollfd signals = { .fd = signal_fd, .events = POLLIN };
	for (int waited = 0; flock(turn, LOCK_EX | LOCK_NB) < 0; waited += PAUSE_MS) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_set(err, ERR_session_busy, errno,
				"the session '%s' cannot be locked: %s", name, strerror(errno));
		if (waited >= WAIT_MS || poll(&signals, 1, PAUSE_MS) > 0)
			return err_set(err, ERR_session_busy, 0,
				"another command is in the session '%s'", name);
	}
	return 0;
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
	int r = ready(session->dir, "home", 0, request);
	if (r == 0)
		r = ready(session->dir, "tmp", 01777, request);
	if (r < 0)
		return err_set(err, ERR_session_broken, -r,
			"the directories of the session '%s' cannot be used: %s", session->name,
			strerror(-r));
	return 0;
}

int run_session_open(const char *name, int signal_fd, struct arena *arena, struct run_session *ret,
	struct request *request, struct err *err)
{
	struct run_session run = { .turn = -1 };
	const char *state = state_path(arena);
	if (!session_name_valid(name))
		return err_set(err, ERR_bad_session_name, 0,
			"\"%.100s\" cannot be the name of a session", name);
	if (session_open(state, name, false, &run.session, err) < 0)
		return -1;
	run.open = true;
	run.turn =
		openat(run.session.dir, "layer", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = run.turn >= 0 ? wait_for_turn(run.turn, signal_fd, name, err)
			      : err_set(err, ERR_session_broken, errno,
					"the session '%s' has no layer", name);
	if (r == 0)
		r = fill(&run.session, arena, request, err);
	if (r < 0)
		run_session_close(&run);
	else
		*ret = run;
	return r;
}

void run_session_close(struct run_session *run)
{
	if (!run->open)
		return;
	run->open = false;
	fd_close(&run->turn);
	session_close(&run->session);
}
