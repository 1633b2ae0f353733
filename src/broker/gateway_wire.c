/* gateway_wire: the messages between the supervisor and the gateway. */
#define _GNU_SOURCE
#include "base/message.h"
#include "broker/gateway.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

const char *gateway_reason_word(enum gateway_reason reason)
{
	static const char *const words[] = {
#define X(name, word) word,
		GATEWAY_REASONS(X)
#undef X
	};
	return (unsigned)reason < GATEWAY_REASON_COUNT ? words[reason] : "?";
}

/* A message ends behind the text that it has; without any, before it. */
static size_t size_of(const struct gateway_msg *msg)
{
	size_t len = strnlen(msg->host, sizeof msg->host - 1);
	return offsetof(struct gateway_msg, host) + (len ? len + 1 : 0);
}

int gateway_send(int sock, const struct gateway_msg *msg, int fd)
{
	return message_send(sock, msg, size_of(msg), fd, MSG_DONTWAIT);
}

static bool is_family(uint16_t family)
{
	return family == AF_INET || family == AF_INET6;
}

int gateway_check(const void *data, uint64_t len, int fd_count)
{
	const size_t head = offsetof(struct gateway_msg, host);
	struct gateway_msg msg = { 0 };
	if (len < head || len > sizeof msg)
		return -EPROTO;
	memcpy(&msg, data, len);
	if (msg.magic != GATEWAY_MAGIC || msg.reason >= GATEWAY_REASON_COUNT)
		return -EPROTO;
	if (len != (msg.host[sizeof msg.host - 1] ? 0 : size_of(&msg)))
		return -EPROTO;
	switch (msg.kind) {
	case GATEWAY_PUBLISH:
		return fd_count == 1 && len == head && msg.port ? 0 : -EPROTO;
	case GATEWAY_SPARE:
		return fd_count == 1 && len == head && is_family(msg.family) ? 0 : -EPROTO;
	case GATEWAY_WANTED:
		return fd_count == 0 && len == head && is_family(msg.family) ? 0 : -EPROTO;
	case GATEWAY_SOCKET:
		return fd_count == 1 && len == head ? 0 : -EPROTO;
	case GATEWAY_RESOLVER:
		return fd_count <= 1 && len == head ? 0 : -EPROTO;
	case GATEWAY_READY:
	case GATEWAY_RESOLVE:
	case GATEWAY_FULL:
		return fd_count == 0 && len == head ? 0 : -EPROTO;
	case GATEWAY_REFUSED:
	case GATEWAY_CARRIED:
	case GATEWAY_FAILED:
	case GATEWAY_SERVED:
	case GATEWAY_UNANSWERED:
		return fd_count == 0 && len > head && msg.errnum >= 0 ? 0 : -EPROTO;
	}
	return -EPROTO;
}

int gateway_recv(int sock, struct gateway_msg *ret_msg, int *ret_fd)
{
	struct gateway_msg in;
	struct message_fds fds;
	ssize_t n = message_recv(sock, &in, sizeof in, &fds);
	if (n < 0 || (n == 0 && fds.count == 0))
		return (int)n;
	int r = gateway_check(&in, (uint64_t)n, (int)fds.count);
	if (r < 0) {
		message_close(&fds);
		return r;
	}
	memset((char *)&in + n, 0, sizeof in - (size_t)n);
	*ret_msg = in;
	*ret_fd = fds.count ? fds.fd[0] : -1;
	return 1;
}
