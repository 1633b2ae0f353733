/*
 * agentbox-idn: the ASCII form of an international host name, by IDNA2008 (RFC 5891) with the
 * mapping of UTS 46, non-transitional, as browsers do it. A program of its own for the tables; it
 * opens nothing, and gives up everything before it looks at the name.
 *
 *	agentbox-idn -- NAME        prints one line: the form, lower case
 *
 * NAME is UTF-8. Exit status: 0; 1 NAME has no such form (one line on stdout says why, for people);
 * 2 usage; 125 it cannot be confined or has no memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <idn2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/confine.h"
#include "base/sys.h"

#define MEMORY_MAX ((rlim_t)64 << 20)

static const int calls[] = { SYS_write, SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_futex,
	SYS_fstat, SYS_newfstatat, SYS_getrandom, SYS_exit, SYS_exit_group };

#if defined(__SANITIZE_ADDRESS__)
/* What looks for leaks at the end would need calls that are gone by then. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

/*
 * Without Landlock the filter alone keeps files shut. As root another id would say no more: there
 * is no capability, and nothing that an id counts for.
 */
static int confine(void)
{
	int r = confine_no_rights();
	if (r == 0)
		r = confine_alone();
	if (r == 0)
		r = confine_limit(RLIMIT_CORE, 0);
		/* A sanitizer's shadow does not fit. */
#if !defined(__SANITIZE_ADDRESS__)
	if (r == 0)
		r = confine_limit(RLIMIT_AS, MEMORY_MAX);
#endif
	if (r == 0)
		r = confine_reading(NULL, 0, false);
	if (r == -EOPNOTSUPP)
		r = 0;
	return r ? r : confine_calls(calls, sizeof calls / sizeof *calls);
}

static int say(int status, const char *text)
{
	return puts(text) < 0 || fflush(stdout) != 0 ? 125 : status;
}

/* What looks like an address to the C library would no longer be judged as a name. */
static bool is_host_name(const char *name)
{
	const char *last = strrchr(name, '.');
	last = last ? last + 1 : name;
	return *name && *name != '.' && !strstr(name, "..") &&
	       name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.")] == 0 &&
	       last[strspn(last, "0123456789")] != 0 && strncmp(last, "0x", 2) != 0;
}

/*
 * IDN2_USE_STD3_ASCII_RULES takes out silently what is in no host name, and without it the library
 * lets some of that pass; a name that has none of it has the same form both ways.
 */
static int convert(const char *name, char **ret_ascii)
{
	const int flags = IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL;
	char *strict = NULL;
	int r = idn2_to_ascii_8z(name, ret_ascii, flags);
	if (r == IDN2_OK)
		r = idn2_to_ascii_8z(name, &strict, flags | IDN2_USE_STD3_ASCII_RULES);
	if (r == IDN2_OK && strcmp(*ret_ascii, strict) != 0)
		r = IDN2_DISALLOWED;
	return r;
}

int main(int argc, char **argv)
{
	char *ascii = NULL;
	if (argc != 3 || strcmp(argv[1], "--") != 0) {
		fputs("usage: agentbox-idn -- NAME\n", stderr);
		return 2;
	}
	int r = confine();
	if (r < 0) {
		fprintf(stderr, "agentbox-idn: it cannot be confined: %s\n", strerror(-r));
		return 125;
	}
	r = convert(argv[2], &ascii);
	if (r == IDN2_MALLOC)
		return 125;
	if (r != IDN2_OK)
		return say(1, idn2_strerror(r));
	size_t len = strlen(ascii);
	if (len && ascii[len - 1] == '.')
		ascii[len - 1] = 0;
	return is_host_name(ascii) ? say(0, ascii) : say(1, "its ASCII form is no host name");
}
