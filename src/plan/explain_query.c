/*
 * explain_query: questions about a plan or a policy, answered as the box would. Pure: looks at its
 * arguments only, so an answer for a host that a test made up is as good as a real one.
 */
#define _GNU_SOURCE
#include "plan/explain.h"
#include "base/sys.h"
#include "plan/explain_words.h"
#include "plan/filter.h"
#include "base/match.h"
#include "plan/plan.h"
#include "policy/policy.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LINKS_MAX 40

static int answer(struct answer *ret_answer, bool allowed, const char *words)
{
	*ret_answer = (struct answer){ .allowed = allowed, .words = words };
	return 0;
}

/* A path of the box onto itself, with all that is mounted below it: shows nothing new. */
static bool is_hold(const struct plan_op *op)
{
	return op->kind == OP_INSIDE && op->flags & OPF_UNDER_GRANT;
}

/* A writable directory of the box's own, which is empty when the command starts. */
static bool is_window(const struct plan_op *op)
{
	return op->kind == OP_INSIDE && !(op->flags & OPF_UNDER_GRANT);
}

const char *explain_why(const struct plan_op *op)
{
	static const char *const words[][2] = {
		{ "system", "system directory" },
		{ "private", "private to the box" },
		{ "made", "made for the box, not the host's" },
		{ "device", "device" },
	};
	if (!op->why)
		return "";
	/* What a policy does not say has no line: the planner's own protection of policies. */
	if (is_hold(op) && strcmp(op->why, "filesystem.protect") == 0)
		return S_ISDIR(op->mode) ? "the policies of agentbox" : "the policy's own file";
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcmp(op->why, words[i][0]) == 0)
			return words[i][1];
	return op->why;
}

/*
 * `path` counted from the absolute `base`, without ".", ".." and doubled slashes, and without the
 * slash in front: the form of plan_op.target. NULL when it is too long.
 */
static const char *clean_target(struct arena *arena, const char *base, const char *path)
{
	char out[PATH_MAX];
	size_t len = 0;
	const char *parts[2] = { *path == '/' ? "" : base, path };
	for (int i = 0; i < 2; i++) {
		for (const char *s = parts[i]; *s;) {
			size_t n = strcspn(s, "/");
			if (n == 2 && memcmp(s, "..", 2) == 0) {
				while (len && out[--len] != '/')
					;
			} else if (n && !(n == 1 && *s == '.')) {
				if (len + n + 2 > sizeof out)
					return NULL;
				if (len)
					out[len++] = '/';
				memcpy(out + len, s, n);
				len += n;
			}
			s += n;
			s += *s == '/';
		}
	}
	return arena_strndup(arena, out, len);
}

/* Is `path` the target itself or below it? The part below in *ret_rest ("" or without a slash). */
static bool is_below(const char *path, const char *target, const char **ret_rest)
{
	size_t len = strlen(target);
	if (strncmp(path, target, len) != 0 || (len && path[len] && path[len] != '/'))
		return false;
	*ret_rest = path + len + (len && path[len] == '/');
	return true;
}

/* Follow the links that the plan makes, in any component; NULL: too many or too long. */
static const char *follow_links(const struct plan *plan, const char *path, struct arena *arena)
{
	for (int turns = 0; turns < LINKS_MAX; turns++) {
		const char *next = NULL;
		for (size_t i = 0; i < plan->op_count && !next; i++) {
			const struct plan_op *op = &plan->ops[i];
			const char *rest;
			if (op->kind != OP_LINK || !is_below(path, op->target, &rest))
				continue;
			const char *slash = strrchr(op->target, '/');
			const char *base = slash ? arena_strndup(arena, op->target,
							   (size_t)(slash - op->target))
						 : "";
			next = clean_target(arena, base,
				arena_printf(arena, "%s%s%s", op->source, *rest ? "/" : "", rest));
			if (!next)
				return NULL;
		}
		if (!next)
			return path;
		path = next;
	}
	return NULL;
}

/* What a path of the box comes from, after all operations. */
struct seen {
	const struct plan_op *op;     /* NULL: nothing shows it */
	bool exact;                   /* the operation made this very path */
	bool parent;                  /* only a directory on the way to a target */
	bool sealed;                  /* attached before the seal */
	const struct plan_op *locked; /* made read-only afterwards by this one; NULL: not */
};

/*
 * The last operation whose target holds the path is what is seen: later mounts cover earlier ones.
 * A made file, link or directory counts only for itself; a directory that is then shown once more
 * (OP_INSIDE) counts as the latter. One that is only held in its place covers nothing, however
 * deep what was mounted in it lies; a read-only hold takes the right to write from all of that.
 */
