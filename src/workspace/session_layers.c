/* session_layers: the note of which trees a session has layers of. Opens none of them. */
#define _GNU_SOURCE
#include "workspace/session_layers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

#define NAME  "layers"
#define FRESH ".layers"

static int broken(int r, struct err *err)
{
	return err_set(err, ERR_session_broken, -r, "the session's file '" NAME "' cannot be %s",
		r == -EINVAL ? "understood" : "used");
}

int session_layers_read(
	int dir, struct arena *arena, const char ***ret_roots, size_t *ret_count, struct err *err)
{
	AUTO_FD fd = openat(dir, NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	const char **roots = ARENA_ARRAY(arena, SESSION_LAYERS_MAX, const char *);
	size_t count = 0, len;
	struct stat st;
	char *text;
	if (fd < 0 && errno == ENOENT) {
		*ret_roots = roots;
		*ret_count = 0;
		return 0;
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return broken(-errno, err);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		return broken(-EPERM, err);
	int r = fd_read_file(arena, fd, SESSION_LAYERS_MAX * (size_t)PATH_MAX, &text, &len);
	if (r < 0)
		return broken(r, err);
	for (char *at = text; at < text + len; at += strlen(at) + 1) {
		if (*at != '/' || count == SESSION_LAYERS_MAX ||
			!memchr(at, 0, (size_t)(text + len - at)))
			return broken(-EINVAL, err);
		roots[count++] = at;
	}
	*ret_roots = roots;
	*ret_count = count;
	return 0;
}

static int write_all(int dir, const struct buf *text)
{
	AUTO_FD fd =
		openat(dir, FRESH, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : fd_write_full(fd, text->data, text->len);
	if (r == 0 && (fsync(fd) < 0 || renameat(dir, FRESH, dir, NAME) < 0))
		r = -errno;
	return r;
}

static int note(
	int dir, const char *const *roots, size_t count, struct arena *arena, struct err *err)
{
	const char **noted;
	size_t noted_count;
	AUTO_BUF text = { .max = SESSION_LAYERS_MAX * (size_t)PATH_MAX };
	if (session_layers_read(dir, arena, &noted, &noted_count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && i < noted_count; i++)
		if (strcmp(roots[i], noted[i]) != 0)
			return err_set(err, ERR_session_broken, 0,
				"the session has a layer of '%.300s', and the workspace's "
				"repository "
				"is '%.300s' now",
				noted[i], roots[i]);
	if (count <= noted_count)
		return 0;
	for (size_t i = 0; i < count; i++)
		buf_add(&text, roots[i], strlen(roots[i]) + 1);
	if (count > SESSION_LAYERS_MAX || text.full)
		return err_set(err, ERR_no_resources, 0, "too many layers for a session");
	int r = write_all(dir, &text);
	return r < 0 ? err_set(err, ERR_state_unusable, -r,
			       "the session's file '" NAME "' cannot be written: %s", strerror(-r))
		     : 0;
}

int session_layers_note(int dir, const char *const *roots, size_t count, struct err *err)
{
	struct arena arena = { 0 };
	int r = count ? note(dir, roots, count, &arena, err) : 0;
	arena_free(&arena);
	return r;
}
