/* A session's trees as its box sees them: layers, links, patterns, and what is put into them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "check.h"
#include "workspace/view.h"

static char top[64];
static int lower, upper, home, stage;
static struct view view;

/* Between RUNs everything is made anew: low/ up/ home/ stage/ below `top`. */
static void remove_top(void)
{
	char command[192];
	snprintf(command, sizeof command, "chmod -R u+rwx '%s' && rm -rf '%s'", top, top);
	CHECK(system(command) == 0);
}

static int make_top(const char *name)
{
	char path[128];
	snprintf(path, sizeof path, "%s/%s", top, name);
	CHECK(mkdir(path, 0755) == 0);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static void start(void)
{
	snprintf(top, sizeof top, "/tmp/view-test.XXXXXX");
	CHECK(mkdtemp(top) != NULL);
	lower = make_top("low");
	upper = make_top("up");
	home = make_top("home");
	stage = make_top("stage");
	view = (struct view){
		.trees = { { .root = "/home/u/w",
				   .upper = upper,
				   .lower = lower,
				   .layer = true,
				   .grant = true,
				   .owner = geteuid(),
				   .group = getegid() },
			{ .root = "/home/u",
				.upper = home,
				.lower = -1,
				.owner = geteuid(),
				.group = getegid() } },
		.count = 2,
		.stage = stage,
	};
}

static void end(void)
{
	close(lower);
	close(upper);
	close(home);
	close(stage);
	remove_top();
}

static void put(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void make(int dir, const char *name)
{
	CHECK(mkdirat(dir, name, 0755) == 0);
}

static void whiteout(int dir, const char *name)
{
	CHECK(mknodat(dir, name, S_IFCHR, makedev(0, 0)) == 0);
}

static void opaque(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0 && fsetxattr(fd, "user.overlay.opaque", "y", 1, 0) == 0);
	close(fd);
}

static bool is_opaque(int dir, const char *name)
{
	char value = 0;
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool so = fd >= 0 && fgetxattr(fd, "user.overlay.opaque", &value, 1) == 1 && value == 'y';
	close(fd);
	return so;
}

/* What a path holds: the file's text, "DIR", "NONE", "OTHER", or the error. */
static const char *at(const char *path)
{
	static char texts[8][256];
	static int next;
	char *text = texts[next++ % 8];
	struct arena arena = { 0 };
	struct view_found found;
	struct err err = { 0 };
	if (view_find(&view, "/home/u/w", path, false, &arena, &found, &err) < 0) {
		snprintf(text, sizeof texts[0], "%s", strerror(err.errnum));
		CHECK(err.code == ERR_session_path);
	} else {
		mode_t mode = found.entry.st.st_mode;
		int fd = S_ISREG(mode) ? view_read(&found.entry) : -1;
		ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof texts[0] - 1);
		if (len >= 0)
			text[len] = 0;
		else
			snprintf(text, sizeof texts[0], "%s",
				!mode           ? "NONE"
				: S_ISDIR(mode) ? "DIR"
				: S_ISREG(mode) ? "UNREADABLE"
						: "OTHER");
		if (fd >= 0)
			close(fd);
		view_found_close(&found);
	}
	arena_free(&arena);
	return text;
}

static int add_name(void *data, const char *name, const struct view_entry *entry, int errnum)
{
	char *list = data;
	size_t len = strlen(list);
	snprintf(list + len, 1024 - len, "%s%s%s%s", len ? " " : "", name,
		S_ISDIR(entry->st.st_mode) ? "/" : "", errnum ? "!" : "");
	return 0;
}

static const char *names(const char *path, bool recursive)
{
	static char list[1024];
	list[0] = 0;
	CHECK(view_walk(&view, path, recursive, add_name, list) == 0);
	return list;
}

