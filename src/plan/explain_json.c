/*
 * explain_json: the plan as JSON, and the names of its flags. Complete: a field of the plan that
 * the box acts on is here, or the picture would lie.
 */
#define _GNU_SOURCE
#include "plan/explain.h"
#include "base/json.h"
#include "base/sys.h"
#include "plan/plan.h"
#include "policy/policy.h"

#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5) /* Linux 5.19 */
#endif

struct bit {
	uint64_t bit;
	const char *name;
};

static const struct bit op_flags[] = {
	{ OPF_READONLY, "readonly" },
	{ OPF_RECURSIVE, "recursive" },
	{ OPF_NOEXEC, "noexec" },
	{ OPF_DEVICE, "device" },
	{ OPF_GRANT, "grant" },
	{ OPF_UNDER_GRANT, "under_grant" },
	{ OPF_LINK_ITSELF, "link_itself" },
	{ OPF_OPTIONAL, "optional" },
	{ 0, NULL },
};

static const struct bit namespaces[] = {
	{ CLONE_NEWUSER, "user" },
	{ CLONE_NEWNS, "mount" },
	{ CLONE_NEWPID, "pid" },
	{ CLONE_NEWNET, "net" },
	{ CLONE_NEWIPC, "ipc" },
	{ CLONE_NEWUTS, "uts" },
	{ CLONE_NEWCGROUP, "cgroup" },
	{ SYS_CLONE_NEWTIME, "time" },
	{ 0, NULL },
};

static const struct bit landlock_fs[] = {
	{ SYS_LANDLOCK_FS_EXECUTE, "execute" },
	{ SYS_LANDLOCK_FS_WRITE_FILE, "write_file" },
	{ SYS_LANDLOCK_FS_READ_FILE, "read_file" },
	{ SYS_LANDLOCK_FS_READ_DIR, "read_dir" },
	{ SYS_LANDLOCK_FS_REMOVE_DIR, "remove_dir" },
	{ SYS_LANDLOCK_FS_REMOVE_FILE, "remove_file" },
	{ SYS_LANDLOCK_FS_MAKE_CHAR, "make_char" },
	{ SYS_LANDLOCK_FS_MAKE_DIR, "make_dir" },
	{ SYS_LANDLOCK_FS_MAKE_REG, "make_reg" },
	{ SYS_LANDLOCK_FS_MAKE_SOCK, "make_sock" },
	{ SYS_LANDLOCK_FS_MAKE_FIFO, "make_fifo" },
	{ SYS_LANDLOCK_FS_MAKE_BLOCK, "make_block" },
	{ SYS_LANDLOCK_FS_MAKE_SYM, "make_sym" },
	{ SYS_LANDLOCK_FS_REFER, "refer" },
	{ SYS_LANDLOCK_FS_TRUNCATE, "truncate" },
	{ SYS_LANDLOCK_FS_IOCTL_DEV, "ioctl_dev" },
	{ 0, NULL },
};

static const struct bit landlock_scopes[] = {
	{ SYS_LANDLOCK_SCOPE_ABSTRACT_UNIX, "abstract_unix_socket" },
	{ SYS_LANDLOCK_SCOPE_SIGNAL, "signal" },
	{ 0, NULL },
};

static const struct bit filter_flags[] = {
	{ SECCOMP_FILTER_FLAG_TSYNC, "tsync" },
	{ SECCOMP_FILTER_FLAG_LOG, "log" },
	{ SECCOMP_FILTER_FLAG_SPEC_ALLOW, "spec_allow" },
	{ SECCOMP_FILTER_FLAG_NEW_LISTENER, "new_listener" },
	{ SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, "wait_killable_recv" },
	{ 0, NULL },
};

