/*
 * dns_fuzz: any datagram. What is read of it must be in it, an answer must be one that can be read
 * again, and a message is well formed at its end only.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker/dns.h"

#define NEED(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The text, read back to labels, is the name that was asked, but for the case of letters. */
static void check_text(const struct dns_question *question, const uint8_t *wire)
{
	const char *at = question->text;
	if (strcmp(at, ".") == 0) {
		NEED(!wire[0] && question->question_len == 5);
		return;
	}
	size_t used = 0;
	for (;;) {
		size_t left = wire[used++];
		NEED(left && left <= 63);
		for (; left; left--) {
			unsigned byte = (unsigned char)*at++;
			if (byte == '\\') {
				NEED(isdigit(at[0]) && isdigit(at[1]) && isdigit(at[2]));
				byte = (unsigned)((at[0] - '0') * 100 + (at[1] - '0') * 10 + at[2] -
						  '0');
				NEED(!isalnum((int)byte) && byte != '-' && byte != '_');
				at += 3;
			} else {
				NEED(byte == '-' || byte == '_' || isdigit((int)byte) ||
					islower((int)byte));
			}
			NEED(byte == (unsigned)tolower(wire[used++]));
		}
		if (!*at)
			break;
		NEED(*at++ == '.');
	}
	NEED(!wire[used] && question->question_len == used + 5);
	NEED(question->plain == !strchr(question->text, '\\'));
}

static void check_answer(const uint8_t *data, size_t size, const struct dns_question *question)
{
	static const uint8_t address[4] = { 192, 0, 2, 1 };
	uint8_t answer[DNS_MESSAGE_MAX];
	struct dns_question again;
	bool answerable;
	size_t end = 12 + question->question_len, edns = question->edns ? 11 : 0;
	size_t len = dns_answer(data, size, question, DNS_NOERROR, address, 1, answer);
	NEED(len == end + 16 + edns && len <= sizeof answer);
	NEED(memcmp(answer + end + 12, address, 4) == 0);
	NEED(dns_parse(answer, len, &again, &answerable) == -EBADMSG && !answerable);

	len = dns_answer(data, size, question, DNS_NXDOMAIN, NULL, 0, answer);
	NEED(len == end + edns && (answer[2] & 0xfe) == 0x80 && answer[3] == 0x83);
	NEED(memcmp(answer, data, 2) == 0 && memcmp(answer + 12, data + 12, end - 12) == 0);
	answer[2] &= 0x7f; /* as if it were asked */
	NEED(dns_parse(answer, len, &again, &answerable) == 0 && answerable);
	NEED(memcmp(&again, question, sizeof again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dns_question question, part;
	bool answerable, part_answerable;
	memset(&question, 0xa5, sizeof question);
	int r = dns_parse(data, size, &question, &answerable);
	NEED(r == 0 || r == -EBADMSG || r == -EOPNOTSUPP);
	NEED(answerable == (size >= 12 && !(data[2] & 0x80)));
	if (!answerable) {
		NEED(r == -EBADMSG && question.id == 0xa5a5);
		return 0;
	}
	for (size_t len = size > 96 ? size - 96 : 0; len < size; len++) {
		int part_r = dns_parse(data, len, &part, &part_answerable);
		NEED(part_r == (r == -EOPNOTSUPP && len >= 12 ? r : -EBADMSG) || r == -EBADMSG);
		NEED(part_answerable == (len >= 12));
	}
	NEED(question.id == (data[0] << 8 | data[1]) && question.recursion == (data[2] & 1));
	if (r == 0) {
		NEED(strlen(question.name) <= DNS_NAME_MAX && strlen(question.text) < DNS_TEXT_MAX);
		NEED(question.plain ? strcmp(question.name, question.text) == 0
				    : !question.name[0]);
		check_text(&question, data + 12);
		check_answer(data, size, &question);
		return 0;
	}
	uint8_t answer[DNS_MESSAGE_MAX];
	NEED(dns_answer(data, size, &question, DNS_FORMERR, data, 1, answer) == 12);
	NEED(memcmp(answer + 4, "\0\0\0\0\0\0\0\0", 8) == 0 && answer[3] == 0x81);
	return 0;
}
