/*
 * source: finding and reading the files of policies. Only regular files are read, and none that is
 * larger than a policy may be; a pipe or device cannot make agentbox wait.
 */
#define _GNU_SOURCE
#include "policy/source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "policy/lookup_hint.h"
#include "policy/path.h"
#include "policy/value.h"

const char *source_cwd(struct loader *l)
{
	char cwd[PATH_MAX];
	/* "(unreachable)/..." is what the kernel says of a directory outside the root. */
	if (!l->cwd && getcwd(cwd, sizeof cwd) && cwd[0] == '/')
		l->cwd = arena_strdup(l->arena, cwd);
	return l->cwd;
}

const char *source_dir(struct loader *l, const char *file)
{
	const char *slash = strrchr(file, '/');
	const char *dir = slash ? arena_strndup(l->arena, file, (size_t)(slash - file) + 1) : "";
	if (dir[0] != '/') {
		const char *cwd = source_cwd(l);
		if (!cwd)
			return NULL;
		dir = arena_printf(l->arena, "%s/%s", cwd, dir);
	}
	const char *why;
	return path_absolute(l->arena, dir, NULL, NULL, &why);
}

bool source_is_file(const char *name)
{
	size_t len = strlen(name);
	return strchr(name, '/') || (len >= 5 && strcmp(name + len - 5, ".yaml") == 0) ||
	       (len >= 4 && strcmp(name + len - 4, ".yml") == 0);
}

void source_dirs(struct loader *l, const char *ret_dirs[3])
{
	const char *home = l->env->config_home;
	ret_dirs[0] = home ? arena_printf(l->arena, "%s/agentbox/policies", home) : NULL;
	ret_dirs[1] = l->env->system_dir;
	ret_dirs[2] = l->env->data_dir;
}

/* The place of an error: the element of extends that names the file, if there is one. */
static int placed(struct loader *l, const struct node *at)
{
	if (at)
		err_at(l->err, at->source->file, at->line, at->column);
	return -1;
}

/* O_NONBLOCK: opening a pipe without a writer must not wait. */
static int try_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

static int unreadable(struct loader *l, const char *path, const struct node *at, int errnum)
{
	err_set(l->err, ERR_policy_unreadable, errnum, "cannot read the policy %s: %s", path,
		strerror(errnum));
	return placed(l, at);
}

static int open_file(
	struct loader *l, const char *name, const struct node *at, struct source_file *ret)
{
	const char *why = NULL;
	const char *path = name;
	if (at)
		path = path_absolute(l->arena, name, l->env->home, at->source->dir, &why);
	if (!path)
		return node_error(at, false, l->err, "'%s': %s", name, why);
	int fd = try_open(path);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ENAMETOOLONG) {
		const char *dirs[3];
		source_dirs(l, dirs);
		err_set(l->err, ERR_policy_not_found, -fd, "there is no policy file %s", path);
		hint_no_file(l, name, at, path, dirs);
		return placed(l, at);
	}
	if (fd < 0)
		return unreadable(l, path, at, -fd);
	ret->source.file = path;
	return fd;
}

static int open_name(
	struct loader *l, const char *name, const struct node *at, struct source_file *ret)
{
	const char *dirs[3];
	char shown[SHOWN_MAX];
	if (!value_is_policy(name)) {
		err_set(l->err, ERR_policy_not_found, 0, "'%s' is not the name of a policy",
			text_shown(name, shown));
		hint_bad_name(l, name, at);
		return placed(l, at);
	}
	source_dirs(l, dirs);
	for (size_t i = 0; i < 3; i++) {
		if (!dirs[i])
			continue;
		const char *path = arena_printf(l->arena, "%s/%s.yaml", dirs[i], name);
		int fd = try_open(path);
		/*
		 * A directory that we may not even search holds no policy of ours ($HOME may be
		 * somebody else's after a change of user); a file that is there must be read.
		 */
		struct stat st;
		if (fd == -EACCES && lstat(path, &st) < 0 && errno == EACCES)
			fd = -ENOENT;
		if (fd < 0 && fd != -ENOENT && fd != -ENOTDIR)
			return unreadable(l, path, at, -fd);
		if (fd < 0)
			continue;
		ret->source.file = path;
		return fd;
	}
	AUTO_BUF looked = { .max = 400 };
	for (size_t i = 0; i < 3; i++)
		if (dirs[i])
			buf_addf(&looked, "%s%s", looked.len ? ", " : "", dirs[i]);
	err_set(l->err, ERR_policy_not_found, 0, "there is no policy '%s' in %s", name,
		looked.len ? buf_text(&looked) : "any directory: none is known");
	hint_no_name(l, name, at, dirs);
	return placed(l, at);
}

int source_open(struct loader *l, const char *name, const struct node *at, struct source_file *ret,
	int *ret_fd)
{
	AUTO_FD fd =
		source_is_file(name) ? open_file(l, name, at, ret) : open_name(l, name, at, ret);
	if (fd < 0)
		return -1;
	struct stat st;
	if (fstat(fd, &st) < 0)
		return unreadable(l, ret->source.file, at, errno);
	if (!S_ISREG(st.st_mode)) {
		err_set(l->err, ERR_policy_unreadable, 0, "the policy %s is %s, not a regular file",
			ret->source.file,
			S_ISDIR(st.st_mode)    ? "a directory"
			: S_ISFIFO(st.st_mode) ? "a pipe"
					       : "a device or socket");
		return placed(l, at);
	}
	if (st.st_size > (off_t)POLICY_FILE_MAX) {
		err_set(l->err, ERR_policy_invalid, EFBIG,
			"the policy %s is %lld bytes long; the maximum is %zu", ret->source.file,
			(long long)st.st_size, POLICY_FILE_MAX);
		return err_at(l->err, ret->source.file, 0, 0);
	}
	ret->source.dir = source_dir(l, ret->source.file);
	ret->dev = st.st_dev;
	ret->ino = st.st_ino;
	*ret_fd = fd_steal(&fd);
	return 0;
}

int source_read(struct loader *l, int fd, struct source_file *file)
{
	char *text;
	int r = fd_read_file(l->arena, fd, POLICY_FILE_MAX, &text, &file->len);
	if (r == -EFBIG) {
		err_set(l->err, ERR_policy_invalid, EFBIG, "the policy %s is longer than %zu bytes",
			file->source.file, POLICY_FILE_MAX);
		return err_at(l->err, file->source.file, 0, 0);
	}
	if (r < 0)
		return unreadable(l, file->source.file, NULL, -r);
	file->text = text;
	return 0;
}
