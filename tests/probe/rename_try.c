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
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "workspace/tree.h"

static int open_parent(const char *path)
{
	char *copy = strdup(path);
	int fd = open(dirname(copy), O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		perror(path);
		exit(2);
	}
	free(copy);
	return fd;
}

int main(int argc, char **argv)
{
	static const char *const words[] = { "plain", "noreplace", "exchange", "", "whiteout" };
	if (argc != 4)
		return 2;
	unsigned flags = 0;
	while (flags < 4 && strcmp(argv[1], words[flags]) != 0)
		flags++;
	if (strcmp(argv[1], "kernel") == 0)
		flags = 0;
	char *old = strdup(argv[2]), *new_name = strdup(argv[3]);
	int old_dir = open_parent(argv[2]), new_dir = open_parent(argv[3]), r;
	if (strcmp(argv[1], "kernel") == 0)
		r = syscall(SYS_renameat2, old_dir, basename(old), new_dir, basename(new_name), 0) <
				    0
			    ? -errno
			    : 0;
	else
		r = tree_rename(old_dir, basename(old), new_dir, basename(new_name), flags);
	puts(r == 0 ? "ok" : strerrorname_np(-r));
	return r == 0 ? 0 : 1;
}
