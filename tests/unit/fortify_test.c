/* fortify_test: the checked forms do what the plain ones do, up to the room, and end past it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* Under names of their own, so that the test's own C library keeps its. */
#define __sprintf_chk        own_sprintf
#define __vsprintf_chk       own_vsprintf
#define __snprintf_chk       own_snprintf
#define __vsnprintf_chk      own_vsnprintf
#define __fprintf_chk        own_fprintf
#define __vfprintf_chk       own_vfprintf
#define __printf_chk         own_printf
#define __asprintf_chk       own_asprintf
#define __vasprintf_chk      own_vasprintf
#define __memcpy_chk         own_memcpy
#define __memmove_chk        own_memmove
#define __memset_chk         own_memset
#define __mempcpy_chk        own_mempcpy
#define __explicit_bzero_chk own_explicit_bzero
#define __strcpy_chk         own_strcpy
#define __stpcpy_chk         own_stpcpy
#define __strncpy_chk        own_strncpy
#define __strcat_chk         own_strcat
#define __strncat_chk        own_strncat
#define __strlcpy_chk        own_strlcpy
#define __strlcat_chk        own_strlcat
#define __read_chk           own_read
#define __fread_chk          own_fread
#define __fgets_chk          own_fgets
#define __isoc23_strtol      own_strtol
#define __isoc23_strtoul     own_strtoul
#define __isoc23_strtoll     own_strtoll
#define __isoc23_strtoull    own_strtoull
#include "libc/fortify.c"

static char small[8]; /* "1234567" fits, eight characters do not */

static void within_the_room_they_are_the_plain_ones(void)
{
	char *made = NULL;
	CHECK(own_sprintf(small, 1, 8, "%d-%s", 12, "abcd") == 7);
	CHECK_TEXT(small, "12-abcd");
	CHECK(own_snprintf(small, 8, 1, 8, "%s", "123456789") == 9);
	CHECK_TEXT(small, "1234567");
	CHECK(own_asprintf(&made, 1, "%05d", 42) == 5);
	CHECK_TEXT(made, "00042");
	free(made);
	CHECK(own_memcpy(small, "abcdefg", 8, 8) == small);
	CHECK(own_memmove(small + 1, small, 6, 7) == small + 1);
	CHECK_TEXT(small, "aabcdef");
	CHECK(own_memset(small, 'x', 7, 8) == small);
	CHECK_TEXT(small, "xxxxxxx");
	CHECK(own_mempcpy(small, "ab", 3, 8) == small + 3);
	own_explicit_bzero(small, 8, 8);
	CHECK(small[0] == 0 && small[7] == 0);
	CHECK(own_stpcpy(own_stpcpy(small, "abc", 8), "defg", 5) == small + 7);
	CHECK_TEXT(small, "abcdefg");
	CHECK_TEXT(own_strcpy(small, "ab", 8), "ab");
	CHECK_TEXT(own_strcat(small, "cdefg", 8), "abcdefg");
	CHECK_TEXT(own_strncpy(small, "xyz", 8, 8), "xyz");
	CHECK_TEXT(own_strncat(small, "123456789", 4, 8), "xyz1234");
	CHECK_TEXT(own_strncat(small, "", 400, 8), "xyz1234");
	CHECK(own_strlcpy(small, "123456789", 8, 8) == 9);
	CHECK_TEXT(small, "1234567");
	CHECK(own_strlcpy(small, "12", 8, 8) == 2 && own_strlcpy(small, "9", 0, 8) == 1);
	CHECK_TEXT(small, "12");
	CHECK(own_strlcat(small, "3456789", 8, 8) == 9);
	CHECK_TEXT(small, "1234567");
	CHECK(own_strlcat(small, "89", 4, 8) == 6);
	CHECK_TEXT(small, "1234567");
	CHECK(own_strtol("-12x", &made, 10) == -12 && *made == 'x');
	CHECK(own_strtoul("ff", NULL, 16) == 255 && own_strtoll("-7", NULL, 0) == -7);
	CHECK(own_strtoull("18446744073709551615", NULL, 10) == 18446744073709551615ull);
}

static void files_are_read_and_written(void)
{
	FILE *file = tmpfile();
	if (!file) {
		CHECK(false);
		return;
	}
	CHECK(own_fprintf(file, 1, "%s\n%s", "line", "more") == 9);
	rewind(file);
	CHECK(own_fgets(small, 8, 8, file) == small);
	CHECK_TEXT(small, "line\n");
	CHECK(own_fread(small, 8, 2, 4, file) == 2 && memcmp(small, "more", 4) == 0);
	fflush(file);
	CHECK(lseek(fileno(file), 5, SEEK_SET) == 5);
	CHECK(own_read(fileno(file), small, 8, 8) == 4);
	fclose(file);
}

static void past_the_room(int which)
{
	static const char nine[] = "123456789";
	switch (which) {
	case 0:
		own_sprintf(small, 1, 8, "%s", "12345678");
		break;
	case 1:
		own_snprintf(small, 9, 1, 8, "x");
		break;
	case 2:
		own_memcpy(small, nine, 9, 8);
		break;
	case 3:
		own_memmove(small, nine, 9, 8);
		break;
	case 4:
		own_memset(small, 0, 9, 8);
		break;
	case 5:
		own_mempcpy(small, nine, 9, 8);
		break;
	case 6:
		own_explicit_bzero(small, 9, 8);
		break;
	case 7:
		own_strcpy(small, "12345678", 8);
		break;
	case 8:
		own_stpcpy(small, "12345678", 8);
		break;
	case 9:
		own_strncpy(small, "x", 9, 8);
		break;
	case 10:
		own_strcat(strcpy(small, "1234"), "5678", 8);
		break;
	case 11:
		own_strncat(strcpy(small, "1234"), "56789", 4, 8);
		break;
	case 12:
		own_strlcpy(small, "x", 9, 8);
		break;
	case 13:
		own_strlcat(strcpy(small, "x"), "x", 9, 8);
		break;
	case 14:
		own_read(0, small, 9, 8);
		break;
	case 15:
		own_fread(small, 8, 3, 3, stdin);
		break;
	case 16:
		own_fread(small, 8, (size_t)1 << 63, 2, stdin);
		break;
	case 17:
		own_fgets(small, 8, 9, stdin);
		break;
	case 18:
		own_fgets(small, 8, -1, stdin);
		break;
	/* Not ended within the room. */
	case 19:
		own_strncat(memset(small, 'x', 8), "1", 1, 8);
		break;
	}
}

static void past_the_room_they_end_the_program(void)
{
	for (int which = 0; which <= 19; which++) {
		int status = -1;
		pid_t pid = fork();
		if (pid == 0) {
			struct rlimit none = { 0, 0 };
			setrlimit(RLIMIT_CORE, &none);
			past_the_room(which);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
		if (!WIFSIGNALED(status))
			fprintf(stderr, "   case %d\n", which);
	}
}

int main(void)
{
	RUN(within_the_room_they_are_the_plain_ones);
	RUN(files_are_read_and_written);
	RUN(past_the_room_they_end_the_program);
	return CHECK_STATUS();
}
