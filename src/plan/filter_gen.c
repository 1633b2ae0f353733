/*
 * filter_gen: writes plan/filter_shipped.h, the programs of the shipped profiles with their
 * digests, for the architecture named on the command line. Runs when agentbox is built, never
 * after.
 */
#define _GNU_SOURCE
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/filter_compile.h"

static int print_profile(enum filter_arch arch, const char *name, bool strict, bool renames)
{
	uint8_t actions[FILTER_NUMBERS];
	struct sock_filter program[FILTER_PROGRAM_MAX];
	filter_actions(arch, strict, false, actions);
	unsigned renamed = renames ? filter_rename_actions(arch, actions) : 0;
	unsigned handed = filter_handed(arch, actions);
	int count = filter_compile(arch, actions, program);
	if (count < 0)
		return -1;
	char digest[SHA256_DIGEST_STRING_LENGTH];
	SHA256Data((const uint8_t *)program, (size_t)count * sizeof *program, digest);

	const char *variant = renames ? "_renames" : "";
	printf("static const struct sock_filter filter_%s%s_program[] = {\n", name, variant);
	for (int i = 0; i < count; i++)
		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", program[i].code, program[i].jt,
			program[i].jf, program[i].k);
	printf("};\n\nstatic const struct filter filter_%s%s = {\n", name, variant);
	printf("\t.program = filter_%s%s_program,\n\t.count = %d,\n\t.name = \"%s\",\n", name,
		variant, count, name);
	printf("\t.sha256 = \"%s\",\n\t.renames = %u,\n\t.handed = %u,\n};\n\n", digest, renamed,
		handed);
	return 0;
}

int main(int argc, char **argv)
{
	for (int arch = 0; arch < ARCH_COUNT; arch++) {
		if (argc != 2 || strcmp(argv[1], filter_arch_name(arch)) != 0)
			continue;
		printf("/* Made by filter_gen for %s. */\n#include \"plan/filter.h\"\n\n", argv[1]);
		for (int kind = 0; kind < 4; kind++)
			if (print_profile(
				    arch, kind & 1 ? "strict" : "default", kind & 1, kind & 2) < 0)
				return EXIT_FAILURE;
		return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	fprintf(stderr, "usage: filter_gen x86_64|aarch64\n");
	return EXIT_FAILURE;
}
