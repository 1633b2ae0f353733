/*
 * filter_words_test: what is said about calls: violations with their hints, which must be true, and
 * the answers of `explain`. Nothing is installed.
 */
#define _GNU_SOURCE
#include "check.h"
#include "filter_calls.h"
#include "report/result.h"

/* Whatever is refused with a hint is allowed once the hint is followed, in both profiles. */
static void test_hints_are_true(void)
{
	static const uint64_t values[] = { 0, 1, 2, 3, 8, 16, 40, 04755, 020644, 060644, 0x5412,
		0x10000000, 0x400000 };
	struct arena arena = { 0 };
	const struct filter_call *row;
	size_t hints = 0;
	for (size_t i = 0; (row = filter_call(i)); i++) {
		for (size_t v = 0; v < COUNT(values) * COUNT(values); v++) {
			uint64_t a = values[v / COUNT(values)], b = values[v % COUNT(values)];
			struct seccomp_data call =
				call_of(native_audit, row->number[ARCH_NATIVE], a, b, b);
			if (call.nr < 0 || filter_profile_allows(true, &call))
				continue;
			struct violation violation;
			filter_describe(&call, &arena, &violation);
			if (!violation.hint)
				continue;
			struct policy_word one = word(row->name);
			struct policy policy = { .profile = PROFILE_STRICT };
			if (strcmp(violation.hint, "nesting: allow") == 0) {
				policy.nesting = true;
			} else {
				policy.sys_allow = &one;
				policy.sys_allow_count = 1;
			}
			struct filter filter = get(&policy, &arena);
			CHECK(filter_simulate(&filter, &call) == ALLOW);
			hints++;
			if (row->strict == ACT_REFUSE)
				break; /* whatever the arguments */
		}
		arena_free(&arena);
	}
	CHECK(hints > 100);
}

/* A box cannot hide one refused call behind others: each of a profile's has its place. */
static void test_every_refusal_is_listed(void)
{
	for (int strict = 0; strict < 2; strict++) {
		struct arena arena = { 0 };
		struct result result;
		result_init(&result);
		/* from the calls with most targets to those with none, each with many arguments */
		for (int turn = 0; turn < 2; turn++) {
			const struct filter_call *row;
			for (size_t i = 0; (row = filter_call(i)); i++) {
				bool plain = row->normal == ACT_REFUSE || row->strict == ACT_REFUSE;
				for (uint64_t v = 0; v < 4096 && plain == (turn == 1); v += 7) {
					struct seccomp_data call =
						call_of(native_audit, row->number[ARCH_NATIVE],
							v << 19 | v, v << 19 | v, v << 19 | v);
					struct violation violation;
					if (call.nr < 0 || filter_profile_allows(strict, &call))
						continue;
					filter_describe(&call, &arena, &violation);
					result_violation(&result, &violation);
				}
				arena_free(&arena);
			}
			for (int nr = 0; turn == 0 && nr < 1000; nr++) {
				struct seccomp_data call = call_of(AUDIT_ARCH_I386, nr, 0, 0, 0);
				struct violation violation;
				filter_describe(&call, &arena, &violation);
				result_violation(&result, &violation);
			}
		}
		CHECK(result.violations_dropped == 0);
		CHECK(result.violation_count > 100);
		result_free(&result);
		arena_free(&arena);
	}
}

