/* places: tables of the host's system places that a box shows. Private to plan/. */
#ifndef AGENTBOX_PLAN_PLACES_H
#define AGENTBOX_PLAN_PLACES_H

#include <stddef.h>

/*
 * Paths of the entries of / that make up `filesystem.root: host`, as they are on the host:
 * directories are shown read-only, links are made again with the same text. What a host does not
 * have is left out.
 */
extern const char *const places_top[];
extern const size_t places_top_count;

/*
 * Paths of the entries of /etc that are shown as they are. All else in /etc is made by agentbox or
 * absent: the list holds what programs need to run (loader, certificates, time zone, runtimes'
 * settings), and nothing that tells about the host's users, services or secrets.
 */
extern const char *const places_etc[];
extern const size_t places_etc_count;

/* Those that only a box with a network has a use for. */
extern const char *const places_etc_network[];
extern const size_t places_etc_network_count;

/* Why a directory may not be a workspace ("the root directory", "the home directory"), or NULL. */
const char *places_not_workspace(const char *path, const char *home);

#endif
