/*
 * changes_large_test: what changes_find costs, what it holds, and what it leaves alone: trees that
 * are deep, wide, large, shut, or change under the look. The linker leads fstatat and syscall here,
 * so that each look is counted.
 */
#define _GNU_SOURCE
#include "layer_trees.h"

#include <dirent.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define DEPTH 20000
#define ASIDE 1000

static unsigned long looks, opens;

int __real_fstatat64(int dir, const char *path, struct stat *st, int flags);
int __wrap_fstatat64(int dir, const char *path, struct stat *st, int flags);
long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, ...);

int __wrap_fstatat64(int dir, const char *path, struct stat *st, int flags)
{
	looks++;
	return __real_fstatat64(dir, path, st, flags);
}

long __wrap_syscall(long number, ...)
{
	va_list ap;
	long args[6];
	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		args[i] = va_arg(ap, long);
	va_end(ap);
	opens += number == SYS_openat2;
	return __real_syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}

/* Of 20 000 files three were changed: nothing is asked about the others. */
static void test_cost(void)
{
	struct trees t = trees_make();
	int up = t.layer.upper, low = t.layer.lower;
	char name[64];
	for (int i = 0; i < 20000; i++) {
		snprintf(name, sizeof name, "d%d", i / 1000);
		if (i % 1000 == 0)
			put_dir(low, name);
		snprintf(name, sizeof name, "d%d/f%d", i / 1000, i);
		put_file(low, name, 0644, "text");
	}
	put_dir(up, "d3");
	put_file(up, "d3/f3003", 0644, "Text");
	put_file(up, "d3/f3004", 0644, "text+");
	put_dir(up, "d19");
	put_whiteout(up, "d19/f19999");
	looks = opens = 0;
	CHECK_CHANGES(&t, "D d19/f19999 644 4\nM d3/f3003 644 4\nM d3/f3004 644 5\n");
	CHECK(looks > 5 && looks <= 10);
	CHECK(opens > 5 && opens <= 20);
	trees_remove(&t);
}

/* DEPTH levels, with a file on the last one, and on some behind the way down: found on the way up.
 */
static void make_deep(int top, const char *text)
{
	int at = dup(top);
	for (int i = 0; i < DEPTH; i++) {
		trees_need(mkdirat(at, "d", 0755) == 0, "d");
		if (i % ASIDE == 0)
			put_file(at, "z", 0644, text);
		int below = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		trees_need(below >= 0, "d");
		close(at);
		at = below;
	}
	put_file(at, "f", 0644, text);
	close(at);
}

