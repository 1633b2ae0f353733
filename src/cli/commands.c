/* commands: the table of commands, and how one is found. */
#include <string.h>

#include "cli/cli.h"

enum { HIDDEN = 1, STOPS = 2, REPORTS = 4 };

static const struct command table[] = {
#define COMMAND(name, flags, usage, summary, more)                                                 \
	{ #name, cmd_##name, ((flags)&HIDDEN) != 0, ((flags)&STOPS) != 0, ((flags)&REPORTS) != 0,  \
		usage, summary, more },
#include "cli/commands.def"
#undef COMMAND
};

#define COUNT (sizeof table / sizeof *table)

const struct command *command_at(size_t index)
{
	return index < COUNT ? &table[index] : NULL;
}

const struct command *command_find(const char *name, struct err *err)
{
	const char *names[COUNT];
	size_t count = 0;
	for (size_t i = 0; i < COUNT; i++) {
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
		if (!table[i].hidden)
			names[count++] = table[i].name;
	}
	err_set(err, ERR_usage, 0, "unknown command \"%s\"", name);
	const char *nearest = nearest_word(name, names, count);
	if (nearest)
		err_hint_set(err, "did you mean `agentbox %s`?", nearest);
	else
		err_hint_set(err, "agentbox --help lists the commands");
	return NULL;
}
