/*
 * Whole trees copied and removed: what a copy keeps, what has no permission bits, depths and sizes,
 * and that nothing outside changes whatever others do meanwhile. As root the parts about permission
 * run as another user.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "check.h"
#include "workspace/tree.h"

#define DEEP     20000
#define TOO_DEEP 32800

/* A directory of the test's own, with "from" and "to" in it. */
struct place {
	char path[64];
	int top, from, to;
};

static int make_dir(int dir, const char *name, mode_t mode)
{
	if (mkdirat(dir, name, 0700) < 0)
		return -1;
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	fchmod(fd, mode);
	return fd;
}

static void add_dir(int dir, const char *name, mode_t mode)
{
	AUTO_FD fd = make_dir(dir, name, mode);
	CHECK(fd >= 0);
}

static void place_make_in(struct place *place, const char *parent)
{
	snprintf(place->path, sizeof place->path, "%s/agentbox-tree-XXXXXX", parent);
	CHECK(mkdtemp(place->path) != NULL);
	chmod(place->path, 0755);
	place->top = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	place->from = make_dir(place->top, "from", 0755);
	place->to = make_dir(place->top, "to", 0755);
	CHECK(place->top >= 0 && place->from >= 0 && place->to >= 0);
}

static void place_make(struct place *place)
{
	place_make_in(place, "/tmp");
}

/* For what is large: in memory, where that is possible. */
static void place_make_large(struct place *place)
{
	place_make_in(place, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
}

static void place_remove(struct place *place)
{
	struct tree_report report;
	CHECK(tree_clear(place->top, &report) == 0);
	CHECK(rmdir(place->path) == 0);
	fd_close(&place->from);
	fd_close(&place->to);
	fd_close(&place->top);
}

static void add_file(int dir, const char *name, const char *text, mode_t mode)
{
	AUTO_FD fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	CHECK(fchmod(fd, mode) == 0);
}

static void set_time(int dir, const char *name, long sec, long nsec)
{
	struct timespec times[2] = { { sec + 1, nsec }, { sec, nsec } };
	CHECK(utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) == 0);
}

static struct stat stat_of(int dir, const char *name)
{
	struct stat st = { 0 };
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		st.st_mode = 0;
	return st;
}

static mode_t mode_of(int dir, const char *name)
{
	return stat_of(dir, name).st_mode & 07777;
}

static bool there(int dir, const char *name)
{
	return stat_of(dir, name).st_mode != 0;
}

static bool has_text(int dir, const char *name, const char *text)
{
	char got[256] = "";
	AUTO_FD fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, got, sizeof got - 1);
	return n == (ssize_t)strlen(text) && strcmp(got, text) == 0;
}

