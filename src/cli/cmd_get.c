/* cmd_get: `agentbox get`: a file, or a tar archive of all that is below a directory. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "cli/files.h"
#include "workspace/tar.h"

/* An archive on its way out. */
struct packing {
	struct arena arena;
	struct buf notes;
	size_t skipped;     /* what is left out, or not whole */
	size_t escapes;     /* links that lead out of what is packed */
	const char *unsafe; /* the first of them, where none may be packed; in the arena */
	bool allow;         /* such links are packed */
	int error;          /* of stdout */
};

static int note(struct packing *packing, const char *name, const char *why)
{
	packing->skipped++;
	buf_adds(&packing->notes, "agentbox: '");
	buf_add_visible(&packing->notes, name, strlen(name), false);
	buf_addf(&packing->notes, "' %s\n", why);
	return 0;
}

static int put(struct packing *packing, const void *data, size_t len)
{
	packing->error = say_all(STDOUT_FILENO, data, len);
	return packing->error < 0;
}

/* Does a link lead above the top, or is it absolute? `name` is where it stands, below the top. */
static bool escapes(const char *name, const char *target)
{
	int depth = 0;
	if (*target == '/')
		return true;
	for (const char *at = name; (at = strchr(at, '/')); at++)
		depth++;
	for (const char *at = target; *at;) {
		size_t len = strcspn(at, "/");
		if (len == 2 && memcmp(at, "..", 2) == 0)
			depth--;
		else if (len > 0 && !(len == 1 && *at == '.'))
			depth++;
		if (depth < 0)
			return true;
		at += len + (at[len] == '/');
	}
	return false;
}

/* As many bytes as the header says, whatever becomes of the file meanwhile. */
static int put_data(struct packing *packing, const char *name, int fd, uint64_t size)
{
	char block[65536];
	bool told = false;
	for (uint64_t left = size + tar_padding(size); left > 0;) {
		size_t want = left < sizeof block ? (size_t)left : sizeof block;
		size_t data = left > tar_padding(size) ? (size_t)(left - tar_padding(size)) : 0;
		if (data > want)
			data = want;
		ssize_t n = fd_read_full(fd, block, data);
		if (n < (ssize_t)data && !told) {
			note(packing, name, "became shorter meanwhile; NUL bytes stand in for it");
			told = true;
		}
		memset(block + (n < 0 ? 0 : n), 0, want - (size_t)(n < 0 ? 0 : n));
		if (put(packing, block, want))
			return 1;
		left -= want;
	}
	return 0;
}

static int refuse(struct packing *packing, const char *name)
{
	packing->unsafe = arena_strdup(&packing->arena, name);
	return 1;
}

/* Before anything is written: is there a link that leads out? */
static int check(void *data, const char *name, const struct view_entry *entry, int errnum)
{
	struct packing *packing = data;
	const char *target = NULL;
	if (errnum || !S_ISLNK(entry->st.st_mode) ||
		view_link(entry, &packing->arena, &target) < 0 || !escapes(name, target))
		return 0;
	return refuse(packing, name);
}

static int each(void *data, const char *name, const struct view_entry *entry, int errnum)
{
	struct packing *packing = data;
	const char *target = NULL;
	AUTO_BUF header = { 0 };
	AUTO_FD fd = -1;
	mode_t mode = entry->st.st_mode;
	if (errnum == 0 && S_ISLNK(mode))
		errnum = -view_link(entry, &packing->arena, &target);
	if (errnum == 0 && S_ISREG(mode) && (fd = view_read(entry)) < 0)
		errnum = -fd;
	if (errnum)
		return note(packing, name, strerror(errnum));
	if (!S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode))
		return note(packing, name, "is left out: not a file, a directory or a link");
	if (target && escapes(name, target)) {
		packing->escapes++;
		/* It came since check() has looked: the archive ends here, and is not whole. */
		if (!packing->allow)
			return refuse(packing, name);
	}
	int r = tar_header(&header, name, target, &entry->st);
	if (r < 0)
		return note(packing, name, strerror(-r));
	if (put(packing, header.data, header.len))
		return 1;
	return S_ISREG(mode) ? put_data(packing, name, fd, (uint64_t)entry->st.st_size) : 0;
}

static int walk(struct files *files, const struct view_found *found, view_function *function,
	struct packing *packing)
{
	if (S_ISDIR(found->entry.st.st_mode))
		return view_walk(&files->view, found->path, true, function, packing);
	return function(packing, strrchr(found->path, '/') + 1, &found->entry, 0);
}

static int pack(struct files *files, const struct view_found *found, struct packing *packing,
	struct err *err)
{
	AUTO_BUF end = { 0 };
	int r = packing->allow ? 0 : walk(files, found, check, packing);
	if (r == 0)
		r = walk(files, found, each, packing);
	if (packing->unsafe) {
		err_set(err, ERR_unsafe_archive, 0,
			"unsafe archive: '%.300s' is a link that leads out of it", packing->unsafe);
		return err_hint_set(err, "--allow-unsafe-links packs such links as they are");
	}
	if (r == 0) {
		tar_end(&end);
		r = put(packing, end.data, end.len);
	}
	if (packing->error < 0)
		return err_set(err, ERR_result_unwritable, -packing->error,
			"cannot write to stdout: %s", strerror(-packing->error));
	if (r < 0)
		return err_set(
			err, ERR_session_path, -r, "'%.300s': %s", found->path, strerror(-r));
	return packing->skipped ? CLI_NO : CLI_YES;
}

static int get_archive(
	struct files *files, const struct view_found *found, bool allow, struct err *err)
{
	struct packing packing = { .notes.max = 65536, .allow = allow };
	int status = pack(files, found, &packing, err);
	if (packing.escapes && allow)
		buf_addf(&packing.notes,
			"agentbox: %zu link%s in the archive lead%s out of it; do not write "
			"through them\n",
			packing.escapes, packing.escapes == 1 ? "" : "s",
			packing.escapes == 1 ? "s" : "");
	say_note(&packing.notes);
	buf_free(&packing.notes);
	arena_free(&packing.arena);
	return status;
}

int cmd_get(const struct cli *cli, struct err *err)
{
	const struct options *options = &cli->options;
	struct files files;
	struct view_found found;
	if (options->arg_count != 2)
		return err_set(err, ERR_usage, 0, "get takes a session and a path");
	bool tar = options_has(options, OPTION_get_tar);
	bool allow = options_has(options, OPTION_get_allow_unsafe_links);
	if (allow && !tar)
		return err_set(err, ERR_usage, 0, "--allow-unsafe-links goes with --tar");
	if (files_open(options->args[0], false, &files, err) < 0)
		return files_answer(err);
	int r = files_find(&files, options->args[1], false, false, &found, err);
	if (r == 0) {
		r = tar ? get_archive(&files, &found, allow, err)
			: files_copy_out(&found.entry, options->args[1], err);
		view_found_close(&found);
	}
	files_close(&files);
	return r < 0 ? files_answer(err) : r;
}
