/*
 * sysloop: what a system call costs where this runs. Prints name<TAB>nanoseconds for each; a figure
 * is the best of many short loops, so that other work on the machine does not count.
 *
 *	sysloop [-f]      -f: first put on a filter of one instruction, which allows everything
 *
 * getppid does nothing, read fetches one byte from /dev/zero, open is openat and close of a file
 * whose path has three components.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOOPS  40
#define OPENED "/usr/bin/env"

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int allow_everything(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = 1, .filter = &allow };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static int call_getppid(int zero)
{
	(void)zero;
	return syscall(SYS_getppid) < 0;
}

static int call_read(int zero)
{
	char byte;

	return read(zero, &byte, 1) != 1;
}

static int call_open(int zero)
{
	int fd = open(OPENED, O_RDONLY | O_CLOEXEC);

	(void)zero;
	return fd < 0 || close(fd);
}

static const struct call {
	const char *name;
	int (*make)(int zero); /* 0: it did what it should */
	int count;             /* calls in one loop */
} calls[] = {
	{ "getppid", call_getppid, 20000 },
	{ "read", call_read, 20000 },
	{ "open", call_open, 2000 },
};

int main(int argc, char **argv)
{
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	if (zero < 0) {
		perror("sysloop: /dev/zero");
		return 1;
	}
	if (argc > 1 && !strcmp(argv[1], "-f") && allow_everything()) {
		perror("sysloop: seccomp");
		return 1;
	}
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		double best = 0;

		for (int loop = 0; loop < LOOPS; loop++) {
			uint64_t begin = now_ns();
			double each;

			for (int k = 0; k < calls[i].count; k++) {
				if (calls[i].make(zero)) {
					fprintf(stderr, "sysloop: %s failed\n", calls[i].name);
					return 1;
				}
			}
			each = (double)(now_ns() - begin) / calls[i].count;
			if (!loop || each < best)
				best = each;
		}
		printf("%s\t%.1f\n", calls[i].name, best);
	}
	return 0;
}
