/*
 * keep: makes a kept result from two directories, as a run with a layer of its own would.
 *
 *	probe-keep STATE ID BEFORE AFTER [--held PATTERN]... [--sensitive PATTERN]... [--started NS]
 *
 * BEFORE (absolute, without links) is the host's tree, AFTER a complete one as the box saw it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "workspace/kept.h"

int main(int argc, char **argv)
{
	static const char *const command[] = { "make", "it\n", NULL };
	const char *held[16] = { 0 }, *sensitive[16] = { 0 };
	size_t held_count = 0, sensitive_count = 0;
	struct timespec now;
	struct err err;
	if (argc < 5)
		return 2;
	clock_gettime(CLOCK_REALTIME, &now);
	int64_t started = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	int64_t ended = started;
	for (int i = 5; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--held") == 0 && held_count < 15)
			held[held_count++] = argv[i + 1];
		else if (strcmp(argv[i], "--sensitive") == 0 && sensitive_count < 15)
			sensitive[sensitive_count++] = argv[i + 1];
		else if (strcmp(argv[i], "--started") == 0)
			started = atoll(argv[i + 1]);
		else
			return 2;
	}
	struct changes_layer layer = {
		.upper = open(argv[4], O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.lower = open(argv[3], O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.whole = true,
		.root = argv[3],
	};
	struct kept_source source = {
		.id = argv[2],
		.started_ns = started,
		.ended_ns = ended,
		.policy = "made",
		.argv = command,
		.layers = &layer,
		.layer_count = 1,
		.rules = { held, sensitive },
	};
	if (layer.upper < 0 || layer.lower < 0) {
		perror("probe-keep");
		return 1;
	}
	if (kept_save(argv[1], &source, &err) < 0) {
		fprintf(stderr, "probe-keep: %s\n", err.text);
		return 1;
	}
	return 0;
}
