/* merge: documents laid over each other, by the merge rules of the table of keys. */
#ifndef AGENTBOX_POLICY_MERGE_H
#define AGENTBOX_POLICY_MERGE_H

#include "policy/tree.h"

/*
 * Lay the checked document `over` on `base`; its nodes move over, so it is used up.
 * Error: policy_invalid when a list gets too long.
 */
int merge_document(struct node *base, struct node *over, struct err *err);

/* Lay one option of the command line on the merged document. Errors name the option. */
int merge_override(struct arena *arena, struct node *base, const struct policy_override *override,
	const char *dir, struct err *err);

#endif