static struct seen find_op(const struct plan *plan, const char *path)
{
	struct seen seen = { 0 };
	for (size_t i = 0; i < plan->op_count; i++) {
		const struct plan_op *op = &plan->ops[i];
		const char *rest;
		if (op->kind == OP_SEAL) {
			seen.sealed = true;
			continue;
		}
		if (is_hold(op)) {
			if (seen.op && op->flags & OPF_READONLY &&
				is_below(path, op->target, &rest))
				seen.locked = op;
			continue;
		}
		bool made = op->kind == OP_DIR || op->kind == OP_FILE || op->kind == OP_LINK;
		if (is_below(path, op->target, &rest) && (!made || !*rest)) {
			/* What is made below a mount lies in that mount, and obeys its rules. */
			if (made && seen.op && !seen.exact && !seen.parent)
				continue;
			seen = (struct seen){ .op = op, .exact = made };
		} else if ((!seen.op || seen.parent) && is_below(op->target, path, &rest)) {
			seen = (struct seen){ .op = op, .parent = true };
		}
	}
	return seen;
}

static uint64_t landlock_access(const struct plan *plan, const char *path)
{
	uint64_t access = 0;
	const char *rest;
	for (size_t i = 0; i < plan->rule_count; i++)
		if (is_below(path, plan->rules[i].path + (*plan->rules[i].path == '/'), &rest))
			access |= plan->rules[i].access;
	return access;
}

/* The file system's own verdict on writing to what is seen. */
static bool writable(const struct seen *seen)
{
	const struct plan_op *op = seen->op;
	if (op->flags & OPF_DEVICE || S_ISCHR(op->mode))
		return true; /* a read-only mount does not hold for device nodes */
	return !seen->exact && !seen->parent && !seen->sealed && !seen->locked &&
	       op->kind != OP_MASK && !(op->flags & OPF_READONLY);
}

/*
 * The grant that a path of the box lies in, also when a later operation covers a part of it, and
 * the host's path behind it. NULL: not in a granted tree of the host.
 */
static const struct plan_op *find_grant(
	const struct plan *plan, const char *path, struct arena *arena, const char **ret_real)
{
	const struct plan_op *grant = NULL;
	const char *rest;
	for (size_t i = 0; i < plan->op_count; i++) {
		const struct plan_op *op = &plan->ops[i];
		if (plan_op_grants(op) && is_below(path, op->target, &rest)) {
			grant = op;
			*ret_real =
				arena_printf(arena, "%s%s%s", op->source, *rest ? "/" : "", rest);
		}
	}
	return grant;
}

/* As host_probe() holds patterns against what is there. */
static bool pattern_names(const char *pattern, const char *grant, const char *path)
{
	if (*pattern == '/')
		return match_path(pattern + 1, path + (*path == '/'));
	const char *relative = path + strlen(grant);
	relative += *relative == '/';
	const char *slash = strchr(pattern, '/') ? NULL : strrchr(relative, '/');
	return match_path(pattern, slash ? slash + 1 : relative);
}

/*
 * A pattern also speaks for what was not there when the plan was made, and for what lies below a
 * directory that it names: try the path and each directory above it inside the grant.
 */
static const struct policy_pattern *match_patterns(const struct policy_pattern *patterns,
	size_t count, const char *path, const char *grant, struct arena *arena)
{
	size_t floor = strlen(grant);
	for (size_t len = strlen(path); len > floor; len--) {
		if (path[len] && path[len] != '/')
			continue;
		const char *part = arena_strndup(arena, path, len);
		for (size_t i = 0; i < count; i++)
			if (pattern_names(patterns[i].pattern, grant, part))
				return &patterns[i];
	}
	return NULL;
}

/* 1 with *ret_answer when a pattern refuses, else 0. */
static int judge_patterns(const struct plan *plan, const char *path, bool write,
	struct arena *arena, struct answer *ret_answer)
{
	const struct policy *policy = plan->policy;
	const char *real = NULL, *key = "filesystem.hide";
	const struct plan_op *grant = find_grant(plan, path, arena, &real);
	if (!policy || !grant)
		return 0;
	const struct policy_pattern *hit =
		match_patterns(policy->fs.hide, policy->fs.hide_count, real, grant->source, arena);
	if (write && !hit) {
		key = "filesystem.protect";
		hit = match_patterns(
			policy->fs.protect, policy->fs.protect_count, real, grant->source, arena);
	}
	if (!hit)
		return 0;
	answer(ret_answer, false,
		arena_printf(
			arena, "%s: %s (%s)", key, hit->pattern, explain_origin(&hit->at, arena)));
	return 1;
}

const char *plan_host_path(const struct plan *plan, const char *path, struct arena *arena)
{
	const char *target = clean_target(arena, plan->cwd, path), *rest;
	target = target ? follow_links(plan, target, arena) : NULL;
	struct seen seen = target ? find_op(plan, target) : (struct seen){ 0 };
	if (!seen.op || (seen.op->kind != OP_BIND && seen.op->kind != OP_LAYER) ||
		!is_below(target, seen.op->target, &rest))
		return NULL;
	return arena_printf(arena, "%s%s%s", seen.op->source, *rest ? "/" : "", rest);
}

