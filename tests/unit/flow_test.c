/* flow_test: bytes, ends and resets through a flow, and what holds them up. */
#define _GNU_SOURCE
#include "flow_bed.h"

#include <signal.h>
#include <sys/resource.h>

/* --- ends --- */

static void a_piece_passes_both_ways(void)
{
	struct bed *bed = bed_make(0);
	say(bed, FLOW_BOX, "ping", 4);
	CHECK(heard(bed, FLOW_OUT, "ping"));
	say(bed, FLOW_OUT, "pong!", 5);
	CHECK(heard(bed, FLOW_BOX, "pong!"));
	CHECK(bed->flow.way[FLOW_BOX].bytes == 4 && bed->flow.way[FLOW_OUT].bytes == 5);
	CHECK(bed->pipes.made == 0);
	bed_free(bed);
}

static void an_end_is_passed_on_for_its_way_alone(void)
{
	for (enum flow_side side = FLOW_BOX; side <= FLOW_OUT; side++) {
		struct bed *bed = bed_make(0);
		char byte;
		say(bed, side, "last", 4);
		shutdown(bed->end[side], SHUT_WR);
		CHECK(heard(bed, other(side), "last"));
		CHECK(hear(bed, other(side), &byte, 1) == 0);
		CHECK(bed->state == FLOW_RUNNING);
		say(bed, other(side), "answer", 6);
		CHECK(heard(bed, side, "answer"));
		shutdown(bed->end[other(side)], SHUT_WR);
		CHECK(hear(bed, side, &byte, 1) == 0);
		CHECK(ends(bed, FLOW_DONE));
		flow_close(&bed->flow, false);
		/* Closed without a reset. */
		CHECK(recv(bed->end[side], &byte, 1, 0) == 0);
		CHECK(recv(bed->end[other(side)], &byte, 1, 0) == 0);
		bed_free(bed);
	}
}

static void a_reset_is_passed_on_as_one(void)
{
	for (enum flow_side side = FLOW_BOX; side <= FLOW_OUT; side++) {
		struct bed *bed = bed_make(0);
		say(bed, side, "x", 1);
		CHECK(heard(bed, other(side), "x"));
		kick(bed, side);
		CHECK(ends(bed, FLOW_BROKEN));
		CHECK(bed->flow.error == ECONNRESET);
		flow_close(&bed->flow, true);
		CHECK(reset(bed, other(side)));
		bed_free(bed);
	}
}

static void what_came_before_a_reset_passes(void)
{
	for (enum flow_side side = FLOW_BOX; side <= FLOW_OUT; side++) {
		struct bed *bed = bed_make(0);
		settle(bed);
		say(bed, side, "before", 6);
		kick(bed, side);
		CHECK(ends(bed, FLOW_BROKEN));
		CHECK(bed->flow.way[side].bytes == 6);
		bed_free(bed);
	}
}

/* A client that has sent its end and then goes away with what it was to read. */
static void a_reset_after_an_end(void)
{
	struct bed *bed = bed_make(0);
	char byte;
	shutdown(bed->end[FLOW_BOX], SHUT_WR);
	CHECK(hear(bed, FLOW_OUT, &byte, 1) == 0);
	kick(bed, FLOW_BOX);
	CHECK(ends(bed, FLOW_BROKEN));
	flow_close(&bed->flow, true);
	settle(bed);
	CHECK(send(bed->end[FLOW_OUT], "x", 1, MSG_NOSIGNAL) < 0);
	bed_free(bed);
}

static void a_connection_that_is_refused(void)
{
	struct bed *bed = calloc(1, sizeof *bed);
	struct sockaddr_in address;
	int inside[2], out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	tcp_pair(inside, 0);
	close(listener(&address)); /* nobody listens there any more */
	bed->end[FLOW_BOX] = inside[0];
	bed->end[FLOW_OUT] = -1;
	CHECK(connect(out, (struct sockaddr *)&address, sizeof address) < 0);
	bed_flow(bed, inside[1], out);
	say(bed, FLOW_BOX, "x", 1);
	CHECK(ends(bed, FLOW_BROKEN));
	CHECK(bed->flow.error == ECONNREFUSED);
	flow_close(&bed->flow, true);
	CHECK(reset(bed, FLOW_BOX));
	bed_free(bed);
}

