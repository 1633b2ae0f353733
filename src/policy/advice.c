/* advice: from a mistake that many make first to what they meant. Tables, and how to look in them.
 */
#define _GNU_SOURCE
#include "policy/advice.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "policy/value.h"

/* Is `word` among the words of "a|b|c", whatever its case, and with - for _? */
static bool among(const char *words, const char *word)
{
	size_t len = strlen(word);
	for (const char *p = words; *p;) {
		size_t n = strcspn(p, "|");
		size_t i = 0;
		while (n == len && i < n &&
			p[i] == (word[i] == '-' ? '_' : tolower((unsigned char)word[i])))
			i++;
		if (n == len && i == n)
			return true;
		p += n + (p[n] == '|');
	}
	return false;
}

/* Keys that other tools have, and what they are here. */
static const struct foreign {
	const char *words;
	const char *key;     /* NULL: `example` is all there is to say */
	const char *example; /* of a value */
} foreign[] = {
	{ "timeout|time_limit|timelimit|time|max_time|maxtime|walltime|wall_time|deadline",
		"limits.wall", "60s" },
	{ "cpu_limit|cpu_time|cputime|max_cpu|cpu_seconds", "limits.cpu", "10s" },
	{ "cpu_count|cores|ncpu|num_cpus|nano_cpus", "limits.cpus", "1.5" },
	{ "mem|ram|mem_limit|memory_limit|max_memory|max_mem|rss", "limits.memory", "512MiB" },
	{ "processes|nproc|procs|threads|max_processes|max_procs|pids_limit|pid_limit|tasks_max",
		"limits.pids", "64" },
	{ "nofile|fds|max_files|max_open_files", "limits.open_files", "256" },
	{ "fsize|max_file_size", "limits.file_size", "10MiB" },
	{ "tmp_size|tmpfs_size|disk_limit|max_disk|storage", "limits.disk", "1GiB" },
	{ "max_output|output_limit", "limits.output", "1MiB" },
	{ "volumes|volume|mounts|mount|binds|bind|ro_bind|readonly|read_only|ro|allow_read|paths",
		"filesystem.read", "[/opt/data]" },
	{ "read_write|readwrite|rw|writable|writeable|allow_write|rw_bind", "filesystem.write",
		"[/opt/data]" },
	{ "deny_read|blacklist|blocklist|exclude|ignore", "filesystem.hide", "[.env]" },
	{ "rootfs|image|chroot", "filesystem.root", "DIRECTORY" },
	{ "allow_net|allow_network|net|networking|network_mode|internet|network_access", "network",
		"host" },
	{ "hosts|domains|allow_hosts|allowed_hosts|allow_domains|allowed_domains|egress",
		"network.allow", "[example.com]" },
	{ "ports|port|expose|forward|forwards|port_mappings|published", "network.publish",
		"[8080]" },
	{ "environment|environ|env_vars|envs|variables|vars", "env", "{set: {NAME: \"value\"}}" },
	{ "pass_env|env_pass|passenv|keep_env", "env.pass", "[NAME]" },
	{ "setenv|set_env", "env.set", "{NAME: \"value\"}" },
	{ "seccomp|seccomp_profile", "syscalls", "{profile: strict}" },
	{ "inherit|inherits|include|includes|import|base|parent|from", "extends", "[default]" },
	{ "cmd|command|args|argv|entrypoint|exec|run|script", NULL,
		"a policy holds no command; it stands behind: agentbox run -p POLICY -- COMMAND" },
	{ "workdir|working_dir|working_directory|cwd|dir", NULL,
		"the directory to start in is an option: agentbox run --cwd DIR" },
	{ "user|uid|gid|group", NULL, "a box always runs as the caller's own user" },
	{ "stdin|input", NULL, "input is an option: agentbox run -i" },
};

/* "KEY:VALUE" with a key of `map` (any key when it is not known which map): a blank is missing. */
static bool advice_colon(const struct key *map, bool any, const char *text, char hint[ADVICE_MAX])
{
	char name[SHOWN_MAX], shown[SHOWN_MAX];
	size_t len = strcspn(text, ":");
	if (!text[len] || !text[len + 1] || strchr(" \n/", text[len + 1]) || !len ||
		len >= sizeof name)
		return false;
	memcpy(name, text, len);
	name[len] = 0;
	const struct key *key = NULL;
	if (!any)
		key = key_child(map, name);
	for (int id = 0; any && id < K_COUNT_ && !key; id++)
		if (strcmp(key_name(key_row(id)), name) == 0)
			key = key_row(id);
	if (!key || key_name(key)[0] == '*')
		return false;
	text_shown(text + len + 1, shown);
	/* A text that goes on over lines is shown without its next key. */
	shown[strcspn(shown, " ")] = 0;
	snprintf(hint, ADVICE_MAX, "a blank is missing behind ':'; write %s: %s", name, shown);
	return true;
}

