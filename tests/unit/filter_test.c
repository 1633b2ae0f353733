/*
 * filter_test: the programs of policies, through the interpreter: rows of call and arguments, and
 * what must come out; and the words for it. Nothing is installed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>

#include "check.h"
#include "plan/filter.h"
#include "plan/filter_table.h"
#include "policy/policy.h"
#include "report/result.h"

#define ALLOW  SECCOMP_RET_ALLOW
#define REFUSE SECCOMP_RET_USER_NOTIF
#define ABSENT (SECCOMP_RET_ERRNO | ENOSYS)

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const uint32_t native_audit =
	ARCH_NATIVE == ARCH_X86_64 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64;

static struct seccomp_data call_of(
	uint32_t arch, int64_t number, uint64_t a, uint64_t b, uint64_t c)
{
	return (struct seccomp_data){
		.arch = arch, .nr = (int)(uint32_t)number, .args = { a, b, c }
	};
}

/* The answer to a call by name; an unknown name is a failed check. */
static uint32_t answer(
	const struct filter *filter, const char *name, uint64_t a, uint64_t b, uint64_t c)
{
	struct seccomp_data call = call_of(native_audit, filter_number(name), a, b, c);
	if (call.nr < 0) {
		fprintf(stderr, "no such call here: %s\n", name);
		check_failures++;
	}
	return filter_simulate(filter, &call);
}

static struct filter get(const struct policy *policy, struct arena *arena)
{
	struct filter filter = { 0 };
	struct err err = { 0 };
	CHECK(filter_get(policy, arena, &filter, &err) == 0);
	CHECK_TEXT(err.text, "");
	return filter;
}

struct row {
	const char *name;
	uint64_t a, b, c;
	uint32_t normal, strict;
};

