/*
 * explain: plan and policy in words. Says what is granted, by which line of the policy, and what
 * on this host enforces it. Reads the plan that the box would carry out, so that it cannot differ.
 */
#define _GNU_SOURCE
#include "plan/explain.h"
#include "base/sys.h"
#include "plan/explain_words.h"
#include "plan/plan.h"
#include "policy/policy.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

const char *explain_origin(const struct origin *at, struct arena *arena)
{
	if (!origin_set(at))
		return "default";
	if (!at->line)
		return at->file;
	return arena_printf(arena, "%s:%d", at->file, at->line);
}

/* How a person sees an operation; "" for what is only a step on the way. */
static const char *op_class(const struct plan_op *op, bool sealed)
{
	switch (op->kind) {
	case OP_BIND:
		if (op->flags & OPF_DEVICE)
			return "device";
		return sealed || op->flags & OPF_READONLY ? "read-only" : "writable";
	case OP_LAYER:
		return "private copy";
	case OP_INSIDE:
		if (op->flags & OPF_READONLY)
			return "protected";
		return op->flags & OPF_UNDER_GRANT ? "in place" : "private";
	case OP_MASK:
		return "hidden";
	case OP_FILE:
		return "made";
	case OP_PROC:
	case OP_DEVPTS:
	case OP_CGROUP:
		return "its own";
	case OP_DIR:
	case OP_LINK:
	case OP_SEAL:
		break;
	}
	return "";
}

/* A made file that only serves as the place for a later operation is none to tell of. */
static bool is_place(const struct plan *plan, size_t index)
{
	const struct plan_op *op = &plan->ops[index];
	if (op->kind != OP_FILE)
		return false;
	for (size_t i = index + 1; i < plan->op_count; i++)
		if (plan->ops[i].kind != OP_FILE &&
			strcmp(plan->ops[i].target ? plan->ops[i].target : "", op->target) == 0)
			return true;
	return false;
}

/*
 * Operations of one class and one reason share a list, in the place of the first. Those before the
 * seal are read-only by it.
 */
static void put_ops(struct words *words, const struct plan *plan)
{
	size_t seal = 0;
	for (size_t i = 0; i < plan->op_count; i++)
		if (plan->ops[i].kind == OP_SEAL)
			seal = i;
	bool *done = ARENA_ARRAY(&words->arena, plan->op_count + 1, bool);
	for (size_t i = 0; i < plan->op_count; i++)
		done[i] = is_place(plan, i);
	for (size_t i = 0; i < plan->op_count; i++) {
		const struct plan_op *first = &plan->ops[i];
		const char *class = op_class(first, i < seal);
		if (done[i] || !*class)
			continue;
		words_list_begin(words, class);
		for (size_t k = i; k < plan->op_count; k++) {
			const struct plan_op *op = &plan->ops[k];
			if (done[k] || strcmp(op_class(op, k < seal), class) != 0 ||
				strcmp(explain_why(op), explain_why(first)) != 0)
				continue;
			done[k] = true;
			words_list_add(words, arena_printf(&words->arena, "/%s", op->target));
		}
		words_list_end(words, explain_why(first));
	}
}

static void put_files(struct words *words, const struct plan *plan)
{
	words_title(words, "Files: what is not listed is not there");
	put_ops(words, plan);
	words_line(words, "  all that is private together: at most %s",
		words_size(words, plan->root_size));
	words_line(words,
		"  held by: a mount namespace in which the host's root is gone, read-only mounts");
	if (plan->landlock_abi)
		words_line(words, "           and Landlock (ABI %d, %zu rules)", plan->landlock_abi,
			plan->rule_count);
	else
		words_line(words, "           (no Landlock: this host has none)");
}

static void put_gateway(struct words *words)
{
	static const char *const lines[] = {
		"held by: a network namespace without a way out; a gateway process outside of",
		"         it, which looks up the names and makes the connections that are listed,",
		"         and holds the name that a connection says it is for (TLS, HTTP) against",
		"         the one that was dialled; without that process there is no network;",
		"         seccomp refuses other",
	};
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		words_line(words, "  %s", lines[i]);
}

