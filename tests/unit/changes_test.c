/* changes_test: layers made by hand, and the exact list of what they change. */
#define _GNU_SOURCE
#include "layer_trees.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

static void test_files(void)
{
	struct trees t = trees_make();
	int up = t.layer.upper, low = t.layer.lower;
	CHECK_CHANGES(&t, "");
	put_file(low, "same", 0644, "text");
	put_file(up, "same", 0644, "text");
	put_file(low, "untouched", 0644, "text");
	put_file(low, "content", 0644, "text");
	put_file(up, "content", 0644, "tExt");
	put_file(low, "size", 0644, "text");
	put_file(up, "size", 0644, "text+");
	put_file(low, "mode", 0644, "text");
	put_file(up, "mode", 04755, "text");
	put_file(up, "new", 0600, "");
	put_file(low, "gone", 0640, "four");
	put_whiteout(up, "gone");
	put_whiteout(up, "never there");
	put_link(low, "link same", "a");
	put_link(up, "link same", "a");
	put_link(low, "link", "a");
	put_link(up, "link", "b");
	put_link(low, "link gone", "was");
	put_whiteout(up, "link gone");
	CHECK_CHANGES(&t, "M content 644 4\n"
			  "D gone 640 4\n"
			  "M link@777 -> b\n"
			  "D link gone@777 -> was\n"
			  "M mode 4755 4\n"
			  "C new 600 0\n"
			  "M size 644 5\n");
	trees_remove(&t);
}

static void test_directories(void)
{
	struct trees t = trees_make();
	int up = t.layer.upper, low = t.layer.lower;
	for (int i = 0; i < 2; i++) {
		int at = i ? up : low;
		put_dir(at, "same");
		put_dir(at, "same/in");
		put_dir(at, "mode");
	}
	put_file(low, "same/in/quiet", 0644, "");
	put_file(up, "same/in/new", 0644, "1");
	trees_need(fchmodat(up, "mode", 01700, 0) == 0, "mode");
	put_dir(low, "gone");
	put_dir(low, "gone/deep");
	put_file(low, "gone/deep/f", 0644, "");
	put_file(low, "gone/a", 0644, "");
	put_whiteout(up, "gone");
	put_dir(up, "new");
	put_dir(up, "new/empty");
	CHECK_CHANGES(&t, "D gone/755\n"
			  "D gone/a 644 0\n"
			  "D gone/deep/755\n"
			  "D gone/deep/f 644 0\n"
			  "M mode/1700\n"
			  "C new/755\n"
			  "C new/empty/755\n"
			  "C same/in/new 644 1\n");
	trees_remove(&t);
}

/* The type on a path changes: one entry with the new one, and those for what was or is below. */
static void test_types(void)
{
	struct trees t = trees_make();
	int up = t.layer.upper, low = t.layer.lower;
	put_dir(low, "d to f");
	put_file(low, "d to f/x", 0644, "1");
	put_file(up, "d to f", 0644, "22");
	put_file(low, "f to d", 0644, "1");
	put_dir(up, "f to d");
	put_file(up, "f to d/y", 0644, "");
	put_dir(low, "d to l");
	put_dir(low, "d to l/z");
	put_link(up, "d to l", "f");
	put_file(low, "f to p", 0644, "");
	trees_need(mkfifoat(up, "f to p", 0600) == 0, "fifo");
	trees_need(mkfifoat(up, "p same", 0600) == 0, "fifo");
	trees_need(mkfifoat(low, "p same", 0600) == 0, "fifo");
	trees_need(mkfifoat(up, "p mode", 0600) == 0, "fifo");
	trees_need(mkfifoat(low, "p mode", 0644) == 0, "fifo");
	CHECK_CHANGES(&t, "M d to f 644 2\n"
			  "D d to f/x 644 1\n"
			  "M d to l@777 -> f\n"
			  "D d to l/z/755\n"
			  "M f to d/755\n"
			  "C f to d/y 644 0\n"
			  "M f to p|600\n"
			  "M p mode|600\n");
	trees_remove(&t);
}

/* A directory that was removed and made again hides all that was there: only differences count. */
static void test_opaque(void)
{
	struct trees t = trees_make();
	int up = t.layer.upper, low = t.layer.lower;
	for (int i = 0; i < 2; i++) {
		int at = i ? up : low;
		put_dir(at, "d");
		put_dir(at, "d/sub");
		put_file(at, "d/sub/same", 0644, "s");
		put_file(at, "d/same", 0644, "s");
	}
	put_file(low, "d/old", 0644, "o");
	put_file(low, "d/sub/old", 0644, "o");
	put_dir(low, "d/tree");
	put_file(low, "d/tree/leaf", 0644, "o");
	put_file(up, "d/new", 0644, "n");
	put_file(low, "d/white", 0644, "w");
	put_whiteout(up, "d/white");
	CHECK_CHANGES(&t, "C d/new 644 1\nD d/white 644 1\n");
	put_mark(up, "d", "user.overlay.opaque", "y");
	CHECK_CHANGES(&t, "C d/new 644 1\n"
			  "D d/old 644 1\n"
			  "D d/sub/old 644 1\n"
			  "D d/tree/755\n"
			  "D d/tree/leaf 644 1\n"
			  "D d/white 644 1\n");
	/* The top of the layer, too. */
	put_mark(up, ".", "user.overlay.opaque", "y");
	put_file(low, "z", 0644, "");
	AUTO_BUF all = trees_changes(&t);
	CHECK(strstr(buf_text(&all), "\nD z 644 0\n") != NULL);
	trees_remove(&t);
}

