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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_HEAD_MAX 65536 /* bytes of a request's head; a longer one is HTTP_BAD */
#define HTTP_LINE_MAX 8192  /* bytes of a line of a chunked body, with its end */

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
	int where;         /* private */
	size_t seen;       /* private: bytes of an unfinished head that need no second look */
	bool nested;       /* private: the upgrade is to a protocol that has requests itself */
	unsigned requests; /* whose heads have passed */
};

/*
 * `data`: what the client sent and has not passed yet, from its first byte on; `len` at least 1.
 * After HTTP_MORE the same bytes are shown again, with more behind them; after HTTP_PASS those
 * behind the ones that passed. name: the connection's, lower case without a last dot; `port`: a
 * Host field may repeat it. *ret_pass is at least 1, and written with HTTP_PASS and HTTP_UPGRADE
 * only.
 *
 * HTTP_PASS may name more bytes than there are (a body of known length): they need not be looked
 * at. A request head passes only as a whole. How the bytes are cut into calls changes nothing.
 *
 * Refused as HTTP_BAD:
 * - a line that does not end with CR LF, CR or LF elsewhere, NUL and other control bytes, empty
 *   lines before a request, a field line that begins with a space, a name that is no token or has a
 *   space before its colon, more than one space (or another kind) in the request line;
 * - HTTP/1.1 without Host (HTTP/1.0 may have none), more than one Host, a Host that is not a host
 *   name with an optional port: userinfo, IPv6 literals, lists, none at all;
 * - a target that is neither a path, nor a URL with such a host, nor OPTIONS's "*";
 * - Content-Length twice, beside Transfer-Encoding, or not a plain number below 2^63;
 *   Transfer-Encoding twice, in HTTP/1.0, or other than "chunked" alone;
 * - chunks whose size is not 1 to 15 hexadecimal digits, or that are longer than it; trailers that
 *   belong in a head (Host, Content-Length, Transfer-Encoding, Upgrade);
 * - Upgrade beside a body: which of the two would follow, the server alone decides;
 * - a body of GET, HEAD or TRACE: some servers would take it for the next request;
 * - a line that begins with PROXY: it speaks for who follows;
 * - another version than HTTP/1.0 and HTTP/1.1, also none ("GET /": HTTP/0.9).
 * What is wrong with a line's end or with the first line is told as soon as it is there, the rest
 * with the end of the head.
 *
 * HTTP_OTHER_HOST, when all of the head is well formed: a Host or URL of another name or port, a
 * URL of another scheme than http, and each CONNECT. A URL and a Host must both be right. ret_other
 * ("" when it cannot be told) is written only then.
 *
 * HTTP_OTHER: the first line is not one that some server might take for a request: it does not
 * begin with a token and a space, or it has no "HTTP/" and its method is not GET. That is told at
 * its end, or at the first byte that stands in no such line.
 */
#define HTTP_NAME_MAX 255
enum http_verdict http_look(struct http *http, const char *name, uint16_t port, const uint8_t *data,
	size_t len, uint64_t *ret_pass, char ret_other[HTTP_NAME_MAX + 1]);

/*
 * After HTTP_UPGRADE (only the first request of a connection can have it; on later ones Upgrade is
 * an ordinary field, and what follows must be requests): what the server answered from its first
 * byte on. HTTP_MORE: not known yet; HTTP_OTHER: 101, all passes from here on, both ways;
 * HTTP_PASS: no upgrade, http_look() goes on; HTTP_BAD: 101 to what may have been a protocol with
 * requests of its own, which cannot be read here (h2c, TLS, SPDY, another HTTP): refused. Before,
 * http_look() is HTTP_MORE; after 101, it is HTTP_OTHER or HTTP_BAD likewise.
 */
enum http_verdict http_upgraded(struct http *http, const uint8_t *answer, size_t len);

#endif
