/*
 * keeper: begins, and is, the process that keeps a session's box. It has let go of everything of
 * the caller's: its session, terminal, directory and descriptors. What it has are the session's
 * directory and locks, so that nobody else has the layer or removes it, and the box.
 *
 * Killed, it takes the box along and leaves its record, by which the session is known as broken.
 */
#define _GNU_SOURCE
#include "cli/keeper.h"
#include "base/fd.h"
#include "box/sync.h"
#include "cli/cli.h"
#include "cli/runs.h"
#include "supervise/supervise.h"
#include "workspace/session_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define READY_MAX_MS 60000

int keeper_options(const struct options *options, struct err *err)
{
	/* Of the box, which is made once; or of one command that has a box of its own. */
	static const enum option_id not_here[] = { OPTION_run_cpu, OPTION_run_cpus,
		OPTION_run_memory, OPTION_run_pids, OPTION_run_disk, OPTION_run_lang,
		OPTION_run_tty, OPTION_run_keep_changes, OPTION_run_apply };
	for (size_t i = 0; i < sizeof not_here / sizeof *not_here; i++) {
		if (!options_has(options, not_here[i]))
			continue;
		err_set(err, ERR_unsupported, 0,
			"--%s cannot be had in a session that keeps its processes",
			option_info(not_here[i])->name);
		return err_hint_set(err, "session: {processes: drop}");
	}
	return 0;
}

/* --- in the keeper --- */

struct keeper {
	const struct session *session;
	const struct plan *plan;
	int turn, report, signal_fd;
	struct run_record record;
	struct box box;
	int listener;
};

/* Nothing of the caller's is left; what it passed is not shown by ps(1) for ever. */
static int let_go(struct keeper *keeper, struct err *err)
{
	const struct session *session = keeper->session;
	const struct plan *plan = keeper->plan;
	int keep[] = { session->dir, session->lock, keeper->turn, keeper->report };
	sigset_t old;
	int r = fd_close_others(keep, sizeof keep / sizeof *keep);
	for (int i = 0; i < 3 && r == 0; i++)
		if (open("/dev/null", O_RDWR | (i ? 0 : O_NOCTTY)) != i)
			r = -EBADF;
	if (r == 0 && (setsid() < 0 || chdir("/") < 0))
		r = -errno;
	keeper->signal_fd = r == 0 ? supervise_signals(&old) : r;
	if (keeper->signal_fd < 0)
		return err_set(err, ERR_no_resources, -keeper->signal_fd,
			"what keeps the session's processes cannot be made: %s",
			strerror(-keeper->signal_fd));
	(void)prctl(PR_SET_NAME, "agentbox-keeper", 0, 0, 0);
	const char *const title[] = { "agentbox-keeper ", session->name };
	if (plan->words_len) {
		size_t at = 0;
		memset(plan->words, 0, plan->words_len);
		for (size_t i = 0; i < 2; i++)
			for (const char *c = title[i]; *c && at + 1 < plan->words_len; c++)
				plan->words[at++] = *c;
	}
	return 0;
}

/* 0, or -1 with *err; the box may be there all the same. */
static int begin(struct keeper *keeper, struct err *err)
{
	if (let_go(keeper, err) < 0)
		return -1;
	/* Without it gc would not find what a killed keeper leaves. */
	int r = run_record_make(&keeper->plan->cgroup, &keeper->record);
	if (r < 0)
		return err_set(err, ERR_state_unusable, -r,
			"no record of the session's control groups can be written: %s",
			strerror(-r));
	if (box_spawn(keeper->plan, &keeper->box, err) < 0)
		return -1;
	keeper->box.reaped = false;
	if (box_groups(keeper->plan, &keeper->box, err) < 0) {
		box_init(&keeper->box);
		keeper->box.reaped = true;
		return -1;
	}
	if (supervise_keep_begin(keeper->plan, &keeper->box, keeper->signal_fd, err) < 0)
		return -1;
	r = keeper->listener = session_keeper_listen(keeper->session->dir);
	if (r >= 0)
		r = session_keeper_note(keeper->session->dir);
	if (r < 0)
		return err_set(err, ERR_state_unusable, -r,
			"what keeps the session's processes cannot be made: %s", strerror(-r));
	return 0;
}

