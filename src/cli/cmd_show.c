/* cmd_show: `agentbox show`: a policy as it is after `extends`. */
#include "base/buf.h"
#include "cli/cli.h"

static int show(const struct policy *policy, bool json, struct err *err)
{
	AUTO_BUF out = { 0 };
	int error = json ? policy_show_json(policy, &out) : policy_show_yaml(policy, &out);
	if (error)
		return err_set(err, ERR_internal, error < -1 ? -error : 0,
			"the policy cannot be shown: it is too large");
	return say_out(&out, err) < 0 ? -1 : CLI_YES;
}

int cmd_show(const struct cli *cli, struct err *err)
{
	const struct options *options = &cli->options;
	if (options->arg_count != 1)
		return err_set(err, ERR_usage, 0,
			options->arg_count ? "show takes one policy" : "no policy is named");
	struct arena arena = { 0 };
	struct policy_env env;
	paths_policy_env(&arena, &env);
	struct policy policy;
	const char *name = options->args[0];
	int status = -1;
	if (policy_load(&name, 1, NULL, 0, &env, &policy, err) == 0) {
		status = show(&policy, options_has(options, OPTION_show_json), err);
		policy_free(&policy);
	} else if (err->code == ERR_policy_invalid || err->code == ERR_policy_not_found ||
		   err->code == ERR_policy_unreadable) {
		/* The answer is no, which is not a failure of agentbox's own. */
		say_error(err);
		status = CLI_NO;
	}
	arena_free(&arena);
	return status;
}
