/* changes: the list of changes as JSON. */
#include "report/changes.h"
#include "base/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *kind_name(enum change_kind kind)
{
	return kind == CHANGE_CREATED ? "created" : kind == CHANGE_DELETED ? "deleted" : "modified";
}

static const char *type_name(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symlink";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	}
	return "device";
}

/* Below the workspace as it is, in another tree from the root of all. */
static void put_path(struct json *json, const struct changes *changes, const struct change *change)
{
	AUTO_BUF path = { 0 };
	if (change->layer > 0) {
		(void)buf_adds(&path, changes->roots[change->layer]);
		(void)buf_adds(&path, "/");
	}
	if (buf_adds(&path, change->path) < 0)
		json_fail(json, -ENOSPC);
	json_put_bytes(json, "path", path.data, path.len);
}

static void put_change(
	struct json *json, const struct changes *changes, const struct change *change)
{
	char mode[16];
	snprintf(mode, sizeof mode, "%04o", (unsigned)(change->mode & 07777));
	bool gone = change->kind == CHANGE_DELETED;
	json_open_object(json, NULL);
	put_path(json, changes, change);
	json_put_text(json, "change", kind_name(change->kind));
	json_put_text(json, "type", type_name(change->mode));
	if (S_ISREG(change->mode) && !gone)
		json_put_uint(json, "size", change->size);
	else
		json_put_null(json, "size");
	json_put_text(json, "mode", gone ? NULL : mode);
	json_put_bool(json, "sensitive", change->sensitive || change->held);
	json_put_text(json, "target", change->target);
	json_put_bool(json, "escapes", change->escapes);
	json_close(json);
}

void changes_put(struct json *json, const struct changes *changes)
{
	json_open_array(json, "changes");
	for (size_t i = 0; changes && i < changes->count; i++)
		put_change(json, changes, &changes->list[i]);
	json_close(json);
}
