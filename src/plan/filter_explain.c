/*
 * filter_explain: what a program does with one call, in words. The answer is read from the program
 * itself; the policy only says which line made it so.
 */
#define _GNU_SOURCE
#include <string.h>

#include "plan/filter.h"
#include "plan/filter_sim.h"
#include "plan/filter_table.h"
#include "policy/policy.h"

/* What the tests of arguments let pass. */
static const char *const conditions[ACT_COUNT] = {
	[ACT_CLONE] = "without CLONE_NEW* flags (no new namespaces)",
	[ACT_UNSHARE] = "without CLONE_NEW* flags (no new namespaces)",
	[ACT_SOCKET] =
		"for AF_UNIX, for AF_INET and AF_INET6 with SOCK_STREAM or SOCK_DGRAM, and for "
		"AF_NETLINK with NETLINK_ROUTE",
	[ACT_SOCKET_UNIX] = "for AF_UNIX",
	[ACT_SOCKETPAIR] = "for AF_UNIX",
	[ACT_IOCTL] = "for every request but TIOCSTI, TIOCLINUX, TIOCCONS and TIOCSETD",
	[ACT_MKNOD] = "for everything but device nodes and modes with set-id bits (06000)",
	[ACT_MKNODAT] = "for everything but device nodes and modes with set-id bits (06000)",
	[ACT_CHMOD] = "for modes without set-id bits (06000)",
	[ACT_FCHMODAT] = "for modes without set-id bits (06000)",
	[ACT_OPEN] = "but not to make a file whose mode has set-id bits (06000)",
	[ACT_OPENAT] = "but not to make a file whose mode has set-id bits (06000)",
	[ACT_PERSONALITY] = "for PER_LINUX and PER_LINUX32, with UNAME26 and ADDR_NO_RANDOMIZE",
	[ACT_PROCESS] = "for every process but 1, the box's init",
	[ACT_SETPRIORITY] = "for processes and groups, but 1, the box's init",
	[ACT_IOPRIO_SET] = "for processes and groups, but 1, the box's init",
	[ACT_SECCOMP] = "without SECCOMP_FILTER_FLAG_NEW_LISTENER",
};

static const struct policy_word *find_word(
	const struct policy_word *words, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(words[i].value, name) == 0)
			return &words[i];
	return NULL;
}

/* " (policy.yaml:7)", or "" without a place. */
static const char *place(const struct origin *at, struct arena *arena)
{
	if (!origin_set(at))
		return "";
	return at->line ? arena_printf(arena, " (%s:%d)", at->file, at->line)
			: arena_printf(arena, " (%s)", at->file);
}

/* What of the policy decided, e.g. "by syscalls.deny (policy.yaml:7)". */
static const char *decided_by(
	const struct filter_call *row, const struct policy *policy, struct arena *arena)
{
	const struct policy_word *word =
		find_word(policy->sys_deny, policy->sys_deny_count, row->name);
	if (word)
		return arena_printf(arena, "by syscalls.deny%s", place(&word->at, arena));
	word = find_word(policy->sys_allow, policy->sys_allow_count, row->name);
	if (word)
		return arena_printf(arena, "by syscalls.allow%s", place(&word->at, arena));
	if (policy->nesting && row->grant == GRANT_NESTING)
		return arena_printf(
			arena, "by nesting: allow%s", place(&policy->nesting_at, arena));
	return arena_printf(arena, "by the profile `%s`%s",
		policy->profile == PROFILE_STRICT ? "strict" : "default",
		place(&policy->profile_at, arena));
}

/* The action whose test of arguments is in force. */
static uint8_t tested_as(const struct filter_call *row, const struct policy *policy)
{
	if (policy->profile != PROFILE_STRICT ||
		find_word(policy->sys_allow, policy->sys_allow_count, row->name))
		return row->normal;
	return row->strict;
}

