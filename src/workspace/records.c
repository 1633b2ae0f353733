/* records: lists of changes in a file. Knows nothing of trees. */
#define _GNU_SOURCE
#include "workspace/records.h"
#include "base/fd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FLUSH_AT   ((size_t)256 << 10)
#define TARGET_MAX 4096

enum flags {
	SENSITIVE = 1,
	HELD = 2,
	ESCAPES = 4,
	TARGET = 8,
	THERE = 16,
	CONFLICT = 32,
	QUIET = 64,
	FLAGS_ALL = 127,
};

void records_escape(struct buf *out, const char *text, size_t len)
{
	size_t plain = 0;
	for (size_t i = 0; i <= len; i++) {
		unsigned char byte = i < len ? (unsigned char)text[i] : 0;
		if (i < len && byte > ' ' && byte != '\\' && byte != 0x7f)
			continue;
		buf_add(out, text + plain, i - plain);
		if (i < len)
			buf_addf(out, "\\x%02x", byte);
		plain = i + 1;
	}
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Undo records_escape in place; the new length, or -1. */
static ssize_t unescape(char *text, size_t len)
{
	size_t to = 0;
	for (size_t i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)text[i];
		if (byte <= ' ' || byte == 0x7f)
			return -1;
		if (byte == '\\') {
			if (len - i < 4 || text[i + 1] != 'x')
				return -1;
			int high = hex_digit(text[i + 2]), low = hex_digit(text[i + 3]);
			if (high < 0 || low < 0 || (high == 0 && low == 0))
				return -1;
			byte = (unsigned char)(high * 16 + low);
			i += 3;
		}
		text[to++] = (char)byte;
	}
	return (ssize_t)to;
}

char *records_unescape(struct arena *arena, const char *text, size_t len)
{
	char *copy = arena_strndup(arena, text, len);
	ssize_t n = unescape(copy, len);
	if (n < 0)
		return NULL;
	copy[n] = 0;
	return copy;
}

void records_begin(struct records_writer *writer, int fd)
{
	*writer = (struct records_writer){ .fd = fd };
}

static void flush(struct records_writer *writer)
{
	if (writer->error == 0 && writer->out.full)
		writer->error = -EFBIG;
	writer->bytes += writer->out.len;
	if (writer->error == 0 && writer->bytes > RECORDS_FILE_MAX)
		writer->error = -EFBIG;
	if (writer->error == 0)
		writer->error = fd_write_full(writer->fd, writer->out.data, writer->out.len);
	writer->out.len = 0;
}

static unsigned flags_of(const struct record *record)
{
	const struct change *c = &record->change;
	return (c->sensitive ? SENSITIVE : 0u) | (c->held ? HELD : 0u) |
	       (c->escapes ? ESCAPES : 0u) | (c->target ? TARGET : 0u) | (c->quiet ? QUIET : 0u) |
	       (record->base.there ? THERE : 0u) | (record->base.conflict ? CONFLICT : 0u);
}

void records_put(struct records_writer *writer, const struct record *record)
{
	const struct change *c = &record->change;
	const struct apply_base *b = &record->base;
	struct buf *out = &writer->out;
	size_t shared = 0;
	while (shared < writer->last.len && c->path[shared] == writer->last.data[shared])
		shared++;
	buf_addf(out, "%c %zu %u %o %" PRIu64 " %u %o %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64,
		record->action, c->layer, (unsigned)c->kind, (unsigned)c->mode, c->size,
		flags_of(record), (unsigned)b->mode, b->size, b->ino, b->mtime_ns, b->ctime_ns);
	if (record->action != '-')
		buf_addf(out, " %" PRIu64 " %" PRIu64 " %" PRIu64, record->seq, record->dir_ino,
			record->new_ino);
	buf_addf(out, " %zu ", shared);
	records_escape(out, c->path + shared, strlen(c->path + shared));
	if (c->target) {
		buf_adds(out, " ");
		records_escape(out, c->target, strlen(c->target));
	}
	buf_adds(out, "\n");
	writer->last.len = shared;
	if (buf_adds(&writer->last, c->path + shared) < 0 && writer->error == 0)
		writer->error = -EFBIG;
	writer->count++;
	if (out->len >= FLUSH_AT)
		flush(writer);
}

