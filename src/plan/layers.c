/*
 * layers: trees that are written through a private layer. What a layer consists of is put together
 * in a directory of the box's own, which is covered before the command could look: below it the
 * tree would be seen without its layer, and with what is hidden in it.
 */
#define _GNU_SOURCE
#include "plan/build.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool build_copies(const struct builder *builder)
{
	return builder->policy->fs.backend == BACKEND_COPY || builder->request->copy_layers;
}

/*
 * As root the box has the host's files by an id map. Where the file system has none, the owner's
 * copy does; but not for a session, for which it would be made anew each time.
 */
static bool must_copy(const struct builder *builder, const char *root)
{
	const struct host_path *fact = host_find(builder->host, root);
	return builder->host->root && builder->policy->fs.backend == BACKEND_AUTO &&
	       !builder->request->session && fact && fact->unmapped;
}

int build_layer(struct builder *builder, const char *root, const char *why)
{
	struct plan *plan = builder->plan;
	struct arena *arena = &plan->arena;
	int index = (int)plan->layer_count;
	struct plan_layer *layer =
		arena_push(arena, &builder->layers, &plan->layer_count, sizeof *layer);
	layer->root = root;
	layer->copy = build_copies(builder);
	if (!layer->copy && must_copy(builder, root))
		layer->copy = layer->forced = true;
	layer->dir = arena_printf(arena, LAYERS_DIR "/layer.%d", index);
	layer->lower = arena_printf(arena, LAYERS_DIR "/lower.%d", index);
	layer->why = why;
	const char *outside = builder->request->layers_dir;
	if (outside)
		layer->source = index ? arena_printf(arena, "%s/layer.%d", outside, index)
				      : arena_join(arena, outside, "/layer", "");
	plan->layers = builder->layers;
	return index;
}

static void directory(struct builder *builder, const char *target, mode_t mode)
{
	struct plan_op *op = build_op(builder, OP_DIR, target, "made");
	op->mode = S_IFDIR | mode;
}

void build_layer_points(struct builder *builder)
{
	struct arena *arena = &builder->plan->arena;
	if (builder->plan->layer_count == 0)
		return;
	directory(builder, LAYERS_DIR, 0700);
	for (size_t i = 0; i < builder->plan->layer_count; i++) {
		const struct plan_layer *layer = &builder->layers[i];
		directory(builder, layer->lower, 0700);
		directory(builder, layer->dir, 0700);
		if (layer->source)
			continue; /* the host's has them */
		directory(builder, arena_join(arena, layer->dir, "/upper", ""), 0700);
		directory(builder, arena_join(arena, layer->dir, "/work", ""), 0700);
	}
}

/* A layer of the host's state directory: the caller's own, made for this run or its session. */
static void show_host_dir(struct builder *builder, const struct plan_layer *layer)
{
	const struct request *request = builder->request;
	struct plan_op *op = build_op(builder, OP_BIND, layer->dir, "the private layer");
	op->source = layer->source;
	op->mode = S_IFDIR;
	op->owner = request->layers_uid;
	op->group = request->layers_gid;
	op->flags = OPF_GRANT;
}

void build_layer_dirs(struct builder *builder)
{
	for (size_t i = 0; i < builder->plan->layer_count; i++) {
		const struct plan_layer *layer = &builder->layers[i];
		if (layer->source) {
			show_host_dir(builder, layer);
			continue;
		}
		/* overlayfs takes its upper directory only from a mount that can be written. */
		struct plan_op *op = build_op(builder, OP_INSIDE, layer->dir, "the private layer");
		op->source = layer->dir;
		op->mode = S_IFDIR;
	}
}

void build_layer_cover(struct builder *builder)
{
	if (builder->plan->layer_count == 0)
		return;
	struct plan_op *op = build_op(builder, OP_MASK, LAYERS_DIR, "what layers are made of");
	op->mode = S_IFDIR;
	op->flags = OPF_READONLY;
}

void build_layer_gone(struct builder *builder, int index, const char *path)
{
	struct plan_layer *layer = &builder->layers[index];
	const char **list = (const char **)layer->gone;
	const char **slot =
		arena_push(&builder->plan->arena, &list, &layer->gone_count, sizeof *slot);
	*slot = path + strlen(layer->root) + 1;
	layer->gone = list;
}

static int by_name(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

void build_layer_sort(struct builder *builder)
{
	for (size_t i = 0; i < builder->plan->layer_count; i++) {
		struct plan_layer *layer = &builder->layers[i];
		const char **list = (const char **)layer->gone;
		size_t count = 0;
		if (layer->gone_count > 1)
			qsort(list, layer->gone_count, sizeof *list, by_name);
		/* Two patterns, or two trees that a name lies in, may have named it. */
		for (size_t k = 0; k < layer->gone_count; k++)
			if (k == 0 || strcmp(list[k], list[count - 1]) != 0)
				list[count++] = list[k];
		layer->gone_count = count;
	}
}

/* How many directories a name lies in that the one before it does not. */
static size_t new_dirs(const char *before, const char *name)
{
	size_t same = 0, count = 0;
	while (before[same] && before[same] == name[same])
		same++;
	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/'))
		count += (size_t)(slash - name) >= same;
	return count;
}

size_t build_layer_inodes(const struct builder *builder)
{
	size_t count = 0;
	for (size_t i = 0; i < builder->plan->layer_count; i++) {
		const struct plan_layer *layer = &builder->layers[i];
		if (layer->copy || builder->request->layers_dir)
			continue;
		for (size_t k = 0; k < layer->gone_count; k++)
			count += 1 + new_dirs(k ? layer->gone[k - 1] : "", layer->gone[k]);
	}
	return count;
}
