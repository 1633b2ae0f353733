/*
 * gateway_names: the box's name service, over datagrams and streams. It answers for names that are
 * listed, with an address that means nothing outside; every other question ends here.
 */
#define _GNU_SOURCE
#include "broker/gateway_work.h"
#include "base/fd.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define CLASS_IN 1

static void stream_close(struct gateway *gw, struct stream *stream)
{
	/* Freed at the end of the turn: an event of it may still come. */
	fd_close(&stream->source.fd);
	for (size_t i = 0; gw->askers && i < QUESTIONS_MAX; i++) {
		if (!gw->askers[i].used || gw->askers[i].stream != stream)
			continue;
		gw->askers[i].used = false;
		gw->asker_count--;
	}
}

/* Who has ended its side may still wait for answers. */
static bool stream_waits(const struct gateway *gw, const struct stream *stream)
{
	for (size_t i = 0; gw->asker_count && i < QUESTIONS_MAX; i++)
		if (gw->askers[i].used && gw->askers[i].stream == stream)
			return true;
	return false;
}

/* From the address that the question went to: a client believes no other. */
static void send_datagram(struct gateway *gw, const struct asker *asker, void *data, size_t len)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	} control = { 0 };
	struct iovec iov = { .iov_base = data, .iov_len = len };
	struct msghdr header = { .msg_name = (void *)&asker->from,
		.msg_namelen = sizeof(struct sockaddr_in6),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control };
	struct in6_pktinfo six = { 0 };
	struct in_pktinfo four = { 0 };
	bool is_six = asker->from.ss_family == AF_INET6;
	memcpy(&six.ipi6_addr, asker->to.bytes, sizeof asker->to.bytes);
	memcpy(&four.ipi_spec_dst, asker->to.bytes + 12, 4);
	size_t size = is_six ? sizeof six : sizeof four;
	header.msg_controllen = CMSG_SPACE(size);
	control.header.cmsg_level = is_six ? IPPROTO_IPV6 : IPPROTO_IP;
	control.header.cmsg_type = is_six ? IPV6_PKTINFO : IP_PKTINFO;
	control.header.cmsg_len = CMSG_LEN(size);
	memcpy(CMSG_DATA(&control.header), is_six ? (void *)&six : (void *)&four, size);
	if (!is_six)
		header.msg_namelen = sizeof(struct sockaddr_in);
	/* A lost answer is asked for again. */
	(void)sendmsg(gw->sockets[0].fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void send_stream(struct gateway *gw, struct stream *stream, const uint8_t *data, size_t len)
{
	uint8_t framed[2 + DNS_MESSAGE_MAX] = { (uint8_t)(len >> 8), (uint8_t)len };
	memcpy(framed + 2, data, len);
	/* Who asks much and reads nothing has no service. */
	if (stream->source.fd >= 0 && send(stream->source.fd, framed, 2 + len,
					      MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)(2 + len))
		stream_close(gw, stream);
}

static void answer(struct gateway *gw, const struct asker *asker, enum dns_rcode rcode,
	const struct name *name)
{
	uint8_t message[DNS_MESSAGE_MAX], address[4];
	if (name) {
		struct net_address inside = name_address(name);
		memcpy(address, inside.bytes + 12, sizeof address);
	}
	size_t len = dns_answer(asker->message, asker->len, &asker->question, rcode,
		name ? address : NULL, ANSWER_TTL, message);
	if (asker->stream)
		send_stream(gw, asker->stream, message, len);
	else
		send_datagram(gw, asker, message, len);
}

/* What is known of the name by now. */
static void answer_name(struct gateway *gw, const struct asker *asker, const struct name *name)
{
	if (name->state == NAME_KNOWN)
		answer(gw, asker, DNS_NOERROR, name);
	else
		answer(gw, asker, name->state == NAME_FAILED ? DNS_SERVFAIL : DNS_NXDOMAIN, NULL);
}

void names_answer(struct gateway *gw, const struct name *name)
{
	for (size_t i = 0; gw->asker_count && i < QUESTIONS_MAX; i++) {
		struct asker *asker = &gw->askers[i];
		if (!asker->used || asker->name != name->index)
			continue;
		asker->used = false;
		gw->asker_count--;
		answer_name(gw, asker, name);
		if (asker->stream && asker->stream->ended && !stream_waits(gw, asker->stream))
			stream_close(gw, asker->stream);
	}
}

static bool keep(struct gateway *gw, const struct asker *asker)
{
	if (!gw->askers)
		gw->askers = calloc(QUESTIONS_MAX, sizeof *gw->askers);
	for (size_t i = 0; gw->askers && i < QUESTIONS_MAX; i++) {
		if (gw->askers[i].used)
			continue;
		gw->askers[i] = *asker;
		gw->askers[i].used = true;
		gw->asker_count++;
		return true;
	}
	return false;
}

/* The answer is for a name that is listed. */
static void look_up(struct gateway *gw, struct asker *asker)
{
	struct name *name = name_get(gw, asker->question.name);
	if (!name) {
		answer(gw, asker, DNS_SERVFAIL, NULL);
		return;
	}
	asker->name = name->index;
	name_look_up(gw, name);
	if (name->state != NAME_ASKED)
		answer_name(gw, asker, name);
	else if (!keep(gw, asker))
		answer(gw, asker, DNS_SERVFAIL, NULL);
}

static bool is_localhost(const char *name)
{
	size_t len = strlen(name);
	return strcmp(name, "localhost") == 0 ||
	       (len > 10 && strcmp(name + len - 10, ".localhost") == 0);
}

/* RFC 6761: it is the box itself, and nobody is asked. */
static void answer_localhost(struct gateway *gw, const struct asker *asker)
{
	static const uint8_t loopback[4] = { 127, 0, 0, 1 };
	uint8_t message[DNS_MESSAGE_MAX];
	const struct dns_question *question = &asker->question;
	size_t len = dns_answer(asker->message, asker->len, question, DNS_NOERROR,
		question->type == DNS_A ? loopback : NULL, ANSWER_TTL, message);
	if (asker->stream)
		send_stream(gw, asker->stream, message, len);
	else
		send_datagram(gw, asker, message, len);
}

/* asker->message and ->len are there, and whom to answer. */
static void serve(struct gateway *gw, struct asker *asker)
{
	struct dns_question *question = &asker->question;
	bool answerable = false;
	int r = dns_parse(asker->message, asker->len, question, &answerable);
	if (r < 0) {
		tell_refused(gw, GATEWAY_MALFORMED, "message", 0);
		if (answerable)
			answer(gw, asker, r == -EOPNOTSUPP ? DNS_NOTIMP : DNS_FORMERR, NULL);
		return;
	}
	bool listed = question->plain && network_lists(gw->network, question->name);
	if (question->plain && !listed && is_localhost(question->name)) {
		answer_localhost(gw, asker);
	} else if (!listed) {
		tell_refused(gw, GATEWAY_NOT_LISTED, question->text, 0);
		answer(gw, asker, DNS_NXDOMAIN, NULL);
	} else if (question->class != CLASS_IN ||
		   (question->type != DNS_A && question->type != DNS_AAAA)) {
		tell_refused(gw, GATEWAY_RECORD_TYPE, question->text, 0);
		answer(gw, asker, DNS_REFUSED, NULL);
	} else if (question->type == DNS_AAAA) {
		answer(gw, asker, DNS_NOERROR, NULL);
	} else {
		look_up(gw, asker);
	}
}

/* To which address it came. */
static void take_target(struct msghdr *header, struct asker *asker)
{
	asker->to = (struct net_address){ { [10] = 0xff, [11] = 0xff } };
	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		struct in6_pktinfo six;
		struct in_pktinfo four;
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			memcpy(&six, CMSG_DATA(c), sizeof six);
			memcpy(asker->to.bytes, &six.ipi6_addr, 16);
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			memcpy(&four, CMSG_DATA(c), sizeof four);
			memcpy(asker->to.bytes + 12, &four.ipi_addr, 4);
		}
	}
}