int records_end(struct records_writer *writer)
{
	buf_addf(&writer->out, "end %" PRIu64 "\n", writer->count);
	flush(writer);
	buf_free(&writer->out);
	buf_free(&writer->last);
	return writer->error;
}

bool records_path_valid(const char *path)
{
	for (const char *name = path;;) {
		size_t len = strcspn(name, "/");
		if (len == 0 || len > 255 || (len == 1 && name[0] == '.') ||
			(len == 2 && name[0] == '.' && name[1] == '.'))
			return false;
		if (!name[len])
			return true;
		name += len + 1;
	}
}

static bool is_top(const char *path, size_t len)
{
	return len == 1 && path[0] == '.';
}

int records_path_order(const char *a, const char *b, size_t len)
{
	size_t i = 0;
	bool first = a[0] == '.' && !a[1], second = is_top(b, len);
	if (first || second)
		return (int)second - (int)first;
	while (i < len && a[i] == b[i])
		i++;
	/* "/" comes before all other bytes, and the end before "/". */
	int one = !a[i] ? 0 : a[i] == '/' ? 1 : (unsigned char)a[i] + 2;
	int other = i == len ? 0 : b[i] == '/' ? 1 : (unsigned char)b[i] + 2;
	return one - other;
}

struct reader {
	const char *at, *end;
	struct arena *arena;
	const char *last;
	size_t last_len, layer_count, text;
};

/* The next word of a line, up to a blank or the line's end, which is not passed. */
static size_t word(struct reader *r, const char **ret)
{
	*ret = r->at;
	while (r->at < r->end && *r->at != ' ' && *r->at != '\n')
		r->at++;
	return (size_t)(r->at - *ret);
}

static bool skip(struct reader *r, char c)
{
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

/* A number and the blank behind it. */
static bool number(struct reader *r, unsigned base, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;
	const char *start = r->at;
	while (r->at < r->end && *r->at >= '0' && *r->at < (char)('0' + base)) {
		uint64_t digit = (uint64_t)(*r->at++ - '0');
		if (value > (max - digit) / base)
			return false;
		value = value * base + digit;
	}
	*ret = value;
	return r->at > start && value <= max && skip(r, ' ');
}

static bool signed_number(struct reader *r, int64_t *ret)
{
	bool minus = skip(r, '-');
	uint64_t value;
	if (!number(r, 10, INT64_MAX, &value))
		return false;
	*ret = minus ? -(int64_t)value : (int64_t)value;
	return true;
}

static bool mode_valid(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFLNK:
	case S_IFIFO:
	case S_IFSOCK:
	case S_IFCHR:
	case S_IFBLK:
		return true;
	default:
		return false;
	}
}

static bool read_numbers(struct reader *r, struct record *record, uint64_t *ret_flags)
{
	struct change *c = &record->change;
	struct apply_base *b = &record->base;
	uint64_t layer, kind, mode, base_mode;
	if (!number(r, 10, r->layer_count - 1, &layer) || !number(r, 10, CHANGE_DELETED, &kind) ||
		!number(r, 8, 0177777, &mode) || !number(r, 10, INT64_MAX, &c->size) ||
		!number(r, 10, FLAGS_ALL, ret_flags) || !number(r, 8, 0177777, &base_mode) ||
		!number(r, 10, INT64_MAX, &b->size) || !number(r, 10, UINT64_MAX, &b->ino) ||
		!signed_number(r, &b->mtime_ns) || !signed_number(r, &b->ctime_ns))
		return false;
	if (record->action != '-' && (!number(r, 10, SIZE_MAX, &record->seq) ||
					     !number(r, 10, UINT64_MAX, &record->dir_ino) ||
					     !number(r, 10, UINT64_MAX, &record->new_ino)))
		return false;
	c->layer = layer;
	c->kind = (enum change_kind)kind;
	c->mode = (mode_t)mode;
	b->mode = (mode_t)base_mode;
	return mode_valid(c->mode);
}

