/*
 * changes_dump: what changes_find says of a layer, for tests that have a judge of their own.
 *
 *	probe-changes_dump UPPER LOWER|- ROOT layer|whole MAX
 *
 * Each entry is six fields, each with a NUL behind it: kind (c, m, d), mode in octal with its type,
 * size, flags (letters of s, h, e), path, text of the link. Then the field "end" and the count of
 * entries left out. Status 1 and words on stderr when it fails.
 */
#define _GNU_SOURCE
#include "workspace/changes.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int open_tree_of(const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		perror(path);
		exit(2);
	}
	return fd;
}

static void print(const struct change *change)
{
	printf("%c%c%o%c%" PRIu64 "%c%s%s%s%c%s%c%s%c", "cmd"[change->kind], 0,
		(unsigned)change -> mode, 0, change -> size, 0, change -> sensitive ? "s" : "",
		change->held ? "h" : "", change->escapes ? "e" : "", 0, change->path, 0,
		change->target ? change->target : "", 0);
}

int main(int argc, char **argv)
{
	if (argc != 6) {
		fprintf(stderr, "usage: %s UPPER LOWER|- ROOT layer|whole MAX\n", argv[0]);
		return 2;
	}
	struct changes_layer layer = {
		.upper = open_tree_of(argv[1]),
		.lower = strcmp(argv[2], "-") == 0 ? -1 : open_tree_of(argv[2]),
		.root = argv[3],
		.whole = strcmp(argv[4], "whole") == 0,
	};
	struct changes changes = { 0 };
	struct err err = { 0 };
	size_t max = strtoul(argv[5], NULL, 10);
	if (changes_find(&layer, 1, NULL, max, &changes, &err) < 0) {
		fprintf(stderr, "%s: %s\n", err_info(err.code)->name, err.text);
		return 1;
	}
	for (size_t i = 0; i < changes.count; i++)
		print(&changes.list[i]);
	printf("end%c%" PRIu64 "%c", 0, changes.left_out, 0);
	changes_free(&changes);
	return 0;
}