bool advice_line(const char *line, size_t len, size_t *ret_at, char hint[ADVICE_MAX])
{
	char text[SHOWN_MAX];
	size_t at = 0;
	while (at < len &&
		(line[at] == ' ' || (line[at] == '-' && at + 1 < len && line[at + 1] == ' ')))
		at++;
	size_t n = 0;
	while (at + n < len && n + 1 < sizeof text && line[at + n] != ' ') {
		text[n] = line[at + n];
		n++;
	}
	text[n] = 0;
	*ret_at = at;
	return advice_colon(NULL, true, text, hint);
}

/* The value as it stands, when the key takes it or nearly does; else the example. */
static const char *fit_value(
	const struct key *key, const struct node *value, const char *example, char text[ADVICE_MAX])
{
	uint64_t number;
	if (value->kind != NODE_SCALAR)
		return example;
	const char *word =
		key_has_word(key, value->text) ? value->text : advice_word(key, value->text);
	if (word || !value_is_number(key->type))
		return word ? word : example;
	if (key->type == KEY_DURATION && value_int(value->text, &number) == 0 && number > 0 &&
		number <= key->hi / 1000000) {
		snprintf(text, ADVICE_MAX, "%ss", value->text);
		return text;
	}
	if (value_number(key->type, value->text, &number) == 0 && number >= key->lo &&
		number <= key->hi)
		return value->text;
	if (!advice_number(key, value->text, text))
		return example;
	/* "did you mean 5s?" */
	char *end = strchr(text, '?'), *start = strrchr(text, ' ') + 1;
	*end = 0;
	return start;
}

static bool foreign_hint(const struct foreign *row, const struct key *map,
	const struct node *member, char hint[ADVICE_MAX])
{
	static const char *const commands[] = { "command", "run" };
	if (!row->key) {
		bool command = among(row->words, "cmd");
		for (size_t i = 0; command && map && i < 2; i++) {
			if (!key_child(map, commands[i]) || map->type == KEY_NAMES)
				continue;
			snprintf(hint, ADVICE_MAX, "did you mean '%s'?", commands[i]);
			return true;
		}
		snprintf(hint, ADVICE_MAX, "%s", row->example);
		return true;
	}
	const struct key *key = key_find(row->key);
	const char *name = key_name(key);
	if (map && key_child(map, name)) {
		snprintf(hint, ADVICE_MAX, "did you mean '%s'?", name);
		return true;
	}
	char text[ADVICE_MAX];
	const char *value = fit_value(key, member, row->example, text);
	size_t parent = (size_t)(name - key->path);
	const char *where = map ? " at the top level" : "";
	if (parent)
		snprintf(hint, ADVICE_MAX, "write%s: %.*s: {%s: %.100s}", where, (int)parent - 1,
			key->path, name, value);
	else
		snprintf(hint, ADVICE_MAX, "write%s: %s: %.100s", where, name, value);
	return true;
}

bool advice_member(const struct key *map, const struct node *member, char hint[ADVICE_MAX])
{
	char shown[SHOWN_MAX];
	if (advice_colon(map, false, member->key, hint))
		return true;
	uint64_t port;
	if (map == key_row(K_network_allow_) && member->kind == NODE_SCALAR &&
		value_int(member->text, &port) == 0 && strlen(member->key) < 80) {
		snprintf(hint, ADVICE_MAX, "no blank stands before the port; write %s:%s",
			text_shown(member->key, shown), member->text);
		return true;
	}
	if (map == key_row(K_env) && member->kind == NODE_SCALAR &&
		value_is_variable(member->key) && !among("passenv|setenv|vars", member->key)) {
		snprintf(hint, ADVICE_MAX, "write: env: {set: {%s: \"%s\"}}",
			text_shown(member->key, shown),
			strlen(member->text) < 40 ? member->text : "...");
		return true;
	}
	for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
		if (among(foreign[i].words, member->key))
			return foreign_hint(&foreign[i], map, member, hint);
	return false;
}

/* The scalars of a list as they are written, "[a, b]"; "[NAME]" when they are many. */
static void list_text(const struct node *list, const char *many, struct buf *out)
{
	size_t start = out->len;
	buf_adds(out, "[");
	for (const struct node *node = list->first; node; node = node->next)
		if (node->kind != NODE_SCALAR || out->len + strlen(node->text) > start + 80 ||
			buf_addf(out, "%s%s", node == list->first ? "" : ", ", node->text) < 0) {
			out->len = start;
			buf_adds(out, many);
			return;
		}
	buf_adds(out, "]");
}

