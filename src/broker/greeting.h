/*
 * greeting: what the first bytes of a connection say about whom they are for. Pure: the bytes come
 * from the box and are hostile; nothing here is forwarded or decrypted.
 *
 * A TLS ClientHello (RFC 8446 section 4.1.2; server_name: RFC 6066 section 3) may come in several
 * records and in any number of pieces. What does not begin like one is no TLS.
 */
#ifndef AGENTBOX_BROKER_GREETING_H
#define AGENTBOX_BROKER_GREETING_H

#include <stddef.h>
#include <stdint.h>

#define GREETING_MAX      16384 /* bytes; a longer ClientHello is GREETING_BAD */
#define GREETING_NAME_MAX 255

enum greeting {
	GREETING_MORE,  /* could still become a ClientHello: wait for more bytes */
	GREETING_OTHER, /* not TLS */
	GREETING_TLS,   /* whole; name is the server name, lower case without a last dot */
	GREETING_BARE,  /* whole, but it names no server */
	GREETING_BAD,   /* begins as TLS and goes wrong, two names, a name with other bytes than a
			   host name's, too long */
};

/* Look at the first `len` bytes of what the client sent. name: room of GREETING_NAME_MAX + 1. */
enum greeting greeting_read(const uint8_t *data, size_t len, char name[GREETING_NAME_MAX + 1]);

#endif
