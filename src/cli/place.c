/*
 * place: where a result goes. Opened before anything runs, so that a result that cannot be
 * delivered stops the run; written once, at the end, when nothing of the box is left.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "cli/cli.h"

static int unwritable(int errnum, const struct place *place, struct err *err)
{
	return err_set(err, ERR_result_unwritable, errnum,
		"the result cannot be written to %s%s: %s",
		place->file || !place->live ? "" : "descriptor ", place->name, strerror(errnum));
}

static int open_file(const char *path, struct place *place, struct err *err)
{
	if (!*path)
		return err_set(err, ERR_usage, 0, "--result: the name of the file is empty");
	/*
	 * No link is followed: a box that could write here may have left one that leads to a file
	 * of the caller's, to have it overwritten.
	 */
	place->name = path;
	place->file = true;
	AUTO_FD fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW, 0666);
	if (fd < 0 && errno == ELOOP) {
		err_set(err, ERR_result_unwritable, ELOOP, "the result file %s is a symbolic link",
			path);
		return err_hint_set(err, "name the file that it leads to");
	}
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return unwritable(errno, place, err);
	const char *slash = strrchr(path, '/');
	place->base = slash ? slash + 1 : path;
	if (S_ISREG(st.st_mode)) {
		/* The path was opened, so it is shorter than PATH_MAX. */
		char dir[PATH_MAX] = ".";
		if (slash)
			memccpy(dir, path, 0, (size_t)(place->base - path));
		place->dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (place->dir_fd < 0)
			return unwritable(errno, place, err);
	}
	place->fd = fd_steal(&fd);
	return 0;
}

/* A descriptor of the caller's: is it open, and for writing? */
static int take_descriptor(int fd, struct place *place, struct err *err)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return unwritable(errno, place, err);
	if ((flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH))
		return unwritable(EBADF, place, err);
	/* The command must not have it; 1 and 2 are replaced in the box anyway. */
	if (fd > STDERR_FILENO && fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return unwritable(errno, place, err);
	place->fd = fd;
	return 0;
}

/*
 * The number in a name for one of our own descriptors, or NULL. To open such a name would make a
 * second file offset (and fails for a socket); the descriptor itself is what is meant.
 */
static const char *descriptor_in(const char *path)
{
	static const char *const tops[] = { "/dev/fd/", "/proc/self/fd/" };
	if (strcmp(path, "/dev/stdout") == 0)
		return "1";
	if (strcmp(path, "/dev/stderr") == 0)
		return "2";
	for (size_t i = 0; i < sizeof tops / sizeof *tops; i++) {
		size_t len = strlen(tops[i]);
		if (strncmp(path, tops[i], len) == 0)
			return path + len;
	}
	return NULL;
}

static int open_descriptor(const char *number, struct place *place, struct err *err)
{
	long fd = -1;
	if (parse_number(number, INT_MAX, &fd) < 0)
		return err_set(
			err, ERR_usage, 0, "\"%s\" is not the number of a descriptor", number);
	if (fd == STDIN_FILENO)
		return err_set(
			err, ERR_usage, 0, "descriptor 0 is stdin, not a place for the result");
	place->name = number;
	return take_descriptor((int)fd, place, err);
}

int place_open(const struct options *options, struct place *ret_place, struct err *err)
{
	struct place place = PLACE_NONE;
	const char *path = options_value(options, OPTION_run_result);
	const char *number = options_value(options, OPTION_run_result_fd);
	if (path && number)
		return err_set(err, ERR_usage, 0, "--result and --result-fd exclude each other");
	if (path && descriptor_in(path))
		number = descriptor_in(path);
	place.live = path || number;
	int result;
	if (number)
		result = open_descriptor(number, &place, err);
	else if (path)
		result = open_file(path, &place, err);
	else
		result = take_descriptor(STDOUT_FILENO, &place, err);
	if (result < 0) {
		place_close(&place);
		return -1;
	}
	*ret_place = place;
	return 0;
}

/* Is the name still that of the file that we hold? */
static bool still_there(const struct place *place)
{
	struct stat ours, theirs;
	return fstat(place->fd, &ours) == 0 &&
	       fstatat(place->dir_fd, place->base, &theirs, AT_SYMLINK_NOFOLLOW) == 0 &&
	       ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

static int replace_file(struct place *place)
{
	if (unlinkat(place->dir_fd, place->base, 0) < 0 && errno != ENOENT)
		return -errno;
	int fd = openat(place->dir_fd, place->base,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	fd_close(&place->fd);
	place->fd = fd;
	return 0;
}

int place_write(struct place *place, const struct buf *text, struct err *err)
{
	int error = 0;
	if (place->dir_fd >= 0) {
		if (!still_there(place))
			error = replace_file(place);
		else if (ftruncate(place->fd, 0) < 0)
			error = -errno;
	}
	if (!error)
		error = say_all(place->fd, buf_text(text), text->len);
	if (error)
		return unwritable(-error, place, err);
	return 0;
}

void place_close(struct place *place)
{
	if (place->file)
		fd_close(&place->fd);
	fd_close(&place->dir_fd);
	*place = PLACE_NONE;
}
