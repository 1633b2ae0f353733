/*
 * http: whom the requests on a connection without TLS are for. A connection by name goes to that
 * name's server, but a server of many names (a CDN) answers to the Host field; so each request of a
 * connection must be for the name that the connection was made to. Pure; the bytes are hostile.
 *
 * Source: RFC 9112 (HTTP/1.1), and RFC 9110 for Host and Upgrade. HTTP/2 without TLS ("PRI *
 * HTTP/2.0") is refused, as its requests cannot be read here.
 */
#ifndef AGENTBOX_BROKER_HTTP_H
#define AGENTBOX_BROKER_HTTP_H

#include <stddef.h>
#include <stdint.h>

#define HTTP_HEAD_MAX 65536 /* bytes of a request's head; a longer one is HTTP_BAD */

enum http_verdict {
	HTTP_MORE,  /* wait for more bytes: nothing of what is held may pass yet */
	HTTP_PASS,  /* *ret_pass bytes may pass, counted from the first of `data`; look again behind
		       them */
	HTTP_OTHER, /* only at the start: this is not HTTP/1 */
	HTTP_OTHER_HOST, /* a request for another host; name tells which */
	HTTP_BAD,        /* not to be understood in one way: refused */
	HTTP_UPGRADE,    /* *ret_pass bytes may pass; then nothing more until http_upgraded() has
			    spoken */
};

/* The state of one connection's requests; all zero at its start. */
struct http {
	int where;          /* private */
	uint64_t body_left; /* private */
	unsigned requests;
};

/*
 * `data`: what the client sent and has not passed yet, from its first byte on; `len` at least 1.
 * name: the connection's, lower case; `port`: a Host field may repeat it.
 *
 * HTTP_PASS may name more bytes than there are (a body of known length): they need not be looked
 * at. A request head passes only as a whole. Refused as HTTP_BAD: no Host field or more than one
 * (HTTP/1.0 may have none), a Host that is no host name with an optional port, a request target in
 * absolute form for another host or scheme (HTTP_OTHER_HOST), CONNECT (HTTP_OTHER_HOST),
 * Content-Length twice or beside Transfer-Encoding, a coding whose end cannot be found, bare CR or
 * LF inside a field's name, field lines that begin with a space, NUL. HTTP/1.0 without Host passes.
 * Not HTTP/1 (HTTP_OTHER): when the first bytes cannot be the start of "TOKEN SP target SP
 * HTTP/1.x". ret_other: room for a host name, for HTTP_OTHER_HOST ("" when it cannot be told).
 */
#define HTTP_NAME_MAX 255
enum http_verdict http_look(struct http *http, const char *name, uint16_t port, const uint8_t *data,
	size_t len, uint64_t *ret_pass, char ret_other[HTTP_NAME_MAX + 1]);

/*
 * After HTTP_UPGRADE (only the first request of a connection can have it; on later ones Upgrade is
 * an ordinary field): what the server answered from its first byte on. HTTP_MORE: not known yet;
 * HTTP_OTHER: 101, all passes from here on, both ways; HTTP_PASS: no upgrade, http_look() goes on.
 */
enum http_verdict http_upgraded(struct http *http, const uint8_t *answer, size_t len);

#endif
