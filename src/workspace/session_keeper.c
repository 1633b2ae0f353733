/*
 * session_keeper: the traces of a keeper in its session's directory, for whoever looks for it. The
 * record says whether it lives, the socket reaches it. A socket alone proves nothing: what is
 * behind it is asked who it is.
 */
#define _GNU_SOURCE
#include "workspace/session_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "box/sync.h"
#include "workspace/session_files.h"

#define RECORD     "keeper"
#define RECORD_NEW "keeper.new"
#define SOCKET     "socket"
#define BACKLOG    128
#define ANSWER_MS  10000 /* for a word of the keeper's, and for its end */

/* When a process started, in the kernel's ticks; 0: none of that number lives. */
static unsigned long long start_of(int pid)
{
	char path[32], text[512];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : fd_read_full(fd, text, sizeof text - 1);
	if (len <= 0)
		return 0;
	text[len] = 0;
	/* The name, in brackets, may hold anything; the 20th field behind it is meant. */
	char *at = strrchr(text, ')');
	/* Ended, and not waited for yet. */
	if (at && at[1] == ' ' && (at[2] == 'Z' || at[2] == 'X'))
		return 0;
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	unsigned long long start = 0;
	return at && sscanf(at, "%llu", &start) == 1 ? start : 0;
}

/* Whom the record names, whether it lives or not; *ret_start: since when. A number or -errno. */
static int read_both(int dir, unsigned long long *ret_start)
{
	char text[64];
	int pid = 0, end = 0;
	AUTO_FD fd = openat(dir, RECORD, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t len = fd_read_full(fd, text, sizeof text - 1);
	if (len < 0)
		return (int)len;
	text[len] = 0;
	if (sscanf(text, "%d %llu\n%n", &pid, ret_start, &end) != 2 || end != len || pid <= 0 ||
		*ret_start == 0)
		return -EINVAL;
	return pid;
}

static int read_record(int dir)
{
	unsigned long long start = 0;
	return read_both(dir, &start);
}

int session_keeper(int dir)
{
	unsigned long long start = 0;
	int pid = read_both(dir, &start);
	if (pid < 0)
		return pid == -ENOENT ? 0 : pid;
	return start_of(pid) == start ? 1 : -ESRCH;
}

int session_keeper_left(int dir)
{
	int pid = read_record(dir);
	return pid == -ENOENT ? 0 : pid < 0 ? pid : 1;
}

int session_keeper_note(int dir)
{
	char text[64];
	int len = snprintf(text, sizeof text, "%d %llu\n", (int)getpid(), start_of(getpid()));
	(void)unlinkat(dir, RECORD_NEW, 0);
	AUTO_FD fd =
		openat(dir, RECORD_NEW, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : fd_write_full(fd, text, (size_t)len);
	if (r == 0 && renameat(dir, RECORD_NEW, dir, RECORD) < 0)
		r = -errno;
	return r;
}

void session_keeper_forget(int dir)
{
	(void)unlinkat(dir, SOCKET, 0);
	(void)unlinkat(dir, RECORD, 0);
}

/* Names are short in a socket's address, and directories need not be: by descriptor. */
static void address(struct sockaddr_un *ret, int fd, const char *name)
{
	memset(ret, 0, sizeof *ret);
	ret->sun_family = AF_UNIX;
	snprintf(ret->sun_path, sizeof ret->sun_path, "/proc/self/fd/%d%s", fd, name);
}

int session_keeper_listen(int dir)
{
	struct sockaddr_un at;
	AUTO_FD fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* Of a keeper that is gone: the caller has what only a living one has. bind() follows no
	 * link and takes no name that is there. */
	if (unlinkat(dir, SOCKET, 0) < 0 && errno != ENOENT)
		return -errno;
	address(&at, dir, "/" SOCKET);
	if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return fd_steal(&fd);
}

/* Who listens there, if it is this very user. 0: somebody else, or of another process namespace. */
static pid_t own_peer(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof peer;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || len != sizeof peer ||
		peer.uid != geteuid())
		return 0;
	return peer.pid;
}

/* Show that this is no box, which cannot open the lock for writing. 0 or -errno. */
static int greet(int dir, int fd)
{
	struct sync_msg msg;
	AUTO_FD lock = session_open_lock(dir);
	if (lock < 0)
		return lock;
	memset(&msg, 0, sizeof msg);
	msg.magic = SYNC_MAGIC;
	msg.kind = SYNC_HELLO;
	int r = sync_send(fd, &msg, lock);
	/* It is about to end. */
	return r == -EPIPE || r == -ECONNRESET ? -ENOENT : r;
}

int session_keeper_connect(int dir)
{
	struct sockaddr_un at;
	struct stat st;
	const struct timeval limit = { .tv_sec = ANSWER_MS / 1000 };
	AUTO_FD place = openat(dir, SOCKET, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (place < 0 || fstat(place, &st) < 0)
		return -errno;
	if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		return -EPERM;
	AUTO_FD fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) < 0)
		return -errno;
	address(&at, place, "");
	if (connect(fd, (struct sockaddr *)&at, sizeof at) < 0)
		return errno == ECONNREFUSED ? -ENOENT : -errno;
	if (own_peer(fd) <= 0)
		return -EPERM;
	int r = greet(dir, fd);
	return r < 0 ? r : fd_steal(&fd);
}

/* Wait for something to read: 1, 0 when the time is over. */
static int await(int fd)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	int n;
	do
		n = poll(&wait, 1, ANSWER_MS);
	while (n < 0 && errno == EINTR);
	return n > 0;
}

/*
 * One that does not answer. The number is the socket's word and the record's, and the process that
 * the pidfd is of started when the record says, so it is the keeper and none that came after it.
 */
static void kill_keeper(int dir, pid_t pid, int pidfd)
{
	if (pidfd >= 0 && read_record(dir) == pid && session_keeper(dir) == 1)
		(void)sys_pidfd_send_signal(pidfd, SIGKILL);
}

int session_keeper_stop(int dir)
{
	struct sync_msg msg;
	int with = -1;
	AUTO_FD fd = session_keeper_connect(dir);
	if (fd < 0)
		return 0; /* none, or none of ours: the record and the locks say more */
	pid_t pid = own_peer(fd);
	AUTO_FD pidfd = pid > 0 ? sys_pidfd_open(pid) : -1;
	memset(&msg, 0, sizeof msg);
	msg.magic = SYNC_MAGIC;
	msg.kind = SYNC_END;
	if (sync_send(fd, &msg, -1) < 0 || !await(fd))
		kill_keeper(dir, pid, pidfd);
	else if (sync_recv(fd, &msg, &with) == 1 && msg.kind == SYNC_ANSWER && msg.answer < 0)
		return msg.answer;
	fd_close(&with);
	if (!await(fd))
		kill_keeper(dir, pid, pidfd);
	/* Its locks are free when it has ended, which is after it has closed the socket. */
	(void)await(pidfd >= 0 ? pidfd : fd);
	return 1;
}
