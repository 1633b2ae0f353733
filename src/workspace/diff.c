/* diff: a patch of many files, in the form that `git apply` takes. */
#define _GNU_SOURCE
#include "workspace/diff.h"
#include "base/fd.h"
#include "workspace/content.h"
#include "workspace/diff_lines.h"
#include "workspace/diff_out.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define CONTEXT 3

/* One side of a patch: "a/..." or /dev/null, between two words. */
static void put_name(struct buf *out, const char *mark, const char *prefix, const char *path,
	bool there, const char *end)
{
	buf_adds(out, mark);
	if (there)
		diff_quote(out, prefix, path);
	else
		buf_adds(out, "/dev/null");
	buf_adds(out, end);
}

static void put_range(struct buf *out, char sign, size_t from, size_t count)
{
	buf_addf(out, "%c%zu", sign, count ? from + 1 : from);
	if (count != 1)
		buf_addf(out, ",%zu", count);
}

static void put_line(struct diff_out *out, char sign, const struct diff_text *text, size_t index)
{
	const char *line = text->data + text->starts[index];
	size_t len = text->starts[index + 1] - text->starts[index];
	buf_add(&out->buf, &sign, 1);
	buf_add(&out->buf, line, len);
	if (len == 0 || line[len - 1] != '\n')
		buf_adds(&out->buf, "\n\\ No newline at end of file\n");
	diff_out_poll(out);
}

/* Where in both texts a hunk begins and ends. */
struct hunk {
	size_t a, a_end, b, b_end;
};

static void put_hunk(struct diff_out *out, const struct diff_text *a, const struct diff_text *b,
	const struct hunk *h)
{
	size_t x = h->a, y = h->b;
	buf_adds(&out->buf, "@@ ");
	put_range(&out->buf, '-', h->a, h->a_end - h->a);
	buf_adds(&out->buf, " ");
	put_range(&out->buf, '+', h->b, h->b_end - h->b);
	buf_adds(&out->buf, " @@\n");
	while (x < h->a_end || y < h->b_end) {
		if (x < h->a_end && a->changed[x]) {
			put_line(out, '-', a, x++);
		} else if (y < h->b_end && b->changed[y]) {
			put_line(out, '+', b, y++);
		} else {
			put_line(out, ' ', a, x++);
			y++;
		}
	}
}

/* The next stretch of changes from (x, y) on, with the lines around; false: there is none. */
static bool next_hunk(
	const struct diff_text *a, const struct diff_text *b, size_t x, size_t y, struct hunk *ret)
{
	size_t start = x;
	while (x < a->count && y < b->count && !a->changed[x] && !b->changed[y]) {
		x++;
		y++;
	}
	if (x == a->count && y == b->count)
		return false;
	size_t before = x - start < CONTEXT ? x - start : CONTEXT;
	ret->a = x - before;
	ret->b = y - before;
	for (size_t same = 0; same <= 2 * CONTEXT && (x < a->count || y < b->count);) {
		if (x < a->count && a->changed[x]) {
			x++;
			same = 0;
		} else if (y < b->count && b->changed[y]) {
			y++;
			same = 0;
		} else {
			x++;
			y++;
			same++;
		}
		if (same == 0) {
			ret->a_end = x;
			ret->b_end = y;
		}
	}
	size_t after = a->count - ret->a_end < CONTEXT ? a->count - ret->a_end : CONTEXT;
	ret->a_end += after;
	ret->b_end += after;
	return true;
}

static void put_text(struct diff_out *out, const char *path, const struct diff_file *file)
{
	struct diff_text a, b;
	struct arena arena = { 0 };
	struct hunk h = { 0 };
	put_name(&out->buf, "--- ", "a/", path, file->old.there, "\n");
	put_name(&out->buf, "+++ ", "b/", path, file->new.there, "\n");
	diff_lines(&arena, file->old.text ? file->old.text : "", file->old.size,
		file->new.text ? file->new.text : "", file->new.size, &a, &b);
	while (next_hunk(&a, &b, h.a_end, h.b_end, &h))
		put_hunk(out, &a, &b, &h);
	arena_free(&arena);
}

/* Have both the same content? 1, 0 or -errno. */
static int same_side(const struct diff_side *a, const struct diff_side *b)
{
	if (!a->huge && !b->huge)
		return strcmp(a->hash, b->hash) == 0;
	return a->huge && b->huge ? content_same(a->fd, b->fd) : 0;
}

