/* flow_gate_test: what a gate lets through a flow, and what a watch sees. */
#define _GNU_SOURCE
#include "flow_bed.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

struct guard {
	struct flow *flow;
	uint64_t says;
	size_t asked, least; /* least: bytes that it must see before it says something */
	uint8_t seen[FLOW_GATE_MAX];
	size_t seen_len;
	char answer[64];
	size_t answer_len, answer_max;
};

static uint64_t plain_gate(void *owner, const uint8_t *data, size_t len)
{
	struct guard *guard = owner;
	guard->asked++;
	CHECK(len > 0 && len <= FLOW_GATE_MAX);
	memcpy(guard->seen, data, len);
	guard->seen_len = len;
	return len < guard->least ? 0 : guard->says;
}

static struct bed *gated(struct guard *guard, int buffer, flow_gate *gate)
{
	struct bed *bed = bed_make(buffer);
	bed->flow.gate = gate;
	bed->flow.owner = guard;
	guard->flow = &bed->flow;
	return bed;
}

static void a_gate_can_stop(void)
{
	struct guard guard = { .says = FLOW_STOP };
	struct bed *bed = gated(&guard, 0, plain_gate);
	say(bed, FLOW_BOX, "secret", 6);
	CHECK(ends(bed, FLOW_REFUSED));
	CHECK(guard.asked == 1 && guard.seen_len == 6 && memcmp(guard.seen, "secret", 6) == 0);
	CHECK(bed->flow.way[FLOW_BOX].bytes == 0);
	flow_close(&bed->flow, true);
	CHECK(reset(bed, FLOW_BOX));
	CHECK(reset(bed, FLOW_OUT));
	bed_free(bed);
}

static void a_gate_can_let_all_pass(void)
{
	struct guard guard = { .says = FLOW_ALL, .least = 3 };
	struct bed *bed = gated(&guard, 0, plain_gate);
	struct stream stream;
	stream_init(&stream, 8 * MIB, 8);
	carry(bed, FLOW_BOX, &stream, 100000);
	CHECK(stream_whole(&stream));
	CHECK(guard.asked == 1);
	CHECK(bed->pipes.made == 1);
	bed_free(bed);
}

static void a_gate_can_hold(void)
{
	struct guard guard = { .says = FLOW_HOLD };
	struct bed *bed = gated(&guard, 0, plain_gate);
	struct stream stream;
	stream_init(&stream, 8 * MIB, 8);
	stuff(bed, FLOW_BOX, &stream);
	CHECK(bed->state == FLOW_RUNNING);
	CHECK(nothing(bed, FLOW_OUT));
	CHECK(stream.sent >= FLOW_GATE_MAX && stream.sent < 8 * MIB);
	say(bed, FLOW_OUT, "answer", 6);
	CHECK(heard(bed, FLOW_BOX, "answer"));
	guard.says = FLOW_ALL;
	flow_ask_again(&bed->flow);
	carry(bed, FLOW_BOX, &stream, 100000);
	CHECK(stream_whole(&stream));
	bed_free(bed);
}

/* Held bytes and an end behind them: an answer may come; when none can, it is over. */
static void a_gate_that_holds_to_the_end(void)
{
	struct guard guard = { .says = FLOW_HOLD };
	struct bed *bed = gated(&guard, 0, plain_gate);
	say(bed, FLOW_BOX, "held", 4);
	shutdown(bed->end[FLOW_BOX], SHUT_WR);
	CHECK(nothing(bed, FLOW_OUT));
	CHECK(bed->state == FLOW_RUNNING && !bed->flow.way[FLOW_BOX].ended);
	shutdown(bed->end[FLOW_OUT], SHUT_WR);
	CHECK(ends(bed, FLOW_REFUSED));
	bed_free(bed);
}

static void what_was_held_passes_before_the_end(void)
{
	struct guard guard = { .says = FLOW_HOLD };
	struct bed *bed = gated(&guard, 0, plain_gate);
	char byte;
	say(bed, FLOW_BOX, "held", 4);
	shutdown(bed->end[FLOW_BOX], SHUT_WR);
	CHECK(nothing(bed, FLOW_OUT));
	guard.says = 4;
	flow_ask_again(&bed->flow);
	CHECK(heard(bed, FLOW_OUT, "held"));
	CHECK(hear(bed, FLOW_OUT, &byte, 1) == 0);
	CHECK(bed->flow.way[FLOW_BOX].ended && bed->state == FLOW_RUNNING);
	bed_free(bed);
}

