/* host_match: which files the hide and protect patterns mean. Private to plan/. */
#ifndef AGENTBOX_PLAN_HOST_MATCH_H
#define AGENTBOX_PLAN_HOST_MATCH_H

#include <stdbool.h>

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

/*
 * Does a pattern (see struct policy_pattern; without its leading "/") match a path relative to the
 * tree's top? "**" as a whole component matches any number of components, "*", "?" and "[...]" stay
 * within one.
 */
bool host_match_pattern(const char *pattern, const char *path);

#endif
