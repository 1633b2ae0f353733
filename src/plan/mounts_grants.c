/*
 * mounts_grants: what the policy and the command line name of the host: grants and the workspace,
 * and within them what is protected and hidden. Deeper paths come after those that they lie in, so
 * the more exact line wins.
 */
#define _GNU_SOURCE
#include "plan/build.h"
#include "plan/host_own.h"
#include "plan/places.h"

#include <string.h>
#include <stdlib.h>
#include <sys/stat.h>

static int depth(const char *target)
{
	int slashes = 0;
	for (; *target; target++)
		slashes += *target == '/';
	return slashes;
}

/* Places that the box makes itself: nothing of the host can stand there. */
bool build_reserved(const char *target)
{
	static const char *const own[] = { "proc", "dev", "dev/pts", "dev/shm", "etc", "run",
		"run/agentbox", "tmp", "var", "var/tmp" };
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (strcmp(target, own[i]) == 0)
			return true;
	return !*target || build_lies_in(target, "proc") || build_lies_in(target, "run/agentbox");
}

static int check_grant(struct builder *builder, const struct host_path *fact, const char *given,
	bool dangerous, const struct origin *at)
{
	if (fact->link || fact->through_link) {
		build_refuse(builder, ERR_grant_is_symlink, at,
			"'%s' is a symbolic link or passes through one; "
			"it leads to '%s'",
			given, fact->real ? fact->real : "nowhere");
		return fact->real ? err_hint_set(builder->err, "grant '%s' itself", fact->real)
				  : -1;
	}
	if (fact->errnum) {
		build_refuse(builder, ERR_grant_not_found, at,
			"'%s' does not exist or cannot be reached", given);
		builder->err->errnum = fact->errnum;
		return -1;
	}
	if (!S_ISDIR(fact->mode) && !S_ISREG(fact->mode) && !dangerous) {
		build_refuse(builder, ERR_dangerous_grant, at,
			"'%s' is a %s: it would hand over what is behind it", given,
			S_ISSOCK(fact->mode)   ? "socket"
			: S_ISFIFO(fact->mode) ? "named pipe"
					       : "device");
		return err_hint_set(builder->err, "{path: %s, dangerous: true}", given);
	}
	if (build_reserved(fact->path + 1)) {
		build_refuse(builder, ERR_unsupported, at,
			"'%s' cannot be granted: the box has its own there", given);
		return err_hint_set(builder->err, "grant the directories below it that are needed");
	}
	return 0;
}

/*
 * Nothing makes the directories writable in which agentbox keeps what later runs rely on. One that
 * holds them is granted only where it is marked; they are then covered in it (cover_own).
 */
static int check_own(struct builder *builder, const char *path, const char *given, bool dangerous,
	const struct origin *at)
{
	bool holds;
	const struct host_path *own = host_own_find(builder->host, path, &holds);
	if (!own || (holds && dangerous))
		return 0;
	build_refuse(builder, ERR_dangerous_grant, at,
		"'%s' %s '%s', where agentbox keeps what it relies on later: the box could have it "
		"remove or apply what it likes",
		given, holds ? "holds" : "lies in", own->path);
	return err_hint_set(builder->err, "grant a directory that holds nothing of agentbox's");
}

int build_add_grant(struct builder *builder, const struct host_path *fact, bool write, int layer,
	const char *why)
{
	const char *target = fact->path + 1;
	for (size_t i = 0; i < builder->grant_count; i++) {
		struct build_grant *other = &builder->grants[i];
		if (strcmp(other->target, target) != 0)
			continue;
		/* Named twice: the wider grant holds, since both were asked for. */
		if (write && !other->write) {
			other->write = true;
			other->layer = layer;
			other->why = why;
		}
		return 0;
	}
	enum { MAX = PLAN_GRANTS_MAX - PLAN_LAYERS_MAX - 2 }; /* of a session: home and /tmp */
	if (builder->grant_count >= MAX)
		return build_refuse(builder, ERR_unsupported, NULL, "more than %d grants", MAX);
	struct build_grant *grant = arena_push(
		&builder->plan->arena, &builder->grants, &builder->grant_count, sizeof *grant);
	grant->target = target;
	grant->fact = fact;
	grant->write = write;
	grant->layer = layer;
	grant->why = why;
	return 0;
}

