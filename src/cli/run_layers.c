/*
 * run_layers: what a command wrote through private layers, listed once it has ended. Reads what the
 * command left by descriptor and follows nothing of it.
 */
#define _GNU_SOURCE
#include "cli/run_layers.h"
#include "base/fd.h"
#include "base/sys.h"
#include "policy/policy.h"

#include "workspace/kept.h"
#include "workspace/session_layers.h"
#include "workspace/state.h"
#include "workspace/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SCRATCH     "scratch" /* below the state directory: one directory a run */
#define COLLECT_MAX 64

/* Remove a directory that is open and locked. 0 or -errno. */
static int remove_dir(int parent, int dir, const char *name)
{
	struct tree_report report;
	int r = tree_clear(dir, &report);
	return r == 0 && unlinkat(parent, name, AT_REMOVEDIR) < 0 ? -errno : r;
}

static const char *const *texts(struct arena *arena, const struct policy_pattern *a, size_t a_count,
	const struct policy_pattern *b, size_t b_count)
{
	const char **list = ARENA_ARRAY(arena, a_count + b_count + 1, const char *);
	for (size_t i = 0; i < a_count; i++)
		list[i] = a[i].pattern;
	for (size_t i = 0; i < b_count; i++)
		list[a_count + i] = b[i].pattern;
	return list;
}

/* As root a directory is the owner's as whom the box acts. 0 or -errno. */
static int own(int dir, const struct request *request)
{
	if (geteuid() != 0 || (request->layers_uid == 0 && request->layers_gid == 0))
		return 0;
	return fchown(dir, request->layers_uid, request->layers_gid) < 0 ? -errno : 0;
}

