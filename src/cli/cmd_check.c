/* cmd_check: `agentbox check`: is a policy valid, and where is it not? */
#include <string.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "plan/gaps.h"

static void note(struct buf *out, const char *name, const char *key, const struct origin *at)
{
	buf_add_visible(out, name, strlen(name), false);
	buf_addf(out, ": note: `run` refuses %s in this version (", key);
	buf_add_visible(out, at->file, strlen(at->file), false);
	buf_addf(out, ":%d)\n", at->line);
}

/* Keys that are right, and that `run` refuses all the same. */
static void note_gaps(const char *name, const struct policy *policy, struct buf *out)
{
	struct plan_gap gaps[PLAN_GAPS_MAX];
	size_t count = plan_gaps(policy, gaps);
	for (size_t i = 0; i < count; i++)
		note(out, name, gaps[i].key, gaps[i].at);
}

/* Its mistakes are what this command is asked for, so they are its output: 1 with one, else 0. */
static int check_one(const char *name, const struct policy_env *env, bool verbose, struct buf *out)
{
	struct policy policy;
	struct filter filter;
	struct err err;
	int r = policy_load(&name, 1, NULL, 0, env, &policy, &err);
	if (r == 0) {
		/* Which system calls there are, only the filter knows. */
		r = filter_get(&policy, &policy.arena, &filter, &err);
		if (r == 0 && verbose) {
			buf_add_visible(out, name, strlen(name), false);
			buf_adds(out, ": valid\n");
			note_gaps(name, &policy, out);
		}
		policy_free(&policy);
	}
	if (r < 0) {
		say_error_text(&err, "", out);
		return CLI_NO;
	}
	return CLI_YES;
}

int cmd_check(const struct cli *cli, struct err *err)
{
	const struct options *options = &cli->options;
	if (options->arg_count == 0)
		return err_set(err, ERR_usage, 0, "no policy is named");
	struct arena arena = { 0 };
	struct policy_env env;
	paths_policy_env(&arena, &env);
	int status = CLI_YES;
	for (size_t i = 0; i < options->arg_count && status >= 0; i++) {
		AUTO_BUF out = { 0 };
		if (check_one(options->args[i], &env, options_has(options, OPTION_check_verbose),
			    &out) != CLI_YES)
			status = CLI_NO;
		if (say_out(&out, err) < 0)
			status = -1;
	}
	arena_free(&arena);
	return status;
}
