/*
 * Private layers, a part of stage mounts: overlayfs over a tree of the host, or a copy of it. Names
 * that are hidden are taken away before the command could see them. Works below the box's own root,
 * which nobody else has yet, and reads the host's tree by descriptor, following nothing.
 */
#define _GNU_SOURCE
#include "box/child.h"
#include "base/fd.h"
#include "base/sys.h"
#include "box/sync.h"
#include "workspace/tree.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Make `to` look as `from` does: overlayfs takes a directory's attributes from its highest layer.
 */
static int dress_like(int from, int to)
{
	struct stat st;
	if (fstat(from, &st) < 0)
		return -errno;
	const struct timespec times[2] = { st.st_atim, st.st_mtim };
	if (fchmod(to, st.st_mode & 01777) < 0 || futimens(to, times) < 0)
		return -errno;
	return 0;
}

/* A directory of the tree, once more in the layer. 0 or -errno. */
static int same_directory(int lower, int upper, const char *name)
{
	if (mkdirat(upper, name, 0700) < 0)
		return errno == EEXIST ? 0 : -errno;
	AUTO_FD from = openat(lower, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_FD to = openat(upper, name, DIRECTORY);
	return from < 0 || to < 0 ? -errno : dress_like(from, to);
}

/* The directory of the last hidden name, in the tree and in the layer: often the next one's too. */
struct place {
	int low, up;
	const char *path; /* `len` bytes of it lead there */
	size_t len;
};

static void leave(struct place *place)
{
	fd_close(&place->low);
	fd_close(&place->up);
}

/* Go one directory down, making it in the layer. 0 or -errno. */
static int descend(struct place *place, const char *from, size_t len)
{
	char name[NAME_MAX + 1];
	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, from, len);
	name[len] = 0;
	int r = same_directory(place->low, place->up, name);
	if (r < 0)
		return r;
	int low = openat(place->low, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int up = low < 0 ? -1 : openat(place->up, name, DIRECTORY);
	r = low < 0 || up < 0 ? -errno : 0;
	leave(place);
	place->low = low;
	place->up = up;
	return r;
}

/* Be where the parent of `path` is: `len` bytes of it. */
static int go(struct place *place, int lower, int upper, const char *path, size_t len)
{
	if (place->up >= 0 && place->len == len && memcmp(place->path, path, len) == 0)
		return 0;
	leave(place);
	place->low = fcntl(lower, F_DUPFD_CLOEXEC, 3);
	place->up = fcntl(upper, F_DUPFD_CLOEXEC, 3);
	int r = place->low < 0 || place->up < 0 ? -errno : 0;
	for (const char *at = path; r == 0 && at < path + len;) {
		const char *end = strchrnul(at, '/');
		r = descend(place, at, (size_t)(end - at));
		at = end + 1;
	}
	place->path = path;
	place->len = len;
	if (r < 0)
		leave(place);
	return r;
}

/* The directory keeps its time: to the box nothing happened in it. */
static int put_whiteout(int dir, const char *name)
{
	struct stat st;
	if (fstat(dir, &st) < 0)
		return -errno;
	if (mknodat(dir, name, S_IFCHR, makedev(0, 0)) < 0)
		return errno == EEXIST ? 0 : -errno;
	const struct timespec times[2] = { st.st_atim, st.st_mtim };
	return futimens(dir, times) < 0 ? -errno : 0;
}

/*
 * One hidden name: in the layer a file 0:0 says that the tree's is not there (overlayfs.rst). It
 * may have gone meanwhile, with all above it; then nothing has to be hidden.
 */
static int take_away(struct place *place, int lower, int upper, const char *path)
{
	const char *slash = strrchr(path, '/');
	int r = go(place, lower, upper, path, slash ? (size_t)(slash - path) : 0);
	const char *name = slash ? slash + 1 : path;
	if (r == 0)
		r = put_whiteout(place->up, name);
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP ? 0 : r;
}

static int remove_tree(int dir, const char *name)
{
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	AUTO_FD tree = openat(dir, name, DIRECTORY);
	if (tree < 0)
		return -errno;
	struct tree_report report;
	int r = tree_clear(tree, &report);
	return r == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0 ? -errno : r;
}

/* In a copy the hidden names are simply removed, and the directory keeps its time. */
static int remove_name(int dir, const char *path)
{
	uint64_t resolve = SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS;
	char parent[PATH_MAX];
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;
	if (len >= sizeof parent)
		return -ENAMETOOLONG;
	memcpy(parent, path, len);
	parent[len] = 0;
	AUTO_FD at = sys_openat2(dir, len ? parent : ".", DIRECTORY, resolve);
	if (at < 0)
		return at == -ENOENT ? 0 : at;
	struct stat st;
	if (fstat(at, &st) < 0)
		return -errno;
	int r = remove_tree(at, slash ? slash + 1 : path);
	const struct timespec times[2] = { st.st_atim, st.st_mtim };
	return r == 0 && futimens(at, times) < 0 ? -errno : r;
}

static int hide_names(const struct plan_layer *layer, int lower, int upper)
{
	struct place place = { .low = -1, .up = -1 };
	int r = 0;
	for (size_t i = 0; r == 0 && i < layer->gone_count; i++)
		r = layer->copy ? remove_name(upper, layer->gone[i])
				: take_away(&place, lower, upper, layer->gone[i]);
	leave(&place);
	return r;
}

/* A path of the box's root that is made of two; 0 or -ENAMETOOLONG. */
static int join(char out[PATH_MAX], const char *dir, const char *name)
{
	size_t a = strlen(dir), b = strlen(name);
	if (a + b + 2 > PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(out, dir, a);
	out[a] = '/';
	memcpy(out + a + 1, name, b + 1);
	return 0;
}

/*
 * Names relative to the current directory, which is the box's root for the moment: none of them has
 * a character that overlayfs would read as its own. userxattr: its marks are of the kind that
 * whoever made the namespace may set.
 */
static int overlay(const struct child *child, const struct plan_layer *layer)
{
	char upper[PATH_MAX], work[PATH_MAX];
	int r = join(upper, layer->dir, "upper");
	if (r == 0)
		r = join(work, layer->dir, "work");
	if (r < 0)
		return r;
	if (fchdir(child->root_fd) < 0)
		return -errno;
	int fs = sys_fsopen("overlay");
	if (fs < 0)
		return fs;
	r = sys_fsconfig(fs, SYS_FSCONFIG_SET_STRING, "lowerdir", layer->lower);
	if (r == 0)
		r = sys_fsconfig(fs, SYS_FSCONFIG_SET_STRING, "upperdir", upper);
	if (r == 0)
		r = sys_fsconfig(fs, SYS_FSCONFIG_SET_STRING, "workdir", work);
	if (r == 0)
		r = sys_fsconfig(fs, SYS_FSCONFIG_SET_FLAG, "userxattr", NULL);
	if (r == 0)
		r = sys_fsconfig(fs, SYS_FSCONFIG_CREATE, NULL, NULL);
	if (r == 0)
		r = sys_fsmount(fs, SYS_MOUNT_ATTR_NOSUID | SYS_MOUNT_ATTR_NODEV);
	close(fs);
	return r;
}

/* A session's layer has been mounted before: then overlayfs has made itself a directory. */
static bool is_begun(const struct child *child, const struct plan_layer *layer)
{
	char path[PATH_MAX];
	if (layer->copy || join(path, layer->dir, "work/work") < 0)
		return false;
	AUTO_FD fd = openat(child->root_fd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0;
}

/*
 * The layer, or the copy, begins: what overlayfs is to be told, and what it is not to show. In a
 * session's, which may have begun before, names that are hidden since then are taken away too.
 */
static int fill(const struct child *child, const struct plan_layer *layer, int lower, int upper)
{
	struct tree_report report;
	int r = 0;
	if (layer->copy)
		r = tree_copy(lower, upper, TREE_REFLINK | TREE_ONE_FS, &report);
	if (r == 0)
		r = hide_names(layer, lower, upper);
	return r == 0 && !is_begun(child, layer) ? dress_like(lower, upper) : r;
}

static int show(const struct child *child, const struct plan_layer *layer, int lower, int upper)
{
	int r = fill(child, layer, lower, upper);
	if (r < 0)
		return r;
	struct sync_msg msg = { .magic = SYNC_MAGIC, .kind = SYNC_LAYER };
	r = sync_send(child->setup_fd, &msg, upper);
	if (r < 0)
		return r;
	if (!layer->copy)
		return overlay(child, layer);
	return sys_open_tree(
		upper, "", SYS_OPEN_TREE_CLONE | SYS_OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
}

int layer_mount(const struct child *child, const struct plan_layer *layer, int lower)
{
	char path[PATH_MAX];
	struct sys_mount_attr attr = {
		.attr_set = SYS_MOUNT_ATTR_RDONLY | SYS_MOUNT_ATTR_NOSUID | SYS_MOUNT_ATTR_NODEV,
		.propagation = 1u << 18, /* MS_PRIVATE */
	};
	int r = sys_mount_setattr(lower, "", AT_EMPTY_PATH | SYS_AT_RECURSIVE, &attr);
	/* Older kernels make a layer only of what is attached. */
	if (r == 0)
		r = sys_move_mount(lower, "", child->root_fd, layer->lower, SYS_MOVE_MOUNT_F_EMPTY);
	close(lower);
	if (r == 0)
		r = join(path, layer->dir, "upper");
	if (r < 0)
		return r;
	AUTO_FD from = openat(child->root_fd, layer->lower, DIRECTORY);
	AUTO_FD upper = openat(child->root_fd, path, DIRECTORY);
	if (from < 0 || upper < 0)
		return -errno;
	r = show(child, layer, from, upper);
	/* It may be a copy itself, and has been of use. */
	if (r >= 0 && layer->copy && child->plan->as_root && fchdir(child->root_fd) == 0)
		(void)umount2(layer->lower, MNT_DETACH | UMOUNT_NOFOLLOW);
	return r;
}
