/* diff_stat: how many lines of which file were added and removed, as a table. */
#define _GNU_SOURCE
#include "workspace/diff.h"
#include "workspace/diff_lines.h"
#include "workspace/diff_out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct row {
	const char *name; /* shown, no control characters */
	bool binary;
	uint64_t old, new; /* bytes of a binary file */
	size_t added, removed;
};

struct table {
	struct row *rows;
	size_t count;
	struct arena arena;
};

static size_t count_changed(const struct diff_text *text)
{
	size_t count = 0;
	for (size_t i = 0; i < text->count; i++)
		count += text->changed[i];
	return count;
}

static void measure(const struct diff_file *file, struct row *row)
{
	struct diff_text a, b;
	struct arena arena = { 0 };
	row->binary = file->old.binary || file->new.binary;
	row->old = file->old.size;
	row->new = file->new.size;
	if (!row->binary && strcmp(file->old.hash, file->new.hash) != 0) {
		diff_lines(&arena, file->old.text ? file->old.text : "", file->old.size,
			file->new.text ? file->new.text : "", file->new.size, &a, &b);
		row->removed = count_changed(&a);
		row->added = count_changed(&b);
	}
	arena_free(&arena);
}

static int add_row(struct table *table, const struct changes_layer *layers, const struct change *c,
	struct dirs *lower, struct dirs *upper)
{
	struct diff_file file;
	AUTO_BUF name = { 0 };
	int r = diff_file_open(lower, upper, c, &file);
	if (r < 0)
		return r;
	if (file.old.there || file.new.there) {
		struct row *row =
			arena_push(&table->arena, &table->rows, &table->count, sizeof *row);
		measure(&file, row);
		if (c->layer > 0) {
			buf_adds(&name, layers[c->layer].root);
			buf_adds(&name, "/");
		}
		buf_adds(&name, c->path);
		AUTO_BUF quoted = { 0 };
		diff_quote(&quoted, "", buf_text(&name));
		row->name = arena_strdup(&table->arena, buf_text(&quoted));
	}
	diff_file_close(&file);
	return 0;
}

static size_t digits(size_t number)
{
	size_t count = 1;
	while (number >= 10) {
		number /= 10;
		count++;
	}
	return count;
}

/* A part of the bar: at least one sign for what is not nothing. */
static size_t scaled(size_t part, size_t most, size_t room)
{
	if (most <= room)
		return part;
	return part ? 1 + (size_t)((uint64_t)part * (room - 1) / most) : 0;
}

static void put_row(struct buf *out, const struct row *row, size_t name_width, size_t number_width,
	size_t most, size_t room)
{
	size_t len = strlen(row->name);
	if (len > name_width)
		buf_addf(out, " ...%s", row->name + len - (name_width - 3));
	else
		buf_addf(out, " %-*s", (int)name_width, row->name);
	if (row->binary) {
		buf_addf(out, " | %*s %" PRIu64 " -> %" PRIu64 " bytes\n", (int)number_width, "Bin",
			row->old, row->new);
		return;
	}
	buf_addf(out, " | %*zu", (int)number_width, row->added + row->removed);
	size_t plus = scaled(row->added, most, room), minus = scaled(row->removed, most, room);
	buf_adds(out, plus + minus ? " " : "");
	while (plus-- > 0)
		buf_adds(out, "+");
	while (minus-- > 0)
		buf_adds(out, "-");
	buf_adds(out, "\n");
}

static void put_table(const struct table *table, size_t columns, struct buf *out)
{
	size_t name_width = 0, most = 0, added = 0, removed = 0, number_width = 1;
	for (size_t i = 0; i < table->count; i++) {
		const struct row *row = &table->rows[i];
		size_t len = strlen(row->name), total = row->added + row->removed;
		name_width = len > name_width ? len : name_width;
		most = total > most ? total : most;
		number_width = row->binary && number_width < 3 ? 3 : number_width;
		added += row->added;
		removed += row->removed;
	}
	number_width = digits(most) > number_width ? digits(most) : number_width;
	size_t limit = columns > 40 ? columns * 5 / 8 : 20;
	name_width = name_width > limit ? limit : name_width;
	size_t used = name_width + number_width + 6;
	size_t room = columns > used + 10 ? columns - used : 10;
	for (size_t i = 0; i < table->count; i++)
		put_row(out, &table->rows[i], name_width, number_width, most, room);
	if (table->count == 0)
		return;
	buf_addf(out, " %zu file%s changed", table->count, table->count == 1 ? "" : "s");
	if (added || !removed)
		buf_addf(out, ", %zu insertion%s(+)", added, added == 1 ? "" : "s");
	if (removed || !added)
		buf_addf(out, ", %zu deletion%s(-)", removed, removed == 1 ? "" : "s");
	buf_adds(out, "\n");
}

int diff_stat(const struct changes_layer *layers, const struct changes *changes, const bool *chosen,
	unsigned columns, struct buf *out, struct err *err)
{
	struct table table = { 0 };
	struct dirs lower = { .root = -1 }, upper = { .root = -1 };
	size_t layer = SIZE_MAX;
	int r = 0;
	for (size_t i = 0; i < changes->count && r == 0; i++) {
		const struct change *c = &changes->list[i];
		if ((chosen && !chosen[i]) || !diff_file_fits(c))
			continue;
		if (c->layer != layer) {
			dirs_free(&lower);
			dirs_free(&upper);
			layer = c->layer;
			dirs_init(&lower, layers[layer].lower, false);
			dirs_init(&upper, layers[layer].upper, true);
		}
		r = add_row(&table, layers, c, &lower, &upper);
		if (r < 0)
			err_set(err,
				r == -ENOMEM || r == -EMFILE || r == -ENFILE
					? ERR_no_resources
					: ERR_workspace_unreadable,
				-r, "'%.300s' cannot be read: %s", c->path, strerror(-r));
	}
	if (r == 0)
		put_table(&table, columns, out);
	dirs_free(&lower);
	dirs_free(&upper);
	arena_free(&table.arena);
	return r < 0 ? -1 : 0;
}
