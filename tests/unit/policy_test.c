/*
 * policy_test: the language of policies. Most of it is tables: a text and the error that it gets,
 * with its place, or the value that comes out. Cases B35, B46 and B47 are held here.
 */
#define _GNU_SOURCE
#include <sys/resource.h>
#include <time.h>

#include "base/buf.h"
#include "policy/policy.h"
#include "check.h"

/* A sanitizer's shadow memory is no measure of the parser's. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED __has_feature(address_sanitizer)
#else
#define SANITIZED 0
#endif

#define FILE_NAME "/p/test.yaml"

static const struct policy_env env = { .home = "/home/u" };

static int parse(const char *text, struct policy *ret, struct err *err)
{
	*err = (struct err){ 0 };
	return policy_parse(text, strlen(text), FILE_NAME, &env, ret, err);
}

/* The text must fail at that place with those words somewhere in the message or hint. */
struct bad {
	const char *text;
	int line, column;
	const char *words;
};

static void check_bad(const struct bad *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct bad *row = &rows[i];
		struct policy policy;
		struct err err;
		if (parse(row->text, &policy, &err) == 0) {
			CHECK(!"is refused");
			fprintf(stderr, "   loads: %s\n", row->text);
			policy_free(&policy);
			continue;
		}
		int before = check_failures;
		CHECK(err.code == ERR_policy_invalid || err.code == ERR_dangerous_grant);
		CHECK(strcmp(err.file, FILE_NAME) == 0);
		CHECK(err.line == row->line && err.column == row->column);
		CHECK(strstr(err.text, row->words) || strstr(err.hint, row->words));
		if (check_failures != before)
			fprintf(stderr, "   of %s\n   %d:%d: %s [%s]\n", row->text, err.line,
				err.column, err.text, err.hint);
	}
}

#define V "version: 1\n"
#define CHECK_BAD(...)                                                                             \
	do {                                                                                       \
		static const struct bad rows_[] = { __VA_ARGS__ };                                 \
		check_bad(rows_, sizeof rows_ / sizeof rows_[0]);                                  \
	} while (0)

static void yaml_is_strict(void)
{
	CHECK_BAD({ "", 1, 1, "'version' is missing" },
		{ "# only this\n", 1, 1, "'version' is missing" },
		{ "---\n", 1, 1, "'version' is missing" }, { "name: x\n", 1, 1, "version: 1" },
		{ "[version]\n", 1, 1, "map of keys" }, { "version\n", 1, 1, "map of keys" },
		{ V "limits:\n\twall: 1s\n", 3, 1, "tab" },
		{ V "limits: {\n \twall: 1s}\n", 3, 2, "tab" }, { V "name:\tx\n", 2, 6, "tab" },
		{ V "name: &a x\n", 2, 7, "anchors (&a)" },
		{ V "name: *a\n", 2, 7, "aliases (*a)" }, { V "name: !!str x\n", 2, 7, "tags" },
		{ V "name: ! x\n", 2, 7, "tags" }, { V "<<: {name: x}\n", 2, 1, "merge keys" },
		{ V "---\nversion: 1\n", 2, 1, "second document" },
		{ "%YAML 1.1\n---\n" V, 1, 1, "directives" },
		{ V "network: none\nnetwork: host\n", 3, 1, "line 2" },
		{ V "limits: {wall: 1s, 'wall': 2s}\n", 2, 20, "second time" },
		{ V "? [a]\n: b\n", 2, 3, "a key must be a word" },
		{ V "name: [a\n", 3, 1, "not YAML" }, { V "name: @x\n", 2, 7, "quote it" },
		{ V "name: \x1b[1m\n", 2, 7, "U+001B" }, { V "name: \xff\n", 2, 7, "UTF-8" },
		{ V "# \xe2\x80\xae\n", 2, 3, "U+202E" }, { V "name: \"\\0\"\n", 2, 7, "U+0000" },
		{ V "name: \"\\e\"\n", 2, 7, "U+001B" }, { V "\xc3\xa9: \xff\n", 2, 4, "UTF-8" },
		{ V "name: x\r- y\n", 2, 8, "U+000D" });
	char nul[] = V "name: a\0b\n";
	struct policy policy;
	struct err err;
	CHECK(policy_parse(nul, sizeof nul - 1, FILE_NAME, &env, &policy, &err) < 0);
	CHECK(err.line == 2 && err.column == 8 && strstr(err.text, "U+0000"));
}

