/*
 * landlock: the second wall, derived from the same operations as the first. What the mounts show
 * read-only may be read and executed, what they show writable may be written; a mistake in one is
 * still held by the other. Rights add up along a path, so a read-only grant below the box's own
 * /tmp or home has those directories' rights, too: there only the mount holds. Rights that the
 * kernel's ABI lacks are held by mounts and namespaces.
 */
#define _GNU_SOURCE
#include "plan/build.h"
#include "base/sys.h"

#include <string.h>
#include <sys/stat.h>

#define READ_FILE  (SYS_LANDLOCK_FS_READ_FILE)
#define READ       (SYS_LANDLOCK_FS_READ_FILE | SYS_LANDLOCK_FS_READ_DIR)
#define EXECUTE    (SYS_LANDLOCK_FS_EXECUTE)
#define FILE_WRITE (SYS_LANDLOCK_FS_WRITE_FILE | SYS_LANDLOCK_FS_TRUNCATE)
#define TREE_WRITE                                                                                 \
	(FILE_WRITE | SYS_LANDLOCK_FS_REMOVE_DIR | SYS_LANDLOCK_FS_REMOVE_FILE |                   \
		SYS_LANDLOCK_FS_MAKE_DIR | SYS_LANDLOCK_FS_MAKE_REG | SYS_LANDLOCK_FS_MAKE_SOCK |  \
		SYS_LANDLOCK_FS_MAKE_FIFO | SYS_LANDLOCK_FS_MAKE_SYM | SYS_LANDLOCK_FS_REFER)
/*
 * What an open asks besides: with "truncate" handled and not granted, each open of a file is looked
 * up to the root, a third dearer. System trees belong to others and are mounted read-only: there
 * the right is granted and the mount alone says no. Granted trees are the caller's own: not there.
 */
#define READ_SYSTEM (READ | EXECUTE | SYS_LANDLOCK_FS_TRUNCATE)
#define DEVICES     FILE_WRITE
/* Rights that a rule on a file, not a directory, may hold. */
#define FILE_RIGHTS (READ_FILE | EXECUTE | FILE_WRITE)

/* All rights that an ABI handles; each ABI adds to the one before (landlock(7)). */
static uint64_t handled(int abi)
{
	uint64_t all = (SYS_LANDLOCK_FS_MAKE_SYM << 1) - 1; /* ABI 1: bits 0 to 12 */
	if (abi >= 2)
		all |= SYS_LANDLOCK_FS_REFER;
	if (abi >= 3)
		all |= SYS_LANDLOCK_FS_TRUNCATE;
	/*
	 * ABI 5's "ioctl_dev" is left out: the only devices in the box are its own six nodes and
	 * terminals, where it would have to be granted anyway.
	 */
	return all;
}

static void rule(
	struct builder *builder, const char *target, uint64_t access, bool file, bool optional)
{
	struct plan *plan = builder->plan;
	access &= plan->landlock_fs;
	if (file)
		access &= FILE_RIGHTS;
	if (!access)
		return;
	struct plan_rule *new_rule =
		arena_push(&plan->arena, &builder->rules, &plan->rule_count, sizeof *new_rule);
	new_rule->path = arena_join(&plan->arena, "/", target, "");
	new_rule->access = access;
	new_rule->optional = optional;
}

/* What an operation shows may be used as it is mounted. */
static void rule_of_op(struct builder *builder, const struct plan_op *op)
{
	bool file = op->mode && !S_ISDIR(op->mode);
	bool optional = op->flags & OPF_OPTIONAL;
	switch (op->kind) {
	case OP_PROC:
		/*
		 * Nothing in /proc is written: not even one's own settings there, such as the score
		 * by which the kernel chooses whom to kill. A nested user namespace needs its id
		 * maps.
		 */
		rule(builder, op->target, READ_SYSTEM | (builder->policy->nesting ? FILE_WRITE : 0),
			false, false);
		return;
	case OP_BIND:
		if (op->flags & OPF_DEVICE)
			return; /* beneath /dev, below */
		if (strncmp(op->target, LAYERS_DIR, sizeof LAYERS_DIR - 1) == 0)
			return; /* covered */
		if (op->flags & OPF_GRANT)
			rule(builder, op->target,
				READ | EXECUTE | (op->flags & OPF_READONLY ? 0 : TREE_WRITE), file,
				optional);
		else if (!strchr(op->target, '/') && strcmp(op->target, "dev") != 0)
			rule(builder, op->target, READ_SYSTEM, file, optional);
		return;
	case OP_LAYER:
		rule(builder, op->target, READ | EXECUTE | TREE_WRITE, false, false);
		return;
	case OP_INSIDE:
		/* Pins and protections lie beneath a grant, whose rule stands already. */
		if (!(op->flags & OPF_UNDER_GRANT) &&
			strncmp(op->target, LAYERS_DIR, sizeof LAYERS_DIR - 1) != 0)
			rule(builder, op->target, READ | EXECUTE | TREE_WRITE, false, false);
		return;
	case OP_DIR:
	case OP_LINK:
	case OP_FILE:
	case OP_MASK:
	case OP_DEVPTS:
	case OP_CGROUP: /* beneath /sys, below */
	case OP_SEAL:
		return;
	}
}

/*
 * Each command of a kept box has a domain of its own, and the next one is to stop what a former one
 * left, and to talk to it. Signals reach nobody outside of the box as it is; nor do abstract
 * sockets in a network namespace of its own.
 */
static uint64_t scopes(const struct plan *plan)
{
	if (!plan->keep)
		return SYS_LANDLOCK_SCOPE_ABSTRACT_UNIX | SYS_LANDLOCK_SCOPE_SIGNAL;
	return plan->loopback_up ? 0 : SYS_LANDLOCK_SCOPE_ABSTRACT_UNIX;
}

int build_landlock(struct builder *builder)
{
	struct plan *plan = builder->plan;
	const struct host *host = builder->host;
	/* Without "refer" (ABI 2) no file can be moved between directories: ordinary work breaks.
	 */
	enum { NEEDED = 2 };
	plan->landlock_abi = host->landlock_abi;
	if (host->landlock_abi < NEEDED) {
		plan->landlock_abi = 0;
		if (policy_best_effort(builder->policy, "landlock")) {
			build_not_enforced(builder, "landlock");
			return 0;
		}
		return build_refuse(builder, ERR_landlock_insufficient, NULL,
			"Landlock ABI %d or later is needed (Linux 5.19), this kernel has %d",
			NEEDED, host->landlock_abi);
	}
	plan->landlock_fs = handled(host->landlock_abi);
	if (host->landlock_abi >= 6)
		plan->landlock_scoped = scopes(plan);
	rule(builder, "", SYS_LANDLOCK_FS_READ_DIR, false, false);
	rule(builder, "etc", READ_SYSTEM, false, true); /* a root directory may lack it */
	rule(builder, "dev", READ | DEVICES, false, false);
	rule(builder, "run", READ_SYSTEM, false, false);
	if (plan->cgroup.kind != CGROUP_NONE)
		rule(builder, "sys", READ_SYSTEM & ~EXECUTE, false, false);
	for (size_t i = 0; i < plan->op_count; i++)
		rule_of_op(builder, &builder->ops[i]);
	return 0;
}
