/*
 * advice: what somebody who is new to policies probably meant. Pure: from a mistake to the words of
 * a hint. Whether it is a mistake, others decide. Private to policy/.
 */
#ifndef AGENTBOX_POLICY_ADVICE_H
#define AGENTBOX_POLICY_ADVICE_H

#include "policy/keys.h"
#include "policy/tree.h"

#define ADVICE_MAX 256

/* All that fill a hint: false when there is nothing better to say; the hint is then not touched. */

/* For a member whose key `map` (NULL: the top) does not know: a word of other tools, "wall:5s". */
bool advice_member(const struct key *map, const struct node *member, char hint[ADVICE_MAX]);

/* For a value of another kind than the key takes. */
bool advice_kind(const struct key *key, const struct node *node, char hint[ADVICE_MAX]);

/* A number with another unit, a blank or another case: "10sec", "2d", "100M", "1 gb". */
bool advice_number(const struct key *key, const char *text, char hint[ADVICE_MAX]);

/* The key's own word for a word of other tools, "rw" for "write"; NULL: none. Static. */
const char *advice_word(const struct key *key, const char *text);

/*
 * "$HOME/x", and a star where a grant is wanted: what is wrong (static) with *hint filled, or NULL.
 */
const char *advice_path(const struct key *key, const char *text, char hint[ADVICE_MAX]);

/* For text that begins with a sign that YAML keeps for itself: the word with its quotes. */
bool advice_quotes(const char *text, size_t len, bool pattern, char hint[ADVICE_MAX]);

/*
 * Is there "KEY:VALUE" without a blank at the beginning of this line? *ret_at is where the line's
 * words begin.
 */
bool advice_line(const char *line, size_t len, size_t *ret_at, char hint[ADVICE_MAX]);

#endif
