/*
 * cmd_diff: `agentbox diff`: what a kept result changed: a list for people, a patch, a table, or
 * JSON. Changes nothing.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/results.h"
#include "workspace/apply.h"
#include "workspace/diff.h"
#include "workspace/state.h"

#define OUT_MAX ((size_t)1 << 30)
#define COLUMNS 80

/* One line: what happened, the path, and what should be known of it. */
static void put_entry(const struct changes *changes, const struct change *c, struct buf *out)
{
	static const char letters[] = { 'A', 'M', 'D' };
	AUTO_BUF path = { 0 };
	changes_path(changes, c, &path);
	buf_addf(out, "%c ", letters[c->kind]);
	buf_add_visible(out, buf_text(&path), path.len, false);
	if (S_ISDIR(c->mode))
		buf_adds(out, "/");
	if (c->target && c->kind != CHANGE_DELETED) {
		buf_adds(out, " -> ");
		buf_add_visible(out, c->target, strlen(c->target), false);
	}
	if (c->escapes)
		buf_adds(out, "  [leads out of the tree]");
	if (c->sensitive)
		buf_adds(out, "  [sensitive]");
	if (c->held)
		buf_adds(out, "  [held back by the policy]");
	if (!S_ISDIR(c->mode) && !S_ISREG(c->mode) && !S_ISLNK(c->mode))
		buf_adds(out, "  [special file, never applied]");
	buf_adds(out, "\n");
}

static int put_json(const struct kept *kept, const bool *chosen, struct buf *out)
{
	struct json json;
	json_begin(&json, out, false);
	json_open_object(&json, NULL);
	json_put_text(&json, "agentbox", AGENTBOX_VERSION);
	json_put_text(&json, "result", kept->id);
	json_open_array(&json, "changes");
	for (size_t i = 0; i < kept->changes.count; i++) {
		if (!chosen[i])
			continue;
		changes_put_one(&json, &kept->changes, &kept->changes.list[i]);
	}
	json_close(&json);
	json_close(&json);
	return json_end(&json);
}

static int patch(const struct kept *kept, const bool *chosen, struct err *err)
{
	size_t left = 0;
	if (diff_patch(kept->layers, &kept->changes, chosen, STDOUT_FILENO, &left, err) < 0)
		return -1;
	if (left) {
		AUTO_BUF note = { 0 };
		buf_addf(&note,
			"agentbox: %zu change%s cannot be written as a patch: special files, "
			"files of more than 64 MiB, or outside of the workspace\n",
			left, left == 1 ? "" : "s");
		say_note(&note);
	}
	return 0;
}

static int show(
	const struct options *options, const struct kept *kept, const bool *chosen, struct err *err)
{
	AUTO_BUF out = { .max = OUT_MAX };
	int error = 0;
	if (options_has(options, OPTION_diff_patch))
		return patch(kept, chosen, err);
	if (options_has(options, OPTION_diff_stat)) {
		if (diff_stat(kept->layers, &kept->changes, chosen, COLUMNS, &out, err) < 0)
			return -1;
	} else if (options_has(options, OPTION_diff_json)) {
		error = put_json(kept, chosen, &out);
	} else {
		for (size_t i = 0; i < kept->changes.count; i++)
			if (chosen[i])
				put_entry(&kept->changes, &kept->changes.list[i], &out);
	}
	if (error < 0 || out.full)
		return err_set(err, ERR_internal, -error, "the list is too large");
	return say_out(&out, err);
}

static int diff(const struct options *options, const struct kept *kept,
	const struct results_choice *choice, struct err *err)
{
	struct arena arena = { 0 };
	bool *chosen = ARENA_ARRAY(&arena, kept->changes.count + 1, bool);
	for (size_t i = 0; i < kept->changes.count; i++)
		chosen[i] = !kept->changes.list[i].quiet &&
			    apply_chooses(choice->patterns, kept->changes.list[i].path);
	int r = show(options, kept, chosen, err);
	arena_free(&arena);
	return r < 0 ? -1 : CLI_YES;
}

int cmd_diff(const struct cli *cli, struct err *err)
{
	const struct options *options = &cli->options;
	struct arena arena = { 0 };
	struct results_choice choice;
	struct results_open open;
	if (options_has(options, OPTION_diff_patch) + options_has(options, OPTION_diff_stat) +
			options_has(options, OPTION_diff_json) >
		1)
		return err_set(err, ERR_usage, 0, "--patch, --stat and --json exclude each other");
	const char *state = state_path(&arena);
	results_choose(options, state, &arena, &choice);
	choice.looking = true;
	int status = results_open(
		&choice, options_value(options, OPTION_diff_workspace), state, &open, err);
	if (status == CLI_YES) {
		status = diff(options, &open.kept, &choice, err);
		results_close(&open);
	}
	arena_free(&arena);
	return status;
}