/* How to get it, as the end of a sentence; "" when the policy itself refuses it. */
static const char *how_to_get(
	const struct filter_call *row, const struct policy *policy, struct arena *arena)
{
	if (find_word(policy->sys_deny, policy->sys_deny_count, row->name))
		return "";
	if (row->grant == GRANT_NESTING)
		return "; `nesting: allow` allows it";
	if (row->grant == GRANT_NESTED)
		return arena_printf(arena,
			"; `nesting: allow` with `syscalls: {allow: [%s]}` allows it", row->name);
	if (row->grant == GRANT_LIST)
		return arena_printf(arena, "; `syscalls: {allow: [%s]}` allows it", row->name);
	if (row->grant == GRANT_HELD && tested_as(row, policy) != row->normal)
		return arena_printf(arena,
			"; `syscalls: {allow: [%s]}` allows it as the profile `default` does",
			row->name);
	if (row->grant == GRANT_HELD)
		return "; no key allows more";
	return "; the kernel refuses it to a box in any case";
}

static enum filter_answer explain_unknown(const struct filter_call *row, const char *name,
	struct arena *arena, const char **ret_words)
{
	const char *arch = filter_arch_name(ARCH_NATIVE);
	const struct filter_call *near = row ? NULL : filter_call_nearest(ARCH_NATIVE, name);
	if (row)
		*ret_words = arena_printf(arena, "%s does not exist on %s", name, arch);
	else
		*ret_words = arena_printf(arena,
			"%s is no system call that agentbox knows on %s%s%s%s; "
			"unknown calls answer ENOSYS",
			name, arch, near ? " (did you mean `" : "", near ? near->name : "",
			near ? "`?)" : "");
	return FILTER_UNKNOWN;
}

enum filter_answer filter_explain(const struct filter *filter, const struct policy *policy,
	const char *name, struct arena *arena, const char **ret_words)
{
	const struct filter_call *row = filter_call_named(name);
	if (!row || row->number[ARCH_NATIVE] < 0)
		return explain_unknown(row, name, arena, ret_words);

	unsigned set = filter_outcomes(filter, ARCH_NATIVE, (uint32_t)row->number[ARCH_NATIVE]);
	const char *by = decided_by(row, policy, arena);
	if (filter->renames & filter_rename_bit(row)) {
		*ret_words = arena_printf(arena,
			"%s is allowed %s; as the workspace is an overlay, a process of agentbox's "
			"in the box does it for the caller, so that directories can be renamed",
			name, by);
		return FILTER_ALLOWED;
	}
	if ((filter->handed & FILTER_KILL_ALL) && row->normal == ACT_KILL) {
		*ret_words = arena_printf(arena,
			"%s is allowed %s; SIGKILL to every process (-1) ends the command as well, "
			"and so the run; `syscalls: {allow: [%s]}` spares the caller, as outside",
			name, by, name);
		return FILTER_ALLOWED;
	}
	if ((filter->handed & FILTER_CLONE3) && row->normal == ACT_TOLD) {
		*ret_words = arena_printf(arena,
			"%s answers ENOSYS, so that programs fall back, %s; it is recorded when it "
			"asks for a namespace%s",
			name, by, how_to_get(row, policy, arena));
		return FILTER_DENIED;
	}
	if (set == OUTCOME_ALLOW) {
		*ret_words = arena_printf(arena, "%s is allowed %s", name, by);
		return FILTER_ALLOWED;
	}
	const char *get = how_to_get(row, policy, arena);
	if (set & OUTCOME_ALLOW) {
		const char *condition = conditions[tested_as(row, policy)];
		*ret_words = arena_printf(arena, "%s is allowed %s, %s; otherwise it %s%s", name,
			condition ? condition : "for some arguments", by,
			set & OUTCOME_ABSENT ? "answers ENOSYS" : "is refused (EPERM) and recorded",
			get);
		return FILTER_DEPENDS;
	}
	if (set == OUTCOME_ABSENT)
		*ret_words = arena_printf(arena,
			"%s answers ENOSYS, so that programs fall back, %s%s", name, by, get);
	else
		*ret_words = arena_printf(arena, "%s is refused (%s) and recorded %s%s", name,
			row->normal == ACT_ABSENT || row->normal == ACT_TOLD ? "ENOSYS" : "EPERM",
			by, get);
	return FILTER_DENIED;
}
