/*
 * cmd_run: `agentbox run`: from the options to a request, through one box, to one line of JSON.
 * Whatever goes wrong on the way, the line is written.
 */
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "cli/cli.h"
#include "cli/keeper.h"
#include "cli/ports.h"
#include "cli/run_changes.h"
#include "cli/run_request.h"
#include "cli/run_session.h"
#include "cli/runs.h"
#include "plan/explain.h"

/* Everything of one call of `run`. */
struct call {
	const struct cli *cli;
	struct arena arena;
	struct run_words words;
	struct request request;
	struct policy policy; /* when result.policy points to it */
	struct place place;
	struct run_session session;
	int signal_fd;
	int ports_fd;      /* --ports-fd; -1: none, or all is told */
	sigset_t old_mask; /* the caller's, when there is a signal_fd */
	struct cli_run run;
	bool started; /* a box was made, or at least begun */
};

static bool asked(const struct call *call, enum option_id id)
{
	return options_has(&call->cli->options, id);
}

static int load_policy(struct call *call, struct err *err)
{
	struct policy_env env;
	const struct session *session = &call->session.session;
	paths_policy_env(&call->arena, &env);
	if (call->session.open) {
		if (policy_parse_over(session->policy_text, strlen(session->policy_text),
			    arena_printf(&call->arena, "session %s", session->name),
			    call->words.overrides, call->words.override_count, &env, &call->policy,
			    err) < 0)
			return -1;
	} else if (policy_load(call->words.policies, call->words.policy_count,
			   call->words.overrides, call->words.override_count, &env, &call->policy,
			   err) < 0)
		return -1;
	call->run.result.policy = &call->policy;
	if (!call->words.lang)
		return 0;
	return snippet_request(&call->policy, call->words.lang, call->words.code,
		call->words.code_len, call->cli->options.args, call->cli->options.arg_count,
		&call->arena, &call->request, err);
}

/* There must be a layer of which something can be kept. */
static int check_layers(const struct call *call, struct err *err)
{
	bool keep = asked(call, OPTION_run_keep_changes), apply = asked(call, OPTION_run_apply);
	if (!(keep || apply) || call->policy.fs.workspace == WORKSPACE_OVERLAY)
		return 0;
	err_set(err, ERR_usage, 0, "--%s needs a workspace with a private layer",
		apply ? "apply" : "keep-changes");
	return err_hint_set(err, "filesystem: {workspace: overlay}");
}

/* The session is ours, or somebody keeps its box. */
static int take_session(struct call *call, struct err *err)
{
	bool keep = call->policy.keep_processes;
	if (!call->session.open)
		return 0;
	if (keep && keeper_options(&call->cli->options, err) < 0)
		return -1;
	if (keep)
		call->run.kept = &call->session;
	return asked(call, OPTION_run_dry_run) ? 0
					       : run_session_enter(&call->session, keep,
							 &call->request, call->signal_fd, err);
}

static int make_plan(struct call *call, struct err *err)
{
	uint64_t start = cli_clock_us();
	int result = load_policy(call, err);
	if (result == 0)
		result = take_session(call, err);
	if (result == 0 && asked(call, OPTION_run_dry_run))
		result = cli_run_plan(&call->policy, &call->request, &call->run, err);
	else if (result == 0 && check_layers(call, err) < 0)
		result = -1;
	else if (result == 0)
		result = cli_run_prepare(&call->policy, &call->request, &call->run, err);
	call->run.result.timing.policy_us = cli_clock_us() - start;
	return result;
}

/* Signals that arrive from here on are seen by the supervisor, which ends the box and tells. */
static int take_signals(struct call *call, struct err *err)
{
	int fd = supervise_signals(&call->old_mask);
	if (fd < 0)
		return err_set(err, ERR_no_resources, -fd, "signals cannot be received: %s",
			strerror(-fd));
	call->signal_fd = fd;
	return 0;
}

