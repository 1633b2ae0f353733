/* results: kept results as the commands `diff` and `apply` name and show them. */
#ifndef AGENTBOX_CLI_RESULTS_H
#define AGENTBOX_CLI_RESULTS_H

#include "base/buf.h"
#include "base/json.h"
#include "cli/cli.h"
#include "workspace/kept.h"
#include "workspace/session.h"

/* What a command line of the form [RESULT] [PATTERN...] asks for. */
struct results_choice {
	const char *id;              /* NULL: the latest of the workspace, or a session's */
	const char *session;         /* NULL: none */
	const char *const *patterns; /* NULL-terminated, or NULL: all */
	bool looking; /* nothing is changed: a session whose processes are kept is looked at as it
			 is at the moment */
};

/* Is this word the identity of a result, and not a pattern? 26 characters, a ULID. */
bool results_is_id(const char *word);

/*
 * The arguments; strings are theirs, the list is in the arena. The first one is a result's
 * identity, or the name of a session that there is, or a pattern as all others.
 */
void results_choose(const struct options *options, const char *state, struct arena *arena,
	struct results_choice *ret);

/* One that is open. */
struct results_open {
	struct kept kept;
	struct session session; /* when it is one: locked, and its layer for us alone */
	int turn;
};
void results_close(struct results_open *open);

/*
 * Open what was chosen; `given`: -C, or NULL. Returns CLI_YES, CLI_NO when there is no such result
 * (it was said on stderr), or -1 with *err.
 */
int results_open(const struct results_choice *choice, const char *given, const char *state,
	struct results_open *ret, struct err *err);

#endif
