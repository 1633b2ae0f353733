/* match: patterns of paths, as in filesystem.hide. */
#ifndef AGENTBOX_BASE_MATCH_H
#define AGENTBOX_BASE_MATCH_H

#include <stdbool.h>

/*
 * Does a pattern match a path, both relative to the same top? "**" as a whole component matches any
 * number of components, "*", "?" and "[...]" stay within one. A component past 255 bytes matches
 * nothing.
 */
bool match_path(const char *pattern, const char *path);

/*
 * The same for a pattern as a person writes it: without any "/" it means every component of that
 * name at any depth, and so also what is below a directory of that name.
 */
bool match_name(const char *pattern, const char *path);

#endif
