/*
 * run_request: from the options of `run` to the values that the run is made of. Looks at nothing
 * but the options, the workspace's real path and, for --code -, stdin.
 */
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/run_request.h"

#define ENV_NAME_MAX  256
#define ENV_VALUE_MAX 131000 /* the kernel's maximum for one string is 128 KiB with the name */
#define ENV_COUNT_MAX 1024

static const char *value_of(const struct options *options, enum option_id id)
{
	return options_value(options, id);
}

static int check_combination(const struct options *options, struct err *err)
{
	bool lang = options_has(options, OPTION_run_lang);
	bool code = options_has(options, OPTION_run_code);
	if (options_has(options, OPTION_run_session) &&
		(options_has(options, OPTION_run_policy) ||
			options_has(options, OPTION_run_workspace)))
		return err_set(err, ERR_usage, 0,
			"a session has its own policy and workspace: no --policy, no --workspace");
	if (lang && !code)
		return err_set(err, ERR_usage, 0, "--lang needs --code: the snippet to run");
	if (code && !lang)
		return err_set(err, ERR_usage, 0, "--code needs --lang: how to run the snippet");
	if (lang && options->arg_count > 0 && !options->dashes)
		return err_set(err, ERR_usage, 0,
			"--lang runs a snippet, not a command; its arguments stand after --");
	if (!lang && options->arg_count == 0) {
		err_set(err, ERR_usage, 0, "no command is given");
		return err_hint_set(err, "agentbox run [OPTIONS] -- COMMAND [ARG...]");
	}
	if (code && strcmp(value_of(options, OPTION_run_code), "-") == 0 &&
		options_has(options, OPTION_run_stdin))
		return err_set(err, ERR_usage, 0,
			"--code - reads the snippet from stdin, which --stdin gives to the "
			"command");
	if (options_has(options, OPTION_run_tty) && !options_has(options, OPTION_run_result) &&
		!options_has(options, OPTION_run_result_fd)) {
		err_set(err, ERR_usage, 0, "--tty would mix the terminal's bytes with the result");
		return err_hint_set(err, "add --result FILE or --result-fd N");
	}
	return 0;
}

/* -e NAME[=VALUE] */
static int read_env(
	const char *word, struct arena *arena, struct request_env *ret_env, struct err *err)
{
	const char *equals = strchr(word, '=');
	size_t len = equals ? (size_t)(equals - word) : strlen(word);
	if (len == 0 || len > ENV_NAME_MAX)
		return err_set(err, ERR_usage, 0,
			"--env: the name of the variable is empty or longer than %d bytes",
			ENV_NAME_MAX);
	for (size_t i = 0; i < len; i++)
		if (word[i] <= ' ' || word[i] == 0x7f)
			return err_set(err, ERR_usage, 0,
				"--env: \"%.*s\" is not the name of a variable", (int)len, word);
	/* Shells run the text of such a variable. */
	if (strncmp(word, "BASH_FUNC_", strlen("BASH_FUNC_")) == 0)
		return err_set(err, ERR_usage, 0, "--env: functions of a shell are never passed");
	if (equals && strlen(equals + 1) > ENV_VALUE_MAX)
		return err_set(err, ERR_usage, 0,
			"--env: the value of %.*s is longer than %d bytes", (int)len, word,
			ENV_VALUE_MAX);
	ret_env->name = arena_strndup(arena, word, len);
	ret_env->value = equals ? equals + 1 : NULL;
	return 0;
}

static int read_lists(const struct options *options, struct arena *arena, struct run_words *words,
	struct request *request, struct err *err)
{
	struct request_env *env = NULL;
	for (size_t i = 0; i < options->use_count; i++) {
		const struct option_use *use = &options->uses[i];
		const struct option_info *info = option_info(use->id);
		if (use->id == OPTION_run_policy) {
			const char **name = arena_push(
				arena, &words->policies, &words->policy_count, sizeof *name);
			*name = use->value;
		} else if (use->id == OPTION_run_env) {
			if (request->env_count == ENV_COUNT_MAX)
				return err_set(err, ERR_usage, 0,
					"--env is given more than %d times", ENV_COUNT_MAX);
			if (read_env(use->value, arena,
				    arena_push(arena, &env, &request->env_count, sizeof *env),
				    err) < 0)
				return -1;
		} else if (info->type == OPTION_LIMIT) {
			struct policy_override *override = arena_push(
				arena, &words->overrides, &words->override_count, sizeof *override);
			override->key = arena_printf(arena, "limits.%s", info->id);
			override->value = use->value;
			override->option = arena_printf(arena, "--%s", info->name);
		}
	}
	request->env = env;
	return 0;
}

static int read_code(const struct options *options, struct arena *arena, struct run_words *words,
	struct err *err)
{
	words->lang = value_of(options, OPTION_run_lang);
	if (!words->lang)
		return 0;
	words->code = value_of(options, OPTION_run_code);
	words->code_len = strlen(words->code);
	if (strcmp(words->code, "-") != 0)
		return 0;
	return snippet_read(STDIN_FILENO, arena, &words->code, &words->code_len, err);
}

int run_request(const struct options *options, const char *const *environ, struct arena *arena,
	struct run_words *ret_words, struct request *ret_request, struct err *err)
{
	struct run_words words = { 0 };
	struct request request = {
		.argv = (const char *const *)options->args,
		.argc = options->arg_count,
		.environ = environ,
		.pass_stdin = options_has(options, OPTION_run_stdin),
		.tty = options_has(options, OPTION_run_tty),
	};
	if (check_combination(options, err) < 0 ||
		read_lists(options, arena, &words, &request, err) < 0 ||
		paths_workspace(arena, value_of(options, OPTION_run_workspace), &request.workspace,
			err) < 0)
		return -1;
	request.workspace_given = options_has(options, OPTION_run_workspace);
	const char *cwd = value_of(options, OPTION_run_cwd);
	if (cwd && !*cwd)
		return err_set(err, ERR_usage, 0, "--cwd: the name of the directory is empty");
	if (cwd && strlen(cwd) >= PATH_MAX)
		return err_set(err, ERR_usage, 0, "--cwd: longer than %d bytes", PATH_MAX - 1);
	if (cwd && *cwd != '/')
		cwd = arena_printf(arena, "%s/%s", request.workspace, cwd);
	request.cwd = cwd;
	if (read_code(options, arena, &words, err) < 0)
		return -1;
	*ret_words = words;
	*ret_request = request;
	return 0;
}

static void add_time(struct buf *out, const char *name, uint64_t us)
{
	if (us != UNKNOWN)
		buf_addf(out, ", %s %" PRIu64 ".%03" PRIu64 " ms", name, us / 1000, us % 1000);
}

void run_times(const struct result *result, struct buf *out)
{
	buf_adds(out, "agentbox: times");
	size_t before = out->len;
	add_time(out, "policy", result->timing.policy_us);
	add_time(out, "setup", result->timing.setup_us);
	add_time(out, "run", result->timing.run_us);
	add_time(out, "teardown", result->timing.teardown_us);
	add_time(out, "all", result->duration_us);
	/* The first part's comma, where there is one, becomes the colon. */
	if (out->len > before)
		out->data[before] = ':';
	buf_adds(out, "\n");
}
