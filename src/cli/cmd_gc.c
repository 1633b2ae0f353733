/*
 * cmd_gc: `agentbox gc`: removes what killed runs left, and says so. What that is and how it goes
 * is in runs_collect.c.
 */
#include "base/buf.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/runs.h"

static void put_words(const struct runs_findings *findings, bool dry, bool quiet, struct buf *out)
{
	runs_words(findings, dry ? "would be removed" : "removed", quiet, out);
	if (quiet)
		return;
	if (findings->count == 0)
		buf_adds(out, "nothing is left of killed runs\n");
	if (findings->running > 0)
		buf_addf(out, "left alone: %zu living run%s with control groups\n",
			findings->running, findings->running == 1 ? "" : "s");
}

static void put_list(
	struct json *json, const char *key, const struct runs_findings *findings, bool removed)
{
	json_open_array(json, key);
	for (size_t i = 0; i < findings->count; i++) {
		const struct runs_finding *f = &findings->list[i];
		if (f->removed != removed)
			continue;
		json_open_object(json, NULL);
		json_put_text(json, "kind", f->kind);
		json_put_text(json, "path", f->path);
		if (!removed)
			json_put_text(json, "reason", f->reason);
		json_close(json);
	}
	json_close(json);
}

static int put_json(const struct runs_findings *findings, bool dry, struct buf *out)
{
	struct json json;
	json_begin(&json, out, false);
	json_open_object(&json, NULL);
	json_put_text(&json, "agentbox", AGENTBOX_VERSION);
	json_put_bool(&json, "dry_run", dry);
	put_list(&json, "removed", findings, true);
	put_list(&json, "left", findings, false);
	json_put_uint(&json, "running", findings->running);
	json_close(&json);
	return json_end(&json);
}

int cmd_gc(const struct cli *cli, struct err *err)
{
	const struct options *options = &cli->options;
	if (options->arg_count)
		return err_set(err, ERR_usage, 0, "gc takes no argument");
	bool dry = options_has(options, OPTION_gc_dry_run);
	struct runs_findings findings = { 0 };
	AUTO_BUF out = { 0 };
	int error = 0;
	runs_collect(dry ? RUNS_DRY : RUNS_ALL, &findings);
	run_layers_collect_dead(dry, &findings);
	run_layers_collect_kept(dry, &findings);
	if (options_has(options, OPTION_gc_json))
		error = put_json(&findings, dry, &out);
	else
		put_words(&findings, dry, options_has(options, OPTION_gc_quiet), &out);
	int status = findings.left > 0 ? CLI_NO : CLI_YES;
	if (error < 0)
		status = err_set(err, ERR_internal, -error, "the findings are too large");
	else if (say_out(&out, err) < 0)
		status = -1;
	arena_free(&findings.arena);
	return status;
}