static void put_network(struct words *words, const struct plan *plan)
{
	words_policy_network(words, plan->policy);
	if (plan->reach.rule_count)
		put_gateway(words);
	else if (plan->reach.publish_count)
		words_line(words, "  held by: a network namespace without a way out; a gateway "
				  "process outside of "
				  "it,\n           which brings in the host's clients; seccomp "
				  "refuses other");
	else if (plan->namespaces & CLONE_NEWNET)
		words_line(words,
			"  held by: a network namespace without a way out; seccomp refuses other");
	else
		words_line(words, "  held by: nothing but seccomp, which refuses other");
	words_line(
		words, "           families of sockets than UNIX, INET, INET6 and NETLINK route");
	if (plan->landlock_scoped & SYS_LANDLOCK_SCOPE_ABSTRACT_UNIX)
		words_line(words, "           Landlock keeps the host's abstract sockets shut");
}

static void put_processes(struct words *words, const struct plan *plan)
{
	words_title(words, "Processes");
	words_list_begin(words, "namespaces");
	uint64_t bit;
	const char *name;
	for (size_t i = 0; (name = explain_namespace(i, &bit)); i++)
		if (plan->namespaces & bit)
			words_list_add(words, name);
	words_list_end(words, NULL);
	words_line(words, "  ids         uid %u gid %u inside; uid %u gid %u on the host",
		(unsigned)plan->uid, (unsigned)plan->gid, (unsigned)plan->outer_uid,
		(unsigned)plan->outer_gid);
	words_line(words, "  rights      no capability, none regained (no_new_privs)");
	words_line(words, "  ended       with the command, and when agentbox ends");
}

/* What holds each of the limits that a control group can hold, on this host. */
static struct words_holders limit_holders(struct words *words, const struct plan *plan)
{
	static const char missing[] = "NOT HELD on this host";
	const struct plan_cgroup *cgroup = &plan->cgroup;
	bool v2 = cgroup->kind == CGROUP_V2, cpus = false;
	for (size_t i = 0; i < cgroup->file_count; i++)
		cpus = cpus || strncmp(cgroup->files[i].file, "cpu.", 4) == 0;
	struct words_holders holders = {
		.cpu = cgroup->cpu_us ? "counted by a control group; past it the box is killed"
				      : "watched on this host; past it the box is killed",
		.cpus = !cpus ? missing
			: v2  ? "held by cpu.max of a control group"
			      : "held by cpu.cfs_quota_us of a control group",
		.memory = !cgroup->memory_max ? "watched on this host; past it the box is killed"
			  : v2                ? "held by memory.max of a control group"
					      : "held by memory.limit_in_bytes of a control group",
		.pids = cgroup->pids_max
				? "held by pids.max of a control group, and by RLIMIT_NPROC"
				: "held by RLIMIT_NPROC in the box's user namespace",
		.disk = "held by the size of the box's tmpfs",
	};
	if (cgroup->memory_max && plan->root_size < plan->policy->limits.disk.value)
		holders.disk = arena_printf(&words->arena, "%s: %s, half of memory", holders.disk,
			words_size(words, plan->root_size));
	return holders;
}

static void put_limits(struct words *words, const struct plan *plan)
{
	const struct plan_cgroup *cgroup = &plan->cgroup;
	struct words_holders holders = limit_holders(words, plan);
	words_policy_limits(words, plan->policy, &holders);
	if (cgroup->kind == CGROUP_NONE)
		return;
	words_title(words, "Control groups: %s", cgroup->kind == CGROUP_V2 ? "v2" : "v1");
	if (cgroup->leaf)
		words_line(words, "  first       agentbox goes into %s/%s", cgroup->parents[0],
			cgroup->leaf);
	if (cgroup->enable)
		words_line(words, "  enabled     %s in %s", cgroup->enable, cgroup->parents[0]);
	for (size_t i = 0; i < cgroup->count; i++)
		words_line(words, "  made        %s/%s", cgroup->parents[i], cgroup->name);
	for (size_t i = 0; i < cgroup->file_count; i++)
		words_line(words, "  set         %s = %s", cgroup->files[i].file,
			cgroup->files[i].value);
	words_line(words, "  and removed when the box has ended");
}

static void put_calls(struct words *words, const struct plan *plan)
{
	words_policy_calls(words, plan->policy);
	words_line(words, "  held by: seccomp filter %s, %zu instructions", plan->filter.name,
		plan->filter.count);
	if (plan->renames)
		words_line(words,
			"  renames: done for the command by a process of agentbox's in the "
			"box, as overlayfs cannot rename all directories itself");
}