static void what_all_gates_hold_is_bounded(void)
{
	struct guard guard = { .says = FLOW_HOLD };
	struct bed *bed = gated(&guard, 0, plain_gate);
	say(bed, FLOW_BOX, "held", 4);
	CHECK(nothing(bed, FLOW_OUT));
	CHECK(bed->pipes.held == 4);
	guard.says = 0;
	flow_ask_again(&bed->flow);
	bed->pipes.held = FLOW_HELD_MAX; /* others hold that much */
	say(bed, FLOW_BOX, "more", 4);
	CHECK(ends(bed, FLOW_BROKEN));
	CHECK(bed->flow.error == ENOBUFS && bed->flow.way[FLOW_BOX].bytes == 0);
	bed->pipes.held -= FLOW_HELD_MAX - 4;
	bed_free(bed);
}

static void urgent_data_passes_the_gate_in_its_place(void)
{
	struct guard guard = { .says = 5, .least = 5 };
	struct bed *bed = gated(&guard, 0, plain_gate);
	CHECK(send(bed->end[FLOW_BOX], "ab", 2, 0) == 2);
	CHECK(send(bed->end[FLOW_BOX], "c", 1, MSG_OOB) == 1);
	CHECK(send(bed->end[FLOW_BOX], "de", 2, 0) == 2);
	CHECK(heard(bed, FLOW_OUT, "abcde"));
	CHECK(memcmp(guard.seen, "abcde", 5) == 0);
	bed_free(bed);
}

/* Where splicing stops at the mark, looking goes on. */
static void urgent_data_in_much(void)
{
	struct bed *bed = bed_make(0);
	struct stream stream;
	stream_init(&stream, 8 * MIB, 11);
	uint64_t marks = 0;
	while (stream.got < stream.total && stream.good && turn(bed)) {
		stream_some(bed, FLOW_BOX, &stream, 100000, true);
		uint32_t state = stream.make;
		uint8_t byte = next_byte(&state);
		if (stream.sent < stream.total &&
			send(bed->end[FLOW_BOX], &byte, 1, MSG_OOB) == 1) {
			stream.make = state;
			stream.sent++;
			marks++;
		}
	}
	CHECK(stream_whole(&stream) && marks > 10);
	bed_free(bed);
}

static void a_gate_that_waits_in_vain(void)
{
	struct guard guard = { .least = 5 };
	struct bed *bed = gated(&guard, 0, plain_gate);
	say(bed, FLOW_BOX, "held", 4);
	CHECK(nothing(bed, FLOW_OUT));
	CHECK(bed->state == FLOW_RUNNING);
	shutdown(bed->end[FLOW_BOX], SHUT_WR);
	CHECK(ends(bed, FLOW_REFUSED));
	bed_free(bed);
}

static void an_end_needs_no_gate(void)
{
	struct guard guard = { .least = 5 };
	struct bed *bed = gated(&guard, 0, plain_gate);
	char byte;
	shutdown(bed->end[FLOW_BOX], SHUT_WR);
	CHECK(hear(bed, FLOW_OUT, &byte, 1) == 0);
	CHECK(guard.asked == 0 && bed->state == FLOW_RUNNING);
	bed_free(bed);
}

/* In pieces, so that the room must suffice for what is spread over many packets, too. */
static void as_much_is_shown_as_is_promised(void)
{
	static const size_t pieces[] = { 65536, 16384, 1460, 37 };
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		struct guard guard = { .says = FLOW_GATE_MAX, .least = FLOW_GATE_MAX };
		struct bed *bed = gated(&guard, 0, plain_gate);
		struct stream stream;
		stream_init(&stream, FLOW_GATE_MAX, 8);
		carry(bed, FLOW_BOX, &stream, pieces[i]);
		CHECK(stream_whole(&stream));
		CHECK(guard.seen_len == FLOW_GATE_MAX);
		bed_free(bed);
	}
}

