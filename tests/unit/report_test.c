/*
 * report_test: exit statuses, and the JSON of ordinary and extreme results.
 * With --samples it prints those results, one a line, for the test that holds them to the schema.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <jansson.h>
#include <sched.h>
#include <signal.h>

#include "base/utf8.h"
#include "plan/plan.h"
#include "policy/policy.h"
#include "report/dump.h"
#include "report/result.h"
#include "check.h"

static void exit_statuses(void)
{
	static const struct {
		enum status status;
		int exit_code, signal, error, want;
	} rows[] = {
		{ STATUS_EXITED, 0, 0, 0, 0 },
		{ STATUS_EXITED, 3, 0, 0, 3 },
		{ STATUS_EXITED, 125, 0, 0, 125 }, /* A56 */
		{ STATUS_EXITED, 255, 0, 0, 255 },
		{ STATUS_EXITED, -1, 0, 0, 125 },
		{ STATUS_SIGNALED, -1, SIGKILL, 0, 137 }, /* A59 */
		{ STATUS_SIGNALED, -1, SIGSEGV, 0, 139 },
		{ STATUS_SIGNALED, -1, 0, 0, 125 },
		{ STATUS_TIMEOUT, -1, SIGKILL, 0, 124 },
		{ STATUS_TIMEOUT, 0, 0, 0, 124 },
		{ STATUS_LIMIT, -1, SIGKILL, 0, 137 },
		{ STATUS_DENIED, -1, SIGSYS, 0, 137 },
		{ STATUS_CANCELLED, -1, 0, 0, 130 },
		{ STATUS_CANCELLED, -1, SIGTERM, 0, 143 },
		{ STATUS_ERROR, -1, 0, ERR_policy_invalid, 125 },
		{ STATUS_ERROR, -1, 0, ERR_not_executable, 126 }, /* A57 */
		{ STATUS_ERROR, -1, 0, ERR_command_not_found, 127 },
		{ STATUS_ERROR, 0, 0, ERR_none, 125 },
		{ STATUS_ERROR, 0, 0, 9999, 125 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct result r;
		result_init(&r);
		r.status = rows[i].status;
		r.exit_code = rows[i].exit_code;
		r.signal = rows[i].signal;
		r.error.code = rows[i].error;
		int got = result_exit_status(&r);
		if (got != rows[i].want)
			fprintf(stderr, "row %zu: status %d\n", i, got), check_failures++;
		result_free(&r);
	}
	char name[SIGNAL_NAME_SIZE];
	CHECK_TEXT(result_signal_name(SIGKILL, name), "SIGKILL");
	CHECK_TEXT(result_signal_name(SIGRTMIN, name), "SIGRTMIN");
	CHECK_TEXT(result_signal_name(SIGRTMIN + 3, name), "SIGRTMIN+3");
	CHECK_TEXT(result_signal_name(32, name), "SIG32");
	CHECK_TEXT(result_signal_name(1000, name), "SIG1000");
}