static void test_layer(void)
{
	make(lower, "d");
	put(lower, "d/low", "1");
	put(lower, "d/both", "low");
	put(lower, "d/gone", "1");
	make(lower, "hidden");
	put(lower, "hidden/x", "1");
	make(lower, "kind");
	put(lower, "kind/x", "1");
	put(lower, "file", "low");
	make(upper, "d");
	put(upper, "d/both", "up");
	put(upper, "d/up", "2");
	whiteout(upper, "d/gone");
	make(upper, "hidden");
	opaque(upper, "hidden");
	put(upper, "hidden/y", "2");
	put(upper, "kind", "now a file");
	make(upper, "file");
	put(upper, "file/in", "3");
	whiteout(upper, "never");
	CHECK_TEXT(at("d/low"), "1");
	CHECK_TEXT(at("d/both"), "up");
	CHECK_TEXT(at("d/up"), "2");
	CHECK_TEXT(at("d/gone"), "NONE");
	CHECK_TEXT(at("d/gone/x"), strerror(ENOENT));
	CHECK_TEXT(at("hidden/x"), "NONE");
	CHECK_TEXT(at("hidden/y"), "2");
	CHECK_TEXT(at("kind"), "now a file");
	CHECK_TEXT(at("kind/x"), strerror(ENOTDIR));
	CHECK_TEXT(at("file/in"), "3");
	CHECK_TEXT(at("never"), "NONE");
	CHECK_TEXT(names("/home/u/w", true),
		"d/ d/both d/low d/up file/ file/in hidden/ hidden/y kind");
	CHECK_TEXT(names("/home/u/w", false), "d/ file/ hidden/ kind");
}

/* In a tree that is no layer, and below one, the marks mean nothing. */
static void test_no_layer(void)
{
	whiteout(home, "dev");
	make(home, "d");
	opaque(home, "d");
	whiteout(lower, "low");
	CHECK_TEXT(at("/home/u/dev"), "OTHER");
	CHECK_TEXT(at("/home/u/d"), "DIR");
	CHECK_TEXT(at("low"), "OTHER");
	view.trees[0].layer = false;
	whiteout(upper, "up");
	CHECK_TEXT(at("up"), "OTHER");
}

static void test_odd_names(void)
{
	static const char *const odd[] = { "a:b", "a,b=c", "\\", "\n", "\xff\xfe", "\033[2J", " ",
		"-", "...", "*", "[a]" };
	make(lower, "odd");
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		char path[64];
		snprintf(path, sizeof path, "odd/%s", odd[i]);
		put(i % 2 ? lower : upper, i % 2 ? path : odd[i], "x");
		CHECK_TEXT(at(i % 2 ? path : odd[i]), "x");
	}
	char name[NAME_MAX + 2];
	memset(name, 'n', sizeof name - 1);
	name[NAME_MAX] = 0;
	put(upper, name, "long");
	CHECK_TEXT(at(name), "long");
	name[NAME_MAX] = 'n';
	name[NAME_MAX + 1] = 0;
	CHECK_TEXT(at(name), strerror(ENAMETOOLONG));
}

static void test_links(void)
{
	make(lower, "d");
	make(lower, "d/e");
	put(lower, "d/e/f", "f");
	put(lower, "t", "t");
	put(home, "h", "h");
	CHECK(symlinkat("e/f", lower, "d/rel") == 0);
	CHECK(symlinkat("../t", lower, "d/up") == 0);
	CHECK(symlinkat("/home/u/w/t", lower, "abs") == 0);
	CHECK(symlinkat("../h", lower, "home") == 0);
	CHECK(symlinkat("d/e", lower, "dir") == 0);
	CHECK(symlinkat("/etc/passwd", lower, "out") == 0);
	CHECK(symlinkat("/etc", upper, "outdir") == 0);
	CHECK(symlinkat("../../../etc/passwd", lower, "out2") == 0);
	CHECK(symlinkat("/proc/self/root/etc/passwd", lower, "magic") == 0);
	CHECK(symlinkat("loop2", lower, "loop") == 0);
	CHECK(symlinkat("loop", lower, "loop2") == 0);
	CHECK(symlinkat("self/self", lower, "self") == 0);
	CHECK(symlinkat("nothing", lower, "dangling") == 0);
	CHECK_TEXT(at("d/rel"), "f");
	CHECK_TEXT(at("d/up"), "t");
	CHECK_TEXT(at("abs"), "t");
	CHECK_TEXT(at("home"), "h");
	CHECK_TEXT(at("dir/f"), "f");
	CHECK_TEXT(at("dir/../up"), "t"); /* as the kernel: the real parent */
	CHECK_TEXT(at("d/../t"), "t");
	CHECK_TEXT(at("./d//e/./f"), "f");
	CHECK_TEXT(at("/home/u/w/../h"), "h");
	CHECK_TEXT(at("/home/../home/u/h"), "h");
	CHECK_TEXT(at("out"), strerror(EXDEV));
	CHECK_TEXT(at("out2"), strerror(EXDEV));
	CHECK_TEXT(at("outdir/passwd"), strerror(EXDEV));
	CHECK_TEXT(at("magic"), strerror(EXDEV));
	CHECK_TEXT(at("/etc/passwd"), strerror(EXDEV));
	CHECK_TEXT(at("../../../etc/passwd"), strerror(EXDEV));
	CHECK_TEXT(at("/"), strerror(EXDEV));
	CHECK_TEXT(at("/home"), strerror(EXDEV));
	CHECK_TEXT(at("loop"), strerror(ELOOP));
	CHECK_TEXT(at("self"), strerror(ELOOP));
	CHECK_TEXT(at("dangling"), "NONE");
	CHECK_TEXT(at(""), strerror(ENOENT));
	CHECK_TEXT(at("t/x"), strerror(ENOTDIR));
	CHECK_TEXT(at("t/.."), strerror(ENOTDIR));
	CHECK_TEXT(at("no/.."), strerror(ENOENT));
	char path[2 * PATH_MAX];
	memset(path, '/', sizeof path);
	memcpy(path + sizeof path - 2, "t", 2);
	CHECK_TEXT(at(path), strerror(ENAMETOOLONG));
}

