/*
 * greeting: what the first bytes of a connection say about whom they are for. Pure: the bytes come
 * from the box and are hostile; nothing here is forwarded or decrypted.
 *
 * A TLS ClientHello (RFC 8446 section 4.1.2; server_name: RFC 6066 section 3) may come in several
 * records and in any number of pieces. What does not begin like one is no TLS.
 *
 * What is encrypted stays unread: a name inside of an encrypted ClientHello (ECH, which cannot be
 * told from the padding that browsers send in its place) as well as a Host field inside of TLS. A
 * server of many names may follow either.
 */
#ifndef AGENTBOX_BROKER_GREETING_H
#define AGENTBOX_BROKER_GREETING_H

#include <stddef.h>
#include <stdint.h>

#define GREETING_MAX      16384 /* bytes; a longer ClientHello is GREETING_BAD */
#define GREETING_NAME_MAX 255

/*
 * Once it is not GREETING_MORE, more bytes change nothing. Whatever a TLS server might take for the
 * beginning of a conversation is never GREETING_OTHER: a first byte of 20 to 24 (any kind of
 * record; some servers step over an alert, or do not look at the version), and SSL 2's form of a
 * ClientHello. Only handshake records of major version 3 can become GREETING_TLS.
 */
enum greeting {
	GREETING_MORE,  /* could still become a ClientHello: wait for more bytes */
	GREETING_OTHER, /* not TLS */
	GREETING_TLS,   /* whole; name is the server name, lower case without a last dot */
	GREETING_BARE,  /* whole, but it names no server */
	GREETING_BAD,   /* begins as TLS and goes wrong, two names, a name with other bytes than a
			   host name's, too long, more in the record behind it */
};

/*
 * Look at the first `len` bytes of what the client sent. name: room of GREETING_NAME_MAX + 1;
 * written with GREETING_TLS only.
 */
enum greeting greeting_read(const uint8_t *data, size_t len, char name[GREETING_NAME_MAX + 1]);

#endif
