/*
 * filter: the seccomp program of a policy, and what can be said about it.
 *
 * Shipped profiles are compiled when agentbox is built; a policy with `syscalls.allow`, `.deny` or
 * `nesting: allow` is compiled at the start of the run, in a few microseconds.
 */
#ifndef AGENTBOX_PLAN_FILTER_H
#define AGENTBOX_PLAN_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/plan.h"

struct seccomp_data;
struct violation;

/*
 * The ready program for a policy; with its renames handed over where the workspace is shown by
 * overlayfs. Nothing is kept between runs: compiling costs less than opening a
 * cached file would, and a file could be changed. Memory from `arena` or static.
 * Errors: policy_invalid (a name that is unknown, denied though the start needs it, or allowed
 * though `nesting: deny` holds what it does) and unsupported (allowed, but not there on this
 * architecture), with the word's place; internal.
 */
int filter_get(const struct policy *policy, struct arena *arena, struct filter *ret_filter,
	struct err *err);

/* What a program answers to one call: a SECCOMP_RET_* value with its data. A BPF interpreter. */
uint32_t filter_simulate(const struct filter *filter, const struct seccomp_data *call);

/* Number of a system call's name on this architecture, -1 when unknown; and the name, or NULL. */
int filter_number(const char *name);
const char *filter_name(int number);

/*
 * Is it a rename that the program hands over to be done on the caller's behalf? Then it is no
 * violation. False for one that the policy refuses.
 */
bool filter_renames(const struct filter *filter, const struct seccomp_data *call);

/*
 * Is it a call whose flags lie in the caller's memory, so that only who reads them can tell whether
 * it is to be recorded? The answer is ENOSYS in any case.
 */
bool filter_hides_flags(const struct filter *filter, const struct seccomp_data *call);

/* Is it SIGKILL to every process, which in a box is the end of the box? */
bool filter_ends_all(const struct filter *filter, const struct seccomp_data *call);

/* Does the profile `default`, or `strict`, allow this call with these arguments? */
bool filter_profile_allows(bool strict, const struct seccomp_data *call);

enum filter_answer { FILTER_ALLOWED, FILTER_DENIED, FILTER_DEPENDS, FILTER_UNKNOWN };

/*
 * What the program does with a system call by name: allowed whatever its arguments, denied whatever
 * they are, or depending on them. *ret_words: a sentence for people (static or arena).
 */
enum filter_answer filter_explain(const struct filter *filter, const struct policy *policy,
	const char *name, struct arena *arena, const char **ret_words);

/*
 * Describe a refused call for the result: layer "syscall", operation (the call's name, or
 * "arch:0x40000003/nr:359" for a foreign one), target ("family 40 (AF_VSOCK)", "TIOCSTI", or NULL),
 * rule ("syscalls", "syscalls.deny", "nesting"), reason, hint (YAML to paste, or NULL where no key
 * would grant this very call, or the policy's own `deny` is what refused it). Strings are static or
 * from arena.
 */
void filter_describe(const struct seccomp_data *call, struct arena *arena, struct violation *ret);

/*
 * The same for a call with hidden flags, once they are known: CLONE_* of clone3(2). False when
 * there is nothing to record.
 */
bool filter_describe_flags(const struct seccomp_data *call, uint64_t flags, struct arena *arena,
	struct violation *ret);

/* Is it a call that must end the process (foreign architecture, x32)? */
bool filter_must_kill(const struct seccomp_data *call);

/* The errno that the listener answers with: EPERM for all that is refused by name, else ENOSYS. */
int filter_errno(const struct seccomp_data *call);

#endif
