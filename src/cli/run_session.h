/* run_session: a session as the place of one run. */
#ifndef AGENTBOX_CLI_RUN_SESSION_H
#define AGENTBOX_CLI_RUN_SESSION_H

#include "base/arena.h"
#include "base/err.h"
#include "plan/request.h"
#include "workspace/session.h"

struct run_session {
	struct session session; /* open, and locked for others that would change or remove it */
	int turn;               /* locked: one command at a time has the session's layer */
	bool open;
};

/*
 * Open the session, wait for the command that is in it to end, and fill *request's workspace and
 * places. A signal in signal_fd ends the waiting.
 * Errors: session_not_found, session_broken, session_busy, state_unusable, workspace_not_found.
 */
int run_session_open(const char *name, int signal_fd, struct arena *arena, struct run_session *ret,
	struct request *request, struct err *err);
void run_session_close(struct run_session *session);

#endif
