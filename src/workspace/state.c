/* state: the caller's own directory. Trusts no directory that it has not looked at by descriptor.
 */
#define _GNU_SOURCE
#include "workspace/state.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

const char *state_path(struct arena *arena)
{
	if (geteuid() == 0)
		return "/var/lib/agentbox";
	const char *base = getenv("XDG_STATE_HOME");
	if (base && *base == '/')
		return arena_join(arena, base, "/agentbox", "");
	const char *home = getenv("HOME");
	return home && *home == '/' ? arena_join(arena, home, "/.local/state/agentbox", "") : NULL;
}

/* The parents of STATE: ordinary directories, made as mkdir -p would. */
static int open_parent(const char *state, bool make)
{
	char path[4096];
	const char *last = strrchr(state, '/');
	size_t len = (size_t)(last - state);
	if (len >= sizeof path)
		return -ENAMETOOLONG;
	memcpy(path, state, len);
	path[len] = 0;
	for (char *slash = path; make && (slash = strchr(slash + 1, '/'));) {
		*slash = 0;
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	if (make && len && mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	int fd = open(len ? path : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* One directory in another, the caller's alone. -EPERM: it is not. */
static int open_own(int parent, const char *name, bool make)
{
	if (make && mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	int fd = openat(parent, name, DIRECTORY);
	if (fd < 0)
		return -errno;
	struct stat st;
	int r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0 && (st.st_uid != geteuid() || (st.st_mode & 077)))
		r = -EPERM;
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

static int refuse(const char *state, const char *name, int r, struct err *err)
{
	if (r == -EPERM)
		return err_set(err, ERR_state_unusable, EPERM,
			"'%s%s%s' is not a directory of your own that nobody else can use", state,
			name ? "/" : "", name ? name : "");
	return err_set(err, ERR_state_unusable, -r, "'%s%s%s' cannot be used: %s", state,
		name ? "/" : "", name ? name : "", strerror(-r));
}

int state_open(const char *state, const char *name, bool make, struct err *err)
{
	if (!state)
		return err_set(err, ERR_state_unusable, 0,
			"there is no state directory: neither XDG_STATE_HOME nor HOME is an "
			"absolute path");
	AUTO_FD parent = open_parent(state, make);
	if (parent < 0)
		return refuse(state, NULL, parent, err);
	AUTO_FD top = open_own(parent, strrchr(state, '/') + 1, make);
	if (top < 0)
		return refuse(state, NULL, top, err);
	if (!name)
		return fd_steal(&top);
	int fd = open_own(top, name, make);
	return fd < 0 ? refuse(state, name, fd, err) : fd;
}
