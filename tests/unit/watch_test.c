/*
 * watch_test: what a box uses, as found in a /proc that the test makes up: one directory for each
 * process, with the files that are read.
 */
#define _GNU_SOURCE
#include "check.h"
#include "supervise/watch.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define KIB  UINT64_C(1024)
#define SELF 77

static char base[] = "/tmp/agentbox-watch-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", base, name);
	FILE *file = fopen(path, "we");
	if (!file || fputs(text, file) < 0 || fclose(file) != 0)
		abort();
}

static void make(const char *name)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", base, name);
	if (mkdir(path, 0700) < 0)
		abort();
}

/* A process with one thread. own, shared and swap in KiB. */
static void process(int pid, int parent, unsigned own, unsigned shared, unsigned swap)
{
	char name[64], text[512];
	snprintf(name, sizeof name, "%d", pid);
	make(name);
	snprintf(name, sizeof name, "%d/status", pid);
	/* The name is the process's own choice. */
	snprintf(text, sizeof text,
		"Name:\tPPid: 1 RssAnon: 9\\nVmSwap: 9\nState:\tS (sleeping)\nTgid:\t%d\nPid:\t%d\n"
		"PPid:\t%d\nVmRSS:\t  999999 kB\nRssAnon:\t%8u kB\nRssFile:\t 500000 kB\n"
		"RssShmem:\t%8u kB\nVmSwap:\t%8u kB\nThreads:\t1\n",
		pid, pid, parent, own, shared, swap);
	put(name, text);
	snprintf(name, sizeof name, "%d/task", pid);
	make(name);
	snprintf(name, sizeof name, "%d/task/%d", pid, pid);
	make(name);
}

static void children(int pid, int task, const char *list)
{
	char name[64];
	snprintf(name, sizeof name, "%d/task/%d/children", pid, task);
	put(name, list);
}

static void ticks(int pid, const char *name_inside, int user, int system, int ended)
{
	char name[64], text[256];
	snprintf(name, sizeof name, "%d/stat", pid);
	snprintf(text, sizeof text,
		"%d (%s) S 1 1 1 0 -1 4194560 11 12 13 14 %d %d %d %d 20 0 1 0 5\n", pid,
		name_inside, user, system, ended, 0);
	put(name, text);
}

static void share(int pid, unsigned own, unsigned shared, unsigned swap)
{
	char name[64], text[512];
	snprintf(name, sizeof name, "%d/smaps_rollup", pid);
	snprintf(text, sizeof text,
		"55d-7ff ---p 00000000 00:00 0    [rollup]\nRss:   999999 kB\nPss:   888888 kB\n"
		"Pss_Anon:  %7u kB\nPss_File:   777 kB\nPss_Shmem: %7u kB\nSwap: 99 kB\nSwapPss: "
		"%u kB\n",
		own, shared, swap);
	put(name, text);
}

static void begin(void)
{
	char path[64];
	memcpy(strrchr(base, '-') + 1, "XXXXXX", 6);
	if (!mkdtemp(base))
		abort();
	snprintf(path, sizeof path, "%s/self", base);
	if (symlink("77", path) < 0)
		abort();
}

static void end(void)
{
	char line[128];
	snprintf(line, sizeof line, "rm -r %s", base);
	CHECK(system(line) == 0);
}

static struct watch_usage look(unsigned wants)
{
	struct watch_usage usage = { 1, 1, 1, 1 };
	struct watch *watch = watch_open(base, SELF);
	CHECK(watch != NULL);
	if (watch)
		watch_look(watch, 100, wants, &usage);
	watch_close(watch);
	return usage;
}

/* init with two children, one of which has a child of its own; and the host's processes. */
static void family(void)
{
	process(100, SELF, 200, 0, 0);
	children(100, 100, "101 103 ");
	process(101, 100, 3000, 64, 16);
	children(101, 101, "102 ");
	process(102, 101, 5000, 64, 0);
	process(103, 100, 1000, 0, 0);
	process(1, 0, 900000, 0, 0);
	children(1, 1, "100 104 ");
	process(104, 1, 900000, 0, 0);
}

static void memory_of_all(void)
{
	begin();
	family();
	struct watch_usage is = look(0);
	CHECK(is.memory_bytes == (200 + 3000 + 16 + 5000 + 1000 + 128) * KIB);
	CHECK(is.tasks == 4 && is.cpu_user_us == 0 && is.cpu_system_us == 0);
	end();
}

