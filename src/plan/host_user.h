/* host_user: who the caller is, by name. Private to plan/. */
#ifndef AGENTBOX_PLAN_HOST_USER_H
#define AGENTBOX_PLAN_HOST_USER_H

#include <sys/types.h>

#include "base/arena.h"

struct host_user {
	const char *name, *group; /* never NULL */
	const char *home;         /* absolute, or NULL when the database has no usable one */
};

/* Strings from arena or static. An unknown id gets the name "user". */
void host_user_find(struct arena *arena, uid_t uid, gid_t gid, struct host_user *ret_user);

#endif
