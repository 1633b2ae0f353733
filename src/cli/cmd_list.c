/* cmd_list: `agentbox list`: what is in a directory of a session. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/files.h"

#define LIST_MAX 100000              /* entries */
#define TEXT_MAX ((size_t)256 << 20) /* bytes of output */

/* One list in the making. */
struct listing {
	struct buf *out;
	struct json *json; /* NULL: for people */
	struct arena arena;
	size_t count;
	bool cut;      /* there are more than LIST_MAX */
	size_t unseen; /* entries that cannot be looked at */
	struct buf *notes;
};

static const char *type_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "link";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	}
	return "device";
}

static void put_json(
	struct listing *listing, const char *name, const struct stat *st, const char *target)
{
	struct json *json = listing->json;
	char mode[8];
	snprintf(mode, sizeof mode, "%04o", (unsigned)(st->st_mode & 07777));
	json_open_object(json, NULL);
	json_put_bytes(json, "path", name, strlen(name));
	json_put_text(json, "type", type_of(st->st_mode));
	if (S_ISREG(st->st_mode))
		json_put_uint(json, "size", (uint64_t)st->st_size);
	else
		json_put_null(json, "size");
	json_put_text(json, "mode", mode);
	json_put_int(json, "mtime", st->st_mtim.tv_sec);
	if (target)
		json_put_bytes(json, "target", target, strlen(target));
	else
		json_put_null(json, "target");
	json_close(json);
}

static void put_line(
	struct listing *listing, const char *name, const struct stat *st, const char *target)
{
	static const char letters[] = "rwxrwxrwx";
	char mode[11];
	mode[0] = S_ISREG(st->st_mode) ? '-' : type_of(st->st_mode)[0];
	for (int i = 0; i < 9; i++)
		mode[i + 1] = st->st_mode & (0400u >> i) ? letters[i] : '-';
	mode[10] = 0;
	buf_addf(listing->out, "%s %12" PRIu64 " ", mode,
		S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0);
	buf_add_visible(listing->out, name, strlen(name), false);
	if (S_ISDIR(st->st_mode))
		buf_adds(listing->out, "/");
	if (target) {
		buf_adds(listing->out, " -> ");
		buf_add_visible(listing->out, target, strlen(target), false);
	}
	buf_adds(listing->out, "\n");
}

static int each(void *data, const char *name, const struct view_entry *entry, int errnum)
{
	struct listing *listing = data;
	const char *target = NULL;
	if (errnum == 0 && S_ISLNK(entry->st.st_mode))
		errnum = -view_link(entry, &listing->arena, &target);
	if (errnum) {
		listing->unseen++;
		buf_adds(listing->notes, "agentbox: '");
		buf_add_visible(listing->notes, name, strlen(name), false);
		buf_addf(listing->notes, "': %s\n", strerror(errnum));
		return 0;
	}
	if (listing->count == LIST_MAX) {
		listing->cut = true;
		return 1;
	}
	listing->count++;
	if (listing->json)
		put_json(listing, name, &entry->st, target);
	else
		put_line(listing, name, &entry->st, target);
	return 0;
}

static int fill(struct files *files, const struct view_found *found, bool recursive,
	struct listing *listing, struct err *err)
{
	int r = 0;
	if (S_ISDIR(found->entry.st.st_mode))
		r = view_walk(&files->view, found->path, recursive, each, listing);
	else
		r = each(listing, strrchr(found->path, '/') + 1, &found->entry, 0);
	if (r == -E2BIG) {
		listing->cut = true;
		r = 0;
	}
	return r < 0 ? err_set(err, ERR_session_path, -r, "'%.300s': %s", found->path, strerror(-r))
		     : 0;
}

static int list(struct files *files, const struct view_found *found, const struct options *options,
	struct buf *notes, struct err *err)
{
	AUTO_BUF out = { .max = TEXT_MAX };
	struct json json;
	bool as_json = options_has(options, OPTION_list_json);
	struct listing listing = { .out = &out, .json = as_json ? &json : NULL, .notes = notes };
	if (as_json) {
		json_begin(&json, &out, false);
		json_open_object(&json, NULL);
		json_put_text(&json, "agentbox", AGENTBOX_VERSION);
		json_put_text(&json, "session", files->session.name);
		json_put_bytes(&json, "path", found->path, strlen(found->path));
		json_open_array(&json, "entries");
	}
	int r = fill(files, found, options_has(options, OPTION_list_recursive), &listing, err);
	arena_free(&listing.arena);
	if (r < 0)
		return -1;
	if (as_json) {
		json_close(&json);
		json_put_bool(&json, "truncated", listing.cut);
		json_put_uint(&json, "unseen", listing.unseen);
		json_close(&json);
		r = json_end(&json);
	}
	if (r < 0 || out.full)
		return err_set(err, ERR_session_path, E2BIG, "the list is larger than %zu MiB",
			TEXT_MAX >> 20);
	if (listing.cut)
		buf_addf(notes, "agentbox: more than %d entries; the list is not complete\n",
			LIST_MAX);
	if (say_out(&out, err) < 0)
		return -1;
	return listing.cut || listing.unseen ? CLI_NO : CLI_YES;
}

int cmd_list(const struct cli *cli, struct err *err)
{
	const struct options *options = &cli->options;
	struct files files;
	struct view_found found;
	AUTO_BUF notes = { .max = 65536 };
	if (options->arg_count < 1 || options->arg_count > 2)
		return err_set(err, ERR_usage, 0, "list takes a session and at most one path");
	if (files_open(options->args[0], false, &files, err) < 0)
		return files_answer(err);
	const char *path = options->arg_count == 2 ? options->args[1] : files.base;
	int status = files_find(&files, path, false, false, &found, err);
	if (status == 0) {
		status = list(&files, &found, options, &notes, err);
		view_found_close(&found);
	}
	files_close(&files);
	say_note(&notes);
	return status < 0 ? files_answer(err) : status;
}
