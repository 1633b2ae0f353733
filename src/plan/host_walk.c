/*
 * host_walk: one pass over a tree, by descriptors, following nothing. A directory is read to its
 * end before what is in it is entered; of its entries only those are kept that match or are to be
 * entered. Where an index says what a directory has, it is not read again.
 */
#define _GNU_SOURCE
#include "plan/host_walk.h"
#include "plan/host_ahead.h"
#include "plan/host_index.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define DEPTH_MAX   256
#define ENTRIES_MAX ((size_t)32 << 10)  /* bytes that the kernel gives at once */
#define LISTS_MAX   ((size_t)256 << 20) /* bytes of the lists of all open directories */

/* As the kernel packs them (getdents64(2)). */
struct entry64 {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

struct walk {
	struct search *search;
	const struct row_set *set;
	struct host_index index;
	struct ahead ahead;
	struct arena arena;
	struct buf lists; /* of the directories that we are in, one behind the other */
	char *entries;
	/* By depth: where a name begins in the path, and the patterns' states there. */
	size_t names[DEPTH_MAX + 1];
	uint64_t *states[DEPTH_MAX + 1];
	int stated; /* down to this depth they are those of the path; deeper ones nobody asked for
		     */
	char path[PATH_MAX];
	size_t len;
	uint64_t seen;
};

/* A directory's list: in the older index (bytes), or at `start` of walk->lists. */
struct list {
	const char *bytes;
	size_t start, len;
};

static const char *list_at(const struct walk *walk, const struct list *list, size_t offset)
{
	return (list->bytes ? list->bytes : walk->lists.data + list->start) + offset;
}

static int too_large(struct walk *walk)
{
	return err_set(walk->search->err, ERR_too_many_matches, 0,
		"'%s' is too large or deep a tree to look for patterns in (more than %d entries, "
		"or %d levels)",
		walk->search->tree, HOST_WALK_MAX, DEPTH_MAX);
}

static int keep(struct walk *walk, enum index_what what, const char *name, size_t len, uint8_t type,
	size_t pattern)
{
	const struct index_entry entry = {
		.what = what,
		.type = type,
		.pattern = (uint16_t)pattern,
		.name = name,
		.len = len,
	};
	return index_put(&walk->lists, &entry) < 0 ? too_large(walk) : 0;
}

/* Judge one entry of the directory at `depth`; *enter counts what is to be entered. */
static int judge(struct walk *walk, int dir, const struct entry64 *entry, int depth,
	struct index_record *record)
{
	const char *name = entry->name;
	size_t len = strlen(name);
	bool alive = false;
	uint8_t type = entry->type;
	struct stat st;
	if (type == DT_UNKNOWN && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		type = IFTODT(st.st_mode);
	for (size_t i = 0; i < walk->set->count; i++) {
		const struct row *pattern = &walk->set->list[i];
		if (!walk->states[depth][i])
			continue;
		uint64_t state = row_step(pattern, walk->states[depth][i], name, len);
		alive |= row_alive(pattern, state);
		if (!row_matches(pattern, state))
			continue;
		if (keep(walk, INDEX_MATCH, name, len, type, i) < 0)
			return -1;
		if (pattern->hide)
			return 0; /* nothing below it needs a look */
	}
	if (!alive || type != DT_DIR)
		return 0;
	record->enter++;
	return keep(walk, INDEX_ENTER, name, len, type, 0);
}

static int read_entries(struct walk *walk, int dir, int depth, struct index_record *record)
{
	for (;;) {
		long n = syscall(SYS_getdents64, dir, walk->entries, ENTRIES_MAX);
		if (n < 0) {
			record->ino = 0; /* half a list is none */
			return search_unsearchable(walk->search, walk->path, errno);
		}
		if (n == 0)
			return 0;
		for (long at = 0; at < n;) {
			const struct entry64 *entry = (const void *)(walk->entries + at);
			const char *name = entry->name;
			at += entry->len;
			if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2])))
				continue;
			record->seen++;
			if (walk->seen + record->seen > HOST_WALK_MAX)
				return too_large(walk);
			if (judge(walk, dir, entry, depth, record) < 0)
				return -1;
		}
	}
}

