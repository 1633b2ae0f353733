/*
 * filter_test: the programs of policies, through the interpreter: rows of call and arguments, and
 * what must come out. Nothing is installed.
 */
#define _GNU_SOURCE
#include "check.h"
#include "filter_calls.h"
#include "report/result.h"

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
	{ "openat2", 0, 0, 0, ABSENT, ABSENT },
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
	{ "seccomp", 1, 0, 0, ALLOW, REFUSE },
	{ "seccomp", 1, 1, 0, ALLOW, REFUSE },
	{ "seccomp", 1, 8, 0, ABSENT, REFUSE }, /* a listener of the box's own */
	{ "seccomp", 1, 0x29, 0, ABSENT, REFUSE },
	/* what is counted for the whole host */
	{ "io_setup", 128, 0, 0, REFUSE, REFUSE },
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
	/* the end of the box: B12 */
	{ "kill", UINT64_MAX, 9, 0, REFUSE, REFUSE },
	{ "kill", 0x2ffffffff, 0x500000009, 0, REFUSE, REFUSE }, /* both are 32 bits wide */
	{ "kill", UINT64_MAX, 15, 0, ALLOW, ALLOW },
	{ "kill", 7, 9, 0, ALLOW, ALLOW },
	{ "kill", 0, 9, 0, ALLOW, ALLOW },
	/* programs fall back: A38 */
	{ "clone3", 0, 0, 0, REFUSE,
		REFUSE }, /* the listener: ENOSYS, but it sees what was asked */
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
	/* set-id bits */
	{ "mknodat", 0, 0, 0104755, REFUSE, REFUSE },
	{ "mknodat", 0, 0, 012755, REFUSE, REFUSE },
	{ "mknodat", 0, 06755, 01777, ALLOW, ALLOW },
	{ "fchmod", 3, 04755, 0, REFUSE, REFUSE },
	{ "fchmod", 3, 02000, 0, REFUSE, REFUSE },
	{ "fchmod", 3, 06777, 0, REFUSE, REFUSE },
	{ "fchmod", 3, 0xffffffff00000800, 0, REFUSE, REFUSE },
	{ "fchmod", 3, 0xffff0000 | 04755, 0, REFUSE, REFUSE },
	{ "fchmod", 3, 0x80000000000, 0, ALLOW, ALLOW }, /* the kernel drops that half */
	{ "fchmod", 04755, 01777, 04755, ALLOW, ALLOW },
	{ "fchmod", 3, 0755, 0, ALLOW, ALLOW },
	{ "fchmod", 3, 0100644, 0, ALLOW, ALLOW },
	{ "fchmodat", 3, 0, 04755, REFUSE, REFUSE },
	{ "fchmodat", 3, 0, 02775, REFUSE, REFUSE },
	{ "fchmodat", 3, 06000, 01755, ALLOW, ALLOW },
	{ "fchmodat2", 3, 0, 04755, REFUSE, REFUSE },
	{ "fchmodat2", 3, 0, 02000, REFUSE, REFUSE },
	{ "fchmodat2", 3, 06000, 01777, ALLOW, ALLOW },
	{ "openat", 0, 0, 0100, ALLOW, ALLOW },
#ifdef __x86_64__
	{ "open", 0, 0102, 04755, REFUSE, REFUSE },
	{ "open", 0, 0102, 02707, REFUSE, REFUSE },
	{ "open", 0, 020200002, 06000, REFUSE, REFUSE },
	{ "open", 0, 0102, 0644, ALLOW, ALLOW },
	{ "open", 0, 02, 06000, ALLOW, ALLOW }, /* makes nothing */
	{ "creat", 0, 04755, 0, REFUSE, REFUSE },
	{ "creat", 0, 0755, 0, ALLOW, ALLOW },
	{ "chmod", 0, 04755, 0, REFUSE, REFUSE },
	{ "chmod", 0, 02775, 0, REFUSE, REFUSE },
	{ "chmod", 0, 01777, 06000, ALLOW, ALLOW },
	{ "chmod", 06000, 0, 0, ALLOW, ALLOW },
	{ "mknod", 0, 0104755, 0, REFUSE, REFUSE },
	{ "mknod", 0, 0102644, 0, REFUSE, REFUSE },
	{ "mknod", 0, 020644, 0, REFUSE, REFUSE },
	{ "mknod", 0, 0100644, 06000, ALLOW, ALLOW },
