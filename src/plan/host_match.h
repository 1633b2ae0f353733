/* host_match: which files the hide and protect patterns mean. Private to plan/. */
#ifndef AGENTBOX_PLAN_HOST_MATCH_H
#define AGENTBOX_PLAN_HOST_MATCH_H

#include "base/err.h"

struct policy;
struct request;
struct host;

/*
 * Fill host->hidden, ->protected and ->missing from what is on disk now. Grants must have been
 * probed. Errors: too_many_matches.
 */
int host_match(const struct policy *policy, const struct request *request, struct host *host,
	struct err *err);

#endif
