/* gateway: the process, and its one loop. */
#define _GNU_SOURCE
#include "broker/gateway_work.h"
#include "base/fd.h"
#include "base/sys.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>

#define EVENTS_MAX 256 /* in one turn */
#define CONTROL    0   /* all that it has from the supervisor */

int64_t gateway_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int gateway_watch(struct gateway *gw, struct source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };
	return epoll_ctl(gw->epoll, EPOLL_CTL_ADD, source->fd, &event) < 0 ? -errno : 0;
}

static void take_socket(struct gateway *gw, int fd)
{
	if (gw->socket_count == network_sockets(gw->network)) {
		close(fd);
		return;
	}
	struct source *source = &gw->sockets[gw->socket_count];
	size_t n = gw->socket_count++;
	source->kind = n == 0                  ? SOURCE_NAMES
		       : n <= NETWORK_REFUSALS ? SOURCE_REFUSALS
					       : SOURCE_LISTEN;
	source->fd = fd;
	bool listens = source->kind == SOURCE_LISTEN;
	/* Connections wait where there is no room for them, so their sockets tell of each but once.
	 */
	uint32_t once = listens ? EPOLLET : 0;
	if ((listens && flow_prepare(fd) < 0) || gateway_watch(gw, source, EPOLLIN | once) < 0)
		fd_close(&source->fd);
}

/* The supervisor's words. Its end of file means that the box is gone. */
static void control_turn(struct gateway *gw)
{
	struct gateway_msg msg;
	int fd = -1, r;
	while ((r = gateway_recv(gw->control.fd, &msg, &fd)) == 1) {
		if (msg.kind == GATEWAY_SOCKET)
			take_socket(gw, fd);
		else if (msg.kind == GATEWAY_RESOLVER)
			resolver_take(gw, fd);
		else if (msg.kind == GATEWAY_PUBLISH)
			publish_take(gw, fd, msg.port);
		else if (msg.kind == GATEWAY_SPARE)
			publish_spare(gw, fd, msg.family);
		else
			fd_close(&fd);
	}
	if (r == -EAGAIN)
		return;
	if (gw->box_gone)
		return;
	gw->box_gone = true;
	gw->gone_at = gateway_now();
	/* What the command has connected to in its last moment. */
	for (size_t i = 0; i < gw->socket_count; i++)
		if (gw->sockets[i].kind == SOURCE_LISTEN)
			relay_accept(gw, &gw->sockets[i]);
	publish_end(gw);
}

static void dispatch(struct gateway *gw, struct source *source, uint32_t events)
{
	struct conn *conn;
	switch (source->kind) {
	case SOURCE_CONTROL:
		control_turn(gw);
		return;
	case SOURCE_RESOLVER:
		resolver_turn(gw);
		return;
	case SOURCE_NAMES:
		names_turn(gw, source->fd);
		return;
	case SOURCE_REFUSALS:
		refusals_turn(gw, source);
		return;
	case SOURCE_LISTEN:
		relay_accept(gw, source);
		return;
	case SOURCE_PUBLISHED:
		publish_accept(gw,
			(struct published *)((char *)source - offsetof(struct published, source)));
		return;
	case SOURCE_STREAM:
		stream_turn(
			gw, (struct stream *)((char *)source - offsetof(struct stream, source)));
		return;
	case SOURCE_BOX:
		conn = (struct conn *)((char *)source - offsetof(struct conn, box));
		relay_ready(gw, conn, FLOW_BOX, events);
		return;
	case SOURCE_OUT:
		conn = (struct conn *)((char *)source - offsetof(struct conn, out));
		relay_ready(gw, conn, FLOW_OUT, events);
		return;
	}
}

/* Those that had more than their share of a turn. */
static void go_on(struct gateway *gw)
{
	struct conn *list = gw->again;
	gw->again = NULL;
	while (list) {
		struct conn *conn = list;
		list = conn->again;
		conn->queued = false;
		if (conn->state == CONN_FLOWS)
			relay_move(gw, conn);
	}
}

/*
 * What ended in this turn; until here, an event of it could still point there. One that waits for
 * another turn is still in that list, and goes with it.
 */
static void bury(struct gateway *gw)
{
	struct conn **at = &gw->dead;
	while (*at) {
		struct conn *conn = *at;
		if (conn->queued) {
			at = &conn->next;
			continue;
		}
		*at = conn->next;
		free(conn->answer);
		free(conn);
	}
	streams_bury(gw);
}

/* Whether sockets that were not looked at for want of room may be now. */
static void resume(struct gateway *gw)
{
	if (!gw->paused || gw->conn_count >= gw->conns_max)
		return;
	gw->paused = false;
	for (size_t i = 0; i < gw->socket_count; i++)
		if (gw->sockets[i].kind == SOURCE_LISTEN)
			relay_accept(gw, &gw->sockets[i]);
	publish_resume(gw);
}

static int time_out(const struct gateway *gw)
{
	if (gw->again)
		return 0;
	bool busy = gw->conn_count || gw->asker_count || gw->stream_count || gw->untold ||
		    gw->box_gone || gw->paused;
	return busy ? (int)(TICK_NS / 1000000) : -1;
}