static size_t count_entries(int dir)
{
	char buffer[32768];
	size_t count = 0;
	AUTO_FD fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long n;
	while ((n = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0)
		for (long i = 0; i < n; i += *(unsigned short *)(buffer + i + 16))
			count++;
	return count - 2;
}

static bool same_time(const struct stat *a, const struct stat *b)
{
	return a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Run a part in a child, as an ordinary user when we are root; its failed checks count here. */
static void in_child(void (*part)(struct place *), struct place *place, bool as_user)
{
	if (as_user && geteuid() == 0) {
		CHECK(fchown(place->top, 65534, 65534) == 0);
		CHECK(fchown(place->from, 65534, 65534) == 0);
		CHECK(fchown(place->to, 65534, 65534) == 0);
	}
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		check_failures = 0;
		if (as_user && geteuid() == 0)
			CHECK(setgroups(0, NULL) == 0 && setresgid(65534, 65534, 65534) == 0 &&
				setresuid(65534, 65534, 65534) == 0);
		part(place);
		fflush(NULL);
		_exit(check_failures ? 1 : 0);
	}
	int status = -1;
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(status == 0);
}

/* ---------------------------------------------------------------------------- what is kept */

static void fill_kinds(int dir)
{
	add_file(dir, "plain", "text", 0640);
	add_file(dir, "setid", "x", 06755);
	add_file(dir, "empty", "", 0444);
	AUTO_FD sub = make_dir(dir, "sub", 0700);
	add_file(sub, "in", "inside", 0600);
	add_dir(sub, "sticky", 01777);
	add_dir(sub, "setgid", 02750);
	CHECK(symlinkat("/nowhere/at all", sub, "link") == 0);
	CHECK(mkfifoat(sub, "fifo", 0600) == 0);
	CHECK(mknodat(sub, "socket", S_IFSOCK | 0600, 0) == 0);
	CHECK(fchmodat(sub, "fifo", 0622, 0) == 0);
	set_time(sub, "link", 1000000001, 5);
	set_time(sub, "fifo", 1000000002, 6);
	set_time(sub, "in", 1000000003, 999999999);
	CHECK(fchmod(sub, 0555) == 0);
	set_time(dir, "sub", 1000000004, 123456789);
	set_time(dir, "plain", 1000000005, 1);
}

static void check_kinds(const struct place *place)
{
	static const char *const names[] = { "plain", "setid", "empty", "sub", "sub/in", "sub/link",
		"sub/fifo", "sub/socket", "sub/sticky", "sub/setgid" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct stat a = stat_of(place->from, names[i]), b = stat_of(place->to, names[i]);
		CHECK((a.st_mode & ~06000u) == b.st_mode);
		CHECK(same_time(&a, &b));
		CHECK(S_ISDIR(a.st_mode) || a.st_size == b.st_size);
	}
	CHECK(has_text(place->to, "plain", "text") && has_text(place->to, "sub/in", "inside"));
	char text[64] = "";
	CHECK(readlinkat(place->to, "sub/link", text, sizeof text) == 15);
	CHECK_TEXT(text, "/nowhere/at all");
}

static void part_kinds(struct place *place)
{
	fill_kinds(place->from);
	struct tree_report report;
	CHECK(tree_copy(place->from, place->to, TREE_REFLINK, &report) == 0);
	check_kinds(place);
	CHECK(report.files == 7 && report.directories == 3 && report.skipped == 0);
	CHECK(report.bytes + report.shared_bytes == 11);
	CHECK(tree_clear(place->to, &report) == 0 && count_entries(place->to) == 0);
	CHECK(report.files == 7 && report.directories == 3);
	CHECK(tree_copy(place->from, place->to, TREE_NO_SPECIAL, &report) == 0);
	CHECK(report.skipped == 2 && !there(place->to, "sub/fifo") && there(place->to, "sub/in"));
	CHECK(tree_copy(place->from, place->to, 0, &report) == -EEXIST && report.failed[0]);
}

static void test_kinds(void)
{
	struct place place;
	place_make(&place);
	in_child(part_kinds, &place, true);
	place_remove(&place);
	place_make(&place);
	in_child(part_kinds, &place, false);
	place_remove(&place);
}

static void test_holes(void)
{
	struct place place;
	place_make(&place);
	const off_t size = (off_t)64 << 20, where[] = { 0, 5000000, ((off_t)64 << 20) - 4096 * 3 };
	char data[4096], got[4096];
	memset(data, 'd', sizeof data);
	AUTO_FD a = openat(place.from, "sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	for (int i = 0; i < 3; i++)
		CHECK(pwrite(a, data, sizeof data, where[i]) == sizeof data);
	CHECK(ftruncate(a, size) == 0);
	AUTO_FD hole = openat(place.from, "hole", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK(ftruncate(hole, size) == 0);
	struct tree_report report;
	CHECK(tree_copy(place.from, place.to, 0, &report) == 0);
	struct stat st = stat_of(place.to, "sparse"), empty = stat_of(place.to, "hole");
	CHECK(st.st_size == size && st.st_blocks <= 128);
	CHECK(empty.st_size == size && empty.st_blocks == 0);
	CHECK(report.bytes < 128 * 512);
	AUTO_FD b = openat(place.to, "sparse", O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < 3; i++)
		CHECK(pread(b, got, sizeof got, where[i]) == sizeof got &&
			memcmp(got, data, sizeof got) == 0);
	CHECK(pread(b, got, sizeof got, (off_t)40 << 20) == sizeof got && got[0] == 0);
	place_remove(&place);
}

static void test_hard_links(void)
{
	struct place place;
	place_make(&place);
	AUTO_FD sub = make_dir(place.from, "sub", 0755);
	add_file(place.from, "a", "one", 0644);
	CHECK(linkat(place.from, "a", place.from, "b", 0) == 0);
	CHECK(linkat(place.from, "a", sub, "c", 0) == 0);
	CHECK(symlinkat("text", place.from, "l") == 0);
	CHECK(linkat(place.from, "l", sub, "m", 0) == 0);
	CHECK(linkat(place.from, "a", place.top, "outside", 0) == 0);
	CHECK(fchmod(sub, 0555) == 0);
	struct tree_report report;
	CHECK(tree_copy(place.from, place.to, 0, &report) == 0);
	struct stat a = stat_of(place.to, "a"), b = stat_of(place.to, "b");
	CHECK(a.st_ino == b.st_ino && a.st_ino == stat_of(place.to, "sub/c").st_ino);
	CHECK(a.st_nlink == 3 && has_text(place.to, "sub/c", "one"));
	CHECK(stat_of(place.to, "l").st_ino == stat_of(place.to, "sub/m").st_ino);
	CHECK(count_entries(place.to) == 4 && report.files == 5 && report.bytes == 3);
	place_remove(&place);
}

static void test_names(void)
{
	struct place place;
	place_make(&place);
	char name[256];
	size_t made = 0;
	for (int i = 1; i < 256; i++) {
		snprintf(name, sizeof name, "-%c %c", i, i);
		if (i != '/' && ++made)
			add_file(place.from, name, name, 0600);
	}
	memset(name, 0xff, 255);
	name[255] = '\0';
	AUTO_FD long_one = make_dir(place.from, name, 0700);
	add_file(long_one, name, "long", 0600);
	add_file(place.from, "...", "dots", 0600);
	struct tree_report report;
	CHECK(tree_copy(place.from, place.to, 0, &report) == 0);
	CHECK(report.files == made + 2 && count_entries(place.to) == made + 2);
	CHECK(has_text(place.to, "-\n \n", "-\n \n") && has_text(place.to, "...", "dots"));
	CHECK(tree_copy(place.from, place.to, 0, &report) == -EEXIST && report.failed[0]);
	place_remove(&place);
}

static void test_many(void)
{
	struct place place;
	place_make_large(&place);
	for (int i = 0; i < 10000; i++) {
		char name[16];
		snprintf(name, sizeof name, "n%d", i);
		if (i % 5) {
			add_file(place.from, name, "x", 0600);
			continue;
		}
		AUTO_FD dir = make_dir(place.from, name, 0700);
		add_file(dir, "y", "y", 0600);
	}
	struct tree_report report;
	CHECK(tree_copy(place.from, place.to, 0, &report) == 0);
	CHECK(report.files == 10000 && report.directories == 2000);
	CHECK(count_entries(place.to) == 10000);
	CHECK(tree_clear(place.to, &report) == 0);
	CHECK(report.files == 10000 && report.directories == 2000);
	CHECK(count_entries(place.to) == 0);
	place_remove(&place);
}

/* ---------------------------------------------------------------------------------- depth */

static int make_deep(int dir, int depth)
{
	int at = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), made = 0;
	while (at >= 0 && made < depth) {
		int next = make_dir(at, made % 3 ? "d" : "e", 0700);
		if (made % 1000 == 999)
			add_file(at, "f", "deep", 0600);
		close(at);
		at = next;
		made++;
	}
	fd_close(&at);
	return made;
}

static int measure(int dir)
{
	int at = openat(dir, ".", O_PATH | O_CLOEXEC), depth = 0;
	for (;;) {
		int next = openat(at, depth % 3 ? "d" : "e", O_PATH | O_NOFOLLOW | O_CLOEXEC);
		fd_close(&at);
		if (next < 0)
			return depth;
		at = next;
		depth++;
	}
}

static void part_deep(struct place *place)
{
	struct rlimit few = { 64, 64 };
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	struct tree_report report;
	CHECK(tree_copy(place->from, place->to, 0, &report) == 0);
	CHECK(report.directories == DEEP && report.files == DEEP / 1000);
	CHECK(measure(place->to) == DEEP);
	CHECK(tree_clear(place->to, &report) == 0);
	CHECK(report.directories == DEEP && report.files == DEEP / 1000);
	CHECK(count_entries(place->to) == 0);
}

static void part_too_deep(struct place *place)
{
	struct tree_report report;
	CHECK(make_deep(place->from, TOO_DEEP) == TOO_DEEP);
	CHECK(tree_copy(place->from, place->to, 0, &report) == -ENAMETOOLONG);
	CHECK(measure(place->to) > DEEP);
	CHECK(tree_clear(place->to, &report) == 0 && count_entries(place->to) == 0);
	CHECK(tree_clear(place->from, &report) == 0 && report.directories == TOO_DEEP);
}

static void test_deep(void)
{
	struct place place;
	place_make_large(&place);
	CHECK(make_deep(place.from, DEEP) == DEEP);
	in_child(part_deep, &place, false);
	CHECK(tree_clear(place.from, NULL) == 0);
	part_too_deep(&place);
	place_remove(&place);
}

/* ----------------------------------------------------------------------------- permission */

static void part_closed(struct place *place)
{
	AUTO_FD closed = make_dir(place->from, "closed", 0700);
	add_file(closed, "secret", "own", 0000);
	AUTO_FD sub = make_dir(closed, "sub", 0700);
	add_file(sub, "w", "write only", 0200);
	CHECK(fchmod(sub, 0400) == 0 && fchmod(closed, 0000) == 0);
	struct tree_report report;
	CHECK(tree_copy(place->from, place->to, 0, &report) == 0);
	CHECK(mode_of(place->from, "closed") == 0 && mode_of(place->to, "closed") == 0);
	CHECK(fchmodat(place->to, "closed", 0700, 0) == 0);
	CHECK(fchmodat(place->from, "closed", 0700, 0) == 0);
	CHECK(mode_of(place->to, "closed/sub") == 0400 && mode_of(closed, "sub") == 0400);
	CHECK(mode_of(closed, "secret") == 0 && mode_of(place->to, "closed/secret") == 0);
	CHECK(fchmodat(place->to, "closed/secret", 0400, 0) == 0);
	CHECK(has_text(place->to, "closed/secret", "own"));
	CHECK(fchmodat(place->to, "closed/sub", 0700, 0) == 0);
	CHECK(mode_of(place->to, "closed/sub/w") == 0200);
	CHECK(fchmodat(place->to, "closed/sub/w", 0600, 0) == 0);
	CHECK(has_text(place->to, "closed/sub/w", "write only"));
	CHECK(fchmodat(place->to, "closed/sub", 0000, 0) == 0);
	CHECK(fchmodat(place->to, "closed", 0000, 0) == 0);
	CHECK(fchmod(place->to, 0500) == 0);
	CHECK(tree_clear(place->to, &report) == 0 && count_entries(place->to) == 0);
	CHECK(report.files == 2 && report.directories == 2);
	CHECK((stat_of(place->top, "to").st_mode & 07777) == 0500);
}

static void test_closed(void)
{
	struct place place;
	place_make(&place);
	in_child(part_closed, &place, true);
	place_remove(&place);
}

/* A file that is another's and may not be read is an error with its name, and modes are back. */
static void part_foreign(struct place *place)
{
	struct tree_report report;
	CHECK(tree_copy(place->from, place->to, 0, &report) == -EACCES);
	CHECK_TEXT(report.failed, "foreign");
	CHECK(mode_of(place->from, "d") == 0500);
	/* What cannot be removed stays, the rest goes, and the first error is told. */
	CHECK(tree_clear(place->from, &report) == -EACCES || geteuid() == 0);
	CHECK(!there(place->from, "other") && there(place->from, "d"));
}

static void test_foreign(void)
{
	if (geteuid() != 0) {
		printf("# skipped: needs root to make another user's file\n");
		return;
	}
	struct place place;
	place_make(&place);
	AUTO_FD dir = make_dir(place.from, "d", 0500);
	add_dir(dir, "theirs", 0755);
	AUTO_FD theirs = openat(dir, "theirs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	add_file(theirs, "foreign", "root's", 0600);
	add_file(place.from, "other", "x", 0644);
	CHECK(fchown(dir, 65534, 65534) == 0);
	CHECK(fchownat(place.from, "other", 65534, 65534, 0) == 0);
	in_child(part_foreign, &place, true);
	place_remove(&place);
}

/* ------------------------------------------------------------- others meanwhile */

struct swapper {
	int dir;
	atomic_bool stop;
	bool grow;
};

/* Swap the directory "d" with the link "l" to a place outside, or let a file grow. */
static void *swap(void *arg)
{
	struct swapper *swapper = arg;
	AUTO_FD fd = swapper->grow ? openat(swapper->dir, "grows", O_WRONLY | O_APPEND) : -1;
	char data[65536] = "";
	while (!swapper->stop) {
		if (fd < 0)
			syscall(SYS_renameat2, swapper->dir, "d", swapper->dir, "l", 2u);
		else if (lseek(fd, 0, SEEK_END) < 256 << 20)
			(void)!write(fd, data, sizeof data);
	}
	return NULL;
}

static void fill_race(struct place *place)
{
	mkdirat(place->from, "d", 0700);
	AUTO_FD dir = openat(place->from, "d", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	for (int i = 0; i < 20 && dir >= 0; i++) {
		char name[16];
		snprintf(name, sizeof name, "f%d", i);
		AUTO_FD sub = make_dir(dir, name, 0700);
		if (sub >= 0)
			add_file(sub, "x", "inside", 0600);
	}
	symlinkat("../outside", place->from, "l");
}

/* Nothing outside is removed, and nothing of it is copied. */
static void test_races(void)
{
	struct place place;
	place_make_large(&place);
	AUTO_FD outside = make_dir(place.top, "outside", 0755);
	add_file(outside, "f1", "outside", 0600);
	add_dir(outside, "keep", 0755);
	for (int round = 0; round < 1000; round++) {
		fill_race(&place);
		struct swapper swapper = { .dir = place.from };
		pthread_t thread;
		CHECK(pthread_create(&thread, NULL, swap, &swapper) == 0);
		struct tree_report report;
		int r = tree_copy(place.from, place.to, 0, &report);
		CHECK(r == 0 || r == -EBUSY || r == -EEXIST);
		/* A name may have been a link, a directory, or gone on after both. */
		r = tree_clear(place.from, &report);
		CHECK(r == 0);
		swapper.stop = true;
		pthread_join(thread, NULL);
		CHECK(there(outside, "f1") && there(outside, "keep"));
		CHECK(!there(place.to, "d/keep") || S_ISLNK(stat_of(place.to, "d").st_mode));
		CHECK(tree_clear(place.from, NULL) == 0 && tree_clear(place.to, NULL) == 0);
	}
	place_remove(&place);
}

struct mover {
	int home, outside;
	atomic_bool stop;
};

/* Move "d" out of its home and back. */
static void *move(void *arg)
{
	struct mover *mover = arg;
	while (!mover->stop) {
		renameat(mover->home, "d", mover->outside, "d");
		renameat(mover->outside, "d", mover->home, "d");
	}
	return NULL;
}

/* Who comes up by ".." of a directory that was moved is not where the walk has been. */
static void test_moved(void)
{
	struct place place;
	place_make(&place);
	AUTO_FD outside = make_dir(place.top, "outside", 0755);
	AUTO_FD home = make_dir(place.from, "home", 0755);
	AUTO_FD d = make_dir(home, "d", 0755);
	for (int i = 0; i < 50; i++) {
		char name[16];
		snprintf(name, sizeof name, "secret%d", i);
		add_file(outside, name, "", 0600);
	}
	CHECK(make_deep(d, 30) == 30);
	struct mover mover = { .home = home, .outside = outside };
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, move, &mover) == 0);
	size_t stale = 0;
	for (int round = 0; round < 500; round++) {
		int r = tree_copy(place.from, place.to, 0, NULL);
		stale += r == -ESTALE;
		CHECK(r == 0 || r == -ESTALE);
		AUTO_FD copy = openat(place.to, "home", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		CHECK(count_entries(copy) <= 1);
		CHECK(tree_clear(place.to, NULL) == 0);
	}
	mover.stop = true;
	pthread_join(thread, NULL);
	printf("# moved away in %zu of 500 rounds\n", stale);
	CHECK(count_entries(outside) >= 50);
	place_remove(&place);
}

static void test_growing(void)
{
	struct place place;
	place_make(&place);
	add_file(place.from, "grows", "", 0600);
	AUTO_FD fd = openat(place.from, "grows", O_WRONLY | O_CLOEXEC);
	CHECK(ftruncate(fd, 1 << 20) == 0);
	char data[65536] = "";
	for (int i = 0; i < 64; i++)
		CHECK(write(fd, data, sizeof data) == sizeof data);
	struct swapper swapper = { .dir = place.from, .grow = true };
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, swap, &swapper) == 0);
	struct tree_report report;
	CHECK(tree_copy(place.from, place.to, 0, &report) == 0);
	CHECK(stat_of(place.to, "grows").st_size >= 64 * 65536);
	swapper.stop = true;
	pthread_join(thread, NULL);
	place_remove(&place);
}

/* -------------------------------------------------------------------- layers and mounts */

static void fill_layer(int dir)
{
	AUTO_FD sub = make_dir(dir, "sub", 0755);
	AUTO_FD opaque = make_dir(dir, "opaque", 0755);
	CHECK(mknodat(sub, "gone", S_IFCHR, makedev(0, 0)) == 0);
	CHECK(linkat(sub, "gone", sub, "gone too", 0) == 0); /* as overlayfs does */
	CHECK(mknodat(opaque, "gone", S_IFCHR, makedev(0, 0)) == 0);
	CHECK(fsetxattr(opaque, "user.overlay.opaque", "y", 1, 0) == 0);
	CHECK(fsetxattr(opaque, "user.other", "1", 1, 0) == 0);
	add_file(sub, "file", "x", 0600);
	AUTO_FD file = openat(sub, "file", O_WRONLY | O_CLOEXEC);
	CHECK(fsetxattr(file, "user.overlay.origin", "o\0o", 3, 0) == 0);
	CHECK(fchmod(file, 0) == 0);
}

static bool is_whiteout(int dir, const char *name)
{
	struct stat st = stat_of(dir, name);
	return S_ISCHR(st.st_mode) && st.st_rdev == 0;
}

static ssize_t attribute(int dir, const char *name, const char *attr, char value[8])
{
	AUTO_FD fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	memset(value, 0, 8);
	return fgetxattr(fd, attr, value, 7);
}

static void part_layer(struct place *place)
{
	struct tree_report report;
	char value[8];
	fill_layer(place->from);
	CHECK(tree_copy(place->from, place->to, TREE_LAYER | TREE_NO_SPECIAL, &report) == 0);
	CHECK(report.whiteouts == 3 && report.attribute_whiteouts == 0 && report.skipped == 0);
	CHECK(is_whiteout(place->to, "sub/gone") && is_whiteout(place->to, "sub/gone too"));
	CHECK(attribute(place->to, "opaque", "user.overlay.opaque", value) == 1 && value[0] == 'y');
	CHECK(attribute(place->to, "opaque", "user.other", value) < 0);
	CHECK(mode_of(place->from, "sub/file") == 0 && mode_of(place->to, "sub/file") == 0);
	CHECK(fchmodat(place->to, "sub/file", 0400, 0) == 0);
	CHECK(attribute(place->to, "sub/file", "user.overlay.origin", value) == 3);
	CHECK(tree_clear(place->to, NULL) == 0);
	CHECK(tree_copy(place->from, place->to, 0, &report) == 0);
	CHECK(report.skipped == 3 && !there(place->to, "sub/gone"));
	CHECK(attribute(place->to, "opaque", "user.overlay.opaque", value) < 0);
}

/* Where no device can be made: the other form. */
static void part_no_devices(struct place *place)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mknodat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = code };
	fill_layer(place->from);
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
	struct tree_report report;
	char value[8];
	CHECK(tree_copy(place->from, place->to, TREE_LAYER, &report) == 0);
	CHECK(report.whiteouts == 3 && report.attribute_whiteouts == 2);
	CHECK(S_ISREG(stat_of(place->to, "sub/gone").st_mode));
	CHECK(attribute(place->to, "sub/gone", "user.overlay.whiteout", value) == 1);
	CHECK(attribute(place->to, "sub", "user.overlay.opaque", value) == 1 && value[0] == 'x');
	CHECK(!there(place->to, "opaque/gone"));
	CHECK(attribute(place->to, "opaque", "user.overlay.opaque", value) == 1 && value[0] == 'y');
}

