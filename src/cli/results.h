/* results: kept results as the commands `diff` and `apply` name and show them. */
#ifndef AGENTBOX_CLI_RESULTS_H
#define AGENTBOX_CLI_RESULTS_H

#include "base/buf.h"
#include "base/json.h"
#include "cli/cli.h"
#include "workspace/kept.h"

/* What a command line of the form [RESULT] [PATTERN...] asks for. */
struct results_choice {
	const char *id;              /* NULL: the latest of the workspace */
	const char *const *patterns; /* NULL-terminated, or NULL: all */
};

/* Is this word the identity of a result, and not a pattern? 26 characters, a ULID. */
bool results_is_id(const char *word);

/* The arguments; strings are theirs, the list is in the arena. */
void results_choose(const struct options *options, struct arena *arena, struct results_choice *ret);

/*
 * Open what was chosen; `given`: -C, or NULL. Returns CLI_YES, CLI_NO when there is no such result
 * (it was said on stderr), or -1 with *err.
 */
int results_open(const struct results_choice *choice, const char *given, const char *state,
	struct kept *ret, struct err *err);

/* The path as it is shown: of other trees than the workspace an absolute one. Raw bytes. */
void results_path(const struct changes *changes, const struct change *change, struct buf *out);

/* Words: "created", "modified", "deleted"; "file", "directory", ... */
const char *results_kind(const struct change *change);
const char *results_type(const struct change *change);

/* The fields of one entry of the result's `changes`, into an open object. */
void results_put(struct json *json, const struct changes *changes, const struct change *change);

#endif
