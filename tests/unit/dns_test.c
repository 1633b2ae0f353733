/* dns_test: questions as a box may send them, and the bytes of their answers. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "broker/dns.h"
#include "check.h"

struct message {
	uint8_t data[2048];
	size_t len;
};

static void add(struct message *message, const void *bytes, size_t len)
{
	memcpy(message->data + message->len, bytes, len);
	message->len += len;
}
#define ADD(message, text) add((message), text, sizeof(text) - 1)

/* A head: id 0x1234, RD, and the four counts. */
static struct message head(int questions, int answers, int authorities, int additional)
{
	struct message message = { { 0x12, 0x34, 1, 0, 0, (uint8_t)questions, 0, (uint8_t)answers,
					   0, (uint8_t)authorities, 0, (uint8_t)additional },
		12 };
	return message;
}

#define NAME     "\007Allowed\004tEst\0"
#define A_IN     "\0\001\0\001"
#define OPT      "\0\0\051\004\320\0\0\0\0\0\0"
#define OPT_MORE "\0\0\051\004\320\0\0\200\0\0\014\0\012\0\010ABCDEFGH"

static struct message question(void)
{
	struct message message = head(1, 0, 0, 0);
	ADD(&message, NAME A_IN);
	return message;
}

/* The bytes in memory of just that size, so that a sanitizer sees one that is read behind them. */
static int parse(const struct message *message, struct dns_question *ret, bool *ret_answerable)
{
	uint8_t *copy = malloc(message->len ? message->len : 1);
	memcpy(copy, message->data, message->len);
	memset(ret, 0xa5, sizeof *ret);
	int r = dns_parse(copy, message->len, ret, ret_answerable);
	free(copy);
	return r;
}

/* Refused, with an answer that is a head alone. */
static bool refused(struct message message, int why, enum dns_rcode rcode)
{
	struct dns_question got;
	bool answerable = false;
	uint8_t answer[DNS_MESSAGE_MAX];
	static const uint8_t address[4] = { 1, 2, 3, 4 };
	if (parse(&message, &got, &answerable) != why || !answerable)
		return false;
	size_t len = dns_answer(message.data, message.len, &got, rcode, address, 60, answer);
	uint8_t want[12] = { message.data[0], message.data[1],
		(uint8_t)(0x80 | (message.data[2] & 0x79)), (uint8_t)(0x80 | rcode) };
	return len == 12 && memcmp(answer, want, 12) == 0 && !got.plain && !got.name[0] &&
	       !got.edns && !got.question_len && !got.type;
}

static bool malformed(struct message message)
{
	return refused(message, -EBADMSG, DNS_FORMERR);
}

static void a_question_is_read(void)
{
	struct message message = question();
	struct dns_question got;
	bool answerable = false;
	CHECK(parse(&message, &got, &answerable) == 0 && answerable);
	CHECK(got.id == 0x1234 && got.type == DNS_A && got.class == DNS_IN);
	CHECK(got.recursion && !got.edns && got.plain);
	CHECK(got.question_len == message.len - 12);
	CHECK_TEXT(got.name, "allowed.test");
	CHECK_TEXT(got.text, "allowed.test");

	message.data[2] = 0;
	message.data[message.len - 3] = 255; /* ANY */
	message.data[message.len - 1] = 3;   /* CHAOS */
	CHECK(parse(&message, &got, &answerable) == 0);
	CHECK(!got.recursion && got.type == 255 && got.class == 3);
}

static void flags_of_no_meaning_here_do_not_matter(void)
{
	struct message message = question();
	message.data[2] |= 6;   /* AA, TC */
	message.data[3] = 0x7f; /* Z, AD, CD, rcode */
	struct dns_question got;
	bool answerable = false;
	CHECK(parse(&message, &got, &answerable) == 0);
	uint8_t answer[DNS_MESSAGE_MAX];
	CHECK(dns_answer(message.data, message.len, &got, DNS_NXDOMAIN, NULL, 0, answer) ==
		message.len);
	CHECK(answer[2] == 0x81 && answer[3] == 0x83);
}

