/*
 * host_cgroup_text: from /proc/self/cgroup and /proc/self/mountinfo to directories. Owns the
 * parsing of the two; looks at no file.
 *
 * A group's path counts from the hierarchy's root (or that of the cgroup namespace), and a mount
 * may show a part of the hierarchy only: its root is then a prefix of the path. A path that is not
 * below any mount's root cannot be reached, and is not guessed at.
 */
#define _GNU_SOURCE
#include "plan/host_cgroup.h"

#include <stdlib.h>
#include <string.h>

/* A part of a text. */
struct span {
	const char *at;
	size_t len;
};

/* A line of mountinfo; the strings are still escaped. */
struct mount {
	unsigned long id, parent;
	struct span root, point, options, type, super;
};

/* The next line without its newline; false at the end. */
static bool next_line(const char **text, struct span *ret_line)
{
	if (!**text)
		return false;
	ret_line->at = *text;
	ret_line->len = strcspn(*text, "\n");
	*text += ret_line->len + ((*text)[ret_line->len] == '\n');
	return true;
}

/* Cut the first field off; an empty span at the end. */
static struct span next_field(struct span *rest)
{
	while (rest->len && *rest->at == ' ')
		rest->at++, rest->len--;
	struct span field = { rest->at, 0 };
	while (field.len < rest->len && field.at[field.len] != ' ')
		field.len++;
	rest->at += field.len;
	rest->len -= field.len;
	return field;
}

static bool is(struct span span, const char *text)
{
	return span.len == strlen(text) && memcmp(span.at, text, span.len) == 0;
}

/* Is it one of the words between commas? */
static bool lists(struct span list, const char *word)
{
	while (list.len) {
		const char *comma = memchr(list.at, ',', list.len);
		struct span one = { list.at, comma ? (size_t)(comma - list.at) : list.len };
		if (is(one, word))
			return true;
		size_t used = one.len + (comma != NULL);
		list.at += used;
		list.len -= used;
	}
	return false;
}

static bool parse_mount(struct span line, struct mount *ret_mount)
{
	struct span rest = line;
	ret_mount->id = strtoul(next_field(&rest).at, NULL, 10);
	ret_mount->parent = strtoul(next_field(&rest).at, NULL, 10);
	(void)next_field(&rest); /* device */
	ret_mount->root = next_field(&rest);
	ret_mount->point = next_field(&rest);
	ret_mount->options = next_field(&rest);
	struct span field;
	do /* optional fields, closed by a dash */
		field = next_field(&rest);
	while (field.len && !is(field, "-"));
	if (!field.len)
		return false;
	ret_mount->type = next_field(&rest);
	(void)next_field(&rest); /* source */
	ret_mount->super = next_field(&rest);
	return ret_mount->root.len && ret_mount->point.len && ret_mount->type.len;
}

/* Blanks, newlines and backslashes in paths are written as \ and three octal digits. */
static char *unescape(struct arena *arena, struct span text)
{
	char *out = arena_strndup(arena, text.at, text.len);
	size_t len = 0;
	for (size_t i = 0; i < text.len; i++) {
		const char *c = text.at + i;
		if (*c == '\\' && i + 3 < text.len && c[1] >= '0' && c[1] <= '3' && c[2] >= '0' &&
			c[2] <= '7' && c[3] >= '0' && c[3] <= '7') {
			out[len++] = (char)((c[1] - '0') << 6 | (c[2] - '0') << 3 | (c[3] - '0'));
			i += 3;
		} else {
			out[len++] = *c;
		}
	}
	out[len] = 0;
	return out;
}

/* Another mount on the very place hides this one. */
static bool is_covered(const char *mountinfo, const struct mount *mount)
{
	struct span line;
	struct mount other;
	while (next_line(&mountinfo, &line))
		if (parse_mount(line, &other) && other.parent == mount->id &&
			other.id != mount->id && other.point.len == mount->point.len &&
			memcmp(other.point.at, mount->point.at, other.point.len) == 0)
			return true;
	return false;
}