static int read_path(struct reader *r, struct change *c)
{
	uint64_t shared;
	const char *rest;
	if (!number(r, 10, r->last_len, &shared))
		return -EBADMSG;
	size_t len = word(r, &rest);
	r->text += shared + len + 1;
	if (r->text > RECORDS_TEXT_MAX)
		return -EFBIG;
	char *path = arena_alloc(r->arena, shared + len + 1);
	memcpy(path, r->last, shared);
	memcpy(path + shared, rest, len);
	ssize_t n = unescape(path + shared, len);
	if (n < 0)
		return -EBADMSG;
	path[shared + (size_t)n] = 0;
	/* The tree's own directory can be changed, and neither be made nor go. */
	bool top = strcmp(path, ".") == 0 && c->kind == CHANGE_MODIFIED && S_ISDIR(c->mode);
	if (!top && !records_path_valid(path))
		return -EBADMSG;
	c->path = r->last = path;
	r->last_len = shared + (size_t)n;
	return 0;
}

static int read_record(struct reader *r, struct record *record)
{
	uint64_t flags;
	record->action = *r->at++;
	bool letter = (record->action >= 'a' && record->action <= 'z') ||
		      (record->action >= 'A' && record->action <= 'Z') || record->action == '-';
	if (!letter || !skip(r, ' ') || !read_numbers(r, record, &flags))
		return -EBADMSG;
	struct change *c = &record->change;
	int error = read_path(r, c);
	if (error < 0)
		return error;
	c->sensitive = flags & SENSITIVE;
	c->held = flags & HELD;
	c->escapes = flags & ESCAPES;
	c->quiet = flags & QUIET;
	record->base.there = flags & THERE;
	record->base.conflict = flags & CONFLICT;
	if (flags & TARGET) {
		const char *text;
		if (!skip(r, ' '))
			return -EBADMSG;
		size_t len = word(r, &text);
		r->text += len + 1;
		if (len > 4 * TARGET_MAX || r->text > RECORDS_TEXT_MAX)
			return -EFBIG;
		c->target = records_unescape(r->arena, text, len);
		if (!c->target)
			return -EBADMSG;
	}
	return skip(r, '\n') ? 0 : -EBADMSG;
}

int records_each(struct arena *arena, const char *text, size_t len, size_t layer_count,
	records_visit *visit, void *data)
{
	struct reader r = { .at = text, .end = text + len, .arena = arena, .last = "" };
	uint64_t count = 0;
	r.layer_count = layer_count;
	if (layer_count == 0 || len > RECORDS_FILE_MAX)
		return len > RECORDS_FILE_MAX ? -EFBIG : -EBADMSG;
	for (; r.end - r.at >= 4 && memcmp(r.at, "end ", 4) != 0; count++) {
		struct record record = { 0 };
		int error = read_record(&r, &record);
		if (error < 0)
			return error;
		visit(data, &record);
	}
	char last[40];
	int last_len = snprintf(last, sizeof last, "end %" PRIu64 "\n", count);
	if (r.end - r.at != last_len || memcmp(r.at, last, (size_t)last_len) != 0)
		return -EBADMSG;
	return 0;
}

static void count_one(void *data, const struct record *record)
{
	(void)record;
	++*(size_t *)data;
}

int records_count(const char *text, size_t len, size_t layer_count, size_t *ret_count)
{
	struct arena arena = { 0 };
	size_t count = 0;
	int r = records_each(&arena, text, len, layer_count, count_one, &count);
	arena_free(&arena);
	if (r == 0)
		*ret_count = count;
	return r;
}

struct filling {
	struct record *list;
	size_t count;
};

static void fill_one(void *data, const struct record *record)
{
	struct filling *filling = data;
	filling->list[filling->count++] = *record;
}

int records_read(struct arena *arena, const char *text, size_t len, size_t layer_count,
	struct record **ret_list, size_t *ret_count)
{
	struct filling filling = { 0 };
	size_t count;
	int r = records_count(text, len, layer_count, &count);
	if (r < 0)
		return r;
	filling.list = ARENA_ARRAY(arena, count + 1, struct record);
	r = records_each(arena, text, len, layer_count, fill_one, &filling);
	if (r < 0)
		return r;
	*ret_list = filling.list;
	*ret_count = filling.count;
	return 0;
}
