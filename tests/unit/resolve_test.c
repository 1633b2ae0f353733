/* The messages between the gateway and agentbox-resolve: what is read, and all that is refused. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <stdlib.h>

#include "broker/resolve.h"

#define LABEL_63 "abcdefghijklmnopqrstuvwxyz-0123456789_abcdefghijklmnopqrstuvwxy"

static void names_that_are_looked_up(void)
{
	static const char *const good[] = { "a", "localhost", "pypi.org", "a.b.c.d.e", "x--y.test",
		"xn--bcher-kva.test", "_dmarc.a_b.test", "1.2.3.a", "4chan.org", "a.0xg", "1a",
		"-a.test", "a-.test", LABEL_63 ".test",
		LABEL_63 "." LABEL_63 "." LABEL_63
			 ".abcdefghijklmnopqrstuvwxyz-0123456789_abcdefghijklmnopqrstuvw" };
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct resolve_request request;
		CHECK(resolve_name_ok(good[i], strlen(good[i])));
		CHECK(resolve_request_make(7 + i, good[i], &request));
		CHECK(request.id == 7 + i && request.name_len == strlen(good[i]));
		CHECK_TEXT(request.name, good[i]);
	}
}

static void names_that_are_not(void)
{
	static const char *const bad[] = { "", ".", "a.", ".a", "a..b", "A.test", "a b", "a/b",
		"b\xc3\xbc"
		"cher.test",
		"a\\.b", "a:80", "[::1]", "::1", "127.0.0.1", "127.1", "1", "2130706433", "0x",
		"0x7f000001", "0x7f.0x1", "a.test.1", "a%eth0", "a\n.test", "*.a.test",
		LABEL_63 "a.test",
		LABEL_63 "." LABEL_63 "." LABEL_63
			 ".abcdefghijklmnopqrstuvwxyz-0123456789_abcdefghijklmnopqrstuvwx" };
	struct resolve_request request = { .id = 5 };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		CHECK(!resolve_name_ok(bad[i], strlen(bad[i])));
		CHECK(!resolve_request_make(9, bad[i], &request));
		CHECK(request.id == 5);
	}
	CHECK(!resolve_name_ok("a\0b", 3));
	CHECK(!resolve_name_ok("a", 0));
}

static void a_request_is_read_whole_or_not_at_all(void)
{
	struct resolve_request good, ret = { .id = 99 };
	char bytes[sizeof good + 1] = { 0 };
	CHECK(resolve_request_make(0x1122334455667788, "pypi.org", &good));
	/* Not aligned, as a buffer of bytes may be. */
	memcpy(bytes + 1, &good, sizeof good);
	CHECK(resolve_request_parse(bytes + 1, sizeof good, &ret) == 0);
	CHECK(memcmp(&ret, &good, sizeof good) == 0);
	ret.id = 99;
	for (size_t len = 0; len <= sizeof good + 1; len++)
		if (len != sizeof good)
			CHECK(resolve_request_parse(&good, len, &ret) == -EBADMSG);
	CHECK(resolve_request_parse(&good, 100000, &ret) == -EBADMSG);
	CHECK(ret.id == 99);
}

/* Whatever one byte of a good request is changed to, what is read is a name that could be asked. */
static void a_changed_byte_makes_no_bad_name(void)
{
	struct resolve_request good, ret;
	CHECK(resolve_request_make(1, "pypi.org", &good));
	for (size_t at = 0; at < sizeof good; at++)
		for (unsigned value = 0; value < 256; value++) {
			struct resolve_request changed = good;
			((unsigned char *)&changed)[at] = (unsigned char)value;
			if (resolve_request_parse(&changed, sizeof changed, &ret) < 0)
				continue;
			CHECK(strnlen(ret.name, sizeof ret.name) == ret.name_len);
			CHECK(resolve_name_ok(ret.name, ret.name_len));
		}
	struct resolve_request changed = good;
	changed.name[sizeof changed.name - 1] = 'x';
	CHECK(resolve_request_parse(&changed, sizeof changed, &ret) == -EBADMSG);
	changed = good;
	changed.name_len = 7;
	CHECK(resolve_request_parse(&changed, sizeof changed, &ret) == -EBADMSG);
	changed.name_len = 9;
	CHECK(resolve_request_parse(&changed, sizeof changed, &ret) == -EBADMSG);
	changed.name_len = 0xffff;
	CHECK(resolve_request_parse(&changed, sizeof changed, &ret) == -EBADMSG);
}

static struct resolve_answer two_addresses(void)
{
	return (struct resolve_answer){ .id = 3,
		.count = 2,
		.addresses = { { .family = 6, .scope = 2, .bytes = { 0xfe, 0x80, [15] = 1 } },
			{ .family = 4, .bytes = { 192, 0, 2, 1 } } } };
}

static bool taken(const struct resolve_answer *answer)
{
	struct resolve_answer ret;
	return resolve_answer_parse(answer, sizeof *answer, &ret) == 0 &&
	       memcmp(&ret, answer, sizeof ret) == 0;
}

static void answers_that_are_read(void)
{
	struct resolve_answer answer = two_addresses();
	CHECK(taken(&answer));
	answer.count = RESOLVE_ADDRESSES_MAX;
	for (size_t i = 0; i < answer.count; i++)
		answer.addresses[i] = (struct resolve_address){ .family = 4, .bytes = { 1 } };
	CHECK(taken(&answer));
	for (int status = RESOLVE_NO_NAME; status <= RESOLVE_FAILED; status++) {
		struct resolve_answer none = { .id = 1, .status = status };
		CHECK(taken(&none));
	}
}

static void answers_that_are_refused(void)
{
	const struct resolve_answer good = two_addresses();
	struct resolve_answer bad[] = { good, good, good, good, good, good, good, good, good, good,
		good, good };
	bad[0].status = -1;
	bad[1].status = RESOLVE_FAILED + 1;
	bad[2].status = RESOLVE_NO_NAME; /* with addresses */
	bad[3] = (struct resolve_answer){ .status = RESOLVE_OK };
	bad[4].count = RESOLVE_ADDRESSES_MAX + 1;
	bad[5].count = 255;
	bad[6].count = 1; /* the second is left over */
	bad[7].count = 3; /* of no family */
	bad[8].zero[2] = 1;
	bad[9].addresses[0].zero[0] = 1;
	bad[10].addresses[1].bytes[4] = 1;
	bad[11].addresses[1].scope = 1;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (taken(&bad[i])) {
			fprintf(stderr, "answer %zu was taken\n", i);
			check_failures++;
		}
	struct resolve_answer ret = { .id = 77 };
	for (size_t len = 0; len < sizeof good; len++)
		CHECK(resolve_answer_parse(&good, len, &ret) == -EBADMSG);
	CHECK(resolve_answer_parse(&good, sizeof good + 1, &ret) == -EBADMSG);
	CHECK(ret.id == 77);
	for (unsigned family = 0; family < 256; family++) {
		struct resolve_answer answer = { .count = 1,
			.addresses = { { .family = (uint8_t)family } } };
		CHECK(taken(&answer) == (family == 4 || family == 6));
	}
}

int main(void)
{
	RUN(names_that_are_looked_up);
	RUN(names_that_are_not);
	RUN(a_request_is_read_whole_or_not_at_all);
	RUN(a_changed_byte_makes_no_bad_name);
	RUN(answers_that_are_read);
	RUN(answers_that_are_refused);
	return CHECK_STATUS();
}