static void test_whiteout_attribute(void)
{
	struct trees t = trees_make();
	int up = t.layer.upper, low = t.layer.lower;
	put_dir(low, "d");
	put_file(low, "d/f", 0644, "text");
	put_file(low, "d/full", 0644, "text");
	put_dir(up, "d");
	put_file(up, "d/f", 0644, "");
	put_mark(up, "d/f", "user.overlay.whiteout", "");
	put_file(up, "d/full", 0644, "more than nothing");
	put_mark(up, "d/full", "user.overlay.whiteout", "");
	/* The directory does not say that there are such: they are files. */
	CHECK_CHANGES(&t, "M d/f 644 0\nM d/full 644 17\n");
	put_mark(up, "d", "user.overlay.opaque", "x");
	CHECK_CHANGES(&t, "D d/f 644 4\nM d/full 644 17\n");
	trees_remove(&t);
}

/* Marks that would make the layer mean something else are an error, and others mean nothing. */
static void test_marks(void)
{
	static const char *const harmless[] = { "user.overlay.origin", "user.overlay.impure",
		"user.overlay.nlink", "user.overlay.overlay.opaque", "user.other" };
	struct trees t = trees_make();
	int up = t.layer.upper;
	put_dir(up, "d");
	put_file(up, "d/f", 0644, "");
	for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++) {
		put_mark(up, "d", harmless[i], "y");
		put_mark(up, "d/f", harmless[i], "y");
	}
	CHECK_CHANGES(&t, "C d/755\nC d/f 644 0\n");
	put_mark(up, "d/f", "user.overlay.metacopy", "");
	CHECK_CHANGES(&t,
		"workspace_unreadable: '" TREE_ROOT "/d/f' in its private layer has a mark of "
		"overlayfs that cannot be there\n");
	/* A complete copy is no layer: nothing has a meaning there. */
	t.layer.whole = true;
	CHECK_CHANGES(&t, "C d/755\nC d/f 644 0\n");
	t.layer.whole = false;
	trees_need(unlinkat(up, "d/f", 0) == 0, "d/f");
	put_mark(up, "d", "user.overlay.redirect", "elsewhere");
	AUTO_BUF redirect = trees_changes(&t);
	CHECK(strncmp(buf_text(&redirect), "workspace_unreadable: '" TREE_ROOT "/d'", 25) == 0);
	trees_need(unlinkat(up, "d", AT_REMOVEDIR) == 0, "d");
	put_dir(up, "e");
	put_mark(up, "e", "user.overlay.opaque", "yes");
	AUTO_BUF opaque = trees_changes(&t);
	CHECK(strncmp(buf_text(&opaque), "workspace_unreadable: ", 22) == 0);
	trees_remove(&t);
}

/* What overlayfs takes for nothing in the tree below was never seen, so it did not go away. */
static void test_lower_whiteout(void)
{
	struct trees t = trees_make();
	int up = t.layer.upper, low = t.layer.lower;
	put_whiteout(low, "a");
	put_whiteout(up, "a");
	put_whiteout(low, "b");
	put_file(up, "b", 0644, "");
	put_dir(low, "d");
	put_whiteout(low, "d/w");
	put_whiteout(up, "d");
	CHECK_CHANGES(&t, "C b 644 0\nD d/755\n");
	trees_remove(&t);
}

static void test_whole(void)
{
	struct trees t = trees_make();
	int up = t.layer.upper, low = t.layer.lower;
	t.layer.whole = true;
	put_dir(low, "d");
	put_file(low, "d/lacks", 0644, "");
	put_file(low, "d/same", 0644, "s");
	put_dir(up, "d");
	put_file(up, "d/same", 0644, "s");
	put_mark(up, "d", "user.overlay.redirect", "x");
	put_file(low, "gone", 0644, "");
	put_whiteout(up, "device");
	CHECK_CHANGES(&t, "D d/lacks 644 0\nC device%000\nD gone 644 0\n");
	trees_remove(&t);
}

static void test_no_lower(void)
{
	struct trees t = trees_make();
	close(t.layer.lower);
	t.layer.lower = -1;
	put_dir(t.layer.upper, "d");
	put_file(t.layer.upper, "d/f", 0644, "");
	put_whiteout(t.layer.upper, "w");
	CHECK_CHANGES(&t, "C d/755\nC d/f 644 0\n");
	t.layer.whole = true;
	CHECK_CHANGES(&t, "C d/755\nC d/f 644 0\nC w%000\n");
	trees_remove(&t);
}

