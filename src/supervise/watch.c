/*
 * watch: what the processes of a box use, for limits that no control group counts. Looks at /proc
 * only, changes nothing there, and judges nothing.
 *
 * The box's processes are found from init on, by each one's children; in a box nobody gets away
 * from init. They are read one after the other while they run: what is made or ends meanwhile can
 * be missed once. A number that is somebody else's by now is known by its parent, who is none of
 * the box's.
 */
#define _GNU_SOURCE
#include "supervise/watch.h"
#include "base/fd.h"
#include "base/sys.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#define TASKS_MAX 65536 /* threads of all processes that one look goes through */
#define TEXT_MAX  4096  /* of a file that is read; status has some 1500 bytes */

struct watch {
	int proc; /* directory: /proc of our own process numbers */
	uint64_t tick_us;
	size_t count;
	pid_t pids[WATCH_PIDS_MAX];
};

/* One look. */
struct look {
	struct watch *watch;
	unsigned wants;
	uint64_t tasks_seen;
	uint64_t own, shared, files; /* bytes: of one process, of several, in the box's tmpfs */
	bool files_known;
	struct watch_usage *usage;
};

/* What one process says of itself. */
struct facts {
	pid_t parent;
	uint64_t tasks;
	uint64_t own, shared; /* bytes; swapped ones are counted as their own */
};