static void test_nothing_blocks(void)
{
	CHECK(mkfifoat(lower, "fifo", 0644) == 0 && mkfifoat(upper, "fifo2", 0644) == 0);
	alarm(20);
	CHECK_TEXT(at("fifo"), "OTHER");
	CHECK_TEXT(at("fifo2"), "OTHER");
	CHECK_TEXT(at("fifo/x"), strerror(ENOTDIR));
	CHECK_TEXT(names("/home/u/w", true), "fifo fifo2");
	alarm(0);
}

static void test_nested_trees(void)
{
	put(lower, "in", "w");
	/* A place for the workspace in home, as a box makes one, is covered. */
	make(home, "w");
	put(home, "w/covered", "x");
	put(home, "other", "o");
	CHECK_TEXT(at("/home/u/w/in"), "w");
	CHECK_TEXT(at("/home/u/w/covered"), "NONE");
	CHECK_TEXT(names("/home/u", true), "other w/");
}

static void test_patterns(void)
{
	static const char *const hide[] = { ".env", "secret/*.key", "/home/u/h", NULL };
	static const char *const protect[] = { ".git/hooks", NULL };
	view.hide = hide;
	view.protect = protect;
	make(lower, "a");
	put(lower, "a/.env", "1");
	make(lower, "b");
	make(lower, "b/.env");
	put(lower, "b/.env/in", "1");
	make(lower, "secret");
	put(lower, "secret/x.key", "1");
	put(lower, "secret/x.pub", "1");
	put(home, ".env", "home is no grant");
	put(home, "h", "1");
	CHECK(symlinkat("a/.env", lower, "link") == 0);
	CHECK_TEXT(at("a/.env"), "NONE");
	CHECK_TEXT(at("link"), "NONE");
	CHECK_TEXT(at("b/.env"), "NONE");
	CHECK_TEXT(at("b/.env/in"), strerror(ENOENT));
	CHECK_TEXT(at("secret/x.key"), "NONE");
	CHECK_TEXT(at("secret/x.pub"), "1");
	CHECK_TEXT(at("/home/u/.env"), "home is no grant");
	CHECK_TEXT(at("/home/u/h"), "NONE");
	CHECK_TEXT(names("/home/u/w", true), "a/ b/ link secret/ secret/x.pub");
	CHECK(view_held(&view, "/home/u/w/b/.env/in/deep", true) == VIEW_HIDDEN);
	CHECK(view_held(&view, "/home/u/w/.git/hooks/pre-commit", true) == VIEW_PROTECTED);
	CHECK(view_held(&view, "/home/u/w/.git/config", true) == VIEW_FREE);
	CHECK(view_held(&view, "/etc/passwd", true) == VIEW_HIDDEN);
}

static mode_t mode_of(int dir, const char *name)
{
	struct stat st;
	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : st.st_mode;
}

