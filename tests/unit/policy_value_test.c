/*
 * policy_value_test: single values of policies and the table of keys: grants that are dangerous,
 * hosts, numbers with units. Case B37 as far as names in a policy go, and the second half of B13.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "policy/host.h"
#include "policy/keys.h"
#include "policy/policy.h"
#include "policy/value.h"
#include "check.h"

#define V "version: 1\n"

static int parse(const char *text, struct policy *ret, struct err *err)
{
	static const struct policy_env env = { .home = "/home/u" };
	*err = (struct err){ 0 };
	return policy_parse(text, strlen(text), "/p/test.yaml", &env, ret, err);
}

static const struct {
	const char *path;
	bool dangerous;
} grants[] = {
	{ "/", true },
	{ "~", true },
	{ "~/", true },
	{ "/home", true },
	{ "/home/other", true },
	{ "/home/u/work", false },
	{ "/root", true },
	{ "/etc", true },
	{ "/etc/ssl", false },
	{ "/run", true },
	{ "/var/run", true },
	{ "/var", true },
	{ "/var/cache", false },
	{ "/var/run/docker.sock", true },
	{ "/run/docker.sock", true },
	{ "/run/../run//docker.sock", true },
	{ "/run/containerd/containerd.sock", true },
	{ "/run/user", true },
	{ "/run/user/1000", true },
	{ "/run/user/1000/bus", true },
	{ "/run/user/1000/own-app", false },
	{ "/run/systemd", true },
	{ "/run/systemd/private", true },
	{ "/run/systemd/resolve", false },
	{ "/proc", true },
	{ "/proc/1/root", true },
	{ "/dev/null", true },
	{ "/sys/class", true },
	{ "/opt", false },
	{ "/usr/share", false },
	{ "/tmp/ssh-abc/agent.1", true },
	{ "/tmp/work", false },
	{ "~/.docker/run/docker.sock", true },
	{ "/opt/../proc", true },
	{ "/processes", false },
	{ "/homes", false },
};

static void dangerous_grants_are_refused(void)
{
	for (size_t i = 0; i < sizeof grants / sizeof grants[0]; i++) {
		static const char *const keys[] = { "read", "write" };
		for (size_t k = 0; k < 2; k++) {
			char text[256];
			struct policy policy;
			struct err err;
			snprintf(text, sizeof text, V "filesystem: {%s: [%s]}\n", keys[k],
				grants[i].path);
			int r = parse(text, &policy, &err);
			CHECK((r < 0) == grants[i].dangerous &&
				(r == 0 || err.code == ERR_dangerous_grant));
			if ((r < 0) != grants[i].dangerous)
				fprintf(stderr, "   of %s\n", grants[i].path);
			if (r == 0)
				policy_free(&policy);
			snprintf(text, sizeof text,
				V "filesystem: {%s: [{path: %s, dangerous: true}]}\n", keys[k],
				grants[i].path);
			r = parse(text, &policy, &err);
			CHECK(r == 0);
			if (r == 0)
				policy_free(&policy);
		}
	}
	struct policy policy;
	struct err err;
	CHECK(parse(V "filesystem: {root: /}\n", &policy, &err) < 0);
	CHECK(err.code == ERR_dangerous_grant && err.line == 2 && err.column == 20);
}

static const struct {
	const char *text;
	const char *why;  /* NULL: taken */
	const char *hint; /* a part of it */
	bool path;        /* it would be no grant either */
} patterns[] = {
	{ "*.{key,pem}", "a pattern without braces", "two patterns" },
	{ "{a}", "a pattern without braces", "two patterns" },
	{ "a}", "a pattern without braces", "two patterns" },
	{ "/x/[{]", "a pattern without braces", "?" },
	{ "!keep.env", "a pattern without a ! before it", "takes another one back" },
	{ "!", "a pattern without a ! before it", "?" },
	{ " .env", "a path that does not begin or end with a blank", "blank", true },
	{ ".env ", "a path that does not begin or end with a blank", "?", true },
	{ ".env //", "a path that does not begin or end with a blank", "?", true },
	{ " ", "a path that does not begin or end with a blank", "?", true },
	{ "**.key", "** stands alone between slashes", "**/*.key" },
	{ "a**", "** stands alone between slashes", "**/*.key" },
	{ "a/***/b", "** stands alone between slashes", "**/*.key" },
	{ "/a/b**/c", "** stands alone between slashes", "**/*.key" },
	{ "**/a/**/b/**/c/**/d/**", "a pattern with at most 4 times **", "in a row" },
	{ "/**/**/**/**/**/x", "a pattern with at most 4 times **", "in a row" },
	{ "**/a/**/b/**/c/**/d", NULL, NULL },
	{ "a!", NULL, NULL },
	{ "[!a]*", NULL, NULL },
	{ "a b/c ?", NULL, NULL },
	{ "**/*.key", NULL, NULL },
	{ "?keep.env", NULL, NULL },
};

