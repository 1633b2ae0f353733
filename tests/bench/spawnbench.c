/*
 * spawnbench: starts commands and times them from the outside. Owns the clock and the order; knows
 * nothing about sandboxes and judges nothing.
 *
 *	spawnbench [-n ROUNDS] [-w WARMUP] PLAN        one by one, each round in a new order
 *	spawnbench -j JOBS -t TOTAL [-n ROUNDS] PLAN   TOTAL starts of a command, JOBS at once
 *
 * A plan is text. A line "command LABEL" begins a command; the lines below it say how it starts:
 *	user UID GID      become this user first (needs root)
 *	dir PATH          start in this directory
 *	fd NUMBER PATH    open PATH for reading as this descriptor, anew for each start
 *	env NAME=VALUE    the environment, nothing else is passed
 *	arg TEXT          the program and its arguments, one a line
 *
 * Output, tab-separated: LABEL wall_ns cpu_us maxrss_kb status, or with -j: LABEL jobs total
 * wall_ns failures. A start is timed from just before vfork until wait4 has returned. Standard
 * input and both outputs are /dev/null.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_COMMANDS 64
#define MAX_WORDS    255
#define MAX_FDS      32

struct command {
	const char *label, *dir;
	unsigned uid, gid;
	int fd_number[MAX_FDS];
	const char *fd_path[MAX_FDS];
	int fds;
	char *argv[MAX_WORDS + 1], *envp[MAX_WORDS + 1];
	int args, envs;
};

struct bench {
	struct command *commands;
	int count;
	int null_fd;
};

static void fail(const char *what)
{
	fprintf(stderr, "spawnbench: %s: %s\n", what, errno ? strerror(errno) : "bad plan");
	exit(2);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void plan_line(struct bench *b, char *key, char *value)
{
	struct command *c = &b->commands[b->count - 1];

	errno = 0;
	if (!strcmp(key, "command")) {
		if (b->count == MAX_COMMANDS)
			fail("too many commands");
		c = &b->commands[b->count++];
		c->label = value;
		c->dir = "/";
		return;
	}
	if (!b->count)
		fail(key);
	if (!strcmp(key, "arg") && c->args < MAX_WORDS) {
		c->argv[c->args++] = value;
	} else if (!strcmp(key, "env") && c->envs < MAX_WORDS) {
		c->envp[c->envs++] = value;
	} else if (!strcmp(key, "dir")) {
		c->dir = value;
	} else if (!strcmp(key, "user")) {
		if (sscanf(value, "%u %u", &c->uid, &c->gid) != 2)
			fail(key);
	} else if (!strcmp(key, "fd") && c->fds < MAX_FDS) {
		char *space = strchr(value, ' ');

		if (!space)
			fail(key);
		c->fd_number[c->fds] = atoi(value);
		c->fd_path[c->fds++] = space + 1;
	} else {
		fail(key);
	}
}

static void plan_read(struct bench *b, const char *path)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	if (!f)
		fail(path);
	b->commands = calloc(MAX_COMMANDS, sizeof *b->commands);
	while ((n = getline(&line, &cap, f)) > 0) {
		char *copy, *space;

		if (line[n - 1] == '\n')
			line[--n] = 0;
		if (!n)
			continue;
		copy = strdup(line);
		space = strchr(copy, ' ');
		if (!space)
			fail(copy);
		*space = 0;
		plan_line(b, copy, space + 1);
	}
	free(line);
	fclose(f);
	for (int i = 0; i < b->count; i++)
		if (!b->commands[i].args)
			fail(b->commands[i].label);
	if (!b->count)
		fail(path);
}

/* In the vfork'ed child, which shares the parent's memory: system calls and nothing else. */
static void become(const struct command *c, int null_fd)
{
	if (c->uid && (syscall(SYS_setgroups, 0, NULL) || syscall(SYS_setgid, c->gid) ||
			      syscall(SYS_setuid, c->uid)))
		_exit(120);
	if (chdir(c->dir))
		_exit(121);
	for (int i = 0; i < 3; i++)
		dup2(null_fd, i);
	for (int i = 0; i < c->fds; i++) {
		int fd = open(c->fd_path[i], O_RDONLY);

		if (fd < 0)
			_exit(122);
		if (fd != c->fd_number[i]) {
			dup2(fd, c->fd_number[i]);
			close(fd);
		}
	}
	execve(c->argv[0], c->argv, c->envp);
	_exit(123);
}

static pid_t start(const struct bench *b, const struct command *c)
{
	pid_t pid = vfork();

	if (!pid)
		become(c, b->null_fd);
	if (pid < 0)
		fail("vfork");
	return pid;
}

static int exit_status(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void run_one(const struct bench *b, const struct command *c, int print)
{
	struct rusage ru;
	int status;
	uint64_t begin = now_ns(), end;
	pid_t pid = start(b, c);

	while (wait4(pid, &status, 0, &ru) < 0)
		if (errno != EINTR)
			fail("wait4");
	end = now_ns();
	if (!print)
		return;
	printf("%s\t%llu\t%lld\t%ld\t%d\n", c->label, (unsigned long long)(end - begin),
		(long long)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000 +
			ru.ru_utime.tv_usec + ru.ru_stime.tv_usec,
		ru.ru_maxrss, exit_status(status));
	fflush(stdout);
}

static void run_many(const struct bench *b, const struct command *c, int jobs, int total, int print)
{
	int begun = 0, running = 0, failures = 0, status;
	uint64_t begin = now_ns(), end;

	while (begun < total || running) {
		for (; begun < total && running < jobs; begun++, running++)
			start(b, c);
		if (wait4(-1, &status, 0, NULL) > 0) {
			running--;
			failures += exit_status(status) != 0;
		}
	}
	end = now_ns();
	/* The kernel frees network namespaces later; the next command shall not pay for it. */
	usleep(150000);
	if (!print)
		return;
	printf("%s\t%d\t%d\t%llu\t%d\n", c->label, jobs, total, (unsigned long long)(end - begin),
		failures);
	fflush(stdout);
}

static void shuffle(int *order, int count)
{
	for (int i = count - 1; i > 0; i--) {
		int j = rand() % (i + 1), t = order[i];

		order[i] = order[j];
		order[j] = t;
	}
}

int main(int argc, char **argv)
{
	struct bench b = { 0 };
	int rounds = 100, warmup = 2, jobs = 0, total = 200, option, order[MAX_COMMANDS];

	while ((option = getopt(argc, argv, "n:w:j:t:")) != -1) {
		switch (option) {
		case 'n':
			rounds = atoi(optarg);
			break;
		case 'w':
			warmup = atoi(optarg);
			break;
		case 'j':
			jobs = atoi(optarg);
			break;
		case 't':
			total = atoi(optarg);
			break;
		default:
			return 2;
		}
	}
	if (optind != argc - 1) {
		fputs("usage: spawnbench [-n ROUNDS] [-w WARMUP] [-j JOBS -t TOTAL] PLAN\n",
			stderr);
		return 2;
	}
	plan_read(&b, argv[optind]);
	b.null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (b.null_fd < 0)
		fail("/dev/null");
	srand((unsigned)getpid());
	for (int i = 0; i < b.count; i++)
		order[i] = i;
	for (int round = -warmup; round < rounds; round++) {
		shuffle(order, b.count);
		for (int i = 0; i < b.count; i++) {
			if (jobs)
				run_many(&b, &b.commands[order[i]], jobs, total, round >= 0);
			else
				run_one(&b, &b.commands[order[i]], round >= 0);
		}
	}
	return 0;
}
