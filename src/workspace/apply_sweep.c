/*
 * apply_sweep: where others moved a directory while apply was at work, what was staged in it is
 * somewhere else now. It is looked for by its name, which nobody else has, in all directories of
 * the tree that can be read: as long as that takes, for nothing else is known of it. It follows no
 * link and enters no mount.
 */
#define _GNU_SOURCE
#include "workspace/apply_work.h"
#include "workspace/tree_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 20

/* The step whose temporary name this is, or NULL. */
static struct record *find_step(const struct apply_work *work, size_t layer, const char *name)
{
	char temp[APPLY_TEMP_MAX];
	const char *number = strrchr(name, '-');
	if (!number)
		return NULL;
	uint64_t seq = strtoull(number + 1, NULL, 10);
	for (size_t i = 0; i < work->count; i++) {
		struct record *step = &work->steps[i];
		if (step->seq != seq || step->change.layer != layer)
			continue;
		apply_temp_name(work, step, temp);
		if (strcmp(temp, name) == 0)
			return step;
	}
	return NULL;
}

static int found(struct apply_work *work, struct record *step, int dir, const char *temp)
{
	const char *slash = strrchr(step->change.path, '/');
	const char *name = slash ? slash + 1 : step->change.path;
	/* While it is staged there is nothing of the host's under such a name. */
	bool staging = step->action != ACTION_DELETE && !step->new_ino;
	int r = staging ? apply_discard(dir, temp, 0) : apply_place_settle(work, step, dir, name);
	step->lost = step->lost && r < 0;
	return r == -ENOENT ? 0 : r;
}

struct sweep {
	struct apply_work *work;
	size_t layer;
	struct tree_walk *walk;
	/* Of each directory on the way down: as in struct dirs. */
	struct owner {
		uid_t uid;
		gid_t gid;
	} * owners;
	size_t room;
};

/* Note who owns the directory that the walk has come to, or one above it. */
static int note_owner(struct sweep *sweep)
{
	size_t depth = sweep->walk->depth;
	struct tree_stat st;
	if (depth >= sweep->room) {
		size_t room = sweep->room ? sweep->room * 2 : 64;
		struct owner *grown = realloc(sweep->owners, room * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		sweep->owners = grown;
		sweep->room = room;
	}
	int r = tree_stat_at(tree_from(sweep->walk), "", &st);
	if (r < 0)
		return r;
	struct owner above = depth ? sweep->owners[depth - 1] : (struct owner){ 0 };
	sweep->owners[depth] = above.uid ? above : (struct owner){ st.uid, st.gid };
	return 0;
}

/* Go down, if it is a directory of the same tree that can be read. */
static int enter(struct sweep *sweep, const char *name)
{
	struct tree_walk *walk = sweep->walk;
	const uint64_t flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK;
	if (walk->depth + 1 >= TREE_DEPTH_MAX)
		return 0;
	int fd = dirs_open_name(tree_from(walk), name, flags | O_NOATIME, false);
	if (fd == -EPERM)
		fd = dirs_open_name(tree_from(walk), name, flags, false);
	int r = fd < 0 ? 0 : tree_walk_enter(walk, fd, -1, name, 0);
	return r < 0 || fd < 0 ? r : note_owner(sweep);
}

static int leave(struct tree_walk *walk)
{
	const char *name;
	int r = tree_walk_leave(walk, &name);
	return r < 0 ? r : tree_walk_seek(walk, tree_level(walk)->offset);
}

static int settle(struct sweep *sweep, const char *temp)
{
	struct record *step = find_step(sweep->work, sweep->layer, temp);
	const struct owner *owner = &sweep->owners[sweep->walk->depth];
	if (!step)
		return 0;
	int r = apply_act_as(sweep->work, owner->uid, owner->gid);
	return r < 0 ? r : found(sweep->work, step, tree_from(sweep->walk), temp);
}

static int walk_all(struct sweep *sweep, const char *prefix)
{
	struct tree_walk *walk = sweep->walk;
	int failed = 0, r = note_owner(sweep);
	while (r >= 0) {
		const struct tree_entry *entry;
		r = tree_walk_next(walk, &entry);
		if (r == 0 && walk->depth == 0)
			return failed;
		if (r == 0) {
			r = leave(walk);
		} else if (r > 0 && strncmp(entry->name, prefix, strlen(prefix)) == 0) {
			int one = settle(sweep, entry->name);
			failed = one < 0 ? one : failed;
		} else if (r > 0 && (entry->type == DT_DIR || entry->type == DT_UNKNOWN)) {
			r = enter(sweep, entry->name);
		}
	}
	return r;
}

static int sweep_layer(struct apply_work *work, size_t layer, const char *prefix)
{
	struct sweep sweep = { .work = work, .layer = layer };
	int r = -ESTALE;
	/* A directory that is moved while it is walked through ends the walk. */
	for (int tries = 0; r == -ESTALE && tries < TRIES; tries++) {
		r = tree_walk_new(work->layers[layer].lower, -1, &sweep.walk);
		if (r < 0)
			break;
		struct tree_level *top = &sweep.walk->levels[0];
		r = walk_all(&sweep, prefix);
		if (top->opened_up)
			(void)tree_name_chmod(work->layers[layer].lower, ".", S_IFDIR, top->mode);
		tree_walk_free(sweep.walk);
	}
	free(sweep.owners);
	return r;
}

static int sweep_once(struct apply_work *work, const char *prefix)
{
	int failed = 0;
	for (size_t i = 0; i < work->layer_count; i++) {
		int r = work->layers[i].lower < 0 ? 0 : sweep_layer(work, i, prefix);
		failed = r < 0 ? r : failed;
	}
	return failed;
}

static bool is_missing(const struct apply_work *work)
{
	for (size_t i = 0; i < work->count; i++)
		if (work->steps[i].lost)
			return true;
	return false;
}

int apply_sweep(struct apply_work *work)
{
	char prefix[APPLY_TEMP_MAX];
	int r = 0;
	snprintf(prefix, sizeof prefix, ".agentbox-apply-%s-", work->tag);
	/* A directory that gets another name while the one above is read may be passed over. */
	for (int tries = 0; tries == 0 || (tries < TRIES && is_missing(work)); tries++)
		r = sweep_once(work, prefix);
	return r;
}