static int enter_session(struct call *call, struct err *err)
{
	const char *name = options_value(&call->cli->options, OPTION_run_session);
	return name ? run_session_open(name, &call->arena, &call->session, &call->request, err) : 0;
}

/* The published ports are there before the box is, and whoever waits for them is told. */
static int publish(struct call *call, struct err *err)
{
	if (cli_run_publish(&call->run, err) < 0)
		return -1;
	if (ports_tell(&call->ports_fd, &call->run.published, err) < 0) {
		published_close(&call->run.published);
		return -1;
	}
	if (asked(call, OPTION_run_verbose) && !asked(call, OPTION_run_quiet))
		ports_say(&call->run.published);
	return 0;
}

static void start(struct call *call)
{
	bool live = call->place.live;
	bool input = call->request.pass_stdin || (call->request.tty && isatty(STDIN_FILENO));
	struct supervise_io io = {
		.stdin_fd = input ? STDIN_FILENO : -1,
		.stdout_fd = live ? STDOUT_FILENO : -1,
		.stderr_fd = live ? STDERR_FILENO : -1,
		.signal_fd = call->signal_fd,
	};
	call->run.result.live = live;
	call->started = true;
	cli_run_start(&call->run, &io);
	run_changes_finish(
		&call->run, asked(call, OPTION_run_keep_changes), asked(call, OPTION_run_apply));
}

static void say_plan(const struct call *call)
{
	AUTO_BUF out = { 0 };
	plan_explain_words(&call->run.plan, &out);
	say_note(&out);
}

/* 0; also when the box was never made or the command never ran: that is in the result. -1: not. */
static int perform(struct call *call, struct err *err)
{
	const struct options *options = &call->cli->options;
	if (call->cli->usage) {
		*err = *call->cli->usage;
		return -1;
	}
	if (ports_take(options, call->place.fd, &call->ports_fd, err) < 0)
		return -1;
	if (run_request(options, call->cli->environ, &call->arena, &call->words, &call->request,
		    err) < 0)
		return -1;
	call->request.words = call->cli->words;
	call->request.words_len = call->cli->words_len;
	if (take_signals(call, err) < 0 || enter_session(call, err) < 0 || make_plan(call, err) < 0)
		return -1;
	bool quiet = asked(call, OPTION_run_quiet);
	if (asked(call, OPTION_run_verbose) && !quiet)
		say_plan(call);
	if (asked(call, OPTION_run_dry_run))
		return 0;
	if (publish(call, err) < 0)
		return -1;
	start(call);
	return 0;
}

/* Warnings without which something would be missed inside and nobody knew why. */
static void say_missing(const struct result *result)
{
	static const char *const codes[] = { "workspace_skipped" };
	AUTO_BUF out = { 0 };
	char text[WARNING_TEXT_SIZE];
	struct warning warning;
	for (size_t at = 0; result_next_warning(result, &at, text, &warning);)
		for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
			if (strcmp(warning.code, codes[i]) != 0)
				continue;
			buf_adds(&out, "agentbox: warning: ");
			buf_add_visible(&out, warning.message, strlen(warning.message), false);
			buf_adds(&out, "\n");
		}
	say_note(&out);
}

/* What happened, for people: an error always, the rest when it is asked for or somebody watches. */
static void say_result(const struct call *call)
{
	const struct result *result = &call->run.result;
	bool verbose = asked(call, OPTION_run_verbose);
	if (asked(call, OPTION_run_quiet))
		return;
	if (result->error.code != ERR_none)
		say_error(&result->error);
	if (result->error.code != ERR_none || (!verbose && !isatty(STDERR_FILENO)))
		say_missing(result);
	if (result->error.code == ERR_none && !verbose && !isatty(STDERR_FILENO))
		return;
	AUTO_BUF out = { 0 };
	if (result->error.code == ERR_none)
		result_words(result, &out);
	if (verbose)
		run_times(result, &out);
	say_note(&out);
}

