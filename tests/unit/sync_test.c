/* The messages that carry many descriptors: exactly what was waited for, or none of it. */
#define _GNU_SOURCE
#include "box/sync.h"
#include "base/fd.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define COUNT 3

static int pair[2]; /* supervisor, init */
static int sent[COUNT];

static void open_all(void)
{
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	for (int i = 0; i < COUNT; i++)
		CHECK((sent[i] = open(i == 1 ? "/dev/zero" : "/dev/null", O_RDWR)) >= 0);
}

static void close_all(void)
{
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	for (int i = 0; i < COUNT; i++)
		fd_close(&sent[i]);
}

static bool same_file(int one, int other)
{
	struct stat a, b;
	return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_rdev == b.st_rdev &&
	       a.st_ino == b.st_ino;
}

static void many_arrive_in_their_order(void)
{
	open_all();
	int got[COUNT] = { -1, -1, -1 };
	CHECK(sync_send_many(pair[0], SYNC_TREES, sent, 1) == 0);
	CHECK(sync_send_many(pair[0], SYNC_GROUPS, sent, COUNT) == 0);
	CHECK(sync_recv_many(pair[1], SYNC_TREES, got, 1) == 0);
	fd_close(&got[0]);
	CHECK(sync_recv_many(pair[1], SYNC_GROUPS, got, COUNT) == 0);
	for (int i = 0; i < COUNT; i++) {
		CHECK(same_file(got[i], sent[i]));
		CHECK(fcntl(got[i], F_GETFD) == FD_CLOEXEC);
		fd_close(&got[i]);
	}
	close_all();
}

static void another_kind_or_number_is_refused(void)
{
	static const struct {
		enum sync_kind kind;
		size_t count;
	} rows[] = { { SYNC_TREES, COUNT }, { SYNC_GROUPS, COUNT - 1 }, { SYNC_GROUPS, 1 } };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		open_all();
		int got[COUNT] = { -1, -1, -1 };
		CHECK(sync_send_many(pair[0], rows[i].kind, sent, rows[i].count) == 0);
		CHECK(sync_recv_many(pair[1], SYNC_GROUPS, got, COUNT) == -EPROTO);
		CHECK(got[0] == -1 && got[1] == -1 && got[2] == -1);
		close_all();
	}
	/* A message of fixed size in their place. */
	open_all();
	int got[COUNT];
	struct sync_msg msg = { .magic = SYNC_MAGIC, .kind = SYNC_SIGNAL, .signal = 1 };
	CHECK(sync_send(pair[0], &msg, -1) == 0);
	CHECK(sync_recv_many(pair[1], SYNC_GROUPS, got, COUNT) == -EPROTO);
	close_all();
}

static void the_end_of_either_is_told(void)
{
	int got[COUNT];
	open_all();
	fd_close(&pair[0]);
	CHECK(sync_recv_many(pair[1], SYNC_GROUPS, got, COUNT) == -EPIPE);
	close_all();
	open_all();
	fd_close(&pair[1]);
	CHECK(sync_send_many(pair[0], SYNC_GROUPS, sent, COUNT) == -EPIPE);
	close_all();
}

int main(void)
{
	RUN(many_arrive_in_their_order);
	RUN(another_kind_or_number_is_refused);
	RUN(the_end_of_either_is_told);
	return CHECK_STATUS();
}
