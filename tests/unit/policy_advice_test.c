/*
 * policy_advice_test: mistakes that many make first: words of other tools, units, quotes that YAML
 * needs, lists where maps belong. A table of texts with the place and what to write in their place.
 */
#include "policy/policy.h"
#include "check.h"

#define FILE_NAME "/p/test.yaml"
#define V         "version: 1\n"

static const struct bad {
	const char *text;
	int line, column;
	const char *words; /* of the message */
	const char *hint;  /* all of it; "": none of its own */
} rows[] = {
	/* Signs that YAML keeps for itself. */
	{ V "filesystem: {hide: [.env, *.key]}\n", 2, 27, "cannot begin with *",
		"a pattern that begins with * needs quotes: \"*.key\"" },
	{ V "filesystem:\n  hide:\n    - **/*.pem\n", 4, 7, "cannot begin with *",
		"a pattern that begins with * needs quotes: \"**/*.pem\"" },
	{ V "filesystem:\n  protect:\n    - *.[ch] # all\n", 4, 7, "cannot begin with *",
		"a pattern that begins with * needs quotes: \"*.[ch]\"" },
	{ V "filesystem: {hide: [*key]}\n", 2, 21, "aliases (*key)",
		"a pattern that begins with * needs quotes: \"*key\"" },
	{ V "filesystem: {hide: [!keep.env]}\n", 2, 21, "cannot begin with !",
		"a pattern that begins with ! needs quotes: \"!keep.env\"" },
	{ V "filesystem: {hide: [!keep x]}\n", 2, 21, "tags (!keep)",
		"a pattern that begins with ! needs quotes: \"!keep\"" },
	{ V "filesystem: {read: [&a]}\n", 2, 21, "anchors (&a)",
		"a word that begins with & needs quotes: \"&a\"" },
	{ V "name: &a.b\n", 2, 7, "cannot begin with &",
		"a word that begins with & needs quotes: \"&a.b\"" },
	{ V "name: %x\n", 2, 7, "cannot begin with %",
		"a word that begins with % needs quotes: \"%x\"" },
	{ V "name: @x\n", 2, 7, "cannot begin with @",
		"a word that begins with @ needs quotes: \"@x\"" },
	{ V "name: `x`\n", 2, 7, "cannot begin with `",
		"a word that begins with ` needs quotes: \"`x`\"" },
	{ V "network: {allow: [*.pypi.org]}\n", 2, 19, "cannot begin with *",
		"a word that begins with * needs quotes: \"*.pypi.org\"" },
	{ V "name: *\"a\n", 2, 7, "cannot begin with *", "" },

	/* Words of other tools, at the right level. */
	{ V "timeout: 5s\n", 2, 1, "unknown key 'timeout'", "write: limits: {wall: 5s}" },
	{ V "timeout: 30\n", 2, 1, "unknown key 'timeout'", "write: limits: {wall: 30s}" },
	{ V "Time-Limit: soon\n", 2, 1, "unknown key", "write: limits: {wall: 60s}" },
	{ V "limits: {timeout: 5s}\n", 2, 10, "in 'limits'", "did you mean 'wall'?" },
	{ V "mem: 1gb\n", 2, 1, "unknown key 'mem'", "write: limits: {memory: 1GB}" },
	{ V "limits: {ram: 1GiB}\n", 2, 10, "unknown key 'ram'", "did you mean 'memory'?" },
	{ V "cpu_limit: 3s\n", 2, 1, "unknown key", "write: limits: {cpu: 3s}" },
	{ V "processes: 20\n", 2, 1, "unknown key", "write: limits: {pids: 20}" },
	{ V "limits: {nproc: 20}\n", 2, 10, "unknown key", "did you mean 'pids'?" },
	{ V "volumes: ['/a:/b']\n", 2, 1, "unknown key", "write: filesystem: {read: [/opt/data]}" },
	{ V "filesystem: {mounts: [/a]}\n", 2, 14, "unknown key", "did you mean 'read'?" },
	{ V "readonly: [/a]\n", 2, 1, "unknown key", "write: filesystem: {read: [/opt/data]}" },
	{ V "allow_net: true\n", 2, 1, "unknown key", "write: network: host" },
	{ V "net: none\n", 2, 1, "unknown key", "write: network: none" },
	{ V "limits: {net: false}\n", 2, 10, "unknown key",
		"write at the top level: network: none" },
	{ V "environment: {A: b}\n", 2, 1, "unknown key", "write: env: {set: {NAME: \"value\"}}" },
	{ V "cmd: [ls]\n", 2, 1, "unknown key 'cmd'",
		"a policy holds no command; it stands behind: agentbox run -p POLICY -- COMMAND" },
	{ V "command: ls\n", 2, 1, "unknown key 'command'",
		"a policy holds no command; it stands behind: agentbox run -p POLICY -- COMMAND" },
	{ V "tools: {t: {cmd: [/x]}}\n", 2, 13, "in 'tools.*'", "did you mean 'command'?" },
	{ V "code: {p: {cmd: [x]}}\n", 2, 12, "in 'code.*'", "did you mean 'command'?" },
	{ V "tests: [{cmd: [x]}]\n", 2, 10, "in 'tests[]'", "did you mean 'run'?" },
	{ V "output: 1MiB\n", 2, 1, "unknown key 'output'; it belongs in 'limits'", "" },
	{ V "stdin: 1MiB\n", 2, 1, "unknown key 'stdin'", "input is an option: agentbox run -i" },

	/* Paths. */
	{ V "filesystem: {read: [$HOME/x]}\n", 2, 21, "variables are not expanded", "write ~/x" },
	{ V "filesystem: {write: ['${HOME}']}\n", 2, 22, "variables are not expanded", "write ~" },
	{ V "filesystem: {hide: ['${HOME}/.x']}\n", 2, 21, "variables are not expanded",
		"write ~/.x" },
	{ V "filesystem: {read: [/opt/$USER/x]}\n", 2, 21, "variables are not expanded",
		"write the path itself" },
	{ V "filesystem: {read: [{path: $HOME/$X}]}\n", 2, 28, "variables are not expanded",
		"write the path itself" },
	{ V "filesystem: {read: [/opt/*]}\n", 2, 21, "a grant is a path, not a pattern",
		"grant the directory, with all that is in it: /opt" },
	{ V "filesystem: {write: [{path: a/b*/c}]}\n", 2, 29, "a grant is a path, not a pattern",
		"grant the directory, with all that is in it: a" },
	{ V "filesystem: {read: ['*']}\n", 2, 21, "a grant is a path, not a pattern",
		"name each path, or a directory with all that is in it" },
	{ V "filesystem: {read: [~/.ssh]}\n", 2, 21, "it holds private keys", "" },
	{ V "filesystem: {read: [~/.gnupg]}\n", 2, 21, "it holds private keys", "" },

	/* Units. */
	{ V "limits: {wall: 10sec}\n", 2, 16, "'10sec'", "did you mean 10s?" },
	{ V "limits: {wall: 2d}\n", 2, 16, "'2d'", "did you mean 48h?" },
	{ V "limits: {wall: 5S}\n", 2, 16, "'5S'", "did you mean 5s?" },
	{ V "limits: {wall: 1.5 minutes}\n", 2, 16, "'1.5 minutes'", "did you mean 1.5m?" },
	{ V "limits: {wall: 1m30s}\n", 2, 16, "'1m30s'", "did you mean 90s?" },
	{ V "limits: {wall: 60d}\n", 2, 16, "'60d'", "" },
	{ V "limits: {wall: 1x}\n", 2, 16, "'1x'", "" },
	{ V "limits: {wall: 1MiB}\n", 2, 16, "'1MiB'", "" },
	{ V "limits: {wall: 99999999999w}\n", 2, 16, "is not a value", "" },
	{ V "limits: {disk: 100M}\n", 2, 16, "'100M'", "did you mean 100MiB?" },
	{ V "limits: {disk: 100 MiB}\n", 2, 16, "'100 MiB'", "did you mean 100MiB?" },
	{ V "limits: {disk: 1gb}\n", 2, 16, "'1gb'", "did you mean 1GB?" },
	{ V "limits: {disk: 1e3}\n", 2, 16, "'1e3'", "" },
	{ V "limits: {disk: 1b}\n", 2, 16, "'1b'", "" }, /* less than the least */

	/* A blank that is missing. */
	{ V "limits:\n  wall:5s\n", 3, 3, "takes a map, not a single value",
		"a blank is missing behind ':'; write wall: 5s" },
	{ V "limits:\n  wall:5s\n\n  pids: 3\n", 3, 3, "the next line a key",
		"a blank is missing behind ':'; write wall: 5s" },
	{ V "limits: {wall:5s}\n", 2, 10, "unknown key 'wall:5s'",
		"a blank is missing behind ':'; write wall: 5s" },
	{ "version:1\n", 1, 1, "map of keys", "a blank is missing behind ':'; write version: 1" },
	{ "version:1\nname: x\n", 1, 1, "the next line a key",
		"a blank is missing behind ':'; write version: 1" },
	{ V "limits:\n  soon:5s\n", 3, 3, "takes a map", "" },
	{ "http://x\nname: x\n", 2, 5, "not YAML: mapping values", "" },

	/* One kind for another. */
	{ V "env: [CI]\n", 2, 6, "takes a map, not a list", "write: env: {pass: [CI]}" },
	{ V "env: [A, 'B=c']\n", 2, 6, "takes a map", "write: env: {pass: [A, B=c]}" },
	{ V "env: ['A=b c']\n", 2, 6, "takes a map", "write: env: {set: {A: \"b c\"}}" },
	{ V "env: []\n", 2, 6, "takes a map", "write: env: {pass: []}" },
	{ V "env: {CI: '1'}\n", 2, 7, "unknown key 'CI' in 'env'",
		"write: env: {set: {CI: \"1\"}}" },
	{ V "env: {pas: [A]}\n", 2, 7, "did you mean 'pass'?", "" },
	{ V "network: [pypi.org, a.test]\n", 2, 10, "not a list",
		"write: network: {allow: [pypi.org, a.test]}" },
	{ V "network: pypi.org\n", 2, 10, "none|host", "write: network: {allow: [pypi.org]}" },
	{ V "filesystem: {workspace: rw}\n", 2, 25, "did you mean 'write'?", "" },
	{ V "filesystem: {workspace: ro}\n", 2, 25, "did you mean 'read'?", "" },
	{ V "filesystem: {workspace: read-only}\n", 2, 25, "did you mean 'read'?", "" },
	{ V "network: off\n", 2, 10, "did you mean 'none'?", "" },
	{ V "nesting: true\n", 2, 10, "did you mean 'allow'?", "" },
};

