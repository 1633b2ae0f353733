/*
 * filter_table: the system calls that agentbox knows, by name and by number, and what the shipped
 * profiles do with them. Pure data: no policy, no program.
 */
#ifndef AGENTBOX_PLAN_FILTER_TABLE_H
#define AGENTBOX_PLAN_FILTER_TABLE_H

#include <linux/audit.h>
#include <stddef.h>
#include <stdint.h>

enum filter_arch {
	ARCH_X86_64,
	ARCH_AARCH64,
	ARCH_COUNT,
#if defined(__x86_64__)
	ARCH_NATIVE = ARCH_X86_64,
#elif defined(__aarch64__)
	ARCH_NATIVE = ARCH_AARCH64,
#else
#error "agentbox has no table of system calls for this architecture"
#endif
};

enum filter_action {
	ACT_ABSENT, /* ENOSYS, nobody is told */
	ACT_ALLOW,
	ACT_REFUSE, /* the listener is told */
	ACT_RENAME, /* the listener is told, and it is no violation: done on the caller's behalf */
	ACT_TOLD,   /* ENOSYS, but the listener is told, for what counts lies in memory */
	ACT_END,    /* the listener is told, and ends all that runs in the box */
	ACT_CLONE,  /* from here on: depends on the arguments */
	ACT_UNSHARE,
	ACT_SOCKET,
	ACT_SOCKET_UNIX,
	ACT_SOCKETPAIR,
	ACT_IOCTL,
	ACT_MKNOD,
	ACT_MKNODAT,
	ACT_CHMOD,
	ACT_FCHMODAT,
	ACT_OPEN,
	ACT_OPENAT,
	ACT_PERSONALITY,
	ACT_PROCESS,
	ACT_SETPRIORITY,
	ACT_IOPRIO_SET,
	ACT_SECCOMP,
	ACT_KILL,
	ACT_COUNT,
};

/* What `syscalls.allow` does with the call's name; filter_table.def says more. */
enum filter_grant { GRANT_LIST, GRANT_HELD, GRANT_NESTING, GRANT_NESTED, GRANT_NOTHING };

struct filter_call {
	const char *name;
	int16_t number[ARCH_COUNT]; /* -1: does not exist there */
	uint8_t normal, strict;     /* enum filter_action */
	uint8_t grant;              /* enum filter_grant */
};

#define FILTER_NUMBERS 512 /* above every number in the table */

/* First bit of the x32 calls, which share x86_64's AUDIT_ARCH value. */
#define FILTER_X32_BIT 0x40000000u

/* The rows of the table; NULL past the last one. */
const struct filter_call *filter_call(size_t index);

/* A row by name, or NULL. It may lack a number on the architecture that is meant. */
const struct filter_call *filter_call_named(const char *name);

/* A row by number, or NULL. */
const struct filter_call *filter_call_numbered(enum filter_arch arch, uint32_t number);

/* The row whose name is closest to `name` and exists on `arch`; NULL when none is near. */
const struct filter_call *filter_call_nearest(enum filter_arch arch, const char *name);

/* Which of the renames (enum filter_renames) a row is; 0: none. */
unsigned filter_rename_bit(const struct filter_call *call);

/* AUDIT_ARCH_* value, and the name ("x86_64"). */
uint32_t filter_arch_audit(enum filter_arch arch);
const char *filter_arch_name(enum filter_arch arch);

#endif
