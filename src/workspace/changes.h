/*
 * changes: what a private layer of overlayfs holds, against the tree below it, as an exact list of
 * changes: the same that comparing the tree before with the tree that the command saw would give
 * (names, types, sizes, modes, contents, texts of links; not times, owners or link counts). The
 * tree's own directory is in it as ".", when its mode changed.
 *
 * It looks at what the layer has and at what was taken away, never at the rest: the cost is in
 * proportion to what changed. Both trees may hold anything that an enemy left: nothing is followed,
 * nothing outside the two descriptors is opened, and each size has a maximum. Nothing is written
 * but one thing: a file or directory of the layer that its own owner may not read gets the bit for
 * that while it is looked at. So there must be only one look at a layer at a time.
 *
 * The tree below is the host's and may change meanwhile; then the answer is as of some moment for
 * each file. A mount in it covers what the layer was made over: it counts as an empty directory of
 * an unchanged mode, or as an empty file. A character device 0:0 in it is nothing, as to overlayfs
 * itself.
 */
#ifndef AGENTBOX_WORKSPACE_CHANGES_H
#define AGENTBOX_WORKSPACE_CHANGES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "report/changes.h"

/*
 * One tree and its layer. How a layer is written down (overlayfs.rst): a character device 0:0 is a
 * name taken away; a directory with the attribute user.overlay.opaque = "y" hides all of the tree's
 * directory of that name; everything else is a file in its new form, perhaps the same as before.
 * In a directory with user.overlay.opaque = "x" an empty regular file with user.overlay.whiteout is
 * a name taken away, too. user.overlay.redirect and .metacopy are never there with `userxattr`:
 * they are an error.
 */
struct changes_layer {
	int upper;  /* directory of the layer; read only, not closed */
	int lower;  /* directory of the tree below; -1: there is none (an empty one) */
	bool whole; /* upper is a complete copy, not a layer: what it lacks was taken away */
	const char
		*root; /* absolute path of the tree on the host: names it, and tells what escapes */
	bool unused;   /* no box has had it: its own mode and time are not yet those of the tree */
};

/* Names that are never brought to the host, nor a link on the way to one, and ones that are
 * sensitive beside sensitive.def. */
struct changes_rules {
	const char *const
		*held; /* patterns as in filesystem.hide, .protect; NULL-terminated, or NULL */
	const char *const *sensitive; /* likewise: filesystem.sensitive */
	bool quiet; /* list also what differs in its times or hard links alone: change.quiet */
};

/*
 * Fill *ret (changes_free() it; untouched on failure) with at most `max` entries in all and
 * CHANGES_TEXT_MAX bytes; past either, all that follows is only counted. 0: no maximum, and past
 * 1 GiB of names an error. What changes its type is one entry, with the new type, and one for each
 * file that was or is below it; a directory that was removed likewise.
 *
 * A change is sensitive as changes_sensitive() says, and also where a file, a link or nothing takes
 * the place of a directory on the way to such a name, or the other way round. A link escapes when
 * its text is absolute and not below the root, has more ".." than directories above it, or has ".."
 * behind a name (which may be a link itself).
 *
 * Errors: no_resources, workspace_unreadable (a file that cannot be looked at, named; also one of
 * the tree below that the caller may not read: its mode is never touched).
 */
int changes_find(const struct changes_layer *layers, size_t count,
	const struct changes_rules *rules, size_t max, struct changes *ret, struct err *err);
void changes_free(struct changes *changes);

/*
 * The same without a list and without a maximum: `call` is called for each change, in order. The
 * change and its strings live until it returns: 0, or -1 with *err, which is the end.
 */
typedef int changes_visit(void *data, const struct change *change, struct err *err);
int changes_each(const struct changes_layer *layers, size_t count,
	const struct changes_rules *rules, changes_visit *call, void *data, struct err *err);

/*
 * May something outside of the box run this file later, or act on it without being asked: hooks,
 * settings of git, editors, shells and agents, CI definitions? `path` is relative to the tree, and
 * of a file: a directory on the way to one is not sensitive by itself.
 * `extra` as changes_rules.sensitive, or NULL. The table is sensitive.def.
 */
bool changes_sensitive(const char *path, const char *const *extra);

#endif
