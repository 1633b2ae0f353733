/*
 * netpair: the two ends of a measured connection.
 *
 *	netpair server [PORT [ADDRESS]]                  prints its port, on 127.0.0.1 or ADDRESS
 *	netpair client HOST PORT TEST CONNECTIONS MS     prints one figure
 *
 * TEST is one of
 *	send, fetch  bytes a second of all connections together, counted by the end that reads
 *	round        microseconds from 1 KiB sent to 1 KiB come back, the median
 *	connect      microseconds from connect(2) to the first byte of an answer, the median
 *	hold         the count of connections that have each carried 1 KiB; they stay open so long
 * CONNECTIONS counts for send, fetch and hold.
 *
 * The first byte of a connection tells the server what to do. Each end is one process around one
 * epoll, so that both cost the same however many connections there are.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PIECE     131072
#define MESSAGE   1024
#define MOST      64
#define SAMPLES   200000
#define HELD_MOST 4096

static char data[PIECE];

static void die(const char *what)
{
	fprintf(stderr, "netpair: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void no_delay(int fd)
{
	int on = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static int watcher(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0)
		die("epoll_create1");
	return epoll;
}

static void watch(int epoll, int how, int fd, uint32_t events, void *what)
{
	struct epoll_event event = { .events = events, .data.ptr = what };
	if (epoll_ctl(epoll, how, fd, &event) < 0)
		die("epoll_ctl");
}

/* --- server --- */

struct served {
	int fd;
	char kind; /* 0: not told yet; S: reads, F: sends, R: gives back, C: one byte */
	uint64_t bytes;
};

static void finish(struct served *served)
{
	close(served->fd);
	free(served);
}

static void serve_reading(struct served *served)
{
	ssize_t n = recv(served->fd, data, sizeof data, 0);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0 && served->kind == 'R') {
		if (send(served->fd, data, (size_t)n, MSG_NOSIGNAL) != n)
			finish(served);
		return;
	}
	if (n == 0 && served->kind == 'S')
		(void)!send(served->fd, &served->bytes, sizeof served->bytes, MSG_NOSIGNAL);
	if (n <= 0)
		finish(served);
	else
		served->bytes += (uint64_t)n;
}

static void serve_first(int epoll, struct served *served)
{
	if (recv(served->fd, &served->kind, 1, 0) != 1) {
		finish(served);
		return;
	}
	if (served->kind == 'C')
		(void)!send(served->fd, "c", 1, MSG_NOSIGNAL);
	if (served->kind == 'F')
		watch(epoll, EPOLL_CTL_MOD, served->fd, EPOLLOUT, served);
}

static void serve(int epoll, struct served *served)
{
	if (!served->kind) {
		serve_first(epoll, served);
	} else if (served->kind == 'F') {
		if (send(served->fd, data, sizeof data, MSG_NOSIGNAL) < 0 && errno != EAGAIN)
			finish(served);
	} else {
		serve_reading(served);
	}
}

static _Noreturn void server(uint16_t port, const char *where)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	socklen_t len = sizeof address;
	int on = 1, epoll = watcher();
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (inet_pton(AF_INET, where, &address.sin_addr) != 1)
		die("inet_pton");
	if (bind(listener, (struct sockaddr *)&address, len) < 0 || listen(listener, 512) < 0 ||
		getsockname(listener, (struct sockaddr *)&address, &len) < 0)
		die("listen");
	watch(epoll, EPOLL_CTL_ADD, listener, EPOLLIN, NULL);
	printf("%d\n", ntohs(address.sin_port));
	fflush(stdout);
	for (;;) {
		struct epoll_event events[MOST];
		int count = epoll_wait(epoll, events, MOST, -1);
		for (int i = 0; i < count; i++) {
			if (events[i].data.ptr) {
				serve(epoll, events[i].data.ptr);
				continue;
			}
			int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
			struct served *served = fd < 0 ? NULL : calloc(1, sizeof *served);
			if (!served)
				continue;
			served->fd = fd;
			no_delay(fd);
			watch(epoll, EPOLL_CTL_ADD, fd, EPOLLIN, served);
		}
	}
}

/* --- client --- */

static struct addrinfo *whereto;

static int reach(char kind)
{
	int fd = socket(whereto->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, whereto->ai_addr, whereto->ai_addrlen) < 0)
		die("connect");
	no_delay(fd);
	if (send(fd, &kind, 1, MSG_NOSIGNAL) != 1)
		die("send");
	return fd;
}

static void read_whole(int fd, void *into, size_t len)
{
	if (recv(fd, into, len, MSG_WAITALL) != (ssize_t)len)
		die("recv");
}

