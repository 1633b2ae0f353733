/* http_test: requests that a server must get whole or not at all, and the ways to hide one in
 * another. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "broker/http.h"
#include "check.h"

/* What came of a connection's bytes. */
struct end {
	enum http_verdict verdict; /* HTTP_PASS: all has passed; HTTP_MORE: the rest is held */
	uint64_t passed;           /* more than there were when a body is still due */
	char other[HTTP_NAME_MAX + 1];
	struct http http;
};

/* Show the bytes as they come in, `step` at a time, in memory of just that size. */
static struct end feed(uint16_t port, const char *text, size_t len, size_t step)
{
	struct end end = { .verdict = HTTP_MORE, .other = "?" };
	for (size_t there = 0; there < len;) {
		there = len - there < step ? len : there + step;
		while (end.passed < there) {
			size_t held = there - (size_t)end.passed;
			uint8_t *copy = malloc(held);
			memcpy(copy, text + end.passed, held);
			uint64_t pass = 0;
			end.verdict = http_look(
				&end.http, "allowed.test", port, copy, held, &pass, end.other);
			free(copy);
			CHECK((end.verdict == HTTP_PASS || end.verdict == HTTP_UPGRADE) ==
				(pass != 0));
			CHECK((end.verdict == HTTP_OTHER_HOST) == (end.other[0] != '?'));
			end.passed += pass;
			if (end.verdict == HTTP_MORE)
				break;
			if (end.verdict != HTTP_PASS)
				return end;
		}
	}
	return end;
}

/* The end is the same however the bytes come in. */
static struct end look_at(uint16_t port, const char *text, size_t len)
{
	static const size_t steps[] = { 1, 2, 3, 5, 17, 100 };
	struct end whole = feed(port, text, len, len);
	for (size_t i = len < 5000 ? 0 : 4; i < sizeof steps / sizeof *steps; i++) {
		struct end part = feed(port, text, len, steps[i]);
		CHECK(part.verdict == whole.verdict && part.passed == whole.passed);
		CHECK(part.http.requests == whole.http.requests);
		CHECK_TEXT(part.other, whole.other);
	}
	return whole;
}

static struct end last;
#define LOOK(text) (last = look_at(80, text, sizeof(text) - 1), last.verdict)
/* All of it passes, as so many requests. */
#define PASSES(text, count)                                                                        \
	(LOOK(text) == HTTP_PASS && last.passed == sizeof(text) - 1 &&                             \
		last.http.requests == (count))
/* Nothing of it passes. */
#define BAD(text) (LOOK(text) == HTTP_BAD && last.passed == 0)
/* It passes up to its last `rest`, which is refused. */
#define PASSES_BUT(text, rest) (LOOK(text rest) == HTTP_BAD && last.passed == sizeof(text) - 1)
#define HOST_NOT(text, name)                                                                       \
	(LOOK(text) == HTTP_OTHER_HOST && last.passed == 0 && strcmp(last.other, name) == 0)

#define HOST "Host: allowed.test\r\n"
#define GET  "GET / HTTP/1.1\r\n" HOST "\r\n"

static void a_request_passes_whole(void)
{
	CHECK(PASSES(GET, 1));
	CHECK(PASSES("GET /a?b=c&d=%20//evil.test/ HTTP/1.1\r\nhOST:\t ALLOWED.test:80 \r\n"
		     "Accept: a, b\r\nX-Empty:\r\nX-Bytes: \xc3\xbc\tx\r\n\r\n",
		1));
	CHECK(PASSES("GET /\xc3\xbc HTTP/1.1\r\nHost: allowed.test.\r\n\r\n", 1));
	CHECK(PASSES("M-SEARCH!#$%&'*+.^_`|~ / HTTP/1.1\r\n" HOST "\r\n", 1));
	CHECK(PASSES("OPTIONS * HTTP/1.1\r\n" HOST "\r\n", 1));
	CHECK(PASSES("HEAD / HTTP/1.1\r\n" HOST "\r\n", 1));
	/* Not before its end. */
	static const char whole[] = GET;
	for (size_t len = 1; len < sizeof whole - 1; len++) {
		struct end end = look_at(80, whole, len);
		CHECK(end.verdict == HTTP_MORE && end.passed == 0 && end.http.requests == 0);
	}
}

