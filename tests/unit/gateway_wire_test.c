/* gateway_wire_test: the supervisor believes the gateway only what is a message. */
#define _GNU_SOURCE
#include "broker/gateway.h"
#include "check.h"

#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD offsetof(struct gateway_msg, host)

static struct gateway_msg message(uint32_t kind, const char *host)
{
	struct gateway_msg msg = { .magic = GATEWAY_MAGIC, .kind = kind };
	memcpy(msg.host, host, strlen(host));
	return msg;
}

static void messages_arrive_as_they_were(void)
{
	int ends[2], fd = -1;
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
	struct gateway_msg got, sent = message(GATEWAY_REFUSED, "evil.test");
	sent.reason = GATEWAY_SNI_MISMATCH;
	sent.port = 443;
	sent.count = 7;
	CHECK(gateway_recv(ends[1], &got, &fd) == -EAGAIN);
	CHECK(gateway_send(ends[0], &sent, -1) == 0);
	CHECK(gateway_recv(ends[1], &got, &fd) == 1 && fd == -1);
	CHECK(memcmp(&got, &sent, sizeof got) == 0);
	sent = message(GATEWAY_SOCKET, "");
	CHECK(gateway_send(ends[0], &sent, ends[0]) == 0);
	CHECK(gateway_recv(ends[1], &got, &fd) == 1 && fd >= 0);
	close(fd);
	close(ends[0]);
	CHECK(gateway_recv(ends[1], &got, &fd) == 0);
	close(ends[1]);
}

static void what_is_none_is_refused(void)
{
	struct gateway_msg msg = message(GATEWAY_REFUSED, "evil.test");
	const size_t len = HEAD + sizeof "evil.test";
	CHECK(gateway_check(&msg, len, 0) == 0);
	CHECK(gateway_check(&msg, len, 1) == -EPROTO);
	CHECK(gateway_check(&msg, len - 1, 0) == -EPROTO); /* its text has no end */
	CHECK(gateway_check(&msg, len + 1, 0) == -EPROTO);
	CHECK(gateway_check(&msg, HEAD, 0) == -EPROTO);
	CHECK(gateway_check(&msg, HEAD - 1, 0) == -EPROTO);
	msg.reason = GATEWAY_REASON_COUNT;
	CHECK(gateway_check(&msg, len, 0) == -EPROTO);
	msg = message(GATEWAY_CARRIED, "a");
	msg.errnum = -1;
	CHECK(gateway_check(&msg, HEAD + 2, 0) == -EPROTO);
	msg = message(GATEWAY_READY, "");
	CHECK(gateway_check(&msg, HEAD, 0) == 0);
	CHECK(gateway_check(&msg, HEAD, 1) == -EPROTO);
	msg.magic++;
	CHECK(gateway_check(&msg, HEAD, 0) == -EPROTO);
	msg = message(GATEWAY_KIND_END_, "");
	CHECK(gateway_check(&msg, HEAD, 0) == -EPROTO);
	msg = message(GATEWAY_REFUSED, "");
	memset(msg.host, 'a', sizeof msg.host);
	CHECK(gateway_check(&msg, sizeof msg, 0) == -EPROTO);
	msg.host[sizeof msg.host - 1] = 0;
	CHECK(gateway_check(&msg, sizeof msg, 0) == 0);
}

static void published_ports_have_their_descriptors(void)
{
	static const struct {
		uint32_t kind;
		uint16_t port, family;
		int fds, result;
	} rows[] = {
		{ GATEWAY_PUBLISH, 8080, 0, 1, 0 }, { GATEWAY_PUBLISH, 8080, 0, 0, -EPROTO },
		{ GATEWAY_PUBLISH, 0, 0, 1, -EPROTO }, { GATEWAY_SPARE, 0, AF_INET, 1, 0 },
		{ GATEWAY_SPARE, 0, AF_INET6, 1, 0 }, { GATEWAY_SPARE, 0, AF_INET, 0, -EPROTO },
		{ GATEWAY_SPARE, 0, AF_UNIX, 1, -EPROTO }, { GATEWAY_WANTED, 0, AF_INET6, 0, 0 },
		{ GATEWAY_WANTED, 0, AF_INET, 1, -EPROTO }, { GATEWAY_WANTED, 0, 0, 0, -EPROTO },
		{ GATEWAY_SERVED, 80, 0, 0, -EPROTO }, /* without a host */
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct gateway_msg msg = message(rows[i].kind, "");
		msg.port = rows[i].port;
		msg.family = rows[i].family;
		if (gateway_check(&msg, HEAD, rows[i].fds) != rows[i].result)
			fprintf(stderr, "row %zu\n", i), check_failures++;
	}
}

static void every_reason_has_a_word(void)
{
	for (unsigned i = 0; i < GATEWAY_REASON_COUNT; i++)
		CHECK(gateway_reason_word((enum gateway_reason)i)[0] != '?');
	CHECK_TEXT(gateway_reason_word(GATEWAY_REASON_COUNT), "?");
}

int main(void)
{
	RUN(messages_arrive_as_they_were);
	RUN(what_is_none_is_refused);
	RUN(published_ports_have_their_descriptors);
	RUN(every_reason_has_a_word);
	return CHECK_STATUS();
}
