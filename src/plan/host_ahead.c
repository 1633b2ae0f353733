/* host_ahead: child processes that look at directories and do nothing else. */
#define _GNU_SOURCE
#include "plan/host_ahead.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEPTH_MAX 256
#define LOOKS_EACH                                                                                 \
	16 /* between two questions where the walk is: its answer is dear to hand over             \
	    */

static size_t place_of(const struct ahead *ahead, const struct index_part *part)
{
	return (size_t)(part->at - ahead->index.at) / sizeof(struct index_record);
}

/* Is there nothing (more) for this child in what begins at `from` and ends before `to`? */
static bool is_done(struct ahead *ahead, size_t from, size_t to)
{
	if (from >= ahead->last || to <= ahead->first)
		return true;
	if (ahead->looks++ % LOOKS_EACH)
		return false;
	size_t walked = __atomic_load_n(&ahead->shared->walked, __ATOMIC_RELAXED);
	if (walked > ahead->first)
		ahead->first = walked;
	return to <= ahead->first;
}

static void look(struct ahead *ahead, int parent, const char *name, const struct index_part *part,
	int depth);

/* What is in a directory, the last one first. */
static void look_inside(struct ahead *ahead, int fd, const struct index_part *part,
	const struct index_part *list, uint32_t count, int depth)
{
	struct inner {
		struct index_part part;
		const char *name;
		size_t len;
	} *inner = calloc(count, sizeof *inner);
	struct index_children children;
	struct index_entry entry;
	char text[NAME_MAX + 1];
	size_t n = 0;
	index_children_of(part, &children);
	for (const char *at = list->at; inner && n < count && index_next(&at, list->end, &entry);)
		if (entry.what == INDEX_ENTER && entry.len <= NAME_MAX)
			inner[n++] = (struct inner){ index_child(&children, entry.name, entry.len),
				entry.name, entry.len };
	while (n-- > 0) {
		memcpy(text, inner[n].name, inner[n].len);
		text[inner[n].len] = 0;
		if (inner[n].part.at)
			look(ahead, fd, text, &inner[n].part, depth + 1);
	}
	free(inner);
}

/* Look at a directory and at those in it, up to where the walk is. */
static void look(
	struct ahead *ahead, int parent, const char *name, const struct index_part *part, int depth)
{
	struct index_record record;
	struct index_part list;
	struct stat st;
	if (depth > DEPTH_MAX || !index_read(part, ahead->patterns, &record, &list))
		return;
	const struct index_part end = { part->at + record.size, NULL };
	if (is_done(ahead, place_of(ahead, part), place_of(ahead, &end)))
		return;
	if (record.enter == 0) {
		if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			index_unchanged(&record, &st))
			__atomic_store_n(
				&ahead->shared->same[place_of(ahead, part)], 1, __ATOMIC_RELEASE);
		return;
	}
	AUTO_FD fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		look_inside(ahead, fd, part, &list, record.enter, depth);
}

/* One more child, for the places from `first` up to before `last`. */
static bool start(struct ahead *ahead, int tree, size_t first, size_t last)
{
	pid_t parent = getpid(), child = fork();
	if (child < 0)
		return false;
	if (child > 0) {
		ahead->children[ahead->child_count++] = child;
		return true;
	}
	ahead->first = first;
	ahead->last = last;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == parent)
		look(ahead, tree, ".", &ahead->index, 0);
	_exit(0);
}

/* One for each processor but ours that may have us. */
static unsigned children_of(size_t len)
{
	cpu_set_t set;
	size_t count = sched_getaffinity(0, sizeof set, &set) < 0 ? 1 : (size_t)CPU_COUNT(&set);
	if (count > len / AHEAD_BYTES_MIN + 1)
		count = len / AHEAD_BYTES_MIN + 1;
	return count > AHEAD_CHILDREN_MAX ? AHEAD_CHILDREN_MAX : (unsigned)count - 1;
}

void ahead_start(struct ahead *ahead, const struct index_part *index, size_t patterns, int tree)
{
	*ahead = (struct ahead){ .index = *index, .patterns = patterns };
	size_t len = index->at ? (size_t)(index->end - index->at) : 0;
	unsigned children = len ? children_of(len) : 0;
	if (children == 0)
		return;
	ahead->count = len / sizeof(struct index_record) + 1;
	ahead->size = sizeof *ahead->shared + ahead->count;
	void *shared =
		mmap(NULL, ahead->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return;
	ahead->shared = shared;
	/* The walk has the first part for itself, and more where a child is slow. */
	for (size_t i = children; i > 0; i--) {
		size_t first = i == 1 ? 0 : ahead->count * i / (children + 1);
		if (!start(ahead, tree, first, ahead->count * (i + 1) / (children + 1)))
			break;
	}
}

bool ahead_same(struct ahead *ahead, const struct index_part *part)
{
	if (!ahead->shared)
		return false;
	size_t place = place_of(ahead, part);
	if (place >= ahead->count)
		return false;
	__atomic_store_n(&ahead->shared->walked, place, __ATOMIC_RELAXED);
	return __atomic_load_n(&ahead->shared->same[place], __ATOMIC_ACQUIRE);
}

void ahead_end(struct ahead *ahead)
{
	if (!ahead->shared)
		return;
	__atomic_store_n(&ahead->shared->walked, SIZE_MAX, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < ahead->child_count; i++)
		while (waitpid(ahead->children[i], NULL, 0) < 0 && errno == EINTR)
			;
	(void)munmap(ahead->shared, ahead->size);
	ahead->shared = NULL;
}
