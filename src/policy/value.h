/*
 * value: the text of one scalar as what its key's type says. Pure: nothing is looked up, nothing
 * is guessed (no yes/no, no 0x10, no 1e3, no 1_000).
 */
#ifndef AGENTBOX_POLICY_VALUE_H
#define AGENTBOX_POLICY_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/keys.h"

/* All return 0, -EINVAL (not of that form) or -ERANGE (does not fit 64 bits). */
int value_int(const char *text, uint64_t *ret);
int value_bool(const char *text, bool *ret);
int value_duration(const char *text, uint64_t *ret_us); /* "1.5s": us ms s m h */
int value_size(
	const char *text, uint64_t *ret_bytes); /* "64KiB": B KiB MiB GiB TiB KB MB GB TB; "0" */
int value_cpus(const char *text, uint64_t *ret_milli); /* "1.5", at most three decimals */

/* Any of the number types by its key's type. */
int value_number(enum key_type type, const char *text, uint64_t *ret);
bool value_is_number(enum key_type type);

/* How a value of that type is written: "512MiB", "720h". */
#define VALUE_TEXT_MAX 32
void value_text(enum key_type type, uint64_t value, char text[VALUE_TEXT_MAX]);

/* [A-Za-z_][A-Za-z0-9_]*, at most 255 bytes, and not BASH_FUNC_*. */
bool value_is_variable(const char *text);
/* [a-z0-9_]+, at most 64 bytes. */
bool value_is_syscall(const char *text);
/* [a-z0-9][a-z0-9._-]*, at most 64 bytes: names of policies. */
bool value_is_policy(const char *text);
/* [A-Za-z0-9][A-Za-z0-9_-]*, at most 64 bytes: names of tools and their arguments. */
bool value_is_tool(const char *text);
/* [A-Za-z0-9][A-Za-z0-9._+#-]*, at most 32 bytes. */
bool value_is_language(const char *text);

#endif
