/* node: building and asking the nodes of a tree; how errors name their place. */
#define _GNU_SOURCE
#include "policy/tree.h"

#include <stdio.h>
#include <string.h>

struct node *node_scalar(struct arena *arena, const struct source *source, const char *text)
{
	struct node *node = ARENA_NEW(arena, struct node);
	node->kind = NODE_SCALAR;
	node->plain = true;
	node->source = source;
	node->text = text;
	return node;
}

struct node *node_map(struct arena *arena, const struct source *source)
{
	struct node *node = ARENA_NEW(arena, struct node);
	node->kind = NODE_MAP;
	node->source = source;
	return node;
}

struct node *node_get(const struct node *map, const char *key)
{
	for (struct node *node = map ? map->first : NULL; node; node = node->next)
		if (strcmp(node->key, key) == 0)
			return node;
	return NULL;
}

void node_append(struct node *parent, struct node *child)
{
	child->next = NULL;
	if (parent->last)
		parent->last->next = child;
	else
		parent->first = child;
	parent->last = child;
	parent->count++;
}

struct origin node_origin(const struct node *node)
{
	if (!node || !node->source)
		return (struct origin){ NULL, 0, 0 };
	bool key = node->key_line > 0;
	return (struct origin){
		.file = node->source->file,
		.line = key ? node->key_line : node->line,
		.column = key ? node->key_column : node->column,
	};
}

int node_error(const struct node *node, bool at_key, struct err *err, const char *fmt, ...)
{
	char text[sizeof err->text];
	const struct source *source = node->source;
	size_t used = 0;
	if (source && source->option)
		used = (size_t)snprintf(text, sizeof text, "%s: ", source->file);
	if (used < sizeof text) {
		va_list ap;
		va_start(ap, fmt);
		vsnprintf(text + used, sizeof text - used, fmt, ap);
		va_end(ap);
	}
	err_set(err, ERR_policy_invalid, 0, "%s", text);
	if (!source || source->option)
		return -1;
	bool key = at_key && node->key_line > 0;
	return err_at(err, source->file, key ? node->key_line : node->line,
		key ? node->key_column : node->column);
}

const char *text_shown(const char *text, char out[SHOWN_MAX])
{
	size_t len = strcspn(text, "\n");
	bool cut = text[len] != 0;
	if (len > SHOWN_MAX - 4) {
		len = SHOWN_MAX - 4;
		while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
			len--;
		cut = true;
	}
	snprintf(out, SHOWN_MAX, "%.*s%s", (int)len, text, cut ? "..." : "");
	return out;
}
