/* refusal_test: packets by which a kernel refuses, and others that do not. */
#define _GNU_SOURCE
#include "broker/refusal.h"
#include "check.h"

#include <stdlib.h>

#define V4_HEAD 20

/* A TCP segment over IPv4, from 10.1.2.3:443 to 10.1.2.3:40000. */
static size_t reset4(uint8_t packet[64])
{
	static const uint8_t bytes[40] = { 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 1, 2, 3,
		10, 1, 2, 3, 443 >> 8, 443 & 255, 40000 >> 8, 40000 & 255, 0, 0, 0, 0, 1, 2, 3, 4,
		0x50, 0x14 };
	memset(packet, 0, 64);
	memcpy(packet, bytes, sizeof bytes);
	return sizeof bytes;
}

/* "Port unreachable" over IPv4, for what was sent to 9.9.9.9:123 by UDP. */
static size_t unreachable4(uint8_t packet[64])
{
	static const uint8_t bytes[56] = { 0x45, 0, 0, 56, 0, 0, 0, 0, 64, 1, 0, 0, 9, 9, 9, 9, 127,
		0, 0, 1, 3, 3, 0, 0, 0, 0, 0, 0, 0x45, 0, 0, 29, 0, 0, 0x40, 0, 64, 17, 0, 0, 127,
		0, 0, 1, 9, 9, 9, 9, 0x9c, 0x40, 0, 123, 0, 9, 0, 0 };
	memset(packet, 0, 64);
	memcpy(packet, bytes, sizeof bytes);
	return sizeof bytes;
}

static bool is(const struct refusal *refusal, bool datagram, const char *to, uint16_t port)
{
	char text[NETWORK_ADDRESS_SIZE];
	return refusal->datagram == datagram && refusal->port == port &&
	       strcmp(network_words(&refusal->to, text), to) == 0;
}

static void a_reset_of_a_first_segment(void)
{
	uint8_t packet[64];
	struct refusal refusal = { 0 };
	size_t len = reset4(packet);
	CHECK(refusal_read(packet, len, &refusal) && is(&refusal, false, "10.1.2.3", 443));
	/* Options in the header are stepped over. */
	memmove(packet + 24, packet + 20, 20);
	memset(packet + 20, 1, 4);
	packet[0] = 0x46;
	CHECK(refusal_read(packet, len + 4, &refusal) && is(&refusal, false, "10.1.2.3", 443));
}

static void other_segments(void)
{
	struct refusal refusal;
	uint8_t packet[64];
	size_t len = reset4(packet);
	packet[24 + 3] = 1; /* of a connection that there was: its number is not 0 */
	CHECK(!refusal_read(packet, len, &refusal));
	len = reset4(packet);
	packet[V4_HEAD + 13] = 0x12; /* SYN and ACK */
	CHECK(!refusal_read(packet, len, &refusal));
	len = reset4(packet);
	packet[7] = 1; /* not the first piece */
	CHECK(!refusal_read(packet, len, &refusal));
	len = reset4(packet);
	packet[V4_HEAD] = packet[V4_HEAD + 1] = 0; /* from port 0 */
	CHECK(!refusal_read(packet, len, &refusal));
	len = reset4(packet);
	packet[9] = 132; /* SCTP */
	CHECK(!refusal_read(packet, len, &refusal));
}

static void an_unreachable_port(void)
{
	uint8_t packet[64];
	struct refusal refusal = { 0 };
	size_t len = unreachable4(packet);
	CHECK(refusal_read(packet, len, &refusal) && is(&refusal, true, "9.9.9.9", 123));
	packet[21] = 1; /* the host, not the port */
	CHECK(!refusal_read(packet, len, &refusal));
	len = unreachable4(packet);
	packet[28 + 9] = 6; /* what was sent is TCP */
	CHECK(!refusal_read(packet, len, &refusal));
	len = unreachable4(packet);
	packet[20] = 8; /* an echo request */
	CHECK(!refusal_read(packet, len, &refusal));
}

static void the_same_over_ipv6(void)
{
	uint8_t body[64] = { 443 >> 8, 443 & 255 };
	struct net_address from;
	struct refusal refusal = { 0 };
	CHECK(network_parse("2001:db8::5", &from));
	body[13] = 0x14;
	CHECK(refusal_read6(body, 20, false, &from, &refusal) &&
		is(&refusal, false, "2001:db8::5", 443));
	CHECK(!refusal_read6(body, 19, false, &from, &refusal));
	memset(body, 0, sizeof body);
	body[0] = 1, body[1] = 4;
	body[8] = 0x60, body[8 + 6] = 17;
	memcpy(body + 8 + 24, from.bytes, 16);
	body[8 + 40 + 3] = 123;
	CHECK(refusal_read6(body, 56, true, &from, &refusal) &&
		is(&refusal, true, "2001:db8::5", 123));
	CHECK(!refusal_read6(body, 55, true, &from, &refusal));
	body[1] = 0;
	CHECK(!refusal_read6(body, 56, true, &from, &refusal));
}

/* Copies without room behind them, so that a sanitizer sees a read too far. */
static void nothing_is_read_past_the_end(void)
{
	uint8_t packet[64];
	struct refusal refusal;
	for (int kind = 0; kind < 2; kind++) {
		size_t len = kind ? unreachable4(packet) : reset4(packet);
		for (size_t n = 0; n < len; n++) {
			uint8_t *copy = malloc(n ? n : 1);
			memcpy(copy, packet, n);
			CHECK(!refusal_read(copy, n, &refusal));
			free(copy);
		}
	}
}

int main(void)
{
	RUN(a_reset_of_a_first_segment);
	RUN(other_segments);
	RUN(an_unreachable_port);
	RUN(the_same_over_ipv6);
	RUN(nothing_is_read_past_the_end);
	return CHECK_STATUS();
}
