/* refusal: reads the heads of packets, no further than they are there. */
#define _GNU_SOURCE
#include "broker/refusal.h"

#include <string.h>

enum { PROTOCOL_ICMP = 1, PROTOCOL_TCP = 6, PROTOCOL_UDP = 17, PROTOCOL_ICMP6 = 58 };
enum { TCP_HEAD = 20, UDP_HEAD = 8, ICMP_HEAD = 8 };
enum { FLAG_RST = 4 };
enum { UNREACHABLE = 3, UNREACHABLE6 = 1, PORT_CODE = 3, PORT_CODE6 = 4 };

struct head {
	uint8_t protocol;
	struct net_address from, to;
	const uint8_t *body;
	size_t len; /* of the body, as far as it is there */
};

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static struct net_address v4_at(const uint8_t *at)
{
	struct net_address address = { { [10] = 0xff, [11] = 0xff } };
	memcpy(address.bytes + 12, at, 4);
	return address;
}

static bool read_head(const uint8_t *packet, size_t len, struct head *ret)
{
	size_t size;
	if (len >= 20 && packet[0] >> 4 == 4) {
		size = (size_t)(packet[0] & 15) * 4;
		/* Not what is behind the first piece of something. */
		if (size < 20 || len < size || (get16(packet + 6) & 0x1fff))
			return false;
		ret->protocol = packet[9];
		ret->from = v4_at(packet + 12);
		ret->to = v4_at(packet + 16);
	} else if (len >= 40 && packet[0] >> 4 == 6) {
		size = 40;
		ret->protocol = packet[6];
		memcpy(ret->from.bytes, packet + 8, 16);
		memcpy(ret->to.bytes, packet + 24, 16);
	} else {
		return false;
	}
	ret->body = packet + size;
	ret->len = len - size;
	return true;
}

/* The answer to a first segment comes from where that went to. */
static bool read_reset(const struct head *head, struct refusal *ret)
{
	static const uint8_t zero[4];
	if (head->len < TCP_HEAD || !(head->body[13] & FLAG_RST) ||
		memcmp(head->body + 4, zero, sizeof zero) != 0)
		return false;
	*ret = (struct refusal){ false, head->from, get16(head->body) };
	return ret->port != 0;
}

static bool read_unreachable(const struct head *head, struct refusal *ret)
{
	struct head sent;
	bool six = head->protocol == PROTOCOL_ICMP6;
	if (head->len < ICMP_HEAD || head->body[0] != (six ? UNREACHABLE6 : UNREACHABLE) ||
		head->body[1] != (six ? PORT_CODE6 : PORT_CODE) ||
		!read_head(head->body + ICMP_HEAD, head->len - ICMP_HEAD, &sent) ||
		sent.protocol != PROTOCOL_UDP || sent.len < UDP_HEAD)
		return false;
	*ret = (struct refusal){ true, sent.to, get16(sent.body + 2) };
	return ret->port != 0;
}

bool refusal_read(const uint8_t *packet, size_t len, struct refusal *ret)
{
	struct head head;
	if (!read_head(packet, len, &head) || packet[0] >> 4 != 4)
		return false;
	if (head.protocol == PROTOCOL_TCP)
		return read_reset(&head, ret);
	return head.protocol == PROTOCOL_ICMP && read_unreachable(&head, ret);
}

bool refusal_read6(const uint8_t *body, size_t len, bool icmp, const struct net_address *from,
	struct refusal *ret)
{
	struct head head = {
		.protocol = icmp ? PROTOCOL_ICMP6 : PROTOCOL_TCP,
		.from = *from,
		.body = body,
		.len = len,
	};
	return icmp ? read_unreachable(&head, ret) : read_reset(&head, ret);
}