/* One level's states, from those above it. */
static void step_into(struct walk *walk, int depth)
{
	const struct row_set *set = walk->set;
	if (!walk->states[depth])
		walk->states[depth] = ARENA_ARRAY(&walk->arena, set->count + 1, uint64_t);
	char *name = walk->path + walk->names[depth], *end = strchrnul(name, '/'), was = *end;
	*end = 0;
	for (size_t i = 0; i < set->count; i++) {
		uint64_t above = depth ? walk->states[depth - 1][i] : 0;
		walk->states[depth][i] =
			depth == 0 ? row_begin(&set->list[i])
			: above    ? row_step(&set->list[i], above, name, (size_t)(end - name))
				   : 0;
	}
	*end = was;
}

/* Only a directory that is read needs them. */
static void set_states(struct walk *walk, int depth)
{
	while (walk->stated < depth)
		step_into(walk, ++walk->stated);
}

/* The kernel's own file systems are not shown with a layer's tree, and have no end. */
static bool is_kernels(const struct walk *walk)
{
	const struct host *host = walk->search->host;
	for (size_t i = 0; i < host->mount_count; i++)
		if (host->mounts[i].kernels && strcmp(host->mounts[i].path, walk->path) == 0)
			return search_in_layer(walk->search, walk->path);
	return false;
}

/* Read the directory anew; *fd is it, or -1 where it cannot be searched and need not. */
static int read_directory(struct walk *walk, int parent, const char *name, int depth, int *fd,
	struct index_record *record, struct list *list)
{
	struct timespec now;
	struct stat st;
	*record = (struct index_record){ 0 };
	*list = (struct list){ .start = walk->lists.len };
	fd_close(fd);
	if (is_kernels(walk))
		return 0;
	*fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*fd < 0)
		return search_unsearchable(walk->search, walk->path, errno);
	/* In this order: whatever changes from here on has a later change time. */
	if (clock_gettime(CLOCK_REALTIME, &now) == 0 && fstat(*fd, &st) == 0)
		index_identify(&walk->index, &st, &now, record);
	set_states(walk, depth);
	int r = read_entries(walk, *fd, depth, record);
	list->len = walk->lists.len - list->start;
	record->bytes = (uint32_t)list->len;
	return r;
}

/* Is it as the older index has it? A directory with others in it is opened for them at once. */
static bool unchanged(struct walk *walk, int parent, const char *name, const struct index_part *old,
	const struct index_record *record, int *fd)
{
	struct stat st;
	if (!record->ino)
		return false;
	if (record->enter == 0)
		return ahead_same(&walk->ahead, old) ||
		       (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			       index_unchanged(record, &st));
	*fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *fd >= 0 && fstat(*fd, &st) == 0 && index_unchanged(record, &st);
}

/* Go to an entry of the directory that path names; the old length, for the way back. */
static int append(struct walk *walk, const struct index_entry *entry, size_t *ret_len)
{
	size_t len = walk->len;
	bool slash = len > 1; /* not of "/" */
	*ret_len = len;
	if (len + entry->len + 2 > sizeof walk->path)
		return search_unsearchable(walk->search, walk->path, ENAMETOOLONG);
	if (slash)
		walk->path[len++] = '/';
	memcpy(walk->path + len, entry->name, entry->len);
	walk->len = len + entry->len;
	walk->path[walk->len] = 0;
	return 0;
}

static int add_match(struct walk *walk, const struct index_entry *entry, bool again)
{
	struct search *search = walk->search;
	const struct row *pattern = &walk->set->list[entry->pattern];
	if (!pattern->hide)
		search->found[pattern->number] = true;
	if (again)
		return 0;
	/* The walk follows no links; only an absolute pattern's tree may lie behind one. */
	bool plain = !search->only || (pattern->hide && search_in_layer(search, walk->path));
	if (plain && entry->type != DT_LNK && entry->type != DT_UNKNOWN)
		return search_add_plain(
			search, pattern->hide, pattern->from, walk->path, DTTOIF(entry->type));
	return search_add(search, pattern->hide, pattern->from, walk->path);
}

static int enter(
	struct walk *walk, int parent, const char *name, const struct index_part *old, int depth);

