/*
 * lookup_hint: what to write in place of a policy's name that led nowhere. Looks into the
 * directories that were looked in, never further, and only once there is an error to explain.
 */
#define _GNU_SOURCE
#include "policy/lookup_hint.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "policy/keys.h"
#include "policy/value.h"

#define ENTRIES_MAX 4096 /* of one directory that are looked at */

int hint_bad_name(const struct loader *l, const char *name, const struct node *at)
{
	char lower[SHOWN_MAX];
	size_t len = strlen(name);
	AUTO_BUF words = { .max = sizeof l->err->hint - 64 };
	if (!l->err)
		return -1;
	if (strpbrk(name, ", ")) {
		int count = 0;
		buf_adds(&words, at ? "[" : "");
		for (const char *p = name + strspn(name, ", "); *p; p += strspn(p, ", ")) {
			size_t n = strcspn(p, ", ");
			buf_addf(&words, "%s%s%.*s", count++ ? at ? ", " : " " : "",
				at ? "" : "-p ", (int)n, p);
			p += n;
		}
		buf_adds(&words, at ? "]" : "");
		return count && !words.full ? err_hint_set(l->err, "%s: %s",
						      at ? "each is an element of its own"
							 : "give the option once for each",
						      buf_text(&words))
					    : -1;
	}
	if (!len || len >= sizeof lower)
		return -1;
	for (size_t i = 0; i <= len; i++)
		lower[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + 32) : name[i];
	if (value_is_policy(lower))
		return err_hint_set(l->err, "names are lower-case: %s", lower);
	return -1;
}

/* The name of a policy in the directory that is nearest to `name`, if nearer than *distance. */
static void nearest_in(struct loader *l, const char *dir, const char *ending, const char *name,
	int *distance, const char **ret)
{
	DIR *stream = opendir(dir);
	if (!stream)
		return;
	const struct dirent *entry;
	for (int i = 0; i < ENTRIES_MAX && (entry = readdir(stream)); i++) {
		size_t len = strlen(entry->d_name), end = strlen(".yaml");
		if (len <= end || strcmp(entry->d_name + len - end, ".yaml") != 0)
			continue;
		const char *stem = arena_strndup(l->arena, entry->d_name, len - end);
		int d = value_is_policy(stem) || *ending ? key_near(name, stem) : -1;
		if (d < 0 || (*distance >= 0 && d >= *distance))
			continue;
		*distance = d;
		*ret = arena_printf(l->arena, "%s%s", stem, ending);
	}
	closedir(stream);
}

/* Where a relative name counts from; NULL: not known. */
static const char *base_dir(struct loader *l, const struct node *at)
{
	return at ? at->source->dir : source_cwd(l);
}

int hint_no_name(
	struct loader *l, const char *name, const struct node *at, const char *const dirs[3])
{
	int distance = -1;
	const char *near = NULL, *base = base_dir(l, at);
	if (base && access(arena_printf(l->arena, "%s/%s.yaml", base, name), F_OK) == 0)
		return err_hint_set(l->err, "the file here is meant by its whole name: %s./%s.yaml",
			at ? "" : "-p ", name);
	for (size_t i = 0; i < 3; i++)
		if (dirs[i])
			nearest_in(l, dirs[i], "", name, &distance, &near);
	return near ? err_hint_set(l->err, "did you mean '%s'?", near) : -1;
}

/* "x/python.yaml" -> "python" */
static const char *stem_of(struct arena *arena, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	return arena_strndup(arena, name, dot ? (size_t)(dot - name) : strlen(name));
}

int hint_no_file(struct loader *l, const char *name, const struct node *at, const char *path,
	const char *const dirs[3])
{
	const char *stem = stem_of(l->arena, name);
	for (size_t i = 0; i < 3 && value_is_policy(stem); i++)
		if (dirs[i] &&
			access(arena_printf(l->arena, "%s/%s.yaml", dirs[i], stem), F_OK) == 0)
			return err_hint_set(l->err, "%s/%s.yaml is meant by its name alone: %s%s",
				dirs[i], stem, at ? "" : "-p ", stem);
	int distance = -1;
	const char *near = NULL;
	const char *slash = strrchr(path, '/');
	const char *dir = !slash ? "." : arena_strndup(l->arena, path, (size_t)(slash - path) + 1);
	nearest_in(l, dir, ".yaml", stem, &distance, &near);
	slash = strrchr(name, '/');
	if (near)
		return err_hint_set(l->err, "did you mean '%.*s%s'?",
			slash ? (int)(slash - name) + 1 : 0, name, near);
	if (access(dir, F_OK) < 0)
		return err_hint_set(l->err, "there is no directory %s", dir);
	if (name[0] == '/' || name[0] == '~')
		return err_hint_set(l->err, "check the spelling of the path");
	const char *base = base_dir(l, at);
	return err_hint_set(l->err, "a relative path counts from %s%s%s",
		at ? "the directory of the file it is written in" : "the current directory",
		base ? ": " : "", base ? base : "");
}