static void test_layer(void)
{
	struct place place;
	place_make(&place);
	bool can = fsetxattr(place.from, "user.overlay.x", "y", 1, 0) == 0;
	if (can) {
		in_child(part_layer, &place, true);
		CHECK(tree_clear(place.from, NULL) == 0 && tree_clear(place.to, NULL) == 0);
		in_child(part_no_devices, &place, true);
	} else {
		printf("# skipped: no user attributes here\n");
	}
	place_remove(&place);
}

static bool write_proc(const char *path, const char *text)
{
	AUTO_FD fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static bool own_mounts(void)
{
	char uid[32], gid[32];
	snprintf(uid, sizeof uid, "%u %u 1", geteuid(), geteuid());
	snprintf(gid, sizeof gid, "%u %u 1", getegid(), getegid());
	if (unshare(CLONE_NEWNS) == 0)
		return true;
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
	       write_proc("/proc/self/setgroups", "deny") &&
	       write_proc("/proc/self/uid_map", uid) && write_proc("/proc/self/gid_map", gid);
}

static void part_mount(struct place *place)
{
	if (!own_mounts()) {
		printf("# skipped: no mounts here\n");
		return;
	}
	/* The descriptors are of the mount namespace that was left. */
	CHECK(chdir(place->path) == 0 && chdir("from") == 0);
	fd_close(&place->from);
	fd_close(&place->to);
	place->from = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	place->to = open("../to", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	add_dir(place->from, "m", 0700);
	add_file(place->from, "n", "n", 0600);
	CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	CHECK(mount("none", "m", "tmpfs", 0, "size=1m,mode=0711") == 0);
	AUTO_FD mounted = openat(place->from, "m", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	add_file(mounted, "in", "mounted", 0600);
	CHECK(mount("m/in", "n", NULL, MS_BIND, NULL) == 0);
	struct tree_report report;
	CHECK(tree_copy(place->from, place->to, TREE_ONE_FS, &report) == 0);
	CHECK(report.skipped == 2 && !there(place->to, "m/in") && has_text(place->to, "n", ""));
	CHECK(mode_of(place->to, "m") == 0711);
	CHECK(tree_clear(place->to, NULL) == 0);
	CHECK(tree_copy(place->from, place->to, 0, &report) == 0);
	CHECK(has_text(place->to, "m/in", "mounted") && has_text(place->to, "n", "mounted"));
	/* What is mounted is not cleared. */
	add_file(place->from, "z", "z", 0600);
	CHECK(tree_clear(place->from, &report) == -EBUSY);
	CHECK(there(mounted, "in") && !there(place->from, "z") && report.failed[1] == '\0');
}

static void test_mount(void)
{
	struct place place;
	place_make(&place);
	in_child(part_mount, &place, false);
	place_remove(&place);
}

int main(void)
{
	umask(027);
	RUN(test_kinds);
	RUN(test_holes);
	RUN(test_hard_links);
	RUN(test_names);
	RUN(test_many);
	RUN(test_deep);
	RUN(test_closed);
	RUN(test_foreign);
	RUN(test_races);
	RUN(test_moved);
	RUN(test_growing);
	RUN(test_layer);
	RUN(test_mount);
	return CHECK_STATUS();
}
