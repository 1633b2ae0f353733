/*
 * changes_walk: two trees side by side. Owns the descriptors and lists of names on the way down.
 * Writes nothing but the mode of an unreadable file of the layer, which it puts back.
 */
#define _GNU_SOURCE
#include "workspace/changes_walk.h"
#include "base/fd.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Directories of each tree that are open at a time. */
#define OPEN_MAX 64

#define COMMON  (O_NOFOLLOW | O_CLOEXEC)
#define BENEATH (SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS)

/* openat2's RESOLVE_NO_XDEV, Linux 5.6 */
#define NO_XDEV 0x01u

/* The entry of getdents64(2). */
struct dirent64_head {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

static int open_one(enum walk_tree tree, int parent, const char *name, uint64_t flags)
{
	uint64_t resolve = BENEATH | (tree == WALK_LOWER ? NO_XDEV : 0);
	/* Reading must not show in the times of the host's files; only an owner may ask for it. */
	uint64_t quiet = flags & O_PATH ? 0 : O_NOATIME;
	int fd = sys_openat2(parent, name, flags | quiet | COMMON, resolve);
	if (fd == -EPERM && quiet)
		fd = sys_openat2(parent, name, flags | COMMON, resolve);
	return fd;
}

/* Change the mode of what an O_PATH descriptor stands for; no link is behind one of ours. */
static int set_mode(int fd, mode_t mode)
{
	char path[40];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return chmod(path, mode & 07777) < 0 ? -errno : 0;
}

/*
 * Could the owner's bits keep the caller out? Asked before opening: a directory that can be opened
 * may still not be searched.
 */
static bool shut(const struct stat *st, mode_t wanted)
{
	uid_t self = geteuid();
	return self != 0 && st->st_uid == self && (st->st_mode & wanted) != wanted;
}

int walk_open_file(enum walk_tree tree, int parent, const char *name)
{
	const uint64_t flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
	int fd = open_one(tree, parent, name, flags);
	if (fd != -EACCES || tree != WALK_UPPER)
		return fd;
	AUTO_FD place = open_one(tree, parent, name, O_PATH);
	struct stat st;
	if (place < 0)
		return place;
	if (fstat(place, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || !shut(&st, 0400))
		return -EACCES;
	int r = set_mode(place, st.st_mode | 0400);
	if (r < 0)
		return r;
	char path[40];
	snprintf(path, sizeof path, "/proc/self/fd/%d", place);
	fd = open(path, (int)flags | O_CLOEXEC);
	fd = fd < 0 ? -errno : fd;
	r = set_mode(place, st.st_mode);
	if (r < 0 && fd >= 0)
		close(fd);
	return r < 0 ? r : fd;
}

/* The directory of an O_PATH descriptor for reading, its mode opened where that is needed. */
static int open_shut(int place, struct walk_side *side)
{
	int r = set_mode(place, side->st.st_mode | 0700);
	if (r < 0)
		return r;
	side->put_back = true;
	side->fd = openat(place, ".", O_RDONLY | O_DIRECTORY | COMMON);
	if (side->fd >= 0)
		return 0;
	r = -errno;
	set_mode(place, side->st.st_mode);
	return r;
}

int walk_open(enum walk_tree tree, int parent, const char *name, bool list, struct walk_side *ret)
{
	struct walk_side side = { .there = true, .fd = -1, .listed = list };
	AUTO_FD fd = open_one(tree, parent, name, O_PATH | O_DIRECTORY);
	if (fd < 0)
		return fd;
	if (fstat(fd, &side.st) < 0)
		return -errno;
	if (!list) {
		side.fd = fd_steal(&fd);
	} else if (tree == WALK_UPPER && shut(&side.st, 0500)) {
		int r = open_shut(fd, &side);
		if (r < 0)
			return r;
	} else {
		side.fd = open_one(tree, fd, ".", O_RDONLY | O_DIRECTORY);
		if (side.fd < 0)
			return side.fd;
	}
	*ret = side;
	return 0;
}

bool walk_is_mount(int parent, const char *name)
{
	AUTO_FD fd = open_one(WALK_LOWER, parent, name, O_PATH);
	return fd == -EXDEV;
}

void walk_close(struct walk_side *side)
{
	if (side->there && side->put_back && side->fd >= 0)
		fchmod(side->fd, side->st.st_mode & 07777);
	if (side->there)
		fd_close(&side->fd);
	side->there = false;
}

void walk_begin(struct walk *walk, char *scratch)
{
	*walk = (struct walk){ .scratch = scratch };
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Add one name to the text; *room is what is allocated. */
static int add_name(struct walk *walk, struct walk_names *names, size_t *room, const char *name)
{
	size_t len = strlen(name) + 1;
	/* With the pointer that the list will have for it. */
	walk->names_bytes += len + sizeof(char *);
	if (walk->names_bytes > WALK_NAMES_MAX)
		return -ENOMEM;
	if (*room - names->bytes < len) {
		size_t grown = *room ? *room * 2 : 512;
		char *text = realloc(names->text, grown);
		if (!text)
			return -ENOMEM;
		names->text = text;
		*room = grown;
	}
	memcpy(names->text + names->bytes, name, len);
	names->bytes += len;
	names->count++;
	return 0;
}

static int sort_names(struct walk_names *names)
{
	if (names->count == 0)
		return 0;
	names->list = malloc(names->count * sizeof *names->list);
	if (!names->list)
		return -ENOMEM;
	const char *at = names->text;
	for (size_t i = 0; i < names->count; i++, at += strlen(at) + 1)
		names->list[i] = at;
	qsort(names->list, names->count, sizeof *names->list, by_bytes);
	return 0;
}

static int read_names(struct walk *walk, int fd, struct walk_names *names)
{
	size_t room = 0;
	for (;;) {
		long n = sys_ret(syscall(SYS_getdents64, fd, walk->scratch, WALK_SCRATCH));
		if (n == 0)
			return sort_names(names);
		/* A directory that was removed meanwhile has no names. */
		if (n < 0)
			return n == -ENOENT ? sort_names(names) : (int)n;
		for (long at = 0; at < n;) {
			const struct dirent64_head *entry = (const void *)(walk->scratch + at);
			at += entry->reclen;
			if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
				continue;
			int r = add_name(walk, names, &room, entry->name);
			if (r < 0)
				return r;
		}
	}
}

static void drop_frame(struct walk *walk, struct walk_frame *frame)
{
	for (int i = 0; i < 2; i++) {
		struct walk_names *names = &frame->names[i];
		walk->names_bytes -= names->bytes + names->count * sizeof(char *);
		free(names->text);
		free(names->list);
		walk_close(&frame->side[i]);
	}
	if (frame->own_state)
		free(frame->state);
	memset(frame, 0, sizeof *frame);
}

int walk_push(struct walk *walk, struct walk_frame *frame)
{
	int r = 0;
	for (int i = 0; r == 0 && i < 2; i++)
		if (frame->side[i].there && frame->side[i].listed)
			r = read_names(walk, frame->side[i].fd, &frame->names[i]);
	if (r == 0 && walk->depth == walk->room) {
		size_t room = walk->room ? walk->room * 2 : 64;
		struct walk_frame *frames = realloc(walk->frames, room * sizeof *frames);
		if (frames) {
			walk->frames = frames;
			walk->room = room;
		}
		r = frames ? 0 : -ENOMEM;
	}
	if (r < 0) {
		drop_frame(walk, frame);
		return r;
	}
	for (int i = 0; walk->depth >= OPEN_MAX && i < 2; i++)
		if (frame->side[i].there)
			fd_close(&walk->frames[walk->depth - OPEN_MAX].side[i].fd);
	walk->frames[walk->depth++] = *frame;
	return 0;
}

struct walk_frame *walk_top(const struct walk *walk)
{
	return walk->depth ? &walk->frames[walk->depth - 1] : NULL;
}

const char *walk_next(struct walk_frame *frame, bool in[2])
{
	const char *name = NULL;
	for (int i = 0; i < 2; i++) {
		struct walk_names *names = &frame->names[i];
		if (names->next < names->count &&
			(!name || strcmp(names->list[names->next], name) < 0))
			name = names->list[names->next];
	}
	for (int i = 0; i < 2; i++) {
		struct walk_names *names = &frame->names[i];
		in[i] = false;
		/* A directory that changes while it is read may give a name twice. */
		while (name && names->next < names->count &&
			strcmp(names->list[names->next], name) == 0) {
			in[i] = true;
			names->next++;
		}
	}
	return name;
}

/* Open the directory above again that was closed on the way down. */
static int reopen(const struct walk_side *below, struct walk_side *side)
{
	int flags = (side->listed ? O_RDONLY : O_PATH) | O_DIRECTORY;
	AUTO_FD fd = openat(below->fd, "..", flags | COMMON);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != side->st.st_dev || st.st_ino != side->st.st_ino)
		return -ESTALE;
	side->fd = fd_steal(&fd);
	return 0;
}

int walk_pop(struct walk *walk)
{
	struct walk_frame *frame = walk_top(walk);
	int first = 0;
	for (int i = 0; walk->depth > 1 && i < 2; i++) {
		struct walk_side *above = &(frame - 1)->side[i];
		if (!frame->side[i].there || above->fd >= 0)
			continue;
		int r = frame->side[i].fd >= 0 ? reopen(&frame->side[i], above) : -ESTALE;
		first = first ? first : r;
	}
	drop_frame(walk, frame);
	walk->depth--;
	return first;
}

void walk_end(struct walk *walk)
{
	while (walk->depth)
		walk_pop(walk);
	free(walk->frames);
	*walk = (struct walk){ 0 };
}