#endif
	/* the box's own init, by whatever name */
	{ "prlimit64", 1, 7, 0, REFUSE, REFUSE },
	{ "prlimit64", 0x500000001, 7, 0, REFUSE, REFUSE },
	{ "prlimit64", 0, 1, 1, ALLOW, ALLOW },
	{ "prlimit64", 2, 7, 0, ALLOW, ALLOW },
	{ "sched_setparam", 1, 0, 0, REFUSE, REFUSE },
	{ "sched_setparam", 0, 1, 1, ALLOW, ALLOW },
	{ "sched_setscheduler", 1, 5, 0, REFUSE, REFUSE },
	{ "sched_setscheduler", 11, 5, 0, ALLOW, ALLOW },
	{ "sched_setattr", 1, 0, 0, REFUSE, REFUSE },
	{ "sched_setattr", 0, 0, 0, ALLOW, ALLOW },
	{ "sched_setaffinity", 1, 8, 0, REFUSE, REFUSE },
	{ "sched_setaffinity", 0, 1, 1, ALLOW, ALLOW },
	{ "setpriority", 0, 1, 19, REFUSE, REFUSE },
	{ "setpriority", 1, 1, 19, REFUSE, REFUSE },
	{ "setpriority", 2, 0, 19, REFUSE, REFUSE },
	{ "setpriority", 0x700000002, 1000, 19, REFUSE, REFUSE },
	{ "setpriority", 0, 0, 1, ALLOW, ALLOW },
	{ "setpriority", 1, 0, 1, ALLOW, ALLOW },
	{ "ioprio_set", 1, 1, 0, REFUSE, REFUSE },
	{ "ioprio_set", 2, 0x100000001, 0, REFUSE, REFUSE },
	{ "ioprio_set", 3, 1000, 0, REFUSE, REFUSE },
	{ "ioprio_set", 1, 0, 1, ALLOW, ALLOW },
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

static void test_lists(void)
{
	struct arena arena = { 0 };
	struct policy_word allow[] = { word("keyctl"), word("socket"), word("bpf"),
		word("io_uring_enter"), word("fchmod"), word("io_setup"), word("seccomp") };
	struct policy_word deny[] = { word("bpf"), word("ptrace"), word("io_uring_setup") };
	struct policy policy = { .sys_allow = allow,
		.sys_allow_count = COUNT(allow),
		.sys_deny = deny,
		.sys_deny_count = COUNT(deny) };
	struct filter filter = get(&policy, &arena);
	CHECK_TEXT(filter.name, "custom");
	CHECK(answer(&filter, "keyctl", 0, 0, 0) == ALLOW);
	CHECK(answer(&filter, "socket", 2, 1, 0) == ALLOW);
	CHECK(answer(&filter, "io_uring_enter", 0, 0, 0) == ALLOW);
	CHECK(answer(&filter, "fchmod", 3, 04755, 0) == ALLOW);
	CHECK(answer(&filter, "fchmodat", 3, 0, 04755) == REFUSE); /* not named */
	CHECK(answer(&filter, "io_setup", 0, 0, 0) == ALLOW);
	CHECK(answer(&filter, "socket", 40, 1, 0) == REFUSE); /* B16: no name lifts that */
	CHECK(answer(&filter, "seccomp", 1, 8, 0) == ABSENT);
	CHECK(answer(&filter, "bpf", 0, 0, 0) == REFUSE); /* deny wins */
	CHECK(answer(&filter, "ptrace", 0, 0, 0) == REFUSE);
	CHECK(answer(&filter, "io_uring_setup", 0, 0, 0) == REFUSE);
	CHECK(answer(&filter, "mount", 0, 0, 0) == REFUSE);
	CHECK(answer(&filter, "add_key", 0, 0, 0) == REFUSE);

	policy.profile = PROFILE_STRICT;
	struct filter strict = get(&policy, &arena);
	CHECK(answer(&strict, "keyctl", 0, 0, 0) == ALLOW);
	CHECK(answer(&strict, "listen", 0, 0, 0) == REFUSE);
	CHECK(answer(&strict, "socket", 2, 1, 0) == ALLOW);
	CHECK(answer(&strict, "socket", 40, 1, 0) == REFUSE);
	CHECK(answer(&strict, "seccomp", 1, 0, 0) == ALLOW);
	CHECK(strcmp(strict.sha256, filter.sha256) != 0);
	struct filter again = get(&policy, &arena);
	CHECK_TEXT(again.sha256, strict.sha256);
	arena_free(&arena);
}