/* Only calls that both architectures have. */
static const struct row rows[] = {
	/* what everything needs */
	{ "read", 0, 0, 0, ALLOW, ALLOW },
	{ "openat", 0, 0, 0, ALLOW, ALLOW },
	{ "execve", 0, 0, 0, ALLOW, ALLOW },
	{ "mmap", 0, 0, 0, ALLOW, ALLOW },
	{ "futex", 0, 0, 0, ALLOW, ALLOW },
	{ "exit_group", 0, 0, 0, ALLOW, ALLOW },
	{ "sendto", 0, 0, 0, ALLOW, ALLOW }, /* A02 */
	{ "sendmsg", 0, 0, 0, ALLOW, ALLOW },
	{ "membarrier", 0, 0, 0, ALLOW, ALLOW },
	{ "pkey_alloc", 0, 0, 0, ALLOW, ALLOW },
	{ "rseq", 0, 0, 0, ALLOW, ALLOW },
	{ "statx", 0, 0, 0, ALLOW, ALLOW },
	{ "setuid", 0, 0, 0, ALLOW, ALLOW },
	{ "prctl", 0, 0, 0, ALLOW, ALLOW },
	/* newer than many C libraries */
	{ "fchmodat2", 0, 0, 0, ALLOW, ALLOW },
	{ "futex_wait", 0, 0, 0, ALLOW, ALLOW },
	{ "mseal", 0, 0, 0, ALLOW, ALLOW },
	{ "listxattrat", 0, 0, 0, ALLOW, ALLOW },
	{ "open_tree_attr", 0, 0, 0, REFUSE, REFUSE },
	{ "listns", 0, 0, 0, REFUSE, REFUSE },
	/* between processes of the box */
	{ "ptrace", 0, 0, 0, ALLOW, REFUSE },
	{ "process_vm_readv", 0, 0, 0, ALLOW, REFUSE },
	{ "shmget", 0, 0, 0, ALLOW, REFUSE },
	{ "mq_open", 0, 0, 0, ALLOW, REFUSE },
	{ "inotify_init1", 0, 0, 0, ALLOW, REFUSE },
	{ "landlock_create_ruleset", 0, 0, 0, ALLOW, REFUSE },
	{ "seccomp", 0, 0, 0, ALLOW, REFUSE },
	{ "listen", 0, 0, 0, ALLOW, REFUSE },
	/* the host's */
	{ "mount", 0, 0, 0, REFUSE, REFUSE },
	{ "fsopen", 0, 0, 0, REFUSE, REFUSE }, /* B20 */
	{ "open_tree", 0, 0, 0, REFUSE, REFUSE },
	{ "move_mount", 0, 0, 0, REFUSE, REFUSE },
	{ "mount_setattr", 0, 0, 0, REFUSE, REFUSE },
	{ "pivot_root", 0, 0, 0, REFUSE, REFUSE },
	{ "chroot", 0, 0, 0, REFUSE, REFUSE },
	{ "setns", 0, 0, 0, REFUSE, REFUSE },
	{ "bpf", 0, 0, 0, REFUSE, REFUSE },
	{ "perf_event_open", 0, 0, 0, REFUSE, REFUSE },
	{ "keyctl", 0, 0, 0, REFUSE, REFUSE },
	{ "add_key", 0, 0, 0, REFUSE, REFUSE },
	{ "userfaultfd", 0, 0, 0, REFUSE, REFUSE },
	{ "open_by_handle_at", 0, 0, 0, REFUSE, REFUSE },
	{ "name_to_handle_at", 0, 0, 0, REFUSE, REFUSE },
	{ "init_module", 0, 0, 0, REFUSE, REFUSE },
	{ "kexec_file_load", 0, 0, 0, REFUSE, REFUSE },
	{ "clock_settime", 0, 0, 0, REFUSE, REFUSE },
	{ "clock_gettime", 0, 0, 0, ALLOW, ALLOW },
	/* programs fall back: A38 */
	{ "clone3", 0, 0, 0, ABSENT, ABSENT },
	{ "io_uring_setup", 0, 0, 0, ABSENT, ABSENT },
	{ "io_uring_enter", 0, 0, 0, ABSENT, ABSENT },
	{ "io_uring_register", 0, 0, 0, ABSENT, ABSENT },
	/* namespaces */
	{ "clone", 0x3d0f00, 0, 0, ALLOW, ALLOW },  /* a thread */
	{ "clone", 0x1200011, 0, 0, ALLOW, ALLOW }, /* fork */
	{ "clone", 0x80, 0, 0, ALLOW, ALLOW },      /* a signal, not CLONE_NEWTIME */
	{ "clone", 0x10000011, 0, 0, REFUSE, REFUSE },
	{ "clone", 0x00020011, 0, 0, REFUSE, REFUSE },
	{ "clone", 0x02000011, 0, 0, REFUSE, REFUSE },
	{ "clone", 0x04000011, 0, 0, REFUSE, REFUSE },
	{ "clone", 0x08000011, 0, 0, REFUSE, REFUSE },
	{ "clone", 0x20000011, 0, 0, REFUSE, REFUSE },
	{ "clone", 0x40000011, 0, 0, REFUSE, REFUSE },
	{ "clone", 0x710000011, 0, 0, REFUSE, REFUSE },
	{ "unshare", 0x600, 0, 0, ALLOW, ALLOW }, /* CLONE_FS | CLONE_FILES */
	{ "unshare", 0x80, 0, 0, REFUSE, REFUSE },
	{ "unshare", 0x10000000, 0, 0, REFUSE, REFUSE },
	{ "unshare", 0xffffffff10000000, 0, 0, REFUSE, REFUSE },
	/* sockets: B16 */
	{ "socket", 1, 1, 0, ALLOW, ALLOW },
	{ "socket", 2, 1, 0, ALLOW, REFUSE },
	{ "socket", 2, 0x80802, 0, ALLOW, REFUSE }, /* SOCK_CLOEXEC | SOCK_NONBLOCK */
	{ "socket", 10, 2, 0, ALLOW, REFUSE },
	{ "socket", 2, 3, 0, REFUSE, REFUSE },
	{ "socket", 2, 0x80003, 1, REFUSE, REFUSE },
	{ "socket", 2, 10, 0, REFUSE, REFUSE },
	{ "socket", 10, 3, 58, REFUSE, REFUSE },
	{ "socket", 2, 5, 132, REFUSE, REFUSE },
	{ "socket", 16, 3, 0, ALLOW, REFUSE },
	{ "socket", 16, 0x80003, 0, ALLOW, REFUSE },
	{ "socket", 16, 3, 9, REFUSE, REFUSE },
	{ "socket", 16, 3, 12, REFUSE, REFUSE },
	{ "socket", 17, 3, 0, REFUSE, REFUSE },
	{ "socket", 38, 5, 0, REFUSE, REFUSE },
	{ "socket", 40, 1, 0, REFUSE, REFUSE },
	{ "socket", 0x100000028, 1, 0, REFUSE, REFUSE },
	{ "socket", 0x100000001, 1, 0, ALLOW, ALLOW },
	{ "socketpair", 1, 1, 0, ALLOW, ALLOW },
	{ "socketpair", 30, 1, 0, REFUSE, REFUSE },
	/* terminals: B06 */
	{ "ioctl", 0, 0x5401, 0, ALLOW, ALLOW },
	{ "ioctl", 0, 0x5412, 0, REFUSE, REFUSE },
	{ "ioctl", 0, 0x541c, 0, REFUSE, REFUSE },
	{ "ioctl", 0, 0x100005412, 0, REFUSE, REFUSE },
	{ "ioctl", 0, 0xffffffff0000541c, 0, REFUSE, REFUSE },
	{ "ioctl", 0x5412, 0x5413, 0x5412, ALLOW, ALLOW },
	{ "ioctl", 0, 0x541d, 0, REFUSE, REFUSE },
	{ "ioctl", 0, 0x5423, 0, REFUSE, REFUSE },
	{ "ioctl", 0, 0x5424, 0, ALLOW, ALLOW },
	/* device nodes */
	{ "mknodat", 0, 0, 010644, ALLOW, ALLOW },
	{ "mknodat", 0, 0, 0100644, ALLOW, ALLOW },
	{ "mknodat", 0, 0, 0140644, ALLOW, ALLOW },
	{ "mknodat", 0, 0, 0644, ALLOW, ALLOW },
	{ "mknodat", 0, 0, 020644, REFUSE, REFUSE },
	{ "mknodat", 0, 0, 060644, REFUSE, REFUSE },
	{ "mknodat", 0, 020644, 0x10000 | 060644, REFUSE, REFUSE },
	/* personality */
	{ "personality", 0, 0, 0, ALLOW, REFUSE },
	{ "personality", 0xffffffff, 0, 0, ALLOW, REFUSE },
	{ "personality", 0x40000, 0, 0, ALLOW, REFUSE },
	{ "personality", 0x60008, 0, 0, ALLOW, REFUSE },
	{ "personality", 0x400000, 0, 0, REFUSE, REFUSE },
	{ "personality", 0x100000, 0, 0, REFUSE, REFUSE },
	{ "personality", 4, 0, 0, REFUSE, REFUSE },
};