static void ids_are_ulids(void)
{
	struct result a, b;
	result_init(&a);
	result_init(&b);
	CHECK(strlen(a.id) == 26 && strspn(a.id, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == 26);
	CHECK(a.id[0] <= '7' && strcmp(a.id, b.id) != 0 && strncmp(a.id, b.id, 8) <= 0);
	result_free(&a);
	result_free(&b);
}

/* Everything that a result can point to, made up. */
static const char *const not_enforced[] = { "limits.memory", "limits.cpus", NULL };
static const char *sources[] = { "/p/\xff/base.yaml", "policy.yaml" };
static struct policy_text texts[] = { { "", 0 }, { "version: 1", 10 } };
static const struct plan_warning plan_warnings[] = { { "dangerous_grant",
	"the host's \x1b socket" } };
static const struct policy policy = {
	.name = "na\xff\x1bme", .sources = sources, .texts = texts, .source_count = 2
};
static const struct plan plan = { .namespaces = CLONE_NEWUSER | CLONE_NEWPID,
	.landlock_abi = 7,
	.filter.name = "custom",
	.workspace = "bind",
	.network = "host",
	.not_enforced = not_enforced,
	.warnings = plan_warnings,
	.warning_count = 1 };

static const char output[] = "nul \0 esc \x1b csi \xc2\x9b \"q\" \\ \xe2\x80\xae";

static void make_extreme(struct result *r)
{
	result_init(r);
	r->policy = &policy;
	r->plan = &plan;
	r->status = STATUS_LIMIT;
	r->signal = SIGKILL;
	r->limits_hit = 255;
	r->duration_us = 14200;
	r->usage = (struct usage){ 1200, 999, 9437184, 2, 0, UINT64_MAX - 1, 4096 };
	r->timing.policy_us = r->timing.setup_us = r->timing.run_us = r->timing.teardown_us = 7;
	r->leftover_killed = 3;
	stream_init(&r->out, 4096);
	stream_init(&r->err_out, 16);
	stream_add(&r->out, output, sizeof output);
	stream_add(&r->err_out, "\xfe\xff and more than fits", 21);
	struct violation v = { "syscall", "socket", "family \xff\x1b 40", "syscalls", "not_listed",
		2, true, "syscalls: {allow: [socket]}" };
	result_violation(r, &v);
	result_violation(r, &v);
	v = (struct violation){ "mount", "mount", NULL, NULL, NULL, 1, false, NULL };
	result_violation(r, &v);
	struct served more = { .port = 80, .connections = 1, .unanswered = 2, .sent = UINT64_MAX };
	result_published(r, 81, 65535);
	result_published(r, 80, 1024);
	result_served(r, &more);
	more.port = 82; /* of which nothing is known */
	result_served(r, &more);
	result_warning(r, "nested_mount_readonly", "a \xc3 mount");
	result_warning(r, plan_warnings[0].code, plan_warnings[0].message);
	err_set(&r->error, ERR_mount_failed, EPERM, "cannot show \xff\x07%s", "/x");
	err_at(&r->error, "/p/\xe2\x82policy.yaml", 3, 5);
	r->error.stage = 1;
}

static json_t *parse(const struct result *r, bool pretty, struct buf *out)
{
	buf_free(out);
	out->max = 0;
	CHECK(result_write(r, pretty, out) == 0);
	CHECK(utf8_valid(out->data, out->len));
	CHECK(out->len && out->data[out->len - 1] == '\n');
	int controls = 0;
	for (size_t i = 0; i + 1 < out->len; i++)
		controls += (unsigned char)out->data[i] < 0x20 && !(pretty && out->data[i] == '\n');
	CHECK(controls == 0);
	json_error_t error;
	json_t *json =
		json_loadb(out->data, out->len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	if (!json)
		fprintf(stderr, "jansson: %s\n", error.text), check_failures++;
	return json;
}

static const char *text_at(json_t *json, const char *key)
{
	return json_string_value(json_object_get(json, key));
}

static void extreme_results_are_json(void)
{
	struct result r;
	make_extreme(&r);
	AUTO_BUF out = { 0 };
	json_t *line = parse(&r, false, &out), *pretty = parse(&r, true, &out);
	CHECK(json_equal(line, pretty));
	json_t *j = line;
	CHECK_TEXT(text_at(j, "name"), "na\\xff\x1bme");
	CHECK_TEXT(text_at(j, "signal"), "SIGKILL");
	CHECK(json_is_null(json_object_get(j, "exit_code")));
	json_t *text = json_object_get(j, "stdout");
	CHECK(json_string_length(text) == sizeof output &&
		memcmp(json_string_value(text), output, sizeof output) == 0);
	CHECK_TEXT(text_at(j, "stdout_encoding"), "utf-8");
	CHECK_TEXT(text_at(j, "stderr_encoding"), "base64");
	CHECK(json_is_true(json_object_get(j, "stderr_truncated")));
	CHECK(json_integer_value(json_object_get(j, "stderr_bytes")) == 21);
	CHECK(json_array_size(json_object_get(j, "limits_hit")) == 8);
	json_t *usage = json_object_get(j, "usage");
	CHECK(json_real_value(json_object_get(usage, "cpu_user_ms")) == 1.2);
	CHECK(json_integer_value(json_object_get(usage, "write_bytes")) == INT64_MAX);
	json_t *violations = json_object_get(j, "violations");
	CHECK(json_array_size(violations) == 2);
	json_t *first = json_array_get(violations, 0);
	CHECK_TEXT(text_at(first, "target"), "family \\xff\x1b 40");
	CHECK(json_integer_value(json_object_get(first, "count")) == 4);
	CHECK(json_array_size(json_object_get(j, "warnings")) == 2);
	json_t *error = json_object_get(j, "error");
	CHECK_TEXT(text_at(error, "message"), "cannot show \\xff\x07/x");
	CHECK_TEXT(text_at(error, "file"), "/p/\\xe2\\x82policy.yaml");
	CHECK_TEXT(text_at(error, "errno"), "EPERM");
	CHECK_TEXT(text_at(error, "hint"), err_info(ERR_mount_failed)->remedy);
	CHECK(text_at(error, "stage") != NULL);
	CHECK(strstr(out.data, "\"duration_ms\": 14.2,") != NULL);
	json_decref(line);
	json_decref(pretty);
	result_free(&r);
}

static void kinds_of_control_groups(void)
{
	static const struct {
		enum plan_cgroup_kind kind;
		const char *word;
	} kinds[] = { { CGROUP_NONE, "none" }, { CGROUP_V2, "v2" }, { CGROUP_V1, "v1" } };
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct plan with = { .cgroup.kind = kinds[i].kind };
		struct result r;
		AUTO_BUF out = { 0 };
		result_init(&r);
		r.plan = &with;
		json_t *j = parse(&r, false, &out);
		CHECK_TEXT(text_at(json_object_get(j, "enforcement"), "cgroup"), kinds[i].word);
		json_decref(j);
		result_free(&r);
	}
}

static void an_error_has_no_outcome(void)
{
	struct result r;
	AUTO_BUF out = { 0 };
	result_init(&r);
	r.exit_code = 0;
	r.signal = 9;
	json_t *j = parse(&r, false, &out);
	CHECK_TEXT(text_at(j, "status"), "error");
	CHECK(json_is_null(json_object_get(j, "exit_code")) &&
		json_is_null(json_object_get(j, "signal")) &&
		json_is_null(json_object_get(j, "name")));
	CHECK_TEXT(text_at(j, "stdout"), "");
	/* Nobody said why: that is an error of its own, never null. */
	CHECK_TEXT(text_at(json_object_get(j, "error"), "code"), "internal");
	json_t *enforcement = json_object_get(j, "enforcement");
	CHECK(json_is_false(json_object_get(enforcement, "user_ns")) &&
		json_is_null(json_object_get(enforcement, "seccomp")));
	CHECK_TEXT(text_at(enforcement, "cgroup"), "none");
	json_decref(j);

	/* Strings that fill their fields to the last byte, as they may come over a socket. */
	memset(&r.error, 'e', sizeof r.error);
	r.error.code = ERR_box_died;
	j = parse(&r, false, &out);
	CHECK(json_string_length(json_object_get(json_object_get(j, "error"), "message")) ==
		sizeof r.error.text);
	CHECK(json_is_null(json_object_get(json_object_get(j, "error"), "stage")));
	CHECK(result_words(&r, &out) == 0);
	json_decref(j);
	result_free(&r);
}

static void live_streams_are_null(void)
{
	struct result r;
	AUTO_BUF out = { 0 };
	result_init(&r);
	r.status = STATUS_EXITED;
	r.exit_code = 0;
	r.live = true;
	stream_init(&r.out, 0);
	stream_add(&r.out, "passed", 6);
	json_t *j = parse(&r, false, &out);
	CHECK(json_is_null(json_object_get(j, "stdout")) &&
		json_is_null(json_object_get(j, "stdout_encoding")));
	CHECK(json_integer_value(json_object_get(j, "stdout_bytes")) == 6);
	CHECK(json_is_false(json_object_get(j, "stdout_truncated")));
	CHECK(json_is_null(json_object_get(j, "error")));
	json_decref(j);
	result_free(&r);
}

static void violations_and_warnings_have_a_maximum(void)
{
	struct result r;
	AUTO_BUF out = { 0 };
	result_init(&r);
	r.status = STATUS_EXITED;
	r.exit_code = 0;
	char target[3 * RESULT_TEXT_MAX];
	for (int i = 0; i < 1000; i++) {
		snprintf(target, sizeof target, "%d", i / 2);
		struct violation v = { "file", target, "/x", "filesystem.hide", "hidden", 1, true,
			NULL };
		result_violation(&r, &v);
		result_warning(&r, "code", target);
	}
	CHECK(r.violation_count == VIOLATIONS_MAX && r.violations[0].count == 2);
	CHECK(r.violations_dropped == 1000 - 2 * VIOLATIONS_MAX);
	CHECK(r.warning_count == WARNINGS_MAX);
	json_t *j = parse(&r, false, &out);
	json_t *warnings = json_object_get(j, "warnings");
	CHECK(json_array_size(warnings) == WARNINGS_MAX + 1);
	CHECK_TEXT(text_at(json_array_get(warnings, WARNINGS_MAX - 1), "code"), "warnings_dropped");
	json_t *last = json_array_get(warnings, WARNINGS_MAX);
	CHECK_TEXT(text_at(last, "code"), "violations_dropped");
	CHECK(strstr(text_at(last, "message"), "488 more") != NULL);
	json_decref(j);
	result_free(&r);

	/* Long texts are cut between characters, and equal ones still meet. */
	result_init(&r);
	memset(target, 'a', sizeof target);
	for (size_t i = 3; i + 3 < sizeof target; i += 3)
		memcpy(target + i, "\xe2\x82\xac", 3);
	target[sizeof target - 1] = 0;
	struct violation v = { "file", "open", target, NULL, NULL, 1, true, NULL };
	result_violation(&r, &v);
	result_violation(&r, &v);
	CHECK(r.violation_count == 1 && r.violations[0].count == 2);
	size_t len = strlen(r.violations[0].target);
	CHECK(len == RESULT_TEXT_MAX - RESULT_TEXT_MAX % 3 &&
		utf8_valid(r.violations[0].target, len));
	result_free(&r);
}

static struct violation socket_of(unsigned family, char text[32])
{
	snprintf(text, 32, "family %u", family);
	return (struct violation){ "syscall", "socket", text, "syscalls", "argument_not_allowed", 1,
		true, NULL };
}

/* The entry of an operation and target, or NULL. */
static const struct violation *listed(
	const struct result *r, const char *operation, const char *target)
{
	for (size_t i = 0; i < r->violation_count; i++) {
		const struct violation *v = &r->violations[i];
		if (strcmp(v->operation, operation) == 0 &&
			strcmp(v->target ? v->target : "", target) == 0)
			return v;
	}
	return NULL;
}

static void one_operation_cannot_fill_the_list(void)
{
	struct result r;
	char text[32];
	result_init(&r);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned family = 0; family < 256; family++) {
			struct violation v = socket_of(family, text);
			result_violation(&r, &v);
		}
	}
	struct violation mount = { "syscall", "mount", NULL, "nesting", "not_allowed", 1, true,
		"nesting: allow" };
	struct violation bpf = { "syscall", "bpf", NULL, "syscalls", "not_allowed", 1, true,
		"syscalls: {allow: [bpf]}" };
	struct violation other_layer = socket_of(300, text);
	other_layer.layer = "network";
	result_violation(&r, &mount);
	result_violation(&r, &bpf);
	result_violation(&r, &other_layer);
	CHECK(r.violation_count == VIOLATION_TARGETS + 1 + 3 && r.violations_dropped == 0);
	for (unsigned family = 0; family < VIOLATION_TARGETS; family++) {
		socket_of(family, text);
		const struct violation *v = listed(&r, "socket", text);
		CHECK(v && v->count == 2 && v->reason);
	}
	const struct violation *rest = listed(&r, "socket", VIOLATION_OTHERS);
	CHECK(rest && rest->count == 2 * (256 - VIOLATION_TARGETS) && rest->certain);
	CHECK(rest && rest->hint == NULL && rest->reason == NULL);
	CHECK_TEXT(rest ? rest->rule : "", "syscalls");
	CHECK(listed(&r, "mount", "") && listed(&r, "bpf", "") &&
		listed(&r, "socket", "family 300"));
	result_free(&r);

	/* The number of a foreign call is no operation of its own in this. */
	result_init(&r);
	for (unsigned nr = 0; nr < 1000; nr++) {
		snprintf(text, sizeof text, "arch:0x40000003/nr:%u", nr);
		struct violation v = { "syscall", text, "i386", "syscalls", "foreign_architecture",
			1, true, NULL };
		result_violation(&r, &v);
	}
	CHECK(r.violation_count == VIOLATION_TARGETS + 1 && r.violations_dropped == 0);
	rest = listed(&r, "arch:0x40000003", VIOLATION_OTHERS);
	CHECK(rest && rest->count == 1000 - VIOLATION_TARGETS);

	/* Many operations at once leave room: past a quarter each has a first entry and others. */
	for (unsigned i = 0; i < 40 * 32; i++) {
		char operation[32];
		snprintf(operation, sizeof operation, "call%u", i / 32);
		struct violation v = socket_of(i, text);
		v.operation = operation;
		result_violation(&r, &v);
	}
	CHECK(r.violation_count < VIOLATIONS_MAX / 2 + 16 && r.violations_dropped == 0);
	CHECK(listed(&r, "call39", "family 1248") && !listed(&r, "call39", "family 1249"));
	rest = listed(&r, "call39", VIOLATION_OTHERS);
	CHECK(rest && rest->count == 31);
	result_free(&r);
}

