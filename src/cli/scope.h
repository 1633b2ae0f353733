/*
 * scope: a control group of our own from systemd, for a caller whose own group cannot be used. The
 * asking is done by a helper program, which starts only then.
 */
#ifndef AGENTBOX_CLI_SCOPE_H
#define AGENTBOX_CLI_SCOPE_H

#include <stdbool.h>

#include "base/err.h"

/*
 * Have this process moved into the new, delegated unit NAME.scope of the system's manager, or of
 * the user's one, in which it is alone; what was probed about control groups before is void then.
 * The scope goes when the process ends. Waits for at most about six seconds.
 * Errors: cgroup_unavailable; as a rule nothing has changed then.
 */
int scope_enter(bool system, const char *name, struct err *err);

/* The same by the helper `program`, waiting for at most `limit_ms` milliseconds: for tests. */
int scope_ask(const char *program, bool system, const char *name, int limit_ms, struct err *err);

#endif
