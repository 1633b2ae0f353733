/* filter_table: owns the table of system calls; looks rows up, decides nothing. */
#define _GNU_SOURCE
#include "plan/filter_table.h"

#include <string.h>

#include "plan/filter.h"

#define NONE (-1)

static const struct filter_call table[] = {
#define CALL(name, x86_64, aarch64, normal, strict, grant)                                         \
	{ #name, { x86_64, aarch64 }, ACT_##normal, ACT_##strict, GRANT_##grant },
#include "plan/filter_table.def"
#undef CALL
};

#define TABLE_COUNT  (sizeof table / sizeof *table)
#define NAME_MAX_LEN 32 /* longer than any name in the table */

const struct filter_call *filter_call(size_t index)
{
	return index < TABLE_COUNT ? &table[index] : NULL;
}

const struct filter_call *filter_call_named(const char *name)
{
	for (size_t i = 0; i < TABLE_COUNT; i++)
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}

const struct filter_call *filter_call_numbered(enum filter_arch arch, uint32_t number)
{
	if (number >= FILTER_NUMBERS)
		return NULL;
	for (size_t i = 0; i < TABLE_COUNT; i++)
		if (table[i].number[arch] == (int)number)
			return &table[i];
	return NULL;
}

/* Edits (insert, delete, replace) that turn a into b; both at most NAME_MAX_LEN long. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[NAME_MAX_LEN + 1];
	size_t len = strlen(b);
	for (size_t j = 0; j <= len; j++)
		row[j] = (unsigned)j;
	for (size_t i = 0; a[i]; i++) {
		unsigned corner = row[0];
		row[0] = (unsigned)i + 1;
		for (size_t j = 1; j <= len; j++) {
			unsigned best = corner + (a[i] != b[j - 1]);
			corner = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[len];
}

const struct filter_call *filter_call_nearest(enum filter_arch arch, const char *name)
{
	size_t len = strlen(name);
	if (len > NAME_MAX_LEN)
		return NULL;
	const struct filter_call *best = NULL;
	unsigned limit = len < 4 ? 2 : 3; /* more edits than that is another word */
	for (size_t i = 0; i < TABLE_COUNT; i++) {
		if (table[i].number[arch] < 0)
			continue;
		unsigned edits = distance(name, table[i].name);
		if (edits < limit) {
			limit = edits;
			best = &table[i];
		}
	}
	return best;
}

unsigned filter_rename_bit(const struct filter_call *call)
{
	if (strcmp(call->name, "rename") == 0)
		return FILTER_RENAME;
	if (strcmp(call->name, "renameat") == 0)
		return FILTER_RENAMEAT;
	return strcmp(call->name, "renameat2") == 0 ? FILTER_RENAMEAT2 : 0;
}

uint32_t filter_arch_audit(enum filter_arch arch)
{
	return arch == ARCH_X86_64 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64;
}

const char *filter_arch_name(enum filter_arch arch)
{
	return arch == ARCH_X86_64 ? "x86_64" : "aarch64";
}

int filter_number(const char *name)
{
	const struct filter_call *call = filter_call_named(name);
	return call ? call->number[ARCH_NATIVE] : -1;
}

const char *filter_name(int number)
{
	const struct filter_call *call =
		number < 0 ? NULL : filter_call_numbered(ARCH_NATIVE, (uint32_t)number);
	return call ? call->name : NULL;
}