static void test_rows(void)
{
	struct arena arena = { 0 };
	struct policy policy = { .profile = PROFILE_DEFAULT };
	struct filter normal = get(&policy, &arena);
	policy.profile = PROFILE_STRICT;
	struct filter strict = get(&policy, &arena);
	CHECK_TEXT(normal.name, "default");
	CHECK_TEXT(strict.name, "strict");
	CHECK(strlen(normal.sha256) == 64 && strlen(strict.sha256) == 64);
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct row *row = &rows[i];
		uint32_t got = answer(&normal, row->name, row->a, row->b, row->c);
		uint32_t got_strict = answer(&strict, row->name, row->a, row->b, row->c);
		if (got != row->normal || got_strict != row->strict)
			fprintf(stderr, "row %zu: %s(%llx, %llx, %llx)\n", i, row->name,
				(unsigned long long)row->a, (unsigned long long)row->b,
				(unsigned long long)row->c);
		CHECK(got == row->normal);
		CHECK(got_strict == row->strict);
	}
	arena_free(&arena);
}

/* B18: no call of another architecture is ever checked against this one's numbers. */
static void test_foreign(void)
{
	struct arena arena = { 0 };
	struct policy policy = { 0 };
	struct filter filter = get(&policy, &arena);
	static const struct {
		uint32_t arch;
		int64_t number;
		uint32_t answer;
		bool kill;
	} calls[] = {
		{ AUDIT_ARCH_I386, 359, REFUSE, true },
		{ AUDIT_ARCH_I386, 26, REFUSE, true },
		{ AUDIT_ARCH_I386, 0, REFUSE, true },
		{ AUDIT_ARCH_ARM, 1, REFUSE, true },
		{ 0, 0, REFUSE, true },
		{ 0xffffffff, 0, REFUSE, true },
#ifdef __x86_64__
		{ AUDIT_ARCH_AARCH64, 64, REFUSE, true },
		{ AUDIT_ARCH_X86_64, 0x40000000, REFUSE, true },
		{ AUDIT_ARCH_X86_64, 0x40000000 | 41, REFUSE, true },
		{ AUDIT_ARCH_X86_64, 0x40000000 | 520, REFUSE, true },
		{ AUDIT_ARCH_X86_64, 0x7fffffff, REFUSE, true },
		{ AUDIT_ARCH_X86_64, 0x80000000, REFUSE, true },
		{ AUDIT_ARCH_X86_64, 0xfffffffe, REFUSE, true },
		{ AUDIT_ARCH_X86_64, 0x3fffffff, ABSENT, false },
		{ AUDIT_ARCH_X86_64, 335, ALLOW, false },
		{ AUDIT_ARCH_X86_64, 400, ABSENT, false },
		{ AUDIT_ARCH_X86_64, 512, ABSENT, false },
#endif
	};
	for (size_t i = 0; i < COUNT(calls); i++) {
		struct seccomp_data call = call_of(calls[i].arch, calls[i].number, 0, 0, 0);
		CHECK(filter_simulate(&filter, &call) == calls[i].answer);
		CHECK(filter_must_kill(&call) == calls[i].kill);
		if (calls[i].kill)
			CHECK(filter_errno(&call) == ENOSYS);
	}
	/* calls that are not yet, and the number that a tracer leaves of a skipped one */
	static const int64_t unknown[] = { 472, 511, 600, 100000, 0xffffffff };
	for (size_t i = 0; i < COUNT(unknown); i++) {
		struct seccomp_data call = call_of(native_audit, unknown[i], 0, 0, 0);
		CHECK(filter_simulate(&filter, &call) == ABSENT);
		CHECK(!filter_must_kill(&call));
	}
	arena_free(&arena);
}

