/* run_session: a session as the place of one run. */
#ifndef AGENTBOX_CLI_RUN_SESSION_H
#define AGENTBOX_CLI_RUN_SESSION_H

#include "base/arena.h"
#include "base/err.h"
#include "plan/request.h"
#include "workspace/session.h"

struct run_session {
	struct session session; /* open, and locked for others that would change or remove it */
	int turn;   /* locked: one box at a time has the session's layer; -1: not ours */
	int keeper; /* a connection to who keeps the session's box; -1: there is none yet */
	bool open;
};

/*
 * Open the session and fill *request's workspace and places.
 * Errors: session_not_found, session_broken, session_busy, state_unusable, workspace_not_found.
 */
int run_session_open(const char *name, struct arena *arena, struct run_session *ret,
	struct request *request, struct err *err);
/*
 * Before anything is done there: wait for the box that is in it to end; with `keep`, until there is
 * a keeper's box to join, or none. A signal in signal_fd ends the waiting.
 * Errors: session_broken, session_busy.
 */
int run_session_enter(struct run_session *run, bool keep, const struct request *request,
	int signal_fd, struct err *err);
void run_session_close(struct run_session *session);

#endif
