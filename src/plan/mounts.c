/*
 * mounts: the box's file system as a list of operations. First everything that is the same for
 * every box and read-only, then the seal, then what is private and writable, then what the policy
 * grants, and last what it hides and protects (mounts_grants.c).
 *
 * Paths inside are those of the host. The root is one tmpfs; what is writable are windows on its
 * directories, so that one size holds for all of them.
 */
#define _GNU_SOURCE
#include "plan/build.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct plan_op *build_op(
	struct builder *builder, enum plan_op_kind kind, const char *target, const char *why)
{
	struct plan_op *op = arena_push(
		&builder->plan->arena, &builder->ops, &builder->plan->op_count, sizeof *op);
	op->kind = kind;
	op->target = target;
	op->why = why;
	return op;
}

static void make_dir(struct builder *builder, const char *target, mode_t mode)
{
	for (size_t i = 0; i < builder->plan->op_count; i++)
		if (builder->ops[i].kind == OP_DIR && strcmp(builder->ops[i].target, target) == 0)
			return;
	struct plan_op *op = build_op(builder, OP_DIR, target, "made");
	op->mode = S_IFDIR | mode;
}

void build_parents(struct builder *builder, const char *target)
{
	struct arena *arena = &builder->plan->arena;
	for (const char *slash = strchr(target, '/'); slash; slash = strchr(slash + 1, '/'))
		make_dir(builder, arena_strndup(arena, target, (size_t)(slash - target)), 0755);
}

const struct plan_op *build_shown_by(const struct builder *builder, const char *target)
{
	const struct plan_op *best = NULL;
	size_t best_len = 0;
	for (size_t i = 0; i < builder->plan->op_count; i++) {
		const struct plan_op *op = &builder->ops[i];
		if (op->kind != OP_BIND || (op->flags & OPF_DEVICE))
			continue;
		size_t len = strlen(op->target);
		if (strncmp(op->target, target, len) != 0)
			continue;
		if ((target[len] == 0 || target[len] == '/') && (!best || len >= best_len)) {
			best = op;
			best_len = len;
		}
	}
	return best;
}

static void link_to(struct builder *builder, const char *target, const char *text, const char *why)
{
	build_op(builder, OP_LINK, target, why)->source = text;
}

/* The host's (or the root directory's) own trees: directories bound, links made again. */
static void show_top(struct builder *builder)
{
	const struct host *host = builder->host;
	for (size_t i = 0; i < host->top_count; i++) {
		const struct host_path *fact = &host->top[i];
		const char *name = strrchr(fact->path, '/') + 1;
		if (fact->errnum)
			continue;
		if (fact->link) {
			link_to(builder, name, fact->link, "system");
		} else if (S_ISDIR(fact->mode)) {
			make_dir(builder, name, 0755);
			struct plan_op *op = build_op(builder, OP_BIND, name, "system");
			op->source = fact->path;
			op->mode = S_IFDIR;
			op->flags = OPF_RECURSIVE;
		}
	}
}

static const char *const nodes[] = { "dev/null", "dev/zero", "dev/full", "dev/urandom", "dev/tty" };

/* Device nodes are the host's own, bound: a user namespace cannot make any. */
static void show_devices(struct builder *builder)
{
	for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
		struct plan_op *op = build_op(builder, OP_BIND, nodes[i], "device");
		op->source = arena_join(&builder->plan->arena, "/", nodes[i], "");
		op->mode = S_IFCHR;
		/* The mount is read-only, so that the host's node keeps its times; the device is
		 * not. */
		op->flags = OPF_DEVICE | OPF_NOEXEC | OPF_READONLY;
	}
}

static void place(
	struct builder *builder, const char *target, mode_t mode, const char *data, size_t len)
{
	struct plan_op *op = build_op(builder, OP_FILE, target, "made");
	op->mode = S_IFREG | mode;
	op->data = data;
	op->len = len;
}

static bool in_dev(const char *path)
{
	return strncmp(path, "/dev/", 5) == 0;
}

/* Is anything of the host's shown below /dev, so that there must be a place for it? */
static bool dev_has_grants(const struct builder *builder)
{
	const struct policy *policy = builder->policy;
	bool found = in_dev(builder->request->workspace) || in_dev(builder->host->home);
	for (size_t i = 0; i < policy->fs.read_count; i++)
		found |= in_dev(policy->fs.read[i].path);
	for (size_t i = 0; i < policy->fs.write_count; i++)
		found |= in_dev(policy->fs.write[i].path);
	return found;
}