static void words_show_and_never_act(void)
{
	struct result r;
	AUTO_BUF out = { 0 };
	make_extreme(&r);
	CHECK(result_words(&r, &out) == 0);
	CHECK(strstr(out.data, "ended by a limit: cpu, memory,") != NULL);
	CHECK(strstr(out.data, "policy.yaml:3:5: cannot show \\xff\\x07/x [mount_failed") != NULL);
	CHECK(strstr(
		out.data, "refused 4 times: syscall socket family \\xff\\x1b 40, by syscalls\n"));
	CHECK(strstr(out.data, "hint: to allow it: syscalls: {allow: [socket]}\n") != NULL);
	for (size_t i = 0; i < out.len; i++)
		CHECK(out.data[i] == '\n' || (unsigned char)out.data[i] >= 0x20);
	CHECK(utf8_valid(out.data, out.len));
	result_free(&r);
}

static const struct field {
	const char *path, *type;
	int nullable;
} fields[] = {
#define FIELD(path, type, nullable, values, help) { path, type, nullable },
#include "report/fields.def"
#undef FIELD
};
#define FIELD_COUNT (sizeof fields / sizeof *fields)

static bool of_type(json_t *value, const struct field *field)
{
	switch (json_typeof(value)) {
	case JSON_NULL:
		return field->nullable;
	case JSON_OBJECT:
		return strcmp(field->type, "object") == 0;
	case JSON_ARRAY:
		return strcmp(field->type, "array") == 0;
	case JSON_STRING:
		return strcmp(field->type, "string") == 0;
	case JSON_INTEGER:
		return strcmp(field->type, "integer") == 0 || strcmp(field->type, "number") == 0;
	case JSON_REAL:
		return strcmp(field->type, "number") == 0;
	default:
		return strcmp(field->type, "boolean") == 0;
	}
}