static int open_descriptors(void)
{
	int count = 0;
	DIR *dir = opendir("/proc/self/fd");
	trees_need(dir != NULL, "/proc/self/fd");
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* Depth costs no stack and no descriptors, and not the square of it either. */
static void test_deep(void)
{
	struct rlimit few = { 160, 160 }, before;
	struct trees t = trees_make();
	make_deep(t.layer.upper, "new");
	make_deep(t.layer.lower, "old");
	trees_need(getrlimit(RLIMIT_NOFILE, &before) == 0, "getrlimit");
	few.rlim_max = before.rlim_max;
	trees_need(setrlimit(RLIMIT_NOFILE, &few) == 0, "setrlimit");
	int open_before = open_descriptors();
	opens = 0;
	struct changes changes = { 0 };
	struct err err = { 0 };
	CHECK(changes_find(&t.layer, 1, NULL, 100, &changes, &err) == 0);
	CHECK(changes.count == 1 + DEPTH / ASIDE && changes.left_out == 0);
	CHECK(changes.count && strlen(changes.list[0].path) == (size_t)2 * DEPTH + 1);
	for (size_t i = 1; i < changes.count; i++) {
		CHECK(strlen(changes.list[i].path) == (DEPTH - i * ASIDE) * 2 + 1);
		CHECK(changes.list[i].kind == CHANGE_MODIFIED);
	}
	CHECK(opens < (unsigned long)5 * DEPTH);
	changes_free(&changes);

	/* All of it new: what is listed has a maximum in bytes, too. */
	struct changes_layer alone = t.layer;
	alone.lower = -1;
	CHECK(changes_find(&alone, 1, NULL, CHANGES_MAX, &changes, &err) == 0);
	CHECK(changes.count > 1000 && changes.count < CHANGES_MAX);
	CHECK(changes.count + changes.left_out == DEPTH + 1 + DEPTH / ASIDE);
	changes_free(&changes);

	/* All of it gone, but for the file at the top. */
	struct trees empty = trees_make();
	struct changes_layer gone = t.layer;
	gone.upper = empty.layer.upper;
	put_whiteout(gone.upper, "d");
	CHECK(changes_find(&gone, 1, NULL, 1, &changes, &err) == 0);
	CHECK(changes.count == 1 && changes.left_out == DEPTH + DEPTH / ASIDE - 1);
	changes_free(&changes);
	CHECK(open_descriptors() == open_before + 3);
	trees_remove(&empty);
	trees_need(setrlimit(RLIMIT_NOFILE, &before) == 0, "setrlimit");
	trees_remove(&t);
}

static void test_wide(void)
{
	struct trees t = trees_make();
	char name[32];
	for (int i = 0; i < 100000; i++) {
		snprintf(name, sizeof name, "%d", i);
		trees_need(mknodat(t.layer.upper, name, S_IFREG | 0644, 0) == 0, name);
	}
	struct changes changes = { 0 };
	struct err err = { 0 };
	CHECK(changes_find(&t.layer, 1, NULL, 0, &changes, &err) == 0);
	CHECK(changes.count == 100000);
	int wrong = 0;
	for (size_t i = 1; i < changes.count; i++)
		wrong += strcmp(changes.list[i - 1].path, changes.list[i].path) >= 0;
	CHECK(wrong == 0);
	changes_free(&changes);
	trees_remove(&t);
}

static void put_sparse(int dir, const char *name, off_t size, off_t at, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	trees_need(fd >= 0, name);
	trees_need(ftruncate(fd, size) == 0, name);
	trees_need(pwrite(fd, text, strlen(text), at) == (ssize_t)strlen(text), name);
	close(fd);
}

/* Only data is read: 1 TiB of nothing is compared at once. */
static void test_sparse(void)
{
	const off_t size = (off_t)1 << 40;
	struct trees t = trees_make();
	int up = t.layer.upper, low = t.layer.lower;
	put_sparse(low, "same", size, size - 5, "abc");
	put_sparse(up, "same", size, size - 5, "abc");
	put_sparse(low, "data", size, size / 2, "abc");
	put_sparse(up, "data", size, size / 2, "abd");
	put_sparse(low, "place", size, size / 2, "abc");
	put_sparse(up, "place", size, size / 4, "abc");
	put_sparse(low, "only lower", size, size - 3, "abc");
	put_sparse(up, "only lower", size, 0, "");
	/* A hole and written zeros are the same content. */
	put_sparse(low, "zeros", 300000, 0, "");
	put_sparse(up, "zeros", 300000, 0, "");
	int fd = openat(up, "zeros", O_WRONLY | O_CLOEXEC);
	static const char zeros[200000];
	trees_need(pwrite(fd, zeros, sizeof zeros, 50000) == sizeof zeros, "zeros");
	close(fd);
	AUTO_BUF want = { 0 };
	buf_addf(&want, "M data 644 %lld\nM only lower 644 %lld\nM place 644 %lld\n",
		(long long)size, (long long)size, (long long)size);
	CHECK_CHANGES(&t, buf_text(&want));
	trees_remove(&t);
}

/* Differences anywhere in files of some blocks: in the first and the last byte, and between. */
static void test_blocks(void)
{
	static char data[200001];
	static const size_t places[] = { 0, 65535, 65536, 131071, 200000 };
	struct trees t = trees_make();
	int up = t.layer.upper, low = t.layer.lower;
	memset(data, 'x', sizeof data - 1);
	put_file(low, "same", 0644, data);
	put_file(up, "same", 0644, data);
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		char name[2] = { (char)('a' + i), 0 };
		size_t at = places[i] < sizeof data - 1 ? places[i] : sizeof data - 2;
		put_file(low, name, 0644, data);
		data[at] = 'y';
		put_file(up, name, 0644, data);
		data[at] = 'x';
	}
	CHECK_CHANGES(&t, "M a 644 200000\n"
			  "M b 644 200000\n"
			  "M c 644 200000\n"
			  "M d 644 200000\n"
			  "M e 644 200000\n");
	trees_remove(&t);
}