static void mistakes_say_what_to_write(void)
{
	static const struct policy_env env = { .home = "/home/u" };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct bad *row = &rows[i];
		struct policy policy;
		struct err err = { 0 };
		int before = check_failures;
		if (policy_parse(row->text, strlen(row->text), FILE_NAME, &env, &policy, &err) ==
			0) {
			CHECK(!"is refused");
			policy_free(&policy);
		} else {
			CHECK_TEXT(err.file, FILE_NAME);
			CHECK(err.line == row->line && err.column == row->column);
			CHECK(strstr(err.text, row->words));
			CHECK_TEXT(err.hint, row->hint);
		}
		if (check_failures != before)
			fprintf(stderr, "   of %s   %d:%d: %s [%s]\n", row->text, err.line,
				err.column, err.text, err.hint);
	}
}

/* What looks alike and is meant. */
static void what_is_right_is_left_alone(void)
{
	static const struct policy_env env = { .home = "/home/u" };
	static const char *const texts[] = {
		V "filesystem: {read: [app/$id.tsx, 'app/[slug]', /a$, 'a ? b'], hide: ['$x', "
		  "\"*.key\"]}\n",
		V "tests: [{path: '/a/*', expect: denied}]\n",
		V "env: {set: {A: $HOME, B: 'a:b'}}\nname: wall:5s\n",
		V "filesystem: {read: [~/.ssh/config]}\n",
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct policy policy;
		struct err err = { 0 };
		bool loads = policy_parse(texts[i], strlen(texts[i]), FILE_NAME, &env, &policy,
				     &err) == 0;
		CHECK(loads);
		if (loads)
			policy_free(&policy);
		else
			fprintf(stderr, "   of %s   %s\n", texts[i], err.text);
	}
}

int main(void)
{
	RUN(mistakes_say_what_to_write);
	RUN(what_is_right_is_left_alone);
	return CHECK_STATUS();
}
