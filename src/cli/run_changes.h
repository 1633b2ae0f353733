/* run_changes: what becomes of a run's changes: kept, or brought to the host. */
#ifndef AGENTBOX_CLI_RUN_CHANGES_H
#define AGENTBOX_CLI_RUN_CHANGES_H

#include <stdbool.h>

#include "cli/cli.h"

/*
 * Keep the layers of a run that has ended, and with `apply` bring its changes to the host, as
 * `agentbox apply` would: what is complete then is not kept any longer, unless `keep`. An apply
 * that is interrupted can be finished from what is kept. Whatever goes wrong, and what is left out,
 * is a warning of the result (changes_not_kept, apply_incomplete).
 */
void run_changes_finish(struct cli_run *run, bool keep, bool apply);

#endif
