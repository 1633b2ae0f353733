/*
 * filter: from a policy to its seccomp program. Owns the meaning of `syscalls` and `nesting`.
 *
 * Shipped profiles are static; anything else is compiled on the spot, which takes a few
 * microseconds. Nothing is kept on disk, where someone else might change it.
 */
#define _GNU_SOURCE
#include "plan/filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sha2.h>
#include <string.h>

#include "plan/filter_compile.h"
#include "plan/filter_shipped.h"
#include "policy/policy.h"

/* What the start of a command needs once the filter is on: to report, to exec, to end. */
static const char *const needed[] = {
	"close",
	"execve",
	"exit",
	"exit_group",
	"rt_sigprocmask",
	"rt_sigreturn",
	"sendmsg",
	"write",
};

static bool is_needed(const char *name)
{
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		if (strcmp(needed[i], name) == 0)
			return true;
	return false;
}

/* An error about a word of one of the lists. */
static int bad_word(const struct policy_word *word, struct err *err)
{
	return err_at(err, word->at.file, word->at.line, word->at.column);
}

static int unknown_name(const struct policy_word *word, const char *list, struct err *err)
{
	const char *arch = filter_arch_name(ARCH_NATIVE);
	const struct filter_call *near = filter_call_nearest(ARCH_NATIVE, word->value);
	err_set(err, ERR_policy_invalid, 0,
		"syscalls.%s: `%.64s` is no system call that is known on %s", list, word->value,
		arch);
	if (near)
		err_hint_set(err, "did you mean `%s`?", near->name);
	else
		err_hint_set(
			err, "`man 2 syscalls` lists the names; leave out prefixes such as sys_");
	return bad_word(word, err);
}

/* Namespaces and mounts have a key of their own, and no name opens them behind its back. */
static int not_nested(const struct policy_word *word, struct err *err)
{
	err_set(err, ERR_policy_invalid, 0,
		"syscalls.allow: `%s` can make namespaces or mounts, which `nesting: deny` refuses",
		word->value);
	err_hint_set(err, "write `nesting: allow`, or remove `%s` from the list", word->value);
	return bad_word(word, err);
}

static bool needs_nesting(const struct filter_call *call)
{
	return call->grant == GRANT_NESTING || call->grant == GRANT_NESTED;
}

/* Lay one list over the actions. */
static int apply_list(
	const struct policy *policy, bool allow, uint8_t actions[FILTER_NUMBERS], struct err *err)
{
	const char *list = allow ? "allow" : "deny";
	const struct policy_word *words = allow ? policy->sys_allow : policy->sys_deny;
	size_t count = allow ? policy->sys_allow_count : policy->sys_deny_count;
	for (size_t i = 0; i < count; i++) {
		const struct policy_word *word = &words[i];
		const struct filter_call *call = filter_call_named(word->value);
		if (!call)
			return unknown_name(word, list, err);
		int number = call->number[ARCH_NATIVE];
		if (number < 0 && !allow)
			continue; /* what does not exist is denied already */
		if (number < 0) {
			err_set(err, ERR_unsupported, 0,
				"syscalls.allow: `%s` does not exist on %s", call->name,
				filter_arch_name(ARCH_NATIVE));
			return bad_word(word, err);
		}
		if (!allow && is_needed(call->name)) {
			err_set(err, ERR_policy_invalid, 0,
				"syscalls.deny: without `%s` no command can be started",
				call->name);
			err_hint_set(err, "remove `%s` from the list", call->name);
			return bad_word(word, err);
		}
		if (allow && !policy->nesting && needs_nesting(call))
			return not_nested(word, err);
		uint8_t allowed = call->grant == GRANT_HELD ? call->normal : ACT_ALLOW;
		actions[number] = allow ? allowed : ACT_REFUSE;
	}
	return 0;
}

static int compile_custom(const struct policy *policy, bool renames, struct arena *arena,
	struct filter *ret_filter, struct err *err)
{
	uint8_t actions[FILTER_NUMBERS];
	filter_actions(ARCH_NATIVE, policy->profile == PROFILE_STRICT, policy->nesting, actions);
	/* deny comes last, so it wins */
	if (apply_list(policy, true, actions, err) < 0 ||
		apply_list(policy, false, actions, err) < 0)
		return -1;
	unsigned renamed = renames ? filter_rename_actions(ARCH_NATIVE, actions) : 0;

	struct sock_filter scratch[FILTER_PROGRAM_MAX];
	int count = filter_compile(ARCH_NATIVE, actions, scratch);
	if (count < 0)
		return err_set(err, ERR_internal, -count, "the system call filter is too long");
	size_t size = (size_t)count * sizeof *scratch;
	struct sock_filter *program = arena_alloc(arena, size);
	memcpy(program, scratch, size);
	char *digest = arena_alloc(arena, SHA256_DIGEST_STRING_LENGTH);
	SHA256Data((const uint8_t *)program, size, digest);
	*ret_filter = (struct filter){ .program = program,
		.count = (size_t)count,
		.name = "custom",
		.sha256 = digest,
		.renames = renamed,
		.handed = filter_handed(ARCH_NATIVE, actions) };
	return 0;
}

/*
 * overlayfs answers EXDEV to the rename of a directory that comes from below, and few programs know
 * what to do then. Where a run falls back to a copy, renames are only slower than they had to be.
 */
static bool wants_renames(const struct policy *policy)
{
	return policy->fs.workspace == WORKSPACE_OVERLAY && policy->fs.backend != BACKEND_COPY;
}

int filter_get(const struct policy *policy, struct arena *arena, struct filter *ret_filter,
	struct err *err)
{
	bool renames = wants_renames(policy), strict = policy->profile == PROFILE_STRICT;
	if (policy->nesting || policy->sys_allow_count || policy->sys_deny_count)
		return compile_custom(policy, renames, arena, ret_filter, err);
	if (renames)
		*ret_filter = strict ? filter_strict_renames : filter_default_renames;
	else
		*ret_filter = strict ? filter_strict : filter_default;
	return 0;
}

bool filter_renames(const struct filter *filter, const struct seccomp_data *call)
{
	if (!filter->renames || filter_must_kill(call))
		return false;
	const struct filter_call *row = filter_call_numbered(ARCH_NATIVE, (uint32_t)call->nr);
	return row && (filter->renames & filter_rename_bit(row));
}

bool filter_hides_flags(const struct filter *filter, const struct seccomp_data *call)
{
	return (filter->handed & FILTER_CLONE3) && !filter_must_kill(call) &&
	       call->nr == filter_number("clone3");
}

bool filter_ends_all(const struct filter *filter, const struct seccomp_data *call)
{
	return (filter->handed & FILTER_KILL_ALL) && !filter_must_kill(call) &&
	       call->nr == filter_number("kill");
}

bool filter_profile_allows(bool strict, const struct seccomp_data *call)
{
	const struct filter *shipped = strict ? &filter_strict : &filter_default;
	return filter_simulate(shipped, call) == SECCOMP_RET_ALLOW;
}
