/* cmd_help: `agentbox help`, --help and --version. */
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

int cmd_help(const struct cli *cli, struct err *err)
{
	const struct command *topic = cli->topic;
	if (!cli->options.help && cli->options.arg_count > 0) {
		if (cli->options.arg_count > 1)
			return err_set(err, ERR_usage, 0, "help takes one command at a time");
		topic = command_find(cli->options.args[0], err);
		if (!topic)
			return -1;
	}
	AUTO_BUF out = { 0 };
	if (topic)
		help_command(topic, &out);
	else
		help_program(&out);
	return say_out(&out, err) < 0 ? -1 : CLI_YES;
}
