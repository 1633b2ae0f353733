/*
 * view: a session's tree as the box sees it, for reading and writing its files without running
 * anything inside: the overlay mounted once more, in namespaces of a child that ends at once, and
 * handed back as a descriptor of a detached mount that only this process has.
 */
#ifndef AGENTBOX_WORKSPACE_VIEW_H
#define AGENTBOX_WORKSPACE_VIEW_H

#include "base/err.h"

/*
 * `lower`: the host's tree; `layer`: the directory that has "upper" and "work". A descriptor of the
 * merged tree's top, or -1 with *err. Works without privilege; as root files belong to the tree's
 * owner. Errors: overlay_unsupported, userns_denied, no_resources.
 */
int view_open(int lower, int layer, struct err *err);

#endif