static int layer_dirs(int dir, const char *name, const struct request *request)
{
	static const char *const parts[] = { "upper", "work" };
	if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	AUTO_FD layer = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (layer < 0)
		return -errno;
	int r = own(layer, request);
	for (size_t i = 0; r == 0 && i < sizeof parts / sizeof *parts; i++) {
		if (mkdirat(layer, parts[i], 0700) < 0 && errno != EEXIST)
			return -errno;
		AUTO_FD part =
			openat(layer, parts[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = part < 0 ? -errno : own(part, request);
	}
	return r;
}

/* A run's directory is locked as long as it lives: one that can be locked is a dead run's. */
static int lock(int scratch, const char *name)
{
	int fd = openat(scratch, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd < 0 ? -errno : fd;
	int r = -errno;
	close(fd);
	return r;
}

int run_layers_place(struct run_layers *layers, const struct policy *policy,
	struct request *request, struct result *result, struct err *err)
{
	if (policy->fs.workspace != WORKSPACE_OVERLAY || policy->fs.scratch != SCRATCH_DISK ||
		request->layers_dir)
		return 0;
	const char *state = state_path(&result->arena);
	struct stat st;
	if (stat(request->workspace, &st) == 0) {
		request->layers_uid = st.st_uid;
		request->layers_gid = st.st_gid;
	}
	AUTO_FD scratch = state_open(state, SCRATCH, true, err);
	if (scratch < 0)
		return -1;
	int r = mkdirat(scratch, result->id, 0700) < 0 ? -errno : 0;
	layers->scratch = r == 0;
	int fd = r == 0 ? lock(scratch, result->id) : r;
	if (fd < 0)
		return err_set(err, ERR_state_unusable, -fd,
			"'%s/" SCRATCH "/%s' cannot be made: %s", state, result->id, strerror(-fd));
	layers->dir = fd;
	layers->id = result->id;
	request->layers_dir = arena_printf(&result->arena, "%s/" SCRATCH "/%s", state, result->id);
	return 0;
}

/* A layer holds what was written through it over one tree, and only over that one it may lie. */
static int note_roots(const struct plan *plan, const struct request *request, struct err *err)
{
	const char *roots[PLAN_LAYERS_MAX];
	size_t count = 0;
	for (size_t i = 1; i < plan->layer_count; i++)
		roots[count++] = plan->layers[i].root;
	AUTO_FD dir = open(request->layers_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return err_set(err, ERR_session_broken, errno, "'%s' cannot be opened: %s",
			request->layers_dir, strerror(errno));
	return session_layers_note(dir, roots, count, err);
}

int run_layers_begin(struct run_layers *layers, const struct plan *plan,
	const struct request *request, struct arena *arena, struct err *err)
{
	if (plan->layer_count == 0)
		return 0;
	const struct policy *policy = plan->policy;
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	layers->started_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
	if (request->session && note_roots(plan, request, err) < 0)
		return -1;
	layers->rules.held = texts(arena, policy->fs.hide, policy->fs.hide_count,
		policy->fs.protect, policy->fs.protect_count);
	layers->rules.sensitive =
		texts(arena, policy->fs.sensitive, policy->fs.sensitive_count, NULL, 0);
	for (size_t i = 0; i < plan->layer_count; i++) {
		const char *source = plan->layers[i].source;
		int r = source ? layer_dirs(AT_FDCWD, source, request) : 0;
		if (r < 0)
			return err_set(err, ERR_state_unusable, -r, "'%s' cannot be made: %s",
				source, strerror(-r));
	}
	return 0;
}

static int take(struct run_layers *layers, const struct plan *plan, struct box *box)
{
	for (size_t i = 0; i < box->layer_count; i++) {
		const struct plan_layer *from = &plan->layers[i];
		struct changes_layer *to = &layers->list[layers->count++];
		to->root = from->root;
		to->whole = from->copy;
		to->upper = fd_steal(&box->layers[i]);
		to->lower = sys_openat2(AT_FDCWD, from->root,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
			SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS);
		if (to->lower < 0)
			return to->lower;
	}
	return 0;
}

void run_layers_collect(
	struct run_layers *layers, const struct plan *plan, struct box *box, struct result *result)
{
	struct err err = { 0 };
	int r = box->layer_count ? take(layers, plan, box) : 0;
	if (layers->count == 0 || result->status == STATUS_ERROR)
		return;
	if (r < 0)
		err_set(&err, ERR_workspace_unreadable, -r, "the workspace cannot be opened again");
	else
		r = changes_find(layers->list, layers->count, &layers->rules, CHANGES_MAX,
			&layers->changes, &err);
	if (r < 0) {
		result_warning(result, "changes_unknown", err.text);
		return;
	}
	result->changes = &layers->changes;
	if (layers->changes.left_out)
		result_warning(result, "changes_left_out",
			arena_printf(&result->arena, "%llu more changes are not listed",
				(unsigned long long)layers->changes.left_out));
}

void run_layers_free(struct run_layers *layers)
{
	for (size_t i = 0; i < layers->count; i++) {
		fd_close(&layers->list[i].upper);
		fd_close(&layers->list[i].lower);
	}
	layers->count = 0;
	changes_free(&layers->changes);
	if (!layers->scratch)
		return;
	layers->scratch = false;
	struct arena arena = { 0 };
	struct err err;
	AUTO_FD scratch = state_open(state_path(&arena), SCRATCH, false, &err);
	if (scratch >= 0)
		remove_dir(scratch, layers->dir, layers->id);
	fd_close(&layers->dir);
	arena_free(&arena);
}

static void find(struct runs_findings *findings, const char *state, const char *name, int r)
{
	struct runs_finding *finding =
		arena_push(&findings->arena, &findings->list, &findings->count, sizeof *finding);
	finding->kind = "layer";
	finding->path = arena_printf(&findings->arena, "%s/" SCRATCH "/%s", state, name);
	finding->removed = r == 0;
	finding->reason = r < 0 ? arena_strdup(&findings->arena, strerror(-r)) : NULL;
	findings->left += r < 0;
}

void run_layers_collect_kept(bool dry, struct runs_findings *findings)
{
	const char *state = state_path(&findings->arena);
	for (size_t count = kept_sweep(state, dry); count > 0; count--) {
		struct runs_finding *finding = arena_push(
			&findings->arena, &findings->list, &findings->count, sizeof *finding);
		finding->kind = "layer";
		finding->path = arena_join(&findings->arena, state, "/kept", "");
		finding->removed = true;
	}
}

void run_layers_collect_dead(bool dry, struct runs_findings *findings)
{
	struct err err;
	const char *state = state_path(&findings->arena);
	int scratch = state ? state_open(state, SCRATCH, false, &err) : -1;
	DIR *list = scratch >= 0 ? fdopendir(scratch) : NULL;
	struct dirent *entry;
	for (int count = 0; list && count < COLLECT_MAX && (entry = readdir(list));) {
		if (entry->d_name[0] == '.')
			continue;
		AUTO_FD dir = lock(dirfd(list), entry->d_name);
		if (dir < 0)
			continue; /* it lives */
		find(findings, state, entry->d_name,
			dry ? 0 : remove_dir(dirfd(list), dir, entry->d_name));
		count++;
	}
	if (list)
		closedir(list);
	else
		fd_close(&scratch);
}