/* Bytes and an end that are there before the other side is connected. */
static void a_connection_that_takes_its_time(void)
{
	struct bed *bed = calloc(1, sizeof *bed);
	struct sockaddr_in address;
	int inside[2], from = listener(&address);
	int out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char byte;
	tcp_pair(inside, 0);
	bed->end[FLOW_BOX] = inside[0];
	bed->end[FLOW_OUT] = -1;
	bed_flow(bed, inside[1], out);
	CHECK(send(bed->end[FLOW_BOX], "early", 5, 0) == 5);
	shutdown(bed->end[FLOW_BOX], SHUT_WR);
	flow_ready(&bed->flow, FLOW_BOX, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
	CHECK(flow_move(&bed->flow, bed->scratch) == FLOW_RUNNING);
	CHECK(bed->flow.way[FLOW_BOX].bytes == 0 && !bed->flow.way[FLOW_BOX].ended);
	close(bed->epoll);
	bed->epoll = epoll_create1(EPOLL_CLOEXEC);
	(void)!connect(out, (struct sockaddr *)&address, sizeof address);
	bed_watch(bed);
	bed->end[FLOW_OUT] = accept4(from, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	CHECK(heard(bed, FLOW_OUT, "early"));
	CHECK(hear(bed, FLOW_OUT, &byte, 1) == 0);
	close(from);
	bed_free(bed);
}

static void urgent_data_passes_in_its_place(void)
{
	struct bed *bed = bed_make(0);
	CHECK(send(bed->end[FLOW_BOX], "ab", 2, 0) == 2);
	CHECK(send(bed->end[FLOW_BOX], "c", 1, MSG_OOB) == 1);
	CHECK(send(bed->end[FLOW_BOX], "de", 2, 0) == 2);
	CHECK(heard(bed, FLOW_OUT, "abcde"));
	shutdown(bed->end[FLOW_BOX], SHUT_WR);
	char byte;
	CHECK(hear(bed, FLOW_OUT, &byte, 1) == 0);
	bed_free(bed);
}

/* As the gateway does with the box's first bytes. */
static void bytes_may_move_before_the_sockets_are_watched(void)
{
	for (int urgent = 0; urgent < 2; urgent++) {
		struct bed *bed = bed_make(0);
		char byte;
		close(bed->epoll);
		bed->epoll = epoll_create1(EPOLL_CLOEXEC);
		CHECK(send(bed->end[FLOW_BOX], "ab", 2, 0) == 2);
		CHECK(send(bed->end[FLOW_BOX], "c", 1, urgent ? MSG_OOB : 0) == 1);
		CHECK(send(bed->end[FLOW_BOX], "de", 2, 0) == 2);
		flow_ready(&bed->flow, FLOW_BOX, EPOLLIN | EPOLLOUT);
		flow_ready(&bed->flow, FLOW_OUT, EPOLLOUT);
		CHECK(flow_move(&bed->flow, bed->scratch) == FLOW_RUNNING);
		CHECK(bed->flow.way[FLOW_BOX].bytes > 0);
		CHECK(send(bed->end[FLOW_BOX], "f", 1, 0) == 1);
		bed_watch(bed);
		CHECK(heard(bed, FLOW_OUT, "abcdef"));
		say(bed, FLOW_OUT, "yes", 3);
		CHECK(heard(bed, FLOW_BOX, "yes"));
		shutdown(bed->end[FLOW_BOX], SHUT_WR);
		CHECK(hear(bed, FLOW_OUT, &byte, 1) == 0);
		bed_free(bed);
	}
}

/* --- much --- */

static void sixty_four_mebibytes_pass_unchanged(void)
{
	for (enum flow_side side = FLOW_BOX; side <= FLOW_OUT; side++) {
		struct bed *bed = bed_make(0);
		struct stream stream;
		stream_init(&stream, 64 * MIB, 7);
		carry(bed, side, &stream, 256 * 1024);
		CHECK(stream_whole(&stream));
		CHECK(bed->flow.way[side].bytes == 64 * MIB);
		/* One pipe was enough, and it was given back. */
		settle(bed);
		CHECK(bed->pipes.made == 1 && bed->pipes.idle_count == 1);
		bed_free(bed);
	}
}

static void both_ways_at_once(void)
{
	struct bed *bed = bed_make(0);
	struct stream there, back;
	stream_init(&there, 32 * MIB, 1);
	stream_init(&back, 24 * MIB, 2);
	while ((there.got < there.total || back.got < back.total) && turn(bed)) {
		stream_some(bed, FLOW_BOX, &there, 200000, true);
		stream_some(bed, FLOW_OUT, &back, 70000, true);
	}
	CHECK(stream_whole(&there) && stream_whole(&back));
	bed_free(bed);
}

static void pieces_of_every_kind(void)
{
	static const size_t sizes[] = { 1, 1447, 16383, 16384, 16385, 65536 };
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct bed *bed = bed_make(0);
		struct stream stream;
		stream_init(&stream, sizes[i] * 200, (uint32_t)i);
		carry(bed, FLOW_BOX, &stream, sizes[i]);
		CHECK(stream_whole(&stream));
		bed_free(bed);
	}
}

static void tiny_buffers(void)
{
	struct bed *bed = bed_make(2048);
	struct stream there, back;
	stream_init(&there, MIB, 3);
	stream_init(&back, MIB, 4);
	while ((there.got < there.total || back.got < back.total) && turn(bed)) {
		stream_some(bed, FLOW_BOX, &there, 100000, true);
		stream_some(bed, FLOW_OUT, &back, 100000, true);
	}
	CHECK(stream_whole(&there) && stream_whole(&back));
	bed_free(bed);
}

static void other_stream_sockets(void)
{
	struct bed *bed = calloc(1, sizeof *bed);
	int inside[2], outside[2];
	struct stream stream;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, inside) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, outside) == 0);
	bed->end[FLOW_BOX] = inside[0];
	bed->end[FLOW_OUT] = outside[1];
	bed_flow(bed, inside[1], outside[0]);
	stream_init(&stream, 16 * MIB, 9);
	carry(bed, FLOW_BOX, &stream, 100000);
	CHECK(stream_whole(&stream));
	bed_free(bed);
}