static mode_t mode_of(int dir, const char *path)
{
	struct stat st;
	trees_need(fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0, path);
	return st.st_mode & 07777;
}

static void set_mode(int dir, const char *path, mode_t mode)
{
	trees_need(fchmodat(dir, path, mode, 0) == 0, path);
}

/*
 * A layer's files that their own owner may not read: looked at all the same, and left as they are.
 * The tree below belongs to the host: nothing is done to it.
 */
static void shut_files(void)
{
	struct trees t = trees_make();
	int up = t.layer.upper, low = t.layer.lower;
	put_dir(up, "d");
	put_dir(up, "d/e");
	put_file(up, "d/e/f", 0000, "text");
	put_file(low, "same", 0444, "text");
	put_file(up, "same", 0444, "text");
	put_dir(low, "touched");
	put_file(low, "touched/x", 0000, "text");
	put_dir(up, "touched");
	put_file(low, "mode", 0000, "text");
	put_file(up, "mode", 0200, "text");
	set_mode(low, "touched", 0000);
	set_mode(up, "touched", 0000);
	set_mode(up, "d/e", 0000);
	set_mode(up, "d", 0400);
	CHECK_CHANGES(&t, "C d/400\nC d/e/000\nC d/e/f 000 4\nM mode 200 4\n");
	CHECK(mode_of(up, "d") == 0400 && mode_of(up, "touched") == 0);
	set_mode(up, "d", 0700);
	CHECK(mode_of(up, "d/e") == 0);
	set_mode(up, "d/e", 0700);
	CHECK(mode_of(up, "d/e/f") == 0);
	/* Put back also when something is wrong inside. */
	set_mode(up, "d/e/f", 0600);
	put_mark(up, "d/e/f", "user.overlay.metacopy", "");
	set_mode(up, "d/e", 0000);
	AUTO_BUF wrong = trees_changes(&t);
	CHECK(strncmp(buf_text(&wrong), "workspace_unreadable: ", 22) == 0);
	CHECK(mode_of(up, "d/e") == 0);
	trees_remove(&t);
}

/* A file of the layer that must be read, and one of the host that must be and cannot be. */
static void shut_contents(void)
{
	struct trees t = trees_make();
	int up = t.layer.upper, low = t.layer.lower;
	put_file(up, "f", 0000, "text");
	put_file(low, "f", 0000, "text");
	CHECK_CHANGES(&t,
		"workspace_unreadable: '" TREE_ROOT "/f' cannot be looked at: Permission denied\n");
	CHECK(mode_of(up, "f") == 0 && mode_of(low, "f") == 0);
	trees_need(unlinkat(low, "f", 0) == 0, "f");
	put_dir(low, "d");
	put_file(low, "d/f", 0644, "");
	put_whiteout(up, "d");
	set_mode(low, "d", 0300);
	CHECK_CHANGES(&t,
		"workspace_unreadable: '" TREE_ROOT "/d' cannot be looked at: Permission denied\n");
	CHECK(mode_of(low, "d") == 0300);
	trees_remove(&t);
}

static void test_shut(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		/* Root may read everything. */
		if (geteuid() == 0)
			trees_need(setgid(1000) == 0 && setuid(1000) == 0, "setuid");
		shut_files();
		shut_contents();
		_exit(CHECK_STATUS());
	}
	int status = 0;
	trees_need(waitpid(pid, &status, 0) == pid, "waitpid");
	CHECK(status == 0);
}