void names_turn(struct gateway *gw, int fd)
{
	for (int i = 0; i < MESSAGES_A_TURN; i++) {
		struct asker asker = { 0 };
		union {
			struct cmsghdr header;
			char space[256];
		} control;
		struct iovec iov = { .iov_base = asker.message, .iov_len = sizeof asker.message };
		struct msghdr header = { .msg_name = &asker.from,
			.msg_namelen = sizeof asker.from,
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = sizeof control };
		ssize_t n = recvmsg(fd, &header, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return;
		/* No question is that long: what was cut off is not well formed either. */
		asker.len = header.msg_flags & MSG_TRUNC ? sizeof asker.message - 1 : (size_t)n;
		take_target(&header, &asker);
		serve(gw, &asker);
	}
}

void stream_open(struct gateway *gw, int fd)
{
	struct stream *stream = NULL;
	if (gw->stream_count < STREAMS_MAX)
		stream = calloc(1, sizeof *stream);
	if (!stream) {
		close(fd);
		return;
	}
	stream->source = (struct source){ SOURCE_STREAM, fd };
	stream->when = gw->now;
	gw->streams[gw->stream_count++] = stream;
	if (gateway_watch(gw, &stream->source, EPOLLIN | EPOLLRDHUP) < 0)
		stream_close(gw, stream);
}

/* A whole message lies in stream->data. */
static void serve_stream(struct gateway *gw, struct stream *stream)
{
	struct asker asker = { .stream = stream, .len = stream->len - 2 };
	memcpy(asker.message, stream->data + 2, asker.len);
	stream->len = 0;
	stream->when = gw->now;
	serve(gw, &asker);
}

void stream_turn(struct gateway *gw, struct stream *stream)
{
	for (int i = 0; i < MESSAGES_A_TURN && stream->source.fd >= 0; i++) {
		size_t want = 2;
		if (stream->len >= 2)
			want += (size_t)stream->data[0] << 8 | stream->data[1];
		if (want > sizeof stream->data || (stream->len >= 2 && want == 2)) {
			tell_refused(gw, GATEWAY_MALFORMED, "message", 0);
			stream_close(gw, stream);
			return;
		}
		if (want > 2 && stream->len == want) {
			serve_stream(gw, stream);
			continue;
		}
		ssize_t n = recv(stream->source.fd, stream->data + stream->len, want - stream->len,
			MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			stream->ended = n == 0 && stream_waits(gw, stream);
			if (!stream->ended)
				stream_close(gw, stream);
			else /* or its end would be told again and again */
				(void)epoll_ctl(gw->epoll, EPOLL_CTL_DEL, stream->source.fd, NULL);
			return;
		}
		stream->len += (size_t)n;
	}
}

void streams_tick(struct gateway *gw)
{
	for (size_t i = 0; i < gw->stream_count; i++)
		if (gw->streams[i]->source.fd >= 0 &&
			gw->now - gw->streams[i]->when > STREAM_MAX_NS)
			stream_close(gw, gw->streams[i]);
}

void streams_bury(struct gateway *gw)
{
	size_t kept = 0;
	for (size_t i = 0; i < gw->stream_count; i++) {
		if (gw->streams[i]->source.fd >= 0)
			gw->streams[kept++] = gw->streams[i];
		else
			free(gw->streams[i]);
	}
	gw->stream_count = kept;
}
