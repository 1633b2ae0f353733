/* message: datagrams with descriptors. */
#define _GNU_SOURCE
#include "base/message.h"
#include "base/fd.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

int message_send(int sock, const void *data, size_t len, int fd, int flags)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	if (fd >= 0) {
		header.msg_control = &control;
		header.msg_controllen = sizeof control.space;
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
	}
	ssize_t n;
	do
		n = sendmsg(sock, &header, MSG_NOSIGNAL | flags);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : (size_t)n == len ? 0 : -EPROTO;
}

void message_close(struct message_fds *fds)
{
	while (fds->count > 0)
		fd_close(&fds->fd[--fds->count]);
}

ssize_t message_recv(int sock, void *data, size_t size, struct message_fds *ret_fds)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * MESSAGE_FDS_MAX)];
	} control;
	struct iovec iov = { .iov_base = data, .iov_len = size };
	struct msghdr header = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control.space };
	ssize_t n;
	ret_fds->count = 0;
	do
		n = recvmsg(sock, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < here && ret_fds->count < MESSAGE_FDS_MAX; i++)
			memcpy(&ret_fds->fd[ret_fds->count++], CMSG_DATA(c) + i * sizeof(int),
				sizeof(int));
	}
	if (!(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return n;
	message_close(ret_fds);
	return -EPROTO;
}
