/*
 * view_write: changes a view's trees, in such a way that at each moment every name has what it had
 * before or what it is to have: files are made in the stage and renamed to their places. Where that
 * is another file system (a workspace that is written directly), beside their places.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "workspace/view.h"

#define STAGED   "directory" /* in the stage: a directory in the making */
#define EXCHANGE 2u          /* RENAME_EXCHANGE */

static int exchange(int from, const char *name, int to, const char *to_name)
{
	return (int)sys_ret(syscall(SYS_renameat2, from, name, to, to_name, EXCHANGE));
}

/*
 * Attributes and access lists of a directory below, which the one that stands for it keeps; not the
 * marks of a layer, and not what only the kernel may set.
 */
static int copy_attributes(int from, int to)
{
	static const char *const left[] = { "user.overlay.", "trusted.", "security." };
	char path[32], names[8192], value[8192];
	snprintf(path, sizeof path, "/proc/self/fd/%d", from);
	ssize_t len = listxattr(path, names, sizeof names);
	if (len < 0)
		return errno == EOPNOTSUPP ? 0 : -errno;
	for (const char *name = names; name < names + len; name += strlen(name) + 1) {
		bool skip = false;
		for (size_t i = 0; i < sizeof left / sizeof *left; i++)
			skip |= strncmp(name, left[i], strlen(left[i])) == 0;
		ssize_t size = skip ? 0 : getxattr(path, name, value, sizeof value);
		if (size < 0 || (!skip && fsetxattr(to, name, value, (size_t)size, 0) < 0))
			return -errno;
	}
	return 0;
}

/* A new directory's attributes: those of the one below that it stands for, or its own. */
static int dress(int fd, const struct view_tree *tree, const struct view_entry *entry)
{
	const struct stat *below = entry ? &entry->st : NULL;
	if (geteuid() == 0 && fchown(fd, below ? below->st_uid : tree->owner,
				      below ? below->st_gid : tree->group) < 0)
		return -errno;
	if (fchmod(fd, below ? below->st_mode & 07777 : 0755) < 0)
		return -errno;
	const struct timespec times[2] = { below ? below->st_atim : (struct timespec){ 0 },
		below ? below->st_mtim : (struct timespec){ 0 } };
	return below && futimens(fd, times) < 0 ? -errno : 0;
}

/* Make a directory in `at`, complete but for its place. */
static int make_at(int at, const char *name, const struct view_tree *tree,
	const struct view_entry *below, bool opaque)
{
	if (mkdirat(at, name, 0700) < 0)
		return -errno;
	AUTO_FD fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = fd < 0 ? -errno : 0;
	if (r == 0 && opaque && fsetxattr(fd, "user.overlay.opaque", "y", 1, 0) < 0)
		r = -errno;
	if (r == 0 && below)
		r = copy_attributes(below->fd, fd);
	if (r == 0)
		r = dress(fd, tree, below);
	if (r < 0)
		(void)unlinkat(at, name, AT_REMOVEDIR);
	return r;
}

/*
 * A directory of the upper tree, for one that is only below (`below`), or a new one. Where the
 * layer takes the name away (`erased`) it must not show what is below.
 */
static int make_dir(const struct view *view, const struct view_dir *dir, const char *name,
	const struct view_entry *below, bool erased)
{
	/* In the box, too, nobody could give it to its owner. */
	if (below && geteuid() != 0 && below->st.st_uid != geteuid())
		return -EPERM;
	int r = make_at(view->stage, STAGED, dir->tree, below, erased);
	if (r < 0)
		return r;
	r = erased ? exchange(view->stage, STAGED, dir->upper, name)
		   : sys_rename_noreplace(view->stage, STAGED, dir->upper, name);
	(void)unlinkat(view->stage, STAGED, erased && r == 0 ? 0 : AT_REMOVEDIR);
	return r == -EXDEV ? make_at(dir->upper, name, dir->tree, below, false) : r;
}