static int put_file(const char *text, const char *path, bool parents)
{
	put(stage, "new", text);
	int r = view_put(&view, stage, "new", path, parents);
	(void)unlinkat(stage, "new", 0);
	return r;
}

static void test_put(void)
{
	make(lower, "d");
	make(lower, "d/e");
	put(lower, "d/e/f", "old");
	put(lower, "d/e/other", "1");
	make(lower, "again");
	put(lower, "again/was", "1");
	put(lower, "gone", "1");
	whiteout(upper, "gone");
	whiteout(upper, "again");
	CHECK(fchmodat(lower, "d", 0750, 0) == 0);
	opaque(lower, "d/e");
	int low = openat(lower, "d/e", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fsetxattr(low, "user.note", "kept", 4, 0) == 0);
	close(low);
	CHECK(put_file("new", "/home/u/w/d/e/f", false) == 0);
	CHECK_TEXT(at("d/e/f"), "new");
	CHECK_TEXT(at("d/e/other"), "1");
	CHECK(mode_of(upper, "d") == (S_IFDIR | 0750));
	CHECK(mode_of(upper, "d/e/f") == (S_IFREG | 0644));
	char note[8] = "";
	int up = openat(upper, "d/e", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fgetxattr(up, "user.note", note, 7) == 4 && strcmp(note, "kept") == 0);
	close(up);
	CHECK(!is_opaque(upper, "d/e"));
	char text[8] = "";
	int fd = openat(lower, "d/e/f", O_RDONLY | O_CLOEXEC);
	CHECK(read(fd, text, 7) == 3 && strcmp(text, "old") == 0);
	close(fd);
	CHECK(put_file("back", "/home/u/w/gone", false) == 0);
	CHECK_TEXT(at("gone"), "back");
	CHECK(put_file("1", "/home/u/w/again/is", false) == -ENOENT);
	CHECK(put_file("1", "/home/u/w/again/is", true) == 0);
	CHECK(is_opaque(upper, "again"));
	CHECK_TEXT(names("/home/u/w/again", true), "is");
	CHECK(put_file("1", "/home/u/w/no/way/is", false) == -ENOENT);
	CHECK(put_file("1", "/home/u/w/no/way/is", true) == 0);
	CHECK(!is_opaque(upper, "no"));
	CHECK(put_file("1", "/home/u/w/d", false) == -EISDIR);
	CHECK(put_file("1", "/home/u/w", false) == -EISDIR);
	CHECK(put_file("1", "/home/u/w/gone/x", true) == -ENOTDIR);
	CHECK(put_file("1", "/etc/x", true) == -ENOENT);
	CHECK(put_file("h", "/home/u/x", false) == 0);
	CHECK_TEXT(at("/home/u/x"), "h");
	/* A link that a box left is replaced, never followed. */
	CHECK(symlinkat("/etc/passwd", upper, "link") == 0);
	CHECK(symlinkat("/etc", upper, "linkdir") == 0);
	CHECK(put_file("mine", "/home/u/w/link", false) == 0);
	CHECK(mode_of(upper, "link") == (S_IFREG | 0644));
	CHECK(put_file("1", "/home/u/w/linkdir/x", true) == -ENOTDIR);
	view.trees[0].upper = -1;
	CHECK(put_file("1", "/home/u/w/d/e/f", false) == -EROFS);
}

static void test_make_dir(void)
{
	make(lower, "d");
	CHECK(view_make_dir(&view, "/home/u/w/d/a/b") == 0);
	CHECK(view_make_dir(&view, "/home/u/w/d/a/b") == 0);
	CHECK(mode_of(upper, "d/a/b") == (S_IFDIR | 0755));
	CHECK_TEXT(names("/home/u/w", true), "d/ d/a/ d/a/b/");
	CHECK_TEXT(names("/home/u", false), "");
	CHECK(mode_of(stage, "directory") == 0);
}

