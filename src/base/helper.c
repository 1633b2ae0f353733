/* helper: starts a program, reads until it ends, waits for it. Knows none of them. */
#define _GNU_SOURCE
#include "base/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

static int start(char *const argv[], bool words, int answer, pid_t *ret_pid)
{
	static char *const none[] = { NULL };
	posix_spawn_file_actions_t actions;
	/* Above those that the actions fill. */
	AUTO_FD end = fcntl(answer, F_DUPFD_CLOEXEC, 10);
	if (end < 0)
		return -errno;
	int r = posix_spawn_file_actions_init(&actions);
	if (r)
		return -r;
	r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!r)
		r = posix_spawn_file_actions_adddup2(&actions, end, STDOUT_FILENO);
	if (!r && words)
		r = posix_spawn_file_actions_adddup2(&actions, end, STDERR_FILENO);
	if (!r)
		r = posix_spawn(ret_pid, argv[0], &actions, NULL, argv, none);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

/* To its end, so that the helper is never stopped by a full pipe. 0 or -errno. */
static int hear(int fd, char *ret, size_t size)
{
	char rest[256];
	size_t len = 0;
	ssize_t n;
	do {
		size_t room = size - 1 - len;
		n = read(fd, room ? ret + len : rest, room ? room : sizeof rest);
		if (n > 0 && room)
			len += (size_t)n;
	} while (n > 0 || (n < 0 && errno == EINTR));
	ret[len] = 0;
	return n < 0 ? -errno : 0;
}

int helper_ask(char *const argv[], bool words, char *ret, size_t size)
{
	int ends[2], status = 0;
	pid_t pid;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	int r = start(argv, words, ends[1], &pid);
	close(ends[1]);
	int heard = r == 0 ? hear(ends[0], ret, size) : 0;
	close(ends[0]);
	if (r < 0)
		return r;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (heard < 0)
		return heard;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -ECHILD;
}
