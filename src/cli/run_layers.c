/*
 * run_layers: what a command wrote through private layers, listed once it has ended. Reads what the
 * command left by descriptor and follows nothing of it.
 */
#define _GNU_SOURCE
#include "cli/run_layers.h"
#include "base/fd.h"
#include "base/sys.h"
#include "policy/policy.h"

#include <fcntl.h>
#include <time.h>

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

void run_layers_begin(struct run_layers *layers, const struct policy *policy, struct arena *arena)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	layers->started_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
	layers->rules.held = texts(arena, policy->fs.hide, policy->fs.hide_count,
		policy->fs.protect, policy->fs.protect_count);
	layers->rules.sensitive =
		texts(arena, policy->fs.sensitive, policy->fs.sensitive_count, NULL, 0);
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
}