/* Rows of what a name in `allow` must not lift: B06, B16, and the box's own init. */
static void test_held(void)
{
	static const struct {
		const char *name;
		uint64_t a, b, c;
	} held[] = {
		{ "ioctl", 0, 0x5412, 0 },
		{ "ioctl", 0, 0x10000541c, 0 },
		{ "socket", 40, 1, 0 },
		{ "socket", 2, 3, 0 },
		{ "socket", 16, 3, 12 },
		{ "socketpair", 30, 1, 0 },
		{ "prlimit64", 1, 0, 0 },
		{ "sched_setparam", 1, 0, 0 },
		{ "sched_setscheduler", 1, 0, 0 },
		{ "sched_setattr", 1, 0, 0 },
		{ "sched_setaffinity", 1, 0, 0 },
		{ "setpriority", 2, 0, 0 },
		{ "ioprio_set", 1, 1, 0 },
	};
	struct arena arena = { 0 };
	for (size_t i = 0; i < COUNT(held); i++) {
		struct policy_word one = word(held[i].name);
		struct policy policy = {
			.profile = i & 1, .nesting = i & 2, .sys_allow = &one, .sys_allow_count = 1
		};
		struct filter filter = get(&policy, &arena);
		CHECK(answer(&filter, held[i].name, held[i].a, held[i].b, held[i].c) == REFUSE);
		struct seccomp_data call = call_of(
			native_audit, filter_number(held[i].name), held[i].a, held[i].b, held[i].c);
		struct violation violation;
		filter_describe(&call, &arena, &violation);
		CHECK(violation.hint == NULL);
		CHECK_TEXT(violation.reason, "argument_not_allowed");
	}
	arena_free(&arena);
}

