/*
 * check: is a document what the table of keys says? Names, types, ranges and forms, of one source
 * alone and before anything is merged, so that a mistake is found even where a later policy would
 * have replaced the value.
 */
#ifndef AGENTBOX_POLICY_CHECK_H
#define AGENTBOX_POLICY_CHECK_H

#include "policy/keys.h"
#include "policy/tree.h"

/*
 * Check a whole document. Keys with the value null are taken out (`network: null` becomes none).
 * Error: policy_invalid with the place.
 */
int check_document(struct node *root, struct err *err);

/* Check one value against its row; `node` may be of any kind. */
int check_value(const struct key *key, struct node *node, struct err *err);

#endif