static struct policy_word word(const char *value)
{
	return (struct policy_word){ .value = value, .at = { "p.yaml", 7, 12 } };
}

static void test_lists(void)
{
	struct arena arena = { 0 };
	struct policy_word allow[] = { word("keyctl"), word("socket"), word("bpf"),
		word("clone3") };
	struct policy_word deny[] = { word("bpf"), word("ptrace"), word("io_uring_setup") };
	struct policy policy = { .sys_allow = allow,
		.sys_allow_count = COUNT(allow),
		.sys_deny = deny,
		.sys_deny_count = COUNT(deny) };
	struct filter filter = get(&policy, &arena);
	CHECK_TEXT(filter.name, "custom");
	CHECK(answer(&filter, "keyctl", 0, 0, 0) == ALLOW);
	CHECK(answer(&filter, "socket", 40, 1, 0) == ALLOW);
	CHECK(answer(&filter, "clone3", 0, 0, 0) == ALLOW);
	CHECK(answer(&filter, "bpf", 0, 0, 0) == REFUSE); /* deny wins */
	CHECK(answer(&filter, "ptrace", 0, 0, 0) == REFUSE);
	CHECK(answer(&filter, "io_uring_setup", 0, 0, 0) == REFUSE);
	CHECK(answer(&filter, "mount", 0, 0, 0) == REFUSE);
	CHECK(answer(&filter, "add_key", 0, 0, 0) == REFUSE);

	policy.profile = PROFILE_STRICT;
	struct filter strict = get(&policy, &arena);
	CHECK(answer(&strict, "keyctl", 0, 0, 0) == ALLOW);
	CHECK(answer(&strict, "listen", 0, 0, 0) == REFUSE);
	CHECK(strcmp(strict.sha256, filter.sha256) != 0);
	struct filter again = get(&policy, &arena);
	CHECK_TEXT(again.sha256, strict.sha256);
	arena_free(&arena);
}

/* A40 */
static void test_nesting(void)
{
	struct arena arena = { 0 };
	struct policy policy = { .nesting = true };
	struct filter filter = get(&policy, &arena);
	static const char *const lifted[] = { "unshare", "clone", "mount", "umount2", "pivot_root",
		"setns", "chroot", "sethostname", "fsopen", "move_mount", "mount_setattr" };
	for (size_t i = 0; i < COUNT(lifted); i++)
		CHECK(answer(&filter, lifted[i], 0x7e020011, 0, 0) == ALLOW);
	CHECK(answer(&filter, "bpf", 0, 0, 0) == REFUSE);
	CHECK(answer(&filter, "clone3", 0, 0, 0) == ABSENT);
	CHECK(answer(&filter, "socket", 40, 1, 0) == REFUSE);
	arena_free(&arena);
}