/* Both trees are as before, times too, but for the ones that the layer's reading may change. */
static void test_nothing_written(void)
{
	struct trees t = trees_make();
	int up = t.layer.upper, low = t.layer.lower;
	struct stat before[2], after[2];
	const struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 2 } };
	put_file(low, "f", 0644, "text");
	put_file(up, "f", 0644, "tExt");
	put_dir(low, "d");
	put_file(low, "d/x", 0644, "");
	put_whiteout(up, "d");
	trees_need(utimensat(low, "f", old, 0) == 0 && utimensat(low, "d", old, 0) == 0, "times");
	trees_need(fstatat(low, "f", &before[0], 0) == 0 && fstatat(low, "d", &before[1], 0) == 0,
		"fstatat");
	CHECK_CHANGES(&t, "D d/755\nD d/x 644 0\nM f 644 4\n");
	trees_need(fstatat(low, "f", &after[0], 0) == 0 && fstatat(low, "d", &after[1], 0) == 0,
		"fstatat");
	for (int i = 0; i < 2; i++) {
		CHECK(memcmp(&before[i].st_atim, &after[i].st_atim, sizeof after[i].st_atim) == 0);
		CHECK(memcmp(&before[i].st_mtim, &after[i].st_mtim, sizeof after[i].st_mtim) == 0);
		CHECK(memcmp(&before[i].st_ctim, &after[i].st_ctim, sizeof after[i].st_ctim) == 0);
	}
	trees_remove(&t);
}

/* Changes the tree below until it is ended: moves directories away, and puts other things there. */
static void disturb(int low)
{
	for (;;) {
		renameat(low, "a", low, "z");
		symlinkat("/etc", low, "a");
		renameat(low, "z/b/c", low, "c");
		unlinkat(low, "a", 0);
		mkfifoat(low, "a", 0600);
		unlinkat(low, "a", 0);
		renameat(low, "c", low, "z/b/c");
		renameat(low, "z", low, "a");
		unlinkat(low, "a/b/c/f", 0);
		int fd = openat(low, "a/b/c/f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (fd >= 0) {
			(void)!write(fd, "text", 4);
			close(fd);
		}
	}
}

/* No crash, no hang, nothing of elsewhere, whatever happens below meanwhile. */
static void test_disturbed(void)
{
	struct trees t = trees_make();
	for (int i = 0; i < 2; i++) {
		int at = i ? t.layer.upper : t.layer.lower;
		put_dir(at, "a");
		put_dir(at, "a/b");
		put_dir(at, "a/b/c");
		put_file(at, "a/b/c/f", 0644, "text");
	}
	put_dir(t.layer.lower, "a/b/c/g");
	put_whiteout(t.layer.upper, "a/b/c/g");
	int open_before = open_descriptors();
	pid_t pid = fork();
	if (pid == 0)
		disturb(t.layer.lower);
	trees_need(pid > 0, "fork");
	time_t end = time(NULL) + 2;
	for (int i = 0; i < 3000 && time(NULL) < end; i++) {
		struct changes changes = { 0 };
		struct err err = { 0 };
		if (changes_find(&t.layer, 1, NULL, 0, &changes, &err) < 0) {
			CHECK(err.code == ERR_workspace_unreadable);
			continue;
		}
		for (size_t k = 0; k < changes.count; k++)
			CHECK(strncmp(changes.list[k].path, "a", 1) == 0 &&
				strlen(changes.list[k].path) <= 7);
		changes_free(&changes);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CHECK(open_descriptors() == open_before);
	trees_remove(&t);
}

int main(void)
{
	RUN(test_cost);
	RUN(test_deep);
	RUN(test_wide);
	RUN(test_sparse);
	RUN(test_blocks);
	RUN(test_shut);
	RUN(test_nothing_written);
	RUN(test_disturbed);
	return CHECK_STATUS();
}
