/*
 * scope: starts agentbox-scope and waits for it. Knows nothing of buses, and of control groups only
 * that the helper has put us into another one.
 */
#define _GNU_SOURCE
#include "cli/scope.h"
#include "base/fd.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The helper gives up after five seconds; this is for one that is stuck. */
#define HELPER_LIMIT_MS 6000

/*
 * Start the helper with `stderr_fd` as its stderr. Its environment is ours alone: where a user's
 * manager is reached is the system's matter, and a caller after su(1) still has another user's
 * variables. Signals that are blocked here are blocked there, so that a ^C reaches only us.
 */
static int start(const char *program, bool system, const char *name, int stderr_fd, pid_t *ret_pid)
{
	char number[16], runtime[64];
	snprintf(number, sizeof number, "%d", (int)getpid());
	snprintf(runtime, sizeof runtime, "XDG_RUNTIME_DIR=/run/user/%u", (unsigned)geteuid());
	char *argv[] = { (char *)program, (char *)(system ? "system" : "user"), number,
		(char *)name, NULL };
	char *const vars[] = { system ? NULL : runtime, NULL };
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);
	if (r)
		return -r;
	r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
	if (!r)
		r = posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO);
	if (!r)
		r = posix_spawn_file_actions_adddup2(&actions, stderr_fd, STDERR_FILENO);
	if (!r)
		r = posix_spawn(ret_pid, program, &actions, NULL, argv, vars);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

/*
 * What the helper says, until it ends: with it the last writing end is closed. The first `size` - 1
 * bytes are kept. -ETIME when it takes longer.
 */
static int listen_to(int fd, int limit_ms, char *text, size_t size)
{
	uint64_t end = cli_clock_us() + (uint64_t)limit_ms * 1000;
	size_t len = 0;
	char rest[256];
	for (;;) {
		uint64_t now = cli_clock_us();
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		if (now >= end)
			return -ETIME;
		if (poll(&ready, 1, (int)((end - now + 999) / 1000)) <= 0)
			continue;
		size_t room = size - 1 - len;
		ssize_t got = read(fd, room ? text + len : rest, room ? room : sizeof rest);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got <= 0)
			return got < 0 ? -errno : 0;
		if (room)
			text[len += (size_t)got] = 0;
	}
}

/* The helper's reason: its first line, without its name in front. */
static const char *reason(char *text)
{
	static const char prefix[] = "agentbox-scope: ";
	text[strcspn(text, "\n")] = 0;
	if (strncmp(text, prefix, sizeof prefix - 1) == 0)
		text += sizeof prefix - 1;
	return *text ? text : "agentbox-scope ended without a word";
}

static int refuse(struct err *err, int errnum, const char *why)
{
	return err_set(err, ERR_cgroup_unavailable, errnum,
		"systemd gives no control group to agentbox: %s", why);
}

int scope_ask(const char *program, bool system, const char *name, int limit_ms, struct err *err)
{
	int ends[2], status = 0;
	char text[256] = "";
	pid_t pid;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return refuse(err, errno, strerror(errno));
	int r = start(program, system, name, ends[1], &pid);
	close(ends[1]);
	int heard = r < 0 ? r : listen_to(ends[0], limit_ms, text, sizeof text);
	close(ends[0]);
	if (r < 0)
		return refuse(err, -r,
			r == -ENOENT ? "the program agentbox-scope is not installed"
				     : "the program agentbox-scope cannot be started");
	if (heard < 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return refuse(err, errno, strerror(errno));
	if (heard == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return refuse(err, 0, heard == -ETIME ? "agentbox-scope did not end" : reason(text));
}

int scope_enter(bool system, const char *name, struct err *err)
{
	return scope_ask(AGENTBOX_LIBEXECDIR "/agentbox-scope", system, name, HELPER_LIMIT_MS, err);
}