static void more_than_is_shown_is_refused(void)
{
	struct guard guard = { .least = FLOW_GATE_MAX + 1 };
	struct bed *bed = gated(&guard, 0, plain_gate);
	struct stream stream;
	stream_init(&stream, FLOW_GATE_MAX, 8);
	while (stream.sent < FLOW_GATE_MAX - 1 && turn(bed))
		stream_some(bed, FLOW_BOX, &stream,
			FLOW_GATE_MAX - 1 - stream.sent < 5000 ? FLOW_GATE_MAX - 1 - stream.sent
							       : 5000,
			false);
	settle(bed);
	CHECK(bed->state == FLOW_RUNNING);
	stream_some(bed, FLOW_BOX, &stream, 1, false);
	CHECK(ends(bed, FLOW_REFUSED));
	CHECK(bed->flow.way[FLOW_BOX].bytes == 0);
	bed_free(bed);
}

/* Messages of a byte that tells a length, and so many bytes; 0 is refused, '*' and more: unseen. */
static uint64_t message_gate(void *owner, const uint8_t *data, size_t len)
{
	struct guard *guard = owner;
	guard->asked++;
	if (data[0] == 0)
		return FLOW_STOP;
	if (data[0] == '*')
		return 1 + 30;
	return len > data[0] ? 1 + (uint64_t)data[0] : 0;
}

static const char messages[] = "\3abc"
			       "\1x"
			       "*unseen unseen unseen unseen un"
			       "\12" // 10
			       "0123456789"
			       "\2yz";

/* How many of the first `len` bytes may have passed. */
static size_t whole(size_t len)
{
	size_t at = 0;
	while (at < len) {
		if (messages[at] == '*') {
			at = at + 31 < len ? at + 31 : len;
			continue;
		}
		if (at + 1 + (size_t)messages[at] > len)
			break;
		at += 1 + (size_t)messages[at];
	}
	return at;
}

static void every_split_of_messages(void)
{
	size_t total = sizeof messages - 1;
	for (size_t split = 1; split < total; split++) {
		struct guard guard = { 0 };
		struct bed *bed = gated(&guard, 0, message_gate);
		char got[sizeof messages];
		say(bed, FLOW_BOX, messages, split);
		size_t first = whole(split);
		CHECK(hear(bed, FLOW_OUT, got, first) == (ssize_t)first);
		/* The bytes have come, so the gate has been asked about them; nothing else may go.
		 */
		for (int i = 0; i < 3; i++)
			turn(bed);
		CHECK(bed->flow.way[FLOW_BOX].bytes == first);
		say(bed, FLOW_BOX, messages + split, total - split);
		CHECK(hear(bed, FLOW_OUT, got + first, total - first) == (ssize_t)(total - first));
		CHECK(memcmp(got, messages, total) == 0);
		say(bed, FLOW_BOX, "", 1);
		CHECK(ends(bed, FLOW_REFUSED));
		bed_free(bed);
	}
}

static void messages_byte_by_byte(void)
{
	struct guard guard = { 0 };
	struct bed *bed = gated(&guard, 0, message_gate);
	for (size_t i = 0; i < sizeof messages - 1; i++) {
		say(bed, FLOW_BOX, messages + i, 1);
		for (int k = 0; k < 3; k++)
			turn(bed);
		CHECK(bed->flow.way[FLOW_BOX].bytes <= whole(i + 1));
	}
	char got[sizeof messages];
	CHECK(hear(bed, FLOW_OUT, got, sizeof messages - 1) == sizeof messages - 1);
	CHECK(memcmp(got, messages, sizeof messages - 1) == 0);
	bed_free(bed);
}

