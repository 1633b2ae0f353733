/*
 * help: the texts of --help, from the tables of commands and options. Never wider than 80 columns.
 */
#include <string.h>

#include "base/buf.h"
#include "cli/cli.h"

#define WIDTH  80
#define GUTTER 28 /* column of the options' explanations */

/* Add words from column `at` on, broken before WIDTH, further lines indented to `indent`. */
static void add_wrapped(struct buf *out, const char *text, size_t at, size_t indent)
{
	while (*text) {
		size_t len = strcspn(text, " ");
		if (at > indent && at + 1 + len > WIDTH) {
			buf_addf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (at > indent) {
			buf_adds(out, " ");
			at++;
		}
		buf_add(out, text, len);
		at += len;
		text += len;
		text += strspn(text, " ");
	}
	buf_adds(out, "\n");
}

static void add_options(const struct command *command, struct buf *out)
{
	for (int id = 0; id < OPTION_COUNT_; id++) {
		if (!option_applies(id, command))
			continue;
		const struct option_info *info = option_info(id);
		size_t start = out->len;
		if (info->letter)
			buf_addf(out, "  -%c, --%s", info->letter, info->name);
		else
			buf_addf(out, "      --%s", info->name);
		if (info->argument[0])
			buf_addf(out, " %s", info->argument);
		size_t used = out->len - start;
		if (used + 2 > GUTTER)
			buf_addf(out, "\n%*s", GUTTER, "");
		else
			buf_addf(out, "%*s", (int)(GUTTER - used), "");
		add_wrapped(out, info->help, GUTTER, GUTTER);
	}
}

void help_program(struct buf *out)
{
	buf_adds(out,
		"usage: agentbox COMMAND [OPTIONS] [ARG...]\n"
		"\n"
		"Runs a command in a fresh sandbox and prints one JSON result. The box is made of\n"
		"the host kernel's own means; it is not a virtual machine.\n"
		"\n"
		"Commands:\n");
	for (size_t i = 0; command_at(i); i++) {
		const struct command *command = command_at(i);
		if (command->hidden)
			continue;
		size_t start = out->len;
		buf_addf(out, "  %-10s", command->name);
		add_wrapped(out, command->summary, out->len - start, 12);
	}
	buf_adds(out, "\nOptions:\n");
	add_options(NULL, out);
	buf_adds(out, "\n`agentbox COMMAND --help` and agentbox(1) say more.\n");
}

void help_command(const struct command *command, struct buf *out)
{
	const char *line = command->usage;
	const char *lead = "usage:";
	while (*line) {
		size_t len = strcspn(line, "\n");
		buf_addf(out, "%s agentbox %s ", lead, command->name);
		buf_add(out, line, len);
		buf_adds(out, "\n");
		line += len;
		line += *line == '\n';
		lead = "      ";
	}
	buf_addf(out, "\n%s.\n\nOptions:\n", command->summary);
	add_options(command, out);
	if (command->more[0])
		buf_addf(out, "\n%s", command->more);
}