const char *explain_op_name(enum plan_op_kind kind)
{
	static const char *const names[] = {
		[OP_DIR] = "dir",
		[OP_LINK] = "link",
		[OP_FILE] = "file",
		[OP_BIND] = "bind",
		[OP_LAYER] = "layer",
		[OP_INSIDE] = "inside",
		[OP_MASK] = "mask",
		[OP_PROC] = "proc",
		[OP_DEVPTS] = "devpts",
		[OP_CGROUP] = "cgroup",
		[OP_SEAL] = "seal",
	};
	return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

const char *explain_namespace(size_t index, uint64_t *ret_bit)
{
	if (index >= sizeof namespaces / sizeof *namespaces - 1)
		return NULL;
	*ret_bit = namespaces[index].bit;
	return namespaces[index].name;
}

const char *explain_rlimit(int resource)
{
	static const char *const names[RLIMIT_NLIMITS] = {
		[RLIMIT_AS] = "as",
		[RLIMIT_CORE] = "core",
		[RLIMIT_CPU] = "cpu",
		[RLIMIT_DATA] = "data",
		[RLIMIT_FSIZE] = "fsize",
		[RLIMIT_LOCKS] = "locks",
		[RLIMIT_MEMLOCK] = "memlock",
		[RLIMIT_MSGQUEUE] = "msgqueue",
		[RLIMIT_NICE] = "nice",
		[RLIMIT_NOFILE] = "nofile",
		[RLIMIT_NPROC] = "nproc",
		[RLIMIT_RSS] = "rss",
		[RLIMIT_RTPRIO] = "rtprio",
		[RLIMIT_RTTIME] = "rttime",
		[RLIMIT_SIGPENDING] = "sigpending",
		[RLIMIT_STACK] = "stack",
	};
	return resource >= 0 && resource < RLIMIT_NLIMITS && names[resource] ? names[resource]
									     : "unknown";
}

/* The names of the bits that are set; what has no name is printed as a number, never dropped. */
static void put_bits(struct json *json, const char *key, uint64_t value, const struct bit *names)
{
	json_open_array(json, key);
	for (; names->name; names++) {
		if (value & names->bit)
			json_put_text(json, NULL, names->name);
		value &= ~names->bit;
	}
	if (value)
		json_put_uint(json, NULL, value);
	json_close(json);
}

static void put_list(struct json *json, const char *key, const char *const *words)
{
	json_open_array(json, key);
	for (; words && *words; words++)
		json_put_text(json, NULL, *words);
	json_close(json);
}

static void put_mode(struct json *json, const char *key, mode_t mode)
{
	char text[16];
	snprintf(text, sizeof text, "%04o", (unsigned)(mode & 07777));
	json_put_text(json, key, text);
}

static const char *type_name(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "link";
	case S_IFCHR:
		return "device";
	case S_IFSOCK:
		return "socket";
	case S_IFIFO:
		return "fifo";
	}
	return NULL;
}

/* Where some hosts are allowed or ports published; without it `network` says all. */
static void put_reach(struct json *json, const struct network_plan *reach)
{
	if (!reach->rule_count && !reach->publish_count)
		return;
	json_open_object(json, "reach");
	json_open_array(json, "allow");
	for (size_t i = 0; i < reach->rule_count; i++) {
		const struct net_rule *rule = &reach->rules[i];
		json_open_object(json, NULL);
		json_put_text(json, "host", rule->given);
		json_open_array(json, "ports");
		for (size_t k = 0; k < rule->port_count; k++)
			json_put_uint(json, NULL, rule->ports[k]);
		json_close(json);
		json_put_bool(json, "any_name", rule->any_name);
		json_close(json);
	}
	json_close(json);
	json_open_array(json, "publish");
	for (size_t i = 0; i < reach->publish_count; i++) {
		json_open_object(json, NULL);
		json_put_uint(json, "port", reach->publish[i].port);
		if (reach->publish[i].host_port)
			json_put_uint(json, "host_port", reach->publish[i].host_port);
		else
			json_put_null(json, "host_port");
		json_close(json);
	}
	json_close(json);
	json_close(json);
}

static void put_ids(struct json *json, const struct plan *plan)
{
	json_open_object(json, "ids");
	json_put_uint(json, "uid", plan->uid);
	json_put_uint(json, "gid", plan->gid);
	json_put_uint(json, "outer_uid", plan->outer_uid);
	json_put_uint(json, "outer_gid", plan->outer_gid);
	json_put_text(json, "uid_map", plan->uid_map);
	json_put_text(json, "gid_map", plan->gid_map);
	json_put_bool(json, "as_root", plan->as_root);
	json_close(json);
	put_bits(json, "namespaces", plan->namespaces, namespaces);
	json_put_text(json, "hostname", plan->hostname);
	json_put_bool(json, "loopback_up", plan->loopback_up);
	json_put_text(json, "network", plan->network);
	put_reach(json, &plan->reach);
	json_put_text(json, "workspace", plan->workspace);
}

static void put_op(struct json *json, const struct plan_op *op, bool as_root)
{
	json_open_object(json, NULL);
	json_put_text(json, "op", explain_op_name(op->kind));
	put_bits(json, "flags", op->flags, op_flags);
	if (op->kind != OP_SEAL)
		json_put_text(json, "target", op->target);
	if (op->source)
		json_put_text(json, "source", op->source);
	if (op->kind == OP_FILE)
		json_put_uint(json, "bytes", op->len);
	if (op->kind == OP_DIR || op->kind == OP_FILE)
		put_mode(json, "mode", op->mode);
	else if (type_name(op->mode))
		json_put_text(json, "type", type_name(op->mode));
	if (as_root && op->flags & OPF_GRANT) {
		json_put_uint(json, "owner", op->owner);
		json_put_uint(json, "group", op->group);
	}
	json_put_text(json, "why", op->why);
	json_close(json);
}

