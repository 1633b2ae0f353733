/* greeting_test: ClientHellos whole and in pieces, in records of any size, and what only looks like
 * them. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "broker/greeting.h"
#include "check.h"

struct bytes {
	uint8_t data[70000];
	size_t len;
};

static void add(struct bytes *to, const void *data, size_t len)
{
	memcpy(to->data + to->len, data, len);
	to->len += len;
}
#define ADD(to, text) add((to), text, sizeof(text) - 1)

static void add_number(struct bytes *to, size_t value, int bytes)
{
	while (bytes--)
		to->data[to->len++] = (uint8_t)(value >> 8 * bytes);
}

/* A number of `bytes` bytes, and so many bytes. */
static void add_field(struct bytes *to, const void *data, size_t len, int bytes)
{
	add_number(to, len, bytes);
	add(to, data, len);
}

static void add_extension(struct bytes *to, int type, const void *data, size_t len)
{
	add_number(to, (size_t)type, 2);
	add_field(to, data, len, 2);
}

/* A server_name extension; the name may hold any bytes. */
static void add_name(struct bytes *to, const char *name, size_t len)
{
	static struct bytes list;
	list.len = 0;
	add_number(&list, len + 3, 2);
	add_number(&list, 0, 1);
	add_field(&list, name, len, 2);
	add_extension(to, 0, list.data, list.len);
}

/* What of a ClientHello there is to get wrong. */
struct shape {
	size_t session, suites, compression;
	bool none;    /* no extensions, not even their length */
	int more;     /* bytes that the extensions' length has too many or too few */
	int hello;    /* the same for the whole message */
	size_t after; /* bytes behind the extensions */
};
static const struct shape usual = { 32, 6, 1, false, 0, 0, 0 };

static void add_hello(struct bytes *to, const struct bytes *extensions, const struct shape *shape)
{
	static struct bytes body;
	static const uint8_t fill[65536];
	body.len = 0;
	ADD(&body, "\003\003");
	add(&body, fill, 32);
	add_field(&body, fill, shape->session, 1);
	add_field(&body, fill, shape->suites, 2);
	add_field(&body, fill, shape->compression, 1);
	if (!shape->none) {
		add_number(&body, extensions->len + (size_t)shape->more, 2);
		add(&body, extensions->data, extensions->len);
	}
	add(&body, fill, shape->after);
	add_number(to, 1, 1);
	add_number(to, body.len + (size_t)shape->hello, 3);
	add(to, body.data, body.len);
}

/* Messages cut into records of `piece` bytes. */
static void add_records(struct bytes *to, const struct bytes *message, size_t piece)
{
	for (size_t at = 0; at < message->len; at += piece) {
		size_t len = message->len - at < piece ? message->len - at : piece;
		ADD(to, "\026\003\001");
		add_field(to, message->data + at, len, 2);
	}
}

static enum greeting read_part(const uint8_t *data, size_t len, char *name)
{
	uint8_t *copy = malloc(len ? len : 1);
	if (len)
		memcpy(copy, data, len);
	memset(name, '?', GREETING_NAME_MAX);
	name[GREETING_NAME_MAX] = 0;
	enum greeting verdict = greeting_read(copy, len, name);
	free(copy);
	if (verdict != GREETING_TLS)
		CHECK(name[0] == '?');
	return verdict;
}

/* The verdict on the whole; every part says the same or MORE, and once it is not MORE it stays. */
static enum greeting read_all(const struct bytes *in, char *name)
{
	enum greeting whole = read_part(in->data, in->len, name), last = GREETING_MORE;
	char part_name[GREETING_NAME_MAX + 1];
	size_t step = in->len > 4000 ? 97 : 1;
	for (size_t len = 0; len < in->len; len += step) {
		enum greeting part = read_part(in->data, len, part_name);
		CHECK(part == GREETING_MORE || part == whole);
		CHECK(last == GREETING_MORE || part == last);
		if (part == GREETING_TLS)
			CHECK_TEXT(part_name, name);
		last = part;
	}
	return whole;
}

/* The verdict on a ClientHello of these extensions; in records of several sizes it is the same. */
static enum greeting read_hello(
	const struct bytes *extensions, const struct shape *shape, char *ret_name)
{
	static const size_t pieces[] = { 16384, 1, 2, 3, 37, 50 };
	static struct bytes message, in;
	message.len = 0;
	add_hello(&message, extensions, shape);
	enum greeting first = GREETING_MORE;
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		in.len = 0;
		add_records(&in, &message, pieces[i]);
		enum greeting got = read_all(&in, ret_name);
		if (!i)
			first = got;
		if (in.len < GREETING_MAX)
			CHECK(got == first);
	}
	return first;
}