static const struct {
	const char *name;
	uint64_t a, b, c;
	const char *target, *rule, *hint; /* NULL: none */
	int errnum;
} described[] = {
	{ "socket", 40, 1, 0, "family 40 (AF_VSOCK)", "syscalls", NULL, EPERM },
	{ "socket", 200, 1, 0, "family 200", "syscalls", NULL, EPERM },
	{ "socket", 2, 0x80003, 1, "family 2 (AF_INET) type 3 (SOCK_RAW)", "syscalls", NULL,
		EPERM },
	{ "socket", 16, 3, 9, "family 16 (AF_NETLINK) protocol 9 (NETLINK_AUDIT)", "syscalls", NULL,
		EPERM },
	/* refused by `strict` only */
	{ "socket", 2, 1, 0, "family 2 (AF_INET)", "syscalls", "syscalls: {allow: [socket]}",
		EPERM },
	{ "socketpair", 30, 1, 0, "family 30 (AF_TIPC)", "syscalls", NULL, EPERM },
	{ "ioctl", 0, 0x100005412, 0, "TIOCSTI", "syscalls", NULL, EPERM },
	{ "unshare", 0x10020000, 0, 0, "CLONE_NEWUSER|CLONE_NEWNS", "nesting", "nesting: allow",
		EPERM },
	{ "clone", 0x10000091, 0, 0, "CLONE_NEWUSER", "nesting", "nesting: allow", EPERM },
	{ "mount", 0, 0, 0, NULL, "syscalls", NULL, EPERM },
	{ "setns", 0, 0, 0, NULL, "nesting", "nesting: allow", EPERM },
	{ "mknodat", 0, 0, 060644, "block device", "syscalls", NULL, EPERM },
	{ "mknodat", 0, 0, 0104711, "set-id mode 04711", "syscalls", "syscalls: {allow: [mknodat]}",
		EPERM },
	{ "fchmod", 3, 0104755, 0, "set-id mode 04755", "syscalls", "syscalls: {allow: [fchmod]}",
		EPERM },
	{ "fchmodat", 3, 0, 02070, "set-id mode 02070", "syscalls", "syscalls: {allow: [fchmodat]}",
		EPERM },
	{ "fchmodat2", 3, 0, 06000, "set-id mode 06000", "syscalls",
		"syscalls: {allow: [fchmodat2]}", EPERM },
	{ "prlimit64", 1, 0, 0, "process 1 (the box's init)", "syscalls", NULL, EPERM },
	{ "setpriority", 0, 1, 0, "process 1 (the box's init)", "syscalls", NULL, EPERM },
	{ "setpriority", 2, 1, 0, "all processes of a user", "syscalls", NULL, EPERM },
	{ "ioprio_set", 3, 5, 0, "all processes of a user", "syscalls", NULL, EPERM },
	{ "io_setup", 1, 0, 0, NULL, "syscalls", "syscalls: {allow: [io_setup]}", EPERM },
	{ "personality", 0x400000, 0, 0, "0x0400000", "syscalls",
		"syscalls: {allow: [personality]}", EPERM },
	{ "ptrace", 0, 0, 0, NULL, "syscalls", "syscalls: {allow: [ptrace]}", EPERM },
	{ "reboot", 0, 0, 0, NULL, "syscalls", NULL, EPERM },
	{ "getpid", 0, 0, 0, NULL, "syscalls.deny", NULL, EPERM },
	/* what both profiles allow, and what nobody is told of: only `deny` brings it here */
	{ "fchmod", 3, 0755, 0, NULL, "syscalls.deny", NULL, EPERM },
	{ "ioctl", 0, 0x5401, 0, NULL, "syscalls.deny", NULL, EPERM },
	{ "socket", 1, 1, 0, NULL, "syscalls.deny", NULL, EPERM },
	{ "clone", 0x11, 0, 0, NULL, "syscalls.deny", NULL, EPERM },
	{ "clone3", 0, 0, 0, NULL, "syscalls.deny", NULL, ENOSYS },
	{ "io_uring_setup", 0, 0, 0, NULL, "syscalls.deny", NULL, ENOSYS },
	{ "kill", UINT64_MAX, 9, 0, NULL, "syscalls.deny", NULL, EPERM },
};

static void test_describe(void)
{
	struct arena arena = { 0 };
	for (size_t i = 0; i < COUNT(described); i++) {
		struct seccomp_data call = call_of(native_audit, filter_number(described[i].name),
			described[i].a, described[i].b, described[i].c);
		struct violation violation;
		filter_describe(&call, &arena, &violation);
		CHECK_TEXT(violation.layer, "syscall");
		CHECK_TEXT(violation.operation, described[i].name);
		CHECK_TEXT(violation.rule, described[i].rule);
		CHECK_TEXT(violation.target ? violation.target : "-",
			described[i].target ? described[i].target : "-");
		CHECK_TEXT(violation.hint ? violation.hint : "-",
			described[i].hint ? described[i].hint : "-");
		CHECK(violation.count == 1 && violation.certain && violation.reason);
		CHECK(filter_errno(&call) == described[i].errnum);
		CHECK(!filter_must_kill(&call));
	}
	/* B20: what lies in memory */
	struct seccomp_data clone3 = call_of(native_audit, filter_number("clone3"), 0, 88, 0);
	struct violation hidden;
	CHECK(!filter_describe_flags(&clone3, 0x3d0f00, &arena, &hidden)); /* a thread */
	CHECK(filter_describe_flags(&clone3, 0x10000080, &arena, &hidden));
	CHECK_TEXT(hidden.operation, "clone3");
	CHECK_TEXT(hidden.target, "CLONE_NEWUSER|CLONE_NEWTIME");
	CHECK_TEXT(hidden.rule, "nesting");
	CHECK_TEXT(hidden.hint, "nesting: allow\nsyscalls: {allow: [clone3]}");
	/* B18 */
	struct seccomp_data foreign = call_of(AUDIT_ARCH_I386, 359, 0, 0, 0);
	struct violation violation;
	filter_describe(&foreign, &arena, &violation);
	CHECK_TEXT(violation.operation, "arch:0x40000003/nr:359");
	CHECK_TEXT(violation.reason, "foreign_architecture");
	CHECK(violation.hint == NULL);
	arena_free(&arena);
}