/* Bytes that the box has sent are brought away before all ends; but not for ever. */
static bool finished(const struct gateway *gw)
{
	if (!gw->box_gone)
		return false;
	if (gw->now - gw->gone_at > LINGER_MAX_NS)
		return true;
	for (const struct conn *conn = gw->conns; conn; conn = conn->next) {
		char byte;
		if (conn->state == CONN_FLOWS
				? !conn->flow.way[FLOW_BOX].ended
				: recv(conn->box.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
			return false;
	}
	return true;
}

static void loop(struct gateway *gw)
{
	struct epoll_event events[EVENTS_MAX];
	int64_t tick = 0;
	while (!finished(gw)) {
		int n = epoll_wait(gw->epoll, events, EVENTS_MAX, time_out(gw));
		gw->now = gateway_now();
		go_on(gw);
		for (int i = 0; i < n; i++)
			dispatch(gw, events[i].data.ptr, events[i].events);
		if (gw->now - tick >= TICK_NS) {
			tick = gw->now;
			relay_tick(gw);
			names_tick(gw);
			streams_tick(gw);
			tell_flush(gw);
		}
		resume(gw);
		bury(gw);
		dial_spare(gw);
	}
}

/* The sums of what still goes on, and then all that the supervisor has not heard; it waits. */
static void last_words(struct gateway *gw)
{
	while (gw->conns)
		relay_end(gw, gw->conns, !gw->conns->flow.way[FLOW_BOX].ended);
	bury(gw);
	int64_t until = gateway_now() + LINGER_MAX_NS;
	for (tell_flush(gw); gw->untold && gateway_now() < until; tell_flush(gw)) {
		struct epoll_event event;
		(void)epoll_wait(gw->epoll, &event, 1, 1);
	}
}

/* As many descriptors as may be, for thousands of connections; and never a core file. */
static int set_limits(size_t *ret_files)
{
	struct rlimit files, none = { 0, 0 };
	const rlim_t enough = (rlim_t)CONNS_MAX * FDS_OF_CONN + 1024;
	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return -errno;
	files.rlim_cur = files.rlim_max = files.rlim_max < enough ? files.rlim_max : enough;
	if (setrlimit(RLIMIT_NOFILE, &files) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
		return -errno;
	*ret_files = files.rlim_cur;
	return 0;
}

/* What the filter would refuse. */
static struct gateway *set_up(const struct plan *plan, int sock)
{
	struct gateway *gw = calloc(1, sizeof *gw);
	size_t files = 0;
	if (!gw || dup2(sock, CONTROL) != CONTROL || sys_close_range(CONTROL + 1, ~0u, 0) < 0 ||
		set_limits(&files) < 0)
		return NULL;
	gw->epoll = epoll_create1(EPOLL_CLOEXEC);
	gw->scratch = malloc(FLOW_GATE_MAX);
	if (gw->epoll < 0 || !gw->scratch)
		return NULL;
	size_t room = (files > 1024 ? files - 512 : files / 2) / FDS_OF_CONN;
	gw->conns_max = room < CONNS_MAX ? room : CONNS_MAX;
	gw->network = &plan->reach;
	gw->control = (struct source){ SOURCE_CONTROL, CONTROL };
	gw->resolver = (struct source){ SOURCE_RESOLVER, -1 };
	for (size_t i = 0; i < SPARES; i++)
		gw->spares[i].fd = -1;
	flow_pipes_init(&gw->pipes);
	gw->now = gateway_now();
	return gateway_watch(gw, &gw->control, EPOLLIN | EPOLLET) < 0 ? NULL : gw;
}

/* The caller's environment is nothing that this process needs, or that its bytes shall lead to. */
static void forget_environment(void)
{
	for (char **variable = environ; variable && *variable; variable++)
		explicit_bzero(*variable, strlen(*variable));
}

static _Noreturn void gateway_main(const struct plan *plan, int sock, pid_t parent)
{
	/* No signal of a terminal's is for it: it ends when the box has. */
	sigset_t all;
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	forget_environment();
	struct gateway_msg ready = { .magic = GATEWAY_MAGIC, .kind = GATEWAY_READY };
	struct gateway *gw = set_up(plan, sock);
	if (gw && gateway_confine(plan, parent) == 0 && gateway_send(CONTROL, &ready, -1) == 0) {
		loop(gw);
		last_words(gw);
		_exit(0);
	}
	_exit(125);
}

int gateway_start(const struct plan *plan, pid_t *ret_pid, int *ret_sock, struct err *err)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return err_set(err, ERR_network_failed, errno, "socketpair: %s", strerror(errno));
	pid_t parent = getpid(), pid = fork();
	if (pid == 0)
		gateway_main(plan, ends[1], parent);
	int errnum = errno;
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return err_set(err, ERR_network_failed, errnum, "the gateway cannot be started: %s",
			strerror(errnum));
	}
	*ret_pid = pid;
	*ret_sock = ends[0];
	return 0;
}