/* What would be taken, and then cover nothing, is refused with its place and what to write. */
static void patterns_say_what_they_mean(void)
{
	for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
		static const char *const keys[] = { "hide", "protect", "read", "write" };
		for (size_t k = 0; k < 4; k++) {
			char text[256];
			struct policy policy;
			struct err err;
			if (k >= 2 && !patterns[i].path)
				continue;
			snprintf(text, sizeof text, V "filesystem:\n  %s:\n    - x\n    - \"%s\"\n",
				keys[k], patterns[i].text);
			int r = parse(text, &policy, &err);
			bool right =
				r < 0 && patterns[i].why
					? err.code == ERR_policy_invalid && err.line == 5 &&
						  err.column == 7 &&
						  strstr(err.text, patterns[i].why) &&
						  (k >= 2 || strstr(err.hint, patterns[i].hint))
					: r == 0 && !patterns[i].why;
			CHECK(right);
			if (!right)
				fprintf(stderr, "   %s \"%s\": %d \"%s\" \"%s\"\n", keys[k],
					patterns[i].text, r, err.text, err.hint);
			if (r == 0)
				policy_free(&policy);
		}
	}
}

static const struct {
	const char *text, *host; /* host NULL: refused */
	int prefix, port, flags; /* 1 wildcard, 2 address, 4 loopback; port 0: 443 and 80 */
} hosts[] = {
	{ "pypi.org", "pypi.org", -1, 0, 0 },
	{ "PyPI.org.:22", "pypi.org", -1, 22, 0 },
	{ "*.A.b:443", "*.a.b", -1, 443, 1 },
	{ "localhost", "localhost", -1, 0, 0 },
	{ "10.1.0.0/16:5432", "10.1.0.0", 16, 5432, 2 },
	{ "10.1.2.3", "10.1.2.3", 32, 0, 2 },
	{ "[2001:DB8::/32]:22", "2001:db8::", 32, 22, 2 },
	{ "[::1]", "::1", 128, 0, 2 },
	{ "host.internal:5432", "host.internal", -1, 5432, 4 },
	{ "xn--bcher-kva.de", "xn--bcher-kva.de", -1, 0, 0 },
	{ "0.0.0.0/0", "0.0.0.0", 0, 0, 2 },
	{ "*", NULL, 0, 0, 0 },
	{ "", NULL, 0, 0, 0 },
	{ "a.*.b", NULL, 0, 0, 0 },
	{ "*a.b", NULL, 0, 0, 0 },
	{ "a..b", NULL, 0, 0, 0 },
	{ ".a", NULL, 0, 0, 0 },
	{ ".", NULL, 0, 0, 0 },
	{ "-a.b", NULL, 0, 0, 0 },
	{ "a_b.c", NULL, 0, 0, 0 },
	{ "b\xc3\xbc"
	  "cher.de",
		NULL, 0, 0, 0 },
	{ "a:0", NULL, 0, 0, 0 },
	{ "a:65536", NULL, 0, 0, 0 },
	{ "a:", NULL, 0, 0, 0 },
	{ "a:http", NULL, 0, 0, 0 },
	{ "a:080", NULL, 0, 0, 0 },
	{ "https://a.b", NULL, 0, 0, 0 },
	{ "a.b/c", NULL, 0, 0, 0 },
	{ "2001:db8::1", NULL, 0, 0, 0 },
	{ "[2001:db8::1", NULL, 0, 0, 0 },
	{ "[::ffff:10.0.0.1]", NULL, 0, 0, 0 },
	{ "[fe80::1%eth0]", NULL, 0, 0, 0 },
	{ "10.1.2.3/16", NULL, 0, 0, 0 },
	{ "10.1.0.0/33", NULL, 0, 0, 0 },
	{ "127.1", NULL, 0, 0, 0 },
	{ "1.2.3.04", NULL, 0, 0, 0 },
	{ "256.1.1.1", NULL, 0, 0, 0 },
	{ "a.0x7f", NULL, 0, 0, 0 },
	{ "a.5", NULL, 0, 0, 0 },
	{ "a b", NULL, 0, 0, 0 },
};

