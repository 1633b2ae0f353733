/* changes: the list of changes as JSON. */
#include "report/changes.h"
#include "base/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

const char *changes_kind(const struct change *change)
{
	return change->kind == CHANGE_CREATED   ? "created"
	       : change->kind == CHANGE_DELETED ? "deleted"
						: "modified";
}

const char *changes_type(const struct change *change)
{
	switch (change->mode & S_IFMT) {
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

void changes_path(const struct changes *changes, const struct change *change, struct buf *out)
{
	if (change->layer > 0) {
		buf_adds(out, changes->roots[change->layer]);
		if (strcmp(change->path, ".") == 0)
			return;
		buf_adds(out, "/");
	}
	buf_adds(out, change->path);
}

void changes_put_one(

	struct json *json, const struct changes *changes, const struct change *change)
{
	AUTO_BUF path = { 0 };
	char mode[16];
	snprintf(mode, sizeof mode, "%04o", (unsigned)(change->mode & 07777));
	bool gone = change->kind == CHANGE_DELETED;
	json_open_object(json, NULL);
	changes_path(changes, change, &path);
	if (path.full)
		json_fail(json, -ENOSPC);
	json_put_bytes(json, "path", buf_text(&path), path.len);
	json_put_text(json, "change", changes_kind(change));
	json_put_text(json, "type", changes_type(change));
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
		changes_put_one(json, changes, &changes->list[i]);
	json_close(json);
}