const char *plan_inside_path(const struct plan *plan, const char *path, struct arena *arena)
{
	const char *target = clean_target(arena, plan->cwd, path);
	target = target ? follow_links(plan, target, arena) : NULL;
	return target ? arena_printf(arena, "/%s", target) : NULL;
}

/* Is a tree of the host shown somewhere below the path? */
static bool holds_grant(const struct plan *plan, const char *path)
{
	const char *rest;
	for (size_t i = 0; i < plan->op_count; i++)
		if (plan_op_grants(&plan->ops[i]) && is_below(plan->ops[i].target, path, &rest) &&
			*rest)
			return true;
	return false;
}

/*
 * In a window nothing of the host can be read: that the name can be used inside is no answer to
 * one who asks about the host's file.
 */
static int answer_window(const struct plan *plan, const struct plan_op *window, const char *path,
	bool write, struct arena *arena, struct answer *ret_answer)
{
	bool home = strncmp(window->why, "filesystem.home", 15) == 0;
	const char *line = home ? arena_printf(arena, ": %s", window->why) : "";
	if (write)
		return answer(ret_answer, true,
			arena_printf(arena, "private, never the host's file%s", line));
	if (holds_grant(plan, path))
		return answer(
			ret_answer, true, "a directory of the box's own, on the way to a grant");
	return answer(ret_answer, false,
		home ? arena_printf(arena,
			       "the host's file is not shown; the box has an empty home of its "
			       "own%s",
			       line)
		     : arena_printf(arena,
			       "the host's file is not shown; the box has an empty /%s of its own",
			       window->target));
}

/* The mounts' verdict, then Landlock's, then that of the patterns. */
static int answer_seen(const struct plan *plan, const struct seen *seen, const char *target,
	bool write, struct arena *arena, struct answer *ret_answer)
{
	const char *why = explain_why(seen->op);
	uint64_t access = landlock_access(plan, target);
	uint64_t any_read = SYS_LANDLOCK_FS_READ_FILE | SYS_LANDLOCK_FS_READ_DIR;
	uint64_t any_write = SYS_LANDLOCK_FS_WRITE_FILE | SYS_LANDLOCK_FS_MAKE_REG;
	if (seen->op->kind == OP_MASK)
		return answer(ret_answer, false, arena_printf(arena, "hidden: %s", why));
	if (write && !writable(seen))
		return answer(ret_answer, false,
			arena_printf(arena, "read-only: %s",
				seen->locked ? explain_why(seen->locked) : why));
	if (plan->landlock_abi > 0 &&
		!(access & (write ? any_write : any_read) & plan->landlock_fs))
		return answer(ret_answer, false,
			arena_printf(arena, "Landlock: no rule grants it (%s)", why));
	if (is_window(seen->op))
		return answer_window(plan, seen->op, target, write, arena, ret_answer);
	if (judge_patterns(plan, target, write, arena, ret_answer))
		return 0;
	return answer(ret_answer, true, why);
}

int plan_ask_path(const struct plan *plan, const char *path, bool write, struct arena *arena,
	struct answer *ret_answer, struct err *err)
{
	const char *target = *path ? clean_target(arena, plan->cwd, path) : NULL;
	if (!target)
		return err_set(
			err, ERR_usage, 0, *path ? "the path is too long" : "the path is empty");
	target = follow_links(plan, target, arena);
	if (!target)
		return err_set(err, ERR_usage, 0, "too many links on the way to %s", path);
	struct seen seen = find_op(plan, target);
	if (!seen.op)
		return answer(
			ret_answer, false, "not granted; everything is denied unless granted");
	if (seen.parent)
		return answer(ret_answer, !write,
			write ? "only a directory on the way to a grant, read-only"
			      : "a directory on the way to a grant");
	return answer_seen(plan, &seen, target, write, arena, ret_answer);
}

void policy_ask_tool(const struct policy *policy, const char *name, struct arena *arena,
	struct answer *ret_answer)
{
	for (size_t i = 0; i < policy->tool_count; i++) {
		if (strcmp(policy->tools[i].name, name) == 0) {
			answer(ret_answer, true,
				arena_printf(arena, "tools (%s)",
					explain_origin(&policy->tools[i].at, arena)));
			return;
		}
	}
	answer(ret_answer, false,
		policy->tool_count ? "tools: not listed" : "tools: none are granted");
}

int filter_ask_syscall(const struct filter *filter, const struct policy *policy, const char *name,
	struct arena *arena, struct answer *ret_answer, struct err *err)
{
	const char *words = "";
	switch (filter_explain(filter, policy, name, arena, &words)) {
	case FILTER_ALLOWED:
	case FILTER_DEPENDS:
		return answer(ret_answer, true, words);
	case FILTER_DENIED:
		return answer(ret_answer, false, words);
	case FILTER_UNKNOWN:
		break;
	}
	return err_set(err, ERR_usage, 0, "there is no system call %s on this architecture", name);
}
