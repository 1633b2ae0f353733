/*
 * changes_files: pairs of files. Follows no link, opens nothing but regular files, writes nothing.
 */
#define _GNU_SOURCE
#include "workspace/changes_files.h"
#include "workspace/changes_walk.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#define MARK "user.overlay."

/* 1 and a descriptor, 0: it is another file by now, -1: *ret_error. */
static int open_same(const struct files_place *place, enum walk_tree tree, int *ret_fd,
	struct files_error *ret_error)
{
	AUTO_FD fd = walk_open_file(tree, place->dir, place->name);
	struct stat st;
	if (fd == -ENOENT || fd == -ELOOP || fd == -ENXIO || fd == -ENOTDIR || fd == -EXDEV)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0) {
		*ret_error = (struct files_error){ tree, fd < 0 ? -fd : errno };
		return -1;
	}
	if (!S_ISREG(st.st_mode) || st.st_size != place->st.st_size)
		return 0;
	*ret_fd = fd_steal(&fd);
	return 1;
}

/* Read up to `len` bytes at `at`; short only at the end of the file. */
static ssize_t read_at(int fd, char *data, size_t len, off_t at)
{
	size_t done = 0;
	while (done < len) {
		ssize_t n = pread(fd, data + done, len - done, at + (off_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/* Where data begins from `at` on; `size`: there is none. All is data where nobody can tell. */
static off_t next_data(int fd, off_t at, off_t size)
{
	off_t data = lseek(fd, at, SEEK_DATA);
	if (data < 0)
		return errno == ENXIO ? size : at;
	return data < size ? data : size;
}

/* Where the data that `at` is in ends, in a file that has some there; `at`: it has none. */
static off_t data_end(int fd, off_t at, off_t size)
{
	if (next_data(fd, at, size) != at)
		return at;
	off_t hole = lseek(fd, at, SEEK_HOLE);
	return hole < 0 || hole > size ? size : hole;
}

/* Compare bytes from..to. 1, 0 or -1 as files_same_content. */
static int same_range(const int fds[2], off_t from, off_t to, char *const blocks[2],
	struct files_error *ret_error)
{
	while (from < to) {
		size_t len = to - from < (off_t)FILES_BLOCK ? (size_t)(to - from) : FILES_BLOCK;
		for (int i = 0; i < 2; i++) {
			ssize_t n = read_at(fds[i], blocks[i], len, from);
			if (n < 0) {
				*ret_error = (struct files_error){ i, (int)-n };
				return -1;
			}
			if ((size_t)n < len)
				return 0;
		}
		if (memcmp(blocks[0], blocks[1], len) != 0)
			return 0;
		from += (off_t)len;
	}
	return 1;
}

int files_same_content(const struct files_place *upper, const struct files_place *lower,
	char *block, char *other, struct files_error *ret_error)
{
	off_t size = upper->st.st_size;
	if (upper->st.st_dev == lower->st.st_dev && upper->st.st_ino == lower->st.st_ino)
		return 1;
	if (size == 0)
		return 1;
	AUTO_FD a = -1;
	AUTO_FD b = -1;
	int r = open_same(upper, WALK_UPPER, &a, ret_error);
	if (r > 0)
		r = open_same(lower, WALK_LOWER, &b, ret_error);
	const int fds[2] = { a, b };
	char *const blocks[2] = { block, other };
	for (off_t at = 0; r > 0 && at < size;) {
		off_t data_a = next_data(a, at, size), data_b = next_data(b, at, size);
		off_t from = data_a < data_b ? data_a : data_b;
		if (from >= size)
			break;
		off_t end_a = data_end(a, from, size), end_b = data_end(b, from, size);
		off_t to = end_a > end_b ? end_a : end_b;
		/* A file that changes under the look: go on, however little is known. */
		if (to <= from)
			to = size - from < (off_t)FILES_BLOCK ? size : from + (off_t)FILES_BLOCK;
		r = same_range(fds, from, to, blocks, ret_error);
		at = to;
	}
	return r;
}

long files_link_text(const struct files_place *place, char *block)
{
	ssize_t n = readlinkat(place->dir, place->name, block, FILES_BLOCK);
	if (n < 0)
		return -errno;
	if ((size_t)n == FILES_BLOCK)
		return -ENAMETOOLONG;
	block[n] = 0;
	return n;
}

/* One mark of overlayfs by its name; "opaque" has values, which are looked at where they count. */
static int mark_of(const char *attribute)
{
	if (strncmp(attribute, MARK, sizeof MARK - 1) != 0)
		return 0;
	const char *mark = attribute + sizeof MARK - 1;
	if (strcmp(mark, "redirect") == 0 || strcmp(mark, "metacopy") == 0)
		return -EUCLEAN;
	if (strcmp(mark, "opaque") == 0)
		return FILES_OPAQUE;
	return strcmp(mark, "whiteout") == 0 ? FILES_WHITEOUT : 0;
}

/* All of them in a list as listxattr gives it; `n`: its length, or -1 with errno. */
static int marks_of(const char *list, ssize_t n)
{
	if (n < 0)
		return errno == EOPNOTSUPP ? 0 : -errno;
	int marks = 0;
	for (const char *at = list; at < list + n; at += strlen(at) + 1) {
		int mark = mark_of(at);
		if (mark < 0)
			return mark;
		marks |= mark;
	}
	return marks;
}

int files_marks(const struct files_place *place, char *block)
{
	/* This asks for no permission to read the file, and follows no link of that name. */
	char path[320];
	int n = snprintf(path, sizeof path, "/proc/self/fd/%d/%s", place->dir, place->name);
	if (n < 0 || (size_t)n >= sizeof path)
		return -ENAMETOOLONG;
	int marks = marks_of(block, llistxattr(path, block, FILES_BLOCK));
	return marks < 0 ? marks : marks & FILES_WHITEOUT;
}

int files_dir_marks(int fd, char *block)
{
	int marks = marks_of(block, flistxattr(fd, block, FILES_BLOCK));
	if (marks < 0 || !(marks & FILES_OPAQUE))
		return marks < 0 ? marks : 0;
	char value[2] = { 0 };
	ssize_t n = fgetxattr(fd, MARK "opaque", value, sizeof value);
	if (n < 0)
		return errno == ERANGE ? -EUCLEAN : -errno;
	if (n == 1 && value[0] == 'y')
		return FILES_OPAQUE;
	return n == 1 && value[0] == 'x' ? FILES_XWHITE : -EUCLEAN;
}

/* The next component of a path that is no "." of either kind; its length, 0 at the end. */
static size_t component(const char **at)
{
	for (;;) {
		*at += strspn(*at, "/");
		size_t len = strcspn(*at, "/");
		if (len != 1 || **at != '.')
			return len;
		*at += 1;
	}
}

static bool is_up(const char *name, size_t len)
{
	return len == 2 && name[0] == '.' && name[1] == '.';
}

/* ".." may be at the beginning only, and as often as there are directories to leave. */
static bool climbs_out(const char *text, size_t depth)
{
	bool named = false;
	for (size_t len; (len = component(&text)) > 0; text += len) {
		if (!is_up(text, len))
			named = true;
		else if (named || depth-- == 0)
			return true;
	}
	return false;
}

bool files_link_escapes(const char *root, const char *path, const char *text)
{
	if (*text != '/') {
		size_t depth = 0;
		for (const char *p = path; *p; p++)
			depth += *p == '/';
		return climbs_out(text, depth);
	}
	for (size_t len, want; (want = component(&root)) > 0; root += want, text += len) {
		len = component(&text);
		if (len != want || memcmp(root, text, len) != 0)
			return true;
	}
	return climbs_out(text, 0);
}
