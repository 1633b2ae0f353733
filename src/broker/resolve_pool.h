/* resolve_pool: the look-ups of agentbox-resolve that are under way. */
#ifndef AGENTBOX_BROKER_RESOLVE_POOL_H
#define AGENTBOX_BROKER_RESOLVE_POOL_H

#include <pthread.h>
#include <stdbool.h>

#include "broker/resolve.h"

struct resolve_pool {
	int sock; /* where answers go */
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct resolve_request waiting[RESOLVE_WAITING];
	size_t first, count; /* of `waiting`, a ring */
	size_t threads, idle;
};

/* 0 or -errno. The pool lives as long as the process. */
int resolve_pool_init(struct resolve_pool *pool, int sock);

/*
 * Take a request over; it is answered on the socket, now or later. May block while the other side
 * does not read. 0; -errno when nothing can be answered any more.
 */
int resolve_pool_put(struct resolve_pool *pool, const struct resolve_request *request);

#endif
