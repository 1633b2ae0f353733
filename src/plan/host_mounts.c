/* host_mounts: reads the kernel's list of mounts. */
#define _GNU_SOURCE
#include "plan/host_mounts.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#define LIST_MAX ((size_t)32 << 20) /* bytes; the kernel itself allows 100000 mounts */
#define RAW_MAX  1024               /* mounts that are looked at in the trees */

/*
 * The kernel's own file systems: they show the host's processes and settings, not work. Those that
 * mount when they are looked at are left alone as well.
 */
static bool is_kernels(const char *type)
{
	static const char *const types[] = { "autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2",
		"configfs", "debugfs", "devpts", "devtmpfs", "efivarfs", "fusectl", "mqueue",
		"nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs", "sysfs",
		"tracefs" };
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strcmp(type, types[i]) == 0)
			return true;
	return false;
}

/* Blank, tab, newline and backslash stand as three octal digits. In place. */
static void unescape(char *text)
{
	char *to = text;
	for (const char *at = text; *at; to++) {
		bool octal = at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] >= '0' &&
			     at[2] <= '7' && at[3] >= '0' && at[3] <= '7';
		*to = octal ? (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0')) : *at;
		at += octal ? 4 : 1;
	}
	*to = 0;
}

static bool lies_in(const char *path, const char *tree)
{
	size_t len = strlen(tree);
	return strncmp(path, tree, len) == 0 && path[len] == '/';
}

/* "ID PARENT MAJ:MIN ROOT POINT OPTIONS [TAGS...] - TYPE SOURCE OPTIONS"; false: not like that. */
static bool split(char *line, char **ret_point, char **ret_type)
{
	char *save = NULL, *word = strtok_r(line, " ", &save);
	for (int i = 0; word && i < 4; i++)
		word = strtok_r(NULL, " ", &save);
	*ret_point = word;
	while (word && strcmp(word, "-") != 0)
		word = strtok_r(NULL, " ", &save);
	*ret_type = word ? strtok_r(NULL, " ", &save) : NULL;
	if (!*ret_type)
		return false;
	unescape(*ret_point);
	return **ret_point == '/';
}

/* Add it, or, where it covers one at the same place, put it in that one's stead. */
static void add(struct host *host, struct host_mount **mounts, const char *point, bool kernels)
{
	for (size_t i = 0; i < host->mount_count; i++)
		if (strcmp((*mounts)[i].path, point) == 0) {
			(*mounts)[i].kernels |= kernels;
			return;
		}
	if (host->mount_count == RAW_MAX)
		return;
	struct host_mount *mount =
		arena_push(&host->arena, mounts, &host->mount_count, sizeof *mount);
	mount->path = arena_strdup(&host->arena, point);
	mount->kernels = kernels;
}

/* What lies in another one is shown with it; if it must not be, the other one must not either. */
static void keep_outer(struct host *host, struct host_mount *mounts)
{
	size_t count = 0;
	for (size_t i = 0; i < host->mount_count; i++)
		for (size_t k = 0; k < host->mount_count; k++)
			if (lies_in(mounts[k].path, mounts[i].path)) {
				mounts[i].kernels |= mounts[k].kernels;
				mounts[k].inner = true;
			}
	for (size_t i = 0; i < host->mount_count; i++)
		if (!mounts[i].inner)
			mounts[count++] = mounts[i];
	host->mount_count = count;
}

void host_mounts_parse(char *text, const char *const *trees, size_t tree_count, struct host *host)
{
	struct host_mount *mounts = NULL;
	char *save = NULL, *point, *type;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (!split(line, &point, &type))
			continue;
		for (size_t i = 0; i < tree_count; i++)
			if (lies_in(point, trees[i])) {
				add(host, &mounts, point, is_kernels(type));
				break;
			}
	}
	keep_outer(host, mounts);
	host->mounts = mounts;
}

void host_mounts_probe(const char *const *trees, size_t tree_count, struct host *host)
{
	struct arena scratch = { 0 };
	char *text;
	size_t len;
	AUTO_FD fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && fd_read_file(&scratch, fd, LIST_MAX, &text, &len) == 0)
		host_mounts_parse(text, trees, tree_count, host);
	arena_free(&scratch);
}
