/*
 * ready: the trees of the shipped policies, read when agentbox was built. Each run reads one of
 * them, and its YAML costs more than the rest of the policy's way together. A file still has to be
 * there and is read; only when its bytes are those of a shipped one is its tree taken from here.
 */
#ifndef AGENTBOX_POLICY_READY_H
#define AGENTBOX_POLICY_READY_H

#include "policy/tree.h"

/* A node as it is kept: parents before children, in the order of the text. */
struct ready_node {
	unsigned char kind; /* enum node_kind */
	bool plain;
	short line, column, key_line, key_column;
	short parent; /* index; -1: the root */
	const char *key, *text;
};

struct ready_policy {
	const char *text;
	size_t len;
	const struct ready_node *nodes;
	size_t count;
};

/*
 * The tree that tree_parse() makes of this text, or NULL when it is not a shipped policy's. The
 * nodes belong to the arena, their words to the program; `source` must outlive them.
 */
struct node *ready_tree(
	struct arena *arena, const struct source *source, const char *text, size_t len);

#endif