static void put_layers(struct json *json, const struct plan *plan)
{
	json_open_array(json, "layers");
	for (size_t i = 0; i < plan->layer_count; i++) {
		const struct plan_layer *layer = &plan->layers[i];
		json_open_object(json, NULL);
		json_put_text(json, "root", layer->root);
		json_put_text(json, "backend", layer->copy ? "copy" : "overlay");
		json_put_text(json, "directory", layer->dir);
		json_open_array(json, "hidden");
		for (size_t k = 0; k < layer->gone_count; k++)
			json_put_text(json, NULL, layer->gone[k]);
		json_close(json);
		json_put_text(json, "why", layer->why);
		json_close(json);
	}
	json_close(json);
}

static void put_files(struct json *json, const struct plan *plan)
{
	put_layers(json, plan);
	json_open_object(json, "root");
	json_put_text(json, "type", "tmpfs");
	json_put_uint(json, "size", plan->root_size);
	json_open_object(json, "options");
	for (const struct plan_option *o = plan->root_options; o && o->key; o++)
		json_put_text(json, o->key, o->value);
	json_close(json);
	json_close(json);
	json_open_array(json, "operations");
	for (size_t i = 0; i < plan->op_count; i++)
		put_op(json, &plan->ops[i], plan->as_root);
	json_close(json);
}

static void put_landlock(struct json *json, const struct plan *plan)
{
	json_open_object(json, "landlock");
	json_put_int(json, "abi", plan->landlock_abi);
	put_bits(json, "handled", plan->landlock_fs, landlock_fs);
	put_bits(json, "scoped", plan->landlock_scoped, landlock_scopes);
	json_open_array(json, "rules");
	for (size_t i = 0; i < plan->rule_count; i++) {
		json_open_object(json, NULL);
		json_put_text(json, "path", plan->rules[i].path);
		put_bits(json, "access", plan->rules[i].access, landlock_fs);
		json_put_bool(json, "optional", plan->rules[i].optional);
		json_close(json);
	}
	json_close(json);
	json_close(json);
}

static void put_rlim(struct json *json, const char *key, rlim_t value)
{
	if (value == RLIM_INFINITY)
		json_put_text(json, key, "infinity");
	else
		json_put_uint(json, key, value);
}

static void put_thousandths_or_null(struct json *json, const char *key, uint64_t us)
{
	if (us)
		json_put_thousandths(json, key, us);
	else
		json_put_null(json, key);
}

static void put_limits(struct json *json, const struct plan *plan)
{
	json_open_object(json, "limits");
	json_open_array(json, "rlimits");
	for (size_t i = 0; i < plan->rlimit_count; i++) {
		const struct plan_rlimit *r = &plan->rlimits[i];
		json_open_object(json, NULL);
		json_put_text(json, "resource", explain_rlimit(r->resource));
		put_rlim(json, "soft", r->limit.rlim_cur);
		put_rlim(json, "hard", r->limit.rlim_max);
		json_put_text(json, "why", r->why);
		json_close(json);
	}
	json_close(json);
	put_thousandths_or_null(json, "wall_ms", plan->wall_us);
	put_thousandths_or_null(json, "grace_ms", plan->grace_us);
	json_put_uint(json, "output_bytes", plan->output_max);
	json_put_text(json, "output_action", plan->output_kill ? "kill" : "truncate");
	json_put_text(json, "oom_score_adj", plan->oom_score_adj);
	put_mode(json, "umask", plan->umask);
	json_close(json);
}

static void put_cgroup_file(struct json *json, const struct plan_cgroup_file *file)
{
	json_open_object(json, NULL);
	json_put_int(json, "group", file->group);
	json_put_text(json, "file", file->file);
	json_put_text(json, "value", file->value);
	json_put_bool(json, "optional", file->optional);
	json_put_text(json, "why", file->key);
	json_close(json);
}

/* Which group counts what, by its place in the list; null where none does. */
static void put_counter(struct json *json, const char *key, int group)
{
	if (group < 0)
		json_put_null(json, key);
	else
		json_put_int(json, key, group);
}

static void put_uint_or_null(struct json *json, const char *key, uint64_t value)
{
	if (value)
		json_put_uint(json, key, value);
	else
		json_put_null(json, key);
}