/*
 * Many programs write a file by renaming a new one over it, and nothing can be renamed over a
 * mount: better said here than by EBUSY in the middle of their work.
 */
static int refuse_file(struct builder *builder, const struct policy_path *grant)
{
	struct arena *arena = &builder->plan->arena;
	const char *slash = strrchr(grant->path, '/');
	const char *dir = arena_strndup(
		arena, grant->path, slash > grant->path ? (size_t)(slash - grant->path) : 1);
	build_refuse(builder, ERR_file_grant_not_replaceable, &grant->at,
		"'%s' is a single file: inside of the box it could be written, but not replaced",
		grant->given);
	return err_hint_set(
		builder->err, "grant a directory that holds no more than this: %s", dir);
}

static int add_list(
	struct builder *builder, const struct policy_path *list, size_t count, bool write)
{
	for (size_t i = 0; i < count; i++) {
		const struct host_path *fact = host_find(builder->host, list[i].path);
		if (!fact)
			return build_refuse(builder, ERR_internal, &list[i].at,
				"'%s' was not probed", list[i].path);
		if (check_grant(builder, fact, list[i].given, list[i].dangerous, &list[i].at) < 0)
			return -1;
		if (write && check_own(builder, fact->path, list[i].given, list[i].dangerous,
				     &list[i].at) < 0)
			return -1;
		if (write && S_ISREG(fact->mode))
			return refuse_file(builder, &list[i]);
		const char *why = build_why(
			builder, write ? "filesystem.write" : "filesystem.read", &list[i].at);
		if (build_add_grant(builder, fact, write, -1, why) < 0)
			return -1;
		if (list[i].dangerous)
			build_warn(builder, "dangerous_grant",
				arena_printf(&builder->plan->arena,
					"'%s' is granted although it is dangerous: %s",
					list[i].path, why));
	}
	return 0;
}

static int add_workspace(struct builder *builder)
{
	const struct policy *policy = builder->policy;
	const struct request *request = builder->request;
	struct plan *plan = builder->plan;
	plan->workspace = "none";
	if (policy->fs.workspace == WORKSPACE_NONE)
		return 0;
	const char *path = request->workspace;
	const char *unfit = places_not_workspace(path, builder->host->home);
	if (unfit && (request->workspace_given || policy->fs.workspace == WORKSPACE_WRITE)) {
		build_refuse(builder, ERR_dangerous_grant, NULL,
			"'%s' cannot be a workspace: it is %s", path, unfit);
		return err_hint_set(builder->err, "-C names a directory that holds only the work");
	}
	if (unfit) {
		build_warn(builder, "workspace_skipped",
			arena_printf(&plan->arena,
				"the current directory '%s' is %s and is not shown; -C DIR names a "
				"workspace",
				path, unfit));
		return 0;
	}
	const struct host_path *fact = host_find(builder->host, path);
	if (!fact || fact->errnum || fact->link || fact->through_link || !S_ISDIR(fact->mode))
		return build_refuse(builder, ERR_workspace_not_found, NULL,
			"the workspace '%s' does not exist or is not a directory", path);
	/* What is written to a layer of one's own may be applied later. */
	if (policy->fs.workspace != WORKSPACE_READ &&
		check_own(builder, fact->path, path, false, &policy->fs.workspace_at) < 0)
		return -1;
	static const char *const words[] = {
		[WORKSPACE_READ] = "filesystem.workspace: read",
		[WORKSPACE_WRITE] = "filesystem.workspace: write",
		[WORKSPACE_OVERLAY] = "filesystem.workspace: overlay",
	};
	const char *why = build_why(builder, words[policy->fs.workspace], &policy->fs.workspace_at);
	bool layered = policy->fs.workspace == WORKSPACE_OVERLAY;
	if (layered && builder->request->session && build_copies(builder)) {
		build_refuse(builder, ERR_overlay_unsupported, &policy->fs.backend_at,
			"a session's workspace cannot be a copy: it would be made anew for each "
			"command");
		return err_hint_set(builder->err, "filesystem: {backend: overlay}");
	}
	int layer = layered ? build_layer(builder, fact->path, why) : -1;
	plan->workspace = !layered ? "bind" : builder->layers[layer].copy ? "copy" : "overlay";
	builder->workspace_shown = true;
	return build_add_grant(
		builder, fact, layered || policy->fs.workspace == WORKSPACE_WRITE, layer, why);
}