/*
 * The directory that was installed with agentbox has what make_dev() makes. /dev/shm, which is
 * written, is a window on another directory then.
 */
static void show_ready_dev(struct builder *builder)
{
	make_dir(builder, "dev", 0755);
	make_dir(builder, "run", 0755);
	make_dir(builder, "run/shm", 01777);
	struct plan_op *op = build_op(builder, OP_BIND, "dev", "made");
	op->source = AGENTBOX_DEVDIR;
	op->mode = S_IFDIR;
}

static void make_dev(struct builder *builder)
{
	builder->ready_dev = builder->host->ready_dev && !dev_has_grants(builder);
	if (builder->ready_dev) {
		show_ready_dev(builder);
		return;
	}
	make_dir(builder, "dev", 0755);
	make_dir(builder, "dev/pts", 0755);
	make_dir(builder, "dev/shm", 01777);
	for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
		place(builder, nodes[i], 0666, "", 0);
	/* Once the kernel's generator is seeded, the two are the same (random(4)): one mount less.
	 */
	link_to(builder, "dev/random", "urandom", "made");
	link_to(builder, "dev/fd", "/proc/self/fd", "made");
	link_to(builder, "dev/stdin", "/proc/self/fd/0", "made");
	link_to(builder, "dev/stdout", "/proc/self/fd/1", "made");
	link_to(builder, "dev/stderr", "/proc/self/fd/2", "made");
	link_to(builder, "dev/ptmx", "pts/ptmx", "made");
}

/* What masks show (see box/stage_mounts.c), and a snippet's file. */
static void make_run(struct builder *builder)
{
	const struct request *request = builder->request;
	bool masks = builder->host->hidden_count || build_covers_own(builder) ||
		     builder->policy->fs.workspace == WORKSPACE_OVERLAY;
	make_dir(builder, "run", 0755);
	if (masks || request->code_path)
		make_dir(builder, "run/agentbox", 0755);
	if (masks) {
		place(builder, "run/agentbox/hidden", 0, "", 0);
		make_dir(builder, "run/agentbox/hidden.d", 0);
	}
	if (request->code_path)
		place(builder, arena_strdup(&builder->plan->arena, request->code_path + 1), 0444,
			arena_strndup(&builder->plan->arena, request->code, request->code_len),
			request->code_len);
}

/* Is there an operation for this very name already? */
static bool taken(const struct builder *builder, const char *target)
{
	for (size_t i = 0; i < builder->plan->op_count; i++)
		if (strcmp(builder->ops[i].target, target) == 0)
			return true;
	return false;
}

/*
 * Nothing may be made below a name that is a link: in a root directory of the caller's it could
 * lead anywhere. (The host's own top has links only where directories of the box never are.)
 */
static int refuse_below_links(struct builder *builder)
{
	for (size_t i = 0; i < builder->plan->op_count; i++) {
		const struct plan_op *link = &builder->ops[i];
		size_t len = strlen(link->target);
		for (size_t k = 0; link->kind == OP_LINK && k < builder->plan->op_count; k++) {
			const struct plan_op *op = &builder->ops[k];
			if (k == i || strncmp(op->target, link->target, len) != 0 ||
				(op->target[len] != '/' && op->target[len] != 0))
				continue;
			return build_refuse(builder, ERR_unsupported, &builder->policy->fs.root_at,
				"'/%s' is needed in the box, but the root directory has a symbolic "
				"link at '/%s'",
				op->target, link->target);
		}
	}
	return 0;
}

/*
 * Where a v1 hierarchy is shown: by its first controller. In a struct plan_op's form, or NULL past
 * the last one; v2 has one place.
 */
static const char *cgroup_target(struct builder *builder, size_t index)
{
	const struct plan_cgroup *cgroup = &builder->plan->cgroup;
	struct arena *arena = &builder->plan->arena;
	if (cgroup->kind == CGROUP_NONE || index >= cgroup->count)
		return NULL;
	if (cgroup->kind == CGROUP_V2)
		return "sys/fs/cgroup";
	const char *all = cgroup->controllers[index];
	return arena_join(
		arena, "sys/fs/cgroup/", arena_strndup(arena, all, strcspn(all, ",")), "");
}

