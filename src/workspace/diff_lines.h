/* diff_lines: which lines of two texts are common. Private to diff*.c. */
#ifndef AGENTBOX_WORKSPACE_DIFF_LINES_H
#define AGENTBOX_WORKSPACE_DIFF_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct diff_text {
	const char *data;
	size_t count;     /* lines; a last one without a newline is one too */
	uint32_t *starts; /* count + 1: where each begins, and the end */
	bool *changed;    /* count: the other text does not have it */
};

/*
 * Split two texts of at most DIFF_TEXT_MAX bytes and compare them. What is not marked in one is, in
 * order, what is not marked in the other. Short where that can be found in bounded time; at worst
 * everything between the first and the last difference is marked.
 */
void diff_lines(struct arena *arena, const char *a, size_t a_len, const char *b, size_t b_len,
	struct diff_text *ret_a, struct diff_text *ret_b);

#endif
