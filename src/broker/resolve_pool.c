/*
 * resolve_pool: threads that ask the C library, made when there is something to ask. Each answers
 * by itself: a datagram is whole or not there. Decides nothing about names or addresses.
 */
#define _GNU_SOURCE
#include "broker/resolve_pool.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STACK_BYTES ((size_t)1 << 20) /* the C library's own need, and a loaded module's */

static int map_status(int error)
{
	switch (error) {
	case 0:
		return RESOLVE_OK;
	case EAI_NONAME:
	case EAI_NODATA:
	case EAI_ADDRFAMILY:
		return RESOLVE_NO_NAME;
	case EAI_AGAIN:
		return RESOLVE_AGAIN;
	}
	return RESOLVE_FAILED;
}

/* false: neither IPv4 nor IPv6. */
static bool take_address(const struct addrinfo *info, struct resolve_address *ret)
{
	*ret = (struct resolve_address){ 0 };
	if (info->ai_family == AF_INET && info->ai_addrlen >= sizeof(struct sockaddr_in)) {
		const struct sockaddr_in *four = (const struct sockaddr_in *)info->ai_addr;
		ret->family = 4;
		memcpy(ret->bytes, &four->sin_addr, 4);
		return true;
	}
	if (info->ai_family == AF_INET6 && info->ai_addrlen >= sizeof(struct sockaddr_in6)) {
		const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)info->ai_addr;
		ret->family = 6;
		ret->scope = six->sin6_scope_id;
		memcpy(ret->bytes, &six->sin6_addr, 16);
		return true;
	}
	return false;
}

/*
 * A name with a dot is looked up as it is: with a search list the C library would go on to names
 * that nobody listed. One without may be meant for that list. The settings are read anew, since a
 * VPN may have come or gone, and are this thread's own.
 */
static bool set_search(const struct resolve_request *request)
{
	/* Before its first use it names descriptor 0, which may be another thread's. */
	if (_res.options & RES_INIT)
		res_nclose(&_res);
	if (res_ninit(&_res) < 0)
		return false;
	if (memchr(request->name, '.', request->name_len))
		_res.options &= ~(unsigned long)(RES_DNSRCH | RES_DEFNAMES);
	return true;
}

static void look_up(const struct resolve_request *request, struct resolve_answer *ret)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;
	*ret = (struct resolve_answer){ .id = request->id, .status = RESOLVE_FAILED };
	if (!set_search(request))
		return;
	ret->status = map_status(getaddrinfo(request->name, NULL, &hints, &list));
	if (ret->status != RESOLVE_OK)
		return;
	for (const struct addrinfo *at = list; at && ret->count < RESOLVE_ADDRESSES_MAX;
		at = at->ai_next)
		if (take_address(at, &ret->addresses[ret->count]))
			ret->count++;
	freeaddrinfo(list);
	if (ret->count == 0) {
		ret->addresses[0] = (struct resolve_address){ 0 };
		ret->status = RESOLVE_NO_NAME;
	}
}

static int answer(const struct resolve_pool *pool, const struct resolve_answer *it)
{
	ssize_t n;
	do
		n = send(pool->sock, it, sizeof *it, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static void *work(void *arg)
{
	struct resolve_pool *pool = arg;
	for (;;) {
		struct resolve_answer it;
		pthread_mutex_lock(&pool->lock);
		pool->idle++;
		while (pool->count == 0)
			pthread_cond_wait(&pool->more, &pool->lock);
		pool->idle--;
		struct resolve_request request = pool->waiting[pool->first];
		pool->first = (pool->first + 1) % RESOLVE_WAITING;
		pool->count--;
		pthread_mutex_unlock(&pool->lock);
		look_up(&request, &it);
		/* Nobody is left to answer: main sees the same. */
		if (answer(pool, &it) < 0)
			return NULL;
	}
}

/* Signals are main's. */
static int start_thread(struct resolve_pool *pool)
{
	pthread_t thread;
	pthread_attr_t attr;
	sigset_t all, before;
	int r = pthread_attr_init(&attr);
	if (r)
		return -r;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_attr_setstacksize(&attr, STACK_BYTES);
	if (!r)
		r = pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (!r)
		r = pthread_create(&thread, &attr, work, pool);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}

int resolve_pool_init(struct resolve_pool *pool, int sock)
{
	memset(pool, 0, sizeof *pool);
	pool->sock = sock;
	int r = pthread_mutex_init(&pool->lock, NULL);
	if (!r)
		r = pthread_cond_init(&pool->more, NULL);
	return -r;
}

int resolve_pool_put(struct resolve_pool *pool, const struct resolve_request *request)
{
	pthread_mutex_lock(&pool->lock);
	/* A thread that was just made is not idle yet, but counts the request as its own. */
	bool short_of = pool->idle <= pool->count && pool->threads < RESOLVE_AT_ONCE;
	if (short_of && start_thread(pool) == 0)
		pool->threads++;
	bool room = pool->threads > 0 && pool->count < RESOLVE_WAITING;
	if (room) {
		pool->waiting[(pool->first + pool->count) % RESOLVE_WAITING] = *request;
		pool->count++;
		pthread_cond_signal(&pool->more);
	}
	pthread_mutex_unlock(&pool->lock);
	if (room)
		return 0;
	const struct resolve_answer later = { .id = request->id, .status = RESOLVE_AGAIN };
	return answer(pool, &later);
}
