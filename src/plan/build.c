/*
 * build: plan_build, where everything is decided. It asks the kernel nothing: what it knows of the
 * host stands in struct host.
 */
#define _GNU_SOURCE
#include "plan/build.h"
#include "plan/gaps.h"
#include "plan/network_build.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

const char *build_why(struct builder *builder, const char *what, const struct origin *at)
{
	struct arena *arena = &builder->plan->arena;
	if (!at || !origin_set(at))
		return what;
	if (at->line == 0)
		return arena_printf(arena, "%s (%s)", what, at->file);
	return arena_printf(arena, "%s (%s:%d)", what, at->file, at->line);
}

void build_warn(struct builder *builder, const char *code, const char *message)
{
	struct plan *plan = builder->plan;
	struct plan_warning *warning =
		arena_push(&plan->arena, &builder->warnings, &plan->warning_count, sizeof *warning);
	warning->code = code;
	warning->message = message;
}

void build_not_enforced(struct builder *builder, const char *what)
{
	const char **slot = arena_push(&builder->plan->arena, &builder->not_enforced,
		&builder->not_enforced_count, sizeof *slot);
	*slot = what;
}

int build_refuse(
	struct builder *builder, enum err_code code, const struct origin *at, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	const char *text = arena_vprintf(&builder->plan->arena, fmt, ap);
	va_end(ap);
	err_set(builder->err, code, 0, "%s", text);
	return at && origin_set(at) ? err_at(builder->err, at->file, at->line, at->column) : -1;
}

/* Keys whose mechanism is not there yet: refused by name and line, never accepted and ignored. */
static int refuse_gaps(struct builder *builder)
{
	struct plan_gap gaps[PLAN_GAPS_MAX];
	if (plan_gaps(builder->policy, gaps) == 0)
		return 0;
	const struct plan_gap *gap = &gaps[0];
	build_refuse(builder, ERR_unsupported, gap->at, "'%s' %s", gap->key, gap->why);
	if (gap->hint)
		return err_hint_set(builder->err, "%s", gap->hint);
	return err_hint_set(
		builder->err, "remove '%s'; nothing is ever accepted and ignored", gap->key);
}

/*
 * The kernel gives its settings below /proc/sys to the host's root by id alone, without asking for
 * a capability: a box must never have that id.
 */
static int refuse_root(struct builder *builder)
{
	if (!builder->host->global_root || builder->host->root)
		return 0;
	build_refuse(builder, ERR_userns_denied, NULL,
		"started as the host's root without the rights to run the box as another id");
	return err_hint_set(builder->err, "run agentbox as an ordinary user, or give root "
					  "CAP_SETUID, CAP_SETGID and CAP_SYS_ADMIN in the "
					  "first user namespace");
}

/*
 * What is counted of one command from its begin to its end has no meaning for what goes on after
 * it, and the gateway is of one command.
 */
static int refuse_kept(struct builder *builder)
{
	const struct policy *policy = builder->policy;
	bool hosts = policy->network == NETWORK_ALLOW, ports = policy->publish_count > 0;
	if (!builder->plan->keep || !(hosts || ports || policy->limits.cpu_us.value))
		return 0;
	build_refuse(builder, ERR_unsupported,
		hosts || ports ? &policy->network_at : &policy->limits.cpu_us.at,
		"'%s' cannot be held in a session that keeps its processes (%s:%d)",
		hosts   ? "network.allow"
		: ports ? "network.publish"
			: "limits.cpu",
		policy->keep_processes_at.file, policy->keep_processes_at.line);
	return err_hint_set(builder->err, "session: {processes: drop}");
}

static void build_ids(struct builder *builder)
{
	struct plan *plan = builder->plan;
	const struct host *host = builder->host;
	/*
	 * Inside one is who one is; but never 0: programs that believe to be root take paths that a
	 * box without root's rights refuses.
	 */
	enum { INSIDE_ID = 1000 };
	plan->as_root = host->root;
	plan->uid = host->uid == 0 ? INSIDE_ID : host->uid;
	plan->gid = host->gid == 0 || host->uid == 0 ? INSIDE_ID : host->gid;
	plan->outer_uid = host->box_uid;
	plan->outer_gid = host->box_gid;
	plan->uid_map = arena_printf(&plan->arena, "%u %u 1\n", plan->uid, plan->outer_uid);
	plan->gid_map = arena_printf(&plan->arena, "%u %u 1\n", plan->gid, plan->outer_gid);
}

