/*
 * descendants: who comes from a reaper, and signals to all of them. Found by the parents that the
 * box's /proc names: an orphan's new parent is the nearest subreaper above it, so nobody leaves.
 * Numbers are looked at twice and signalled by pidfd: one that changed hands meanwhile is nobody of
 * ours.
 */
#define _GNU_SOURCE
#include "box/child.h"
#include "base/fd.h"
#include "base/sys.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define SEEN_MAX 65536 /* processes of the box that one look goes through */

struct seen {
	pid_t pid, parent;
	bool ours;
};

struct look {
	int proc;
	pid_t self;
	struct seen *list; /* by rising number, as /proc lists them */
	size_t count;
};

/* What getdents64(2) fills in. */
struct entry {
	uint64_t inode;
	int64_t next;
	unsigned short size;
	unsigned char type;
	char name[];
};

static pid_t number(const char *text)
{
	pid_t value = 0;
	for (; *text >= '0' && *text <= '9' && value < 100000000; text++)
		value = value * 10 + (*text - '0');
	return value;
}

/* The parent of a process that is not reaped yet; 0: it is none. */
static pid_t parent_of(int proc, const char *name)
{
	char path[32] = "", text[512];
	size_t len = strlen(name);
	if (len > 16)
		return 0;
	memcpy(path, name, len);
	memcpy(path + len, "/stat", sizeof "/stat");
	int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	/* "PID (NAME) STATE PARENT ...": the name may hold anything but is short. Z is also what a
	 * process is whose first thread has ended before others, and it can do all that it could.
	 */
	const char *at = strrchr(text, ')');
	if (!at || at[1] != ' ' || at[2] == 'X' || at[3] != ' ')
		return 0;
	return number(at + 4);
}

static struct seen *find(const struct look *look, pid_t pid)
{
	size_t low = 0, high = look->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (look->list[middle].pid == pid)
			return &look->list[middle];
		if (look->list[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* 0 or -errno. */
static int read_all(struct look *look)
{
	_Alignas(struct entry) char block[4096];
	long len;
	while ((len = sys_ret(syscall(SYS_getdents64, look->proc, block, sizeof block))) > 0)
		for (long at = 0; at < len;) {
			const struct entry *entry = (const struct entry *)(block + at);
			at += entry->size;
			pid_t pid = number(entry->name);
			pid_t parent = pid > 0 ? parent_of(look->proc, entry->name) : 0;
			if (parent > 0 && look->count < SEEN_MAX)
				look->list[look->count++] = (struct seen){ pid, parent, false };
		}
	return (int)len;
}

/* A parent mostly has the lower number; where numbers began anew it takes more rounds. */
static void mark(struct look *look)
{
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < look->count; i++) {
			struct seen *seen = &look->list[i];
			const struct seen *parent = find(look, seen->parent);
			if (seen->ours || !(seen->parent == look->self || (parent && parent->ours)))
				continue;
			seen->ours = more = true;
		}
	}
}

static void put_number(char name[16], pid_t pid)
{
	char digits[16];
	size_t count = 0, at = 0;
	do
		digits[count++] = (char)('0' + pid % 10);
	while ((pid /= 10) > 0);
	while (count > 0)
		name[at++] = digits[--count];
	name[at] = 0;
}

static void send_one(const struct look *look, const struct seen *seen, int signal)
{
	char name[16];
	int pidfd = sys_pidfd_open(seen->pid);
	put_number(name, seen->pid);
	pid_t parent = pidfd < 0 ? 0 : parent_of(look->proc, name);
	const struct seen *theirs = parent ? find(look, parent) : NULL;
	/* Its parent may have ended meanwhile, and then it is our own child. */
	if (parent == look->self || (theirs && theirs->ours))
		(void)sys_pidfd_send_signal(pidfd, signal);
	if (pidfd >= 0)
		close(pidfd);
}

long descendants_signal(int signal, pid_t except)
{
	struct look look = { .self = (pid_t)syscall(SYS_getpid) };
	const size_t size = SEEN_MAX * sizeof(struct seen);
	long count = 0;
	/* Only what is written to takes memory. */
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	look.list = memory;
	look.proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = look.proc < 0 ? -errno : read_all(&look);
	if (r == 0)
		mark(&look);
	for (size_t i = 0; r == 0 && i < look.count; i++) {
		if (!look.list[i].ours || look.list[i].pid == except)
			continue;
		count++;
		if (signal)
			send_one(&look, &look.list[i], signal);
	}
	fd_close(&look.proc);
	munmap(memory, size);
	return r < 0 ? r : count;
}
