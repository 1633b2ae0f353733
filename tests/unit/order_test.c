/* order: a command that travels into a kept box arrives as it was, and nothing else is taken for
 * one. */
#define _GNU_SOURCE
#include "box/join.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const argv_of[] = { "cmd", "", "b c", NULL };
static const char *const envp_of[] = { "A=1", "B=\n\xff", NULL };
static const char *const candidates_of[] = { "/bin/cmd", "/usr/bin/cmd", NULL };
static const struct plan_rlimit limits_of[] = {
	{ RLIMIT_NOFILE, { 10, 20 }, "limits.open_files" },
	{ RLIMIT_CORE, { 1, RLIM_INFINITY }, "core" },
};

static const struct plan sample = { .argv = argv_of,
	.envp = envp_of,
	.candidates = candidates_of,
	.cwd = "/work",
	.umask = 027,
	.rlimits = limits_of,
	.rlimit_count = 2 };

static void same_list(const char *const *a, const char *const *b)
{
	size_t i = 0;
	for (; a[i] && b[i]; i++)
		CHECK_TEXT(a[i], b[i]);
	CHECK(!a[i] && !b[i]);
}

static void order_arrives(void)
{
	struct plan plan = { .hostname = "box" };
	void *memory;
	size_t size;
	int fd = order_write(&sample);
	CHECK(fd >= 0);
	CHECK(order_read(fd, &plan, &memory, &size) == 0);
	same_list(plan.argv, argv_of);
	same_list(plan.envp, envp_of);
	same_list(plan.candidates, candidates_of);
	CHECK_TEXT(plan.cwd, "/work");
	CHECK_TEXT(plan.hostname, "box");
	CHECK(plan.umask == 027);
	CHECK_TEXT(plan.shell_argv[0], "/bin/sh");
	CHECK_TEXT(plan.shell_argv[3], "b c");
	CHECK(!plan.shell_argv[4]);
	CHECK(plan.rlimit_count == 2);
	CHECK(plan.rlimits[0].resource == RLIMIT_NOFILE);
	CHECK(plan.rlimits[0].limit.rlim_max == 20);
	CHECK(plan.rlimits[1].limit.rlim_max == RLIM_INFINITY);
	CHECK_TEXT(plan.rlimits[1].why, "core");
	CHECK(munmap(memory, size) == 0);
	close(fd);
}

/* Bytes as an order; what is wrong leaves the plan alone. */
static int try(const void *data, size_t len)
{
	struct plan plan = { .hostname = "box", .argv = argv_of };
	void *memory;
	size_t size;
	int fd = memfd_create("try", MFD_CLOEXEC);
	CHECK(fd >= 0 && write(fd, data, len) == (ssize_t)len);
	int r = order_read(fd, &plan, &memory, &size);
	if (r == 0)
		munmap(memory, size);
	else
		CHECK(plan.argv == argv_of && !plan.cwd);
	close(fd);
	return r;
}

static void order_refuses_what_is_none(void)
{
	char good[4096], bad[4096];
	int fd = order_write(&sample);
	ssize_t len = pread(fd, good, sizeof good, 0);
	CHECK(len > 0);
	CHECK(try(good, (size_t)len) == 0);
	for (ssize_t cut = 0; cut < len; cut++)
		CHECK(try(good, (size_t)cut) == -EPROTO);
	memcpy(bad, good, (size_t)len);
	memcpy(bad + len, "more", 5);
	CHECK(try(bad, (size_t)len + 5) == -EPROTO);
	/* Every number of the head larger than what is there. */
	for (size_t at = 8; at < 24; at += 4) {
		static const uint32_t values[] = { 100, 1u << 24, UINT32_MAX };
		for (size_t i = 0; i < 3; i++) {
			memcpy(bad, good, (size_t)len);
			memcpy(bad + at, &values[i], sizeof values[i]);
			CHECK(try(bad, (size_t)len) == -EPROTO);
		}
	}
	/* Whatever any one byte becomes, nothing is read beyond the end. */
	for (ssize_t at = 0; at < len; at++)
		for (int value = 0; value < 256; value += 51) {
			memcpy(bad, good, (size_t)len);
			bad[at] = (char)value;
			int r = try(bad, (size_t)len);
			CHECK(r == 0 || r == -EPROTO);
		}
	close(fd);
}

static void order_has_a_maximum(void)
{
	struct plan plan = sample;
	char *text = malloc(ORDER_MAX);
	memset(text, 'x', ORDER_MAX - 1);
	text[ORDER_MAX - 1] = 0;
	const char *const argv[] = { "cmd", text, NULL };
	plan.argv = argv;
	CHECK(order_write(&plan) == -E2BIG);
	free(text);
}

int main(void)
{
	RUN(order_arrives);
	RUN(order_refuses_what_is_none);
	RUN(order_has_a_maximum);
	return CHECK_STATUS();
}
