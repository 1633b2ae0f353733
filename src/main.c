/* main: the command table's dispatch, and from an error to an exit status. Nothing else. */
#define _GNU_SOURCE
#include <unistd.h>

#include "cli/cli.h"

int main(int argc, char **argv)
{
	struct cli cli = { .start_us = cli_clock_us(), .environ = (const char *const *)environ };
	struct err err = { 0 };
	int status = -1;
	cli_note_words(argc, argv, &cli);
	if (cli_open_standard(&err) == 0 && cli_parse(argc, argv, &cli, &err) == 0)
		status = cli.command->run(&cli, &err);
	if (status < 0) {
		if (err.code == ERR_usage)
			cli_usage_hint(cli.command, &err);
		say_error(&err);
		status = err.code == ERR_usage ? CLI_USAGE : CLI_FAILED;
	}
	options_free(&cli.options);
	return status;
}