static size_t resident(void)
{
	char text[64] = "";
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	(void)!read(fd, text, sizeof text - 1);
	close(fd);
	char *second = strchr(text, ' ');
	return second ? strtoul(second, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

static void a_reader_that_stops_stops_the_sender(void)
{
	for (enum flow_side side = FLOW_BOX; side <= FLOW_OUT; side++) {
		struct bed *bed = bed_make(0);
		struct stream stream;
		stream_init(&stream, 512 * (uint64_t)MIB, 5);
		size_t before = resident();
		stuff(bed, side, &stream);
		CHECK(stream.sent < 128 * MIB);
		CHECK(bed->flow.way[side].in_pipe <= MIB);
		CHECK(bed->state == FLOW_RUNNING);
#ifndef __SANITIZE_ADDRESS__
		CHECK(resident() - before < MIB);
#endif
		(void)before;
		/* The other way is not stopped by it. */
		say(bed, other(side), "still here", 10);
		CHECK(heard(bed, side, "still here"));
		stream.total = stream.sent + MIB;
		carry(bed, side, &stream, 100000);
		CHECK(stream_whole(&stream));
		bed_free(bed);
	}
}

static void a_reset_while_the_reader_stops(void)
{
	for (enum flow_side side = FLOW_BOX; side <= FLOW_OUT; side++) {
		for (enum flow_side who = FLOW_BOX; who <= FLOW_OUT; who++) {
			struct bed *bed = bed_make(0);
			struct stream stream;
			stream_init(&stream, 512 * (uint64_t)MIB, 6);
			stuff(bed, side, &stream);
			kick(bed, who);
			CHECK(ends(bed, FLOW_BROKEN));
			/* A pipe with bytes in it is nobody else's. */
			flow_close(&bed->flow, true);
			for (size_t i = 0; i < bed->pipes.idle_count; i++) {
				char byte;
				CHECK(read(bed->pipes.idle[i][0], &byte, 1) < 0 && errno == EAGAIN);
			}
			bed_free(bed);
		}
	}
}

static void without_descriptors_it_goes_on(void)
{
	struct bed *bed = bed_make(0);
	struct rlimit was, none;
	struct stream stream;
	CHECK(getrlimit(RLIMIT_NOFILE, &was) == 0);
	none = was;
	none.rlim_cur = 3;
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	stream_init(&stream, 16 * MIB, 8);
	carry(bed, FLOW_BOX, &stream, 100000);
	CHECK(stream_whole(&stream));
	CHECK(bed->pipes.made == 0);
	CHECK(setrlimit(RLIMIT_NOFILE, &was) == 0);
	bed_free(bed);
}

/* More ways that hold bytes than there are pipes. */
static void pipes_are_bounded(void)
{
	enum { FLOWS = FLOW_PIPES_MAX + 8 };
	struct bed *beds[FLOWS];
	struct flow_pipes pipes;
	struct stream stream;
	size_t with = 0;
	flow_pipes_init(&pipes);
	for (int i = 0; i < FLOWS; i++) {
		beds[i] = bed_make(16384);
		beds[i]->flow.pipes = &pipes;
		stream_init(&stream, 512 * (uint64_t)MIB, 6);
		for (int k = 0; k < 100 && !beds[i]->flow.way[FLOW_BOX].in_pipe && turn(beds[i]);
			k++)
			stream_some(beds[i], FLOW_BOX, &stream, 100000, false);
		with += beds[i]->flow.way[FLOW_BOX].pipe[0] >= 0;
		CHECK(pipes.made <= FLOW_PIPES_MAX);
		CHECK(pipes.made == with + pipes.idle_count);
	}
	CHECK(with > FLOW_PIPES_MAX / 2);
	for (int i = 0; i < FLOWS; i++)
		bed_free(beds[i]);
	CHECK(pipes.made == pipes.idle_count && pipes.made <= FLOW_PIPES_IDLE);
	flow_pipes_close(&pipes);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	RUN(a_piece_passes_both_ways);
	RUN(an_end_is_passed_on_for_its_way_alone);
	RUN(a_reset_is_passed_on_as_one);
	RUN(what_came_before_a_reset_passes);
	RUN(a_reset_after_an_end);
	RUN(a_connection_that_is_refused);
	RUN(a_connection_that_takes_its_time);
	RUN(urgent_data_passes_in_its_place);
	RUN(bytes_may_move_before_the_sockets_are_watched);
	RUN(sixty_four_mebibytes_pass_unchanged);
	RUN(both_ways_at_once);
	RUN(pieces_of_every_kind);
	RUN(tiny_buffers);
	RUN(other_stream_sockets);
	RUN(a_reader_that_stops_stops_the_sender);
	RUN(a_reset_while_the_reader_stops);
	RUN(without_descriptors_it_goes_on);
	RUN(pipes_are_bounded);
	return CHECK_STATUS();
}
