/*
 * options: parses command lines by the one table of options. Knows nothing of what an option means.
 */
#include "cli/options.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

static const struct option_info table[OPTION_COUNT_] = {
#define OPTION(command, id, name, letter, argument, type, many, help)                              \
	[OPTION_##command##_##                                                                     \
		id] = { #command, #id, name, letter, argument, OPTION_##type, many, help },
#include "cli/options.def"
#undef OPTION
};

static const char *const type_names[] = {
	[OPTION_FLAG] = "flag",
	[OPTION_TEXT] = "text",
	[OPTION_NUMBER] = "number",
	[OPTION_FILE] = "file",
	[OPTION_DIR] = "dir",
	[OPTION_POLICY] = "policy",
	[OPTION_LIMIT] = "limit",
};

const struct option_info *option_info(enum option_id id)
{
	return &table[id];
}

const char *option_type_name(enum option_type type)
{
	return type_names[type];
}

bool option_applies(enum option_id id, const struct command *command)
{
	const char *owner = table[id].command;
	if (strcmp(owner, "any") == 0)
		return true;
	return strcmp(owner, command ? command->name : "agentbox") == 0;
}

/* What one parse works on. */
struct parser {
	const struct command *command;
	char *const *argv;
	int argc, next; /* next: the argument to look at */
	size_t use_count;
	struct options *out;
	struct err *err;
	bool failed; /* *err holds the first mistake */
};

/* The first mistake is the one to tell; what comes after it may be its consequence. */
static struct err *complain_to(struct parser *parser)
{
	struct err *err = parser->failed ? NULL : parser->err;
	parser->failed = true;
	return err;
}

static bool given(const struct parser *parser, enum option_id id)
{
	for (size_t i = 0; i < parser->use_count; i++)
		if (parser->out->uses[i].id == id)
			return true;
	return false;
}

static void add_use(struct parser *parser, enum option_id id, const char *value)
{
	if (!table[id].many && table[id].type != OPTION_FLAG && given(parser, id)) {
		err_set(complain_to(parser), ERR_usage, 0, "--%s is given twice", table[id].name);
		return;
	}
	struct option_use *use = arena_push(
		&parser->out->arena, &parser->out->uses, &parser->use_count, sizeof *use);
	use->id = id;
	use->value = value;
	if (id == OPTION_any_help)
		parser->out->help = true;
}

/* Take an option whose value, if it has one attached, is `attached`. */
static void take(struct parser *parser, enum option_id id, const char *attached)
{
	const struct option_info *info = &table[id];
	if (info->type == OPTION_FLAG) {
		if (attached)
			err_set(complain_to(parser), ERR_usage, 0, "--%s takes no value",
				info->name);
		else
			add_use(parser, id, NULL);
		return;
	}
	if (!attached && parser->next < parser->argc &&
		strcmp(parser->argv[parser->next], "--") != 0)
		attached = parser->argv[parser->next++];
	if (!attached) {
		err_set(complain_to(parser), ERR_usage, 0, "--%s needs a value: %s", info->name,
			info->argument);
		return;
	}
	add_use(parser, id, attached);
}

/* Options that other tools, or other commands of this one, have under another name. */
static const struct {
	const char *command, *words, *hint;
} foreign[] = {
	{ "run", "timeout|time|time-limit|deadline", "did you mean --wall?" },
	{ "run", "mem|ram|memory-limit|mem-limit", "did you mean --memory?" },
	{ "run", "processes|nproc|procs|pids-limit", "did you mean --pids?" },
	{ "run", "nofile|fds", "did you mean --open-files?" },
	{ "run", "workdir|working-dir|chdir", "did you mean --cwd?" },
	{ "run", "dir|directory|root", "did you mean --workspace?" },
	{ "run", "config|profile", "did you mean --policy?" },
	{ "run", "interactive|input", "did you mean --stdin?" },
	{ "run", "volume|mount|bind|ro-bind|read|write|allow-read|allow-write",
		"a policy says it: filesystem: {read: [PATH], write: [PATH]}" },
	{ "run", "net|network|allow-net|share-net", "a policy says it: network: host" },
	{ "run", "json", "the result is JSON without any option" },
	{ "run", "json-pretty", "did you mean --pretty?" },
	{ "agentbox", "policy|wall|timeout|workspace|stdin|env",
		"options stand behind the command: agentbox run ..." },
};

/* Is the word one of "a|b|c"? */
static bool among(const char *words, const char *word)
{
	size_t len = strlen(word);
	for (const char *at = words; *at;) {
		size_t n = strcspn(at, "|");
		if (n == len && memcmp(at, word, n) == 0)
			return true;
		at += n + (at[n] == '|');
	}
	return false;
}

static const char *foreign_hint(const struct parser *parser, const char *name)
{
	const char *command = parser->command ? parser->command->name : "agentbox";
	for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
		if (strcmp(foreign[i].command, command) == 0 && among(foreign[i].words, name))
			return foreign[i].hint;
	return NULL;
}

/* -p is an option of `run` alone: other commands take the policy as an argument. */
static bool plain_policy(const struct parser *parser, const char *attached, struct err *err)
{
	if (!parser->command || strncmp(parser->command->usage, "[OPTIONS] POLICY", 16) != 0)
		return false;
	const char *value = attached && *attached ? attached : parser->argv[parser->next];
	if (!(attached && *attached) && parser->next >= parser->argc)
		value = "POLICY";
	err_hint_set(err, "the policy is named without it: agentbox %s %.300s",
		parser->command->name, value);
	return true;
}

static void unknown_long(struct parser *parser, const char *name, const char *attached)
{
	const char *names[OPTION_COUNT_];
	size_t count = 0;
	for (int id = 0; id < OPTION_COUNT_; id++)
		if (option_applies(id, parser->command))
			names[count++] = table[id].name;
	const char *nearest = nearest_word(name, names, count);
	struct err *err = complain_to(parser);
	err_set(err, ERR_usage, 0, "unknown option --%s", name);
	const char *hint = foreign_hint(parser, name);
	if (strcmp(name, "policy") == 0 && plain_policy(parser, attached, err))
		return;
	if (hint)
		err_hint_set(err, "%s", hint);
	else if (nearest)
		err_hint_set(err, "did you mean --%s?", nearest);
}

static void take_long(struct parser *parser, const char *word)
{
	const char *equals = strchr(word, '=');
	size_t len = equals ? (size_t)(equals - word) : strlen(word);
	for (int id = 0; id < OPTION_COUNT_; id++) {
		if (strlen(table[id].name) == len && memcmp(table[id].name, word, len) == 0 &&
			option_applies(id, parser->command)) {
			take(parser, id, equals ? equals + 1 : NULL);
			return;
		}
	}
	unknown_long(
		parser, arena_strndup(&parser->out->arena, word, len), equals ? equals + 1 : NULL);
}

/* -qv, -pFILE, -p FILE: letters until one of them takes the rest, or the next argument. */
static void take_letters(struct parser *parser, const char *letters)
{
	for (const char *at = letters; *at; at++) {
		int id = 0;
		while (id < OPTION_COUNT_ &&
			!(table[id].letter == *at && option_applies(id, parser->command)))
			id++;
		if (id == OPTION_COUNT_) {
			/* A byte that begins a longer character is shown with the rest of it. */
			struct err *err = complain_to(parser);
			err_set(err, ERR_usage, 0, "unknown option -%.*s",
				(unsigned char)*at < 0x80 ? 1 : 4, at);
			if (*at == 'p' && !plain_policy(parser, at + 1, err) && !parser->command)
				err_hint_set(err, "%s", foreign_hint(parser, "policy"));
			return;
		}
		if (table[id].type != OPTION_FLAG) {
			take(parser, id, at[1] ? at + 1 : NULL);
			return;
		}
		take(parser, id, NULL);
	}
}

int options_parse(const struct command *command, int argc, char *const *argv,
	struct options *ret_options, struct err *err)
{
	struct options options = { 0 };
	struct parser parser = {
		.command = command, .argv = argv, .argc = argc, .out = &options, .err = err
	};
	/* One more than there are: NULL-terminated. */
	char **args = ARENA_ARRAY(&options.arena, (size_t)argc + 1, char *);
	bool stops = !command || command->stops;
	while (parser.next < argc && !options.help) {
		char *word = argv[parser.next++];
		if (strcmp(word, "--") == 0) {
			options.dashes = true;
			break;
		}
		if (word[0] == '-' && word[1] == '-') {
			take_long(&parser, word + 2);
		} else if (word[0] == '-' && word[1]) {
			take_letters(&parser, word + 1);
		} else {
			args[options.arg_count++] = word;
			if (stops)
				break;
		}
	}
	while (parser.next < argc && !options.help)
		args[options.arg_count++] = argv[parser.next++];
	options.args = args;
	options.use_count = parser.use_count;
	*ret_options = options;
	return parser.failed ? -1 : 0;
}

void options_free(struct options *options)
{
	arena_free(&options->arena);
}

bool options_has(const struct options *options, enum option_id id)
{
	for (size_t i = 0; i < options->use_count; i++)
		if (options->uses[i].id == id)
			return true;
	return false;
}

const char *options_value(const struct options *options, enum option_id id)
{
	for (size_t i = 0; i < options->use_count; i++)
		if (options->uses[i].id == id)
			return options->uses[i].value;
	return NULL;
}

int parse_number(const char *text, long max, long *ret_number)
{
	long number = 0;
	const char *at = text;
	/* No strtol: it takes spaces and signs. */
	for (; *at >= '0' && *at <= '9'; at++) {
		number = number * 10 + (*at - '0');
		if (number > max)
			return -1;
	}
	if (at == text || *at)
		return -1;
	*ret_number = number;
	return 0;
}

/* Edits (insert, delete, replace, swap of neighbours) that turn a into b; both short. */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t rows[3][NEAREST_MAX + 1];
	size_t *before = rows[0], *last = rows[1], *now = rows[2];
	for (size_t j = 0; j <= b_len; j++)
		last[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		now[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
				before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
		size_t *spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[b_len];
}

const char *nearest_word(const char *word, const char *const *words, size_t count)
{
	size_t len = strlen(word);
	if (len == 0 || len > NEAREST_MAX)
		return NULL;
	const char *nearest = NULL;
	/* At most a third of the word may be wrong, and always one letter. */
	size_t best = len / 3 + 2;
	for (size_t i = 0; i < count; i++) {
		size_t other = strlen(words[i]);
		if (other > NEAREST_MAX)
			continue;
		/* A beginning of at least three letters counts as near: --work for --workspace. */
		size_t edits = len >= 3 && other > len && memcmp(word, words[i], len) == 0
				       ? 1
				       : distance(word, len, words[i], other);
		if (edits < best) {
			best = edits;
			nearest = words[i];
		}
	}
	return nearest;
}
