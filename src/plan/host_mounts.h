/* host_mounts: what is mounted inside of trees that are shown through a layer. Private to plan/. */
#ifndef AGENTBOX_PLAN_HOST_MOUNTS_H
#define AGENTBOX_PLAN_HOST_MOUNTS_H

#include "base/arena.h"
#include "plan/host.h"

/*
 * Fill host->mounts from the kernel's list (proc_pid_mountinfo(5)) with those that lie below one of
 * the trees and below no other one that is listed. Never fails: what is not listed is not shown.
 */
void host_mounts_probe(const char *const *trees, size_t tree_count, struct host *host);

/* The same from a text; `line` is changed. For tests. */
void host_mounts_parse(char *text, const char *const *trees, size_t tree_count, struct host *host);

#endif
