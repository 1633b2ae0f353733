/* merge: documents laid over each other. */
#define _GNU_SOURCE
#include "policy/merge.h"

#include <string.h>

#include "policy/check.h"
#include "policy/keys.h"

static int too_long(const struct key *key, const struct node *node, struct err *err)
{
	return node_error(node, true, err, "'%s' has more than %d elements after merging",
		key->path, POLICY_LIST_MAX);
}

static int merge_members(
	const struct key *map, struct node *base, struct node *over, struct err *err);

/* Put `over` in the place of `base`, keeping the base's neighbours. */
static void replace(struct node *base, const struct node *over)
{
	struct node *next = base->next;
	*base = *over;
	base->next = next;
}

static int merge_one(const struct key *key, struct node *base, struct node *over, struct err *err)
{
	if (key->merge == KEY_MERGE && base->kind == NODE_MAP && over->kind == NODE_MAP)
		return merge_members(key, base, over, err);
	if (key->merge != KEY_APPEND) {
		replace(base, over);
		return 0;
	}
	if (base->count + over->count > POLICY_LIST_MAX)
		return too_long(key, over, err);
	if (!over->first)
		return 0;
	if (base->last)
		base->last->next = over->first;
	else
		base->first = over->first;
	base->last = over->last;
	base->count += over->count;
	return 0;
}

static int merge_members(
	const struct key *map, struct node *base, struct node *over, struct err *err)
{
	struct node *child = over->first, *next;
	for (; child; child = next) {
		next = child->next;
		const struct key *key = key_child(map, child->key);
		struct node *same = node_get(base, child->key);
		if (same) {
			if (merge_one(key, same, child, err) < 0)
				return -1;
			continue;
		}
		if (base->count >= POLICY_LIST_MAX)
			return too_long(map, child, err);
		node_append(base, child);
	}
	return 0;
}

/* Keys that a policy does not hand on to the ones over it. */
static void drop_own(struct node *base)
{
	struct node *child = base->first, *next;
	base->first = base->last = NULL;
	base->count = 0;
	for (; child; child = next) {
		next = child->next;
		if (key_child(NULL, child->key)->merge != KEY_OWN)
			node_append(base, child);
	}
}

int merge_document(struct node *base, struct node *over, struct err *err)
{
	drop_own(base);
	return merge_members(NULL, base, over, err);
}

/* The map at `path` (its first `len` bytes) below `base`, made where it is missing. */
static struct node *reach(struct arena *arena, struct node *base, const struct source *source,
	const char *path, size_t len)
{
	const char *end = path + len;
	while (path < end) {
		size_t n = strcspn(path, ".");
		if (n > (size_t)(end - path))
			n = (size_t)(end - path);
		char *name = arena_strndup(arena, path, n);
		struct node *child = node_get(base, name);
		if (!child) {
			child = node_map(arena, source);
			child->key = name;
			node_append(base, child);
		} else if (child->kind != NODE_MAP) {
			const char *key = child->key;
			replace(child, node_map(arena, source));
			child->key = key;
		}
		base = child;
		path += n + 1;
	}
	return base;
}

int merge_override(struct arena *arena, struct node *base, const struct policy_override *override,
	const char *dir, struct err *err)
{
	struct source *source = ARENA_NEW(arena, struct source);
	source->file = override->option;
	source->dir = dir;
	source->option = true;
	const struct key *key = key_find(override->key);
	if (!key || strchr(key->path, '*') || strchr(key->path, '[') || key->type == KEY_MAP ||
		key->type == KEY_NAMES)
		return err_set(err, ERR_internal, 0, "%s: no option can set '%s'", override->option,
			override->key);
	struct node *node = node_scalar(arena, source, override->value);
	if (key->type == KEY_LIST) {
		struct node *list = ARENA_NEW(arena, struct node);
		list->kind = NODE_LIST;
		list->source = source;
		node_append(list, node);
		node = list;
	}
	node->key = key_name(key);
	if (check_value(key, node, err) < 0)
		return -1;
	const char *dot = strrchr(key->path, '.');
	struct node *map =
		reach(arena, base, source, key->path, dot ? (size_t)(dot - key->path) : 0);
	struct node *same = node_get(map, node->key);
	if (same)
		return merge_one(key, same, node, err);
	node_append(map, node);
	return 0;
}