static void an_answer_repeats_the_question_as_it_was_asked(void)
{
	struct message message = question();
	struct dns_question got;
	bool answerable;
	uint8_t answer[DNS_MESSAGE_MAX];
	static const uint8_t address[4] = { 198, 51, 100, 7 };
	static const char want[] = "\x12\x34\x81\x80\0\001\0\001\0\0\0\0" NAME A_IN "\xc0\x0c" A_IN
				   "\0\001\x51\x80\0\004\xc6\x33\x64\x07";
	CHECK(parse(&message, &got, &answerable) == 0);
	size_t len =
		dns_answer(message.data, message.len, &got, DNS_NOERROR, address, 86400, answer);
	CHECK(len == sizeof want - 1 && memcmp(answer, want, len) == 0);

	/* Nothing there: the same without the record. */
	len = dns_answer(message.data, message.len, &got, DNS_NOERROR, NULL, 86400, answer);
	CHECK(len == message.len && answer[7] == 0);
	CHECK(memcmp(answer + 12, want + 12, len - 12) == 0);

	len = dns_answer(message.data, message.len, &got, DNS_REFUSED, NULL, 0, answer);
	CHECK(len == message.len && answer[3] == 0x85);

	/* Without RD the answer has none. */
	message.data[2] = 0;
	CHECK(parse(&message, &got, &answerable) == 0);
	CHECK(dns_answer(message.data, message.len, &got, DNS_NOERROR, NULL, 0, answer) > 0);
	CHECK(answer[2] == 0x80);
}

static void edns_is_answered_with_edns(void)
{
	struct dns_question got;
	bool answerable;
	uint8_t answer[DNS_MESSAGE_MAX];
	static const uint8_t address[4] = { 198, 51, 100, 7 };
	struct message message = head(1, 0, 0, 1);
	ADD(&message, NAME A_IN OPT_MORE);
	CHECK(parse(&message, &got, &answerable) == 0 && got.edns);
	CHECK(got.question_len == sizeof NAME A_IN - 1);
	size_t len = dns_answer(message.data, message.len, &got, DNS_NOERROR, address, 1, answer);
	size_t question_end = 12 + got.question_len;
	CHECK(len == question_end + 16 + 11);
	CHECK(answer[7] == 1 && answer[9] == 0 && answer[11] == 1);
	CHECK(memcmp(answer + question_end + 16, "\0\0\051\002\0\0\0\0\0\0\0", 11) == 0);
	/* Other records beside it are stepped over, whatever their names point to. */
	message = head(1, 0, 0, 3);
	ADD(&message, NAME A_IN "\xff\xff\0\020\0\001\0\0\0\0\0\002\001x" OPT
				"\003key\300\014\0\372\0\377\0\0\0\0\0\0");
	CHECK(parse(&message, &got, &answerable) == 0 && got.edns);

	message = head(1, 0, 0, 1);
	ADD(&message, NAME A_IN "\003key\0\0\372\0\377\0\0\0\0\0\0");
	CHECK(parse(&message, &got, &answerable) == 0 && !got.edns);
}

static void bad_edns_is_malformed(void)
{
	struct message message = head(1, 0, 0, 2);
	ADD(&message, NAME A_IN OPT OPT);
	CHECK(malformed(message));
	message = head(1, 0, 0, 1); /* not the root's */
	ADD(&message, NAME A_IN "\001x" OPT);
	CHECK(malformed(message));
	message = head(1, 0, 0, 1); /* an option longer than the record */
	ADD(&message, NAME A_IN "\0\0\051\004\320\0\0\0\0\0\006\0\012\0\003AB");
	CHECK(malformed(message));
	message = head(1, 0, 0, 1); /* an option without its length */
	ADD(&message, NAME A_IN "\0\0\051\004\320\0\0\0\0\0\003\0\012\0");
	CHECK(malformed(message));
	message = head(1, 0, 0, 1); /* an additional name with a label of 64 */
	ADD(&message, NAME A_IN "\100");
	message.len += 80;
	CHECK(malformed(message));
	message = head(1, 0, 0, 1); /* an additional name that does not end */
	ADD(&message, NAME A_IN);
	for (int i = 0; i < 128; i++)
		ADD(&message, "\001a");
	ADD(&message, "\0\0\020\0\001\0\0\0\0\0\0");
	CHECK(malformed(message));
}