static void hosts_have_one_form(void)
{
	for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
		struct host_entry entry;
		const char *why = host_parse(hosts[i].text, &entry);
		CHECK(!why == !!hosts[i].host);
		if (!why != !!hosts[i].host)
			fprintf(stderr, "   of %s: %s\n", hosts[i].text, why ? why : "taken");
		if (why || !hosts[i].host)
			continue;
		CHECK_TEXT(entry.host, hosts[i].host);
		CHECK(entry.prefix == hosts[i].prefix);
		CHECK((entry.wildcard | entry.address << 1 | entry.host_loopback << 2) ==
			hosts[i].flags);
		CHECK(hosts[i].port ? entry.port_count == 1 && entry.ports[0] == hosts[i].port
				    : entry.port_count == 2 && entry.ports[0] == 443 &&
					      entry.ports[1] == 80);
	}
	char label[64 + 1], name[260];
	struct host_entry entry;
	memset(label, 'a', 64);
	label[64] = 0;
	CHECK(host_parse(label, &entry) != NULL);
	label[63] = 0;
	CHECK(host_parse(label, &entry) == NULL);
	/* 4 * 63 + 3 dots = 255; without the last two bytes 253, and one dot behind is allowed. */
	snprintf(name, sizeof name, "%s.%s.%s.%s", label, label, label, label);
	CHECK(host_parse(name, &entry) != NULL);
	name[253] = 0;
	CHECK(host_parse(name, &entry) == NULL);
	strcat(name, ".");
	CHECK(host_parse(name, &entry) == NULL && strlen(entry.host) == 253);
}

/* Ranges of which every address is the host itself to whoever dials it. */
static void loopback_is_nobody_to_reach(void)
{
	static const struct {
		const char *text;
		bool own;
	} rows[] = {
		{ "127.0.0.1", true },
		{ "127.0.0.0/8:5432", true },
		{ "127.255.255.255", true },
		{ "127.64.0.0/10", true },
		{ "0.0.0.0", true },
		{ "0.0.0.0/8", true },
		{ "[::1]:80", true },
		{ "[::]", true },
		{ "[::/127]", true },
		{ "[0:0:0:0:0:0:0:1/128]", true },
		{ "126.0.0.0/7", false },
		{ "0.0.0.0/0", false },
		{ "0.0.0.0/7", false },
		{ "128.0.0.1", false },
		{ "1.0.0.0", false },
		{ "[::/126]", false },
		{ "[::/0]", false },
		{ "[::2]", false },
		{ "[::7f00:1]", false },
		{ "[1::1]", false },
		{ "host.internal:80", false },
		{ "localhost", false },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct host_entry entry;
		char text[256];
		struct policy policy;
		struct err err;
		CHECK(host_parse(rows[i].text, &entry) == NULL);
		bool own = host_unreachable(&entry) != NULL;
		CHECK(own == rows[i].own);
		if (own != rows[i].own)
			fprintf(stderr, "   of %s\n", rows[i].text);
		snprintf(text, sizeof text, V "network:\n  allow:\n    - '%s'\n", rows[i].text);
		int r = parse(text, &policy, &err);
		CHECK(own ? r < 0 && err.code == ERR_policy_invalid && err.line == 4 &&
					strstr(err.text, "host.internal:PORT")
			  : r == 0);
		if (r == 0)
			policy_free(&policy);
	}
	/* One may ask for it all the same. */
	struct policy policy;
	struct err err;
	CHECK(parse(V "tests: [{host: '127.0.0.1:80', expect: denied}]\n", &policy, &err) == 0);
	policy_free(&policy);
}

