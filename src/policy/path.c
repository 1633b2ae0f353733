/* path: paths and patterns as text. */
#define _GNU_SOURCE
#include "policy/path.h"

#include <limits.h>
#include <string.h>

const char *path_form(const char *text, const char **ret_hint)
{
	size_t len = strlen(text);
	if (!len)
		return "a path is not empty";
	if (len >= PATH_MAX)
		return "a path of more than 4095 bytes";
	if (strpbrk(text, "\n\t"))
		return "a path without line breaks and tabs";
	/* Hardly ever meant, and then it names a file that is not there: nothing would be covered.
	 */
	while (len > 1 && text[len - 1] == '/')
		len--;
	if (text[0] == ' ' || text[len - 1] == ' ') {
		*ret_hint = "take the blank away";
		return "a path that does not begin or end with a blank";
	}
	if (text[0] == '~' && text[1] && text[1] != '/')
		return "only ~ and ~/... are known; write other homes as absolute paths";
	return NULL;
}

/* One component of a pattern. */
static const char *component_form(
	const char *text, size_t len, bool absolute, const char **ret_hint)
{
	/* "./x" would lose its "/" when it is cleaned, and with it match at any depth. */
	if (!absolute && len && len <= 2 && memcmp(text, "..", len) == 0)
		return "a pattern without . and .. in it";
	if (len == 2 && memcmp(text, "**", 2) == 0)
		return NULL;
	if (memmem(text, len, "**", 2)) {
		*ret_hint = "at any depth: **/*.key";
		return "** stands alone between slashes";
	}
	for (size_t i = 0; i < len; i++) {
		if (text[i] != '[')
			continue;
		size_t start = i + 1;
		if (start < len && (text[start] == '!' || text[start] == '^'))
			start++;
		const char *end =
			start + 1 < len ? memchr(text + start + 1, ']', len - start - 1) : NULL;
		if (!end)
			return "a [ without its ]";
		i = (size_t)(end - text);
	}
	return NULL;
}

/* What means something in other languages of patterns, and would be a plain character here. */
static const char *foreign_form(const char *text, const char **ret_hint)
{
	if (strchr(text, '\\'))
		return "a pattern without backslashes";
	if (strpbrk(text, "{}")) {
		*ret_hint = "write two patterns; ? matches any one character, a brace too";
		return "a pattern without braces";
	}
	if (text[0] == '!') {
		*ret_hint = "no pattern takes another one back; ? matches any one character, "
			    "a ! too";
		return "a pattern without a ! before it";
	}
	return NULL;
}

const char *pattern_form(const char *text, const char **ret_hint)
{
	const char *why = path_form(text, ret_hint);
	if (why) {
		if (*ret_hint)
			*ret_hint = "take the blank away; ? matches any one character, a blank too";
		return why;
	}
	why = foreign_form(text, ret_hint);
	if (why)
		return why;
	bool absolute = text[0] == '/' || text[0] == '~';
	bool some = false;
	int deep = 0;
	for (const char *p = text; *p;) {
		size_t len = strcspn(p, "/");
		why = component_form(p, len, absolute, ret_hint);
		if (why)
			return why;
		some |= len > 0;
		deep += len == 2 && memcmp(p, "**", 2) == 0;
		p += len + (p[len] == '/');
	}
	if (deep > PATTERN_DEEP_MAX) {
		*ret_hint = "two ** in a row mean no more than one";
		return "a pattern with at most 4 times **";
	}
	return some ? NULL : "a pattern that names something";
}

/* Append the components of `text` to the clean absolute path of `len` bytes at `out`. */
static size_t append(char *out, size_t len, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "/");
		if (n == 2 && memcmp(text, "..", 2) == 0) {
			while (len > 0 && out[--len] != '/')
				;
		} else if (n > 0 && !(n == 1 && *text == '.')) {
			out[len++] = '/';
			memcpy(out + len, text, n);
			len += n;
		}
		text += n + (text[n] == '/');
	}
	return len;
}

const char *path_absolute(struct arena *arena, const char *text, const char *home, const char *dir,
	const char **ret_why)
{
	const char *base = "";
	if (text[0] == '~') {
		if (!home) {
			*ret_why = "the home directory that ~ stands for is not known";
			return NULL;
		}
		base = home;
		text++;
	} else if (text[0] != '/') {
		if (!dir) {
			*ret_why = "a relative path, and the directory it counts from is not known";
			return NULL;
		}
		base = dir;
	}
	char *out = arena_alloc(arena, strlen(base) + strlen(text) + 3);
	size_t len = append(out, 0, base);
	len = append(out, len, text);
	if (len == 0)
		out[len++] = '/';
	out[len] = 0;
	if (len >= PATH_MAX) {
		*ret_why = "a path of more than 4095 bytes";
		return NULL;
	}
	return out;
}

const char *pattern_clean(
	struct arena *arena, const char *text, const char *home, const char **ret_why)
{
	if (text[0] == '/' || text[0] == '~') {
		const char *clean = path_absolute(arena, text, home, NULL, ret_why);
		if (clean && clean[1] == 0) {
			*ret_why = "a pattern that names more than /";
			return NULL;
		}
		return clean;
	}
	char *out = arena_alloc(arena, strlen(text) + 2);
	size_t len = append(out, 0, text);
	out[len] = 0;
	return out + 1;
}

bool pattern_literal(const char *pattern)
{
	return !pattern[strcspn(pattern, "*?[")];
}