/* Is a directory that is only below on another mount, which a layer cannot cover? */
static bool other_mount(const struct view_dir *dir, const struct stat *below)
{
	struct stat st;
	return fstat(dir->tree->lower, &st) < 0 || st.st_dev != below->st_dev;
}

/* Go into a directory of the upper tree, which is made if need be. */
static int enter(const struct view *view, struct view_dir *dir, const char *name, bool parents)
{
	struct view_entry entry = VIEW_ENTRY_NONE;
	int r = view_lookup(dir, name, &entry);
	if (r == 0 && entry.st.st_mode && !S_ISDIR(entry.st.st_mode))
		r = -ENOTDIR;
	else if (r == 0 && !entry.st.st_mode && !parents)
		r = -ENOENT;
	else if (r == 0 && entry.dir.upper < 0 && entry.st.st_mode && other_mount(dir, &entry.st))
		r = -EROFS;
	if (r == 0 && entry.dir.upper < 0) {
		r = make_dir(view, dir, name, entry.st.st_mode ? &entry : NULL, entry.erased);
		view_entry_close(&entry);
		if (r == 0)
			r = view_lookup(dir, name, &entry);
		if (r == 0 && entry.dir.upper < 0)
			r = -ENOTDIR;
	}
	if (r == 0) {
		view_dir_close(dir);
		*dir = entry.dir;
		entry.dir = VIEW_DIR_NONE;
	}
	view_entry_close(&entry);
	return r;
}

/* The directory at a clean path, with its upper part. */
static int open_upper(const struct view *view, const char *path, bool parents, struct view_dir *ret)
{
	const struct view_tree *tree = view_tree_of(view, path);
	struct view_dir dir = VIEW_DIR_NONE;
	char name[NAME_MAX + 1];
	if (!tree || tree->upper < 0)
		return tree ? -EROFS : -ENOENT;
	int r = view_open_dir(view, tree->root, &dir);
	const char *at = path + strlen(tree->root);
	for (at += *at == '/'; r == 0 && *at;) {
		size_t len = strcspn(at, "/");
		if (len >= sizeof name) {
			r = -ENAMETOOLONG;
			break;
		}
		memcpy(name, at, len);
		name[len] = 0;
		r = enter(view, &dir, name, parents);
		at += len + (at[len] == '/');
	}
	if (r == 0)
		*ret = dir;
	else
		view_dir_close(&dir);
	return r;
}

static int copy_data(int from, int to)
{
	char block[65536];
	ssize_t n;
	while ((n = fd_read_full(from, block, sizeof block)) > 0) {
		int r = fd_write_full(to, block, (size_t)n);
		if (r < 0)
			return r;
	}
	return (int)n;
}

static int copy_file(int from, const char *name, int to, const char *to_name)
{
	AUTO_FD in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	if (in < 0 || fstat(in, &st) < 0)
		return -errno;
	AUTO_FD out = openat(to, to_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0)
		return -errno;
	const struct timespec times[2] = { st.st_atim, st.st_mtim };
	int r = copy_data(in, out);
	if (r == 0 && ((geteuid() == 0 && fchown(out, st.st_uid, st.st_gid) < 0) ||
			      fchmod(out, st.st_mode & 0777) < 0 || futimens(out, times) < 0 ||
			      fsync(out) < 0))
		r = -errno;
	return r;
}