static int by_depth(const void *left, const void *right)
{
	const struct build_grant *a = left, *b = right;
	int diff = depth(a->target) - depth(b->target);
	return diff ? diff : strcmp(a->target, b->target);
}

int build_grant_points(struct builder *builder)
{
	const struct policy *policy = builder->policy;
	/* The policy's own word, or the session's: what is on disk is not held, and that is said.
	 */
	if (builder->request->layers_dir)
		build_not_enforced(builder, "limits.disk");
	if (add_list(builder, policy->fs.read, policy->fs.read_count, false) < 0 ||
		add_list(builder, policy->fs.write, policy->fs.write_count, true) < 0 ||
		add_workspace(builder) < 0 || build_gitdir(builder) < 0 ||
		build_nested(builder) < 0)
		return -1;
	if (builder->grant_count > 1)
		qsort(builder->grants, builder->grant_count, sizeof *builder->grants, by_depth);
	for (size_t i = 0; i < builder->grant_count; i++) {
		struct build_grant *grant = &builder->grants[i];
		grant->under = build_shown_by(builder, grant->target) != NULL;
		for (size_t k = 0; k < i && !grant->under; k++)
			grant->under = build_lies_in(grant->target, builder->grants[k].target);
		if (!grant->under && build_in_session(builder, grant->target)) {
			grant->under = grant->point = true;
			continue;
		}
		if (grant->under)
			continue;
		build_parents(builder, grant->target);
		bool dir = S_ISDIR(grant->fact->mode);
		struct plan_op *op =
			build_op(builder, dir ? OP_DIR : OP_FILE, grant->target, "mount point");
		op->mode = dir ? S_IFDIR | 0755 : S_IFREG | 0644;
		op->data = "";
	}
	build_layer_points(builder);
	return 0;
}

static void mount_grant(struct builder *builder, const struct build_grant *grant)
{
	struct plan_op *op =
		build_op(builder, grant->layer < 0 ? OP_BIND : OP_LAYER, grant->target, grant->why);
	mode_t mode = grant->fact->mode;
	op->source = grant->fact->path;
	op->mode = mode & S_IFMT;
	op->owner = grant->fact->uid;
	op->group = grant->fact->gid;
	op->layer = grant->layer;
	/* overlayfs takes no tree with mounts in it. */
	bool alone = grant->layer >= 0 && !builder->layers[grant->layer].copy;
	op->flags = OPF_GRANT | (S_ISDIR(mode) && !alone ? OPF_RECURSIVE : 0) |
		    (grant->write ? 0 : OPF_READONLY) | (grant->nested ? OPF_OPTIONAL : 0) |
		    (grant->under ? OPF_UNDER_GRANT : 0) |
		    (S_ISCHR(mode) || S_ISBLK(mode) ? OPF_DEVICE : 0);
}

const struct host_match *build_hidden_by(const struct builder *builder, const char *path)
{
	const struct host *host = builder->host;
	for (size_t i = 0; i < host->hidden_count; i++) {
		const char *hidden = host->hidden[i].path;
		if (strcmp(path, hidden) == 0 || build_lies_in(path, hidden))
			return &host->hidden[i];
	}
	return NULL;
}

