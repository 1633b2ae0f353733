/*
 * cmd_test: `agentbox test`: the examples of a policy, held against the box. Commands run through
 * the same code as `run`, each in an empty workspace of its own; questions are answered as by
 * `explain`.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fd.h"
#include "cli/ask.h"
#include "cli/scratch.h"

/* One call of `test`. */
struct testing {
	const struct cli *cli;
	struct buf out; /* of the example at hand: its line, and why it failed */
	size_t number;  /* of the examples so far */
	size_t passed, failed;
	bool broken; /* a box could not be made, and no example expected that */
	bool cancelled;
	int signal_fd;
	sigset_t watched; /* the mask of a run: the supervisor sees the signals */
	sigset_t old;     /* the caller's: signals end the program, for between the runs */
};

#define SHOWN_MAX 2000 /* bytes of an output in a message */

static void put_text(struct buf *out, const char *text, size_t len)
{
	buf_add_visible(out, text, len > SHOWN_MAX ? SHOWN_MAX : len, false);
	if (len > SHOWN_MAX)
		buf_addf(out, " ... (%zu bytes)", len);
}

static void put_pair(struct buf *out, const char *what, const char *how, const char *expected,
	const struct buf *got)
{
	buf_addf(out, "#   expected %s%s ", what, how);
	put_text(out, expected, strlen(expected));
	buf_addf(out, "\n#   got %s ", what);
	put_text(out, buf_text(got), got->len);
	buf_adds(out, "\n");
}

/* An error as lines of a comment. */
static void put_error(struct buf *out, const struct err *err)
{
	/* The table's hint for a usage error is about the command line, which is not at fault here.
	 */
	const char *hint = err->code == ERR_usage && !err->hint[0] ? NULL : err_hint(err);
	buf_addf(out, "#   %s: ", err_info(err->code)->name);
	if (err->file[0]) {
		put_text(out, err->file, strlen(err->file));
		buf_addf(out, ":%d: ", (int)err->line);
	}
	put_text(out, err->text, strlen(err->text));
	if (hint) {
		buf_adds(out, "\n#   hint: ");
		put_text(out, hint, strlen(hint));
	}
	buf_adds(out, "\n");
}

static bool holds_stream(struct buf *out, const char *name, const struct stream *stream,
	const char *exact, const char *contains)
{
	AUTO_BUF text = { 0 };
	bool base64, good = true;
	if (!exact && !contains)
		return true;
	if (stream_render(stream, &text, &base64) < 0)
		return false;
	if (exact && (strlen(exact) != text.len || memcmp(exact, buf_text(&text), text.len) != 0)) {
		put_pair(out, name, "", exact, &text);
		good = false;
	}
	if (contains && !strstr(buf_text(&text), contains)) {
		put_pair(out, name, " with", contains, &text);
		good = false;
	}
	return good;
}

static void put_stream(struct buf *out, const char *name, const struct stream *stream)
{
	AUTO_BUF text = { 0 };
	bool base64;
	if (!stream->total || stream_render(stream, &text, &base64) < 0)
		return;
	buf_addf(out, "#   %s: ", name);
	put_text(out, buf_text(&text), text.len);
	buf_adds(out, "\n");
}

/* Compare what happened with what the example expects; what differs is told. */
static bool holds_result(
	struct testing *testing, const struct policy_test *test, const struct result *result)
{
	struct buf *out = &testing->out;
	const char *status = status_name(result->status);
	bool good = true;
	if (test->status ? strcmp(test->status, status) != 0 : result->status == STATUS_ERROR) {
		buf_addf(out, "#   expected status %s\n#   got status %s\n",
			test->status ? test->status : "exited", status);
		good = false;
	}
	if (test->exit_code >= 0 && test->exit_code != result->exit_code) {
		buf_addf(out, "#   expected exit_code %d\n", test->exit_code);
		if (result->exit_code >= 0)
			buf_addf(out, "#   got exit_code %d\n", result->exit_code);
		else
			buf_addf(out, "#   got exit_code null, status %s\n", status);
		good = false;
	}
	good &= holds_stream(out, "stdout", &result->out, test->stdout_text, test->stdout_contains);
	good &= holds_stream(
		out, "stderr", &result->err_out, test->stderr_text, test->stderr_contains);
	if (!good && result->error.code != ERR_none)
		put_error(out, &result->error);
	if (!good || options_has(&testing->cli->options, OPTION_test_verbose)) {
		put_stream(out, "stdout was", &result->out);
		put_stream(out, "stderr was", &result->err_out);
	}
	return good;
}

/*
 * A written workspace must hold what the policy protects, or the box could make it: an empty
 * directory for each protected path is what an example finds in its workspace.
 */