/*
 * The result cannot be written where it was asked for, perhaps by the box's doing. It must not be
 * lost: to stdout where that is free, else to stderr.
 */
static void rescue(const struct call *call, const struct buf *text)
{
	const struct result *result = &call->run.result;
	if (call->place.live && !result->live)
		say_all(STDOUT_FILENO, buf_text(text), text->len);
	else if (result->status != STATUS_ERROR)
		say_all(STDERR_FILENO, buf_text(text), text->len);
}

/* The result, or the plan, to where it was asked for. Returns the exit status. */
static int deliver(struct call *call, bool dry, struct err *err)
{
	struct result *result = &call->run.result;
	AUTO_BUF out = { 0 };
	int error;
	result->duration_us = cli_clock_us() - call->cli->start_us;
	/* Whoever is to read this may never do so; then a signal must end the waiting. */
	if (call->signal_fd >= 0)
		cli_signals_back(call->signal_fd, &call->old_mask);
	if (dry) {
		error = plan_explain_json(&call->run.plan, &out);
	} else {
		/* Written while the box's init ends, and not told before it has. */
		error = result_write(result, asked(call, OPTION_run_pretty), &out);
		if (cli_run_end(&call->run)) {
			buf_free(&out);
			error = result_write(result, asked(call, OPTION_run_pretty), &out);
		}
		say_result(call);
	}
	if (error)
		return err_set(err, ERR_internal, error < -1 ? -error : 0,
			"the result cannot be put into words: it is too large");
	if (place_write(&call->place, &out, err) < 0) {
		rescue(call, &out);
		/* Told already where the place could not even be opened. */
		return result->error.code == ERR_result_unwritable ? CLI_FAILED : -1;
	}
	return dry ? CLI_YES : result_exit_status(result);
}

/* Where the result goes; stdout when the place that was asked for cannot be had. */
static int open_place(struct call *call, struct err *err)
{
	if (place_open(&call->cli->options, &call->place, err) == 0)
		return 0;
	call->place = PLACE_NONE;
	call->place.fd = STDOUT_FILENO;
	return -1;
}

/* The result is told; what others, who were killed, have left costs the caller nothing now. */
static void collect(const struct call *call)
{
	struct runs_findings findings = { 0 };
	AUTO_BUF out = { 0 };
	if (!call->started)
		return;
	runs_collect(RUNS_PASSING, &findings);
	run_layers_collect_dead(false, &findings);
	if (asked(call, OPTION_run_verbose) && !asked(call, OPTION_run_quiet)) {
		runs_words(&findings, "removed what a killed run left", false, &out);
		say_note(&out);
	}
	arena_free(&findings.arena);
}

/*
 * The process ends next, and the kernel takes its memory whole: giving it back block by block would
 * touch pages for nothing. Only a sanitizer wants to see it done.
 */
static void give_back(struct call *call)
{
	run_layers_free(&call->run.layers);
	run_session_close(&call->session);
#if defined(__SANITIZE_ADDRESS__)
	bool loaded = call->run.result.policy != NULL;
	cli_run_free(&call->run);
	if (loaded)
		policy_free(&call->policy);
	arena_free(&call->arena);
#else
	(void)call;
#endif
}

int cmd_run(const struct cli *cli, struct err *err)
{
	struct call call = { .cli = cli, .place = PLACE_NONE, .signal_fd = -1, .ports_fd = -1 };
	cli_run_init(&call.run);
	struct result *result = &call.run.result;
	bool done = open_place(&call, err) == 0 && perform(&call, err) == 0;
	if (!done) {
		result->status = STATUS_ERROR;
		result->error = *err;
	}
	int status = deliver(&call, done && asked(&call, OPTION_run_dry_run), err);
	place_close(&call.place);
	fd_close(&call.signal_fd);
	fd_close(&call.ports_fd);
	collect(&call);
	give_back(&call);
	return status;
}
