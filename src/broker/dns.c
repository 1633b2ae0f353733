/* dns: the questions that a box asks, and their answers, as bytes. Follows no pointer. */
#include "broker/dns.h"

#include <errno.h>
#include <string.h>

#include "broker/hostname.h"

#define HEADER_LEN 12
#define WIRE_MAX   255 /* a name's bytes in a message: lengths, labels and the root's 0 */
#define TYPE_OPT   41
#define OPT_LEN    11
#define RECORD_LEN 16 /* an A record whose name is a pointer */

_Static_assert(HEADER_LEN + WIRE_MAX + 4 + RECORD_LEN + OPT_LEN <= DNS_MESSAGE_MAX,
	"the longest answer has room");
_Static_assert(HOSTNAME_MAX == DNS_NAME_MAX, "one bound for names");

/* What is left of a message. */
struct rest {
	const uint8_t *at;
	size_t len;
};

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static uint8_t *put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return at + 2;
}

static const uint8_t *take(struct rest *rest, size_t len)
{
	if (rest->len < len)
		return NULL;
	const uint8_t *at = rest->at;
	rest->at += len;
	rest->len -= len;
	return at;
}

static size_t add_text(char *text, size_t at, uint8_t byte)
{
	if (hostname_byte(byte)) {
		text[at++] = (char)hostname_lower(byte);
		return at;
	}
	text[at++] = '\\';
	text[at++] = (char)('0' + byte / 100);
	text[at++] = (char)('0' + byte / 10 % 10);
	text[at++] = (char)('0' + byte % 10);
	return at;
}

/*
 * The name that is asked for. WIRE_MAX bounds both texts: every byte of a label becomes four at
 * most, and a length becomes one dot or none.
 */
static int read_name(struct rest *rest, struct dns_question *ret)
{
	size_t wire = 0, text = 0;
	ret->plain = true;
	for (;;) {
		const uint8_t *label = take(rest, 1);
		if (!label)
			return -EBADMSG;
		size_t len = *label;
		wire += 1 + len;
		/* Also the pointers and what else was once thought of for the two upper bits. */
		if (len > HOSTNAME_LABEL_MAX || wire > WIRE_MAX)
			return -EBADMSG;
		if (!len)
			break;
		label = take(rest, len);
		if (!label)
			return -EBADMSG;
		if (text)
			ret->text[text++] = '.';
		for (size_t i = 0; i < len; i++) {
			ret->plain = ret->plain && hostname_byte(label[i]);
			text = add_text(ret->text, text, label[i]);
		}
	}
	ret->text[text] = 0;
	ret->plain = ret->plain && text;
	if (ret->plain)
		memcpy(ret->name, ret->text, text + 1);
	if (!text)
		memcpy(ret->text, ".", 2);
	return 0;
}

/* A name of which only the end matters: where it points to is not looked at. */
static int skip_name(struct rest *rest)
{
	for (size_t wire = 0; wire <= WIRE_MAX;) {
		const uint8_t *label = take(rest, 1);
		if (!label)
			return -EBADMSG;
		if (*label >= 0xc0)
			return take(rest, 1) ? 0 : -EBADMSG;
		if (*label > HOSTNAME_LABEL_MAX || !take(rest, *label))
			return -EBADMSG;
		if (!*label)
			return 0;
		wire += 1u + *label;
	}
	return -EBADMSG;
}

/* EDNS options: code, length, bytes; they fill the record. */
static int check_options(struct rest rest)
{
	while (rest.len) {
		const uint8_t *option = take(&rest, 4);
		if (!option || !take(&rest, get16(option + 2)))
			return -EBADMSG;
	}
	return 0;
}

static int read_additional(struct rest *rest, struct dns_question *ret)
{
	bool root = rest->len && rest->at[0] == 0;
	if (skip_name(rest))
		return -EBADMSG;
	const uint8_t *record = take(rest, 10); /* type, class, ttl, length */
	if (!record)
		return -EBADMSG;
	size_t len = get16(record + 8);
	const uint8_t *data = take(rest, len);
	if (!data)
		return -EBADMSG;
	if (get16(record) != TYPE_OPT)
		return 0;
	if (!root || ret->edns)
		return -EBADMSG;
	ret->edns = true;
	return check_options((struct rest){ data, len });
}

int dns_parse(const uint8_t *message, size_t len, struct dns_question *ret, bool *ret_answerable)
{
	*ret_answerable = len >= HEADER_LEN && !(message[2] & 0x80);
	if (!*ret_answerable)
		return -EBADMSG;
	memset(ret, 0, sizeof *ret);
	ret->id = get16(message);
	ret->recursion = message[2] & 1;
	if (message[2] & 0x78 || get16(message + 4) != 1)
		return -EOPNOTSUPP;
	if (get16(message + 6) || get16(message + 8))
		return -EBADMSG;

	struct dns_question got = *ret;
	struct rest rest = { message + HEADER_LEN, len - HEADER_LEN };
	if (read_name(&rest, &got))
		return -EBADMSG;
	const uint8_t *kind = take(&rest, 4);
	if (!kind)
		return -EBADMSG;
	got.type = get16(kind);
	got.class = get16(kind + 2);
	got.question_len = len - HEADER_LEN - rest.len;
	for (unsigned i = get16(message + 10); i; i--)
		if (read_additional(&rest, &got))
			return -EBADMSG;
	if (rest.len)
		return -EBADMSG;
	*ret = got;
	return 0;
}

size_t dns_answer(const uint8_t *message, size_t len, const struct dns_question *question,
	enum dns_rcode rcode, const uint8_t *address, uint32_t ttl, uint8_t ret[DNS_MESSAGE_MAX])
{
	size_t question_len = question->question_len;
	if (len < HEADER_LEN || question_len > len - HEADER_LEN || question_len > WIRE_MAX + 4)
		return 0;
	uint8_t *at = put16(ret, question->id);
	*at++ = (uint8_t)(0x80 | (message[2] & 0x78) | (question->recursion ? 1 : 0));
	*at++ = (uint8_t)(0x80 | (rcode & 15)); /* RA: that is what is served here */
	at = put16(at, question_len ? 1 : 0);
	at = put16(at, question_len && address ? 1 : 0);
	at = put16(at, 0);
	at = put16(at, question->edns ? 1 : 0);
	memcpy(at, message + HEADER_LEN, question_len);
	at += question_len;
	if (question_len && address) {
		at = put16(at, 0xc000 | HEADER_LEN); /* the name: as in the question */
		at = put16(at, DNS_A);
		at = put16(at, DNS_IN);
		at = put16(at, ttl >> 16);
		at = put16(at, ttl & 0xffff);
		at = put16(at, 4);
		memcpy(at, address, 4);
		at += 4;
	}
	if (question->edns) {
		*at++ = 0;
		at = put16(at, TYPE_OPT);
		at = put16(at, DNS_MESSAGE_MAX); /* the length that every message may have */
		memset(at, 0, 6); /* no more of rcode, version 0, no flags, no options */
		at += 6;
	}
	return (size_t)(at - ret);
}
