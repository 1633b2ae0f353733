/*
 * layer_trees: a tree and a layer over it, made by hand in a directory of their own, and what
 * changes_find says of them as text.
 */
#ifndef AGENTBOX_TESTS_LAYER_TREES_H
#define AGENTBOX_TESTS_LAYER_TREES_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "check.h"
#include "workspace/changes.h"

#define TREE_ROOT "/home/x/tree"

struct trees {
	char top[64];
	int base;
	struct changes_layer layer;
	const char *sensitive[4], *held[4];
	size_t max;
};

/* Ends the test: without its files it can say nothing. */
static inline void trees_need(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static inline int trees_dir(int base, const char *name)
{
	trees_need(mkdirat(base, name, 0755) == 0, name);
	int fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	trees_need(fd >= 0, name);
	return fd;
}

/* In memory where that has the attributes that overlayfs uses (Linux 6.6), as it is much faster. */
static inline void trees_top(struct trees *trees)
{
	strcpy(trees->top, "/dev/shm/agentbox-layer-XXXXXX");
	if (mkdtemp(trees->top)) {
		if (setxattr(trees->top, "user.overlay.test", "", 0, 0) == 0)
			return;
		rmdir(trees->top);
	}
	strcpy(trees->top, "/tmp/agentbox-layer-XXXXXX");
	trees_need(mkdtemp(trees->top) != NULL, trees->top);
}

static inline struct trees trees_make(void)
{
	struct trees trees = { 0 };
	umask(022);
	trees_top(&trees);
	trees.base = open(trees.top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	trees_need(trees.base >= 0, trees.top);
	trees.layer.upper = trees_dir(trees.base, "upper");
	trees.layer.lower = trees_dir(trees.base, "lower");
	trees.layer.root = TREE_ROOT;
	return trees;
}

/* Remove all below a directory, also what is shut. */
static inline void trees_clear(const char *top)
{
	AUTO_BUF command = { 0 };
	buf_addf(&command, "rm -rf %s 2>/dev/null || { chmod -R u+rwx %s; rm -rf %s; }", top, top,
		top);
	trees_need(system(buf_text(&command)) == 0, top);
}

static inline void trees_remove(struct trees *trees)
{
	close(trees->layer.upper);
	if (trees->layer.lower >= 0)
		close(trees->layer.lower);
	close(trees->base);
	trees_clear(trees->top);
}

static inline void put_file(int dir, const char *path, mode_t mode, const char *text)
{
	int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	trees_need(fd >= 0, path);
	trees_need(write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
	trees_need(fchmod(fd, mode) == 0, path);
	close(fd);
}

static inline void put_dir(int dir, const char *path)
{
	trees_need(mkdirat(dir, path, 0755) == 0, path);
}

static inline void put_link(int dir, const char *path, const char *text)
{
	trees_need(symlinkat(text, dir, path) == 0, path);
}

/* Anybody may make this one device. */
static inline void put_whiteout(int dir, const char *path)
{
	trees_need(mknodat(dir, path, S_IFCHR | 0000, makedev(0, 0)) == 0, path);
}

static inline void put_mark(int dir, const char *path, const char *name, const char *value)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	trees_need(fd >= 0, path);
	trees_need(fsetxattr(fd, name, value, strlen(value), 0) == 0, name);
	close(fd);
}

static inline void add_line(struct buf *buf, const struct change *change)
{
	char type = S_ISDIR(change->mode)    ? '/'
		    : S_ISREG(change->mode)  ? ' '
		    : S_ISLNK(change->mode)  ? '@'
		    : S_ISFIFO(change->mode) ? '|'
					     : '%';
	buf_addf(buf, "%c %s%c%03o", "CMD"[change->kind], change -> path, type,
		(unsigned)change -> mode & 07777);
	if (S_ISREG(change->mode))
		buf_addf(buf, " %" PRIu64, change->size);
	if (change->target)
		buf_addf(buf, " -> %s", change->target);
	buf_addf(buf, "%s%s%s\n", change->sensitive ? " sensitive" : "",
		change->held ? " held" : "", change->escapes ? " escapes" : "");
}

/* One line for each entry, or the error's code and text. The caller frees it with buf_free. */
static inline struct buf trees_changes(const struct trees *trees)
{
	struct changes changes = { 0 };
	struct err err = { 0 };
	struct changes_rules rules = {
		.held = trees->held[0] ? trees->held : NULL,
		.sensitive = trees->sensitive[0] ? trees->sensitive : NULL,
	};
	struct buf buf = { 0 };
	if (changes_find(&trees->layer, 1, &rules, trees->max, &changes, &err) < 0) {
		buf_addf(&buf, "%s: %s\n", err_info(err.code)->name, err.text);
		return buf;
	}
	for (size_t i = 0; i < changes.count; i++)
		add_line(&buf, &changes.list[i]);
	if (changes.left_out)
		buf_addf(&buf, "left out %" PRIu64 "\n", changes.left_out);
	changes_free(&changes);
	return buf;
}

#define CHECK_CHANGES(trees, want)                                                                 \
	do {                                                                                       \
		AUTO_BUF got_buf_ = trees_changes(trees);                                          \
		CHECK_TEXT(buf_text(&got_buf_), want);                                             \
	} while (0)

#endif
