/* cmd_explain: `agentbox explain`: what a policy grants on this host, in words or by question. */
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/ask.h"

/* Is this option a question? */
static bool question_of(enum option_id id, enum question *ret_kind)
{
	switch (id) {
	case OPTION_explain_path:
		*ret_kind = QUESTION_PATH;
		return true;
	case OPTION_explain_host:
		*ret_kind = QUESTION_HOST;
		return true;
	case OPTION_explain_tool:
		*ret_kind = QUESTION_TOOL;
		return true;
	case OPTION_explain_syscall:
		*ret_kind = QUESTION_SYSCALL;
		return true;
	default:
		return false;
	}
}

/* "read /etc/passwd", "pypi.org:443", "tool send-email", "syscall ptrace" */
static const char *subject(enum question kind, bool write)
{
	switch (kind) {
	case QUESTION_PATH:
		return write ? "write " : "read ";
	case QUESTION_HOST:
		return "";
	case QUESTION_TOOL:
		return "tool ";
	case QUESTION_SYSCALL:
		return "syscall ";
	}
	return "";
}

/* `refusal`: why `run` refuses the policy here, or NULL; the answer is what would hold else. */
static void put_answer_line(struct buf *out, enum question kind, const char *text, bool write,
	const struct answer *answer, const char *refusal)
{
	buf_addf(out, "%s: %s", answer->allowed ? "allowed" : "denied", subject(kind, write));
	buf_add_visible(out, text, strlen(text), false);
	buf_adds(out, ": ");
	buf_add_visible(out, answer->words, strlen(answer->words), false);
	if (refusal) {
		buf_adds(out, " (run refuses this policy here: ");
		buf_add_visible(out, refusal, strlen(refusal), false);
		buf_adds(out, ")");
	}
	buf_adds(out, "\n");
}

static void put_answer_json(struct json *json, enum question kind, const char *text, bool write,
	const struct answer *answer, const char *refusal)
{
	json_open_object(json, NULL);
	json_put_text(json, "question", question_name(kind));
	json_put_text(json, "subject", text);
	json_put_text(json, "access", kind != QUESTION_PATH ? NULL : write ? "write" : "read");
	json_put_bool(json, "allowed", answer->allowed);
	json_put_text(json, "why", answer->words);
	json_put_text(json, "run_refuses", refusal);
	json_close(json);
}

/* CLI_YES when all are allowed, CLI_NO when one is not, -1 with *err. */
static int answer_questions(
	struct ask *ask, const struct options *options, struct buf *out, struct err *err)
{
	bool as_json = options_has(options, OPTION_explain_json);
	bool write = options_has(options, OPTION_explain_write);
	const char *refusal = ask_refusal(ask);
	int status = CLI_YES;
	struct json json;
	if (as_json) {
		json_begin(&json, out, false);
		json_open_array(&json, NULL);
	}
	for (size_t i = 0; i < options->use_count; i++) {
		const char *text = options->uses[i].value;
		enum question kind;
		struct answer answer;
		if (!question_of(options->uses[i].id, &kind))
			continue;
		if (ask_question(ask, kind, text, write, &answer, err) < 0)
			return -1;
		if (!answer.allowed)
			status = CLI_NO;
		if (as_json)
			put_answer_json(&json, kind, text, write, &answer, refusal);
		else
			put_answer_line(out, kind, text, write, &answer, refusal);
	}
	if (as_json) {
		json_close(&json);
		if (json_end(&json) < 0)
			out->full = true;
	}
	return status;
}

/* For programs, when `run` would refuse: no plan, but why. */
static int refusal_json(const struct ask *ask, struct buf *out)
{
	const struct err *why = &ask->why;
	struct json json;
	json_begin(&json, out, false);
	json_open_object(&json, NULL);
	json_put_text(&json, "agentbox", AGENTBOX_VERSION);
	json_put_text(&json, "name", ask->policy->name);
	json_open_object(&json, "error");
	json_put_text(&json, "code", err_info(why->code)->name);
	json_put_text(&json, "message", why->text);
	json_put_text(&json, "hint", err_hint(why));
	json_put_text(&json, "file", why->file[0] ? why->file : NULL);
	json_put_int(&json, "line", why->line);
	json_put_int(&json, "column", why->column);
	json_close(&json);
	json_close(&json);
	return json_end(&json);
}

static int explain_all(struct ask *ask, bool as_json, struct buf *out)
{
	int error;
	bool planned = ask_plan(ask) == 0;
	if (planned)
		error = as_json ? plan_explain_json(&ask->run.plan, out)
				: plan_explain_words(&ask->run.plan, out);
	else
		error = as_json ? refusal_json(ask, out)
				: policy_explain_words(ask->policy, &ask->why, out);
	if (error < 0)
		out->full = true;
	return CLI_YES;
}

static int explain(
	const struct cli *cli, const struct policy *policy, const char *workspace, struct err *err)
{
	const struct options *options = &cli->options;
	bool questions = false;
	enum question kind;
	for (size_t i = 0; i < options->use_count; i++)
		questions = questions || question_of(options->uses[i].id, &kind);
	struct ask ask;
	ask_init(&ask, policy, workspace, cli->environ);
	ask.request.workspace_given = options_has(options, OPTION_explain_workspace);
	AUTO_BUF out = { 0 };
	int status = questions ? answer_questions(&ask, options, &out, err)
			       : explain_all(&ask, options_has(options, OPTION_explain_json), &out);
	ask_free(&ask);
	if (status < 0 && err->code == ERR_usage && !err->hint[0])
		err_hint_set(err, "agentbox explain --help");
	if (status < 0)
		return -1;
	if (out.full)
		return err_set(err, ERR_internal, 0, "the explanation is too large");
	return say_out(&out, err) < 0 ? -1 : status;
}

static int check_usage(const struct options *options, struct err *err)
{
	if (options->arg_count != 1)
		return err_set(err, ERR_usage, 0,
			options->arg_count ? "explain takes one policy" : "no policy is named");
	if (options_has(options, OPTION_explain_write) &&
		!options_has(options, OPTION_explain_path))
		return err_set(err, ERR_usage, 0, "--write belongs to a --path");
	return 0;
}

int cmd_explain(const struct cli *cli, struct err *err)
{
	const struct options *options = &cli->options;
	if (check_usage(options, err) < 0)
		return -1;
	struct arena arena = { 0 };
	struct policy_env env;
	paths_policy_env(&arena, &env);
	const char *name = options->args[0], *workspace = NULL;
	struct policy policy;
	int status = -1;
	if (paths_workspace(&arena, options_value(options, OPTION_explain_workspace), &workspace,
		    err) < 0) {
		status = -1;
	} else if (policy_load(&name, 1, NULL, 0, &env, &policy, err) == 0) {
		status = explain(cli, &policy, workspace, err);
		policy_free(&policy);
	} else if (err->code == ERR_policy_invalid || err->code == ERR_policy_not_found) {
		/* The answer is no, which is not a failure of agentbox's own. */
		say_error(err);
		status = CLI_NO;
	}
	arena_free(&arena);
	return status;
}
