/* cmd_help: `agentbox help`, --help and --version. */
#include <string.h>

#include "base/buf.h"
#include "cli/cli.h"

static int run_version(const struct cli *cli, struct err *err)
{
	(void)cli;
	AUTO_BUF out = { 0 };
	buf_adds(&out, "agentbox " AGENTBOX_VERSION "\n");
	return say_out(&out, err) < 0 ? -1 : CLI_YES;
}

const struct command version_command = { .name = "version", .run = run_version, .hidden = true };

/* Not a command; the manual may have a page about it. Always -1. */
static int unknown_topic(const char *word, struct err *err)
{
	static const char *const pages[][2] = { { "policy", "agentbox-policy" },
		{ "policies", "agentbox-policy" }, { "yaml", "agentbox-policy" },
		{ "result", "agentbox-result" }, { "results", "agentbox-result" },
		{ "json", "agentbox-result" }, { "agentbox", "agentbox" } };
	for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
		if (strcmp(word, pages[i][0]) == 0)
			err_hint_set(err, "man %s", pages[i][1]);
	return -1;
}

int cmd_help(const struct cli *cli, struct err *err)
{
	const struct command *topic = cli->topic;
	if (!cli->options.help && cli->options.arg_count > 0) {
		if (cli->options.arg_count > 1)
			return err_set(err, ERR_usage, 0, "help takes one command at a time");
		topic = command_find(cli->options.args[0], err);
		if (!topic)
			return unknown_topic(cli->options.args[0], err);
	}
	AUTO_BUF out = { 0 };
	if (topic)
		help_command(topic, &out);
	else
		help_program(&out);
	return say_out(&out, err) < 0 ? -1 : CLI_YES;
}