/* B46: nothing that is mistyped or misplaced is dropped in silence. */
static void unknown_keys_name_the_nearest(void)
{
	CHECK_BAD({ V "netwrok: {allow: []}\n", 2, 1,
			  "unknown key 'netwrok'; did you mean 'network'?" },
		{ V "limits: {memroy: 1MiB}\n", 2, 10, "in 'limits'; did you mean 'memory'?" },
		{ V "deny: [mount]\n", 2, 1, "it belongs in 'syscalls'" },
		{ V "wall: 1s\n", 2, 1, "it belongs in 'limits'" },
		{ V "limits: {network: none}\n", 2, 10, "it belongs at the top level" },
		{ V "filesystem: {pass: [A]}\n", 2, 14, "it belongs in 'env'" },
		{ V "tools: {t: {comand: [/x]}}\n", 2, 13, "did you mean 'command'?" },
		{ V "zzzzzzzzzz: 1\n", 2, 1, "known here: version name" },
		{ V "limits: {memory: [1]}\n", 2, 18, "not a list" },
		{ V "limits: {memory: 1MB2}\n", 2, 18, "'1MB2' is not a value of 'limits.memory'" },
		{ V "limits: [wall]\n", 2, 9, "takes a map, not a list" },
		{ V "filesystem: {read: /opt}\n", 2, 20, "write a list: read: [/opt]" });
}

static void values_are_never_guessed(void)
{
	CHECK_BAD({ "version: 2\n", 1, 10, "version 2 is not known" },
		{ "version: '1'\n", 1, 10, "without quotes" },
		{ "version: 1.0\n", 1, 10, "whole number" },
		{ V "limits: {pids: 1e3}\n", 2, 16, "'1e3'" },
		{ V "limits: {pids: 0x10}\n", 2, 16, "'0x10'" },
		{ V "limits: {pids: 1_000}\n", 2, 16, "'1_000'" },
		{ V "limits: {pids: 010}\n", 2, 16, "'010'" },
		{ V "limits: {pids: -1}\n", 2, 16, "'-1'" },
		{ V "limits: {pids: 0}\n", 2, 16, "from 1 to 4194304" },
		{ V "limits: {pids: '7'}\n", 2, 16, "without quotes" },
		{ V "limits: {open_files: 7}\n", 2, 22, "from 8" },
		{ V "limits: {wall: 60}\n", 2, 16, "add the unit: 60s" },
		{ V "limits: {wall: 721h}\n", 2, 16, "from 1ms to 720h" },
		{ V "limits: {wall: 1.5}\n", 2, 16, "such as 1.5s" },
		{ V "limits: {wall: 1d}\n", 2, 16, "24h" },
		{ V "limits: {memory: 512}\n", 2, 18, "512MiB, or 512B" },
		{ V "limits: {memory: 99999999999999999999GiB}\n", 2, 18, "out of range" },
		{ V "limits: {output: 2GiB}\n", 2, 18, "from 0 to 1GiB" },
		{ V "limits: {cpus: 1.2345}\n", 2, 16, "three decimals" },
		{ V "network: no\n", 2, 10, "none|host" },
		{ V "nesting: alow\n", 2, 10, "did you mean 'allow'?" },
		{ V "filesystem: {read: [{path: /a, dangerous: yes}]}\n", 2, 43, "true or false" },
		{ V "filesystem: {read: [{path: /a, dangerous: 'true'}]}\n", 2, 43,
			"without quotes" },
		{ V "filesystem: {read: [{dangerous: true}]}\n", 2, 21, "'path' is missing" },
		{ V "filesystem: {read: [null]}\n", 2, 21, "empty element" },
		{ V "network: {allow: [{host: a, any_name: yes}]}\n", 2, 39, "true or false" },
		{ V "network: {allow: [{any_name: true}]}\n", 2, 19, "'host' is missing" },
		{ V "network: {allow: [{host: a, port: 1}]}\n", 2, 29, "unknown key 'port'" },
		{ V "network: {allow: [{host: 'a:x'}]}\n", 2, 26, "from 1 to 65535" },
		{ V "network: {allow: [{host: [a]}]}\n", 2, 26, "not a list" },
		{ V "network: {allow: [a.test: 22]}\n", 2, 19, "write a.test:22" },
		{ V "network: {allow: [127.0.0.1]}\n", 2, 19, "host.internal:PORT" },
		{ V "network: {allow: [{host: '[::1]:5'}]}\n", 2, 26, "host.internal:PORT" },
		{ V "network: {publish: 80}\n", 2, 20, "publish: [80]" },
		{ V "network: {publish: [0]}\n", 2, 21, "from 1 to 65535" },
		{ V "network: {publish: [null]}\n", 2, 21, "empty element" },
		{ V "network: {publish: [80: 90]}\n", 2, 21, "not a map" },
		{ V "network: {publish: [127.0.0.1:80:80]}\n", 2, 21, "HOSTPORT:PORT" },
		{ V "ports: [80]\n", 2, 1, "publish" },
		{ V "env: {pass: [FOO*]}\n", 2, 14, "LC_*" },
		{ V "env: {pass: [BASH_FUNC_x]}\n", 2, 14, "not the name" },
		{ V "env: {set: {'A=B': c}}\n", 2, 13, "not a name" },
		{ V "syscalls: {allow: [a], deny: [b, a]}\n", 2, 20, "also in syscalls.deny" },
		{ V "syscalls: {allow: [Mount]}\n", 2, 20, "not the name of a system call" },
		{ V "best_effort: [cgroups]\n", 2, 15, "did you mean 'cgroup'?" });
}

