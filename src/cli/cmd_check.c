/* cmd_check: `agentbox check`: is a policy valid, and where is it not? */
#include <string.h>

#include "base/buf.h"
#include "cli/cli.h"

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
		policy_free(&policy);
	}
	if (r < 0) {
		say_error_text(&err, "", out);
		return CLI_NO;
	}
	if (verbose) {
		buf_add_visible(out, name, strlen(name), false);
		buf_adds(out, ": valid\n");
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
