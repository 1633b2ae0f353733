/*
 * cmd_dump: `agentbox dump` (hidden): the program's tables, one row a line, fields separated by
 * tabs, so that tests can hold manual pages, completions and schemas against them.
 */
#include <string.h>

#include "base/buf.h"
#include "box/stages.h"
#include "cli/cli.h"
#include "policy/keys.h"
#include "report/dump.h"

/* command, name, letter, argument, type, once|many, help; "-" for what is not there. */
static void dump_options(struct buf *out)
{
	for (int id = 0; id < OPTION_COUNT_; id++) {
		const struct option_info *info = option_info(id);
		buf_addf(out, "%s\t%s\t%c\t%s\t%s\t%s\t%s\n", info->command, info->name,
			info->letter ? info->letter : '-', info->argument[0] ? info->argument : "-",
			option_type_name(info->type), info->many ? "many" : "once", info->help);
	}
}

/* name, shown|hidden, summary */
static void dump_commands(struct buf *out)
{
	for (size_t i = 0; command_at(i); i++)
		buf_addf(out, "%s\t%s\t%s\n", command_at(i)->name,
			command_at(i)->hidden ? "hidden" : "shown", command_at(i)->summary);
}

static void dump_keys(struct buf *out)
{
	policy_dump_keys(out);
}

static void dump_errors(struct buf *out)
{
	result_dump_errors(out);
}

static void dump_result(struct buf *out)
{
	result_dump_fields(out);
}

/* name, process, needs, leaves */
static void dump_stages(struct buf *out)
{
	for (int stage = STAGE_none + 1; stage < STAGE_COUNT_; stage++) {
		const struct stage_info *info = stage_info(stage);
		buf_addf(out, "%s\t%s\t%s\t%s\n", info->name, info->process,
			info->needs[0] ? info->needs : "-", info->leaves);
	}
}

static const struct table {
	const char *name;
	void (*dump)(struct buf *out);
} tables[] = {
	{ "options", dump_options },
	{ "commands", dump_commands },
	{ "keys", dump_keys },
	{ "stages", dump_stages },
	{ "errors", dump_errors },
	{ "result", dump_result },
};

#define TABLES (sizeof tables / sizeof *tables)

int cmd_dump(const struct cli *cli, struct err *err)
{
	const char *names[TABLES];
	for (size_t i = 0; i < TABLES; i++)
		names[i] = tables[i].name;
	if (cli->options.arg_count != 1)
		return err_set(err, ERR_usage, 0, "dump takes one table");
	const char *name = cli->options.args[0];
	for (size_t i = 0; i < TABLES; i++) {
		if (strcmp(name, tables[i].name) != 0)
			continue;
		AUTO_BUF out = { 0 };
		tables[i].dump(&out);
		return say_out(&out, err) < 0 ? -1 : CLI_YES;
	}
	err_set(err, ERR_usage, 0, "there is no table \"%s\"", name);
	const char *nearest = nearest_word(name, names, TABLES);
	if (nearest)
		err_hint_set(err, "did you mean %s?", nearest);
	return -1;
}
