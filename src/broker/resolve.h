/*
 * resolve: what the gateway and agentbox-resolve say to each other. The helper looks names up
 * through the C library, which the gateway, a static program, cannot ask.
 *
 *	gateway                          agentbox-resolve
 *	   |-- struct resolve_request --------->|	one datagram each, at any time
 *	   |<------------ struct resolve_answer -|	one for each, in any order, with its id
 *
 * The socket is AF_UNIX, SOCK_SEQPACKET; the helper has it as RESOLVE_FD. Every message is a whole
 * struct, what is not used of it is zero, numbers are in the machine's order. There is no greeting:
 * the helper reads its first request when it is confined, and ends before that when it cannot be
 * (resolve_main.c says with which status). It ends when the other end is closed, and also at a
 * message that is none of these. RESOLVE_AT_ONCE names are looked up at once and RESOLVE_WAITING
 * more may wait; the next is answered with RESOLVE_AGAIN. When answers are not read it stops
 *reading requests, so who asks must not block in sending.
 *
 * A look-up takes as long as the host's resolver is told to wait, which can be half a minute: who
 * asks keeps a clock of its own, and an answer may come to a question that was given up.
 */
#ifndef AGENTBOX_BROKER_RESOLVE_H
#define AGENTBOX_BROKER_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RESOLVE_FD            3
#define RESOLVE_NAME_MAX      253 /* bytes of a name, without a last dot */
#define RESOLVE_ADDRESSES_MAX 32  /* of an answer; more are left out */
#define RESOLVE_AT_ONCE       8
#define RESOLVE_WAITING       64

enum resolve_status {
	RESOLVE_OK,      /* at least one address */
	RESOLVE_NO_NAME, /* there is no such name, or it has no address */
	RESOLVE_AGAIN,   /* not known now: a server did not answer, or too much was asked at once */
	RESOLVE_FAILED,
};

struct resolve_request {
	uint64_t id; /* the gateway's, repeated in the answer */
	uint16_t name_len;
	char name[RESOLVE_NAME_MAX + 1]; /* as resolve_name_ok() wants it, and zeros */
};

struct resolve_address {
	uint8_t family; /* 4 or 6 */
	uint8_t zero[3];
	uint32_t scope;    /* family 6: the interface of a link-local address, else 0 */
	uint8_t bytes[16]; /* family 4: the first four */
};

/* Addresses are in the order in which the C library would try them (RFC 6724). */
struct resolve_answer {
	uint64_t id;
	int32_t status; /* enum resolve_status */
	uint8_t count;  /* not 0 with RESOLVE_OK, 0 with all others */
	uint8_t zero[3];
	struct resolve_address addresses[RESOLVE_ADDRESSES_MAX];
};

/*
 * Labels of 1 to 63 letters (lower case), digits, - and _, with dots between; the last one is no
 * number, since the C library takes 127.1, 0x7f000001 and 2130706433 for addresses.
 */
bool resolve_name_ok(const char *name, size_t len);

/* Fill a request; false: resolve_name_ok() says no. */
bool resolve_request_make(uint64_t id, const char *name, struct resolve_request *ret);

/*
 * Read a datagram of `len` bytes (its whole length, also if not all of it was received: MSG_TRUNC)
 * into *ret. 0 or -EBADMSG, with *ret untouched. `message` needs no alignment, and is read only
 * when the length is right.
 */
int resolve_request_parse(const void *message, size_t len, struct resolve_request *ret);
int resolve_answer_parse(const void *message, size_t len, struct resolve_answer *ret);

#endif
