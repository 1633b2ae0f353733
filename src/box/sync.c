/* sync: the conversation between the supervisor and the box; one datagram, one message. */
#define _GNU_SOURCE
#include "box/sync.h"
#include "base/fd.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Bytes of a message: what its kind uses of the struct; 0 for an unknown kind. */
static size_t size_of(uint32_t kind)
{
	enum { HEAD = offsetof(struct sync_msg, err) };
	switch (kind) {
	case SYNC_FDS:
	case SYNC_EXECING:
	case SYNC_LAYER:
	case SYNC_RENAMES:
		return HEAD;
	case SYNC_FAILED:
		return sizeof(struct sync_msg);
	case SYNC_ENDED:
		return HEAD + sizeof(struct sync_ended);
	case SYNC_GONE:
		return HEAD + sizeof(struct sync_gone);
	case SYNC_SIGNAL:
		return HEAD + sizeof(int32_t);
	}
	return 0;
}

int sync_send(int sock, const struct sync_msg *msg, int fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)msg, .iov_len = size_of(msg->kind) };
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
		n = sendmsg(sock, &header, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : (size_t)n == iov.iov_len ? 0 : -EPROTO;
}

static bool kind_has_fd(uint32_t kind)
{
	return kind == SYNC_FDS || kind == SYNC_EXECING || kind == SYNC_LAYER ||
	       kind == SYNC_RENAMES;
}

int sync_check(const void *data, uint64_t len, int fd_count)
{
	struct sync_msg msg;
	if (len < offsetof(struct sync_msg, err) || len > sizeof msg)
		return -EPROTO;
	memcpy(&msg, data, len);
	if (msg.magic != SYNC_MAGIC || len != size_of(msg.kind))
		return -EPROTO;
	if (fd_count != (kind_has_fd(msg.kind) ? 1 : 0))
		return -EPROTO;
	if (msg.kind == SYNC_FAILED) {
		const struct err *err = &msg.err;
		if (err->code <= ERR_none || err->code >= ERR_COUNT_ || err->errnum < 0)
			return -EPROTO;
		if (!memchr(err->text, 0, sizeof err->text) ||
			!memchr(err->hint, 0, sizeof err->hint) ||
			!memchr(err->file, 0, sizeof err->file))
			return -EPROTO;
	}
	return 0;
}

int sync_recv(int sock, struct sync_msg *ret_msg, int *ret_fd)
{
	/* One byte more than a message: a longer one must not pass for a whole one. */
	struct {
		struct sync_msg msg;
		char more;
	} in;
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * 4)];
	} control;
	struct iovec iov = { .iov_base = &in, .iov_len = sizeof in.msg + 1 };
	struct msghdr header = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control.space };
	ssize_t n;
	do
		n = recvmsg(sock, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	int fds[4], count = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < here && count < 4; i++)
			memcpy(&fds[count++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
	}
	if (n == 0 && count == 0)
		return 0;
	int r = header.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EPROTO
							    : sync_check(&in, (uint64_t)n, count);
	if (r < 0) {
		for (int i = 0; i < count; i++)
			fd_close(&fds[i]);
		return r;
	}
	/* What the kind does not use was never received. */
	memset((char *)&in.msg + n, 0, sizeof in.msg - (size_t)n);
	*ret_msg = in.msg;
	*ret_fd = count ? fds[0] : -1;
	return 1;
}

union trees_control {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int) * SYNC_TREES_MAX)];
};

int sync_send_trees(int sock, const int *trees, size_t count)
{
	uint32_t head[2] = { SYNC_MAGIC, SYNC_TREES };
	union trees_control control = { 0 };
	struct iovec iov = { .iov_base = head, .iov_len = sizeof head };
	struct msghdr header = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE(sizeof(int) * count) };
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int) * count);
	memcpy(CMSG_DATA(&control.header), trees, sizeof(int) * count);
	ssize_t n;
	do
		n = sendmsg(sock, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n == sizeof head ? 0 : -EPROTO;
}

int sync_recv_trees(int sock, int *ret_trees, size_t count)
{
	uint32_t head[3] = { 0 };
	union trees_control control;
	struct iovec iov = { .iov_base = head, .iov_len = sizeof head };
	struct msghdr header = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control.space };
	ssize_t n;
	do
		n = recvmsg(sock, &header, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -EPIPE;
	/* Whatever is wrong ends init, and with it what came. */
	const struct cmsghdr *c = CMSG_FIRSTHDR(&header);
	if (n != 2 * sizeof *head || head[0] != SYNC_MAGIC || head[1] != SYNC_TREES ||
		(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || !c ||
		c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
		c->cmsg_len != CMSG_LEN(sizeof(int) * count))
		return -EPROTO;
	memcpy(ret_trees, CMSG_DATA(c), sizeof(int) * count);
	return 0;
}