/* A40 */
static void test_nesting(void)
{
	struct arena arena = { 0 };
	struct policy policy = { .nesting = true };
	struct filter filter = get(&policy, &arena);
	static const char *const lifted[] = { "unshare", "clone", "setns", "chroot",
		"sethostname" };
	for (size_t i = 0; i < COUNT(lifted); i++)
		CHECK(answer(&filter, lifted[i], 0x7e020011, 0, 0) == ALLOW);
	CHECK(answer(&filter, "bpf", 0, 0, 0) == REFUSE);
	CHECK(answer(&filter, "clone3", 0, 0, 0) == REFUSE);
	CHECK(filter.handed == FILTER_CLONE3); /* what every process is, a box inside says itself */
	CHECK(answer(&filter, "kill", UINT64_MAX, 9, 0) == ALLOW);
	CHECK(answer(&filter, "socket", 40, 1, 0) == REFUSE);
	/* what its flags ask for lies in memory, so it takes both words */
	struct policy_word both[] = { word("clone3"), word("mount") };
	policy.sys_allow = both;
	policy.sys_allow_count = COUNT(both);
	filter = get(&policy, &arena);
	CHECK(answer(&filter, "clone3", 0, 0, 0) == ALLOW);
	CHECK(answer(&filter, "mount", 0, 0, 0) == ALLOW);
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
	/* names that would open behind its back what `nesting: deny` holds */
	{ "clone3", true, ERR_policy_invalid, "`clone3`", "`nesting: allow`" },
	{ "clone", true, ERR_policy_invalid, "`nesting: deny`", "`nesting: allow`" },
	{ "unshare", true, ERR_policy_invalid, "`nesting: deny`", "`nesting: allow`" },
	{ "setns", true, ERR_policy_invalid, "`nesting: deny`", "`nesting: allow`" },
	{ "setns", true, ERR_policy_invalid, "`nesting: deny`", "remove `setns`" },
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

/* openat's mode is its fourth argument, and counts only where a file is made. */
static void test_openat(void)
{
	static const struct {
		uint64_t flags, mode;
		uint32_t answer;
	} calls[] = {
		{ 0100, 04755, REFUSE }, { 0102, 02707, REFUSE },
		{ 020200002, 02000, REFUSE }, /* O_TMPFILE */
		{ 0xffffffff00000042, 0xffffffff000009ed, REFUSE },
		/* only the lower halves count */ { 0102, 01777, ALLOW }, { 0102, 0600, ALLOW },
		{ 02, 06000, ALLOW }, { 0, ~0ull, ALLOW }, /* whatever is in the register */
	};
	struct arena arena = { 0 };
	struct policy policy = { 0 };
	for (int strict = 0; strict < 2; strict++) {
		policy.profile = strict ? PROFILE_STRICT : PROFILE_DEFAULT;
		struct filter filter = get(&policy, &arena);
		for (size_t i = 0; i < COUNT(calls); i++) {
			struct seccomp_data call = call_of(
				native_audit, filter_number("openat"), 0, 0, calls[i].flags);
			call.args[3] = calls[i].mode;
			CHECK(filter_simulate(&filter, &call) == calls[i].answer);
		}
	}
	arena_free(&arena);
}

/* Does the program hand this call over to be done for its caller? */
static bool renames(const struct filter *filter, uint32_t arch, int64_t number)
{
	struct seccomp_data call = call_of(arch, number, 0, 0, 0);
	return filter_renames(filter, &call);
}

/*
 * Of an overlay's program: the same as the usual one, but for the renames, which come to the
 * listener and are no violation.
 */
static void check_variant(const struct policy *policy, struct arena *arena)
{
	struct policy plain = *policy;
	plain.fs.workspace = WORKSPACE_WRITE;
	struct filter usual = get(&plain, arena), filter = get(policy, arena);
	CHECK(usual.renames == 0);
	CHECK(strcmp(usual.sha256, filter.sha256) != 0);
	CHECK_TEXT(filter.name, usual.name);
	size_t handed = 0;
	for (int number = 0; number < FILTER_NUMBERS; number++) {
		struct seccomp_data call = call_of(native_audit, number, 0, 0, 0);
		CHECK(!renames(&usual, native_audit, number));
		if (renames(&filter, native_audit, number)) {
			handed++;
			CHECK(filter_simulate(&usual, &call) == ALLOW);
			CHECK(filter_simulate(&filter, &call) == REFUSE);
			CHECK(strncmp(filter_name(number), "rename", 6) == 0);
		} else {
			CHECK(filter_simulate(&usual, &call) == filter_simulate(&filter, &call));
		}
	}
	CHECK(handed == (filter_number("rename") >= 0 ? 3 : 2));
	/* another architecture's calls of these numbers are refused, as all of them */
	uint32_t other = native_audit == AUDIT_ARCH_X86_64 ? AUDIT_ARCH_I386 : AUDIT_ARCH_ARM;
	CHECK(!renames(&filter, other, filter_number("renameat2")));
	CHECK(!renames(&filter, native_audit, filter_number("renameat2") | 0x40000000));
	CHECK(!renames(&filter, native_audit, -1));
}

static void test_renames(void)
{
	struct arena arena = { 0 };
	for (int kind = 0; kind < 8; kind++) {
		struct policy_word allow = word("keyctl");
		struct policy policy = { .profile = kind & 1 ? PROFILE_STRICT : PROFILE_DEFAULT,
			.nesting = kind & 2,
			.sys_allow = &allow,
			.sys_allow_count = kind & 4 ? 1 : 0 };
		policy.fs.workspace = WORKSPACE_OVERLAY;
		check_variant(&policy, &arena);
		policy.fs.backend = BACKEND_OVERLAY;
		check_variant(&policy, &arena);
		/* a copy is a directory like any other */
		policy.fs.backend = BACKEND_COPY;
		CHECK(get(&policy, &arena).renames == 0);
	}
	arena_free(&arena);
}

/* What the policy refuses stays a violation, call by call, also when it is allowed as well. */
static void test_renames_denied(void)
{
	struct arena arena = { 0 };
	struct policy_word deny[] = { word("renameat2"), word("renameat"), word("rename") };
	struct policy_word allow[] = { word("renameat2"), word("renameat") };
	struct policy policy = {
		.sys_deny = deny, .sys_deny_count = 1, .sys_allow = allow, .sys_allow_count = 2
	};
	policy.fs.workspace = WORKSPACE_OVERLAY;
	struct filter filter = get(&policy, &arena);
	CHECK(!renames(&filter, native_audit, filter_number("renameat2")));
	CHECK(renames(&filter, native_audit, filter_number("renameat")));
	CHECK(answer(&filter, "renameat2", 0, 0, 0) == REFUSE);
	policy.sys_deny_count = 3;
	filter = get(&policy, &arena);
	CHECK(filter.renames == 0);
	CHECK(answer(&filter, "renameat2", 0, 0, 0) == REFUSE);
	CHECK(answer(&filter, "renameat", 0, 0, 0) == REFUSE);
	policy.sys_deny_count = 0;
	filter = get(&policy, &arena);
	CHECK(renames(&filter, native_audit, filter_number("renameat2")));
	arena_free(&arena);
}

int main(void)
{
	RUN(test_rows);
	RUN(test_openat);
	RUN(test_foreign);
	RUN(test_lists);
	RUN(test_held);
	RUN(test_nesting);
	RUN(test_bad_names);
	RUN(test_renames);
	RUN(test_renames_denied);
	return CHECK_STATUS();
}
