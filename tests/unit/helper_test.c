/* Asking a helper program: its answer, its end, and what is kept from it. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/helper.h"

static int ask(const char *script, bool words, char *ret, size_t size)
{
	char *argv[] = { (char *)"/bin/sh", (char *)"-c", (char *)script, NULL };
	return helper_ask(argv, words, ret, size);
}

static void the_answer_and_the_status(void)
{
	char text[64];
	CHECK(ask("echo yes; echo no >&2", true, text, sizeof text) == 0);
	CHECK_TEXT(text, "yes\nno\n");
	CHECK(ask("echo yes; exec 2>/dev/null; echo no >&2; exit 3", false, text, sizeof text) ==
		3);
	CHECK_TEXT(text, "yes\n");
	CHECK(ask("", false, text, sizeof text) == 0);
	CHECK_TEXT(text, "");
	CHECK(ask("kill -9 $$", false, text, sizeof text) == -ECHILD);
}

static void too_long_an_answer_is_cut_and_ends(void)
{
	char text[8];
	CHECK(ask("i=0; while [ $i -lt 9999 ]; do echo 0123456789; i=$((i+1)); done; exit 4", false,
		      text, sizeof text) == 4);
	CHECK_TEXT(text, "0123456");
}

static void what_cannot_be_started(void)
{
	char text[8];
	char *argv[] = { (char *)"/nonexistent/helper", NULL };
	CHECK(helper_ask(argv, false, text, sizeof text) == -ENOENT);
}

static void nothing_of_ours_is_there(void)
{
	char text[256], script[256];
	int ends[2];
	setenv("SECRET", "x", 1);
	CHECK(pipe2(ends, O_CLOEXEC) == 0);
	snprintf(script, sizeof script,
		"echo \"$SECRET\"; read -r line; echo \"$line\"; cd /proc/$$/fd && readlink %d %d",
		ends[0], ends[1]);
	CHECK(ask(script, false, text, sizeof text) == 1);
	CHECK_TEXT(text, "\n\n");
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	RUN(the_answer_and_the_status);
	RUN(too_long_an_answer_is_cut_and_ends);
	RUN(what_cannot_be_started);
	RUN(nothing_of_ours_is_there);
	return CHECK_STATUS();
}
