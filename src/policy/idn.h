/*
 * idn: names that are not ASCII in a policy's lists of hosts, as what is looked up and compared:
 * the form that begins with xn--. The tables for that are large, so agentbox-idn has them.
 */
#ifndef AGENTBOX_POLICY_IDN_H
#define AGENTBOX_POLICY_IDN_H

#include "base/arena.h"
#include "base/err.h"
#include "policy/tree.h"

#define IDN_NAMES_MAX 64 /* of one file: each costs the start of a program */

/*
 * Put the ASCII form in place of each such name in network.allow and in the hosts of tests. The
 * document need not be checked yet. What agentbox-idn does not take is an error with its place;
 * where that program is not installed, names stay as they are (and are refused later).
 */
int idn_document(struct arena *arena, struct node *root, struct err *err);

#endif