bool advice_kind(const struct key *key, const struct node *node, char hint[ADVICE_MAX])
{
	AUTO_BUF text = { .max = ADVICE_MAX - 1 };
	const struct node *first = node->first;
	if (key->type == KEY_MAP && node->kind == NODE_SCALAR && node->plain &&
		advice_colon(key, false, node->text, hint))
		return true;
	const char *equals = key == key_row(K_env) && node->kind == NODE_LIST && first &&
					     first->kind == NODE_SCALAR
				     ? strchr(first->text, '=')
				     : NULL;
	if (equals && equals - first->text < 40 && strlen(equals) < 80) {
		buf_addf(&text, "write: env: {set: {%.*s: \"%s\"}}", (int)(equals - first->text),
			first->text, equals + 1);
	} else if (key == key_row(K_env) && node->kind == NODE_LIST) {
		buf_adds(&text, "write: env: {pass: ");
		list_text(node, "[NAME]", &text);
		buf_adds(&text, "}");
	} else if (key == key_row(K_network) && node->kind == NODE_LIST) {
		buf_adds(&text, "write: network: {allow: ");
		list_text(node, "[NAME]", &text);
		buf_adds(&text, "}");
	} else if (key == key_row(K_network) && node->kind == NODE_SCALAR &&
		   strpbrk(node->text, ".:") && strlen(node->text) < 80) {
		buf_addf(&text, "write: network: {allow: [%s]}", node->text);
	} else {
		return false;
	}
	snprintf(hint, ADVICE_MAX, "%s", buf_text(&text));
	return true;
}

static const struct unit {
	enum key_type type;
	const char *words; /* in lower case */
	const char *unit;
	unsigned times; /* a unit that is not known here, in the one that is */
} units[] = {
	{ KEY_DURATION, "us|usec|usecs|microsecond|microseconds", "us", 1 },
	{ KEY_DURATION, "ms|msec|msecs|millis|millisecond|milliseconds", "ms", 1 },
	{ KEY_DURATION, "s|sec|secs|second|seconds", "s", 1 },
	{ KEY_DURATION, "m|min|mins|minute|minutes", "m", 1 },
	{ KEY_DURATION, "h|hr|hrs|hour|hours", "h", 1 },
	{ KEY_DURATION, "d|day|days", "h", 24 },
	{ KEY_DURATION, "w|week|weeks", "h", 168 },
	{ KEY_SIZE, "b|byte|bytes", "B", 1 },
	{ KEY_SIZE, "k|ki|kib", "KiB", 1 },
	{ KEY_SIZE, "m|mi|mib", "MiB", 1 },
	{ KEY_SIZE, "g|gi|gib", "GiB", 1 },
	{ KEY_SIZE, "t|ti|tib", "TiB", 1 },
	{ KEY_SIZE, "kb", "KB", 1 },
	{ KEY_SIZE, "mb|meg|megs|megabyte|megabytes", "MB", 1 },
	{ KEY_SIZE, "gb|gig|gigs|gigabyte|gigabytes", "GB", 1 },
	{ KEY_SIZE, "tb|terabyte|terabytes", "TB", 1 },
};

/* One number with its unit at *text, written as it should be; *text moves behind it. */
static bool correct_part(enum key_type type, const char **text, char out[VALUE_TEXT_MAX])
{
	const char *p = *text + strspn(*text, " ");
	size_t digits = strspn(p, "0123456789.");
	const char *name = p + digits + strspn(p + digits, " _");
	size_t len = 0;
	char word[16];
	while (isalpha((unsigned char)name[len]) && len + 1 < sizeof word) {
		word[len] = name[len];
		len++;
	}
	word[len] = 0;
	if (!digits || digits > 12 || !len)
		return false;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (units[i].type != type || !among(units[i].words, word))
			continue;
		char number[16];
		snprintf(number, sizeof number, "%.*s", (int)digits, p);
		if (units[i].times > 1) {
			uint64_t whole;
			if (value_int(number, &whole) < 0 || whole > 1000)
				return false;
			snprintf(number, sizeof number, "%u", (unsigned)whole * units[i].times);
		}
		snprintf(out, VALUE_TEXT_MAX, "%s%s", number, units[i].unit);
		*text = name + len + strspn(name + len, " ");
		return true;
	}
	return false;
}

