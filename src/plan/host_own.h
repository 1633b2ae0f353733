/*
 * host_own: where agentbox keeps what it relies on later: records of runs, and state. A box that
 * could write there could say what a later run is to remove. Private to plan/.
 */
#ifndef AGENTBOX_PLAN_HOST_OWN_H
#define AGENTBOX_PLAN_HOST_OWN_H

struct policy;
struct request;
struct host;

/*
 * Fill host->own when the policy grants anything for writing: the caller's own such directories, as
 * their variables and as the usual places have it, there or not; without links. host->home and uid
 * must be known.
 */
void host_own_probe(const struct policy *policy, const struct request *request, struct host *host);

/*
 * The first of them that `path` is or lies in (*ret_holds false), or that lies in `path` (true);
 * NULL: it has to do with none. Another user's usual ones count as well when path lies in them.
 */
const struct host_path *host_own_find(const struct host *host, const char *path, bool *ret_holds);

#endif
