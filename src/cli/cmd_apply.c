/*
 * cmd_apply: `agentbox apply`: brings the changes of a kept result to the host, and says what was
 * left out. How it goes is in workspace/apply.h.
 */
#define _GNU_SOURCE
#include <string.h>

#include "cli/cli.h"
#include "cli/results.h"
#include "workspace/applied.h"
#include "workspace/apply.h"
#include "workspace/state.h"

#define OUT_MAX ((size_t)1 << 30)

static const char *const outcome_names[] = {
	[APPLY_DONE] = "done",
	[APPLY_SAME] = "same",
	[APPLY_SENSITIVE] = "sensitive",
	[APPLY_HELD] = "held",
	[APPLY_UNCHOSEN] = "unchosen",
	[APPLY_SKIPPED] = "skipped",
	[APPLY_CONFLICT] = "conflict",
	[APPLY_FAILED] = "failed",
};

struct call {
	const struct options *options;
	const struct kept *kept;
	const struct apply_report *report;
	bool dry, removed;
	bool session; /* what stays is a session's, and is not ours to remove */
};

/* How many that were chosen are not on the host; what can never be is not counted. */
static size_t left_out(const struct apply_report *report)
{
	return report->counts[APPLY_SENSITIVE] + report->counts[APPLY_HELD] +
	       report->counts[APPLY_CONFLICT] + report->counts[APPLY_FAILED];
}

/* One line for each that was left out, or is not quite as in the box. */
static void put_left_out(const struct call *call, struct buf *out)
{
	for (size_t i = 0; i < call->report->count; i++) {
		const struct apply_entry *e = &call->report->list[i];
		AUTO_BUF path = { 0 };
		bool there = e->outcome == APPLY_DONE || e->outcome == APPLY_SAME;
		if ((there && !e->reason) || e->outcome == APPLY_UNCHOSEN)
			continue;
		changes_path(&call->kept->changes, e->change, &path);
		if (there)
			buf_adds(out, "agentbox: note: ");
		else
			buf_addf(out, "agentbox: left out (%s): ", outcome_names[e->outcome]);
		buf_add_visible(out, buf_text(&path), path.len, false);
		if (e->reason)
			buf_addf(out, ": %s", e->reason);
		if (e->errnum)
			buf_addf(out, ": %s", strerror(e->errnum));
		buf_adds(out, "\n");
	}
	if (call->report->counts[APPLY_SENSITIVE])
		buf_adds(out, "hint: look at them with `agentbox diff --patch`; --allow-sensitive "
			      "brings them over too\n");
}

static void put_summary(const struct call *call, struct buf *out)
{
	const size_t *counts = call->report->counts;
	buf_addf(out, "%s%zu change%s",
		call->dry ? "would be applied: " : "applied: ", counts[APPLY_DONE],
		counts[APPLY_DONE] == 1 ? "" : "s");
	if (counts[APPLY_SAME])
		buf_addf(out, ", on the host already: %zu", counts[APPLY_SAME]);
	if (left_out(call->report) + counts[APPLY_SKIPPED])
		buf_addf(out, ", left out: %zu", left_out(call->report) + counts[APPLY_SKIPPED]);
	if (counts[APPLY_UNCHOSEN])
		buf_addf(out, ", not chosen: %zu", counts[APPLY_UNCHOSEN]);
	buf_adds(out, "\n");
	if (!call->dry && !call->removed && !call->session)
		buf_addf(out, "still kept: %s\n", call->kept->id);
}

