/*
 * listener: answers the seccomp listener. Every call that comes here is one that the filter
 * refuses, so the answer is an error, and nothing is decided by what the caller's memory holds; but
 * for the renames of an overlay workspace, which renames.c has done. No call is ever told to
 * continue. When this end is closed the kernel answers ENOSYS by itself.
 *
 * One notification a turn: a box that hammers must not starve signals, timers and output.
 */
#define _GNU_SOURCE
#include "supervise/run.h"
#include "base/fd.h"
#include "base/sys.h"
#include "plan/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

/*
 * The words are made in memory that goes away: the result copies what it does not have yet and has
 * room for, so the box cannot make us grow by refused calls.
 */
static void record(struct run *run, const struct seccomp_data *call)
{
	struct arena scratch = { 0 };
	struct violation v = { 0 };
	filter_describe(call, &scratch, &v);
	v.count = 1;
	v.certain = true;
	result_violation(run->result, &v);
	arena_free(&scratch);
}

/*
 * clone3 has its flags in memory. They say only whether it goes on record: every thread begins with
 * one that is answered ENOSYS, and a namespace that is asked for is answered the same. What cannot
 * be read, or another thread changes meanwhile, is refused all the same. True when it was recorded.
 */
static bool record_flags(struct run *run, const struct seccomp_notif *notif)
{
	uint64_t flags = 0;
	struct iovec local = { .iov_base = &flags, .iov_len = sizeof flags };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)notif->data.args[0],
		.iov_len = sizeof flags };
	if (process_vm_readv((pid_t)notif->pid, &local, 1, &remote, 1, 0) != sizeof flags)
		return false;
	struct arena scratch = { 0 };
	struct violation v;
	bool bad = filter_describe_flags(&notif->data, flags, &scratch, &v);
	if (bad)
		result_violation(run->result, &v);
	arena_free(&scratch);
	return bad;
}

pid_t listener_process_of(pid_t thread)
{
	char path[sizeof "/proc//status" + 3 * sizeof thread], text[1024];
	snprintf(path, sizeof path, "/proc/%d/status", thread);
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = fd_read_full(fd, text, sizeof text - 1);
	if (n < 0)
		return 0;
	text[n] = 0;
	const char *line = strstr(text, "\nTgid:");
	return line ? (pid_t)strtol(line + strlen("\nTgid:"), NULL, 10) : 0;
}

/*
 * SIGSYS to the process that made the call. A number may have changed hands since the notification
 * was read, but the pidfd is opened before the notification is looked at again: while that is
 * valid its thread sits in the call, so both numbers were its own.
 */
static void end_process(int listener, const struct seccomp_notif *notif)
{
	pid_t pid = (pid_t)notif->pid;
	AUTO_FD pidfd = sys_pidfd_open(pid);
	if (pidfd < 0 && (pid = listener_process_of(pid)) > 0)
		pidfd = sys_pidfd_open(
			pid); /* the call came from a thread that is not the first one */
	uint64_t id = notif->id;
	if (pidfd >= 0 && ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0)
		(void)sys_pidfd_send_signal(pidfd, SIGSYS);
}

static void answer(struct run *run, const struct seccomp_notif *notif)
{
	const struct filter *filter = &run->plan->filter;
	if (filter_renames(filter, &notif->data)) {
		renames_take(run, notif);
		return;
	}
	if (filter_ends_all(filter, &notif->data)) {
		/* No answer: the caller is one of those that end. */
		run_signal(run, SIGKILL);
		return;
	}
	bool recorded = true;
	if (filter_hides_flags(filter, &notif->data))
		recorded = record_flags(run, notif);
	else
		record(run, &notif->data);
	if (recorded && run->plan->kill_on_violation) {
		/* No answer: the caller sits in its call until the kill reaches it. */
		run_event(run, EVENT_DENIED);
		return;
	}
	if (filter_must_kill(&notif->data))
		end_process(run->listener, notif);
	struct seccomp_notif_resp response = {
		.id = notif->id,
		.error = -filter_errno(&notif->data),
	};
	/* ENOENT: the caller was killed meanwhile. Nothing else can go wrong that we could mend. */
	(void)ioctl(run->listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

void listener_turn(struct run *run, short revents)
{
	/*
	 * seccomp_unotify(2) says to ask for the sizes, for a newer kernel may fill more than our
	 * header knows. The number of the request has the size in it, so it fills what we know; the
	 * room behind it costs nothing and makes sure.
	 */
	union {
		struct seccomp_notif notif;
		char room[1024];
	} in;
	if (!(revents & POLLIN)) {
		fd_close(&run->listener); /* POLLHUP: all tasks with the filter are gone */
		return;
	}
	memset(&in, 0, sizeof in); /* the kernel insists on zeroes */
	if (ioctl(run->listener, SECCOMP_IOCTL_NOTIF_RECV, &in.notif) == 0) {
		answer(run, &in.notif);
		return;
	}
	/* ENOENT: killed between poll and now. EINTR, EAGAIN: nothing came after all. */
	if (errno == ENOENT || errno == EINTR || errno == EAGAIN)
		return;
	result_warning(run->result, "listener_lost",
		"refused system calls could no longer be recorded; they went on to be refused");
	fd_close(&run->listener);
}
