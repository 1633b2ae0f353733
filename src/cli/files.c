/*
 * files: from a session to a view of its trees, as its policy shows them in the box, and the ways
 * of one file in and out. Opens the tops of the trees; all else is the view's.
 */
#define _GNU_SOURCE
#include "cli/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/sys.h"
#include "workspace/state.h"
#include "workspace/tree.h"

#define STAGE   "stage"
#define STAGED  "file" /* in the stage: the one file of this call */
#define BENEATH (SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS)
#define BLOCK   65536

/* The descriptor becomes the files' own. */
static int keep(struct files *files, int fd)
{
	files->fds[files->fd_count++] = fd;
	return fd;
}

static int open_part(struct files *files, const char *name, struct err *err)
{
	int fd = sys_openat2(
		files->session.dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, BENEATH);
	if (fd < 0)
		return err_set(err, ERR_session_broken, -fd, "session \"%s\" is broken: %s: %s",
			files->session.name, name, strerror(-fd));
	return keep(files, fd);
}

/* Its name was one without links when the session was made. */
static int open_workspace(struct files *files, struct err *err)
{
	int fd = sys_openat2(AT_FDCWD, files->session.workspace,
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS);
	if (fd == -ELOOP)
		return err_set(err, ERR_grant_is_symlink, ELOOP,
			"the workspace \"%.200s\" of session \"%s\" is reached through a link by "
			"now",
			files->session.workspace, files->session.name);
	if (fd < 0)
		return err_set(err, ERR_workspace_not_found, -fd,
			"the workspace \"%.200s\" of session \"%s\": %s", files->session.workspace,
			files->session.name, strerror(-fd));
	return keep(files, fd);
}

static int add_tree(struct files *files, const char *root, int upper, int lower, struct err *err)
{
	struct stat st;
	struct view_tree *tree = &files->view.trees[files->view.count];
	*tree = (struct view_tree){ .root = root, .upper = upper, .lower = lower };
	/* The box acts as the owner of what it writes in. */
	if (fstat(upper >= 0 ? upper : lower, &st) < 0)
		return err_set(err, ERR_internal, errno, "%s: %s", root, strerror(errno));
	tree->own = upper >= 0;
	tree->owner = st.st_uid;
	tree->group = st.st_gid;
	files->view.count++;
	return 0;
}

static int add_workspace(struct files *files, struct err *err)
{
	enum policy_workspace kind = files->policy.fs.workspace;
	int upper = -1, lower = -1;
	if (kind == WORKSPACE_NONE)
		return 0;
	int top = open_workspace(files, err);
	if (top < 0)
		return -1;
	if (kind == WORKSPACE_OVERLAY && (upper = open_part(files, "layer/upper", err)) < 0)
		return -1;
	if (kind == WORKSPACE_WRITE)
		upper = top;
	else
		lower = top;
	if (add_tree(files, files->session.workspace, upper, lower, err) < 0)
		return -1;
	files->view.trees[files->view.count - 1].own = kind == WORKSPACE_OVERLAY;
	files->view.trees[files->view.count - 1].layer = kind == WORKSPACE_OVERLAY;
	files->view.trees[files->view.count - 1].grant = true;
	return 0;
}

/* A directory's name from the environment, without "/" at its end. NULL: it is not a plain one. */
static const char *clean(struct arena *arena, const char *path)
{
	size_t len = path ? strlen(path) : 0;
	while (len > 1 && path[len - 1] == '/')
		len--;
	if (len < 2)
		return NULL;
	char *name = arena_strndup(arena, path, len);
	return strstr(name, "//") || strstr(name, "/./") || strstr(name, "/../") ? NULL : name;
}

static int add_trees(struct files *files, const char *home, struct err *err)
{
	if (add_workspace(files, err) < 0)
		return -1;
	const char *root = clean(&files->arena, home);
	if (files->policy.fs.home == HOME_PRIVATE && root) {
		int fd = open_part(files, "home", err);
		if (fd < 0 || add_tree(files, root, fd, -1, err) < 0)
			return -1;
	}
	int fd = open_part(files, "tmp", err);
	if (fd < 0 || add_tree(files, "/tmp", fd, -1, err) < 0)
		return -1;
	files->base = files->view.trees[0].root;
	return 0;
}