bool advice_number(const struct key *key, const char *text, char hint[ADVICE_MAX])
{
	char part[VALUE_TEXT_MAX], all[VALUE_TEXT_MAX];
	uint64_t sum = 0, value;
	int parts = 0;
	if (key->type != KEY_DURATION && key->type != KEY_SIZE)
		return false;
	for (; *text && parts < 4; parts++) {
		if (!correct_part(key->type, &text, part) ||
			value_number(key->type, part, &value) < 0 || value > key->hi)
			return false;
		sum += value;
	}
	if (*text || !parts || sum < key->lo || sum > key->hi)
		return false;
	/* "1m30s" is one number here. */
	value_text(key->type, sum, all);
	snprintf(hint, ADVICE_MAX, "did you mean %s?", parts > 1 ? all : part);
	return true;
}

static const struct {
	enum key_id key;
	const char *words, *meant;
} values[] = {
	{ K_fs_workspace, "rw|w|readwrite|read_write|writable|writeable|yes|true|on", "write" },
	{ K_fs_workspace, "ro|r|readonly|read_only", "read" },
	{ K_fs_workspace, "no|false|off|hide|hidden", "none" },
	{ K_fs_workspace, "copy|cow|snapshot", "overlay" },
	{ K_fs_home, "tmp|tmpfs|empty|yes|true|on", "private" },
	{ K_fs_home, "no|false|off", "none" },
	{ K_network, "no|false|off|deny|denied|disabled|disable|isolated", "none" },
	{ K_network, "yes|true|on|all|full|any|allow|enabled|enable|bridge|internet", "host" },
	{ K_nesting, "yes|true|on|allowed", "allow" },
	{ K_nesting, "no|false|off|none|denied", "deny" },
	{ K_sys_on_violation, "eperm|error|fail|refuse|deny", "errno" },
	{ K_sys_on_violation, "die|terminate|abort|stop", "kill" },
};

const char *advice_word(const struct key *key, const char *text)
{
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		if (key == key_row(values[i].key) && among(values[i].words, text))
			return values[i].meant;
	return NULL;
}

/* "$" with what a shell would take for a variable; "$id" in a file's name is left alone. */
static const char *variable(const char *text)
{
	for (const char *p = strchr(text, '$'); p; p = strchr(p + 1, '$'))
		if (p[1] == '{' || p[1] == '_' || isupper((unsigned char)p[1]))
			return p;
	return NULL;
}

const char *advice_path(const struct key *key, const char *text, char hint[ADVICE_MAX])
{
	static const char *const homes[] = { "$HOME", "${HOME}" };
	char shown[SHOWN_MAX];
	if (variable(text)) {
		snprintf(hint, ADVICE_MAX, "write the path itself");
		for (size_t i = 0; i < 2; i++) {
			size_t len = strlen(homes[i]);
			if (strncmp(text, homes[i], len) == 0 && (!text[len] || text[len] == '/') &&
				!variable(text + len))
				snprintf(hint, ADVICE_MAX, "write ~%s",
					text_shown(text + len, shown));
		}
		return "variables are not expanded";
	}
	bool grant = key->type == KEY_PATH_OR_MAP || key == key_row(K_fs_read_path) ||
		     key == key_row(K_fs_write_path);
	const char *star = grant ? strchr(text, '*') : NULL;
	if (!star)
		return NULL;
	size_t len = (size_t)(star - text);
	while (len > 0 && text[len - 1] != '/')
		len--;
	if (len > 1 && len < SHOWN_MAX)
		snprintf(hint, ADVICE_MAX, "grant the directory, with all that is in it: %.*s",
			(int)len - 1, text);
	else
		snprintf(hint, ADVICE_MAX, "name each path, or a directory with all that is in it");
	return "a grant is a path, not a pattern";
}

bool advice_quotes(const char *text, size_t len, bool pattern, char hint[ADVICE_MAX])
{
	size_t n = 0;
	int brackets = 0, braces = 0;
	for (; n < len && n < SHOWN_MAX && !strchr(" \n", text[n]); n++) {
		/* What a list or map around the word ends with does not belong to it. */
		if ((text[n] == ']' && !brackets) || (text[n] == '}' && !braces) ||
			(text[n] == ',' && !braces))
			break;
		brackets += (text[n] == '[') - (text[n] == ']');
		braces += (text[n] == '{') - (text[n] == '}');
		if (text[n] == '"' || text[n] == '\\')
			return false;
	}
	while (n > 1 && text[n - 1] == ':')
		n--;
	if (n == 0 || n == SHOWN_MAX)
		return false;
	snprintf(hint, ADVICE_MAX, "a %s that begins with %c needs quotes: \"%.*s\"",
		pattern ? "pattern" : "word", text[0], (int)n, text);
	return true;
}
