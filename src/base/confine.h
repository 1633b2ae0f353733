/*
 * confine: what every helper program takes from itself before it reads what others wrote. What one
 * may still open, call and use up differs, and is said where its confinement is put together.
 *
 * All return 0 or -errno, and are called while there is one thread.
 */
#ifndef AGENTBOX_BASE_CONFINE_H
#define AGENTBOX_BASE_CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/*
 * Started by root: act as `uid` and `gid`, without other groups. By anybody: keep no capability.
 * First, as what follows needs none.
 */
int confine_ids(uid_t uid, gid_t gid);

/* Keep the ids, but no capability: for what opens nothing any more, to which an id means nothing.
 */
int confine_no_rights(void);

/*
 * End when the parent ends, gain no rights by executing, be no target of ptrace(2). After the ids,
 * whose change takes that back. Who needs to know whether the parent was dead before must look.
 */
int confine_alone(void);

/* At most `most` of a resource (setrlimit(2)); less, where the hard limit is less. */
int confine_limit(int resource, rlim_t most);

/*
 * Files: from here on only reading, and only at and below `paths`; those that are not there are
 * left out. No listening for TCP, and no dialling unless `dials`; no abstract socket of others', no
 * signal to others. -EOPNOTSUPP: this kernel has no Landlock. After confine_alone().
 */
int confine_reading(const char *const *paths, size_t count, bool dials);

/*
 * A filter of arguments: of the calls named here only those pass whose argument number `at`, its
 * low half, is `value` under `mask`; others get `error`. Rows of one call stand together, and one
 * of them is enough. Calls that are not named pass. Before confine_calls(), which holds as well.
 */
struct confine_argument {
	int call;
	unsigned at;
	uint32_t mask, value;
	int error;
};
#define CONFINE_ARGUMENTS_MAX 16
int confine_arguments(const struct confine_argument *rows, size_t count);

/* A filter of which all system calls but these get EPERM, and those of another architecture end the
 * process. After confine_alone(). */
#define CONFINE_CALLS_MAX 96
int confine_calls(const int *calls, size_t count);

#endif