static void put_cgroup(struct json *json, const struct plan *plan)
{
	const struct plan_cgroup *cgroup = &plan->cgroup;
	if (cgroup->kind == CGROUP_NONE) {
		json_put_null(json, "cgroup");
		return;
	}
	json_open_object(json, "cgroup");
	json_put_text(json, "kind", cgroup->kind == CGROUP_V2 ? "v2" : "v1");
	json_put_text(json, "name", cgroup->name);
	json_open_array(json, "groups");
	for (size_t i = 0; i < cgroup->count; i++) {
		json_open_object(json, NULL);
		json_put_text(json, "in", cgroup->parents[i]);
		json_put_text(json, "controllers", cgroup->controllers[i]);
		json_close(json);
	}
	json_close(json);
	json_put_text(json, "leaf", cgroup->leaf);
	json_put_text(json, "enable", cgroup->enable);
	json_open_array(json, "files");
	for (size_t i = 0; i < cgroup->file_count; i++)
		put_cgroup_file(json, &cgroup->files[i]);
	json_close(json);
	json_open_object(json, "counted_in");
	put_counter(json, "memory", cgroup->memory);
	put_counter(json, "pids", cgroup->pids);
	put_counter(json, "cpu", cgroup->cpu);
	put_counter(json, "cpuacct", cgroup->cpuacct);
	json_close(json);
	put_uint_or_null(json, "memory_bytes", cgroup->memory_max);
	put_uint_or_null(json, "pids", cgroup->pids_max);
	put_thousandths_or_null(json, "cpu_ms", cgroup->cpu_us);
	json_put_uint(json, "cpu_width", cgroup->cpu_width);
	json_close(json);
}

static void put_filter(struct json *json, const struct plan *plan)
{
	json_open_object(json, "seccomp");
	json_put_text(json, "filter", plan->filter.name);
	json_put_uint(json, "instructions", plan->filter.count);
	json_put_text(json, "sha256", plan->filter.sha256);
	put_bits(json, "flags", plan->filter_flags, filter_flags);
	json_put_bool(json, "renames", plan->renames);
	json_put_text(json, "on_violation", plan->kill_on_violation ? "kill" : "errno");
	json_close(json);
}

static void put_command(struct json *json, const struct plan *plan)
{
	json_open_object(json, "command");
	put_list(json, "argv", plan->argv);
	put_list(json, "candidates", plan->candidates);
	json_put_text(json, "cwd", plan->cwd);
	json_open_array(json, "env");
	for (const char *const *e = plan->envp; e && *e; e++)
		json_put_bytes(json, NULL, *e, strcspn(*e, "="));
	json_close(json);
	json_put_bool(json, "stdin", plan->pass_stdin);
	json_put_bool(json, "tty", plan->tty);
	json_close(json);
}

/* Of what is not enforced: what the supervisor watches in place of the kernel. */
static void put_watch(struct json *json, const struct plan_watch *watch)
{
	json_open_object(json, "watched");
	put_uint_or_null(json, "memory_bytes", watch->memory_max);
	put_uint_or_null(json, "pids", watch->pids_max);
	put_thousandths_or_null(json, "cpu_ms", watch->cpu_us);
	json_put_uint(json, "cpu_width", watch->width);
	json_close(json);
}

static void put_notes(struct json *json, const struct plan *plan)
{
	put_list(json, "not_enforced", plan->not_enforced);
	if (plan->watch.memory_max || plan->watch.cpu_us)
		put_watch(json, &plan->watch);
	json_open_array(json, "warnings");
	for (size_t i = 0; i < plan->warning_count; i++) {
		json_open_object(json, NULL);
		json_put_text(json, "code", plan->warnings[i].code);
		json_put_text(json, "message", plan->warnings[i].message);
		json_close(json);
	}
	json_close(json);
}

int plan_explain_json(const struct plan *plan, struct buf *out)
{
	struct json json;
	json_begin(&json, out, false);
	json_open_object(&json, NULL);
	json_put_text(&json, "agentbox", AGENTBOX_VERSION);
	json_put_text(&json, "name", plan->name);
	if (plan->policy) {
		char sha256[POLICY_SHA256_SIZE];
		policy_sha256(plan->policy, sha256);
		json_put_text(&json, "policy_sha256", sha256);
	}
	put_ids(&json, plan);
	put_files(&json, plan);
	put_landlock(&json, plan);
	put_limits(&json, plan);
	put_cgroup(&json, plan);
	put_filter(&json, plan);
	put_command(&json, plan);
	put_notes(&json, plan);
	json_close(&json);
	return json_end(&json);
}