static void little_room_outside(struct bed *bed, bool reader)
{
	int small = 2048;
	setsockopt(bed->flow.sock[FLOW_OUT], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	if (reader)
		setsockopt(bed->end[FLOW_OUT], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
}

/* The first says how many bytes pass unseen behind it, the second what is said of what follows. */
struct body {
	uint64_t len, then;
	size_t asked;
};

static uint64_t body_gate(void *owner, const uint8_t *data, size_t len)
{
	struct body *body = owner;
	(void)len;
	if (body->asked++ == 0)
		return body->len;
	CHECK(data[0] == '!');
	return body->then;
}

/* What passes unseen is spliced, and not a byte more. */
static void behind_a_long_body_the_gate_is_asked(void)
{
	static const uint64_t then[] = { FLOW_STOP, FLOW_HOLD };
	for (size_t i = 0; i < 2; i++) {
		struct body body = { .len = 8 * MIB + 12345, .then = then[i] };
		struct bed *bed = gated(&(struct guard){ 0 }, 0, body_gate);
		struct stream stream;
		bed->flow.owner = &body;
		stream_init(&stream, body.len, 21);
		while (stream.sent < stream.total && turn(bed))
			stream_some(bed, FLOW_BOX, &stream, 200000, true);
		/* Right behind it, while much of it is still on its way. */
		say(bed, FLOW_BOX, "!not this", 9);
		while (stream.got < stream.total && stream.good && turn(bed))
			stream_some(bed, FLOW_BOX, &stream, 0, true);
		CHECK(stream_whole(&stream));
		if (then[i] == FLOW_STOP)
			CHECK(ends(bed, FLOW_REFUSED));
		else
			CHECK(nothing(bed, FLOW_OUT));
		CHECK(body.asked == 2 && bed->pipes.made > 0);
		CHECK(bed->flow.way[FLOW_BOX].bytes == body.len);
		bed_free(bed);
	}
}

/* Thousands of messages through buffers that take a few: all whole, each asked about once or so. */
static void many_messages_through_tiny_buffers(void)
{
	struct guard guard = { 0 };
	struct bed *bed = gated(&guard, 0, message_gate);
	little_room_outside(bed, false);
	enum { COUNT = 4000, SIZE = 101 };
	static char sent[COUNT * SIZE], got[COUNT * SIZE];
	for (int i = 0; i < COUNT; i++) {
		memset(sent + i * SIZE, 'a' + i % 26, SIZE);
		sent[i * SIZE] = SIZE - 1;
	}
	size_t out = 0, in = 0;
	while (in < sizeof got && turn(bed)) {
		ssize_t n = send(bed->end[FLOW_BOX], sent + out, sizeof sent - out, MSG_NOSIGNAL);
		if (n > 0)
			out += (size_t)n;
		n = recv(bed->end[FLOW_OUT], got + in, sizeof got - in, 0);
		if (n > 0)
			in += (size_t)n;
	}
	CHECK(in == sizeof got && memcmp(sent, got, in) == 0);
	bed_free(bed);
}

static uint64_t long_message_gate(void *owner, const uint8_t *data, size_t len)
{
	struct guard *guard = owner;
	guard->asked++;
	size_t need = len < 2 ? 2 : 2 + (size_t)data[0] * 256 + data[1];
	return len < need ? 0 : need;
}

/*
 * Messages as long as can be shown, sent in pieces large and small. The socket must have room for
 * each as a whole beside what is left of a packet that has passed in part.
 */
static void long_messages_in_pieces(void)
{
	static uint8_t sent[4 * MIB], got[4 * MIB];
	static const size_t pieces[] = { MIB, 65536, 30000, 1460, 100 };
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		struct guard guard = { 0 };
		struct bed *bed = gated(&guard, 0, long_message_gate);
		size_t total = 0, out = 0, in = 0;
		uint32_t random = (uint32_t)i;
		while (total < sizeof sent - FLOW_GATE_MAX) {
			size_t len =
				FLOW_GATE_MAX - 2 - (next_byte(&random) & 1) * next_byte(&random);
			memset(sent + total, (int)(total % 251), len + 2);
			sent[total] = (uint8_t)(len >> 8);
			sent[total + 1] = (uint8_t)len;
			total += len + 2;
		}
		while (in < total && turn(bed)) {
			size_t len = total - out < pieces[i] ? total - out : pieces[i];
			ssize_t n = send(bed->end[FLOW_BOX], sent + out, len, MSG_NOSIGNAL);
			out += n > 0 ? (size_t)n : 0;
			n = recv(bed->end[FLOW_OUT], got + in, total - in, 0);
			in += n > 0 ? (size_t)n : 0;
		}
		CHECK(in == total && memcmp(sent, got, total) == 0);
		bed_free(bed);
	}
}

/* The box changes what it has sent (its pages are in the socket), after the gate saw it. */
static void what_was_shown_is_what_passes(bool change)
{
	enum { SIZE = 60000 };
	static uint8_t good[SIZE], got[SIZE];
	struct guard guard = { .says = SIZE, .least = SIZE };
	struct bed *bed = gated(&guard, 0, plain_gate);
	int file = memfd_create("box", MFD_CLOEXEC);
	little_room_outside(bed, true);
	memset(good, 'g', SIZE);
	CHECK(write(file, good, SIZE) == SIZE);
	off_t at = 0;
	while (at < SIZE && turn(bed))
		(void)!sendfile(bed->end[FLOW_BOX], file, &at, (size_t)(SIZE - at));
	while (!bed->flow.held_pass && turn(bed))
		;
	CHECK(guard.asked >= 1 && bed->flow.way[FLOW_BOX].bytes < SIZE - 1000);
	if (change)
		CHECK(pwrite(file, "evil", 4, SIZE - 500) == 4);
	size_t have = 0;
	while (have < SIZE && bed->state <= FLOW_AGAIN && turn(bed)) {
		ssize_t n = recv(bed->end[FLOW_OUT], got + have, SIZE - have, 0);
		if (n > 0)
			have += (size_t)n;
	}
	CHECK(have == SIZE && memcmp(good, got, have) == 0);
	close(file);
	bed_free(bed);
}

static void what_was_shown_passes_later(void)
{
	what_was_shown_is_what_passes(false);
}

static void what_was_shown_cannot_be_changed(void)
{
	what_was_shown_is_what_passes(true);
}

static bool answer_watch(void *owner, const uint8_t *data, size_t len)
{
	struct guard *guard = owner;
	for (size_t i = 0; i < len && guard->answer_len < sizeof guard->answer; i++)
		guard->answer[guard->answer_len++] = (char)data[i];
	if (guard->answer_len < guard->answer_max)
		return true;
	guard->says = FLOW_ALL;
	flow_ask_again(guard->flow);
	return false;
}

static void an_answer_can_change_the_gates_mind(void)
{
	struct guard guard = { .says = FLOW_HOLD, .answer_max = 5 };
	struct bed *bed = gated(&guard, 0, plain_gate);
	struct stream stream;
	bed->flow.watch = answer_watch;
	say(bed, FLOW_BOX, "upgraded", 8);
	CHECK(nothing(bed, FLOW_OUT));
	say(bed, FLOW_OUT, "sw", 2);
	CHECK(heard(bed, FLOW_BOX, "sw"));
	CHECK(nothing(bed, FLOW_OUT));
	say(bed, FLOW_OUT, "itch", 4);
	CHECK(heard(bed, FLOW_OUT, "upgraded"));
	CHECK(heard(bed, FLOW_BOX, "itch"));
	CHECK(guard.answer_len == 6 && memcmp(guard.answer, "switch", 6) == 0);
	CHECK(!bed->flow.watch);
	stream_init(&stream, 4 * MIB, 1);
	carry(bed, FLOW_OUT, &stream, 100000);
	CHECK(stream_whole(&stream) && guard.answer_len == 6);
	bed_free(bed);
}

static bool count_watch(void *owner, const uint8_t *data, size_t len)
{
	struct guard *guard = owner;
	(void)data;
	guard->seen_len += len;
	return true;
}

static void a_watch_sees_each_byte_once(void)
{
	struct guard guard = { 0 };
	struct bed *bed = bed_make(0);
	struct stream stream;
	bed->flow.watch = count_watch;
	bed->flow.owner = &guard;
	stream_init(&stream, 16 * MIB, 1);
	carry(bed, FLOW_OUT, &stream, 256 * 1024);
	CHECK(stream_whole(&stream) && guard.seen_len == 16 * MIB);
	bed_free(bed);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	RUN(a_gate_can_stop);
	RUN(a_gate_can_let_all_pass);
	RUN(a_gate_can_hold);
	RUN(a_gate_that_holds_to_the_end);
	RUN(a_gate_that_waits_in_vain);
	RUN(what_was_held_passes_before_the_end);
	RUN(what_all_gates_hold_is_bounded);
	RUN(urgent_data_passes_the_gate_in_its_place);
	RUN(urgent_data_in_much);
	RUN(an_end_needs_no_gate);
	RUN(as_much_is_shown_as_is_promised);
	RUN(more_than_is_shown_is_refused);
	RUN(every_split_of_messages);
	RUN(messages_byte_by_byte);
	RUN(behind_a_long_body_the_gate_is_asked);
	RUN(many_messages_through_tiny_buffers);
	RUN(long_messages_in_pieces);
	RUN(what_was_shown_passes_later);
	RUN(what_was_shown_cannot_be_changed);
	RUN(an_answer_can_change_the_gates_mind);
	RUN(a_watch_sees_each_byte_once);
	return CHECK_STATUS();
}
