/*
 * mounts_git: a workspace that is a linked git worktree keeps its index and all objects in a
 * repository elsewhere, and without that no git command works in it. With a private layer the
 * repository has one as well, so nothing is written there; otherwise a warning says what to grant.
 */
#define _GNU_SOURCE
#include "plan/build.h"

#include <sys/stat.h>

static bool within(const char *path, const char *tree)
{
	return strcmp(path, tree) == 0 || build_lies_in(path, tree);
}

/* Does a grant show the directory, `written`: to be written? */
static bool granted(const struct builder *builder, const char *dir, bool written)
{
	for (size_t i = 0; i < builder->grant_count; i++)
		if (within(dir + 1, builder->grants[i].target) &&
			(!written || builder->grants[i].write))
			return true;
	return false;
}

/* Whoever hides ".git" itself wants none of it. */
static bool unwanted(struct builder *builder)
{
	const char *name =
		arena_join(&builder->plan->arena, builder->request->workspace, "/.git", "");
	return build_hidden_by(builder, name) != NULL;
}

static int refuse(struct builder *builder, const char *dir, const struct host_match *hidden)
{
	build_refuse(builder, ERR_gitdir_outside_workspace, &hidden->pattern->at,
		"the workspace is a worktree of the repository '%s', which filesystem.hide covers",
		dir);
	return err_hint_set(builder->err, "hide '.git' as well, or not '%s'", hidden->path);
}

static void warn(struct builder *builder, const struct host_git *git)
{
	struct arena *arena = &builder->plan->arena;
	build_warn(builder, "gitdir_not_shown",
		git->common ? arena_printf(arena,
				      "the workspace is a worktree of the repository '%s', which "
				      "is not granted: filesystem: {write: [%s]}",
				      git->common, git->common)
			    : arena_printf(arena,
				      "the workspace's .git names '%s', which is not shown, since "
				      "it is no repository that names this workspace as its "
				      "worktree",
				      git->admin));
}

int build_gitdir(struct builder *builder)
{
	const struct host_git *git = &builder->host->git;
	bool layered = builder->policy->fs.workspace == WORKSPACE_OVERLAY;
	bool written = layered || builder->policy->fs.workspace == WORKSPACE_WRITE;
	if (!builder->workspace_shown || !written || !git->admin || unwanted(builder))
		return 0;
	const char *dir = git->common ? git->common : git->admin;
	bool shown = layered && git->common && !build_reserved(dir + 1);
	if (granted(builder, dir, shown))
		return 0;
	if (!shown) {
		warn(builder, git);
		return 0;
	}
	const struct host_match *hidden = build_hidden_by(builder, git->admin);
	if (hidden)
		return refuse(builder, dir, hidden);
	const struct host_path *fact = host_find(builder->host, dir);
	if (!fact || fact->errnum || !S_ISDIR(fact->mode))
		return build_refuse(builder, ERR_sources_changed, NULL,
			"'%s', the workspace's repository, is gone", dir);
	const char *why = "the worktree's repository";
	return build_add_grant(builder, fact, true, build_layer(builder, dir, why), why);
}