static double bulk(bool send_it, int count, double seconds)
{
	int fds[MOST], epoll = watcher();
	uint64_t total = 0, bytes;
	for (int i = 0; i < count; i++) {
		fds[i] = reach(send_it ? 'S' : 'F');
		fcntl(fds[i], F_SETFL, O_NONBLOCK);
		watch(epoll, EPOLL_CTL_ADD, fds[i], send_it ? EPOLLOUT : EPOLLIN, &fds[i]);
	}
	double begin = now(), end = begin + seconds;
	while (now() < end) {
		struct epoll_event events[MOST];
		int ready = epoll_wait(epoll, events, MOST, 100);
		for (int i = 0; i < ready; i++) {
			int fd = *(int *)events[i].data.ptr;
			ssize_t n = send_it ? send(fd, data, sizeof data, MSG_NOSIGNAL)
					    : recv(fd, data, sizeof data, 0);
			if (n == 0 || (n < 0 && errno != EAGAIN))
				die(send_it ? "send" : "recv");
			if (!send_it && n > 0)
				total += (uint64_t)n;
		}
	}
	for (int i = 0; send_it && i < count; i++)
		shutdown(fds[i], SHUT_WR);
	for (int i = 0; send_it && i < count; i++) {
		fcntl(fds[i], F_SETFL, 0);
		read_whole(fds[i], &bytes, sizeof bytes);
		total += bytes;
	}
	return (double)total / (now() - begin);
}

static int compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;
	return (x > y) - (x < y);
}

static double median(float *samples, size_t count)
{
	qsort(samples, count, sizeof *samples, compare);
	return count ? (double)samples[count / 2] * 1e6 : 0;
}

static double rounds(bool connect_each, double seconds)
{
	static float samples[SAMPLES];
	size_t count = 0;
	int fd = connect_each ? -1 : reach('R');
	double end = now() + seconds;
	while (count < SAMPLES && now() < end) {
		/* So that the end of the connection before is over, in a proxy, too. */
		if (connect_each)
			usleep(500);
		double begin = now();
		if (connect_each) {
			fd = reach('C');
			read_whole(fd, data, 1);
		} else {
			if (send(fd, data, MESSAGE, MSG_NOSIGNAL) != MESSAGE)
				die("send");
			read_whole(fd, data, MESSAGE);
		}
		samples[count++] = (float)(now() - begin);
		if (connect_each)
			close(fd);
	}
	return median(samples, count);
}

/* As many descriptors as may be. */
static void raise_limit(void)
{
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		die("getrlimit");
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		die("setrlimit");
}

static void hold(int count, double seconds)
{
	for (int i = 0; i < count; i++) {
		int fd = reach('R');
		if (send(fd, data, MESSAGE, MSG_NOSIGNAL) != MESSAGE)
			die("send");
		read_whole(fd, data, MESSAGE);
	}
	printf("%d\n", count);
	fflush(stdout);
	usleep((useconds_t)(seconds * 1e6));
}

static int client(char **arg)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	int wrong = getaddrinfo(arg[0], arg[1], &hints, &whereto), count = atoi(arg[3]);
	double figure, seconds = atoi(arg[4]) / 1000.0;
	if (wrong) {
		fprintf(stderr, "netpair: %s: %s\n", arg[0], gai_strerror(wrong));
		return 1;
	}
	bool holds = strcmp(arg[2], "hold") == 0;
	if (count < 1 || count > (holds ? HELD_MOST : MOST) || seconds <= 0) {
		fprintf(stderr, "netpair: 1 to %d connections, a time above 0\n",
			holds ? HELD_MOST : MOST);
		return 1;
	}
	if (holds) {
		hold(count, seconds);
		return 0;
	}
	if (strcmp(arg[2], "send") == 0 || strcmp(arg[2], "fetch") == 0)
		figure = bulk(arg[2][0] == 's', count, seconds);
	else
		figure = rounds(strcmp(arg[2], "connect") == 0, seconds);
	printf("%.3f\n", figure);
	return 0;
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	raise_limit();
	if (argc >= 2 && argc <= 4 && strcmp(argv[1], "server") == 0)
		server((uint16_t)(argc > 2 ? atoi(argv[2]) : 0), argc > 3 ? argv[3] : "127.0.0.1");
	if (argc == 7 && strcmp(argv[1], "client") == 0)
		return client(argv + 2);
	fprintf(stderr,
		"usage: netpair server [PORT [ADDRESS]]\n"
		"       netpair client HOST PORT send|fetch|round|connect|hold CONNECTIONS MS\n");
	return 2;
}