static enum greeting read_named(const char *text, size_t len, char *ret_name)
{
	static struct bytes extensions;
	extensions.len = 0;
	add_extension(&extensions, 0x2b, "\002\003\004", 3);
	add_name(&extensions, text, len);
	add_extension(&extensions, 0x17, "", 0);
	return read_hello(&extensions, &usual, ret_name);
}
#define READ_NAMED(text, name) read_named(text, sizeof(text) - 1, (name))

static void a_name_is_read(void)
{
	char name[GREETING_NAME_MAX + 1];
	CHECK(READ_NAMED("allowed.test", name) == GREETING_TLS);
	CHECK_TEXT(name, "allowed.test");
	CHECK(READ_NAMED("ALLowed.tEST.", name) == GREETING_TLS);
	CHECK_TEXT(name, "allowed.test");
	CHECK(READ_NAMED("_x-1.a", name) == GREETING_TLS);
	CHECK_TEXT(name, "_x-1.a");
	CHECK(READ_NAMED("192.0.2.1", name) == GREETING_TLS);
	CHECK_TEXT(name, "192.0.2.1");
}

static void a_name_of_other_bytes_is_bad(void)
{
	char name[GREETING_NAME_MAX + 1], text[300];
	CHECK(READ_NAMED("", name) == GREETING_BAD);
	CHECK(READ_NAMED(".", name) == GREETING_BAD);
	CHECK(READ_NAMED("..", name) == GREETING_BAD);
	CHECK(READ_NAMED(".a", name) == GREETING_BAD);
	CHECK(READ_NAMED("a..b", name) == GREETING_BAD);
	CHECK(READ_NAMED("a.b..", name) == GREETING_BAD);
	CHECK(READ_NAMED("allowed.test\0", name) == GREETING_BAD);
	CHECK(READ_NAMED("allowed.test\0.evil.test", name) == GREETING_BAD);
	CHECK(READ_NAMED("allowed.test:443", name) == GREETING_BAD);
	CHECK(READ_NAMED("allowed.test evil.test", name) == GREETING_BAD);
	CHECK(READ_NAMED("[::1]", name) == GREETING_BAD);
	CHECK(READ_NAMED("*.test", name) == GREETING_BAD);
	CHECK(READ_NAMED("b\303\274cher.test", name) == GREETING_BAD);

	for (size_t i = 0; i < sizeof text; i++)
		text[i] = i % 50 == 49 ? '.' : 'a';
	CHECK(read_named(text, 253, name) == GREETING_TLS && strlen(name) == 253);
	CHECK(read_named(text, 254, name) == GREETING_BAD);
	CHECK(read_named(text, 256, name) == GREETING_BAD);
	memset(text, 'a', sizeof text);
	text[63] = '.';
	CHECK(read_named(text, 100, name) == GREETING_TLS);
	CHECK(read_named(text, 128, name) == GREETING_BAD);
}

static void there_is_one_name(void)
{
	static struct bytes in;
	char name[GREETING_NAME_MAX + 1];
	in.len = 0;
	add_name(&in, "a.test", 6);
	add_name(&in, "a.test", 6);
	CHECK(read_hello(&in, &usual, name) == GREETING_BAD);
	in.len = 0; /* two in one list */
	add_extension(&in, 0, "\0\010\0\0\001a\0\0\001b", 10);
	CHECK(read_hello(&in, &usual, name) == GREETING_BAD);
	in.len = 0; /* another kind of name, alone and before */
	add_extension(&in, 0, "\0\004\001\0\001a", 6);
	CHECK(read_hello(&in, &usual, name) == GREETING_BAD);
	in.len = 0;
	add_extension(&in, 0, "\0\010\001\0\001a\0\0\001b", 10);
	CHECK(read_hello(&in, &usual, name) == GREETING_BAD);
	in.len = 0; /* an empty list, and none */
	add_extension(&in, 0, "\0\0", 2);
	CHECK(read_hello(&in, &usual, name) == GREETING_BAD);
	in.len = 0;
	add_extension(&in, 0, "", 0);
	CHECK(read_hello(&in, &usual, name) == GREETING_BAD);
	in.len = 0; /* lengths that do not agree */
	add_extension(&in, 0, "\0\005\0\0\001a", 6);
	CHECK(read_hello(&in, &usual, name) == GREETING_BAD);
	in.len = 0;
	add_extension(&in, 0, "\0\003\0\0\001a", 6);
	CHECK(read_hello(&in, &usual, name) == GREETING_BAD);
	in.len = 0;
	add_extension(&in, 0, "\0\004\0\0\002a", 6);
	CHECK(read_hello(&in, &usual, name) == GREETING_BAD);
	in.len = 0;
	add_extension(&in, 0, "\0\004\0\0\0a", 6);
	CHECK(read_hello(&in, &usual, name) == GREETING_BAD);
	in.len = 0;
	add_extension(&in, 0, "\0\002\0\0", 4);
	CHECK(read_hello(&in, &usual, name) == GREETING_BAD);
}