/* Tick each field that is met; the table's order is the JSON's order. */
static void walk(json_t *value, const char *path, bool *seen, size_t *last)
{
	/* An object that is an element has no row of its own, only its members have. */
	if (path[0] && !(json_is_object(value) && path[strlen(path) - 1] == ']')) {
		size_t i = 0;
		while (i < FIELD_COUNT && strcmp(fields[i].path, path) != 0)
			i++;
		if (i == FIELD_COUNT || !of_type(value, &fields[i])) {
			fprintf(stderr, "%s is not as in fields.def\n", path), check_failures++;
			return;
		}
		if (!seen[i])
			CHECK(*last == 0 || i > *last);
		seen[i] = true;
		*last = i;
	}
	char below[200];
	const char *key;
	json_t *child;
	size_t n;
	json_object_foreach(value, key, child)
	{
		snprintf(below, sizeof below, "%s%s%s", path, path[0] ? "." : "", key);
		walk(child, below, seen, last);
	}
	json_array_foreach(value, n, child)
	{
		snprintf(below, sizeof below, "%s[]", path);
		walk(child, below, seen, last);
	}
}

static void the_writer_writes_the_table(void)
{
	struct result r;
	AUTO_BUF out = { 0 };
	bool seen[FIELD_COUNT] = { false };
	size_t last = 0;
	make_extreme(&r);
	json_t *j = parse(&r, false, &out);
	walk(j, "", seen, &last);
	for (size_t i = 0; i < FIELD_COUNT; i++) {
		/* Lists that nothing in this version fills. */
		if (strncmp(fields[i].path, "changes[]", 9) == 0 ||
			strncmp(fields[i].path, "network[]", 9) == 0 ||
			strncmp(fields[i].path, "tool_calls[]", 12) == 0)
			continue;
		if (!seen[i])
			fprintf(stderr, "%s is never written\n", fields[i].path), check_failures++;
	}
	json_decref(j);
	result_free(&r);
	buf_free(&out);
	CHECK(result_dump_fields(&out) == 0 &&
		strncmp(out.data, "agentbox\tstring\tno\tVersion", 26) == 0);
	buf_free(&out);
	CHECK(result_dump_errors(&out) == 0 && strncmp(out.data, "apply_failed\t125\tA ", 19) == 0);
}