/* Add what matched, and enter what is to be entered. */
static int follow(
	struct walk *walk, int fd, const struct list *list, const struct index_part *old, int depth)
{
	struct index_children children;
	struct index_entry entry;
	const char *last = NULL;
	size_t last_len = 0, here;
	index_children_of(old, &children);
	for (size_t done = 0; done < list->len;) {
		const char *at = list_at(walk, list, done), *from = at;
		if (!index_next(&at, list_at(walk, list, list->len), &entry))
			return too_large(walk); /* cannot be: it was read before */
		done += (size_t)(at - from);
		bool again =
			last && last_len == entry.len && memcmp(last, entry.name, entry.len) == 0;
		if (append(walk, &entry, &here) < 0)
			return -1;
		const char *name = walk->path + walk->len - entry.len;
		int r;
		if (entry.what == INDEX_MATCH) {
			r = add_match(walk, &entry, again);
		} else {
			struct index_part part = index_child(&children, entry.name, entry.len);
			r = enter(walk, fd, name, &part, depth + 1);
		}
		walk->path[here] = 0;
		walk->len = here;
		last = entry.what == INDEX_MATCH ? name : NULL;
		last_len = entry.len;
		if (r < 0)
			return -1;
	}
	return 0;
}

static int enter(
	struct walk *walk, int parent, const char *name, const struct index_part *old, int depth)
{
	struct index_record record;
	struct index_part kept;
	struct list list;
	AUTO_FD fd = -1;
	if (depth > DEPTH_MAX)
		return too_large(walk);
	walk->names[depth] = (size_t)(depth ? name - walk->path : 0);
	if (walk->stated >= depth)
		walk->stated = depth - 1;
	if (index_read(old, walk->set->count, &record, &kept) &&
		unchanged(walk, parent, name, old, &record, &fd))
		list = (struct list){ .bytes = kept.at, .len = record.bytes };
	else if (read_directory(walk, parent, name, depth, &fd, &record, &list) < 0)
		return -1;
	walk->seen += record.seen;
	if (walk->seen > HOST_WALK_MAX)
		return too_large(walk);
	size_t at = index_begin(&walk->index, &record, list.len ? list_at(walk, &list, 0) : "");
	int r = follow(walk, fd, &list, old, depth);
	index_end(&walk->index, at);
	if (!list.bytes)
		walk->lists.len = list.start;
	return r;
}

/* What an index must have been made for: the place, and each pattern with its kind. */
static void open_index(struct walk *walk, const char *cache, int tree)
{
	AUTO_BUF key = { 0 };
	const char *top = walk->search->tree;
	(void)buf_add(&key, top, strlen(top) + 1);
	for (size_t i = 0; i < walk->set->count; i++) {
		const struct row *pattern = &walk->set->list[i];
		const char *text = pattern->from->pattern;
		(void)buf_adds(&key, pattern->hide ? "hide " : "protect ");
		(void)buf_add(&key, text, strlen(text) + 1);
	}
	if (!key.full)
		host_index_open(&walk->index, &walk->arena, cache, tree, key.data, key.len);
}

int host_walk(struct search *search, const struct row_set *set, const char *cache)
{
	struct walk walk = { .search = search, .set = set, .stated = -1 };
	int r = -1;
	walk.len = strlen(search->tree);
	if (walk.len >= sizeof walk.path)
		return search_unsearchable(search, search->tree, ENAMETOOLONG);
	memcpy(walk.path, search->tree, walk.len + 1);
	AUTO_FD tree = open(search->tree, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (tree < 0)
		return search_unsearchable(search, search->tree, errno);
	walk.lists.max = LISTS_MAX;
	walk.seen = search->looked_at;
	walk.entries = arena_alloc(&walk.arena, ENTRIES_MAX);
	open_index(&walk, cache, tree);
	ahead_start(&walk.ahead, &walk.index.old, set->count, tree);
	r = enter(&walk, tree, ".", &walk.index.old, 0);
	ahead_end(&walk.ahead);
	if (r == 0)
		host_index_store(&walk.index, walk.seen - search->looked_at);
	search->looked_at = walk.seen;
	host_index_free(&walk.index);
	buf_free(&walk.lists);
	arena_free(&walk.arena);
	return r;
}