static void make_protected(const struct policy *policy, const char *workspace, struct arena *arena)
{
	for (size_t i = 0; i < policy->fs.protect_count; i++) {
		const struct policy_pattern *pattern = &policy->fs.protect[i];
		if (!pattern->literal || pattern->pattern[0] == '/')
			continue;
		char *path = arena_printf(arena, "%s/%s", workspace, pattern->pattern);
		for (char *c = path + strlen(workspace) + 1; (c = strchrnul(c, '/'), true); c++) {
			char last = *c;
			*c = 0;
			(void)mkdir(path, 0755);
			*c = last;
			if (!last)
				break;
		}
	}
}

static int make_request(const struct policy *policy, const struct policy_test *test,
	const struct cli *cli, const char *workspace, struct arena *arena,
	struct request *ret_request, struct err *err)
{
	*ret_request = (struct request){ .workspace = workspace, .environ = cli->environ };
	if (test->lang)
		return snippet_request(policy, test->lang, test->code, strlen(test->code), NULL, 0,
			arena, ret_request, err);
	const char **argv = ARENA_ARRAY(arena, test->run_count + 1, const char *);
	for (size_t i = 0; i < test->run_count; i++)
		argv[i] = test->run[i].value;
	ret_request->argv = argv;
	ret_request->argc = test->run_count;
	return 0;
}

/* Did agentbox fail, rather than the command's start? */
static bool is_ours(const struct err *err)
{
	return err->code != ERR_none && err_info(err->code)->status == CLI_FAILED;
}

/* 1 when the example holds, 0 when not, -1 with *err when it could not be tried. */
static int try_command(struct testing *testing, const struct policy *policy,
	const struct policy_test *test, struct arena *arena, struct err *err)
{
	const char *workspace;
	struct request request;
	sigprocmask(SIG_SETMASK, &testing->watched, NULL);
	if (scratch_make(arena, &workspace, err) < 0) {
		sigprocmask(SIG_SETMASK, &testing->old, NULL);
		return -1;
	}
	int held = -1;
	make_protected(policy, workspace, arena);
	if (make_request(policy, test, testing->cli, workspace, arena, &request, err) == 0) {
		struct supervise_io io = { -1, -1, -1, testing->signal_fd };
		struct cli_run run;
		cli_run_init(&run);
		cli_run_box(policy, &request, &io, &run);
		held = holds_result(testing, test, &run.result);
		testing->broken |= !held && is_ours(&run.result.error);
		testing->cancelled |= run.result.status == STATUS_CANCELLED;
		cli_run_free(&run);
	}
	int r = scratch_remove(workspace);
	sigprocmask(SIG_SETMASK, &testing->old, NULL);
	if (r < 0 && held >= 0)
		return err_set(
			err, ERR_internal, -r, "%s cannot be removed: %s", workspace, strerror(-r));
	return held;
}

static int try_question(struct testing *testing, struct ask *ask, enum question kind,
	const struct policy_test *test, const char *text, struct err *err)
{
	struct answer answer;
	bool write = test->access && strcmp(test->access, "write") == 0;
	if (ask_question(ask, kind, text, write, &answer, err) < 0)
		return -1;
	if (answer.allowed == (test->allowed == 1))
		return 1;
	buf_addf(&testing->out,
		"#   expected %s\n#   got %s: ", test->allowed ? "allowed" : "denied",
		answer.allowed ? "allowed" : "denied");
	put_text(&testing->out, answer.words, strlen(answer.words));
	buf_adds(&testing->out, "\n");
	return 0;
}

/* The example's text and, for a question, its kind. */
static const char *describe(const struct policy_test *test, struct arena *arena,
	enum question *ret_kind, const char **ret_text)
{
	const char *texts[] = { [QUESTION_PATH] = test->path,
		[QUESTION_HOST] = test->host,
		[QUESTION_TOOL] = test->tool,
		[QUESTION_SYSCALL] = test->syscall };
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		if (!texts[i])
			continue;
		*ret_kind = (enum question)i;
		*ret_text = texts[i];
		return arena_printf(arena, "%s%s%s %s", question_name(*ret_kind),
			test->access && i == QUESTION_PATH ? " " : "",
			test->access && i == QUESTION_PATH ? test->access : "", texts[i]);
	}
	*ret_text = NULL;
	if (test->lang)
		return arena_printf(arena, "%s snippet", test->lang);
	AUTO_BUF words = { .max = 4096 };
	buf_adds(&words, "run");
	for (size_t i = 0; i < test->run_count; i++)
		if (buf_addf(&words, " %s", test->run[i].value) < 0)
			break;
	return arena_strdup(arena, buf_text(&words));
}

