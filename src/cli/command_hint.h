/* command_hint: why a command that is not there, or may not be executed, was probably meant. */
#ifndef AGENTBOX_CLI_COMMAND_HINT_H
#define AGENTBOX_CLI_COMMAND_HINT_H

#include "base/err.h"
#include "plan/plan.h"
#include "plan/request.h"

/*
 * Give an error command_not_found or not_executable a hint (and for a directory its own words) that
 * fits what was asked for; leave any other as it is. Looks at the host's files that the plan shows.
 */
void command_hint(const struct request *request, const struct plan *plan, struct err *err);

#endif
