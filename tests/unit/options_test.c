/* options_test: the parser and its table: every form of an option, every mistake, what is near. */
#include <stdbool.h>
#include <string.h>

#include "check.h"
#include "cli/cli.h"

/* No command runs here: the table only needs something to point to. */
#define COMMAND(name, flags, usage, summary, more)                                                 \
	int cmd_##name(const struct cli *cli, struct err *err)                                     \
	{                                                                                          \
		(void)cli;                                                                         \
		return err_set(err, ERR_internal, 0, #name);                                       \
	}
#include "cli/commands.def"
#undef COMMAND

#define WORDS_MAX 16

/* Parse words, up to a NULL, for a command. */
static int parse(
	const char *command, const char *const *words, struct options *ret_options, struct err *err)
{
	char *argv[WORDS_MAX + 1] = { 0 };
	int argc = 0;
	for (; words[argc]; argc++)
		argv[argc] = (char *)words[argc];
	memset(err, 0, sizeof *err);
	return options_parse(
		command ? command_find(command, err) : NULL, argc, argv, ret_options, err);
}

#define PARSE(command, ...)                                                                        \
	parse(command, (const char *const[]){ __VA_ARGS__, NULL }, &options, &err)

static void long_and_short_forms(void)
{
	struct options options;
	struct err err;
	CHECK(PARSE("run", "--policy", "a", "--policy=b", "-p", "c", "-pd", "-p=e", "x") == 0);
	static const char *const values[] = { "a", "b", "c", "d", "=e" };
	CHECK(options.use_count == 5);
	for (size_t i = 0; i < options.use_count; i++) {
		CHECK(options.uses[i].id == OPTION_run_policy);
		CHECK_TEXT(options.uses[i].value, values[i]);
	}
	options_free(&options);
	CHECK(PARSE("run", "-qvi", "-ivpfile", "--wall=", "x") == 0);
	CHECK(options_has(&options, OPTION_run_quiet) && options_has(&options, OPTION_run_stdin));
	CHECK_TEXT(options_value(&options, OPTION_run_policy), "file");
	CHECK_TEXT(options_value(&options, OPTION_run_wall), "");
	CHECK(!options_has(&options, OPTION_run_tty));
	CHECK(options_value(&options, OPTION_run_memory) == NULL);
	options_free(&options);
}

static void the_command_keeps_its_options(void)
{
	struct options options;
	struct err err;
	CHECK(PARSE("run", "-q", "ls", "-v", "--policy", "--") == 0);
	CHECK(options.arg_count == 4 && !options.dashes && options.use_count == 1);
	CHECK_TEXT(options.args[0], "ls");
	CHECK_TEXT(options.args[3], "--");
	CHECK(options.args[4] == NULL);
	options_free(&options);
	CHECK(PARSE("run", "--", "--help", "--") == 0);
	CHECK(options.dashes && !options.help && options.arg_count == 2);
	CHECK_TEXT(options.args[0], "--help");
	options_free(&options);
	/* "-" is an argument, and an option's value may begin with a dash. */
	CHECK(PARSE("run", "--code", "-", "-", "-v") == 0);
	CHECK_TEXT(options_value(&options, OPTION_run_code), "-");
	CHECK(options.arg_count == 2 && !options_has(&options, OPTION_run_verbose));
	options_free(&options);
}

static void other_commands_take_options_anywhere(void)
{
	struct options options;
	struct err err;
	CHECK(PARSE("check", "a", "-v", "b", "--", "-c") == 0);
	CHECK(options.arg_count == 3 && options_has(&options, OPTION_check_verbose));
	CHECK_TEXT(options.args[2], "-c");
	options_free(&options);
}

static void help_ends_the_parse(void)
{
	struct options options;
	struct err err;
	CHECK(PARSE("run", "--help", "--nonsense") == 0);
	CHECK(options.help);
	options_free(&options);
	CHECK(PARSE("show", "-h") == 0);
	CHECK(options.help);
	options_free(&options);
	/* A mistake before it is still told, but help was asked for. */
	CHECK(PARSE("run", "--nonsense", "--help") < 0);
	CHECK(options.help);
	options_free(&options);
}

static void mistakes_are_named(void)
{
	static const struct {
		const char *command, *word, *next, *text, *hint;
	} rows[] = {
		{ "run", "--polciy", "x", "unknown option --polciy", "did you mean --policy?" },
		{ "run", "--work=/", NULL, "unknown option --work", "did you mean --workspace?" },
		{ "run", "--open_files=3", NULL, "unknown option --open_files",
			"did you mean --open-files?" },
		{ "run", "--zzzzzzzz", NULL, "unknown option --zzzzzzzz", "" },
		{ "run", "-qZ", NULL, "unknown option -Z", "" },
		{ "run", "-\xc3\xa9x", NULL, "unknown option -\xc3\xa9x", "" },
		{ "run", "--tty=yes", NULL, "--tty takes no value", "" },
		{ "run", "--wall", NULL, "--wall needs a value: DURATION", "" },
		{ "run", "-p", "--", "--policy needs a value: NAME|FILE", "" },
		{ "run", "--wall=1s", "--wall=2s", "--wall is given twice", "" },
		{ "run", "--json", NULL, "unknown option --json",
			"the result is JSON without any option" },
		{ "run", "--timeout", "5s", "unknown option --timeout", "did you mean --wall?" },
		{ "run", "--mem=1GiB", NULL, "unknown option --mem", "did you mean --memory?" },
		{ "run", "--network", "host", "unknown option --network",
			"a policy says it: network: host" },
		{ "show", "--policy", NULL, "unknown option --policy",
			"the policy is named without it: agentbox show POLICY" },
		{ "show", "--policy=a.yaml", NULL, "unknown option --policy",
			"the policy is named without it: agentbox show a.yaml" },
		{ "explain", "-p", "work.yaml", "unknown option -p",
			"the policy is named without it: agentbox explain work.yaml" },
		{ "check", "-vpwork.yaml", NULL, "unknown option -p",
			"the policy is named without it: agentbox check work.yaml" },
		{ "doctor", "-p", "x", "unknown option -p", "" },
		{ NULL, "-p", "x", "unknown option -p",
			"options stand behind the command: agentbox run ..." },
		{ NULL, "--timeout=1s", NULL, "unknown option --timeout",
			"options stand behind the command: agentbox run ..." },
		{ "check", "--version", NULL, "unknown option --version", "" },
		{ NULL, "--versoin", NULL, "unknown option --versoin", "did you mean --version?" },
		{ "run", "--", NULL, NULL, NULL },
		{ "run", "--=x", NULL, "unknown option --", "" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct options options;
		struct err err;
		int result = PARSE(rows[i].command, rows[i].word, rows[i].next);
		CHECK((result < 0) == (rows[i].text != NULL));
		if (rows[i].text) {
			CHECK(err.code == ERR_usage);
			CHECK_TEXT(err.text, rows[i].text);
			CHECK_TEXT(err.hint, rows[i].hint);
		}
		options_free(&options);
	}
}

/* A caller that named a place for the result finds it there, whatever else is wrong. */
static void what_follows_a_mistake_is_still_read(void)
{
	struct options options;
	struct err err;
	CHECK(PARSE("run", "--nonsense", "--tty=1", "--result", "file", "-q", "--", "x") < 0);
	CHECK_TEXT(err.text, "unknown option --nonsense");
	CHECK_TEXT(options_value(&options, OPTION_run_result), "file");
	CHECK(options_has(&options, OPTION_run_quiet));
	options_free(&options);
}

static void numbers_are_digits(void)
{
	long number = -5;
	CHECK(parse_number("0", 10, &number) == 0 && number == 0);
	CHECK(parse_number("0010", 10, &number) == 0 && number == 10);
	static const char *const wrong[] = { "", " 1", "+1", "-1", "1 ", "0x1", "11",
		"99999999999999999999999", "1.0" };
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		CHECK(parse_number(wrong[i], 10, &number) < 0);
	CHECK(number == 10);
}

static void near_words(void)
{
	static const char *const words[] = { "run", "check", "show", "explain", "doctor" };
	size_t count = sizeof words / sizeof *words;
	CHECK_TEXT(nearest_word("rnu", words, count), "run");
	CHECK_TEXT(nearest_word("chekc", words, count), "check");
	CHECK_TEXT(nearest_word("exp", words, count), "explain");
	CHECK_TEXT(nearest_word("docter", words, count), "doctor");
	CHECK(nearest_word("", words, count) == NULL);
	CHECK(nearest_word("x", words, count) == NULL);
	CHECK(nearest_word("frobnicate", words, count) == NULL);
	CHECK(nearest_word("a-word-that-is-far-longer-than-any-option", words, count) == NULL);
}

static void unknown_commands_are_named(void)
{
	struct err err;
	CHECK(command_find("rum", &err) == NULL);
	CHECK(err.code == ERR_usage);
	CHECK_TEXT(err.hint, "did you mean `agentbox run`?");
	/* Hidden ones are found, but never proposed. */
	CHECK(command_find("dump", &err) != NULL);
	CHECK(command_find("dumb", &err) == NULL);
	CHECK(strstr(err.hint, "dump") == NULL);
}

/* The table itself: nothing in it can be meant twice, and all of it can be shown. */
static void the_table_is_sound(void)
{
	struct err err;
	for (int id = 0; id < OPTION_COUNT_; id++) {
		const struct option_info *info = option_info(id);
		bool any = strcmp(info->command, "any") == 0;
		CHECK(any || strcmp(info->command, "agentbox") == 0 ||
			command_find(info->command, &err) != NULL);
		CHECK((info->type == OPTION_FLAG) == (info->argument[0] == 0));
		CHECK(info->help[0] && info->help[strlen(info->help) - 1] != '.');
		CHECK(strlen(info->name) <= NEAREST_MAX);
		for (int other = 0; other < id; other++) {
			const struct option_info *second = option_info(other);
			if (!any && strcmp(info->command, second->command) != 0)
				continue;
			CHECK(strcmp(info->name, second->name) != 0);
			CHECK(info->letter == 0 || info->letter != second->letter);
		}
	}
}

int main(void)
{
	RUN(long_and_short_forms);
	RUN(the_command_keeps_its_options);
	RUN(other_commands_take_options_anywhere);
	RUN(help_ends_the_parse);
	RUN(mistakes_are_named);
	RUN(what_follows_a_mistake_is_still_read);
	RUN(numbers_are_digits);
	RUN(near_words);
	RUN(unknown_commands_are_named);
	RUN(the_table_is_sound);
	return CHECK_STATUS();
}