bool build_covers_own(const struct builder *builder)
{
	const struct policy *policy = builder->policy;
	bool holds;
	for (size_t i = 0; i < policy->fs.write_count; i++)
		if (policy->fs.write[i].dangerous &&
			host_own_find(builder->host, policy->fs.write[i].path, &holds))
			return true;
	return false;
}

/* A protected path that is not there cannot be held in a tree that the box writes directly. */
static int check_missing(struct builder *builder)
{
	for (size_t i = 0; i < builder->host->missing_count; i++) {
		const struct host_missing *missing = &builder->host->missing[i];
		const struct build_grant *grant = build_grant_of(builder, missing->tree + 1);
		if (!grant || !grant->write || grant->layer >= 0)
			continue;
		return build_refuse(builder, ERR_protect_missing, &missing->pattern->at,
			"'%s' is to be protected, but nothing of that name is in '%s', which is "
			"written directly: "
			"the box could make it",
			missing->pattern->pattern, missing->tree);
	}
	return 0;
}

/* Patterns that can match anywhere hold what is there now; the box may make another of the name. */
static void warn_of_patterns(struct builder *builder)
{
	bool written = false;
	for (size_t i = 0; i < builder->grant_count; i++)
		written |= builder->grants[i].write && builder->grants[i].layer < 0;
	for (size_t i = 0; written && i < builder->policy->fs.protect_count; i++) {
		const struct policy_pattern *pattern = &builder->policy->fs.protect[i];
		if (pattern->literal && strchr(pattern->pattern, '/'))
			continue;
		build_warn(builder, "protect_existing_only",
			arena_printf(&builder->plan->arena,
				"'%s' protects what is there now; in a tree that is written "
				"directly the box may make others",
				pattern->pattern));
	}
}

/* What is hidden is decided when the box is made; the result says so where that can matter. */
static void warn_of_hiding(struct builder *builder)
{
	const struct policy *policy = builder->policy;
	for (size_t i = 0; i < policy->fs.hide_count; i++) {
		const struct policy_pattern *pattern = &policy->fs.hide[i];
		if (pattern->literal && strchr(pattern->pattern, '/'))
			continue;
		build_warn(builder, "hide_existing_only",
			"patterns of filesystem.hide cover what is there when the box is made, not "
			"a file "
			"that the host makes or replaces while it runs");
		return;
	}
}

/*
 * A read-only grant inside a written one: its parents are held, or the box could rename one and
 * write what is in it in the next run.
 */
static void hold_nested(struct builder *builder)
{
	for (size_t i = 0; i < builder->grant_count; i++) {
		const struct build_grant *inner = &builder->grants[i];
		const struct build_grant *outer = NULL;
		for (size_t k = 0; k < i; k++)
			if (build_lies_in(inner->target, builder->grants[k].target))
				outer = &builder->grants[k];
		/* What is renamed in a layer stays where it is on the host. */
		if (outer && outer->write && !inner->write && !inner->nested)
			build_hold_parents(builder, outer, inner->target, inner->why);
	}
}

int build_grants(struct builder *builder)
{
	const struct host *host = builder->host;
	build_layer_dirs(builder);
	for (size_t i = 0; i < builder->grant_count; i++) {
		const struct build_grant *grant = &builder->grants[i];
		if (grant->point)
			build_session_points(builder, grant->target, S_ISDIR(grant->fact->mode));
		mount_grant(builder, grant);
	}
	build_layer_cover(builder);
	hold_nested(builder);
	if (check_missing(builder) < 0)
		return -1;
	warn_of_patterns(builder);
	warn_of_hiding(builder);
	for (size_t i = 0; i < host->protected_count; i++)
		build_protect(builder, &host->protected[i]);
	for (size_t i = 0; i < host->hidden_count; i++)
		build_hide(builder, &host->hidden[i]);
	build_layer_sort(builder);
	build_cover_own(builder);
	return 0;
}
