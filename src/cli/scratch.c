/* scratch: a directory that is made and removed again. */
#define _GNU_SOURCE
#include "cli/scratch.h"
#include "base/fd.h"
#include "base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int scratch_make(struct arena *arena, const char **ret_path, struct err *err)
{
	const char *base = getenv("TMPDIR");
	char real[PATH_MAX];
	if (!base || *base != '/')
		base = "/tmp";
	if (!realpath(base, real))
		return err_set(err, ERR_no_resources, errno, "no temporary directory: %s: %s", base,
			strerror(errno));
	char *path = arena_printf(arena, "%s/agentbox-XXXXXX", real);
	if (!mkdtemp(path))
		return err_set(err, ERR_no_resources, errno, "no directory can be made in %s: %s",
			real, strerror(errno));
	*ret_path = path;
	return 0;
}

static DIR *open_dir(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static bool is_directory(int parent, const char *name)
{
	struct stat st;
	return fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/*
 * Remove the files in a directory and move the directories in it to `top` under new names, so that
 * each is emptied from there in its turn and no tree is deeper than two.
 */
static int empty_into(DIR *dir, int top, unsigned long *counter)
{
	int fd = dirfd(dir);
	struct dirent *entry;
	while ((errno = 0, entry = readdir(dir))) {
		char name[32];
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (!is_directory(fd, entry->d_name)) {
			if (unlinkat(fd, entry->d_name, 0) < 0)
				return -errno;
			continue;
		}
		/* Its own mode must let us in, and let its ".." be changed. */
		if (fchmodat(fd, entry->d_name, 0700, 0) < 0)
			return -errno;
		do
			snprintf(name, sizeof name, ".gone-%lu", ++*counter);
		while (sys_rename_noreplace(fd, entry->d_name, top, name) == -EEXIST);
		if (is_directory(fd, entry->d_name))
			return -EACCES;
	}
	return -errno;
}

/* One directory of the top: empty it and remove it. */
static int remove_dir(int top, const char *name, unsigned long *counter)
{
	if (fchmodat(top, name, 0700, 0) < 0)
		return -errno;
	DIR *dir = open_dir(top, name);
	if (!dir)
		return -errno;
	int r = empty_into(dir, top, counter);
	closedir(dir);
	if (r < 0)
		return r;
	return unlinkat(top, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* One pass over the top; *ret_left: whether anything was there to remove. */
static int remove_entries(int top, unsigned long *counter, bool *ret_left)
{
	DIR *dir = open_dir(top, ".");
	if (!dir)
		return -errno;
	int r = 0;
	struct dirent *entry;
	*ret_left = false;
	while (r == 0 && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		*ret_left = true;
		if (is_directory(top, entry->d_name))
			r = remove_dir(top, entry->d_name, counter);
		else if (unlinkat(top, entry->d_name, 0) < 0)
			r = -errno;
	}
	closedir(dir);
	return r;
}

int scratch_remove(const char *path)
{
	unsigned long counter = 0;
	bool left = true;
	if (chmod(path, 0700) < 0)
		return -errno;
	AUTO_FD top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (top < 0)
		return -errno;
	while (left) {
		int r = remove_entries(top, &counter, &left);
		if (r < 0)
			return r;
	}
	return rmdir(path) < 0 ? -errno : 0;
}
