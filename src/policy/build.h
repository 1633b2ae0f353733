/* build: from the merged document to struct policy. Private to policy/. */
#ifndef AGENTBOX_POLICY_BUILD_H
#define AGENTBOX_POLICY_BUILD_H

#include "policy/keys.h"
#include "policy/tree.h"

struct build {
	struct policy *policy; /* its arena is used */
	const struct policy_env *env;
	struct err *err;
};

/*
 * Fill everything but the sources and their digest from policy->tree. Defaults become nodes of the
 * tree, and paths in it become absolute. Errors: policy_invalid, dangerous_grant.
 */
int build_policy(struct build *b);

/*
 * The scalar member `id` of a map. Where it is missing and the table has a default, a node with it
 * is hung in; else NULL.
 */
struct node *build_field(struct build *b, struct node *map, enum key_id id);
/* A member that must be there; an error at the map if not. */
int build_required(struct build *b, struct node *map, enum key_id id, struct node **ret);

/* Text of a scalar member, NULL when it is not there. */
const char *build_text(struct build *b, struct node *map, enum key_id id);
/* Number of a scalar member with its place; left alone when it is not there. */
void build_number(struct build *b, struct node *map, enum key_id id, struct policy_number *ret);
/* Which of the row's words a scalar member is, from 0; *ret_at may be NULL. -1: none of them. */
int build_word(struct build *b, struct node *map, enum key_id id, struct origin *ret_at);
/* The elements of a list member; none when it is not there. */
void build_words(struct build *b, struct node *map, enum key_id id, struct policy_word **ret,
	size_t *ret_count);
/* Make a path node's text absolute. */
int build_absolute(struct build *b, struct node *node);
/* A map from variables to values. */
void build_env(struct build *b, struct node *map, struct policy_env_set **ret, size_t *ret_count);

/* build_tools.c: secrets and tools; build_tests.c: code and tests. */
int build_secrets(struct build *b, struct node *root);
int build_tools(struct build *b, struct node *root);
int build_code(struct build *b, struct node *root);
int build_tests(struct build *b, struct node *root);

#endif