static int build_namespaces(struct builder *builder)
{
	struct plan *plan = builder->plan;
	const struct policy *policy = builder->policy;
	plan->namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC |
			   CLONE_NEWUTS | CLONE_NEWCGROUP;
	plan->hostname = "agentbox";
	plan->network = "none";
	if (policy->network == NETWORK_HOST) {
		plan->network = "host";
		/* The scope is all that stands between the box and the host's abstract sockets. */
		if (builder->host->landlock_abi < 6) {
			build_refuse(builder, ERR_landlock_insufficient, &policy->network_at,
				"network: host needs Landlock ABI 6 to keep the host's abstract "
				"sockets out of reach; "
				"this kernel has %d",
				builder->host->landlock_abi);
			return err_hint_set(builder->err, "network: none");
		}
		return 0;
	}
	plan->namespaces |= CLONE_NEWNET;
	plan->loopback_up = true;
	if (!network_build(policy, &plan->arena, &plan->reach))
		return build_refuse(builder, ERR_policy_invalid, &policy->network_at,
			"network.allow: more than %d different ports", NETWORK_PORTS_MAX);
	if (plan->reach.rule_count)
		plan->network = "allow";
	size_t clash = network_clash(&plan->reach);
	if (clash == plan->reach.publish_count)
		return 0;
	build_refuse(builder, ERR_policy_invalid, &policy->publish[clash].at,
		"port %u cannot be published: inside, the connections to hosts that network.allow "
		"lists are taken there, so no server could listen",
		policy->publish[clash].port);
	return err_hint_set(builder->err, "have the server listen at another port, or list the "
					  "hosts with the ports that are needed (NAME:443)");
}

static int build_filter(struct builder *builder, const struct filter *filter)
{
	struct plan *plan = builder->plan;
	if (!builder->host->seccomp_notify)
		return build_refuse(builder, ERR_seccomp_unavailable, NULL,
			"this kernel has no seccomp user notification");
	plan->filter = *filter;
	plan->filter_flags =
		builder->host->seccomp_wait_killable ? 1u << 5 : 0; /* WAIT_KILLABLE_RECV */
	plan->kill_on_violation = builder->policy->on_violation == VIOLATION_KILL;
	return 0;
}

static int build_all(struct builder *builder, const struct filter *filter)
{
	struct plan *plan = builder->plan;
	plan->name = builder->policy->name;
	plan->policy = builder->policy;
	plan->host = builder->host;
	plan->tty = builder->request->tty;
	plan->pass_stdin = builder->request->pass_stdin;
	plan->words = builder->request->words;
	plan->words_len = builder->request->words_len;
	plan->renames = filter->renames != 0;
	plan->nesting = builder->policy->nesting;
	plan->keep = builder->request->session && builder->policy->keep_processes;
	static const char *const keyring[] = { "add_key", "keyctl", "request_key" };
	for (size_t i = 0; i < builder->policy->sys_allow_count; i++)
		for (size_t k = 0; k < sizeof keyring / sizeof *keyring; k++)
			plan->new_keyring |=
				strcmp(builder->policy->sys_allow[i].value, keyring[k]) == 0;
	build_ids(builder);
	if (refuse_gaps(builder) < 0 || refuse_kept(builder) < 0 || refuse_root(builder) < 0 ||
		build_cgroup(builder) < 0 || build_limits(builder) < 0 ||
		build_namespaces(builder) < 0 || build_mounts(builder) < 0 ||
		build_landlock(builder) < 0 || build_command(builder) < 0 ||
		build_filter(builder, filter) < 0)
		return -1;
	plan->ops = builder->ops;
	plan->rules = builder->rules;
	plan->rlimits = builder->rlimits;
	plan->warnings = builder->warnings;
	build_not_enforced(builder, NULL);
	plan->not_enforced = builder->not_enforced;
	return 0;
}

int plan_build(const struct policy *policy, const struct request *request, const struct host *host,
	const struct filter *filter, struct plan *ret_plan, struct err *err)
{
	struct plan plan = { 0 };
	struct builder builder = {
		.plan = &plan,
		.policy = policy,
		.request = request,
		.host = host,
		.err = err,
	};
	if (build_all(&builder, filter) < 0) {
		arena_free(&plan.arena);
		return -1;
	}
	*ret_plan = plan;
	return 0;
}

void plan_free(struct plan *plan)
{
	arena_free(&plan->arena);
}
