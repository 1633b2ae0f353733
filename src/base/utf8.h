/* utf8: one strict decoder (RFC 3629: no surrogates, no overlong forms, at most U+10FFFF). */
#ifndef AGENTBOX_BASE_UTF8_H
#define AGENTBOX_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decode one character at data (len >= 1). Returns its length 1..4 and sets *ret_rune, or 0 when
 * the bytes are not valid UTF-8 (also when they are a valid beginning that is cut off).
 */
size_t utf8_decode(const void *data, size_t len, uint32_t *ret_rune);

bool utf8_valid(const void *data, size_t len);

/* Is this a character that a terminal acts on or that reorders text (C0 but not \t\n, DEL, C1,
 * bidi)? */
bool utf8_is_control(uint32_t rune);

#endif