static void a_hello_may_name_nobody(void)
{
	static struct bytes in;
	char name[GREETING_NAME_MAX + 1];
	struct shape shape = usual;
	in.len = 0;
	CHECK(read_hello(&in, &shape, name) == GREETING_BARE);
	shape.none = true;
	CHECK(read_hello(&in, &shape, name) == GREETING_BARE);
	add_extension(&in, 0xfe0d, "abc", 3);
	shape.none = false;
	CHECK(read_hello(&in, &shape, name) == GREETING_BARE);
}

static void lengths_must_agree(void)
{
	static struct bytes in;
	char name[GREETING_NAME_MAX + 1];
	static const struct shape good[] = { { 0, 2, 1 }, { 32, 2, 1 }, { 0, 2, 255 },
		{ 0, 8000, 1 } };
	static const struct shape bad[] = { { 33, 2, 1 }, { 255, 2, 1 }, { 0, 0, 1 }, { 0, 2, 0 },
		{ 32, 6, 1, .more = 1 }, { 32, 6, 1, .more = -1 }, { 32, 6, 1, .hello = -1 },
		{ 32, 6, 1, .after = 1 }, { 32, 6, 1, .none = true, .after = 1 } };
	in.len = 0;
	add_name(&in, "a.test", 6);
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		CHECK(read_hello(&in, &good[i], name) == GREETING_TLS);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(read_hello(&in, &bad[i], name) == GREETING_BAD);

	/* An extension longer than what is around it, also as the last thing there is. */
	ADD(&in, "\0\027\0\001");
	CHECK(read_hello(&in, &usual, name) == GREETING_BAD);
	in.len -= 1;
	CHECK(read_hello(&in, &usual, name) == GREETING_BAD);
	in.len -= 2;
	CHECK(read_hello(&in, &usual, name) == GREETING_BAD);
	/* A message that ends before anything is in it. */
	for (size_t len = 0; len < 41; len++) {
		static struct bytes message, all;
		message.len = all.len = 0;
		ADD(&message, "\001\0\0");
		add_number(&message, len, 1);
		message.len += len;
		memset(message.data + 4, 0, len);
		add_records(&all, &message, 16384);
		CHECK(read_all(&all, name) == GREETING_BAD);
	}
}

static void a_record_ends_with_the_hello(void)
{
	static struct bytes extensions, message, in;
	char name[GREETING_NAME_MAX + 1];
	extensions.len = message.len = in.len = 0;
	add_name(&extensions, "a.test", 6);
	add_hello(&message, &extensions, &usual);
	size_t hello = message.len;
	extensions.len = 0;
	add_name(&extensions, "b.test", 6);
	add_hello(&message, &extensions, &usual);
	add_records(&in, &message, 16384);
	CHECK(read_all(&in, name) == GREETING_BAD);
	/* In a record of its own it is none of this one. */
	in.len = 0;
	add_records(&in, &message, hello);
	CHECK(read_all(&in, name) == GREETING_TLS);
	CHECK_TEXT(name, "a.test");
}

static void records_are_of_one_kind(void)
{
	static struct bytes extensions, message, in;
	char name[GREETING_NAME_MAX + 1];
	extensions.len = message.len = in.len = 0;
	add_name(&extensions, "a.test", 6);
	add_hello(&message, &extensions, &usual);
	add_records(&in, &message, 20);
	for (size_t at = 0; at < in.len; at += 25) {
		static struct bytes bad;
		bad = in;
		bad.data[at] = 23;
		CHECK(read_all(&bad, name) == GREETING_BAD);
		bad = in;
		bad.data[at + 1] = 2;
		CHECK(read_all(&bad, name) == GREETING_BAD);
		bad = in;
		bad.data[at + 2] = 4; /* is of no matter */
		CHECK(read_all(&bad, name) == GREETING_TLS);
		bad = in;
		bad.data[at + 3] = 0x40; /* 16384 and more */
		CHECK(read_all(&bad, name) == GREETING_BAD);
		bad = in;
		bad.data[at + 3] = bad.data[at + 4] = 0;
		CHECK(read_all(&bad, name) == GREETING_BAD);
		/* An alert between them. */
		bad.len = at;
		memcpy(bad.data, in.data, at);
		ADD(&bad, "\025\003\001\0\002\001\132");
		add(&bad, in.data + at, in.len - at);
		CHECK(read_all(&bad, name) == GREETING_BAD);
	}
}