/* Of v1 only what programs size themselves by: each mount costs as much as making a group. */
static bool is_shown(const struct plan_cgroup *cgroup, size_t index)
{
	return cgroup->kind == CGROUP_V2 || index == 0 || (int)index == cgroup->memory ||
	       (int)index == cgroup->cpu;
}

static void make_cgroup(struct builder *builder)
{
	const char *target;
	for (size_t i = 0; (target = cgroup_target(builder, i)); i++) {
		if (!is_shown(&builder->plan->cgroup, i))
			continue;
		build_parents(builder, target);
		make_dir(builder, target, 0555);
	}
}

static void show_cgroup(struct builder *builder)
{
	const char *target;
	for (size_t i = 0; (target = cgroup_target(builder, i)); i++) {
		if (!is_shown(&builder->plan->cgroup, i))
			continue;
		struct plan_op *op = build_op(builder, OP_CGROUP, target, "private");
		op->source = builder->plan->cgroup.controllers[i];
		op->flags = OPF_READONLY | OPF_NOEXEC;
	}
}

static void make_skeleton(struct builder *builder)
{
	show_top(builder);
	if (builder->policy->fs.root == ROOT_HOST)
		build_etc(builder);
	make_dev(builder);
	make_run(builder);
	make_dir(builder, "proc", 0555);
	make_cgroup(builder);
	make_dir(builder, "tmp", 01777);
	if (!taken(builder, "var")) {
		make_dir(builder, "var", 0755);
		link_to(builder, "var/tmp", "/tmp", "made");
	}
}

/* A writable window on a directory of the box's own tmpfs. */
static void window(struct builder *builder, const char *source, const char *target, const char *why)
{
	struct plan_op *op = build_op(builder, OP_INSIDE, target, why);
	op->source = source;
	op->mode = S_IFDIR;
}

static int build_home(struct builder *builder, const char **ret_home)
{
	*ret_home = NULL;
	if (builder->policy->fs.home == HOME_NONE)
		return 0;
	const char *home = builder->host->home + 1;
	if (build_shown_by(builder, home))
		return build_refuse(builder, ERR_unsupported, &builder->policy->fs.home_at,
			"the home directory '/%s' lies in a system directory; say home: none",
			home);
	*ret_home = home;
	if (build_in_session(builder, home))
		return 0;
	build_parents(builder, home);
	make_dir(builder, home, 0700);
	return 0;
}

/*
 * What lies in the tmpfs is counted as the box's memory. With half of that at most, a command that
 * fills the disk is told so (ENOSPC) and not killed for its memory.
 */
static void build_root(struct builder *builder)
{
	struct plan *plan = builder->plan;
	uint64_t disk = builder->policy->limits.disk.value, half = plan->cgroup.memory_max / 2;
	plan->root_size = disk ? disk : (uint64_t)512 << 20;
	bool halved = half && half < plan->root_size;
	if (halved)
		plan->root_size = half / 4096 * 4096;
	/*
	 * An inode costs the kernel about a kilobyte: their number is bounded with the bytes. The
	 * box itself needs some hundred, and one for each name that a layer begins without.
	 */
	uint64_t inodes = plan->root_size / 4096, least = halved ? 1024 : 4096;
	inodes = inodes < least ? least : inodes > 1000000 ? 1000000 : inodes;
	inodes += build_layer_inodes(builder);
	struct plan_option *options = ARENA_ARRAY(&plan->arena, 4, struct plan_option);
	options[0] = (struct plan_option){ "mode", "0755" };
	options[1] = (struct plan_option){ "size",
		arena_printf(&plan->arena, "%llu", (unsigned long long)plan->root_size) };
	options[2] = (struct plan_option){ "nr_inodes",
		arena_printf(&plan->arena, "%llu", (unsigned long long)inodes) };
	plan->root_options = options;
}

/* The directory of the session's that the target lies in, without the leading "/"; or NULL. */
static const char *session_above(const struct builder *builder, const char *target)
{
	const char *home = builder->host->home + 1;
	size_t len = strlen(home);
	if (!builder->request->session)
		return NULL;
	if (builder->policy->fs.home != HOME_NONE && strncmp(target, home, len) == 0 &&
		target[len] == '/')
		return home;
	return strncmp(target, "tmp/", 4) == 0 ? "tmp" : NULL;
}

bool build_in_session(const struct builder *builder, const char *target)
{
	return session_above(builder, target) != NULL;
}