static void parts_must_fit_together(void)
{
	CHECK_BAD({ V "code: {p: {command: [x]}}\n", 2, 21, "{file}" },
		{ V "code: {p: {command: ['{file}', '{file}']}}\n", 2, 21, "exactly one" },
		{ V "code: {p: {suffix: .x}}\n", 2, 8, "'command' is missing" },
		{ V "code: {p: {command: ['{file}'], suffix: py}}\n", 2, 41, "begins with a dot" },
		{ V "code: {p: {command: ['{file}'], suffix: ./x}}\n", 2, 41, "no slash" },
		{ V "secrets: {A: {}}\n", 2, 11, "one of env and file" },
		{ V "tools: {t: {command: [date]}}\n", 2, 23, "absolute path" },
		{ V "tools: {t: {command: [/d, '{x}']}}\n", 2, 27, "'{x}' is not in the args" },
		{ V "tools: {t: {command: [/d], args: {x: {}}}}\n", 2, 35, "holds {x}" },
		{ V "tools: {t: {command: [/d], env: {A: 'secret:B'}}}\n", 2, 37,
			"not one of the secrets" },
		{ V "tests: [{path: /x, run: [a], expect: allowed}]\n", 2, 9, "exactly one" },
		{ V "tests: [{lang: x, expect: {exit_code: 0}}]\n", 2, 9, "go together" },
		{ V "tests: [{lang: x, code: y, expect: {exit_code: 0}}]\n", 2, 16, "languages" },
		{ V "tests: [{run: [a]}]\n", 2, 9, "'expect' is missing" },
		{ V "tests: [{run: [a], expect: allowed}]\n", 2, 28, "exit_code" },
		{ V "tests: [{path: /x, expect: {exit_code: 0}}]\n", 2, 28, "allowed or denied" },
		{ V "tests: [{run: [a], access: read, expect: {exit_code: 0}}]\n", 2, 20,
			"goes with path" },
		{ V "tests: [{host: '*.a.b', expect: denied}]\n", 2, 16, "one host" },
		{ V "network: {allow: [{host: 10.0.0.0/8, any_name: true}]}\n", 2, 38,
			"switches nothing off for an address" },
		{ V "network: {allow: [{host: '[2001:db8::]', any_name: true}]}\n", 2, 42,
			"switches nothing off for an address" },
		{ V "network: {allow: [{host: 'HOST.internal:1', any_name: true}]}\n", 2, 45,
			"switches nothing off for host.internal" },
		{ V "network: {publish: [80, '81:80']}\n", 2, 25,
			"port 80 of the box is published a second time (" FILE_NAME ":2)" },
		{ V "network:\n  publish:\n    - '9:80'\n    - '9:81'\n", 5, 7,
			"port 9 of the host is taken a second time (" FILE_NAME ":4)" },
		{ V "network: {publish: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, "
		    "17]}\n",
			2, 76, "more than 16 elements" });
}

