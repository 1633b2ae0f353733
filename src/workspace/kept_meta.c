/* kept_meta: the file that says what a kept result belongs to. Opens nothing. */
#include "workspace/kept_meta.h"
#include "base/fd.h"
#include "workspace/records.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define FIRST "agentbox-kept 1\n"
#define LAST  "end"
#define WORDS 100000 /* of each list */

static void put(struct buf *out, const char *key, const char *value)
{
	buf_addf(out, "%s ", key);
	records_escape(out, value, strlen(value));
	buf_adds(out, "\n");
}

static void put_all(struct buf *out, const char *key, const char *const *values)
{
	for (; values && *values; values++)
		put(out, key, *values);
}

int kept_meta_write(int fd, const struct kept_source *source)
{
	AUTO_BUF out = { .max = KEPT_META_MAX };
	buf_adds(&out, FIRST);
	buf_addf(&out, "started %" PRId64 "\nended %" PRId64 "\n", source->started_ns,
		source->ended_ns);
	put(&out, "policy", source->policy ? source->policy : "");
	put_all(&out, "arg", source->argv);
	for (size_t i = 0; i < source->layer_count; i++) {
		const struct changes_layer *layer = &source->layers[i];
		buf_addf(&out, "layer%s%s ", layer->whole ? "-whole" : "",
			layer->lower < 0 ? "-alone" : "");
		records_escape(&out, layer->root, strlen(layer->root));
		buf_adds(&out, "\n");
	}
	put_all(&out, "held", source->rules.held);
	put_all(&out, "sensitive", source->rules.sensitive);
	buf_adds(&out, LAST "\n");
	return out.full ? -EFBIG : fd_write_full(fd, out.data, out.len);
}

struct list {
	const char **items;
	size_t count;
};

static int add(struct arena *arena, struct list *list, const char *value)
{
	if (list->count >= WORDS)
		return -EFBIG;
	const char **item = arena_push(arena, &list->items, &list->count, sizeof *item);
	*item = value;
	return 0;
}

static const char *const *finish(struct arena *arena, struct list *list)
{
	arena_push(arena, &list->items, &list->count, sizeof *list->items);
	return list->items;
}

static int read_time(const char *text, int64_t *ret)
{
	char *end;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (errno || end == text || *end || (*text != '-' && (*text < '0' || *text > '9')))
		return -EBADMSG;
	*ret = value;
	return 0;
}

/* "layer", "layer-whole", "layer-alone" or "layer-whole-alone" */
static int read_layer(struct kept_meta *meta, const char *kind, const char *root)
{
	if (meta->layer_count == KEPT_LAYERS_MAX || *root != '/' || strlen(root) >= PATH_MAX)
		return -EBADMSG;
	bool whole = strncmp(kind, "-whole", 6) == 0;
	kind += whole ? 6 : 0;
	bool alone = strcmp(kind, "-alone") == 0;
	if (*kind && !alone)
		return -EBADMSG;
	meta->layers[meta->layer_count].root = root;
	meta->layers[meta->layer_count].whole = whole;
	meta->layers[meta->layer_count++].lower = !alone;
	return 0;
}

struct lists {
	struct list argv, held, sensitive;
};

static int read_line(struct arena *arena, struct kept_meta *meta, struct lists *lists,
	const char *key, const char *value)
{
	if (strcmp(key, "started") == 0)
		return read_time(value, &meta->started_ns);
	if (strcmp(key, "ended") == 0)
		return read_time(value, &meta->ended_ns);
	if (strcmp(key, "policy") == 0) {
		meta->policy = value;
		return 0;
	}
	if (strncmp(key, "layer", 5) == 0)
		return read_layer(meta, key + 5, value);
	if (strcmp(key, "arg") == 0)
		return add(arena, &lists->argv, value);
	if (strcmp(key, "held") == 0)
		return add(arena, &lists->held, value);
	if (strcmp(key, "sensitive") == 0)
		return add(arena, &lists->sensitive, value);
	return -EBADMSG;
}

static int parse(struct arena *arena, char *text, struct kept_meta *meta, struct lists *lists)
{
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = 0;
		if (strcmp(line, LAST) == 0)
			return end[1] ? -EBADMSG : 0;
		char *blank = strchr(line, ' ');
		if (!blank)
			return -EBADMSG;
		*blank = 0;
		const char *value = records_unescape(arena, blank + 1, strlen(blank + 1));
		int r = value ? read_line(arena, meta, lists, line, value) : -EBADMSG;
		if (r < 0)
			return r;
	}
	return -EBADMSG; /* it was cut off */
}

int kept_meta_read(int fd, struct arena *arena, struct kept_meta *ret)
{
	struct kept_meta meta = { 0 };
	struct lists lists = { 0 };
	char *text;
	size_t len;
	int r = fd_read_file(arena, fd, KEPT_META_MAX, &text, &len);
	if (r < 0)
		return r;
	if (strlen(text) != len || strncmp(text, FIRST, sizeof FIRST - 1) != 0)
		return -EBADMSG;
	r = parse(arena, text + sizeof FIRST - 1, &meta, &lists);
	if (r == 0 && (!meta.policy || meta.layer_count == 0))
		r = -EBADMSG;
	if (r < 0)
		return r;
	meta.argv = finish(arena, &lists.argv);
	meta.held = finish(arena, &lists.held);
	meta.sensitive = finish(arena, &lists.sensitive);
	*ret = meta;
	return 0;
}
