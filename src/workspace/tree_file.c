/*
 * tree_file: opening one regular file. It never opens anything that was not seen to be a regular
 * file, and waits for nobody.
 */
#define _GNU_SOURCE
#include "workspace/tree_file.h"

/* By an O_PATH descriptor, so that what is made readable is what is opened. */
static int open_unreadable(int dir, const char *name, mode_t *ret_mode)
{
	int path = tree_open_path(dir, name);
	if (path < 0)
		return path;
	struct tree_stat st;
	int fd = tree_stat_at(path, "", &st);
	if (fd == 0 && !S_ISREG(st.mode))
		fd = -ESTALE;
	if (fd == 0 && (st.mode & 0400))
		fd = -EACCES; /* the mode is not what keeps us out */
	if (fd == 0)
		fd = tree_path_chmod(path, (st.mode & 07777) | 0400);
	if (fd == -EPERM) /* not the owner */
		fd = -EACCES;
	if (fd == 0) {
		char proc[32];
		tree_proc_name(path, proc);
		fd = (int)sys_bare6(SYS_openat, AT_FDCWD, (long)proc,
			O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0, 0, 0);
		if (fd == -ENOENT || fd == -ENOTDIR) /* no /proc */
			fd = tree_open_at(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
		if (fd < 0)
			(void)tree_path_chmod(path, st.mode & 07777);
		*ret_mode = st.mode;
	}
	tree_close(&path);
	return fd;
}

int tree_file_open(int dir, const char *name, struct tree_stat *ret, mode_t *ret_mode)
{
	*ret_mode = 0;
	int fd = tree_open_at(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd == -EACCES)
		fd = open_unreadable(dir, name, ret_mode);
	if (fd < 0)
		return fd == -ELOOP || fd == -ENXIO ? -ESTALE : fd;
	int r = tree_stat_at(fd, "", ret);
	if (r == 0 && !S_ISREG(ret->mode))
		r = -ESTALE;
	if (r == 0 && *ret_mode)
		ret->mode = (uint16_t)*ret_mode;
	if (r < 0)
		tree_close(&fd);
	return r < 0 ? r : fd;
}
