/*
 * host_git: looks at a workspace's ".git" file and at what it names (gitrepository-layout(5)).
 * Reads a few small files by descriptor and runs no git.
 */
#define _GNU_SOURCE
#include "plan/host_git.h"
#include "plan/places.h"
#include "base/fd.h"
#include "base/sys.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TEXT_MAX   ((size_t)PATH_MAX + 16)
#define NO_LINKS   (SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS)
#define BENEATH    (SYS_RESOLVE_BENEATH | NO_LINKS)
#define READ_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* Is `path` the tree, or does it lie in it? */
static bool within(const char *path, const char *tree)
{
	size_t len = strlen(tree);
	return strncmp(path, tree, len) == 0 && (path[len] == '/' || path[len] == 0);
}

/* A short text in a regular file, without its line's end; NULL: there is none. */
static const char *read_line(struct arena *arena, int dir, const char *name)
{
	AUTO_FD fd = sys_openat2(dir, name, READ_FLAGS, BENEATH);
	struct stat st;
	char *text;
	size_t len;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
		fd_read_file(arena, fd, TEXT_MAX, &text, &len) < 0 || strlen(text) != len)
		return NULL;
	while (len && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		text[--len] = 0;
	return len && !strchr(text, '\n') ? text : NULL;
}

/* Where a path leads that counts from `base`; NULL: nowhere. */
static const char *resolve(struct arena *arena, const char *base, const char *path)
{
	if (*path != '/')
		path = arena_join(arena, base, "/", path);
	char *real = realpath(path, NULL);
	const char *found = real ? arena_strdup(arena, real) : NULL;
	free(real);
	return found;
}

static bool is_kind(int dir, const char *name, mode_t kind)
{
	struct stat st;
	AUTO_FD fd = sys_openat2(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, BENEATH);
	return fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == kind;
}

/* Has a file of the worktree's own directory a path in it that leads to `want`? */
static bool leads_to(struct arena *arena, int dir, const char *admin, const char *name,
	const char *below, const char *want)
{
	const char *text = read_line(arena, dir, name);
	if (!text)
		return false;
	if (below) { /* the last component, which the path must have */
		const char *slash = strrchr(text, '/');
		if (!slash || slash == text || strcmp(slash + 1, below) != 0)
			return false;
		text = arena_strndup(arena, text, (size_t)(slash - text));
	}
	const char *real = resolve(arena, admin, text);
	return real && strcmp(real, want) == 0;
}

/*
 * The proof: COMMON/worktrees/NAME is what ".git" names, its "commondir" leads to COMMON and its
 * "gitdir" to our ".git", and COMMON is a repository of the workspace's owner. No box writes there
 * that was not granted the very repository.
 */
static bool proven(
	struct arena *arena, const char *workspace, uid_t owner, const struct host_git *git)
{
	struct stat st;
	AUTO_FD common =
		sys_openat2(AT_FDCWD, git->common, O_PATH | O_DIRECTORY | O_CLOEXEC, NO_LINKS);
	if (common < 0 || fstat(common, &st) < 0 || st.st_uid != owner)
		return false;
	AUTO_FD admin = sys_openat2(common, git->admin + strlen(git->common) + 1,
		O_PATH | O_DIRECTORY | O_CLOEXEC, BENEATH);
	if (admin < 0 || fstat(admin, &st) < 0 || st.st_uid != owner)
		return false;
	return is_kind(common, "HEAD", S_IFREG) && is_kind(common, "objects", S_IFDIR) &&
	       is_kind(common, "refs", S_IFDIR) &&
	       leads_to(arena, admin, git->admin, "commondir", NULL, git->common) &&
	       leads_to(arena, admin, git->admin, "gitdir", ".git", workspace);
}

/* COMMON of "COMMON/worktrees/NAME", or NULL. */
static const char *common_of(struct arena *arena, const char *admin)
{
	static const char middle[] = "/worktrees";
	const char *slash = strrchr(admin, '/');
	size_t len = (size_t)(slash - admin), tail = sizeof middle - 1;
	if (len <= tail || memcmp(slash - tail, middle, tail) != 0)
		return NULL;
	return arena_strndup(arena, admin, len - tail);
}

void host_git_probe(struct arena *arena, const char *workspace, uid_t owner, const char *home,
	struct host_git *git)
{
	static const char word[] = "gitdir: ";
	struct host_git found = { 0 };
	AUTO_FD dir = sys_openat2(AT_FDCWD, workspace, O_PATH | O_DIRECTORY | O_CLOEXEC, NO_LINKS);
	const char *text = dir < 0 ? NULL : read_line(arena, dir, ".git");
	if (!text || strncmp(text, word, sizeof word - 1) != 0)
		return;
	found.admin = resolve(arena, workspace, text + sizeof word - 1);
	if (!found.admin || within(found.admin, workspace))
		return; /* nowhere, or in what is shown anyway */
	git->admin = found.admin;
	found.common = common_of(arena, found.admin);
	/* One that the workspace lies in would show more than a repository. */
	if (found.common && !within(workspace, found.common) &&
		!places_not_workspace(found.common, home) &&
		proven(arena, workspace, owner, &found))
		git->common = found.common;
}
