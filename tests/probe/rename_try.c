/*
 * rename_try: renames as tree_rename() does, and says how it went: "ok" or the error's name.
 *
 *	rename_try plain|noreplace|exchange|whiteout|kernel OLD NEW
 *
 * kernel: by renameat2 alone. OLD and NEW are paths; their directories are opened here.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "workspace/tree.h"

/* Open the directory of a path, and find the name in it. */
static int split(char *path, const char **ret_name)
{
	char *slash = strrchr(path, '/');
	int fd = AT_FDCWD;
	*ret_name = path;
	if (!slash)
		return fd;
	*ret_name = slash + 1;
	*slash = '\0';
	fd = open(*path ? path : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		perror(path);
		exit(2);
	}
	return fd;
}

int main(int argc, char **argv)
{
	static const char *const words[] = { "plain", "noreplace", "exchange", "", "whiteout" };
	if (argc != 4)
		return 2;
	unsigned flags = 0;
	bool kernel = strcmp(argv[1], "kernel") == 0;
	while (!kernel && flags < 4 && strcmp(argv[1], words[flags]) != 0)
		flags++;
	const char *old, *new_name;
	int old_dir = split(argv[2], &old), new_dir = split(argv[3], &new_name), r;
	if (kernel)
		r = (int)sys_ret(syscall(SYS_renameat2, old_dir, old, new_dir, new_name, 0));
	else
		r = tree_rename(old_dir, old, new_dir, new_name, flags);
	puts(r == 0 ? "ok" : strerrorname_np(-r));
	return r == 0 ? 0 : 1;
}