static const struct {
	const char *name;
	bool allow;
	int code;
	const char *text, *hint; /* part of it; NULL: any */
} bad[] = {
	{ "ptrase", true, ERR_policy_invalid, "`ptrase`", "`ptrace`" },
	{ "opneat", false, ERR_policy_invalid, "`opneat`", "`openat`" },
	{ "sys_read_everything_there_is_in_the_world", true, ERR_policy_invalid, "known on", NULL },
	{ "", true, ERR_policy_invalid, "known on", NULL },
	{ "41", true, ERR_policy_invalid, "`41`", NULL },
	{ "execve", false, ERR_policy_invalid, "`execve`", NULL },
	{ "sendmsg", false, ERR_policy_invalid, "`sendmsg`", NULL },
	{ "exit_group", false, ERR_policy_invalid, "`exit_group`", NULL },
#ifndef __x86_64__
	{ "open", true, ERR_unsupported, "does not exist", NULL },
#endif
};

static void test_bad_names(void)
{
	struct arena arena = { 0 };
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct policy_word one = word(bad[i].name);
		struct policy policy = { 0 };
		if (bad[i].allow) {
			policy.sys_allow = &one;
			policy.sys_allow_count = 1;
		} else {
			policy.sys_deny = &one;
			policy.sys_deny_count = 1;
		}
		struct filter filter = { .name = "untouched" };
		struct err err = { 0 };
		CHECK(filter_get(&policy, &arena, &filter, &err) == -1);
		CHECK(err.code == bad[i].code);
		CHECK_TEXT(err.file, "p.yaml");
		CHECK(err.line == 7 && err.column == 12);
		CHECK(strstr(err.text, bad[i].text));
		CHECK(!bad[i].hint || strstr(err.hint, bad[i].hint));
		CHECK_TEXT(filter.name, "untouched");
	}
	arena_free(&arena);
}

static const struct {
	const char *name;
	uint64_t a, b, c;
	const char *target, *rule, *hint; /* NULL: none */
	int errnum;
} described[] = {
	{ "socket", 40, 1, 0, "family 40 (AF_VSOCK)", "syscalls", "syscalls: {allow: [socket]}",
		EPERM },
	{ "socket", 200, 1, 0, "family 200", "syscalls", "syscalls: {allow: [socket]}", EPERM },
	{ "socket", 2, 0x80003, 1, "family 2 (AF_INET) type 3 (SOCK_RAW)", "syscalls",
		"syscalls: {allow: [socket]}", EPERM },
	{ "socket", 16, 3, 9, "family 16 (AF_NETLINK) protocol 9 (NETLINK_AUDIT)", "syscalls",
		"syscalls: {allow: [socket]}", EPERM },
	{ "ioctl", 0, 0x100005412, 0, "TIOCSTI", "syscalls", "syscalls: {allow: [ioctl]}", EPERM },
	{ "unshare", 0x10020000, 0, 0, "CLONE_NEWUSER|CLONE_NEWNS", "nesting", "nesting: allow",
		EPERM },
	{ "clone", 0x10000091, 0, 0, "CLONE_NEWUSER", "nesting", "nesting: allow", EPERM },
	{ "mount", 0, 0, 0, NULL, "nesting", "nesting: allow", EPERM },
	{ "mknodat", 0, 0, 060644, "block device", "syscalls", "syscalls: {allow: [mknodat]}",
		EPERM },
	{ "personality", 0x400000, 0, 0, "0x0400000", "syscalls",
		"syscalls: {allow: [personality]}", EPERM },
	{ "ptrace", 0, 0, 0, NULL, "syscalls", "syscalls: {allow: [ptrace]}", EPERM },
	{ "reboot", 0, 0, 0, NULL, "syscalls", NULL, EPERM },
	{ "getpid", 0, 0, 0, NULL, "syscalls.deny", NULL, EPERM },
	{ "clone3", 0, 0, 0, NULL, "syscalls", "syscalls: {allow: [clone3]}", ENOSYS },
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
		{ "mount", FILTER_DENIED, "`nesting: allow` allows it" },
		{ "bpf", FILTER_DENIED, "`syscalls: {allow: [bpf]}` allows it" },
		{ "reboot", FILTER_DENIED, "in any case" },
		{ "clone3", FILTER_DENIED, "ENOSYS" },
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

int main(void)
{
	RUN(test_rows);
	RUN(test_foreign);
	RUN(test_lists);
	RUN(test_nesting);
	RUN(test_bad_names);
	RUN(test_describe);
	RUN(test_explain);
	return CHECK_STATUS();
}
