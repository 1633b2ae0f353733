/*
 * keeper: the process that keeps a session's box with all that runs in it, when the policy says
 * session: {processes: keep}. It is made by the first command, belongs to none, and lives until
 * `session rm`, a signal or the end of the box.
 */
#ifndef AGENTBOX_CLI_KEEPER_H
#define AGENTBOX_CLI_KEEPER_H

#include "base/err.h"
#include "box/box.h"
#include "cli/options.h"
#include "cli/run_session.h"
#include "plan/plan.h"

/* Does no option of the command ask for what a box that is there already cannot give? 0 or -1. */
int keeper_options(const struct options *options, struct err *err);

/*
 * Run the plan's command in the session's box, which is made, with its keeper, when there is none
 * (session->keeper is -1; the session's turn is then the keeper's). On success *ret_box is as of
 * box_join(). Errors: those of box_spawn() and box_join(), of any stage, state_unusable.
 */
int keeper_join(
	struct run_session *session, const struct plan *plan, struct box *ret_box, struct err *err);

#endif
