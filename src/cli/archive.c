/*
 * archive: starts agentbox-archive, which unpacks the caller's stdin into a stage. This program
 * reads no byte of an archive.
 */
#define _GNU_SOURCE
#include "cli/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

#define PROGRAM     AGENTBOX_LIBEXECDIR "/agentbox-archive"
#define ENTRIES_MAX 100000
#define STAGE_FD    3 /* where the helper expects the stage */

/* Its environment is empty, its stdout leads nowhere. */
static int start(struct files *files, const struct view_tree *tree, int stderr_fd, pid_t *ret_pid)
{
	char bytes[24], entries[16], owner[16], group[16];
	bool lax = policy_best_effort(&files->policy, "landlock");
	char *argv[] = { (char *)PROGRAM, bytes, entries, owner, group,
		lax ? (char *)"best-effort" : NULL, NULL };
	char *const vars[] = { NULL };
	snprintf(bytes, sizeof bytes, "%" PRIu64, files->max);
	snprintf(entries, sizeof entries, "%d", ENTRIES_MAX);
	snprintf(owner, sizeof owner, "%u", (unsigned)tree->owner);
	snprintf(group, sizeof group, "%u", (unsigned)tree->group);
	/* Above those that the actions below fill. */
	AUTO_FD stage = fcntl(files->view.stage, F_DUPFD_CLOEXEC, 10);
	AUTO_FD words = fcntl(stderr_fd, F_DUPFD_CLOEXEC, 10);
	if (stage < 0 || words < 0)
		return -errno;
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);
	if (r)
		return -r;
	r = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	if (!r)
		r = posix_spawn_file_actions_adddup2(&actions, words, STDERR_FILENO);
	if (!r)
		r = posix_spawn_file_actions_adddup2(&actions, stage, STAGE_FD);
	if (!r)
		r = posix_spawn(ret_pid, PROGRAM, &actions, NULL, argv, vars);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

/* What it says until it ends; more than fits is dropped. */
static void listen_to(int fd, char *text, size_t size)
{
	char rest[256];
	size_t len = 0;
	for (;;) {
		size_t room = size - 1 - len;
		ssize_t n = read(fd, room ? text + len : rest, room ? room : sizeof rest);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += room ? (size_t)n : 0;
	}
	text[len] = 0;
	if (len && text[len - 1] == '\n')
		text[len - 1] = 0;
}

static int not_started(int r, struct err *err)
{
	if (r != -ENOENT)
		return err_set(err, ERR_no_resources, -r,
			"the program agentbox-archive cannot be started: %s", strerror(-r));
	err_set(err, ERR_unsupported, ENOENT,
		"archives cannot be read: the program agentbox-archive is not installed");
	return err_hint_set(err, "build agentbox where libarchive-dev is installed");
}

/* As the helper's exit statuses say (archive_main.c). */
static int judge(int status, const char *text, struct err *err)
{
	switch (WIFEXITED(status) ? WEXITSTATUS(status) : -1) {
	case 0:
		return 0;
	case 5:
		return err_set(err, ERR_unsafe_archive, 0, "unsafe archive: %s", text);
	case 3:
		return err_set(err, ERR_no_resources, 0, "the archive is not unpacked: %s", text);
	case 4:
		return err_set(
			err, ERR_landlock_insufficient, 0, "the archive is not unpacked: %s", text);
	}
	return err_set(err, ERR_internal, 0, "the program agentbox-archive failed (%s %d): %s",
		WIFSIGNALED(status) ? "signal" : "status",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), text);
}

int archive_unpack(struct files *files, const struct view_tree *tree, struct err *err)
{
	int ends[2], status = 0;
	char text[480] = "";
	pid_t pid;
	/* It acts as the owner of what it makes. */
	if (geteuid() == 0 && fchown(files->view.stage, tree->owner, tree->group) < 0)
		return err_set(err, ERR_internal, errno, "stage: %s", strerror(errno));
	if (pipe2(ends, O_CLOEXEC) < 0)
		return not_started(-errno, err);
	int r = start(files, tree, ends[1], &pid);
	close(ends[1]);
	if (r == 0)
		listen_to(ends[0], text, sizeof text);
	close(ends[0]);
	if (r < 0)
		return not_started(r, err);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return not_started(-errno, err);
	return judge(status, text, err);
}