static void defaults_are_the_tables(void)
{
	struct policy p;
	struct err err;
	CHECK(parse(V, &p, &err) == 0);
	CHECK_TEXT(p.name, "test");
	CHECK(p.fs.root == ROOT_HOST && p.fs.workspace == WORKSPACE_READ &&
		p.fs.home == HOME_PRIVATE);
	CHECK(p.network == NETWORK_NONE && !origin_set(&p.network_at));
	CHECK(p.profile == PROFILE_DEFAULT && p.on_violation == VIOLATION_ERRNO && !p.nesting);
	CHECK(p.limits.wall_us.value == 60000000 && !origin_set(&p.limits.wall_us.at));
	CHECK(p.limits.pids.value == 256 && p.limits.disk.value == 512 << 20);
	CHECK(p.limits.output.value == 1 << 20 && p.limits.open_files.value == 1024);
	CHECK(p.limits.memory.value == 0 && !origin_set(&p.limits.memory.at));
	CHECK(p.limits.output_action == OUTPUT_TRUNCATE && p.code_count == 0 && p.tool_count == 0);
	CHECK(p.source_count == 1 && p.texts[0].len == strlen(p.texts[0].text));
	policy_free(&p);
}

/* B35: the strictest setting never switches the filter off. */
static void empty_networks_are_none(void)
{
	static const char *const texts[] = { V "network: {allow: []}\n", V "network: {}\n",
		V "network: null\n", V "network:\n", V "network: ~\n", V "network: {allow: }\n",
		V };
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct policy p;
		struct err err;
		CHECK(parse(texts[i], &p, &err) == 0);
		CHECK(p.network == NETWORK_NONE && p.allow_count == 0);
		policy_free(&p);
	}
}

static void hosts_may_be_maps(void)
{
	struct policy p;
	struct err err;
	CHECK(parse(V "network:\n  allow:\n    - a.test\n    - {host: B.test:22, any_name: true}\n"
		      "    - {host: '*.c.test'}\n    - {any_name: false, host: 10.0.0.0/8}\n",
		      &p, &err) == 0);
	CHECK(p.network == NETWORK_ALLOW && p.allow_count == 4 && p.publish_count == 0);
	CHECK(!p.allow[0].any_name && p.allow[1].any_name && !p.allow[2].any_name &&
		!p.allow[3].any_name);
	CHECK_TEXT(p.allow[1].host, "b.test");
	CHECK_TEXT(p.allow[1].given, "B.test:22");
	CHECK(p.allow[1].port_count == 1 && p.allow[1].ports[0] == 22);
	CHECK(p.allow[1].at.line == 5 && p.allow[1].at.column == 7);
	CHECK(p.allow[2].wildcard && p.allow[3].address && p.allow[3].prefix == 8);
	policy_free(&p);
}

/* Alone it grants nothing from inside: the network stays none. */
static void ports_are_published(void)
{
	static const char *const alone[] = { V "network: {publish: [8080, '9000:3000']}\n",
		V "network: {allow: [], publish: ['8080', 9000:3000]}\n" };
	struct policy p;
	struct err err;
	for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++) {
		CHECK(parse(alone[i], &p, &err) == 0);
		CHECK(p.network == NETWORK_NONE && p.allow_count == 0 && p.publish_count == 2);
		CHECK(p.publish[0].port == 8080 && p.publish[0].host_port == 0);
		CHECK(p.publish[1].port == 3000 && p.publish[1].host_port == 9000);
		CHECK_TEXT(p.publish[1].given, "9000:3000");
		CHECK(p.publish[0].at.line == 2);
		policy_free(&p);
	}
	CHECK(parse(V "network: {allow: [a], publish: [1, 65535, '65535:2', '2:3', 4, 5, 6, 7, 8, "
		      "9, 10, 11, 12, 13, 14, 15]}\n",
		      &p, &err) == 0);
	CHECK(p.network == NETWORK_ALLOW && p.publish_count == 16);
	CHECK(p.publish[1].port == 65535 && p.publish[2].host_port == 65535);
	policy_free(&p);
	CHECK(parse(V "network: {publish: []}\n", &p, &err) == 0);
	CHECK(p.network == NETWORK_NONE && p.publish_count == 0);
	policy_free(&p);
}