/* What is left of the path below the root: "" or "/REST"; NULL when it is not below. */
static const char *below(const char *path, const char *root)
{
	size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);
	if (strncmp(path, root, len) != 0 || (path[len] && path[len] != '/'))
		return NULL;
	const char *rest = strcmp(path + len, "/") == 0 ? "" : path + len;
	for (const char *at = rest; (at = strstr(at, "/..")); at += 3)
		if (!at[3] || at[3] == '/')
			return NULL; /* outside of the cgroup namespace: no name for it here */
	return rest;
}

/* The directory of the group `path`; the first writable mount, else the first one. */
static const char *find_dir(const char *mountinfo, const char *type, const char *controller,
	const char *path, struct arena *arena, const char **ret_point)
{
	const char *dir = NULL, *text = mountinfo;
	struct span line;
	struct mount mount;
	while (next_line(&text, &line)) {
		if (!parse_mount(line, &mount) || !is(mount.type, type) ||
			(controller && !lists(mount.super, controller)))
			continue;
		bool read_only = lists(mount.options, "ro") || lists(mount.super, "ro");
		if ((dir && read_only) || is_covered(mountinfo, &mount))
			continue;
		const char *rest = below(path, unescape(arena, mount.root));
		if (!rest)
			continue;
		const char *point = unescape(arena, mount.point);
		dir = arena_join(arena, strcmp(point, "/") == 0 ? "" : point, rest, "");
		*ret_point = point;
		if (!read_only)
			break;
	}
	return dir;
}

/*
 * The path in the line NUMBER:CONTROLLERS:PATH that has the controller (v2: 0 and none). A group
 * that was removed while we are in it can hold no other.
 */
static const char *find_path(
	const char *cgroup, const char *controller, struct arena *arena, const char **ret_mounted)
{
	static const char deleted[] = " (deleted)";
	struct span line;
	while (next_line(&cgroup, &line)) {
		const char *end = line.at + line.len;
		const char *first = memchr(line.at, ':', line.len);
		const char *second =
			first ? memchr(first + 1, ':', (size_t)(end - first) - 1) : NULL;
		if (!second || second + 1 == end || second[1] != '/')
			continue;
		struct span list = { first + 1, (size_t)(second - first) - 1 };
		if (controller ? !lists(list, controller)
			       : list.len ||
					 !is((struct span){ line.at, (size_t)(first - line.at) },
						 "0"))
			continue;
		size_t len = (size_t)(end - second) - 1, tail = sizeof deleted - 1;
		if (len >= tail && memcmp(end - tail, deleted, tail) == 0)
			return NULL;
		/* A named hierarchy with controllers could not be mounted by these alone. */
		if (memmem(list.at, list.len, "name=", 5))
			return NULL;
		*ret_mounted = arena_strndup(arena, list.at, list.len);
		return arena_strndup(arena, second + 1, len);
	}
	return NULL;
}

const char *host_cgroup_v2_dir(const char *cgroup, const char *mountinfo, struct arena *arena,
	const char **ret_mount_point)
{
	const char *mounted, *path = find_path(cgroup, NULL, arena, &mounted);
	return path ? find_dir(mountinfo, "cgroup2", NULL, path, arena, ret_mount_point) : NULL;
}

const char *host_cgroup_v1_path(
	const char *cgroup, const char *controller, struct arena *arena, const char **ret_mounted)
{
	return find_path(cgroup, controller, arena, ret_mounted);
}

const char *host_cgroup_v1_dir(const char *cgroup, const char *mountinfo, const char *controller,
	struct arena *arena, const char **ret_mounted)
{
	const char *point, *path = find_path(cgroup, controller, arena, ret_mounted);
	return path ? find_dir(mountinfo, "cgroup", controller, path, arena, &point) : NULL;
}