static int put_huge(struct diff_out *out, const char *path, const struct diff_file *file)
{
	put_name(&out->buf, "Binary files ", "a/", path, file->old.there, "");
	put_name(&out->buf, " and ", "b/", path, file->new.there, " differ\n");
	out->huge++;
	return 0;
}

/* One file; both forms, where there are two, of one type. */
static int put_file(struct diff_out *out, const char *path, const struct diff_file *file)
{
	const struct diff_side *a = &file->old, *b = &file->new;
	int same = same_side(a, b);
	bool moded = strcmp(a->mode, b->mode) != 0;
	if (same < 0 || (same && !moded))
		return same < 0 ? same : 0;
	buf_adds(&out->buf, "diff --git ");
	diff_quote(&out->buf, "a/", path);
	buf_adds(&out->buf, " ");
	diff_quote(&out->buf, "b/", path);
	buf_adds(&out->buf, "\n");
	if (!a->there)
		buf_addf(&out->buf, "new file mode %s\n", b->mode);
	else if (!b->there)
		buf_addf(&out->buf, "deleted file mode %s\n", a->mode);
	else if (moded)
		buf_addf(&out->buf, "old mode %s\nnew mode %s\n", a->mode, b->mode);
	if (same)
		return 0;
	if (a->huge || b->huge)
		return put_huge(out, path, file);
	buf_addf(&out->buf, "index %s..%s", a->hash, b->hash);
	buf_addf(&out->buf, a->there && b->there && !moded ? " %s\n" : "\n", a->mode);
	if (a->binary || b->binary) {
		buf_adds(&out->buf, "GIT binary patch\n");
		return diff_put_literal(out, b);
	}
	if (a->size || b->size)
		put_text(out, path, file);
	return 0;
}

/* A file that became a link, or the other way, is one that goes and one that comes. */
static int put_change(struct diff_out *out, const char *path, const struct diff_file *file)
{
	if (!file->old.there || !file->new.there ||
		(strcmp(file->old.mode, "120000") == 0) == (strcmp(file->new.mode, "120000") == 0))
		return put_file(out, path, file);
	struct diff_file half = *file;
	half.new = (struct diff_side){ .fd = -1, .mode = "" };
	memset(half.new.hash, '0', sizeof half.new.hash - 1);
	int r = put_file(out, path, &half);
	half.old = half.new;
	half.new = file->new;
	return r < 0 ? r : put_file(out, path, &half);
}

static int unreadable(struct err *err, const struct change *c, int r)
{
	bool full = r == -ENOMEM || r == -EMFILE || r == -ENFILE;
	return err_set(err, full ? ERR_no_resources : ERR_workspace_unreadable, -r,
		"'%.300s' cannot be read: %s", c->path, strerror(-r));
}

int diff_patch(const struct changes_layer *layers, const struct changes *changes,
	const bool *chosen, int fd, size_t *ret_left, struct err *err)
{
	struct diff_out out = { .fd = fd };
	struct dirs lower, upper;
	size_t left = 0;
	int failed = 0;
	dirs_init(&lower, layers[0].lower, false);
	dirs_init(&upper, layers[0].upper, true);
	for (size_t i = 0; i < changes->count && out.error == 0 && failed == 0; i++) {
		const struct change *c = &changes->list[i];
		struct diff_file file;
		if (chosen && !chosen[i])
			continue;
		bool fits = S_ISREG(c->mode) || S_ISLNK(c->mode) || S_ISDIR(c->mode);
		if (c->layer > 0 || !fits)
			left++;
		if (c->layer > 0 || !diff_file_fits(c))
			continue;
		int r = diff_file_open(&lower, &upper, c, &file);
		if (r == 0) {
			r = put_change(&out, c->path, &file);
			diff_file_close(&file);
			diff_out_poll(&out);
		}
		if (r < 0)
			failed = unreadable(err, c, r);
	}
	dirs_free(&lower);
	dirs_free(&upper);
	diff_out_flush(&out);
	buf_free(&out.buf);
	if (failed == 0 && out.error < 0)
		return err_set(err, ERR_result_unwritable, -out.error,
			"the patch cannot be written: %s", strerror(-out.error));
	*ret_left = left + out.huge;
	return failed;
}
