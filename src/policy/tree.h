/*
 * tree: a document as nodes that know their place. Reading it is strict: what YAML offers beyond
 * maps, lists and words (tabs, anchors, aliases, tags, merge keys, directives, more documents,
 * doubled keys) is an error with line and column, and so is everything past the maxima of policy.h.
 */
#ifndef AGENTBOX_POLICY_TREE_H
#define AGENTBOX_POLICY_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/policy.h"

/* A text that nodes came from. */
struct source {
	const char *file; /* as shown to people: a path, "--memory" for an option */
	const char *dir;  /* relative paths count from it: absolute; NULL: it is not known */
	bool option;      /* an option of the command line: nodes have no line */
};

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
	enum node_kind kind;
	bool plain;                  /* scalar: written without quotes */
	int line, column;            /* of the value, from 1 */
	int key_line, key_column;    /* member of a map: of the key; else 0 */
	const struct source *source; /* NULL: a built-in default */
	const char *key;             /* member of a map, else NULL */
	const char *text;            /* scalar; valid UTF-8 without NUL */
	struct node *first, *last;   /* list, map */
	struct node *next;           /* the next one of the same list or map */
	size_t count;
};

struct policy_tree {
	struct node *root;
};

/*
 * Read a document. An empty one gives an empty map. *ret_root belongs to the arena, which also
 * keeps copies of all texts; `source` must outlive it. Error: policy_invalid with the place.
 */
int tree_parse(struct arena *arena, const struct source *source, const char *text, size_t len,
	struct node **ret_root, struct err *err);

/* A scalar that no document holds (option, default). */
struct node *node_scalar(struct arena *arena, const struct source *source, const char *text);
struct node *node_map(struct arena *arena, const struct source *source);

/* Member of a map, or NULL (also when map is NULL). */
struct node *node_get(const struct node *map, const char *key);

/* Hang `child` in behind the last one. */
void node_append(struct node *parent, struct node *child);

/* Where it was written: the key if it has one, else the value. */
struct origin node_origin(const struct node *node);

/*
 * Make *err policy_invalid about a value (or, with at_key, its key) and return -1. Of an option the
 * text begins with the option's name.
 */
int node_error(const struct node *node, bool at_key, struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Text for a message, cut to size with "..." and always whole characters. Returns `out`. */
#define SHOWN_MAX 64
const char *text_shown(const char *text, char out[SHOWN_MAX]);

#endif