struct watch *watch_open(const char *proc, pid_t self)
{
	char text[32];
	AUTO_FD fd = open(proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : readlinkat(fd, "self", text, sizeof text - 1);
	if (len <= 0)
		return NULL;
	text[len] = 0;
	/* One of another process namespace would name others by our numbers. */
	if (atoi(text) != (int)self)
		return NULL;
	struct watch *watch = malloc(sizeof *watch);
	if (!watch)
		return NULL;
	long ticks = sysconf(_SC_CLK_TCK);
	watch->proc = fd_steal(&fd);
	watch->tick_us = 1000000u / (uint64_t)(ticks > 0 ? ticks : 100);
	watch->count = 0;
	return watch;
}

void watch_close(struct watch *watch)
{
	if (!watch)
		return;
	fd_close(&watch->proc);
	free(watch);
}

/* The beginning of a small file, with a NUL behind it. Its length or -errno. */
static ssize_t get(int dir, const char *name, char text[TEXT_MAX])
{
	AUTO_FD fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t len = fd_read_full(fd, text, TEXT_MAX - 1);
	text[len < 0 ? 0 : len] = 0;
	return len;
}

/* The number in the line "\nKEY: NUMBER ..."; `key` with its newline and colon. 0: there is none.
 */
static uint64_t line(const char *text, const char *key)
{
	const char *at = strstr(text, key);
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* What getdents64(2) fills in. */
struct entry {
	uint64_t inode;
	int64_t next;
	unsigned short size;
	unsigned char type;
	char name[];
};

/* The status of any thread that still has the process's memory; false: there is none. */
static bool get_other_status(int dir, char text[TEXT_MAX])
{
	AUTO_FD list = openat(dir, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_Alignas(struct entry) char block[TEXT_MAX];
	long len;
	while (list >= 0 && (len = syscall(SYS_getdents64, list, block, sizeof block)) > 0)
		for (long at = 0; at < len;) {
			const struct entry *entry = (const struct entry *)(block + at);
			at += entry->size;
			char name[48];
			snprintf(name, sizeof name, "%.20s/status", entry->name);
			if (entry->name[0] != '.' && get(list, name, text) > 0 &&
				strstr(text, "\nRssAnon:"))
				return true;
		}
	return false;
}

/* A name of the process's own choice stands in the first line of status only. */
static bool get_facts(int dir, struct facts *ret)
{
	char text[TEXT_MAX];
	if (get(dir, "status", text) <= 0)
		return false;
	ret->parent = (pid_t)line(text, "\nPPid:");
	ret->tasks = line(text, "\nThreads:");
	/* The first thread may have ended before others: then it shows no memory. */
	if (ret->tasks > 1 && !strstr(text, "\nRssAnon:") && !get_other_status(dir, text))
		return true;
	ret->own = (line(text, "\nRssAnon:") + line(text, "\nVmSwap:")) * 1024;
	ret->shared = line(text, "\nRssShmem:") * 1024;
	return true;
}

/* Its share of what several processes have, where that may be read; see proc(5). */
static void get_share(int dir, struct facts *facts)
{
	char text[TEXT_MAX];
	if (get(dir, "smaps_rollup", text) <= 0 || !strstr(text, "\nPss_Anon:"))
		return;
	facts->own = (line(text, "\nPss_Anon:") + line(text, "\nSwapPss:")) * 1024;
	facts->shared = line(text, "\nPss_Shmem:") * 1024;
}

/* Its own time and that of the children it has waited for: fields 14 to 17, after the name's ")".
 */
static void get_time(int dir, uint64_t tick_us, struct watch_usage *usage)
{
	char text[TEXT_MAX];
	if (get(dir, "stat", text) <= 0)
		return;
	char *at = strrchr(text, ')');
	for (int field = 3; at && field <= 17; field++) {
		at = strchr(at + 1, ' ');
		uint64_t us = at && field >= 14 ? strtoull(at + 1, NULL, 10) * tick_us : 0;
		if (field % 2 == 0)
			usage->cpu_user_us += us;
		else
			usage->cpu_system_us += us;
	}
}

/* What the files of the box use: its root, as any of its processes sees it, is one tmpfs. */
static void get_files(struct look *look, int dir)
{
	struct statfs fs;
	AUTO_FD root = openat(dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || fstatfs(root, &fs) < 0 || (unsigned long)fs.f_type != TMPFS_MAGIC)
		return;
	look->files_known = true;
	look->files = (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
}

/* Add the numbers in the file `children` of one thread. */
static void add_children(struct look *look, int task)
{
	struct watch *watch = look->watch;
	char block[TEXT_MAX];
	ssize_t len;
	pid_t pid = 0;
	AUTO_FD fd = openat(task, "children", O_RDONLY | O_CLOEXEC);
	look->tasks_seen++;
	while (fd >= 0 && (len = read(fd, block, sizeof block)) > 0)
		for (ssize_t i = 0; i < len; i++) {
			if (block[i] >= '0' && block[i] <= '9') {
				pid = (pid_t)(pid * 10 + block[i] - '0');
				continue;
			}
			if (pid > 0 && watch->count < WATCH_PIDS_MAX)
				watch->pids[watch->count++] = pid;
			pid = 0;
		}
}

/* Each thread has the children that it made itself. */
static void add_all_children(struct look *look, int dir, pid_t pid, uint64_t tasks)
{
	char name[48];
	snprintf(name, sizeof name, "task/%d", (int)pid);
	AUTO_FD list = openat(dir, tasks > 1 ? "task" : name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (list < 0)
		return;
	if (tasks <= 1) {
		add_children(look, list);
		return;
	}
	_Alignas(struct entry) char block[TEXT_MAX];
	long len;
	while ((len = syscall(SYS_getdents64, list, block, sizeof block)) > 0)
		for (long at = 0; at < len && look->tasks_seen < TASKS_MAX;) {
			const struct entry *entry = (const struct entry *)(block + at);
			at += entry->size;
			AUTO_FD task = entry->name[0] == '.'
					       ? -1
					       : openat(list, entry->name,
							 O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			if (task >= 0)
				add_children(look, task);
		}
}

/* Is it one of those that were found so far? Nearly always the parent is the one just before. */
static bool is_known(const struct watch *watch, size_t upto, pid_t pid)
{
	while (upto-- > 0)
		if (watch->pids[upto] == pid)
			return true;
	return false;
}

static void look_at(struct look *look, size_t index)
{
	struct watch *watch = look->watch;
	struct facts facts = { 0 };
	char name[24];
	snprintf(name, sizeof name, "%d", (int)watch->pids[index]);
	/* All of it is then of one process, whoever gets its number. */
	AUTO_FD dir = openat(watch->proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || !get_facts(dir, &facts) ||
		(index > 0 && !is_known(watch, index, facts.parent)))
		return;
	if (look->wants & WATCH_SHARES)
		get_share(dir, &facts);
	look->own += facts.own;
	look->shared += facts.shared;
	look->usage->tasks += facts.tasks;
	if (look->wants & WATCH_CPU)
		get_time(dir, watch->tick_us, look->usage);
	if (!look->files_known)
		get_files(look, dir);
	add_all_children(look, dir, watch->pids[index], facts.tasks);
}

void watch_look(struct watch *watch, pid_t init, unsigned wants, struct watch_usage *ret_usage)
{
	struct watch_usage usage = { 0 };
	struct look look = { .watch = watch, .wants = wants, .usage = &usage };
	watch->pids[0] = init;
	watch->count = 1;
	for (size_t i = 0; i < watch->count; i++)
		look_at(&look, i);
	/* What is mapped of the files is not counted twice, so at most something is missed. */
	usage.memory_bytes = look.own + (look.shared > look.files ? look.shared : look.files);
	*ret_usage = usage;
}
