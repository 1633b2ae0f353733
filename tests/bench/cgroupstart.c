/*
 * cgroupstart: what a group of version 2 adds to the start of a process, without anything else:
 * mkdir, CLONE_INTO_CGROUP and rmdir, beside a plain clone3. Knows nothing about sandboxes.
 *
 *	cgroupstart [-n ROUNDS] DIRECTORY     DIRECTORY: of a mounted cgroup2, writable
 *
 * Output, tab-separated, in microseconds: what, least, median. The two ways alternate.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_MAX 100000
#define INTO       0x200000000ull /* CLONE_INTO_CGROUP, Linux 5.7 */

struct clone_arguments {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
		set_tid_size, cgroup;
};

static void fail(const char *what)
{
	fprintf(stderr, "cgroupstart: %s: %s\n", what, strerror(errno));
	exit(2);
}

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* A process that does nothing, from before it is made until it is waited for. */
static void start(int group)
{
	struct clone_arguments args = { .exit_signal = SIGCHLD };
	if (group >= 0) {
		args.flags = INTO;
		args.cgroup = (uint64_t)group;
	}
	long pid = syscall(SYS_clone3, &args, sizeof args);
	if (pid == 0)
		_exit(0);
	if (pid < 0 || waitpid((pid_t)pid, NULL, 0) < 0)
		fail("clone3");
}

static double plain_us(void)
{
	double begin = now_us();
	start(-1);
	return now_us() - begin;
}

static double grouped_us(int parent)
{
	static const char name[] = "cgroupstart";
	double begin = now_us();
	if (mkdirat(parent, name, 0755) < 0)
		fail("mkdir");
	int group = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (group < 0)
		fail("open");
	start(group);
	/* An ended process is counted for a moment still. */
	while (unlinkat(parent, name, AT_REMOVEDIR) < 0)
		if (errno != EBUSY)
			fail("rmdir");
	close(group);
	return now_us() - begin;
}

static int by_size(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

static void say(const char *what, double *values, size_t count)
{
	qsort(values, count, sizeof *values, by_size);
	printf("%s\t%.1f\t%.1f\n", what, values[0], values[count / 2]);
}

int main(int argc, char **argv)
{
	size_t rounds = 1000;
	int option;
	while ((option = getopt(argc, argv, "n:")) == 'n')
		rounds = strtoul(optarg, NULL, 10);
	if (option != -1 || optind + 1 != argc || rounds == 0 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: cgroupstart [-n ROUNDS] DIRECTORY\n");
		return 2;
	}
	int parent = open(argv[optind], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	double *plain = calloc(rounds, sizeof *plain), *grouped = calloc(rounds, sizeof *grouped);
	if (parent < 0 || !plain || !grouped)
		fail(argv[optind]);
	for (size_t i = 0; i < rounds; i++) {
		plain[i] = plain_us();
		grouped[i] = grouped_us(parent);
	}
	say("plain", plain, rounds);
	say("in a group of its own", grouped, rounds);
	return 0;
}
