/*
 * explain: the plan in JSON and in words, and questions answered from it. Everything is read from
 * the very value that the box's stages walk; nothing is looked up on the host.
 */
#ifndef AGENTBOX_PLAN_EXPLAIN_H
#define AGENTBOX_PLAN_EXPLAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "plan/plan.h"

struct policy;
struct origin;

/*
 * The whole plan as one line of JSON with a newline. Of variables that were passed from the caller
 * only the names are printed: values may be secret. 0 or -errno.
 */
int plan_explain_json(const struct plan *plan, struct buf *out);

/* For people: what is granted, by which line, and what on this host enforces it. 0 or -errno. */
int plan_explain_words(const struct plan *plan, struct buf *out);

/*
 * The same from the policy alone, when no plan can be built from it: `why` is the planner's error,
 * shown at the top. 0 or -errno.
 */
int policy_explain_words(const struct policy *policy, const struct err *why, struct buf *out);

struct answer {
	bool allowed;
	const char *words; /* why, with the policy's line where one decides; arena or static */
};

/*
 * May the command read (or write) the path? Decided by the operations in their order, then by the
 * Landlock rules, then by hide and protect patterns for what did not exist when the plan was made.
 * A relative path counts from the plan's cwd; links that the plan makes are followed. The path is
 * one of the host: in a directory that the box has of its own, as a private home, reading is denied
 * and writing is allowed. The mode bits of the host's files are not looked at. Errors: usage (too
 * long a path, too many links).
 */
int plan_ask_path(const struct plan *plan, const char *path, bool write, struct arena *arena,
	struct answer *ret_answer, struct err *err);

/*
 * The path as the box resolves it: absolute, clean, links of the plan followed; NULL when it is too
 * long. And the host's path that is shown there, NULL when none is.
 */
const char *plan_inside_path(const struct plan *plan, const char *path, struct arena *arena);
const char *plan_host_path(const struct plan *plan, const char *path, struct arena *arena);

/*
 * May the command connect to "HOST:PORT", "HOST" (port 443), "[V6]:PORT" or "V6"? By the policy
 * alone; no name is looked up. Errors: usage.
 */
int policy_ask_host(const struct policy *policy, const char *host_port, struct arena *arena,
	struct answer *ret_answer, struct err *err);

/* May the command call the host's tool of this name? Never fails. */
void policy_ask_tool(const struct policy *policy, const char *name, struct arena *arena,
	struct answer *ret_answer);

/*
 * May the command make the system call? One that depends on its arguments counts as allowed, and
 * the words say on what. Errors: usage (no such call on this architecture).
 */
int filter_ask_syscall(const struct filter *filter, const struct policy *policy, const char *name,
	struct arena *arena, struct answer *ret_answer, struct err *err);

/* Words for numbers of the plan; never NULL but for a namespace past the end. */
const char *explain_op_name(enum plan_op_kind kind);
const char *explain_rlimit(int resource);
const char *explain_namespace(size_t index, uint64_t *ret_bit);

/* "policy.yaml:7", "--memory", or "default" when it was not written anywhere. */
const char *explain_origin(const struct origin *at, struct arena *arena);

#endif