static const char *const *patterns(
	struct arena *arena, const struct policy_pattern *list, size_t count)
{
	const char **words = ARENA_ARRAY(arena, count + 1, const char *);
	for (size_t i = 0; i < count; i++)
		words[i] = list[i].pattern;
	return words;
}

/* We are alone: what is in a stage that is there already is of a call that was killed. */
static int make_stage(struct files *files, struct err *err)
{
	struct tree_report report;
	int r = mkdirat(files->session.dir, STAGE, 0700) < 0 && errno != EEXIST ? -errno : 0;
	if (r == 0)
		r = sys_openat2(files->session.dir, STAGE,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, BENEATH);
	if (r >= 0) {
		files->view.stage = keep(files, r);
		r = tree_clear(r, &report);
	}
	if (r < 0)
		return err_set(err,
			r == -ENOSPC || r == -EDQUOT ? ERR_no_resources : ERR_session_broken, -r,
			"session \"%s\": the directory %s cannot be used: %s", files->session.name,
			STAGE, strerror(-r));
	return 0;
}

static int open_all(struct files *files, const char *name, bool write, struct err *err)
{
	struct policy_env env;
	paths_policy_env(&files->arena, &env);
	if (session_open(state_path(&files->arena), name, write, &files->session, err) < 0)
		return -1;
	const char *text = files->session.policy_text;
	if (policy_parse(text, strlen(text), arena_printf(&files->arena, "session %s", name), &env,
		    &files->policy, err) < 0)
		return -1;
	const struct policy *policy = &files->policy;
	files->view.hide = patterns(&files->arena, policy->fs.hide, policy->fs.hide_count);
	files->view.protect = patterns(&files->arena, policy->fs.protect, policy->fs.protect_count);
	files->max = policy->limits.disk.value;
	if (add_trees(files, env.home, err) < 0)
		return -1;
	return write ? make_stage(files, err) : 0;
}

int files_open(const char *name, bool write, struct files *ret, struct err *err)
{
	*ret = (struct files){ .session = { .dir = -1, .lock = -1 }, .view.stage = -1 };
	if (open_all(ret, name, write, err) == 0)
		return 0;
	files_close(ret);
	return -1;
}

void files_close(struct files *files)
{
	struct tree_report report;
	if (files->view.stage >= 0 && tree_clear(files->view.stage, &report) == 0)
		(void)unlinkat(files->session.dir, STAGE, AT_REMOVEDIR);
	while (files->fd_count > 0)
		close(files->fds[--files->fd_count]);
	files->view.stage = -1;
	policy_free(&files->policy);
	session_close(&files->session);
	arena_free(&files->arena);
}

int files_find(struct files *files, const char *path, bool write, bool parents,
	struct view_found *ret, struct err *err)
{
	struct view_found found;
	if (view_find(&files->view, files->base, path, parents, &files->arena, &found, err) < 0)
		return -1;
	enum view_held held = view_held(&files->view, found.path, true);
	const struct view_tree *tree = view_tree_of(&files->view, found.path);
	bool there = found.entry.st.st_mode != 0;
	int r = 0;
	if (write && held != VIEW_FREE)
		r = err_set(err, ERR_session_path, EACCES, "'%.300s' is %s by the policy", path,
			held == VIEW_HIDDEN ? "hidden" : "protected");
	else if (write && tree->upper < 0)
		r = err_set(err, ERR_session_path, EROFS,
			"'%.300s' is in a workspace that the policy does not let be written", path);
	else if (!write && (!there || held == VIEW_HIDDEN))
		r = err_set(err, ERR_session_path, ENOENT, "'%.300s' does not exist", path);
	if (r < 0)
		view_found_close(&found);
	else
		*ret = found;
	return r;
}