static void what_is_no_query_gets_no_answer(void)
{
	struct message message = question();
	struct dns_question got;
	bool answerable = true;
	message.data[2] |= 0x80;
	CHECK(parse(&message, &got, &answerable) == -EBADMSG && !answerable);
	CHECK(got.id == 0xa5a5); /* untouched */
	message = question();
	message.data[2] |= 0x80;
	message.len = 11;
	CHECK(parse(&message, &got, &answerable) == -EBADMSG && !answerable);
	uint8_t answer[DNS_MESSAGE_MAX];
	memset(&got, 0, sizeof got);
	CHECK(dns_answer(message.data, 11, &got, DNS_FORMERR, NULL, 0, answer) == 0);
}

static void a_message_may_end_nowhere_before_its_end(void)
{
	struct message whole = head(1, 0, 0, 2);
	ADD(&whole, NAME A_IN "\003key\300\014\0\372\0\377\0\0\0\0\0\002XY" OPT_MORE);
	struct dns_question got;
	bool answerable;
	CHECK(parse(&whole, &got, &answerable) == 0);
	for (size_t len = 0; len < whole.len; len++) {
		struct message part = whole;
		part.len = len;
		CHECK(parse(&part, &got, &answerable) == -EBADMSG);
		CHECK(answerable == (len >= 12));
		if (len < 12)
			CHECK(got.id == 0xa5a5);
		else
			CHECK(malformed(part));
	}
	ADD(&whole, "\0");
	CHECK(malformed(whole)); /* nor go on */
}

static void other_kinds_are_not_implemented(void)
{
	for (int opcode = 1; opcode < 16; opcode++) {
		struct message message = question();
		message.data[2] = (uint8_t)(opcode << 3 | (opcode & 1));
		CHECK(refused(message, -EOPNOTSUPP, DNS_NOTIMP));
	}
	struct message message = head(2, 0, 0, 0);
	ADD(&message, NAME A_IN NAME A_IN);
	CHECK(refused(message, -EOPNOTSUPP, DNS_NOTIMP));
	message = head(0, 0, 0, 1);
	ADD(&message, OPT);
	CHECK(refused(message, -EOPNOTSUPP, DNS_NOTIMP));
	message = question();
	message.data[4] = 1; /* 257 questions */
	CHECK(refused(message, -EOPNOTSUPP, DNS_NOTIMP));
}

static void a_query_has_no_answers(void)
{
	static const char record[] = "\300\014" A_IN "\0\0\0\001\0\004ABCD";
	struct message message = head(1, 1, 0, 0);
	ADD(&message, NAME A_IN);
	add(&message, record, sizeof record - 1);
	CHECK(malformed(message));
	message.data[7] = 0;
	message.data[9] = 1;
	CHECK(malformed(message));
	message.data[9] = 0;
	message.data[8] = 1; /* 256 authorities */
	CHECK(malformed(message));
	for (size_t i = 6; i < 12; i++) { /* nor does it say so */
		message = question();
		message.data[i] = 1;
		CHECK(malformed(message));
	}
}

static void a_question_points_nowhere(void)
{
	static const char *const names[] = { "\300\014", "\003abc\300\014", "\300\0", "\377\377",
		"\001a\200b", "\100a" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct message message = head(1, 0, 0, 0);
		add(&message, names[i], strlen(names[i]));
		ADD(&message, "\0" A_IN "\0\0\0\0\0\0");
		CHECK(malformed(message));
		message = head(1, 0, 0, 0);
		add(&message, names[i], strlen(names[i]));
		ADD(&message, A_IN);
		CHECK(malformed(message));
	}
}

/* A question whose labels have these lengths. */
static struct message labels(const int *lens, int count)
{
	struct message message = head(1, 0, 0, 0);
	for (int i = 0; i < count; i++) {
		message.data[message.len++] = (uint8_t)lens[i];
		for (int j = 0; j < lens[i]; j++)
			message.data[message.len++] = (uint8_t)('a' + i % 26);
	}
	ADD(&message, "\0" A_IN);
	return message;
}

