/*
 * dns: the questions that a box asks, and their answers, as bytes. Pure: no socket, no look-up, no
 * policy. Everything that comes in is hostile.
 *
 * Sources: RFC 1035 (messages), RFC 6891 (EDNS), RFC 2308 (no data).
 */
#ifndef AGENTBOX_BROKER_DNS_H
#define AGENTBOX_BROKER_DNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DNS_NAME_MAX    253           /* a name as text, without the last dot */
#define DNS_TEXT_MAX    (4 * 255 + 1) /* with every byte as \DDD, and the end */
#define DNS_MESSAGE_MAX 512 /* of what is answered: one question and at most one address */

enum dns_type { DNS_A = 1, DNS_AAAA = 28 };
enum dns_class { DNS_IN = 1 };
enum dns_rcode {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5
};

struct dns_question {
	uint16_t id;
	uint16_t type, class;        /* as asked; whether they are served is not looked at here */
	bool recursion;              /* RD, which the answer repeats */
	bool edns;                   /* the question had an OPT record, so the answer has one */
	bool plain;                  /* `name` is a host name: letters, digits, - and _ in labels */
	char name[DNS_NAME_MAX + 1]; /* plain: lower case, without the last dot; else "" */
	/*
	 * For people: lower case, and bytes that are in no host name as \DDD (RFC 4343); "." is the
	 * root.
	 */
	char text[DNS_TEXT_MAX];
	size_t question_len; /* bytes of the question section, to be repeated */
};

/*
 * Read one message (as in a datagram: without the length that stands before it on TCP).
 *
 * 0: *ret is filled.
 * -EBADMSG: not a query, or not well formed: no answer but dns_answer() with DNS_FORMERR, and only
 * if *ret_answerable: it has a whole header, and QR is 0.
 * -EOPNOTSUPP: not one question of the standard kind (another opcode, no question or several; the
 * rest is not looked at then): DNS_NOTIMP. Always answerable.
 *
 * Refused as answerable, *ret has the id and RD and nothing else, which makes dns_answer() write a
 * header alone; refused as not answerable it is untouched.
 *
 * Not well formed are: a compression pointer in the question, a label or name that is too long,
 * answers or authorities in a query, two OPT records or one that is not the root's or whose options
 * do not fill it, any end before the counts say so, and bytes behind it. Other additional records
 * (signatures) are stepped over; the EDNS version does not matter, the answer says 0.
 */
int dns_parse(const uint8_t *message, size_t len, struct dns_question *ret, bool *ret_answerable);

/*
 * Write the answer to `message`, which dns_parse() has read (or refused as answerable): the header,
 * the question as it was asked (its letters' case too), with `address` (4 bytes, NULL: none) an A
 * record of `ttl` seconds, and OPT if there was one. Returns the length, at most DNS_MESSAGE_MAX;
 * 0 for a message that has no header.
 */
size_t dns_answer(const uint8_t *message, size_t len, const struct dns_question *question,
	enum dns_rcode rcode, const uint8_t *address, uint32_t ttl, uint8_t ret[DNS_MESSAGE_MAX]);

#endif
