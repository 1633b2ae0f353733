/* kept_save: writing a kept result. Whoever looks meanwhile sees nothing of it, or all. */
#define _GNU_SOURCE
#include "workspace/kept.h"
#include "base/fd.h"
#include "base/sys.h"
#include "workspace/apply_work.h"
#include "workspace/kept_meta.h"
#include "workspace/records.h"
#include "workspace/state.h"
#include "workspace/tree.h"

#include <errno.h>
#include <time.h>
#include <sys/file.h>
#include <stdbool.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY     (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define SWEEP_SECONDS 60

static int fail(struct err *err, const char *what, int r)
{
	bool full = r == -ENOSPC || r == -EDQUOT || r == -ENOMEM || r == -EMFILE || r == -ENFILE ||
		    r == -EFBIG;
	return err_set(err, full ? ERR_no_resources : ERR_state_unusable, -r,
		"the changes cannot be kept: %s: %s", what, strerror(-r));
}

static int create(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/* The list goes to the file as it is found: it may be longer than memory should hold. */
struct base_file {
	struct apply_looking looking;
	struct records_writer writer;
};

static int put_base(void *data, const struct change *change, struct err *err)
{
	struct base_file *file = data;
	struct record record = { .change = *change, .action = '-' };
	if (apply_look(&file->looking, change, &record.base, err) < 0)
		return -1;
	records_put(&file->writer, &record);
	return 0;
}

static int save_base(int dir, const struct kept_source *source, struct err *err)
{
	struct base_file file = { .looking = { .layers = source->layers,
					  .started_ns = source->started_ns } };
	struct changes_rules rules = source->rules;
	rules.quiet = true;
	AUTO_FD fd = create(dir, "base");
	if (fd < 0)
		return fail(err, "the list", fd);
	records_begin(&file.writer, fd);
	int r = changes_each(source->layers, source->layer_count, &rules, put_base, &file, err);
	apply_look_end(&file.looking);
	int error = records_end(&file.writer);
	return r < 0 ? r : error < 0 ? fail(err, "the list", error) : 0;
}

/* Its mode is in the list, where that changed. */
static int same_time(int from, int to)
{
	struct stat st;
	if (fstat(from, &st) < 0)
		return -errno;
	const struct timespec times[2] = { st.st_atim, st.st_mtim };
	return futimens(to, times) < 0 ? -errno : 0;
}

static int save_layer(int dir, const struct changes_layer *layer, size_t index, struct err *err)
{
	struct tree_report report = { 0 };
	char name[24];
	snprintf(name, sizeof name, "%zu", index);
	if (mkdirat(dir, name, 0700) < 0)
		return fail(err, "a layer", -errno);
	AUTO_FD to = openat(dir, name, DIRECTORY);
	AUTO_FD from = openat(layer->upper, ".", DIRECTORY);
	if (to < 0 || from < 0)
		return fail(err, "a layer", -errno);
	int r = tree_copy(from, to, TREE_LAYER | TREE_REFLINK, &report);
	if (r == 0)
		r = same_time(from, to);
	return r < 0 ? fail(err, *report.failed ? report.failed : "a layer", r) : 0;
}

static int save(int dir, const struct kept_source *source, struct err *err)
{
	if (save_base(dir, source, err) < 0)
		return -1;
	AUTO_FD meta = create(dir, "meta");
	int r = meta < 0 ? meta : kept_meta_write(meta, source);
	if (r < 0)
		return fail(err, "its description", r);
	for (size_t i = 0; i < source->layer_count; i++)
		if (save_layer(dir, &source->layers[i], i, err) < 0)
			return -1;
	return syncfs(dir) < 0 ? fail(err, "the disk", -errno) : 0;
}

/* Make STATE/kept/.new-ID; what a killed one left there goes first. */
static int make_fresh(int kept, const char *fresh)
{
	struct tree_report report = { 0 };
	if (mkdirat(kept, fresh, 0700) < 0 && errno != EEXIST)
		return -errno;
	int dir = openat(kept, fresh, DIRECTORY);
	if (dir < 0)
		return -errno;
	/* Held while we live, so that kept_sweep() leaves it alone. */
	int r = flock(dir, LOCK_EX | LOCK_NB) < 0 ? -errno : tree_clear(dir, &report);
	if (r == 0)
		return dir;
	close(dir);
	return r;
}

/* One that is fresh may not have its lock yet. */
static bool is_dead(int dir)
{
	struct stat st;
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return fstat(dir, &st) == 0 && now.tv_sec - st.st_ctim.tv_sec > SWEEP_SECONDS &&
	       flock(dir, LOCK_EX | LOCK_NB) == 0;
}

size_t kept_sweep(const char *state, bool dry)
{
	struct err err;
	size_t count = 0;
	int kept = state ? state_open(state, "kept", false, &err) : -1;
	DIR *list = kept >= 0 ? fdopendir(kept) : NULL;
	struct dirent *entry;
	while (list && (entry = readdir(list))) {
		struct tree_report report = { 0 };
		if (strncmp(entry->d_name, ".new-", 5) != 0 &&
			strncmp(entry->d_name, ".old-", 5) != 0)
			continue;
		AUTO_FD dir = openat(dirfd(list), entry->d_name, DIRECTORY);
		if (dir >= 0 && is_dead(dir) &&
			(dry || (tree_clear(dir, &report) == 0 &&
					unlinkat(dirfd(list), entry->d_name, AT_REMOVEDIR) == 0)))
			count++;
	}
	if (list)
		closedir(list);
	else
		fd_close(&kept);
	return count;
}

int kept_save(const char *state, const struct kept_source *source, struct err *err)
{
	char fresh[KEPT_ID_MAX + 8];
	if (source->layer_count == 0 || source->layer_count > KEPT_LAYERS_MAX ||
		snprintf(fresh, sizeof fresh, ".new-%s", source->id) >= (int)sizeof fresh)
		return fail(err, "too many trees", -EINVAL);
	AUTO_FD kept = state_open(state, "kept", true, err);
	if (kept < 0)
		return -1;
	AUTO_FD dir = make_fresh(kept, fresh);
	if (dir < 0)
		return fail(err, "its directory", dir);
	int r = save(dir, source, err);
	if (r == 0) {
		int error = sys_rename_noreplace(kept, fresh, kept, source->id);
		if (error == 0)
			return 0;
		r = fail(err, "its directory", error);
	}
	struct tree_report report = { 0 };
	if (tree_clear(dir, &report) == 0)
		unlinkat(kept, fresh, AT_REMOVEDIR);
	return r;
}
