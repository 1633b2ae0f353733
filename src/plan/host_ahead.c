/* host_ahead: a child process that looks at directories and does nothing else. */
#define _GNU_SOURCE
#include "plan/host_ahead.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEPTH_MAX 256

static size_t place_of(const struct ahead *ahead, const struct index_part *part)
{
	return (size_t)(part->at - ahead->index.at) / sizeof(struct index_record);
}

/* Look at a directory, if it is of the second half, and at those that lead there. */
static void look(
	struct ahead *ahead, int parent, const char *name, const struct index_part *part, int depth)
{
	struct index_record record;
	struct index_part list, child;
	struct index_children children;
	struct index_entry entry;
	struct stat st;
	char text[NAME_MAX + 1];
	if (depth > DEPTH_MAX || !index_read(part, ahead->patterns, &record, &list) ||
		part->at + record.size <= ahead->half)
		return;
	if (record.enter == 0) {
		if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			index_unchanged(&record, &st))
			ahead->same[place_of(ahead, part)] = 1;
		return;
	}
	AUTO_FD fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	index_children_of(part, &children);
	for (const char *at = list.at; index_next(&at, list.end, &entry);) {
		if (entry.what != INDEX_ENTER || entry.len > NAME_MAX)
			continue;
		memcpy(text, entry.name, entry.len);
		text[entry.len] = 0;
		child = index_child(&children, entry.name, entry.len);
		look(ahead, fd, text, &child, depth + 1);
	}
}

void ahead_start(struct ahead *ahead, const struct index_part *index, size_t patterns, int tree)
{
	*ahead = (struct ahead){ .index = *index, .patterns = patterns };
	size_t len = index->at ? (size_t)(index->end - index->at) : 0;
	if (len < AHEAD_BYTES_MIN || sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return;
	ahead->half = index->at + len / 2;
	ahead->count = len / sizeof(struct index_record) + 1;
	ahead->same =
		mmap(NULL, ahead->count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ahead->same == MAP_FAILED) {
		ahead->same = NULL;
		return;
	}
	pid_t parent = getpid();
	ahead->child = fork();
	if (ahead->child == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == parent)
			look(ahead, tree, ".", index, 0);
		_exit(0);
	}
	if (ahead->child < 0)
		ahead->child = 0;
}

static void wait_for(struct ahead *ahead)
{
	while (ahead->child && waitpid(ahead->child, NULL, 0) < 0 && errno == EINTR)
		;
	ahead->child = 0;
}

bool ahead_same(struct ahead *ahead, const struct index_part *part)
{
	if (!ahead->same || part->at < ahead->half)
		return false;
	wait_for(ahead);
	size_t place = place_of(ahead, part);
	return place < ahead->count && ahead->same[place];
}

void ahead_end(struct ahead *ahead)
{
	if (!ahead->same)
		return;
	wait_for(ahead);
	(void)munmap(ahead->same, ahead->count);
	ahead->same = NULL;
}
