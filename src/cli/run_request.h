/* run_request: from the options of `run` to the values that the run is made of. */
#ifndef AGENTBOX_CLI_RUN_REQUEST_H
#define AGENTBOX_CLI_RUN_REQUEST_H

#include "cli/cli.h"

/* What goes to the policy rather than into the request. */
struct run_words {
	const char **policies; /* -p, in order */
	size_t policy_count;
	struct policy_override *overrides;
	size_t override_count;
	const char *lang; /* NULL: a command */
	const char *code;
	size_t code_len;
};

/*
 * Read the options of `run` (and, for --code -, stdin). With --lang the command of *ret_request is
 * left for snippet_request(), which needs the policy. Strings are the arena's or the caller's.
 * Errors: usage, unsupported, workspace_not_found.
 */
int run_request(const struct options *options, const char *const *environ, struct arena *arena,
	struct run_words *ret_words, struct request *ret_request, struct err *err);

/* For -v: how long each part took. */
void run_times(const struct result *result, struct buf *out);

#endif
