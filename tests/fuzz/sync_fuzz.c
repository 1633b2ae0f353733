/*
 * sync_fuzz: any datagram with any number of descriptors, over a real socket pair. What sync_recv
 * says must be what sync_check says, and no descriptor may stay open that was not handed out.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "box/sync.h"

#define NEED(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

#define FDS_MAX   7
#define BYTES_MAX 8192

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void send_raw(int sock, const void *data, size_t len, int fd_count)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	if (fd_count) {
		size_t bytes = sizeof(int) * (size_t)fd_count;
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(bytes);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(bytes);
		int fds[FDS_MAX];
		for (int i = 0; i < fd_count; i++)
			fds[i] = sock;
		memcpy(CMSG_DATA(&control.header), fds, bytes);
	}
	NEED(sendmsg(sock, &header, MSG_NOSIGNAL) == (ssize_t)len);
}

/* Every descriptor above this one is free, as long as nothing leaks. */
static int next_free(void)
{
	int fd = fcntl(0, F_DUPFD_CLOEXEC, 0);
	NEED(fd >= 0);
	close(fd);
	return fd;
}

/* One message sent by sync_send arrives as it was. */
static void check_round_trip(const int pair[2], const struct sync_msg *msg, int fd)
{
	struct sync_msg got;
	int got_fd = -1;
	NEED(sync_send(pair[0], msg, fd) == 0);
	NEED(sync_recv(pair[1], &got, &got_fd) == 1);
	NEED(memcmp(&got, msg, sizeof got) == 0 && (got_fd >= 0) == (fd >= 0));
	if (got_fd >= 0)
		close(got_fd);
}

/*
 * First byte: how many descriptors (low bits), whether the datagram gets a good magic (8) and a
 * good size (16), and whether the text fields of a FAILED message end (32).
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > BYTES_MAX)
		return 0;
	int fd_count = data[0] & FDS_MAX;
	unsigned bits = data[0];
	struct {
		struct sync_msg msg;
		uint8_t more[BYTES_MAX];
	} in;
	memset(&in, 0, sizeof in);
	size_t len = size - 1;
	memcpy(&in, data + 1, len);
	if (bits & 8)
		in.msg.magic = SYNC_MAGIC;
	if (bits & 16)
		len = sizeof in.msg;
	if (bits & 32)
		in.msg.err.text[sizeof in.msg.err.text - 1] =
			in.msg.err.hint[sizeof in.msg.err.hint - 1] =
				in.msg.err.file[sizeof in.msg.err.file - 1] = 0;

	int before = next_free(), pair[2];
	NEED(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	struct sync_msg got;
	memset(&got, 0xa5, sizeof got);
	int fd = -2;
	NEED(sync_recv(pair[1], &got, &fd) == -EAGAIN && fd == -2);

	send_raw(pair[0], &in, len, fd_count);
	int want = sync_check(&in, len, fd_count), r = sync_recv(pair[1], &got, &fd);
	NEED(want == 0 || want == -EPROTO);
	if (want == 0) {
		NEED(r == 1 && memcmp(&got, &in.msg, sizeof got) == 0);
		NEED((fd >= 0) == (fd_count == 1));
		if (fd >= 0) {
			NEED(fcntl(fd, F_GETFD) == FD_CLOEXEC);
			close(fd);
		}
		check_round_trip(pair, &got, fd >= 0 ? pair[0] : -1);
	} else {
		/* An empty datagram cannot be told from the end; everything else is refused. */
		NEED(r == (len == 0 && fd_count == 0 ? 0 : -EPROTO) && fd == -2);
	}
	close(pair[0]);
	/* Whoever looks into /proc/PID/fd just then holds the file for a moment longer. */
	struct pollfd end = { .fd = pair[1], .events = POLLIN };
	NEED(poll(&end, 1, 5000) == 1);
	NEED(sync_recv(pair[1], &got, &fd) == 0);
	close(pair[1]);
	NEED(next_free() == before);
	return 0;
}