static void values_come_out_with_their_lines(void)
{
	struct policy p;
	struct err err;
	CHECK(parse(V "name: 123\nfilesystem:\n  read:\n    - ../data/./x//\n    - ~/d\n"
		      "  hide: [\".env\", ~/k, 'a/']\nenv: {set: {A: no, B: \"\", C: }, pass: "
		      "[LC_*]}\n"
		      "limits: {wall: 1.5s}\nfilesystem_:\n",
		      &p, &err) < 0);
	CHECK(parse(V "name: 123\nfilesystem:\n  read:\n    - ../data/./x//\n    - ~/d\n"
		      "  hide: [\".env\", ~/k, 'a/', '**/*.key']\nenv: {set: {A: no, B: \"\", C: "
		      "}, pass: [LC_*]}\n"
		      "limits: {wall: 1.5s}\nbest_effort: [cgroup]\n",
		      &p, &err) == 0);
	CHECK_TEXT(p.name, "123");
	CHECK(p.fs.read_count == 2 && p.fs.read[0].at.line == 5 && p.fs.read[0].at.column == 7);
	CHECK_TEXT(p.fs.read[0].path, "/data/x");
	CHECK_TEXT(p.fs.read[0].given, "../data/./x//");
	CHECK_TEXT(p.fs.read[1].path, "/home/u/d");
	CHECK_TEXT(p.fs.hide[0].pattern, ".env");
	CHECK_TEXT(p.fs.hide[1].pattern, "/home/u/k");
	CHECK_TEXT(p.fs.hide[2].pattern, "a");
	CHECK(p.fs.hide[0].literal && !p.fs.hide[3].literal);
	CHECK(p.env_set_count == 2);
	CHECK_TEXT(p.env_set[0].value, "no");
	CHECK_TEXT(p.env_set[1].value, "");
	CHECK(p.limits.wall_us.value == 1500000 && p.limits.wall_us.at.line == 9);
	CHECK(policy_best_effort(&p, "cgroup") && !policy_best_effort(&p, "landlock"));
	policy_free(&p);
	CHECK_BAD({ V "filesystem: {read: [~other/x]}\n", 2, 21, "only ~ and ~/" },
		{ V "filesystem: {hide: ['a**']}\n", 2, 21, "**" },
		{ V "filesystem: {hide: ['../a']}\n", 2, 21, ".." },
		{ V "filesystem: {hide: ['[a']}\n", 2, 21, "without its ]" },
		{ V "filesystem: {hide: [/]}\n", 2, 21, "names something" },
		{ V "filesystem: {hide: [/a/..]}\n", 2, 21, "names more" });
}

/* The words of `show` without the comments that say where they come from. */
static void shown(const struct policy *p, struct buf *out)
{
	AUTO_BUF yaml = { 0 };
	CHECK(policy_show_yaml(p, &yaml) == 0);
	for (const char *line = buf_text(&yaml); *line;) {
		size_t len = strcspn(line, "\n"), text = len;
		while (text > 0 && strncmp(line + text, "  # ", 4) != 0)
			text--;
		CHECK(text > 0);
		buf_add(out, line, text);
		buf_adds(out, "\n");
		line += len + (line[len] == '\n');
	}
}