void build_session_points(struct builder *builder, const char *target, bool dir)
{
	struct arena *arena = &builder->plan->arena;
	const char *slash = target + strlen(session_above(builder, target));
	while (*slash) {
		slash = strchrnul(slash + 1, '/');
		bool whole = !*slash;
		struct plan_op *op = build_op(builder, whole && !dir ? OP_FILE : OP_DIR,
			arena_strndup(arena, target, (size_t)(slash - target)), "mount point");
		op->mode = whole && !dir ? S_IFREG | 0644 : S_IFDIR | 0755;
		op->data = "";
		op->flags = OPF_UNDER_GRANT;
	}
}

/* A session's own directory of the host in the place of a window. */
static void session_dir(
	struct builder *builder, const char *name, const char *target, const char *why)
{
	const struct request *request = builder->request;
	bool inside = build_in_session(builder, target);
	if (inside)
		build_session_points(builder, target, true);
	struct plan_op *op = build_op(builder, OP_BIND, target, why);
	op->source = arena_join(&builder->plan->arena, builder->request->layers_dir, "/", name);
	op->mode = S_IFDIR;
	op->owner = request->layers_uid;
	op->group = request->layers_gid;
	op->flags = OPF_GRANT | (inside ? OPF_UNDER_GRANT : 0);
}

/* What the box alone writes: gone with it, or kept with its session. */
static void show_own(struct builder *builder, const char *name, const char *target, const char *why)
{
	if (builder->request->session)
		session_dir(builder, name, target, why);
	else
		window(builder, target, target, why);
}

/* The trees that are opened for the box as root are numbered in the order in which they are used.
 */
static void number_trees(struct builder *builder)
{
	int count = 0;
	for (size_t i = 0; i < builder->plan->op_count; i++)
		if (plan_op_grants(&builder->ops[i]))
			builder->ops[i].tree = count++;
}

static void show_private(struct builder *builder, const char *home)
{
	build_op(builder, OP_SEAL, "", "read-only from here on");
	show_devices(builder);
	build_op(builder, OP_DEVPTS, "dev/pts", "private");
	build_op(builder, OP_PROC, "proc", "private");
	show_cgroup(builder);
	show_own(builder, "tmp", "tmp", "private");
	window(builder, builder->ready_dev ? "run/shm" : "dev/shm", "dev/shm", "private");
	if (home)
		show_own(builder, "home", home,
			build_why(builder, "filesystem.home", &builder->policy->fs.home_at));
}

/* filesystem.root: DIR is a grant like any other, but of a directory. */
static int check_root(struct builder *builder)
{
	const struct policy *policy = builder->policy;
	if (policy->fs.root == ROOT_HOST)
		return 0;
	const struct host_path *fact = host_find(builder->host, policy->fs.root_dir);
	if (!fact || fact->errnum)
		return build_refuse(builder, ERR_grant_not_found, &policy->fs.root_at,
			"the root directory '%s' does not exist or cannot be reached",
			policy->fs.root_dir);
	if (fact->link || fact->through_link) {
		build_refuse(builder, ERR_grant_is_symlink, &policy->fs.root_at,
			"the root directory '%s' is a symbolic link or passes through one; it "
			"leads to "
			"'%s'",
			policy->fs.root_dir, fact->real ? fact->real : "nowhere");
		return fact->real ? err_hint_set(builder->err, "root: %s", fact->real) : -1;
	}
	if (!S_ISDIR(fact->mode))
		return build_refuse(builder, ERR_grant_not_found, &policy->fs.root_at,
			"the root '%s' is not a directory", policy->fs.root_dir);
	return 0;
}

int build_mounts(struct builder *builder)
{
	const char *home;
	if (check_root(builder) < 0)
		return -1;
	make_skeleton(builder);
	/* The points on which grants are mounted are made before the seal, the grants after it. */
	if (build_home(builder, &home) < 0 || build_grant_points(builder) < 0)
		return -1;
	show_private(builder, home);
	if (build_grants(builder) < 0 || refuse_below_links(builder) < 0)
		return -1;
	number_trees(builder);
	build_root(builder);
	if (builder->plan->op_count > PLAN_OPS_MAX)
		return build_refuse(builder, ERR_too_many_matches, NULL,
			"the box's file system would have %zu parts; at most %d are possible",
			builder->plan->op_count, PLAN_OPS_MAX);
	return 0;
}