static void published_ports_have_two_forms(void)
{
	static const struct {
		const char *text;
		int port, host_port; /* port 0: refused */
	} rows[] = {
		{ "1", 1, 0 },
		{ "65535", 65535, 0 },
		{ "1:65535", 65535, 1 },
		{ "65535:1", 1, 65535 },
		{ "0", 0, 0 },
		{ "65536", 0, 0 },
		{ "0:80", 0, 0 },
		{ "80:0", 0, 0 },
		{ "65536:80", 0, 0 },
		{ "080", 0, 0 },
		{ ":80", 0, 0 },
		{ "80:", 0, 0 },
		{ ":", 0, 0 },
		{ "", 0, 0 },
		{ "80:80:80", 0, 0 },
		{ "127.0.0.1:80", 0, 0 },
		{ "80/tcp", 0, 0 },
		{ "-1", 0, 0 },
		{ "+1", 0, 0 },
		{ " 80", 0, 0 },
		{ "80-90", 0, 0 },
		{ "http", 0, 0 },
		{ "0x50", 0, 0 },
		{ "99999999999999999999", 0, 0 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		uint16_t port = 0, host_port = 0;
		const char *why = publish_parse(rows[i].text, &port, &host_port);
		CHECK(!why == !!rows[i].port);
		CHECK(port == rows[i].port && host_port == rows[i].host_port);
		if (port != rows[i].port || host_port != rows[i].host_port)
			fprintf(stderr, "   of %s\n", rows[i].text);
	}
}

static const struct {
	enum key_type type;
	const char *text;
	int result;
	uint64_t value;
} numbers[] = {
	{ KEY_DURATION, "1us", 0, 1 },
	{ KEY_DURATION, "1.5s", 0, 1500000 },
	{ KEY_DURATION, "90m", 0, 5400000000 },
	{ KEY_DURATION, "0.5us", -EINVAL, 0 },
	{ KEY_DURATION, "1 s", -EINVAL, 0 },
	{ KEY_DURATION, "1S", -EINVAL, 0 },
	{ KEY_DURATION, ".5s", -EINVAL, 0 },
	{ KEY_DURATION, "1.s", -EINVAL, 0 },
	{ KEY_DURATION, "999999999999999999h", -ERANGE, 0 },
	{ KEY_SIZE, "0", 0, 0 },
	{ KEY_SIZE, "1KiB", 0, 1024 },
	{ KEY_SIZE, "1KB", 0, 1000 },
	{ KEY_SIZE, "0.5KiB", 0, 512 },
	{ KEY_SIZE, "1TiB", 0, (uint64_t)1 << 40 },
	{ KEY_SIZE, "1kB", -EINVAL, 0 },
	{ KEY_SIZE, "1K", -EINVAL, 0 },
	{ KEY_SIZE, "1MB2", -EINVAL, 0 },
	{ KEY_SIZE, "7", -EINVAL, 0 },
	{ KEY_SIZE, "16777216TiB", -ERANGE, 0 },
	{ KEY_CPUS, "1.5", 0, 1500 },
	{ KEY_CPUS, "2", 0, 2000 },
	{ KEY_CPUS, "0.0001", -EINVAL, 0 },
	{ KEY_INT, "0", 0, 0 },
	{ KEY_INT, "1.0", -EINVAL, 0 },
	{ KEY_INT, "+1", -EINVAL, 0 },
	{ KEY_INT, "", -EINVAL, 0 },
	{ KEY_INT, "1000000000000000000", -ERANGE, 0 },
};

static void numbers_have_units(void)
{
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		uint64_t value = 0;
		int r = value_number(numbers[i].type, numbers[i].text, &value);
		CHECK(r == numbers[i].result && value == numbers[i].value);
		if (r != numbers[i].result)
			fprintf(stderr, "   of %s: %d\n", numbers[i].text, r);
	}
	char text[VALUE_TEXT_MAX];
	value_text(KEY_SIZE, 512 << 20, text);
	CHECK_TEXT(text, "512MiB");
	value_text(KEY_CPUS, 1500, text);
	CHECK_TEXT(text, "1.5");
}

/* What keys.c takes for granted of the table. */
static void the_table_is_in_order(void)
{
	for (int i = 0; i < K_COUNT_; i++) {
		const struct key *key = key_row((enum key_id)i);
		CHECK(key_find(key->path) == key);
		bool list = key->type == KEY_LIST, names = key->type == KEY_NAMES;
		const char *next = i + 1 < K_COUNT_ ? key_row((enum key_id)(i + 1))->path : "";
		char wanted[128];
		snprintf(wanted, sizeof wanted, "%s%s", key->path, list ? "[]" : ".*");
		if (list || names)
			CHECK_TEXT(next, wanted);
		/* Each row lies behind its parent without a row in between that is not below it. */
		size_t len = (size_t)(key_name(key) - key->path);
		len -= len && key->path[len - 1] == '.';
		for (int k = i; len && k >= 0; k--) {
			const char *path = key_row((enum key_id)k)->path;
			CHECK(strncmp(path, key->path, len) == 0);
			if (strlen(path) == len)
				break;
		}
		if (value_is_number(key->type)) {
			uint64_t value = 0;
			CHECK(key->lo <= key->hi);
			CHECK(!key->def[0] || !strcmp(key->def, "required") ||
				(value_number(key->type, key->def, &value) == 0 &&
					value >= key->lo && value <= key->hi));
		}
		if (key->words && key->def[0] && strcmp(key->def, "required") != 0)
			CHECK(key_has_word(key, key->def));
		CHECK(!strpbrk(key->help, "\t\n"));
	}
}

int main(void)
{
	RUN(dangerous_grants_are_refused);
	RUN(patterns_say_what_they_mean);
	RUN(hosts_have_one_form);
	RUN(loopback_is_nobody_to_reach);
	RUN(published_ports_have_two_forms);
	RUN(numbers_have_units);
	RUN(the_table_is_in_order);
	return CHECK_STATUS();
}