static void test_explain(void)
{
	struct policy_word allow[] = { word("keyctl") }, deny[] = { word("ptrace") };
	struct policy policy = {
		.sys_allow = allow, .sys_allow_count = 1, .sys_deny = deny, .sys_deny_count = 1
	};
	static const struct {
		const char *name;
		enum filter_answer answer;
		const char *words; /* part of them */
	} cases[] = {
		{ "read", FILTER_ALLOWED, "by the profile `default`" },
		{ "keyctl", FILTER_ALLOWED, "by syscalls.allow (p.yaml:7)" },
		{ "ptrace", FILTER_DENIED, "by syscalls.deny (p.yaml:7)" },
		{ "setns", FILTER_DENIED, "`nesting: allow` allows it" },
		{ "bpf", FILTER_DENIED, "`syscalls: {allow: [bpf]}` allows it" },
		{ "reboot", FILTER_DENIED, "in any case" },
		{ "clone3", FILTER_DENIED, "ENOSYS" },
		{ "clone3", FILTER_DENIED, "`nesting: allow` with `syscalls: {allow: [clone3]}`" },
		{ "clone3", FILTER_DENIED, "recorded when it asks for a namespace" },
		{ "kill", FILTER_ALLOWED, "`syscalls: {allow: [kill]}` spares the caller" },
		{ "fchmod", FILTER_DEPENDS, "without set-id bits (06000)" },
		{ "fchmod", FILTER_DEPENDS, "`syscalls: {allow: [fchmod]}` allows it" },
		{ "ioctl", FILTER_DEPENDS, "recorded; no key allows more" },
		{ "prlimit64", FILTER_DEPENDS, "every process but 1" },
		{ "seccomp", FILTER_DEPENDS, "otherwise it answers ENOSYS" },
		{ "socket", FILTER_DEPENDS, "AF_UNIX" },
		{ "clone", FILTER_DEPENDS, "CLONE_NEW*" },
		{ "no_such_call", FILTER_UNKNOWN, "no system call" },
		{ "raed", FILTER_UNKNOWN, "did you mean `read`?" },
	};
	struct arena arena = { 0 };
	struct filter filter = get(&policy, &arena);
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *words = NULL;
		CHECK(filter_explain(&filter, &policy, cases[i].name, &arena, &words) ==
			cases[i].answer);
		if (!words || !strstr(words, cases[i].words))
			fprintf(stderr, "%s: %s\n", cases[i].name, words ? words : "(null)");
		CHECK(words && strstr(words, cases[i].words));
	}
	arena_free(&arena);
}

static void test_explain_renames(void)
{
	struct policy_word deny[] = { word("renameat2") };
	struct policy policy = { .sys_deny = deny, .sys_deny_count = 1 };
	policy.fs.workspace = WORKSPACE_OVERLAY;
	struct arena arena = { 0 };
	struct filter filter = get(&policy, &arena);
	const char *words = NULL;
	CHECK(filter_explain(&filter, &policy, "renameat", &arena, &words) == FILTER_ALLOWED);
	CHECK(strstr(words, "by the profile `default`") && strstr(words, "does it for the caller"));
	CHECK(filter_explain(&filter, &policy, "renameat2", &arena, &words) == FILTER_DENIED);
	CHECK(strstr(words, "by syscalls.deny (p.yaml:7)"));
	policy.fs.workspace = WORKSPACE_WRITE;
	filter = get(&policy, &arena);
	CHECK(filter_explain(&filter, &policy, "renameat", &arena, &words) == FILTER_ALLOWED);
	CHECK(!strstr(words, "for the caller"));
	arena_free(&arena);
}

int main(void)
{
	RUN(test_hints_are_true);
	RUN(test_every_refusal_is_listed);
	RUN(test_describe);
	RUN(test_explain);
	RUN(test_explain_renames);
	return CHECK_STATUS();
}
