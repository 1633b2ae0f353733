/*
 * ask: answers about a policy on this host, for `explain` and `test`. Makes the plan that `run`
 * would make, once, when the first question needs it.
 */
#ifndef AGENTBOX_CLI_ASK_H
#define AGENTBOX_CLI_ASK_H

#include "cli/cli.h"
#include "plan/explain.h"

struct ask {
	const struct policy *policy;
	struct request request;
	/*
	 * The policy without what this version cannot enforce and what no answer here rests on, so
	 * that such a policy can be explained too. `run` never sees it.
	 */
	struct policy supported;
	struct cli_run run;
	bool planned;  /* run.plan is there */
	bool filtered; /* filter is there */
	struct filter filter;
	bool refused; /* `run` would refuse the policy itself: */
	struct err why;
	struct arena arena; /* of the answers */
};

/* workspace: absolute, without links. Freed by ask_free(), also after failures. */
void ask_init(struct ask *ask, const struct policy *policy, const char *workspace,
	const char *const *caller_env);
void ask_free(struct ask *ask);

/*
 * Make the plan of the policy as it is. 0 when it can be made; else -1 with the reason in ask->why
 * and ask->refused set.
 */
int ask_plan(struct ask *ask);

/* Why `run` would refuse the policy here, with its place; NULL when it would not. */
const char *ask_refusal(struct ask *ask);

/* Make the plan that questions about paths are answered from. 0, or -1 with *err. */
int ask_ready(struct ask *ask, struct err *err);

/* The questions that `explain` and a policy's `tests` know. */
enum question { QUESTION_PATH, QUESTION_HOST, QUESTION_TOOL, QUESTION_SYSCALL };
const char *question_name(enum question kind); /* "path" */

/* 0 with *ret_answer, or -1 with *err: usage for the question, else what kept the plan away. */
int ask_question(struct ask *ask, enum question kind, const char *text, bool write,
	struct answer *ret_answer, struct err *err);

#endif