static void there_is_a_longest(void)
{
	static struct bytes extensions, message, in;
	static const uint8_t fill[65536];
	char name[GREETING_NAME_MAX + 1];
	for (size_t more = 0; more < 2; more++) {
		extensions.len = message.len = in.len = 0;
		add_name(&extensions, "a.test", 6);
		size_t rest = 5 + 4 + 34 + 33 + 8 + 2 + 2 + extensions.len + 4;
		add_extension(&extensions, 21, fill, GREETING_MAX - rest + more);
		add_hello(&message, &extensions, &usual);
		add_records(&in, &message, 16384);
		CHECK(in.len == GREETING_MAX + more);
		CHECK(read_all(&in, name) == (more ? GREETING_BAD : GREETING_TLS));
		/* The heads of records count too. */
		in.len = 0;
		add_records(&in, &message, 8000);
		CHECK(read_all(&in, name) == GREETING_BAD);
	}
	/* A message that says so is not waited for. */
	in.len = 0;
	ADD(&in, "\026\003\001\100\0\001\0\100\001");
	CHECK(read_all(&in, name) == GREETING_BAD);
	/* Nor is one in records of one byte. */
	extensions.len = message.len = in.len = 0;
	add_extension(&extensions, 21, fill, 4000);
	add_hello(&message, &extensions, &usual);
	add_records(&in, &message, 1);
	CHECK(read_part(in.data, GREETING_MAX - 10, name) == GREETING_MORE);
	CHECK(read_part(in.data, GREETING_MAX - 4, name) == GREETING_BAD);
	CHECK(read_part(in.data, GREETING_MAX + 5, name) == GREETING_BAD);
}

static enum greeting read_text(const char *text, size_t len)
{
	static struct bytes in;
	char name[GREETING_NAME_MAX + 1];
	in.len = 0;
	add(&in, text, len);
	return read_all(&in, name);
}
#define READ(text) read_text(text, sizeof(text) - 1)

static void what_begins_otherwise_is_no_tls(void)
{
	CHECK(READ("") == GREETING_MORE);
	CHECK(READ("GET / HTTP/1.1\r\n") == GREETING_OTHER);
	CHECK(READ("SSH-2.0-x\r\n") == GREETING_OTHER);
	CHECK(READ("\0") == GREETING_OTHER);
	for (int byte = 0; byte < 128; byte++) {
		char text[] = { (char)byte, 'x', 'x', 'x', 'x', 'x' };
		CHECK(read_text(text, sizeof text) ==
			(byte < 20 || byte > 24 ? GREETING_OTHER : GREETING_BAD));
	}
	CHECK(READ("\200\056\002\003\001") == GREETING_OTHER);
	CHECK(READ("\200\056\001\004\001") == GREETING_OTHER);
	CHECK(READ("\200\056\001\0\001") == GREETING_OTHER);
	CHECK(READ("\377\377\377") == GREETING_OTHER);
}

static void what_begins_as_tls_goes_on_so(void)
{
	CHECK(READ("\026") == GREETING_MORE);
	CHECK(READ("\026\003") == GREETING_MORE);
	CHECK(READ("\026\003\001\0\100") == GREETING_MORE);
	CHECK(READ("\026\003\001\0\100\001\0") == GREETING_MORE);
	CHECK(READ("\026\003\001\0\100\002") == GREETING_BAD); /* no ClientHello */
	CHECK(READ("\026\003\001\0\100\0") == GREETING_BAD);
	CHECK(READ("\026\003\001\0\0") == GREETING_BAD); /* a record of nothing, or of too much */
	CHECK(READ("\026\003\001\100\001") == GREETING_BAD);
	CHECK(READ("\026\002\0\0\100") == GREETING_BAD); /* a version that some servers let pass */
	CHECK(READ("\025\003\001\0\002\001\132") == GREETING_BAD); /* an alert before it, too */
	CHECK(READ("\024\003\001\0\001\001") == GREETING_BAD);
	CHECK(READ("\027\003\003\0\001\001") == GREETING_BAD);
	/* SSL 2's form, for which servers look where they still speak TLS 1.2. */
	CHECK(READ("\200\056\001\003\001\0\025\0\0\0\020") == GREETING_BAD);
	CHECK(READ("\200\056\001\0\002") == GREETING_BAD);
	CHECK(READ("\200\056\001\003") == GREETING_MORE);
}

int main(void)
{
	RUN(a_name_is_read);
	RUN(a_name_of_other_bytes_is_bad);
	RUN(there_is_one_name);
	RUN(a_hello_may_name_nobody);
	RUN(lengths_must_agree);
	RUN(a_record_ends_with_the_hello);
	RUN(records_are_of_one_kind);
	RUN(there_is_a_longest);
	RUN(what_begins_otherwise_is_no_tls);
	RUN(what_begins_as_tls_goes_on_so);
	return CHECK_STATUS();
}