static int report(const struct keeper *keeper, const struct err *err)
{
	struct sync_msg msg;
	memset(&msg, 0, sizeof msg);
	msg.magic = SYNC_MAGIC;
	msg.kind = err ? SYNC_FAILED : SYNC_READY;
	if (err)
		msg.err = *err;
	return sync_send(keeper->report, &msg, -1);
}

static _Noreturn void keeper_main(struct keeper *keeper)
{
	struct err err = { 0 };
	int r = begin(keeper, &err);
	/* Whoever wanted it is gone: nobody asked for a box that idles. */
	if (r == 0 && report(keeper, NULL) < 0) {
		box_kill(&keeper->box);
	} else if (r == 0) {
		fd_close(&keeper->report);
		r = supervise_keep(
			&keeper->box, keeper->listener, keeper->session->lock, keeper->signal_fd);
	} else {
		box_kill(&keeper->box);
	}
	bool own_end = r == 0 || keeper->report >= 0;
	(void)supervise_end(&keeper->box);
	run_record_end(&keeper->record, false);
	if (own_end)
		session_keeper_forget(keeper->session->dir);
	if (r < 0 && keeper->report >= 0)
		(void)report(keeper, &err);
	/* With the process go the locks and, last of all, the connections. */
	_exit(0);
}

/* --- in the command that begins it --- */

/* 0 once it is ready, -1 with *err. */
static int await(int report, struct err *err)
{
	struct sync_msg msg;
	struct pollfd wait = { .fd = report, .events = POLLIN };
	int fd = -1, n;
	do
		n = poll(&wait, 1, READY_MAX_MS);
	while (n < 0 && errno == EINTR);
	int r = n > 0 ? sync_recv(report, &msg, &fd) : -ETIMEDOUT;
	fd_close(&fd);
	if (r == 1 && msg.kind == SYNC_READY)
		return 0;
	if (r == 1 && msg.kind == SYNC_FAILED) {
		*err = msg.err;
		return -1;
	}
	return err_set(err, ERR_box_died, r < 0 ? -r : 0,
		"what keeps the session's processes ended before the box was made");
}

static int start(struct run_session *session, const struct plan *plan, struct err *err)
{
	struct keeper keeper = { .session = &session->session,
		.plan = plan,
		.turn = session->turn,
		.signal_fd = -1,
		.record = { .dir = -1, .file = -1 },
		.listener = -1 };
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, ERR_no_resources, errno, "socket: %s", strerror(errno));
	keeper.report = pair[1];
	box_init(&keeper.box);
	keeper.box.reaped = true;
	pid_t pid = fork();
	if (pid == 0)
		keeper_main(&keeper);
	fd_close(&pair[1]);
	int r = pid < 0 ? err_set(err, ERR_no_resources, errno, "fork: %s", strerror(errno))
			: await(pair[0], err);
	fd_close(&pair[0]);
	/* The lock is the keeper's now, if it lives. */
	fd_close(&session->turn);
	if (r < 0)
		return -1;
	session->keeper = session_keeper_connect(session->session.dir);
	if (session->keeper < 0)
		return err_set(err, ERR_session_broken, -session->keeper,
			"what keeps the session's processes cannot be reached: %s",
			strerror(-session->keeper));
	return 0;
}

int keeper_join(
	struct run_session *session, const struct plan *plan, struct box *ret_box, struct err *err)
{
	if (session->keeper < 0 && start(session, plan, err) < 0)
		return -1;
	return box_join(plan, fd_steal(&session->keeper), ret_box, err);
}