/* Make an extreme result agree with its status, as the supervisor does. */
static void settle(struct result *r)
{
	bool exited = r->status == STATUS_EXITED;
	r->exit_code = exited ? 255 : -1;
	r->signal = exited ? 0 : SIGKILL;
	if (r->status != STATUS_ERROR)
		r->error.code = ERR_none;
}

static int print_samples(void)
{
	struct result r;
	AUTO_BUF out = { 0 };
	result_init(&r);
	CHECK(result_write(&r, false, &out) == 0);
	result_free(&r);
	for (int status = STATUS_ERROR; status <= STATUS_CANCELLED; status++) {
		for (int live = 0; live < 2; live++) {
			make_extreme(&r);
			r.live = live;
			r.status = (enum status)status;
			settle(&r);
			CHECK(result_write(&r, false, &out) == 0);
			result_free(&r);
		}
	}
	fputs(buf_text(&out), stdout);
	return CHECK_STATUS();
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--samples") == 0)
		return print_samples();
	RUN(exit_statuses);
	RUN(ids_are_ulids);
	RUN(extreme_results_are_json);
	RUN(kinds_of_control_groups);
	RUN(an_error_has_no_outcome);
	RUN(live_streams_are_null);
	RUN(violations_and_warnings_have_a_maximum);
	RUN(one_operation_cannot_fill_the_list);
	RUN(words_show_and_never_act);
	RUN(the_writer_writes_the_table);
	return CHECK_STATUS();
}
