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
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/sys.h"
#include "cli/cli.h"

/* Bytes of a name in a message: the reason that stands behind it must have room as well. */
#define NAME_SHOWN 200

/* How long a named pipe without a reader is looked at, and how often. */
#define READER_PAUSE_NS 10000000
#define READER_LOOKS    200

static int unwritable(int errnum, const struct place *place, struct err *err)
{
	return err_set(err, ERR_result_unwritable, errnum,
		"the result cannot be written to %s%.*s: %s",
		place->file || !place->live ? "" : "descriptor ", NAME_SHOWN, place->name,
		strerror(errnum));
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/*
 * How much of a directory's name is the caller's own words, in which links are followed. A box
 * writes in the current directory or the workspace, so below these a link may be one that a box
 * has left: of a relative name nothing is followed, of an absolute one what leads to them. The
 * root directory is not looked at, or every absolute name would lie below it.
 */
static size_t own_words(char *dir, const char *workspace)
{
	struct stat here, there, at;
	bool with_here = stat(".", &here) == 0;
	bool with_there = workspace && stat(workspace, &there) == 0;
	if (dir[0] != '/')
		return 0;
	for (char *slash = strchr(dir + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		bool found = stat(dir, &at) == 0 && ((with_here && same_file(&at, &here)) ||
							    (with_there && same_file(&at, &there)));
		*slash = '/';
		if (found)
			return (size_t)(slash - dir);
	}
	return strlen(dir);
}

/* Say which directory in the name is the link, from the byte `from` on. */
static int refuse_link(char *dir, size_t from, const struct place *place, struct err *err)
{
	struct stat st;
	for (char *slash = strchr(dir + from + (from > 0), '/'); slash;
		slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (lstat(dir, &st) == 0 && S_ISLNK(st.st_mode)) {
			err_set(err, ERR_result_unwritable, ELOOP,
				"the directory %.*s of the result file is a symbolic link",
				NAME_SHOWN, dir);
			return err_hint_set(err, "a box may have left it; if it is meant, give "
						 "the real path, as realpath(1) prints it");
		}
		*slash = '/';
	}
	return unwritable(ELOOP, place, err);
}

/* Fill place->dir_fd with the directory that the file is in. */
static int open_directory(
	const char *path, const char *workspace, struct place *place, struct err *err)
{
	char dir[PATH_MAX];
	size_t len = (size_t)(place->base - path);
	/* realpath(3) and open(2) take no longer ones either. */
	if (strlen(path) >= sizeof dir)
		return unwritable(ENAMETOOLONG, place, err);
	memcpy(dir, path, len);
	dir[len] = 0;
	size_t own = own_words(dir, workspace);
	AUTO_FD top = -1;
	if (own > 0) {
		char next = dir[own];
		dir[own] = 0;
		top = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		dir[own] = next;
		if (top < 0)
			return unwritable(errno, place, err);
	}
	const char *rest = dir + own + strspn(dir + own, own > 0 ? "/" : "");
	place->dir_fd = sys_openat2(own > 0 ? top : AT_FDCWD, *rest ? rest : ".",
		O_PATH | O_DIRECTORY | O_CLOEXEC, SYS_RESOLVE_NO_SYMLINKS);
	if (place->dir_fd == -ELOOP)
		return refuse_link(dir, own, place, err);
	return place->dir_fd < 0 ? unwritable(-place->dir_fd, place, err) : 0;
}

/* Why the last component could not be opened. */
static int refuse_file(int errnum, const struct place *place, struct err *err)
{
	struct stat st;
	bool there = fstatat(place->dir_fd, place->base, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (errnum == ELOOP && there && S_ISLNK(st.st_mode)) {
		err_set(err, ERR_result_unwritable, ELOOP,
			"the result file %.*s is a symbolic link", NAME_SHOWN, place->name);
		return err_hint_set(err, "name the file that it leads to");
	}
	if (errnum == ENXIO && there && S_ISFIFO(st.st_mode)) {
		err_set(err, ERR_result_unwritable, ENXIO,
			"the result file %.*s is a named pipe that nobody reads", NAME_SHOWN,
			place->name);
		return err_hint_set(err, "a box may have left it: remove it, or start its reader "
					 "first");
	}
	return unwritable(errnum, place, err);
}

/*
 * Open the last component. A pipe's reader that was started at the same moment is given some time
 * to come; signals end the program here in the ordinary way.
 */
static int open_last(const struct place *place)
{
	const struct timespec pause = { .tv_nsec = READER_PAUSE_NS };
	for (int looks = 0;; looks++) {
		int fd = openat(place->dir_fd, place->base,
			O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK, 0666);
		if (fd >= 0 || errno != ENXIO || looks == READER_LOOKS)
			return fd;
		nanosleep(&pause, NULL);
	}
}

static int open_file(const char *path, const char *workspace, struct place *place, struct err *err)
{
	if (!*path)
		return err_set(err, ERR_usage, 0, "--result: the name of the file is empty");
	const char *slash = strrchr(path, '/');
	place->name = path;
	place->base = slash ? slash + 1 : path;
	place->file = true;
	if (open_directory(path, workspace, place, err) < 0)
		return -1;
	if (!*place->base)
		return unwritable(EISDIR, place, err);
	/*
	 * A box that could write here may have left anything: a link that leads to a file of the
	 * caller's, to have it overwritten, or a pipe that nobody reads, to have the caller wait.
	 */
	AUTO_FD fd = open_last(place);
	struct stat st;
	if (fd < 0)
		return refuse_file(errno, place, err);
	if (fstat(fd, &st) < 0)
		return unwritable(errno, place, err);
	if (!S_ISREG(st.st_mode)) {
		fd_close(&place->dir_fd);
		int flags = fcntl(fd, F_GETFL);
		if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
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
		result = open_file(path, options_value(options, OPTION_run_workspace), &place, err);
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
	       same_file(&ours, &theirs);
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