static int put_json(const struct call *call, struct buf *out)
{
	struct json json;
	json_begin(&json, out, false);
	json_open_object(&json, NULL);
	json_put_text(&json, "agentbox", AGENTBOX_VERSION);
	json_put_text(&json, "result", call->kept->id);
	json_put_bool(&json, "dry_run", call->dry);
	json_put_uint(&json, "applied", call->report->counts[APPLY_DONE]);
	json_put_uint(&json, "left_out", left_out(call->report));
	json_put_bool(&json, "kept", !call->removed);
	json_open_array(&json, "entries");
	for (size_t i = 0; i < call->report->count; i++) {
		const struct apply_entry *e = &call->report->list[i];
		AUTO_BUF path = { 0 };
		changes_path(&call->kept->changes, e->change, &path);
		json_open_object(&json, NULL);
		json_put_bytes(&json, "path", buf_text(&path), path.len);
		json_put_text(&json, "change", changes_kind(e->change));
		json_put_text(&json, "outcome", outcome_names[e->outcome]);
		json_put_text(&json, "reason", e->reason);
		json_put_text(&json, "errno", err_errno_name(e->errnum));
		json_close(&json);
	}
	json_close(&json);
	json_close(&json);
	return json_end(&json);
}

static int tell(const struct call *call, struct err *err)
{
	AUTO_BUF words = { .max = OUT_MAX }, out = { .max = OUT_MAX };
	put_left_out(call, &words);
	say_note(&words);
	int error = 0;
	if (options_has(call->options, OPTION_apply_json))
		error = put_json(call, &out);
	else if (!options_has(call->options, OPTION_apply_quiet))
		put_summary(call, &out);
	if (error < 0)
		return err_set(err, ERR_internal, -error, "the report is too large");
	return say_out(&out, err);
}

/* A result of which all is on the host is of no more use. */
static int remove_kept(const char *state, struct call *call, struct err *err)
{
	bool complete = left_out(call->report) == 0 && call->report->counts[APPLY_UNCHOSEN] == 0;
	bool drop = options_has(call->options, OPTION_apply_drop) &&
		    call->report->counts[APPLY_UNCHOSEN] < call->report->count;
	if (call->dry || call->session || options_has(call->options, OPTION_apply_keep) ||
		!(complete || drop))
		return 0;
	if (kept_remove(state, call->kept->id, err) < 0)
		return -1;
	call->removed = true;
	return 0;
}

static int apply(const char *state, const struct options *options, const struct kept *kept,
	const struct results_choice *choice, struct err *err)
{
	struct apply_report report = { 0 };
	struct call call = {
		.options = options,
		.kept = kept,
		.report = &report,
		.dry = options_has(options, OPTION_apply_dry_run),
		.session = choice->session != NULL,
	};
	struct apply_options how = {
		.patterns = choice->patterns,
		.allow_sensitive = options_has(options, OPTION_apply_allow_sensitive),
		.dry_run = call.dry,
		.started_ns = kept->started_ns,
	};
	if (apply_run(kept->layers, &kept->changes, kept->bases, &how, kept->dir, "journal",
		    &report, err) < 0)
		return -1;
	struct err removing;
	int removed = call.session && !call.dry
			      ? applied_note(kept->dir, &report, kept->layers, &removing)
			      : remove_kept(state, &call, &removing);
	int r = tell(&call, err);
	if (r == 0 && removed < 0) {
		*err = removing;
		r = -1;
	}
	if (r == 0 && report.count > 0 && report.counts[APPLY_UNCHOSEN] == report.count) {
		AUTO_BUF note = { 0 };
		buf_adds(&note, "agentbox: no change is of such a name\n");
		say_note(&note);
		r = CLI_NO;
	} else if (r == 0)
		r = report.counts[APPLY_FAILED] ? CLI_FAILED : left_out(&report) ? CLI_NO : CLI_YES;
	apply_report_free(&report);
	return r;
}

int cmd_apply(const struct cli *cli, struct err *err)
{
	const struct options *options = &cli->options;
	struct arena arena = { 0 };
	struct results_choice choice;
	struct results_open open;
	if (options_has(options, OPTION_apply_keep) && options_has(options, OPTION_apply_drop))
		return err_set(err, ERR_usage, 0, "--keep and --drop exclude each other");
	const char *state = state_path(&arena);
	results_choose(options, state, &arena, &choice);
	int status = results_open(
		&choice, options_value(options, OPTION_apply_workspace), state, &open, err);
	if (status == CLI_YES) {
		status = apply(state, options, &open.kept, &choice, err);
		results_close(&open);
	}
	arena_free(&arena);
	return status;
}
