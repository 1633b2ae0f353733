/* scope: what agentbox makes of a helper that answers, refuses, hangs, talks too much or is not
 * there. */
#define _GNU_SOURCE
#include "cli/scope.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENT_MS 20000

static char place[] = "/tmp/scope_test.XXXXXX";

/* A helper that is a shell script; the name is good until the next one. */
static const char *helper(const char *script)
{
	static char path[sizeof place + 16];
	snprintf(path, sizeof path, "%s/helper", place);
	unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	CHECK(fd >= 0 && dprintf(fd, "#!/bin/sh\n%s\n", script) > 0);
	close(fd);
	return path;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), want = strlen(end);
	return len >= want && strcmp(text + len - want, end) == 0;
}

static void words(void)
{
	struct err err = { 0 };
	char script[128];
	snprintf(script, sizeof script, "[ \"$*\" = 'system %d box-7' ]", (int)getpid());
	CHECK(scope_ask(helper(script), true, "box-7", PATIENT_MS, &err) == 0);
	snprintf(script, sizeof script, "[ \"$*\" = 'user %d box-7' ]", (int)getpid());
	CHECK(scope_ask(helper(script), false, "box-7", PATIENT_MS, &err) == 0);
}

/* The caller's variables say where another user's bus is, or what to start in its place. */
static void environment(void)
{
	struct err err = { 0 };
	char script[128];
	setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/wrong", 1);
	setenv("XDG_RUNTIME_DIR", "/wrong", 1);
	snprintf(script, sizeof script,
		"[ \"$XDG_RUNTIME_DIR:$DBUS_SESSION_BUS_ADDRESS\" = /run/user/%u: ]",
		(unsigned)geteuid());
	CHECK(scope_ask(helper(script), false, "box", PATIENT_MS, &err) == 0);
	CHECK(scope_ask(helper("[ -z \"$XDG_RUNTIME_DIR$DBUS_SESSION_BUS_ADDRESS\" ]"), true, "box",
		      PATIENT_MS, &err) == 0);
}

static void refusals(void)
{
	struct err err = { 0 };
	CHECK(scope_ask(helper("echo 'agentbox-scope: no: nobody' >&2; echo more >&2; exit 1"),
		      true, "box", PATIENT_MS, &err) == -1);
	CHECK(err.code == ERR_cgroup_unavailable);
	CHECK(ends_with(err.text, ": no: nobody"));
	CHECK(scope_ask(helper("exit 1"), true, "box", PATIENT_MS, &err) == -1);
	CHECK(ends_with(err.text, ": agentbox-scope ended without a word"));
	CHECK(scope_ask(helper("kill -9 $$"), true, "box", PATIENT_MS, &err) == -1);
	CHECK(ends_with(err.text, ": agentbox-scope ended without a word"));
	/* Words alone are no refusal. */
	CHECK(scope_ask(helper("echo hm >&2"), true, "box", PATIENT_MS, &err) == 0);
}

static void missing(void)
{
	struct err err = { 0 };
	CHECK(scope_ask("/nonexistent/agentbox-scope", true, "box", PATIENT_MS, &err) == -1);
	CHECK(err.code == ERR_cgroup_unavailable);
	CHECK(ends_with(err.text, ": the program agentbox-scope is not installed"));
	CHECK(scope_ask("/dev/null", true, "box", PATIENT_MS, &err) == -1);
	CHECK(ends_with(err.text, ": the program agentbox-scope cannot be started"));
	CHECK(err.errnum == EACCES);
}

/* More than a pipe holds must not block the helper, nor more than is kept spoil the text. */
static void talkative(void)
{
	struct err err = { 0 };
	CHECK(scope_ask(helper("i=0; while [ $i -lt 3000 ]; do echo a line that is too much; "
			       "i=$((i+1)); done >&2; exit 1"),
		      true, "box", PATIENT_MS, &err) == -1);
	CHECK(ends_with(err.text, ": a line that is too much"));
}

/* One that hangs is ended, and nothing of it is left. */
static void stuck(void)
{
	struct err err = { 0 };
	time_t before = time(NULL);
	CHECK(scope_ask(helper("exec sleep 60"), true, "box", 200, &err) == -1);
	CHECK(ends_with(err.text, ": agentbox-scope did not end"));
	CHECK(time(NULL) - before < 30);
	CHECK(waitpid(-1, NULL, WNOHANG) == -1);
}

/* The caller's input is not the helper's. */
static void streams(void)
{
	struct err err = { 0 };
	CHECK(scope_ask(helper("[ -z \"$(cat)\" ] && [ /proc/self/fd/1 -ef /dev/null ]"), true,
		      "box", PATIENT_MS, &err) == 0);
}

int main(void)
{
	if (!mkdtemp(place)) {
		perror(place);
		return 1;
	}
	RUN(words);
	RUN(environment);
	RUN(refusals);
	RUN(missing);
	RUN(talkative);
	RUN(stuck);
	RUN(streams);
	unlink(helper(""));
	rmdir(place);
	return CHECK_STATUS();
}
