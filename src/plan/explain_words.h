/*
 * explain_words: lines of text for people, shared by the two renderers in words. Private to plan/.
 */
#ifndef AGENTBOX_PLAN_EXPLAIN_WORDS_H
#define AGENTBOX_PLAN_EXPLAIN_WORDS_H

#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"

struct plan;
struct plan_op;
struct policy;
struct origin;

struct words {
	struct buf
		*out; /* borrowed; when it is full the rest is left out and `out->full` says so */
	struct arena arena; /* scratch, freed by the renderer */
	size_t column;      /* inside a list: where the line stands */
	size_t listed;
};

#define WORDS_WIDTH 79

/* One line; control characters in the values are made visible. */
void words_line(struct words *words, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "TITLE: text" behind an empty line. */
void words_title(struct words *words, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * A list: "  LABEL   item item item" wrapped below the first item; past WORDS_LIST_MAX items only
 * their number is told.
 */
#define WORDS_LIST_MAX 40
void words_list_begin(struct words *words, const char *label);
void words_list_add(struct words *words, const char *item);
void words_list_end(struct words *words, const char *note); /* " - NOTE"; NULL: none */

/* Why an operation is there, for people; static or the operation's own, never NULL. */
const char *explain_why(const struct plan_op *op);

/* " (policy.yaml:7)"; "" for a default. */
const char *words_at(struct words *words, const struct origin *at);

/* 60000000 -> "60s", 536870912 -> "512MiB" */
const char *words_duration(struct words *words, uint64_t us);
const char *words_size(struct words *words, uint64_t bytes);

/* What holds the limits whose holder the plan decides: ends of a line. */
struct words_holders {
	const char *cpu, *cpus, *memory, *pids, *disk;
};

/* Parts that come from the policy alone. */
void words_policy_head(struct words *words, const struct policy *policy);
void words_policy_network(struct words *words, const struct policy *policy);
/* `holders` NULL: what would be needed. */
void words_policy_limits(
	struct words *words, const struct policy *policy, const struct words_holders *holders);
void words_policy_calls(struct words *words, const struct policy *policy);
void words_policy_tools(struct words *words, const struct policy *policy);
/* What this version cannot enforce: one line a key. Returns how many. */
size_t words_policy_unsupported(struct words *words, const struct policy *policy);

#endif
