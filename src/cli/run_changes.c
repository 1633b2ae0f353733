/*
 * run_changes: keeps a run's private layers and brings them to the host. By the same two steps as a
 * person would: what is kept first can be applied again when this is interrupted.
 */
#define _GNU_SOURCE
#include "cli/run_changes.h"
#include "policy/policy.h"
#include "workspace/apply.h"
#include "workspace/kept.h"
#include "workspace/state.h"

#include <time.h>

#define NAMED_MAX 8 /* files that a warning names */

static int save(struct cli_run *run, const char *state, struct err *err)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	const struct kept_source source = {
		.id = run->result.id,
		.started_ns = run->layers.started_ns,
		.ended_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec,
		.policy = run->plan.name ? run->plan.name : "",
		.argv = run->request->argv,
		.layers = run->layers.list,
		.layer_count = run->layers.count,
		.rules = run->layers.rules,
	};
	return kept_save(state, &source, err);
}

/* What is not on the host, by name as far as that is of use. */
static void tell_left_out(struct cli_run *run, const struct apply_report *report, size_t left)
{
	AUTO_BUF text = { 0 };
	size_t named = 0;
	buf_addf(&text, "%zu change%s not applied:", left, left == 1 ? " was" : "s were");
	for (size_t i = 0; i < report->count && named < NAMED_MAX; i++) {
		const struct apply_entry *entry = &report->list[i];
		if (entry->outcome == APPLY_DONE || entry->outcome == APPLY_SAME)
			continue;
		buf_addf(&text, "%s %s", named++ ? "," : "", entry->change->path);
	}
	buf_addf(&text, "%s; agentbox apply %s", named < left ? ", ..." : "", run->result.id);
	result_warning(&run->result, "apply_incomplete", buf_text(&text));
}

static int bring(struct cli_run *run, const char *state, bool keep, struct err *err)
{
	struct kept kept;
	struct apply_report report = { 0 };
	if (kept_open(state, run->result.id, NULL, &kept, err) < 0)
		return -1;
	const struct apply_options all = { .started_ns = kept.started_ns };
	int r = apply_run(
		kept.layers, &kept.changes, kept.bases, &all, kept.dir, "journal", &report, err);
	size_t left =
		r == 0 ? report.count - report.counts[APPLY_DONE] - report.counts[APPLY_SAME] : 0;
	if (left)
		tell_left_out(run, &report, left);
	apply_report_free(&report);
	kept_close(&kept);
	if (r == 0 && left == 0 && !keep)
		r = kept_remove(state, run->result.id, err);
	return r;
}

void run_changes_finish(struct cli_run *run, bool keep, bool apply)
{
	struct result *result = &run->result;
	struct err err;
	bool good = result->status == STATUS_EXITED && result->exit_code == 0;
	if (result->status == STATUS_ERROR || !result->changes || !(keep || (apply && good)))
		return;
	const char *state = state_path(&result->arena);
	if (save(run, state, &err) < 0)
		result_warning(result, "changes_not_kept", err.text);
	else if (apply && good && bring(run, state, keep, &err) < 0)
		result_warning(result, "apply_incomplete", err.text);
}