static void put_env(struct words *words, const struct plan *plan)
{
	words_title(words, "Environment: only these");
	words_list_begin(words, "variables");
	for (const char *const *e = plan->envp; e && *e; e++)
		words_list_add(words, arena_strndup(&words->arena, *e, strcspn(*e, "=")));
	words_list_end(words, NULL);
	words_line(words, "  cwd         %s", plan->cwd);
}

static bool is_watched(const struct plan *plan, const char *key)
{
	return (plan->watch.memory_max && strcmp(key, "limits.memory") == 0) ||
	       (plan->watch.cpu_us && strcmp(key, "limits.cpu") == 0);
}

static void put_notes(struct words *words, const struct plan *plan)
{
	const char *const *missing = plan->not_enforced;
	if (missing && *missing)
		words_title(words, "NOT ENFORCED on this host (best_effort)");
	for (; missing && *missing; missing++)
		words_line(words, "  %s%s", *missing,
			is_watched(plan, *missing) ? ": watched, not held: the box is killed once "
						     "it is seen to be passed"
						   : "");
	if (plan->warning_count)
		words_title(words, "Warnings");
	for (size_t i = 0; i < plan->warning_count; i++)
		words_line(words, "  %s: %s", plan->warnings[i].code, plan->warnings[i].message);
}

static int finish(struct words *words)
{
	arena_free(&words->arena);
	return words->out->full ? -ENOSPC : 0;
}

int plan_explain_words(const struct plan *plan, struct buf *out)
{
	struct words words = { .out = out };
	words_policy_head(&words, plan->policy);
	put_files(&words, plan);
	put_network(&words, plan);
	put_processes(&words, plan);
	put_limits(&words, plan);
	put_calls(&words, plan);
	put_env(&words, plan);
	put_notes(&words, plan);
	return finish(&words);
}

static void put_grants(struct words *words, const struct policy *policy)
{
	static const char *const workspaces[] = {
		[WORKSPACE_NONE] = "none",
		[WORKSPACE_READ] = "read",
		[WORKSPACE_WRITE] = "write",
		[WORKSPACE_OVERLAY] = "overlay",
	};
	words_title(words, "Files: what is not listed is not there");
	words_line(words, "  root        %s%s",
		policy->fs.root == ROOT_DIRECTORY ? policy->fs.root_dir
						  : "the host's system directories",
		words_at(words, &policy->fs.root_at));
	for (size_t i = 0; i < policy->fs.read_count; i++)
		words_line(words, "  read        %s%s", policy->fs.read[i].path,
			words_at(words, &policy->fs.read[i].at));
	for (size_t i = 0; i < policy->fs.write_count; i++)
		words_line(words, "  write       %s%s", policy->fs.write[i].path,
			words_at(words, &policy->fs.write[i].at));
	for (size_t i = 0; i < policy->fs.hide_count; i++)
		words_line(words, "  hide        %s%s", policy->fs.hide[i].pattern,
			words_at(words, &policy->fs.hide[i].at));
	for (size_t i = 0; i < policy->fs.protect_count; i++)
		words_line(words, "  protect     %s%s", policy->fs.protect[i].pattern,
			words_at(words, &policy->fs.protect[i].at));
	words_line(words, "  workspace   %s%s", workspaces[policy->fs.workspace],
		words_at(words, &policy->fs.workspace_at));
	words_line(words, "  home        %s%s",
		policy->fs.home == HOME_PRIVATE ? "private: empty and writable" : "none",
		words_at(words, &policy->fs.home_at));
}

int policy_explain_words(const struct policy *policy, const struct err *why, struct buf *out)
{
	struct words words = { .out = out };
	words_policy_head(&words, policy);
	words_title(&words, "agentbox run would refuse it here: %s", why->text);
	if (why->line)
		words_line(&words, "  at %s:%d", why->file, (int)why->line);
	const char *hint = err_hint(why);
	if (hint)
		words_line(&words, "  hint: %s", hint);
	if (why->code == ERR_unsupported) {
		words_title(&words, "This version cannot enforce");
		words_policy_unsupported(&words, policy);
	}
	words_line(&words, "%s", "");
	words_line(&words, "What follows is what the policy asks for, not what is in force.");
	put_grants(&words, policy);
	words_policy_network(&words, policy);
	words_policy_limits(&words, policy, NULL);
	words_policy_calls(&words, policy);
	words_policy_tools(&words, policy);
	return finish(&words);
}