static int refuse(const char *path, int r, struct err *err)
{
	enum err_code code = r == -ENOSPC || r == -EDQUOT || r == -EMFILE || r == -ENFILE
				     ? ERR_no_resources
				     : ERR_session_path;
	return err_set(err, code, -r, "'%.300s': %s", path, strerror(-r));
}

static int not_a_file(const struct view_entry *entry, const char *path, struct err *err)
{
	bool dir = S_ISDIR(entry->st.st_mode);
	err_set(err, ERR_session_path, dir ? EISDIR : EINVAL, "'%.300s' is %s", path,
		dir ? "a directory" : "not a regular file");
	if (dir)
		err_hint_set(err, "`get --tar` and `put --tar` are for directories");
	return -1;
}

int files_copy_out(const struct view_entry *entry, const char *path, struct err *err)
{
	char block[BLOCK];
	if (!S_ISREG(entry->st.st_mode))
		return not_a_file(entry, path, err);
	AUTO_FD fd = view_read(entry);
	if (fd < 0)
		return refuse(path, fd, err);
	for (uint64_t left = (uint64_t)entry->st.st_size; left > 0;) {
		ssize_t n = fd_read_full(fd, block, left < sizeof block ? left : sizeof block);
		if (n < 0)
			return refuse(path, (int)n, err);
		if (n == 0)
			break;
		int r = say_all(STDOUT_FILENO, block, (size_t)n);
		if (r < 0)
			return err_set(err, ERR_result_unwritable, -r, "cannot write to stdout: %s",
				strerror(-r));
		left -= (uint64_t)n;
	}
	return 0;
}

/* stdin into the stage. The file is complete, with its mode and owner, before it has its place. */
static int spool(struct files *files, const struct view_tree *tree, const char *path, mode_t mode,
	struct err *err)
{
	char block[BLOCK];
	uint64_t total = 0;
	ssize_t n;
	AUTO_FD fd =
		openat(files->view.stage, STAGED, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return refuse(path, -errno, err);
	while ((n = fd_read_full(STDIN_FILENO, block, sizeof block)) > 0) {
		total += (uint64_t)n;
		if (total > files->max) {
			err_set(err, ERR_session_path, EFBIG,
				"'%.300s': more than the %llu bytes that limits.disk of the "
				"session's policy lets one call write",
				path, (unsigned long long)files->max);
			return err_hint_set(err, "limits: {disk: ...} in the policy of a new "
						 "session");
		}
		int r = fd_write_full(fd, block, (size_t)n);
		if (r < 0)
			return refuse(path, r, err);
	}
	if (n < 0)
		return err_set(err, ERR_session_path, (int)-n, "stdin cannot be read: %s",
			strerror((int)-n));
	if ((geteuid() == 0 && fchown(fd, tree->owner, tree->group) < 0) || fchmod(fd, mode) < 0 ||
		fsync(fd) < 0)
		return refuse(path, -errno, err);
	return 0;
}

int files_copy_in(struct files *files, const char *path, bool parents, int mode, struct err *err)
{
	struct view_found found;
	if (files_find(files, path, true, parents, &found, err) < 0)
		return -1;
	mode_t there = found.entry.st.st_mode;
	int r = 0;
	if (there && !S_ISREG(there))
		r = not_a_file(&found.entry, path, err);
	else if (mode < 0)
		mode = there ? (int)(there & 0777) : 0644;
	if (r == 0)
		r = spool(files, view_tree_of(&files->view, found.path), path, (mode_t)mode, err);
	if (r == 0) {
		r = view_put(&files->view, files->view.stage, STAGED, found.path, parents);
		if (r < 0)
			r = refuse(path, r, err);
	}
	view_found_close(&found);
	return r;
}

int files_answer(struct err *err)
{
	switch (err->code) {
	case ERR_session_exists:
	case ERR_session_not_found:
	case ERR_session_busy:
	case ERR_session_broken:
	case ERR_session_path:
	case ERR_unsafe_archive:
	case ERR_policy_invalid:
	case ERR_policy_not_found:
	case ERR_policy_unreadable:
		say_error(err);
		return CLI_NO;
	}
	return -1;
}