static void names_have_a_longest(void)
{
	struct dns_question got;
	bool answerable;
	struct message message = labels((const int[]){ 63, 63, 63, 61 }, 4);
	CHECK(parse(&message, &got, &answerable) == 0 && got.plain);
	CHECK(strlen(got.name) == DNS_NAME_MAX && got.question_len == 255 + 4);
	uint8_t answer[DNS_MESSAGE_MAX];
	static const uint8_t address[4] = { 1, 2, 3, 4 };
	CHECK(dns_answer(message.data, message.len, &got, DNS_NOERROR, address, 1, answer) ==
		12 + 255 + 4 + 16);

	CHECK(malformed(labels((const int[]){ 63, 63, 63, 62 }, 4)));
	CHECK(malformed(labels((const int[]){ 63, 63, 63, 63 }, 4)));
	CHECK(malformed(labels((const int[]){ 63, 63, 63, 60, 1 }, 5)));
	CHECK(malformed(labels((const int[]){ 64 }, 1)));

	int ones[128];
	for (int i = 0; i < 128; i++)
		ones[i] = 1;
	message = labels(ones, 127);
	CHECK(parse(&message, &got, &answerable) == 0);
	CHECK(strlen(got.text) == 253);
	CHECK(malformed(labels(ones, 128)));
}

static void odd_bytes_are_told_in_figures(void)
{
	struct dns_question got;
	bool answerable;
	struct message message = head(1, 0, 0, 0);
	ADD(&message, "\006a.B\\ \177\004\0\011\377*\006_x-Z09\0" A_IN);
	CHECK(parse(&message, &got, &answerable) == 0 && !got.plain);
	CHECK_TEXT(got.text, "a\\046b\\092\\032\\127.\\000\\009\\255\\042._x-z09");
	CHECK_TEXT(got.name, "");

	message = head(1, 0, 0, 0);
	ADD(&message, "\0" A_IN);
	CHECK(parse(&message, &got, &answerable) == 0 && !got.plain);
	CHECK_TEXT(got.text, ".");
	CHECK_TEXT(got.name, "");

	message = labels((const int[]){ 63, 63, 63, 61 }, 4);
	for (size_t i = 13; i < 12 + 254; i++)
		if (message.data[i] >= 'a')
			message.data[i] = 0xff;
	CHECK(parse(&message, &got, &answerable) == 0 && !got.plain);
	CHECK(strlen(got.text) == 4 * 250 + 3);

	/* Each byte alone: a host name's or three figures. */
	for (int byte = 0; byte < 256; byte++) {
		char want[8];
		int lower = byte >= 'A' && byte <= 'Z' ? byte + 32 : byte;
		bool plain = byte && strchr("abcdefghijklmnopqrstuvwxyz0123456789-_", lower);
		snprintf(want, sizeof want, plain ? "%c" : "\\%03d", plain ? lower : byte);
		message = head(1, 0, 0, 0);
		message.data[12] = 1;
		message.data[13] = (uint8_t)byte;
		message.len = 14;
		ADD(&message, "\0" A_IN);
		CHECK(parse(&message, &got, &answerable) == 0 && got.plain == plain);
		CHECK_TEXT(got.text, want);
		CHECK_TEXT(got.name, plain ? want : "");
	}
}

int main(void)
{
	RUN(a_question_is_read);
	RUN(flags_of_no_meaning_here_do_not_matter);
	RUN(an_answer_repeats_the_question_as_it_was_asked);
	RUN(edns_is_answered_with_edns);
	RUN(bad_edns_is_malformed);
	RUN(what_is_no_query_gets_no_answer);
	RUN(a_message_may_end_nowhere_before_its_end);
	RUN(other_kinds_are_not_implemented);
	RUN(a_query_has_no_answers);
	RUN(a_question_points_nowhere);
	RUN(names_have_a_longest);
	RUN(odd_bytes_are_told_in_figures);
	return CHECK_STATUS();
}
