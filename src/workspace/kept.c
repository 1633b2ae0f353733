/*
 * kept: private layers that outlive their run: finding, opening and removing them. Follows no link,
 * and takes only directories of the caller's that nobody else may enter.
 */
#define _GNU_SOURCE
#include "workspace/kept.h"
#include "base/fd.h"
#include "base/sys.h"
#include "workspace/kept_meta.h"
#include "workspace/records.h"
#include "workspace/state.h"
#include "workspace/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define LISTED    ((size_t)1000000)

static int damaged(struct err *err, const char *id, const char *what, int r)
{
	return err_set(err, ERR_state_unusable, -r, "the kept result '%.70s' is damaged: %s: %s",
		id, what,
		r == -EBADMSG ? "it has a wrong form"
		: r == -EPERM ? "it is not yours alone"
			      : strerror(-r));
}

static bool id_valid(const char *id)
{
	size_t len = strspn(id, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
	return len > 0 && len <= KEPT_ID_MAX && !id[len];
}

/* A file or directory of the caller's own in `dir`; -EPERM: it is something else. */
static int open_own(int dir, const char *name, int flags)
{
	struct stat st;
	AUTO_FD fd = openat(dir, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	bool form = flags & O_DIRECTORY ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode);
	if (!form || st.st_uid != geteuid() || (st.st_mode & 077))
		return -EPERM;
	return fd_steal(&fd);
}

static int not_found(struct err *err, const char *id)
{
	return err_set(err, ERR_kept_not_found, 0, "there is no kept result '%.70s'", id);
}

/* STATE/kept; that it is not there means that nothing was kept. */
static int open_kept(const char *state, struct err *err)
{
	struct err own;
	int fd = state_open(state, "kept", false, &own);
	if (fd < 0 && own.errnum == ENOENT)
		return err_set(err, ERR_kept_not_found, 0, "there is no kept result");
	if (fd < 0)
		*err = own;
	return fd;
}

static int read_meta(int kept, const char *id, struct arena *arena, int *ret_dir,
	struct kept_meta *ret, const char **ret_what)
{
	*ret_what = "its directory";
	AUTO_FD dir = open_own(kept, id, O_RDONLY | O_DIRECTORY);
	if (dir < 0)
		return dir;
	*ret_what = "meta";
	AUTO_FD fd = open_own(dir, "meta", O_RDONLY);
	int r = fd < 0 ? fd : kept_meta_read(fd, arena, ret);
	if (r < 0)
		return r == -ENOENT ? -EBADMSG : r;
	*ret_dir = fd_steal(&dir);
	return 0;
}

static int later_first(const void *a, const void *b)
{
	return -strcmp(((const struct kept_entry *)a)->id, ((const struct kept_entry *)b)->id);
}

static int list_ids(int kept, struct arena *arena, struct kept_entry **ret_list, size_t *ret_count)
{
	AUTO_FD fd = openat(kept, ".", DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return -errno;
	fd_steal(&fd);
	*ret_list = NULL;
	*ret_count = 0;
	for (struct dirent *entry; *ret_count < LISTED && (entry = readdir(dir));) {
		if (!id_valid(entry->d_name))
			continue;
		struct kept_entry *item = arena_push(arena, ret_list, ret_count, sizeof *item);
		item->id = arena_strdup(arena, entry->d_name);
	}
	closedir(dir);
	if (*ret_count)
		qsort(*ret_list, *ret_count, sizeof **ret_list, later_first);
	return 0;
}

int kept_list(const char *state, struct arena *arena, struct kept_entry **ret, size_t *ret_count,
	struct err *err)
{
	struct err own;
	struct kept_entry *list = NULL;
	size_t count = 0;
	AUTO_FD kept = open_kept(state, &own);
	if (kept < 0 && own.code != ERR_kept_not_found) {
		*err = own;
		return -1;
	}
	int r = kept < 0 ? 0 : list_ids(kept, arena, &list, &count);
	if (r < 0)
		return err_set(err, ERR_state_unusable, -r, "kept results cannot be listed: %s",
			strerror(-r));
	for (size_t i = 0; i < count; i++) {
		struct kept_meta meta;
		const char *what;
		AUTO_FD dir = -1;
		if (read_meta(kept, list[i].id, arena, &dir, &meta, &what) < 0)
			continue;
		list[i].workspace = meta.layers[0].root;
		list[i].policy = meta.policy;
		list[i].started_ns = meta.started_ns;
		list[i].ended_ns = meta.ended_ns;
	}
	*ret = list;
	*ret_count = count;
	return 0;
}

/* The latest of a workspace. Damaged ones are passed: they can be named to learn what is wrong. */
static int find_latest(
	int kept, const char *workspace, struct arena *arena, const char **ret_id, struct err *err)
{
	struct kept_entry *list;
	size_t count;
	int r = list_ids(kept, arena, &list, &count);
	if (r < 0)
		return err_set(err, ERR_state_unusable, -r, "kept results cannot be listed: %s",
			strerror(-r));
	for (size_t i = 0; i < count; i++) {
		struct kept_meta meta;
		const char *what;
		struct arena own = { 0 };
		AUTO_FD dir = -1;
		bool found = read_meta(kept, list[i].id, &own, &dir, &meta, &what) == 0 &&
			     strcmp(meta.layers[0].root, workspace) == 0;
		arena_free(&own);
		if (found) {
			*ret_id = list[i].id;
			return 0;
		}
	}
	return err_set(err, ERR_kept_not_found, 0,
		"there is no kept result of the workspace '%.300s'", workspace);
}

static int open_layers(struct kept *kept, const struct kept_meta *meta, struct err *err)
{
	const char **roots = ARENA_ARRAY(&kept->arena, meta->layer_count, const char *);
	for (size_t i = 0; i < meta->layer_count; i++) {
		struct changes_layer *layer = &kept->layers[i];
		char name[24];
		snprintf(name, sizeof name, "%zu", i);
		*layer = (struct changes_layer){ .upper = -1, .lower = -1 };
		kept->layer_count = i + 1;
		layer->root = roots[i] = meta->layers[i].root;
		layer->whole = meta->layers[i].whole;
		layer->upper = openat(kept->dir, name, DIRECTORY);
		if (layer->upper < 0)
			return damaged(err, kept->id, "a layer", -errno);
		if (!meta->layers[i].lower)
			continue;
		layer->lower = sys_openat2(AT_FDCWD, layer->root, DIRECTORY,
			SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS);
		if (layer->lower < 0)
			return err_set(err, ERR_workspace_not_found, -layer->lower,
				"'%.300s' cannot be opened without following links: %s",
				layer->root, strerror(-layer->lower));
	}
	kept->changes.roots = roots;
	kept->changes.root_count = meta->layer_count;
	return 0;
}

/* Others look for entries by halving: they must be in order, each once. */
struct reading {
	struct kept *kept;
	bool disordered;
};

static void take_base(void *data, const struct record *record)
{
	struct reading *reading = data;
	struct kept *kept = reading->kept;
	size_t i = kept->changes.count++;
	const struct change *a = i ? &kept->changes.list[i - 1] : NULL, *b = &record->change;
	if (a && (a->layer > b->layer ||
			 (a->layer == b->layer &&
				 records_path_order(a->path, b->path, strlen(b->path)) >= 0)))
		reading->disordered = true;
	kept->changes.list[i] = *b;
	kept->bases[i] = record->base;
}

static int read_base(struct kept *kept, struct err *err)
{
	struct reading reading = { .kept = kept };
	struct arena arena = { 0 };
	char *text;
	size_t len, count = 0;
	AUTO_FD fd = open_own(kept->dir, "base", O_RDONLY);
	int r = fd < 0 ? fd : fd_read_file(&arena, fd, RECORDS_FILE_MAX, &text, &len);
	if (r == 0)
		r = records_count(text, len, kept->layer_count, &count);
	if (r == 0) {
		kept->changes.list = ARENA_ARRAY(&kept->arena, count + 1, struct change);
		kept->bases = ARENA_ARRAY(&kept->arena, count + 1, struct apply_base);
		r = records_each(&kept->arena, text, len, kept->layer_count, take_base, &reading);
	}
	if (r == 0 && reading.disordered)
		r = -EBADMSG;
	arena_free(&arena);
	return r < 0 ? damaged(err, kept->id, "base", r) : 0;
}

static int fill(int dir, struct kept *kept, const char *id, const char *workspace, struct err *err)
{
	struct kept_meta meta;
	const char *what;
	if (id && !id_valid(id))
		return not_found(err, id);
	if (!id && find_latest(dir, workspace, &kept->arena, &id, err) < 0)
		return -1;
	kept->id = arena_strdup(&kept->arena, id);
	int r = read_meta(dir, id, &kept->arena, &kept->dir, &meta, &what);
	if (r == -ENOENT)
		return not_found(err, id);
	if (r < 0)
		return damaged(err, id, what, r);
	kept->started_ns = meta.started_ns;
	kept->ended_ns = meta.ended_ns;
	kept->policy = meta.policy;
	kept->argv = meta.argv;
	kept->held = meta.held;
	kept->sensitive = meta.sensitive;
	return open_layers(kept, &meta, err) < 0 ? -1 : read_base(kept, err);
}

int kept_open(
	const char *state, const char *id, const char *workspace, struct kept *ret, struct err *err)
{
	struct kept kept = { .dir = -1 };
	AUTO_FD dir = open_kept(state, err);
	if (dir < 0)
		return -1;
	if (fill(dir, &kept, id, workspace, err) < 0) {
		kept_close(&kept);
		return -1;
	}
	*ret = kept;
	return 0;
}

void kept_close(struct kept *kept)
{
	for (size_t i = 0; i < kept->layer_count; i++) {
		fd_close(&kept->layers[i].upper);
		fd_close(&kept->layers[i].lower);
	}
	fd_close(&kept->dir);
	arena_free(&kept->arena);
	*kept = (struct kept){ .dir = -1 };
}

/* Remove STATE/kept/NAME, which nobody looks for any more. */
static int clear(int kept, const char *name)
{
	struct tree_report report = { 0 };
	AUTO_FD dir = openat(kept, name, DIRECTORY);
	if (dir < 0)
		return -errno;
	int r = tree_clear(dir, &report);
	if (r == 0 && unlinkat(kept, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r;
}

int kept_remove(const char *state, const char *id, struct err *err)
{
	char old[KEPT_ID_MAX + 8];
	AUTO_FD kept = open_kept(state, err);
	if (kept < 0)
		return -1;
	if (!id_valid(id))
		return not_found(err, id);
	snprintf(old, sizeof old, ".old-%s", id);
	int r = renameat(kept, id, kept, old) < 0 ? -errno : 0;
	if (r == -ENOENT)
		return not_found(err, id);
	if (r == 0)
		r = clear(kept, old);
	return r < 0 ? err_set(err, ERR_state_unusable, -r,
			       "the kept result '%.70s' cannot be removed: %s", id, strerror(-r))
		     : 0;
}
