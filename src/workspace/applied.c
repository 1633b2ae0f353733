/* applied: the record of what an apply of a session wrote. Trusts the host's files to no name: each
 * is looked at below the tree's descriptor, no link followed. */
#define _GNU_SOURCE
#include "workspace/applied.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME        "applied"
#define FRESH       ".applied"
#define RECORDS_MAX ((size_t)256 << 20)

struct record {
	const char *path;
	uint64_t ino;
	int64_t ctime_ns;
	size_t order; /* later ones win */
};

struct records {
	struct record *list;
	size_t count;
	struct arena arena;
};

static int broken(struct err *err, int r)
{
	return err_set(err, ERR_session_broken, -r, "the session's file '" NAME "' cannot be %s",
		r == -EINVAL ? "understood" : "used");
}

static int by_path(const void *left, const void *right)
{
	const struct record *a = left, *b = right;
	int diff = strcmp(a->path, b->path);
	return diff ? diff : (a->order > b->order) - (a->order < b->order);
}

/* One record, of which *at is the beginning and `end` what is behind the last one. 0 or -EINVAL. */
static int parse(struct records *records, char **at, const char *end)
{
	char *stop = memchr(*at, 0, (size_t)(end - *at)), *rest;
	if (!stop)
		return -EINVAL;
	struct record *record =
		arena_push(&records->arena, &records->list, &records->count, sizeof *record);
	record->ino = strtoull(*at, &rest, 10);
	if (rest == *at || *rest != ' ')
		return -EINVAL;
	char *second = rest + 1;
	record->ctime_ns = strtoll(second, &rest, 10);
	if (rest == second || *rest != ' ' || rest + 1 == stop)
		return -EINVAL;
	record->path = rest + 1;
	record->order = records->count;
	*at = stop + 1;
	return 0;
}

/* Sorted by path, the latest of equal ones last. None is no error. */
static int read_all(int dir, struct records *records, struct err *err)
{
	AUTO_FD fd = openat(dir, NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char *text;
	size_t len;
	if (fd < 0)
		return errno == ENOENT ? 0 : broken(err, -errno);
	int r = fd_read_file(&records->arena, fd, RECORDS_MAX, &text, &len);
	for (char *at = text; r == 0 && at < text + len;)
		r = parse(records, &at, text + len);
	if (r < 0)
		return broken(err, r);
	if (records->count > 1)
		qsort(records->list, records->count, sizeof *records->list, by_path);
	return 0;
}

/* The host's file, without following anything. */
static int look(const struct changes_layer *layer, const char *path, struct stat *ret_st)
{
	AUTO_FD fd = sys_openat2(layer->lower, path, O_PATH | O_NOFOLLOW | O_CLOEXEC,
		SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_MAGICLINKS);
	return fd < 0 ? fd : fstat(fd, ret_st) < 0 ? -errno : 0;
}

static int64_t ctime_of(const struct stat *st)
{
	return st->st_ctim.tv_sec * INT64_C(1000000000) + st->st_ctim.tv_nsec;
}

static const struct record *find(const struct records *records, const char *path)
{
	size_t low = 0, high = records->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strcmp(records->list[middle].path, path) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	const struct record *last = low ? &records->list[low - 1] : NULL;
	return last && strcmp(last->path, path) == 0 ? last : NULL;
}

/* The path that a change has in a record. */
static const char *key(
	const struct changes_layer *layers, const struct change *change, struct arena *arena)
{
	return change->layer == 0
		       ? change->path
		       : arena_join(arena, layers[change->layer].root, "/", change->path);
}

int applied_forgive(int dir, const struct changes *changes, struct apply_base *bases,
	const struct changes_layer *layers, struct err *err)
{
	struct records records = { 0 };
	int r = read_all(dir, &records, err);
	for (size_t i = 0; r == 0 && i < changes->count; i++) {
		struct stat st;
		const struct change *change = &changes->list[i];
		const struct record *record =
			bases[i].conflict ? find(&records, key(layers, change, &records.arena))
					  : NULL;
		if (record && look(&layers[change->layer], change->path, &st) == 0 &&
			st.st_ino == record->ino && ctime_of(&st) == record->ctime_ns &&
			bases[i].ino == record->ino && bases[i].ctime_ns == record->ctime_ns)
			bases[i].conflict = false;
	}
	arena_free(&records.arena);
	return r;
}

static void put(struct buf *out, uint64_t ino, int64_t ctime_ns, const char *path)
{
	buf_addf(out, "%" PRIu64 " %" PRId64 " ", ino, ctime_ns);
	buf_add(out, path, strlen(path) + 1);
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

int applied_note(int dir, const struct apply_report *report, const struct changes_layer *layers,
	struct err *err)
{
	struct records records = { 0 };
	AUTO_BUF text = { .max = RECORDS_MAX };
	int r = read_all(dir, &records, err);
	/* Of equal ones the last counts, so the others go. */
	for (size_t i = 0; r == 0 && i < records.count; i++) {
		const struct record *record = &records.list[i];
		if (i + 1 == records.count || strcmp(record->path, record[1].path) != 0)
			put(&text, record->ino, record->ctime_ns, record->path);
	}
	for (size_t i = 0; r == 0 && i < report->count + report->quiet_count; i++) {
		const struct apply_entry *entry = &report->list[i];
		struct stat st;
		if (entry->outcome == APPLY_DONE && entry->change->kind != CHANGE_DELETED &&
			look(&layers[entry->change->layer], entry->change->path, &st) == 0)
			put(&text, st.st_ino, ctime_of(&st),
				key(layers, entry->change, &records.arena));
	}
	if (r == 0 && text.full)
		r = err_set(err, ERR_no_resources, 0, "too many applied files to note");
	else if (r == 0 && text.len && (r = write_all(dir, &text)) < 0)
		r = broken(err, r);
	arena_free(&records.arena);
	return r;
}
