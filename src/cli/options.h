/*
 * options: the one table of options (options.def), and the parser that it drives.
 */
#ifndef AGENTBOX_CLI_OPTIONS_H
#define AGENTBOX_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

struct command;

enum option_type {
	OPTION_FLAG, /* takes no value */
	OPTION_TEXT,
	OPTION_NUMBER, /* a decimal number; parse_number() reads it */
	OPTION_FILE,
	OPTION_DIR,
	OPTION_POLICY, /* a name or a file */
	OPTION_LIMIT,  /* laid over the policy's limits.<id> */
};

enum option_id {
#define OPTION(command, id, name, letter, argument, type, many, help) OPTION_##command##_##id,
#include "cli/options.def"
#undef OPTION
	OPTION_COUNT_
};

struct option_info {
	const char *command;  /* "run"; "any": every command; "agentbox": before a command */
	const char *id;       /* as in the policy: "open_files" */
	const char *name;     /* "open-files" */
	char letter;          /* 0: none */
	const char *argument; /* "SIZE"; "" for a flag */
	enum option_type type;
	bool many;        /* may be given more than once */
	const char *help; /* one sentence, wrapped when it is shown */
};

/* Never NULL for an id below OPTION_COUNT_. */
const struct option_info *option_info(enum option_id id);
const char *option_type_name(enum option_type type);
/* Does the option belong to the command? NULL: what may stand before a command. */
bool option_applies(enum option_id id, const struct command *command);

struct option_use {
	enum option_id id;
	const char *value; /* NULL for a flag */
};

struct options {
	const struct option_use *uses; /* in the order of the command line */
	size_t use_count;
	char *const *args; /* what is not an option; NULL-terminated */
	size_t arg_count;
	bool dashes; /* a "--" ended the options */
	bool help;   /* --help was among them; options behind it were not looked at */
	struct arena arena;
};

/*
 * Parse argv[0..argc-1], which begins behind the command's name. Long options take "=VALUE" or the
 * next argument, letters can be bundled, "--" ends the options, and so does the first argument of a
 * command that `stops`. Returns 0 or -1 with a usage error, the first mistake; *ret_options then
 * holds what could be read. In both cases it is the caller's to free.
 */
int options_parse(const struct command *command, int argc, char *const *argv,
	struct options *ret_options, struct err *err);
void options_free(struct options *options);

bool options_has(const struct options *options, enum option_id id);
/* The value of an option that may be given once, or NULL. */
const char *options_value(const struct options *options, enum option_id id);
/* Decimal digits for a number from 0 to max (which is below LONG_MAX / 10); 0 or -1. */
int parse_number(const char *text, long max, long *ret_number);

/* The nearest of the words to `word`, or NULL when none is near enough to be meant. */
const char *nearest_word(const char *word, const char *const *words, size_t count);

#define NEAREST_MAX 32 /* bytes of a word; longer ones are near to nothing */

#endif
