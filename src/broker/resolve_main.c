/*
 * agentbox-resolve: looks host names up for the gateway, as any program on the host would: through
 * the C library, with /etc/hosts, nsswitch.conf and what a VPN has set. A program of its own, since
 * the gateway is static and since answers from outside are hostile bytes to a large library; it is
 * confined before the first one. It knows no policy: only listed names are asked of it, and what it
 * finds is judged by who asked.
 *
 *	agentbox-resolve UID GID [best-effort] 3<>SOCKET
 *
 * UID and GID: what it acts as when root starts it. best-effort: without Landlock, if the kernel
 *has none. Of the environment only RES_OPTIONS and LOCALDOMAIN count. broker/resolve.h has the
 * conversation.
 *
 * Exit status: 0 the other end was closed, 2 usage, 3 no resources, 4 it cannot be confined, 6 a
 * message that is none. One line on stderr says why.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/confine.h"
#include "broker/resolve_confine.h"
#include "broker/resolve_pool.h"

enum { ENDED = 0, USAGE = 2, RESOURCES = 3, UNCONFINED = 4, BAD_MESSAGE = 6 };

static int say(int status, const char *what)
{
	fprintf(stderr, "agentbox-resolve: %s\n", what);
	return status;
}

static bool is_id(const char *text, unsigned *ret_id)
{
	char *end;
	errno = 0;
	unsigned long long n = strtoull(text, &end, 10);
	*ret_id = (unsigned)n;
	/* The last id means "none" to the kernel. */
	return *text >= '0' && *text <= '9' && !*end && !errno && n < UINT32_MAX;
}

static bool is_socket(int fd)
{
	int domain = 0, type = 0;
	socklen_t size = sizeof domain;
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

/* What the resolver may be told by its caller, and nothing else: some variables name files. */
static int keep_environment(void)
{
	static const char *const kept[] = { "RES_OPTIONS", "LOCALDOMAIN" };
	char *values[2] = { NULL, NULL };
	for (size_t i = 0; i < 2; i++) {
		const char *value = getenv(kept[i]);
		if (value && !(values[i] = strdup(value)))
			return -ENOMEM;
	}
	clearenv();
	for (size_t i = 0; i < 2; i++) {
		if (values[i] && setenv(kept[i], values[i], 1) < 0)
			return -ENOMEM;
		free(values[i]);
	}
	return 0;
}

static int serve(struct resolve_pool *pool)
{
	for (;;) {
		struct resolve_request request;
		char message[sizeof request];
		ssize_t n = recv(RESOLVE_FD, message, sizeof message, MSG_TRUNC);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return ENDED;
		if (n < 0)
			return say(RESOURCES, strerror(errno));
		if (resolve_request_parse(message, (size_t)n, &request) < 0)
			return say(BAD_MESSAGE, "a message that is no request");
		if (resolve_pool_put(pool, &request) < 0)
			return ENDED;
	}
}

struct arguments {
	unsigned uid, gid;
	bool lax;
};

static bool parse(int argc, char **argv, struct arguments *ret)
{
	*ret = (struct arguments){ geteuid(), getegid(), false };
	if (argc > 1 && strcmp(argv[argc - 1], "best-effort") == 0) {
		ret->lax = true;
		argc--;
	}
	if (argc == 1)
		return geteuid() != 0;
	return argc == 3 && is_id(argv[1], &ret->uid) && is_id(argv[2], &ret->gid) && ret->uid != 0;
}

int main(int argc, char **argv)
{
	struct resolve_pool pool; /* threads have it: main never returns once there are any */
	struct arguments with;
	if (!parse(argc, argv, &with) || !is_socket(RESOLVE_FD))
		return say(USAGE, "usage: agentbox-resolve [UID GID] [best-effort] 3<>SOCKET");
	close_range(RESOLVE_FD + 1, ~0u, 0);
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || keep_environment() < 0)
		return say(RESOURCES, "out of memory");
	int r = resolve_confine(with.uid, with.gid, with.lax);
	if (r == -EOPNOTSUPP)
		return say(UNCONFINED, "this kernel has no Landlock");
	if (r < 0) {
		fprintf(stderr, "agentbox-resolve: it cannot be confined: %s\n", strerror(-r));
		return UNCONFINED;
	}
	/* An arena for each thread would reserve more than the limit of memory. */
	mallopt(M_ARENA_MAX, 1);
	r = resolve_pool_init(&pool, RESOLVE_FD);
	_exit(r < 0 ? say(RESOURCES, strerror(-r)) : serve(&pool));
}