static int put_all(const char *path, enum err_code *ret_code)
{
	struct err err = { 0 };
	int from = openat(stage, "all", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = view_put_all(&view, from, path, &err);
	*ret_code = (enum err_code)err.code;
	close(from);
	return r;
}

static void stage_again(void)
{
	char command[192];
	snprintf(command, sizeof command, "chmod -R u+rwx '%s/stage'; rm -rf '%s/stage/all'", top,
		top);
	CHECK(system(command) == 0);
	make(stage, "all");
}

static void test_put_all(void)
{
	enum err_code code;
	stage_again();
	make(lower, "d");
	put(lower, "d/old", "1");
	make(stage, "all/d");
	put(stage, "all/d/new", "2");
	make(stage, "all/closed");
	put(stage, "all/closed/in", "3");
	CHECK(symlinkat("/etc", stage, "all/link") == 0);
	CHECK(fchmodat(stage, "all/closed", 0500, 0) == 0);
	CHECK(put_all("/home/u/w", &code) == 0);
	CHECK_TEXT(names("/home/u/w", true), "closed/ closed/in d/ d/new d/old link");
	CHECK(mode_of(upper, "closed") == (S_IFDIR | 0500));
	CHECK(mode_of(upper, "d") == (S_IFDIR | 0755));
	CHECK(S_ISLNK(mode_of(upper, "link")));
	CHECK(put_all("/home/u/w/new/place", &code) == 0);
	CHECK_TEXT(names("/home/u/w/new", true), "place/ place/closed/ place/d/");
}

/* Each is refused before the first file is put. */
static void test_put_all_refuses(void)
{
	static const char *const hide[] = { "h", NULL }, *const protect[] = { "p", NULL };
	enum err_code code;
	view.hide = hide;
	view.protect = protect;
	make(lower, "dir");
	put(lower, "file", "1");
	make(lower, "p");
	CHECK(symlinkat("/tmp", lower, "link") == 0);
	CHECK(symlinkat("dir", lower, "inside") == 0);
	static const struct {
		const char *dir, *file; /* what is in the stage beside a */
		enum err_code code;
	} bad[] = {
		{ NULL, "dir", ERR_unsafe_archive },
		{ "file", "file/x", ERR_unsafe_archive },
		{ "link", "link/x", ERR_unsafe_archive },
		{ "inside", "inside/x", ERR_unsafe_archive },
		{ NULL, "h", ERR_session_path },
		{ "h", "h/x", ERR_session_path },
		{ NULL, "p", ERR_unsafe_archive },
		{ "p", "p/x", ERR_session_path },
		{ "dir", "dir/h", ERR_session_path },
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char path[64];
		stage_again();
		put(stage, "all/a", "first");
		if (bad[i].dir) {
			snprintf(path, sizeof path, "all/%s", bad[i].dir);
			make(stage, path);
		}
		snprintf(path, sizeof path, "all/%s", bad[i].file);
		put(stage, path, "x");
		CHECK(put_all("/home/u/w", &code) == -1 && code == bad[i].code);
		CHECK(mode_of(upper, "a") == 0);
	}
	stage_again();
	put(stage, "all/a", "first");
	CHECK(mkfifoat(stage, "all/fifo", 0600) == 0);
	CHECK(put_all("/home/u/w", &code) == -1 && code == ERR_unsafe_archive);
	CHECK(mode_of(upper, "a") == 0);
	stage_again();
	put(stage, "all/a", "first");
	view.trees[0].upper = -1;
	CHECK(put_all("/home/u/w", &code) == -1 && code == ERR_session_path);
}

/* One that is as deep as a path can be: what does not fit is told, and nothing breaks. */
static void test_deep(void)
{
	int dir = dup(upper);
	for (int i = 0; i < 3000; i++) {
		CHECK(mkdirat(dir, "dd", 0755) == 0);
		int next = openat(dir, "dd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(dir);
		dir = next;
	}
	close(dir);
	static char list[1024];
	list[0] = 0;
	CHECK(view_walk(&view, "/home/u/w", true, add_name, list) == 0);
	CHECK(strlen(list) > 1000);
}

#define FRESH(test)                                                                                \
	do {                                                                                       \
		start();                                                                           \
		RUN(test);                                                                         \
		end();                                                                             \
	} while (0)

int main(void)
{
	FRESH(test_layer);
	FRESH(test_no_layer);
	FRESH(test_odd_names);
	FRESH(test_links);
	FRESH(test_nothing_blocks);
	FRESH(test_nested_trees);
	FRESH(test_patterns);
	FRESH(test_put);
	FRESH(test_make_dir);
	FRESH(test_put_all);
	FRESH(test_put_all_refuses);
	FRESH(test_deep);
	return CHECK_STATUS();
}
