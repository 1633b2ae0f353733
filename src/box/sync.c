/* sync: the conversation between the supervisor and the box; one datagram, one message. */
#define _GNU_SOURCE
#include "box/sync.h"
#include "base/message.h"

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
	case SYNC_SOCKET:
	case SYNC_READY:
	case SYNC_JOIN:
	case SYNC_JOINED:
	case SYNC_END:
	case SYNC_HELLO:
		return HEAD;
	case SYNC_FAILED:
		return sizeof(struct sync_msg);
	case SYNC_ENDED:
		return HEAD + sizeof(struct sync_ended);
	case SYNC_GONE:
		return HEAD + sizeof(struct sync_gone);
	case SYNC_SIGNAL:
	case SYNC_ANSWER:
	case SYNC_WANTED:
	case SYNC_SPARE:
		return HEAD + sizeof(int32_t);
	}
	return 0;
}

int sync_send(int sock, const struct sync_msg *msg, int fd)
{
	return message_send(sock, msg, size_of(msg->kind), fd, 0);
}

static bool kind_has_fd(uint32_t kind)
{
	return kind == SYNC_FDS || kind == SYNC_EXECING || kind == SYNC_LAYER ||
	       kind == SYNC_RENAMES || kind == SYNC_SOCKET || kind == SYNC_SPARE ||
	       kind == SYNC_JOIN || kind == SYNC_JOINED || kind == SYNC_HELLO;
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
	struct sync_msg in;
	struct message_fds fds;
	ssize_t n = message_recv(sock, &in, sizeof in, &fds);
	if (n < 0 || (n == 0 && fds.count == 0))
		return (int)n;
	int r = sync_check(&in, (uint64_t)n, (int)fds.count);
	if (r < 0) {
		message_close(&fds);
		return r;
	}
	/* What the kind does not use was never received. */
	memset((char *)&in + n, 0, sizeof in - (size_t)n);
	*ret_msg = in;
	*ret_fd = fds.count ? fds.fd[0] : -1;
	return 1;
}

union many_control {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int) * SYNC_MANY_MAX)];
};

int sync_send_many(int sock, enum sync_kind kind, const int *fds, size_t count)
{
	uint32_t head[2] = { SYNC_MAGIC, kind };
	union many_control control = { 0 };
	struct iovec iov = { .iov_base = head, .iov_len = sizeof head };
	struct msghdr header = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE(sizeof(int) * count) };
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int) * count);
	memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * count);
	ssize_t n;
	do
		n = sendmsg(sock, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n == sizeof head ? 0 : -EPROTO;
}

int sync_recv_many(int sock, enum sync_kind kind, int *ret_fds, size_t count)
{
	uint32_t head[3] = { 0 };
	union many_control control;
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
	if (n != 2 * sizeof *head || head[0] != SYNC_MAGIC || head[1] != kind ||
		(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || !c ||
		c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
		c->cmsg_len != CMSG_LEN(sizeof(int) * count))
		return -EPROTO;
	memcpy(ret_fds, CMSG_DATA(c), sizeof(int) * count);
	return 0;
}