static void the_port_may_be_said(void)
{
	static const char with[] = "GET / HTTP/1.1\r\nHost: allowed.test:8080\r\n\r\n";
	CHECK(look_at(8080, with, sizeof with - 1).verdict == HTTP_PASS);
	CHECK(look_at(8080, GET, sizeof GET - 1).verdict == HTTP_PASS);
	CHECK(look_at(80, with, sizeof with - 1).verdict == HTTP_OTHER_HOST);
	CHECK(HOST_NOT("GET / HTTP/1.1\r\nHost: allowed.test:81\r\n\r\n", "allowed.test"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: allowed.test:\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: allowed.test:0\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: allowed.test:000080\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: allowed.test:65616\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: allowed.test:4294967376\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: allowed.test:+80\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: allowed.test:80:80\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: allowed.test:80 80\r\n\r\n"));
}

static void another_host_is_told(void)
{
	CHECK(HOST_NOT("GET / HTTP/1.1\r\nHost: Evil.test\r\n\r\n", "evil.test"));
	CHECK(HOST_NOT("GET / HTTP/1.0\r\nHost: evil.test\r\n\r\n", "evil.test"));
	CHECK(HOST_NOT("GET / HTTP/1.1\r\nHost: x.allowed.test\r\n\r\n", "x.allowed.test"));
	CHECK(HOST_NOT("GET / HTTP/1.1\r\nHost: allowed.test.evil.test\r\n\r\n",
		"allowed.test.evil.test"));
	CHECK(HOST_NOT("GET / HTTP/1.1\r\nHost: test\r\n\r\n", "test"));
	CHECK(HOST_NOT("GET / HTTP/1.1\r\nHost: 192.0.2.1:80\r\n\r\n", "192.0.2.1"));
	/* Each request by itself. */
	CHECK(LOOK(GET "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n") == HTTP_OTHER_HOST);
	CHECK(last.passed == sizeof GET - 1 && last.http.requests == 1);
	CHECK_TEXT(last.other, "evil.test");
}

static void there_is_one_host_that_is_a_host(void)
{
	CHECK(BAD("GET / HTTP/1.1\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nX-Host: allowed.test\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST HOST "\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST "HOST: evil.test\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.0\r\n" HOST HOST "\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost:\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: allowed.test, evil.test\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: allowed.test evil.test\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: x@allowed.test\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: allowed.test@evil.test\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: allowed.test:80@evil.test\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: [::ffff:10.0.0.1]:80\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: http://allowed.test\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: allowed.test/\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: allowed.test#evil.test\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: allowed.test..\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: .\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: \"allowed.test\"\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: allowed%2etest\r\n\r\n"));
}

static void a_url_and_a_host_must_both_be_right(void)
{
	CHECK(PASSES("GET http://allowed.test/x HTTP/1.1\r\n" HOST "\r\n", 1));
	CHECK(PASSES("GET HTTP://Allowed.test:80 HTTP/1.1\r\n" HOST "\r\n", 1));
	CHECK(PASSES("GET http://allowed.test?http://evil.test/ HTTP/1.1\r\n" HOST "\r\n", 1));
	CHECK(PASSES("GET http://allowed.test/ HTTP/1.0\r\n\r\n", 1));
	CHECK(HOST_NOT("GET http://evil.test/ HTTP/1.1\r\n" HOST "\r\n", "evil.test"));
	CHECK(HOST_NOT("GET http://evil.test/ HTTP/1.0\r\n\r\n", "evil.test"));
	CHECK(HOST_NOT(
		"GET http://allowed.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n", "evil.test"));
	CHECK(HOST_NOT("GET http://allowed.test:81/ HTTP/1.1\r\n" HOST "\r\n", "allowed.test"));
	CHECK(HOST_NOT("GET https://allowed.test/ HTTP/1.1\r\n" HOST "\r\n", "allowed.test"));
	CHECK(HOST_NOT("GET ftp://evil.test/ HTTP/1.1\r\n" HOST "\r\n", "evil.test"));
	CHECK(BAD("GET http://allowed.test/ HTTP/1.1\r\n\r\n"));
	CHECK(BAD("GET http://x@allowed.test/ HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(BAD("GET http://allowed.test@evil.test/ HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(BAD("GET http://allowed.test#@evil.test/ HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(BAD("GET http://allowed.test\\@evil.test/ HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(BAD("GET http://[::1]/ HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(BAD("GET http:// HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(BAD("GET http:///x HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(BAD("GET http:/evil.test HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(BAD("GET http: HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(BAD("GET ://allowed.test/ HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(BAD("GET 1http://allowed.test/ HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(BAD("GET evil.test HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(BAD("GET evil.test:80 HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(BAD("GET * HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(BAD("GET \\\\evil.test\\x HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(BAD("GET ?x HTTP/1.1\r\n" HOST "\r\n"));
}

static void connect_is_for_another_host(void)
{
	CHECK(HOST_NOT("CONNECT evil.test:443 HTTP/1.1\r\n" HOST "\r\n", "evil.test"));
	CHECK(HOST_NOT("CONNECT allowed.test:80 HTTP/1.1\r\n" HOST "\r\n", "allowed.test"));
	CHECK(HOST_NOT("connect evil.test:443 HTTP/1.0\r\n\r\n", "evil.test"));
	CHECK(HOST_NOT("CONNECT [::1]:443 HTTP/1.1\r\n" HOST "\r\n", ""));
	CHECK(HOST_NOT("CONNECT / HTTP/1.1\r\n" HOST "\r\n", ""));
}

static void old_requests_may_have_no_host(void)
{
	CHECK(PASSES("GET / HTTP/1.0\r\n\r\n", 1));
	CHECK(PASSES("GET / HTTP/1.0\r\n" HOST "\r\n", 1));
	CHECK(PASSES("POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.0\r\n\r\n", 2));
	CHECK(BAD("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"));
}

static void other_versions_are_bad(void)
{
	CHECK(BAD("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
	CHECK(BAD("GET / HTTP/2.0\r\n" HOST "\r\n"));
	CHECK(BAD("GET / HTTP/1.2\r\n" HOST "\r\n"));
	CHECK(BAD("GET / HTTP/1.10\r\n" HOST "\r\n"));
	CHECK(BAD("GET / HTTP/0.9\r\n" HOST "\r\n"));
	CHECK(BAD("GET / http/1.1\r\n" HOST "\r\n"));
	CHECK(BAD("GET / HTTP/1.1 \r\n" HOST "\r\n"));
	CHECK(BAD("GET / HTTP/1.1 HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(BAD("GET / XHTTP/1.1\r\n" HOST "\r\n"));
	CHECK(BAD("GET /\r\n")); /* HTTP/0.9 */
	CHECK(BAD("GET http://evil.test/\r\n"));
	CHECK(BAD("GET /\n"));
}

/* Servers step over empty lines and take any method: what follows is a connection of requests. */
static void a_short_method_behind_an_empty_line(void)
{
	static const char *const begins[] = { "\r\nX", "\nXY", "\r\n\r\nGE", "\r_", "\n-", "X",
		"A_B" };
	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
		char text[128];
		int len =
			snprintf(text, sizeof text, "%s / HTTP/1.1\r\n" HOST "\r\n" GET, begins[i]);
		CHECK(look_at(80, text, (size_t)len).verdict != HTTP_OTHER);
		len = snprintf(text, sizeof text, "%s /\001 HTTP/1.1\r\n", begins[i]);
		CHECK(look_at(80, text, (size_t)len).verdict == HTTP_BAD);
	}
	CHECK(BAD("PROXY TCP4 10.0.0.1 10.0.0.2 1 80\r\n" GET));
}

static void what_is_no_request_is_told_soon(void)
{
	static const char *const texts[] = { "\001", "\377", "{", "\"", "EHLO allowed.test\r\n",
		"QUIT\r\n", "QUIT\n", "SSH-2.0-OpenSSH_9.2p1 x\r\n", "SSH-2.0-OpenSSH\r\n",
		"*1\r\n$4\r\nPING\r\n", "!\001", "CONNECT {\"verbose\":false}\r\n", "get key\r\n",
		"OPTIONS rtsp://allowed.test/ RTSP/1.0\r\n", "0\014\002\001", "0 \002\001",
		"\034\001", "\r\nquit\r\n", "\t\001", "a\tb\r\n", "GET/", "GET:" };
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct end end = look_at(80, texts[i], strlen(texts[i]));
		CHECK(end.verdict == HTTP_OTHER && !end.passed);
		/* Not at the first of these bytes only: it is only told when it is known. */
		char more[64];
		int len = snprintf(more, sizeof more, "%s\r\nGET / HTTP/1.1\r\n", texts[i]);
		CHECK(look_at(80, more, (size_t)len).verdict == HTTP_OTHER);
		/* Behind a request it is no beginning any more. */
		char behind[128];
		len = snprintf(behind, sizeof behind, GET "%s", texts[i]);
		end = look_at(80, behind, (size_t)len);
		CHECK(end.verdict == HTTP_BAD && end.passed == sizeof GET - 1);
	}
	CHECK(LOOK("0032git-upload-pack /x.git\0host=allowed.test\0") == HTTP_OTHER);
	CHECK(LOOK("G") == HTTP_MORE);
	CHECK(LOOK("0\014") == HTTP_MORE);
	CHECK(LOOK("EHLO allowed.test") == HTTP_MORE);
	CHECK(LOOK("\r\n") == HTTP_MORE);
	CHECK(LOOK("GET\r") == HTTP_MORE);
}

/* Lines that one server or another takes for a request, although none is told to. */
static void what_some_take_for_a_request_is_bad(void)
{
	CHECK(BAD("\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"));
	CHECK(BAD("\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"));
	CHECK(BAD(" GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"));
	CHECK(BAD("\034\013GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"));
	CHECK(BAD("GET  / HTTP/1.1\r\nHost: evil.test\r\n\r\n"));
	CHECK(BAD("GET /  HTTP/1.1\r\nHost: evil.test\r\n\r\n"));
	CHECK(BAD("GET / x HTTP/1.1\r\nHost: evil.test\r\n\r\n"));
	CHECK(BAD("GET\t/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"));
	CHECK(BAD("GET /\tHTTP/1.1\r\nHost: evil.test\r\n\r\n"));
	CHECK(BAD("POST\r/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"));
	CHECK(BAD("POST /\rHTTP/1.1\r\nHost: evil.test\r\n\r\n"));
	CHECK(BAD("POST\013/\014HTTP/1.1\r\nHost: evil.test\r\n\r\n"));
	CHECK(BAD("POST\xa0/\x85HTTP/1.1\r\nHost: evil.test\r\n\r\n"));
	CHECK(BAD("POST /\0 HTTP/1.1\r\nHost: evil.test\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\0\r\nHost: evil.test\r\n\r\n"));
	CHECK(BAD("GET http://evil.test/\001\r\n"));
	CHECK(BAD("x / Http/1.1\001\r\n"));
	CHECK(BAD("x / HTTP/1.1\n" HOST "\n"));
	CHECK(BAD("POST /\x7f HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(PASSES_BUT(GET, "\r\n" GET));
}

static void lines_end_in_one_way(void)
{
	CHECK(BAD("GET / HTTP/1.1\n" HOST "\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost: allowed.test\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nX: a\nHost: evil.test\r\n" HOST "\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nX: a\n\nGET / HTTP/1.1\r\nHost: evil.test\r\n" HOST "\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST "\n"));
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST "X: a\rb\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST "X: a\r\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST "\rX: a\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST "\r\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\r\n" HOST "\r\n"));
	/* And what is wrong is not waited behind. */
	CHECK(BAD("GET / HTTP/1.1\n"));
	CHECK(BAD("GET\t/ HTTP/1.1\r\n"));
	CHECK(BAD("\r\nGET / HTTP/1.1\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nX\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nX: \0"));
	CHECK(BAD("GET / HTTP/1.1\r\nX: \ra"));
}

static void fields_are_read_in_one_way(void)
{
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n")); /* folded */
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST "X: a\r\n\tb\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\n Host: evil.test\r\n" HOST "\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost:\r\n allowed.test\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\nHost : allowed.test\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST "Host : evil.test\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST "Host\t: evil.test\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST "Transfer-Encoding : chunked\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST "X\0: a\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST "X: a\0b\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST "X: a\001b\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST "X: a\013\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST "X: a\x7f\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST "X\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST ": a\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST "X Y: a\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST "X\xc3\xbc: a\r\n\r\n"));
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST "(X): a\r\n\r\n"));
}

static void a_body_has_its_length(void)
{
	CHECK(PASSES("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nGET /" GET, 2));
	CHECK(PASSES(
		"PUT / HTTP/1.1\r\n" HOST "content-length:\t0007 \r\n\r\n\n\0\n\r\n\r\n" GET, 2));
	/* Some servers read no body there, but the next request. */
	CHECK(BAD("GET / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nabcde"));
	CHECK(BAD("HEAD / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"));
	CHECK(PASSES("GET / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n" GET, 2));
	CHECK(PASSES("POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n" GET, 2));
	CHECK(PASSES("POST / HTTP/1.1\r\n" HOST "\r\n" GET, 2)); /* none is no body */
	CHECK(PASSES("DELETE / HTTP/1.1\r\n" HOST "\r\n" GET "HEAD / HTTP/1.1\r\n" HOST "\r\n", 3));
	/* More than there is: all of it passes unseen. */
	CHECK(LOOK("POST / HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\nGET /\n") == HTTP_PASS);
	CHECK(last.passed == 61 + 1000);
	CHECK(LOOK("POST / HTTP/1.1\r\n" HOST "Content-Length: 9223372036854775807\r\n\r\n") ==
		HTTP_PASS);
	CHECK(last.passed == 76 + (uint64_t)INT64_MAX);
}

static void lengths_that_can_be_read_in_two_ways_are_bad(void)
{
	static const char *const lengths[] = { "", "-1", "+5", "5 5", "5, 5", "5,", "0x5", "5a",
		"5.0", "9223372036854775808", "18446744073709551616", "18446744073709551621",
		"99999999999999999999999999", "\"5\"", "5;", "\0135" };
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		char text[200];
		int len = snprintf(text, sizeof text,
			"POST / HTTP/1.1\r\n" HOST "Content-Length: %s\r\n\r\nabcde", lengths[i]);
		struct end end = look_at(80, text, (size_t)len);
		CHECK(end.verdict == HTTP_BAD && end.passed == 0);
	}
	CHECK(BAD(
		"POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nabcde"));
	CHECK(BAD(
		"POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\nContent-Length: 5\r\n\r\nabcde"));
	CHECK(BAD("POST / HTTP/1.1\r\n" HOST
		  "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"));
	CHECK(BAD("POST / HTTP/1.1\r\n" HOST
		  "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n"));
}

#define CHUNKED "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"

static void codings_but_chunked_are_bad(void)
{
	static const char *const codings[] = { "", "gzip", "identity", "gzip, chunked",
		"chunked, gzip", "chunked, chunked", "chunked,", ",chunked", "chunked;q=1",
		"xchunked", "chunkedx", "\"chunked\"", "chunk ed" };
	for (size_t i = 0; i < sizeof codings / sizeof *codings; i++) {
		char text[200];
		int len = snprintf(text, sizeof text,
			"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: %s\r\n\r\n0\r\n\r\n",
			codings[i]);
		struct end end = look_at(80, text, (size_t)len);
		CHECK(end.verdict == HTTP_BAD && end.passed == 0);
	}
	CHECK(BAD("POST / HTTP/1.1\r\n" HOST
		  "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"));
	CHECK(BAD("POST / HTTP/1.1\r\n" HOST
		  "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"));
	CHECK(PASSES(
		"POST / HTTP/1.1\r\n" HOST "TRANSFER-encoding:\tChunked \r\n\r\n0\r\n\r\n", 1));
}

static void chunks_are_walked_along(void)
{
	CHECK(PASSES(CHUNKED "0\r\n\r\n", 1));
	CHECK(PASSES(CHUNKED "5\r\nGET /\r\n00a\r\n0\r\n\r\nGET \n\r\n000\r\n\r\n" GET, 2));
	CHECK(PASSES(CHUNKED "1;a\r\nx\r\n1;a=b;c=\"\t;\xc3\xbc\"\r\ny\r\n0;x\r\n\r\n" GET, 2));
	CHECK(PASSES(CHUNKED "0\r\nX: a\r\nContent-MD5:\r\n\r\n" GET, 2));
	CHECK(LOOK(CHUNKED "fF\r\nabc") == HTTP_PASS &&
		last.passed == sizeof CHUNKED - 1 + 4 + 255);
	CHECK(LOOK(CHUNKED "FFFFFFFFFFFFFFF\r\n") == HTTP_PASS);
	CHECK(last.passed == sizeof CHUNKED - 1 + 17 + 0xfffffffffffffff);
	CHECK(LOOK(CHUNKED) == HTTP_PASS);
	CHECK(LOOK(CHUNKED "5") == HTTP_MORE && last.passed == sizeof CHUNKED - 1);
	CHECK(LOOK(CHUNKED "0\r\n") == HTTP_PASS);
	CHECK(LOOK(CHUNKED "0\r\n\r") == HTTP_MORE);
	/* The request behind a body is looked at like the first one. */
	CHECK(LOOK(CHUNKED "0\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n") ==
		HTTP_OTHER_HOST);
	CHECK(last.passed == sizeof CHUNKED - 1 + 5);
}

static void bad_chunks_end_it(void)
{
	CHECK(PASSES_BUT(CHUNKED, "\r\n"));
	CHECK(PASSES_BUT(CHUNKED, "g\r\n"));
	CHECK(PASSES_BUT(CHUNKED, "-1\r\n"));
	CHECK(PASSES_BUT(CHUNKED, "0x5\r\nabcde\r\n"));
	CHECK(PASSES_BUT(CHUNKED, " 5\r\nabcde\r\n"));
	CHECK(PASSES_BUT(CHUNKED, "5 \r\nabcde\r\n"));
	CHECK(PASSES_BUT(CHUNKED, "5 ;a\r\nabcde\r\n"));
	CHECK(PASSES_BUT(CHUNKED, ";a\r\n"));
	CHECK(PASSES_BUT(CHUNKED, "5\nabcde\r\n"));
	CHECK(PASSES_BUT(CHUNKED, "5\rabcde\r\n"));
	CHECK(PASSES_BUT(CHUNKED, "5;a\nbcde\r\n"));
	CHECK(PASSES_BUT(CHUNKED, "5;a\rbcde\r\n"));
	CHECK(PASSES_BUT(CHUNKED, "5;\0\r\nabcde\r\n"));
	CHECK(PASSES_BUT(CHUNKED, "5;\001\r\nabcde\r\n"));
	CHECK(PASSES_BUT(CHUNKED, "5;\x7f\r\nabcde\r\n"));
	CHECK(PASSES_BUT(CHUNKED, "1000000000000000\r\n"));
	CHECK(PASSES_BUT(CHUNKED, "0000000000000005\r\nabcde\r\n"));
	CHECK(PASSES_BUT(CHUNKED "3\r\nabc", "de\r\n0\r\n\r\n"));
	CHECK(PASSES_BUT(CHUNKED "3\r\nabc", "d"));
	CHECK(PASSES_BUT(CHUNKED "3\r\nabc", "\n0\r\n\r\n"));
	CHECK(PASSES_BUT(CHUNKED "3\r\nabc", "\r0\r\n\r\n"));
	CHECK(PASSES_BUT(CHUNKED "3\r\nabc", "\n\r\n0\r\n\r\n"));
	CHECK(PASSES_BUT(CHUNKED "3\r\nabc\r\n", "\r\n0\r\n\r\n"));
	CHECK(PASSES_BUT(CHUNKED "0\r\n", "\n"));
	CHECK(PASSES_BUT(CHUNKED "0\r\n", "X: a\n\r\n"));
	CHECK(PASSES_BUT(CHUNKED "0\r\n", "X : a\r\n\r\n"));
	CHECK(PASSES_BUT(CHUNKED "0\r\n", " X: a\r\n\r\n"));
	CHECK(PASSES_BUT(CHUNKED "0\r\nX: a\r\n", " b\r\n\r\n"));
	CHECK(PASSES_BUT(CHUNKED "0\r\n", "Host: evil.test\r\n\r\n"));
	CHECK(PASSES_BUT(CHUNKED "0\r\n", "Content-Length: 5\r\n\r\n"));
	CHECK(PASSES_BUT(CHUNKED "0\r\n", "transfer-encoding: chunked\r\n\r\n"));
	CHECK(PASSES_BUT(CHUNKED "0\r\n", "Upgrade: h2c\r\n\r\n"));
	CHECK(PASSES_BUT(CHUNKED "0\r\n", "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"));
}

static void what_is_held_has_a_longest(void)
{
	static char text[HTTP_HEAD_MAX + 100];
	static const char start[] = "GET / HTTP/1.1\r\n" HOST "X: ", chunks[] = CHUNKED;
	for (size_t size = HTTP_HEAD_MAX - 1; size <= HTTP_HEAD_MAX + 1; size++) {
		memset(text, 'a', sizeof text);
		memcpy(text, start, sizeof start - 1);
		memcpy(text + size - 4, "\r\n\r\n", 4);
		struct end end = look_at(80, text, size);
		CHECK(end.verdict == (size > HTTP_HEAD_MAX ? HTTP_BAD : HTTP_PASS));
		CHECK(end.passed == (size > HTTP_HEAD_MAX ? 0 : size));
	}
	memset(text, '/', sizeof text); /* a target, a word, space that does not end */
	memcpy(text, "GET ", 4);
	CHECK(look_at(80, text, HTTP_HEAD_MAX - 1).verdict == HTTP_MORE);
	CHECK(look_at(80, text, sizeof text).verdict == HTTP_BAD);
	memset(text, 'A', 300);
	CHECK(look_at(80, text, 255).verdict == HTTP_MORE);
	CHECK(look_at(80, text, 300).verdict == HTTP_BAD);
	memset(text, '\n', 300);
	CHECK(look_at(80, text, 300).verdict == HTTP_BAD);

	for (int more = 0; more < 2; more++) {
		memset(text, 'a', sizeof text);
		memcpy(text, chunks, sizeof chunks - 1);
		memcpy(text + sizeof chunks - 1, "0;", 2);
		char *line_end = text + sizeof chunks - 1 + HTTP_LINE_MAX - 2 + more;
		memcpy(line_end, "\r\n\r\n", 4);
		struct end end = look_at(80, text, (size_t)(line_end + 4 - text));
		CHECK(end.verdict == (more ? HTTP_BAD : HTTP_PASS));
		CHECK(end.passed == (more ? sizeof chunks - 1 : (size_t)(line_end + 4 - text)));
	}
}

#define UPGRADE(to) "GET / HTTP/1.1\r\n" HOST "Upgrade: " to "\r\nConnection: Upgrade\r\n\r\n"

/* After a first request that asks for an upgrade, and these answers. */
static enum http_verdict answered(struct http *http, const char *answer)
{
	enum http_verdict before = HTTP_MORE;
	struct http start = *http;
	for (size_t len = 0; len <= strlen(answer); len++) {
		uint8_t *copy = malloc(len ? len : 1);
		memcpy(copy, answer, len);
		*http = start;
		enum http_verdict verdict = http_upgraded(http, copy, len);
		free(copy);
		CHECK(before == HTTP_MORE || verdict == before);
		before = verdict;
	}
	return before;
}

static void nothing_passes_before_an_upgrade_is_answered(void)
{
	CHECK(LOOK(UPGRADE("websocket") "\x81\x05hello") == HTTP_UPGRADE);
	CHECK(last.passed == sizeof UPGRADE("websocket") - 1 && last.http.requests == 1);
	struct http asked = last.http, http;
	uint64_t pass = 0;
	char other[HTTP_NAME_MAX + 1];
	const uint8_t *get = (const uint8_t *)GET;
	CHECK(http_look(&asked, "allowed.test", 80, get, sizeof GET - 1, &pass, other) ==
		HTTP_MORE);

	static const struct {
		const char *answer;
		enum http_verdict want;
	} answers[] = { { "HTTP/1.1 101 x\r\n", HTTP_OTHER }, { "HTTP/1.1 101\r\n", HTTP_OTHER },
		{ "HTTP/1.1 200 OK\r\n\r\n", HTTP_PASS }, { "HTTP/1.1 426 x\r\n", HTTP_PASS },
		{ "HTTP/1.1 100 x\r\n\r\nHTTP/1.1 101 x\r\n", HTTP_OTHER },
		{ "HTTP/1.1 103 x\r\nLink: x\r\n\r\nHTTP/1.1 100 x\n\nHTTP/1.1 200 x", HTTP_PASS },
		{ "HTTP/1.1 103 x\r\nX: HTTP/1.1 101\r\n", HTTP_MORE },
		{ "HTTP/1.1 200 x\r\n\r\nHTTP/1.1 101 x\r\n", HTTP_PASS },
		{ "HTTP/1.1 10", HTTP_MORE }, { "", HTTP_MORE }, { "HTTP/2.0 101", HTTP_PASS },
		{ "HTTP/1.1 1x1", HTTP_PASS }, { "HTTP/1.1 000 x", HTTP_PASS },
		{ "<html>101", HTTP_PASS } };
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		http = asked;
		enum http_verdict got = answered(&http, answers[i].answer);
		CHECK(got == answers[i].want);
		enum http_verdict then =
			http_look(&http, "allowed.test", 80, get, sizeof GET - 1, &pass, other);
		CHECK(then == got);
		if (got != HTTP_MORE)
			CHECK(http_upgraded(&http, get, 1) == got);
	}
}

static void a_protocol_with_requests_is_no_upgrade(void)
{
	static const struct {
		const char *to;
		bool nested;
	} protocols[] = { { "h2c", true }, { "H2C", true }, { "websocket, h2c", true },
		{ "websocket ,\tHTTP/2.0", true }, { "TLS/1.0", true }, { "SPDY/3.1", true },
		{ "websocket\r\nUpgrade: h2c", true }, { "websocket", false }, { "tcp", false },
		{ "", false }, { ",", false }, { "xh2c", false } };
	for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++) {
		char text[200];
		int len = snprintf(text, sizeof text, UPGRADE("%s"), protocols[i].to);
		struct end end = look_at(80, text, (size_t)len);
		CHECK(end.verdict == HTTP_UPGRADE && end.passed == (uint64_t)len);
		struct http http = end.http;
		CHECK(answered(&http, "HTTP/1.1 200 x") == HTTP_PASS);
		http = end.http;
		CHECK(answered(&http, "HTTP/1.1 101 x") ==
			(protocols[i].nested ? HTTP_BAD : HTTP_OTHER));
		uint64_t pass;
		char other[HTTP_NAME_MAX + 1];
		CHECK(http_look(&http, "allowed.test", 80, (const uint8_t *)GET, sizeof GET - 1,
			      &pass, other) == (protocols[i].nested ? HTTP_BAD : HTTP_OTHER));
	}
}

static void only_the_first_request_upgrades(void)
{
	CHECK(PASSES(GET UPGRADE("websocket"), 2));
	CHECK(PASSES_BUT(GET UPGRADE("h2c"), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
	CHECK(PASSES_BUT(GET UPGRADE("TLS/1.0"), "\026\003\001\0\005"));
	CHECK(PASSES_BUT(GET UPGRADE("websocket"), "\x81\x05hello"));
	CHECK(LOOK("GET / HTTP/1.0\r\nUpgrade: x\r\n\r\n") == HTTP_UPGRADE);
	struct http http = { 0 };
	CHECK(http_upgraded(&http, (const uint8_t *)"HTTP/1.1 101", 12) == HTTP_PASS);
}

static void an_upgrade_has_no_body(void)
{
	CHECK(BAD("POST / HTTP/1.1\r\n" HOST "Upgrade: h2c\r\nContent-Length: 5\r\n\r\nabcde"));
	CHECK(BAD("POST / HTTP/1.1\r\n" HOST
		  "Transfer-Encoding: chunked\r\nUpgrade: websocket\r\n\r\n0\r\n\r\n"));
	CHECK(PASSES_BUT(
		GET, "POST / HTTP/1.1\r\n" HOST "Upgrade: h2c\r\nContent-Length: 5\r\n\r\nabcde"));
	CHECK(LOOK("POST / HTTP/1.1\r\n" HOST "Upgrade: x\r\nContent-Length: 0\r\n\r\n") ==
		HTTP_UPGRADE);
	CHECK(HOST_NOT(
		"GET / HTTP/1.1\r\nHost: evil.test\r\nUpgrade: websocket\r\n\r\n", "evil.test"));
}

int main(void)
{
	RUN(a_request_passes_whole);
	RUN(the_port_may_be_said);
	RUN(another_host_is_told);
	RUN(there_is_one_host_that_is_a_host);
	RUN(a_url_and_a_host_must_both_be_right);
	RUN(connect_is_for_another_host);
	RUN(old_requests_may_have_no_host);
	RUN(other_versions_are_bad);
	RUN(a_short_method_behind_an_empty_line);
	RUN(what_is_no_request_is_told_soon);
	RUN(what_some_take_for_a_request_is_bad);
	RUN(lines_end_in_one_way);
	RUN(fields_are_read_in_one_way);
	RUN(a_body_has_its_length);
	RUN(lengths_that_can_be_read_in_two_ways_are_bad);
	RUN(codings_but_chunked_are_bad);
	RUN(chunks_are_walked_along);
	RUN(bad_chunks_end_it);
	RUN(what_is_held_has_a_longest);
	RUN(nothing_passes_before_an_upgrade_is_answered);
	RUN(a_protocol_with_requests_is_no_upgrade);
	RUN(only_the_first_request_upgrades);
	RUN(an_upgrade_has_no_body);
	return CHECK_STATUS();
}