/* Divided among those that have it; of whom it may not be read, the whole counts. */
static void shares(void)
{
	begin();
	family();
	share(101, 1500, 32, 8);
	share(102, 2500, 32, 0);
	CHECK(look(0).memory_bytes == (200 + 3000 + 16 + 5000 + 1000 + 128) * KIB);
	CHECK(look(WATCH_SHARES).memory_bytes == (200 + 1500 + 8 + 2500 + 1000 + 64) * KIB);
	/* A kernel that does not divide by kind: nothing is guessed. */
	put("102/smaps_rollup", "55d-7ff ---p 00000000 00:00 0 [rollup]\nRss: 1 kB\nPss: 1 kB\n");
	CHECK(look(WATCH_SHARES).memory_bytes == (200 + 1500 + 8 + 5000 + 1000 + 96) * KIB);
	end();
}

static void time_of_all(void)
{
	begin();
	family();
	ticks(100, "init", 1, 2, 300);
	ticks(101, "a) S 9 9 9 9 9 9 9 9 9 9 9 9 9 (b", 10, 20, 0);
	ticks(102, ")))", 1000, 0, 0);
	uint64_t tick = 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	struct watch_usage is = look(WATCH_CPU);
	CHECK(is.cpu_user_us == (1 + 300 + 10 + 1000) * tick);
	CHECK(is.cpu_system_us == (2 + 20) * tick);
	CHECK(look(0).cpu_user_us == 0);
	end();
}

/* A number that was read as a child's may be somebody else's when it is looked at. */
static void not_of_the_box(void)
{
	begin();
	family();
	children(102, 102, "104 105 999 -3 x 0 ");
	process(105, 4711, 70000, 0, 0);
	children(105, 105, "106 ");
	process(106, 105, 70000, 0, 0);
	struct watch_usage is = look(0);
	CHECK(is.tasks == 4 && is.memory_bytes == (200 + 3000 + 16 + 5000 + 1000 + 128) * KIB);
	/* Its parent has ended: it is init's now. */
	process(999, 100, 10, 0, 0);
	CHECK(look(0).tasks == 5);
	end();
}

static void threads(void)
{
	begin();
	family();
	put("103/status", "Name:\tt\nPPid:\t100\nRssAnon:\t7 kB\nThreads:\t3\n");
	make("103/task/201");
	make("103/task/202");
	children(103, 202, "107 ");
	process(107, 103, 1, 0, 0);
	CHECK(look(0).tasks == 7);
	end();
}

/* What is too much is left out, and ends. */
static void too_many(void)
{
	static char list[200000];
	begin();
	process(100, SELF, 1, 0, 0);
	for (int i = 0; i < 20000; i++)
		snprintf(list + strlen(list), 16, "%d ", 100000 + i);
	children(100, 100, list);
	process(100000, 100, 1, 0, 0);
	process(100000 + WATCH_PIDS_MAX - 2, 100, 1, 0, 0);
	process(100000 + WATCH_PIDS_MAX - 1, 100, 1, 0, 0);
	CHECK(look(0).tasks == 3);
	end();
}

static void strange(void)
{
	begin();
	CHECK(look(WATCH_SHARES | WATCH_CPU).memory_bytes == 0);
	process(100, SELF, 10, 0, 0);
	put("100/stat", "100 (no end");
	put("100/smaps_rollup", "");
	children(100, 100, "100 100 101");
	CHECK(look(WATCH_SHARES | WATCH_CPU).memory_bytes == 10 * KIB);
	put("100/stat", "100 (short) S 1");
	CHECK(look(WATCH_CPU).cpu_user_us == 0);
	put("100/status", "");
	CHECK(look(0).tasks == 0);
	end();
}

static void another_proc(void)
{
	begin();
	CHECK(watch_open(base, SELF + 1) == NULL);
	CHECK(watch_open("/nonexistent", SELF) == NULL);
	CHECK(watch_open("/", getpid()) == NULL);
	watch_close(NULL);
	struct watch *watch = watch_open("/proc", getpid());
	CHECK(watch != NULL);
	/* This process itself, for once. */
	struct watch_usage is = { 0 };
	if (watch)
		watch_look(watch, getpid(), WATCH_SHARES, &is);
	CHECK(is.tasks == 1 && is.memory_bytes > 10 * KIB && is.memory_bytes < KIB * KIB * KIB);
	watch_close(watch);
	end();
}

int main(void)
{
	RUN(memory_of_all);
	RUN(shares);
	RUN(time_of_all);
	RUN(not_of_the_box);
	RUN(threads);
	RUN(too_many);
	RUN(strange);
	RUN(another_proc);
	return CHECK_STATUS();
}