static int copy_link(int from, const char *name, int to, const char *to_name)
{
	char text[PATH_MAX];
	ssize_t len = readlinkat(from, name, text, sizeof text - 1);
	if (len < 0)
		return -errno;
	text[len] = 0;
	struct stat st;
	if (symlinkat(text, to, to_name) < 0 || fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	bool root = geteuid() == 0;
	return root && fchownat(to, to_name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno
											    : 0;
}

/* On another file system: copied beside its place, then renamed. */
static int place_copy(int from, const char *name, mode_t mode, int to, const char *to_name)
{
	char beside[64];
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(beside, sizeof beside, ".agentbox-%d-%lld%09ld", (int)getpid(),
		(long long)now.tv_sec, now.tv_nsec);
	int r = S_ISLNK(mode) ? copy_link(from, name, to, beside)
			      : copy_file(from, name, to, beside);
	if (r == 0 && renameat(to, beside, to, to_name) < 0)
		r = -errno;
	if (r < 0 && r != -EEXIST)
		(void)unlinkat(to, beside, 0);
	else if (r == 0)
		(void)unlinkat(from, name, 0);
	return r;
}

int view_put(const struct view *view, int from, const char *name, const char *path, bool parents)
{
	const char *last = strrchr(path, '/');
	char parent[PATH_MAX];
	struct view_dir dir = VIEW_DIR_NONE;
	struct view_entry entry = VIEW_ENTRY_NONE;
	struct stat st;
	if ((size_t)(last - path) >= sizeof parent)
		return -ENAMETOOLONG;
	memcpy(parent, path, (size_t)(last - path));
	parent[last - path] = 0;
	const struct view_tree *tree = view_tree_of(view, path);
	if (!tree || strcmp(tree->root, path) == 0)
		return tree ? -EISDIR : -ENOENT;
	int r = open_upper(view, parent, parents, &dir);
	if (r == 0)
		r = view_lookup(&dir, last + 1, &entry);
	if (r == 0 && S_ISDIR(entry.st.st_mode))
		r = -EISDIR;
	if (r == 0 && fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	if (r == 0 && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		r = -EINVAL;
	if (r == 0 && renameat(from, name, dir.upper, last + 1) < 0)
		r = -errno;
	if (r == -EXDEV)
		r = place_copy(from, name, st.st_mode, dir.upper, last + 1);
	view_entry_close(&entry);
	view_dir_close(&dir);
	return r;
}

int view_make_dir(const struct view *view, const char *path)
{
	struct view_dir dir = VIEW_DIR_NONE;
	int r = open_upper(view, path, true, &dir);
	view_dir_close(&dir);
	return r;
}

/* A directory that is new, and what it is to have when it is filled. */
struct made {
	const char *path;
	struct stat st;
};

/* All of a staged directory on its way. */
struct moving {
	const struct view *view;
	int from;
	const char *to;
	bool dry; /* only look */
	struct arena arena;
	struct made *made;
	size_t made_count;
	struct err *err;
};

#define STAGE_ROOT "/stage"

static int unsafe(struct moving *moving, const char *name, const char *why)
{
	err_set(moving->err, ERR_unsafe_archive, 0, "unsafe archive: '%.300s' %s", name, why);
	return 1;
}

static int failed(struct moving *moving, const char *path, int r)
{
	enum err_code code =
		r == -ENOSPC || r == -EDQUOT || r == -EMFILE ? ERR_no_resources : ERR_session_path;
	err_set(moving->err, code, -r, "'%.300s': %s", path, strerror(-r));
	return 1;
}

/* What is at a path now; 0 for nothing. A way through a link is none. */
static int mode_at(const struct view *view, const char *path, mode_t *ret_mode)
{
	char parent[PATH_MAX];
	struct view_dir dir = VIEW_DIR_NONE;
	struct view_entry entry = VIEW_ENTRY_NONE;
	const char *last = strrchr(path, '/');
	const struct view_tree *tree = view_tree_of(view, path);
	*ret_mode = S_IFDIR;
	if (tree && strcmp(tree->root, path) == 0)
		return 0;
	memcpy(parent, path, (size_t)(last - path));
	parent[last - path] = 0;
	int r = view_open_dir(view, parent, &dir);
	if (r == 0)
		r = view_lookup(&dir, last + 1, &entry);
	*ret_mode = r == 0 ? entry.st.st_mode & S_IFMT : 0;
	view_entry_close(&entry);
	view_dir_close(&dir);
	return r == -ENOENT ? 0 : r;
}

/* A new directory gets its mode at the end; until then what is in it must be within reach. */
static int remember(
	struct moving *moving, const char *name, const char *path, const struct stat *st)
{
	struct made *made =
		arena_push(&moving->arena, &moving->made, &moving->made_count, sizeof *made);
	made->path = arena_strdup(&moving->arena, path);
	made->st = *st;
	return fchmodat(moving->from, name, 0700, 0) < 0 ? failed(moving, path, -errno) : 0;
}

static int judge(struct moving *moving, const char *name, const char *path, const struct stat *st)
{
	mode_t mode = st->st_mode;
	const struct view_tree *tree = view_tree_of(moving->view, path);
	enum view_held held = view_held(moving->view, path, true);
	mode_t there;
	if (!S_ISDIR(mode) && !S_ISREG(mode) && !S_ISLNK(mode))
		return unsafe(moving, name, "is neither a file, a directory nor a link");
	if (!tree || tree->upper < 0)
		return failed(moving, path, -EROFS);
	int r = mode_at(moving->view, path, &there);
	if (r == -ENOTDIR || (r == 0 && there && S_ISDIR(mode) && !S_ISDIR(there)))
		return unsafe(moving, name,
			S_ISLNK(there) ? "is a directory, but a link in the session"
				       : "is a directory, but not one in the session");
	if (r < 0)
		return failed(moving, path, r);
	if (S_ISDIR(there) && !S_ISDIR(mode))
		return unsafe(moving, name, "would replace a directory of the session");
	if (held != VIEW_FREE && !(S_ISDIR(mode) && S_ISDIR(there))) {
		err_set(moving->err, ERR_session_path, EACCES, "'%.300s' is %s by the policy", path,
			held == VIEW_HIDDEN ? "hidden" : "protected");
		return 1;
	}
	if (S_ISDIR(mode) && !there)
		return remember(moving, name, path, st);
	return S_ISDIR(mode) && fchmodat(moving->from, name, 0700, 0) < 0
		       ? failed(moving, path, -errno)
		       : 0;
}

static int move(struct moving *moving, const char *name, const char *path, mode_t mode)
{
	int r = S_ISDIR(mode) ? view_make_dir(moving->view, path)
			      : view_put(moving->view, moving->from, name, path, true);
	return r < 0 ? failed(moving, path, r) : 0;
}

static int each(void *data, const char *name, const struct view_entry *entry, int errnum)
{
	struct moving *moving = data;
	char path[PATH_MAX];
	int len = snprintf(path, sizeof path, "%s/%s", moving->to, name);
	if (errnum || len < 0 || (size_t)len >= sizeof path)
		return failed(moving, name, errnum ? -errnum : -ENAMETOOLONG);
	return moving->dry ? judge(moving, name, path, &entry->st)
			   : move(moving, name, path, entry->st.st_mode);
}

/* The last one first: a directory may be one that nobody may enter then. */
static void finish(struct moving *moving)
{
	for (size_t i = moving->made_count; i-- > 0;) {
		const struct made *made = &moving->made[i];
		const struct timespec times[2] = { made->st.st_atim, made->st.st_mtim };
		struct view_dir dir = VIEW_DIR_NONE;
		if (view_open_dir(moving->view, made->path, &dir) < 0)
			continue;
		AUTO_FD fd = openat(dir.upper, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0) {
			(void)fchmod(fd, made->st.st_mode & 0777);
			(void)futimens(fd, times);
		}
		view_dir_close(&dir);
	}
}

int view_put_all(const struct view *view, int from, const char *path, struct err *err)
{
	struct moving moving = { .view = view, .from = from, .to = path, .dry = true, .err = err };
	const struct view stage = {
		.trees = { { .root = STAGE_ROOT, .upper = from, .lower = -1 } },
		.count = 1,
		.stage = -1,
	};
	int r = view_walk(&stage, STAGE_ROOT, true, each, &moving);
	if (r == 0) {
		moving.dry = false;
		r = view_make_dir(view, path);
		if (r == 0)
			r = view_walk(&stage, STAGE_ROOT, true, each, &moving);
		finish(&moving);
	}
	arena_free(&moving.arena);
	if (r < 0)
		failed(&moving, path, r);
	return r == 0 ? 0 : -1;
}
