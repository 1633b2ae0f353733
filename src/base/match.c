/* match: patterns of paths, as in filesystem.hide. Looks at no file. */
#define _GNU_SOURCE
#include "base/match.h"

#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

bool match_path(const char *pattern, const char *path)
{
	for (;;) {
		const char *slash = strchrnul(pattern, '/');
		size_t len = (size_t)(slash - pattern);
		if (len == 2 && memcmp(pattern, "**", 2) == 0) {
			if (!*slash)
				return true;
			for (const char *at = path;; at++) {
				if (match_path(slash + 1, at))
					return true;
				at = strchrnul(at, '/');
				if (!*at)
					return false;
			}
		}
		const char *stop = strchrnul(path, '/');
		char want[256], have[256];
		size_t have_len = (size_t)(stop - path);
		if (len >= sizeof want || have_len >= sizeof have)
			return false;
		memcpy(want, pattern, len);
		want[len] = 0;
		memcpy(have, path, have_len);
		have[have_len] = 0;
		if (fnmatch(want, have, FNM_NOESCAPE) != 0)
			return false;
		if (!*slash || !*stop)
			return !*slash && !*stop;
		pattern = slash + 1;
		path = stop + 1;
	}
}

bool match_name(const char *pattern, const char *path)
{
	if (strchr(pattern, '/'))
		return match_path(pattern, path);
	for (const char *at = path;; at++) {
		const char *stop = strchrnul(at, '/');
		char name[256];
		size_t len = (size_t)(stop - at);
		if (len < sizeof name) {
			memcpy(name, at, len);
			name[len] = 0;
			if (fnmatch(pattern, name, FNM_NOESCAPE) == 0)
				return true;
		}
		if (!*stop)
			return false;
		at = stop;
	}
}