static int run_test(struct testing *testing, const struct policy *policy, struct ask *ask,
	const struct policy_test *test, struct err *err)
{
	struct arena arena = { 0 };
	enum question kind = QUESTION_PATH;
	const char *text;
	const char *what = describe(test, &arena, &kind, &text);
	struct err why;
	int held = text ? try_question(testing, ask, kind, test, text, &why)
			: try_command(testing, policy, test, &arena, &why);
	AUTO_BUF out = { 0 };
	testing->number++;
	buf_addf(&out, "%s %zu - ", held == 1 ? "ok" : "not ok", testing->number);
	put_text(&out, what, strlen(what));
	buf_adds(&out, " (");
	const char *at = explain_origin(&test->at, &arena);
	put_text(&out, at, strlen(at));
	buf_adds(&out, ")\n");
	buf_add(&out, buf_text(&testing->out), testing->out.len);
	if (held < 0) {
		put_error(&out, &why);
		testing->broken |= is_ours(&why) && why.code != ERR_usage;
	}
	buf_free(&testing->out);
	*(held == 1 ? &testing->passed : &testing->failed) += 1;
	arena_free(&arena);
	return say_out(&out, err);
}

/* The directory that the policy lies in, or NULL. */
static const char *policy_directory(const struct policy *policy, struct arena *arena)
{
	char real[PATH_MAX];
	if (!policy->source_count || !realpath(policy->sources[policy->source_count - 1], real))
		return NULL;
	char *slash = strrchr(real, '/');
	return slash && slash > real ? arena_strndup(arena, real, (size_t)(slash - real)) : NULL;
}

/*
 * Questions about paths are about the policy's own directory, from which its relative paths count;
 * where that can be no workspace, about the empty one.
 */
static void open_questions(const struct testing *testing, const struct policy *policy,
	const char *empty, struct arena *arena, struct ask *ret_ask)
{
	bool paths = false;
	struct err why;
	const char *directory = policy_directory(policy, arena);
	for (size_t i = 0; i < policy->test_count; i++)
		paths = paths || policy->tests[i].path;
	if (paths && directory) {
		ask_init(ret_ask, policy, directory, testing->cli->environ);
		if (ask_ready(ret_ask, &why) == 0)
			return;
		ask_free(ret_ask);
	}
	make_protected(policy, empty, arena);
	ask_init(ret_ask, policy, empty, testing->cli->environ);
}

static int run_tests(struct testing *testing, const struct policy *policy, struct err *err)
{
	const char *empty;
	struct arena arena = { 0 };
	int r = scratch_make(&arena, &empty, err);
	if (r == 0) {
		struct ask ask;
		open_questions(testing, policy, empty, &arena, &ask);
		for (size_t i = 0; r == 0 && i < policy->test_count && !testing->cancelled; i++)
			r = run_test(testing, policy, &ask, &policy->tests[i], err);
		ask_free(&ask);
		scratch_remove(empty);
	}
	arena_free(&arena);
	return r;
}

static int test_policy(
	struct testing *testing, const char *name, const struct policy_env *env, struct err *err)
{
	struct policy policy;
	struct err why;
	AUTO_BUF out = { 0 };
	if (policy_load(&name, 1, NULL, 0, env, &policy, &why) < 0) {
		say_error(&why);
		testing->failed++;
		return 0;
	}
	buf_adds(&out, "# ");
	put_text(&out, name, strlen(name));
	buf_adds(&out, policy.test_count ? "\n" : " has no tests\n");
	int r = say_out(&out, err);
	if (r == 0 && policy.test_count)
		r = run_tests(testing, &policy, err);
	policy_free(&policy);
	return r;
}

int cmd_test(const struct cli *cli, struct err *err)
{
	const struct options *options = &cli->options;
	if (options->arg_count == 0)
		return err_set(err, ERR_usage, 0, "no policy is named");
	struct testing testing = { .cli = cli };
	testing.signal_fd = supervise_signals(&testing.old);
	if (testing.signal_fd < 0)
		return err_set(err, ERR_no_resources, -testing.signal_fd,
			"signals cannot be received: %s", strerror(-testing.signal_fd));
	sigprocmask(SIG_SETMASK, &testing.old, &testing.watched);
	struct arena arena = { 0 };
	struct policy_env env;
	paths_policy_env(&arena, &env);
	int r = 0;
	for (size_t i = 0; i < options->arg_count && r == 0 && !testing.cancelled; i++)
		r = test_policy(&testing, options->args[i], &env, err);
	arena_free(&arena);
	fd_close(&testing.signal_fd);
	AUTO_BUF out = { 0 };
	buf_addf(&out, "%zu passed, %zu failed%s\n", testing.passed, testing.failed,
		testing.cancelled ? ", then interrupted" : "");
	if (r < 0 || say_out(&out, err) < 0)
		return -1;
	if (testing.broken || testing.cancelled)
		return CLI_FAILED;
	return testing.failed ? CLI_NO : CLI_YES;
}
