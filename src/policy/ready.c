/* ready: see ready.h; the table is written by ready_gen.c. */
#include "policy/ready.h"

#include <string.h>

#include "policy/ready_shipped.h"

static struct node *grow(
	struct arena *arena, const struct source *source, const struct ready_policy *ready)
{
	struct node *nodes = ARENA_ARRAY(arena, ready->count, struct node);
	for (size_t i = 0; i < ready->count; i++) {
		const struct ready_node *from = &ready->nodes[i];
		nodes[i] = (struct node){
			.kind = (enum node_kind)from->kind,
			.plain = from->plain,
			.line = from->line,
			.column = from->column,
			.key_line = from->key_line,
			.key_column = from->key_column,
			.source = source,
			.key = from->key,
			.text = from->text,
		};
		if (from->parent >= 0)
			node_append(&nodes[from->parent], &nodes[i]);
	}
	return nodes;
}

struct node *ready_tree(
	struct arena *arena, const struct source *source, const char *text, size_t len)
{
	for (size_t i = 0; i < sizeof ready_policies / sizeof *ready_policies; i++)
		if (ready_policies[i].len == len && memcmp(ready_policies[i].text, text, len) == 0)
			return grow(arena, source, &ready_policies[i]);
	return NULL;
}
