/*
 * mounts_nested: what the host has mounted inside of a tree that is shown through a layer.
 * overlayfs takes one file system, and a copy stays in it, so these are shown at their places by
 * themselves, and cannot be written: a write there would be on the host.
 */
#define _GNU_SOURCE
#include "plan/build.h"

#include <sys/stat.h>

#define NESTED_MAX 32

/* The layer's tree that shows the place at last, or NULL: something else was granted there. */
static const struct build_grant *layer_of(const struct builder *builder, const char *path)
{
	const struct build_grant *found = NULL;
	for (size_t i = 0; i < builder->grant_count; i++) {
		const struct build_grant *grant = &builder->grants[i];
		if (strcmp(path + 1, grant->target) == 0)
			return NULL;
		if (build_lies_in(path + 1, grant->target) &&
			(!found || strlen(grant->target) > strlen(found->target)))
			found = grant;
	}
	return found && found->layer >= 0 ? found : NULL;
}

static void warn(struct builder *builder, const char *code, const char *path, const char *what)
{
	build_warn(builder, code,
		arena_printf(&builder->plan->arena, "'%s' is mounted in the workspace, and %s",
			path, what));
}

static int show(struct builder *builder, const struct host_mount *mount)
{
	const struct host_path *fact = host_find(builder->host, mount->path);
	const struct build_grant *layer = layer_of(builder, mount->path);
	if (!layer || !fact || fact->errnum || !fact->real || fact->link || fact->through_link ||
		build_hidden_by(builder, mount->path))
		return 0; /* it went away meanwhile, is covered, or is shown by a grant */
	const char *why_not = NULL;
	if (mount->kernels)
		why_not = "is not shown, since it is or holds a file system of the kernel's own";
	else if (!S_ISDIR(fact->mode) && !S_ISREG(fact->mode))
		why_not = "is not shown, since it is neither a file nor a directory";
	else if (builder->host->root && fact->uid != layer->fact->uid)
		why_not = "is not shown, since it belongs to another user";
	if (why_not) {
		warn(builder, "nested_mount_not_shown", mount->path, why_not);
		return 0;
	}
	warn(builder, "nested_mount_readonly", mount->path,
		"is shown read-only, since no layer covers it");
	int r = build_add_grant(builder, fact, false, -1, "mounted in the workspace");
	if (r == 0)
		builder->grants[builder->grant_count - 1].nested = true;
	return r;
}

int build_nested(struct builder *builder)
{
	const struct host *host = builder->host;
	if (builder->plan->layer_count == 0 || !host->mount_count)
		return 0;
	if (host->mount_count > NESTED_MAX)
		return build_refuse(builder, ERR_unsupported, &builder->policy->fs.workspace_at,
			"there are more than %d mounts in the workspace ('%s' and others), which "
			"no "
			"layer covers",
			NESTED_MAX, host->mounts[0].path);
	for (size_t i = 0; i < host->mount_count; i++)
		if (show(builder, &host->mounts[i]) < 0)
			return -1;
	return 0;
}