static void test_order(void)
{
	struct trees t = trees_make();
	int up = t.layer.upper;
	put_dir(up, "a");
	put_file(up, "a/z", 0644, "");
	put_file(up, "a b", 0644, "");
	put_file(up, "a.b", 0644, "");
	put_file(up, "\001", 0644, "");
	put_file(up, "\377", 0644, "");
	put_file(up, "new\nline", 0644, "");
	put_file(up, "B", 0644, "");
	CHECK_CHANGES(&t, "C \001 644 0\n"
			  "C B 644 0\n"
			  "C a/755\n"
			  "C a/z 644 0\n"
			  "C a b 644 0\n"
			  "C a.b 644 0\n"
			  "C new\nline 644 0\n"
			  "C \377 644 0\n");
	trees_remove(&t);
}

static void test_maximum(void)
{
	struct trees t = trees_make();
	int up = t.layer.upper;
	for (char name[] = "a"; name[0] <= 'e'; name[0]++)
		put_file(up, name, 0644, "");
	t.max = 5;
	CHECK_CHANGES(&t, "C a 644 0\nC b 644 0\nC c 644 0\nC d 644 0\nC e 644 0\n");
	t.max = 2;
	CHECK_CHANGES(&t, "C a 644 0\nC b 644 0\nleft out 3\n");
	trees_remove(&t);
}

static void test_layers(void)
{
	struct trees a = trees_make(), b = trees_make();
	put_file(a.layer.upper, "z", 0644, "");
	put_file(a.layer.upper, "zz", 0644, "");
	put_file(b.layer.upper, "a", 0644, "");
	struct changes_layer layers[2] = { a.layer, b.layer };
	layers[1].root = "/srv/other";
	struct changes changes = { 0 };
	struct err err;
	CHECK(changes_find(layers, 2, NULL, 0, &changes, &err) == 0);
	CHECK(changes.count == 3 && changes.root_count == 2);
	CHECK_TEXT(changes.roots[0], TREE_ROOT);
	CHECK_TEXT(changes.roots[1], "/srv/other");
	CHECK_TEXT(changes.list[1].path, "zz");
	CHECK_TEXT(changes.list[2].path, "a");
	CHECK(changes.list[1].layer == 0 && changes.list[2].layer == 1);
	changes_free(&changes);
	/* The maximum is of all together. */
	CHECK(changes_find(layers, 2, NULL, 1, &changes, &err) == 0);
	CHECK(changes.count == 1 && changes.left_out == 2);
	changes_free(&changes);
	trees_remove(&a);
	trees_remove(&b);
}

static int write_whole(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int r = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
	close(fd);
	return r;
}

/* A mount in the tree below covers what the layer was made over: it says nothing about that. */
static int with_mount(struct trees *t)
{
	char uid[32], gid[32], place[96];
	snprintf(uid, sizeof uid, "0 %u 1", geteuid());
	snprintf(gid, sizeof gid, "0 %u 1", getegid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return 77;
	write_whole("/proc/self/setgroups", "deny");
	if (write_whole("/proc/self/uid_map", uid) < 0 ||
		write_whole("/proc/self/gid_map", gid) < 0)
		return 77;
	snprintf(place, sizeof place, "%s/lower/d/mnt", t->top);
	if (mount("none", place, "tmpfs", 0, "mode=700") < 0)
		return 77;
	/* A descriptor from before the new namespace would not see the mount. */
	snprintf(place, sizeof place, "%s/lower", t->top);
	t->layer.lower = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put_file(t->layer.lower, "d/mnt/inside", 0644, "");
	put_dir(t->layer.upper, "d");
	put_dir(t->layer.upper, "d/mnt");
	put_file(t->layer.upper, "d/mnt/new", 0644, "");
	CHECK_CHANGES(t, "C d/mnt/new 644 0\n");
	t->layer.whole = true;
	CHECK_CHANGES(t, "C d/mnt/new 644 0\n");
	return CHECK_STATUS();
}

static void test_mount(void)
{
	struct trees t = trees_make();
	put_dir(t.layer.lower, "d");
	put_dir(t.layer.lower, "d/mnt");
	pid_t pid = fork();
	if (pid == 0)
		_exit(with_mount(&t));
	int status = 0;
	trees_need(waitpid(pid, &status, 0) == pid, "waitpid");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		printf("skipped: no mounts can be made here\n");
	else
		CHECK(status == 0);
	trees_remove(&t);
}

int main(void)
{
	RUN(test_files);
	RUN(test_directories);
	RUN(test_types);
	RUN(test_opaque);
	RUN(test_whiteout_attribute);
	RUN(test_marks);
	RUN(test_lower_whiteout);
	RUN(test_whole);
	RUN(test_no_lower);
	RUN(test_order);
	RUN(test_maximum);
	RUN(test_layers);
	RUN(test_mount);
	return CHECK_STATUS();
}
