/* cpulist: lists of processors as text. Owns their parsing; never asks how many there are. */
#define _GNU_SOURCE
#include "plan/cpulist.h"
#include "base/buf.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BYTES (CPULIST_MAX / 8)

static bool has(const uint8_t *bits, size_t cpu)
{
	return bits[cpu / 8] >> cpu % 8 & 1;
}

/* A number without sign; false: there is none, or it is beyond the maximum. */
static bool number(const char **text, size_t *ret_value)
{
	char *end;
	if (**text < '0' || **text > '9')
		return false;
	unsigned long value = strtoul(*text, &end, 10);
	*text = end;
	*ret_value = value;
	return value < CPULIST_MAX;
}

/* -1: malformed; else how many. */
static int parse(const char *list, uint8_t bits[BYTES])
{
	int count = 0;
	memset(bits, 0, BYTES);
	while (*list && *list != '\n') {
		size_t first, last;
		if (!number(&list, &first))
			return -1;
		last = first;
		if (*list == '-') {
			list++;
			if (!number(&list, &last) || last < first)
				return -1;
		}
		for (size_t cpu = first; cpu <= last; cpu++) {
			count += !has(bits, cpu);
			bits[cpu / 8] |= (uint8_t)(1u << cpu % 8);
		}
		if (*list == ',')
			list++;
		else if (*list && *list != '\n')
			return -1;
	}
	return count;
}

size_t cpulist_count(const char *list)
{
	uint8_t bits[BYTES];
	int count = list ? parse(list, bits) : 0;
	return count > 0 ? (size_t)count : 0;
}

const char *cpulist_of_bits(struct arena *arena, const uint8_t *bits, size_t size)
{
	AUTO_BUF out = { 0 };
	for (size_t cpu = 0; cpu < size * 8; cpu++) {
		if (!has(bits, cpu))
			continue;
		size_t last = cpu;
		while (last + 1 < size * 8 && has(bits, last + 1))
			last++;
		buf_addf(&out, "%s%zu", out.len ? "," : "", cpu);
		if (last > cpu)
			buf_addf(&out, "-%zu", last);
		cpu = last;
	}
	return arena_strdup(arena, buf_text(&out));
}

const char *cpulist_pick(struct arena *arena, const char *list, size_t count, uint64_t offset)
{
	uint8_t all[BYTES], picked[BYTES] = { 0 };
	int listed = list ? parse(list, all) : 0;
	if (listed <= 0 || count == 0 || count >= (size_t)listed)
		return NULL;
	size_t first = (size_t)(offset % (uint64_t)listed), index = 0;
	for (size_t cpu = 0; cpu < CPULIST_MAX; cpu++) {
		if (!has(all, cpu))
			continue;
		/* Its place counted from the first one, around the end. */
		size_t place = (index++ + (size_t)listed - first) % (size_t)listed;
		if (place < count)
			picked[cpu / 8] |= (uint8_t)(1u << cpu % 8);
	}
	return cpulist_of_bits(arena, picked, sizeof picked);
}