static void show_loads_again(void)
{
	static const char text[] =
		V "name: \"no\"\ndescription: \"a \\\"b\\\"\\n\\t\\\\ \xc3\xbc # x\"\n"
		  "filesystem: {root: /srv/r, read: [rel, {path: /run, dangerous: true}], hide: "
		  "['*.key', '#x']}\n"
		  "network: {allow: [A.test, '[2001:db8::1]:5', {host: 'b:7', any_name: true}], "
		  "publish: [80, '90:91']}\nlimits: {cpus: 1.5, memory: 1GiB}\n"
		  "env: {set: {\"NO\": on, N: '', Y: 'a: b'}}\nnesting: allow\nsecrets: {A: {file: "
		  "f}}\n"
		  "tools: {t: {command: [/t, '{x}'], args: {x: {pattern: '[a-z]+'}}, env: {A: "
		  "'secret:A'}}}\n"
		  "code: {p: {command: ['{file}'], suffix: .p}}\naudit: {log: l, trace: [exec]}\n"
		  "tests: [{lang: p, code: \"x\\ny\\n\", expect: {exit_code: 1, stdout: ''}},"
		  " {path: q, expect: denied}]\n";
	struct policy p, q;
	struct err err;
	AUTO_BUF first = { 0 }, second = { 0 }, json = { 0 };
	CHECK(parse(text, &p, &err) == 0);
	shown(&p, &first);
	CHECK(strstr(first.data, "    - {host: \"b:7\", any_name: true}\n"));
	CHECK(strstr(first.data, "  publish:\n    - 80\n    - \"90:91\"\n"));
	CHECK(strstr(first.data, "- /p/rel\n") && strstr(first.data, "name: \"no\"\n"));
	CHECK(policy_parse(first.data, first.len, "/elsewhere/x.yaml", &env, &q, &err) == 0);
	shown(&q, &second);
	CHECK_TEXT(second.data, first.data);
	CHECK(q.fs.read_count == 2 && q.fs.read[1].dangerous && q.tool_count == 1 &&
		q.test_count == 2);
	CHECK(policy_show_json(&p, &json) == 0);
	CHECK(strstr(json.data, "\"/filesystem/read/0\":\"/p/test.yaml:4\""));
	CHECK(strstr(
		json.data, "{\"host\":\"b:7\",\"any_name\":true}],\"publish\":[80,\"90:91\"]"));
	CHECK(strstr(json.data, "\"/network/allow/2\":\"/p/test.yaml:5\""));
	CHECK(strstr(json.data, "\"/network/publish/1\":\"/p/test.yaml:5\""));
	CHECK(strstr(json.data, "\"/limits/wall\":null") && strstr(json.data, "\"cpus\":1.5"));
	policy_free(&p);
	policy_free(&q);
}

/* B47: hostile texts end soon and small. */
static void hostile_texts_end_soon(void)
{
	static const struct {
		const char *head, *unit, *words;
		int times;
	} rows[] = {
		{ V "name: ", "[", "nested deeper than 16", 10000 },
		{ V "name: ", "{a: ", "nested deeper than 16", 10000 },
		{ V "name: ", "- ", "not YAML", 10000 },
		{ V "name:\n ", "- ", "nested deeper than 16", 10000 },
		{ V "filesystem: {read: [", "/a,", "more than 1024", 300000 },
		{ V "filesystem: {read: [", "\xc3\xa9,", "more than 1024", 300000 },
		{ V "name: x", "x", "maximum is 65536", 1000000 },
		{ V "name: \"", "\n", "not YAML", 1000000 },
		{ V "x: &a [x]\nname: ", "*a", "anchors", 100 },
		{ V "#", "x\n#", "bytes long", 600000 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		AUTO_BUF text = { 0 };
		buf_adds(&text, rows[i].head);
		for (int k = 0; k < rows[i].times; k++)
			buf_adds(&text, rows[i].unit);
		struct policy p;
		struct err err = { 0 };
		struct timespec start, end;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
		CHECK(policy_parse(text.data, text.len, FILE_NAME, &env, &p, &err) < 0);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
		CHECK(strstr(err.text, rows[i].words));
		if (!strstr(err.text, rows[i].words))
			fprintf(stderr, "   got: %s\n", err.text);
		double ms = (double)(end.tv_sec - start.tv_sec) * 1e3 +
			    (double)(end.tv_nsec - start.tv_nsec) / 1e6;
		CHECK(ms < 200);
	}
#if !SANITIZED
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	CHECK(usage.ru_maxrss < 50 * 1024);
#endif
}

int main(void)
{
	RUN(yaml_is_strict);
	RUN(unknown_keys_name_the_nearest);
	RUN(values_are_never_guessed);
	RUN(parts_must_fit_together);
	RUN(defaults_are_the_tables);
	RUN(empty_networks_are_none);
	RUN(hosts_may_be_maps);
	RUN(ports_are_published);
	RUN(values_come_out_with_their_lines);
	RUN(show_loads_again);
	RUN(hostile_texts_end_soon);
	return CHECK_STATUS();
}
