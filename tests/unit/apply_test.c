/* apply, its records and journal, with lists of changes made by hand in a directory of its own. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "check.h"
#include "workspace/apply.h"
#include "workspace/apply_work.h"
#include "workspace/content.h"
#include "workspace/dirs.h"
#include "workspace/records.h"
#include "workspace/tree.h"

/* A host's tree, a layer and a state directory. */
struct bench {
	char top[64];
	int lower, upper, state;
	struct changes changes;
	struct apply_base *bases;
	struct apply_report report;
	struct err err;
};

static const char *const roots[] = { "/made/up" };

static int make_dir(int at, const char *name)
{
	CHECK(mkdirat(at, name, 0755) == 0);
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void set_up(struct bench *bench)
{
	*bench = (struct bench){ .changes = { .roots = roots, .root_count = 1 } };
	strcpy(bench->top, "/tmp/agentbox-apply.XXXXXX");
	CHECK(mkdtemp(bench->top) != NULL);
	AUTO_FD top = open(bench->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bench->lower = make_dir(top, "lower");
	bench->upper = make_dir(top, "upper");
	bench->state = make_dir(top, "state");
}

static void tear_down(struct bench *bench)
{
	struct tree_report report;
	AUTO_FD top = open(bench->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd_close(&bench->lower);
	fd_close(&bench->upper);
	fd_close(&bench->state);
	CHECK(tree_clear(top, &report) == 0);
	CHECK(rmdir(bench->top) == 0);
	apply_report_free(&bench->report);
	arena_free(&bench->changes.arena);
}

static void put(int dir, const char *path, const char *text, mode_t mode)
{
	AUTO_FD fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && fd_write_full(fd, text, strlen(text)) == 0 && fchmod(fd, mode) == 0);
}

static bool holds(int dir, const char *path, const char *text)
{
	char data[256] = "";
	AUTO_FD fd = openat(dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, data, sizeof data - 1);
	return n >= 0 && strcmp(data, text) == 0;
}

static bool there(int dir, const char *path)
{
	return faccessat(dir, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static struct change *add(struct bench *bench, enum change_kind kind, const char *path, mode_t mode)
{
	struct changes *changes = &bench->changes;
	struct change *c = arena_push(&changes->arena, &changes->list, &changes->count, sizeof *c);
	struct stat st;
	*c = (struct change){ .path = path, .kind = kind, .mode = mode };
	if (S_ISREG(mode) && fstatat(bench->upper, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
		c->size = (uint64_t)st.st_size;
	return c;
}

static void note_bases(struct bench *bench)
{
	struct changes_layer layer = { bench->upper, bench->lower, false, roots[0] };
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	CHECK(apply_bases(&layer, &bench->changes, ((int64_t)now.tv_sec + 1) * 1000000000,
		      &bench->changes.arena, &bench->bases, &bench->err) == 0);
}

static int apply(struct bench *bench, const struct apply_options *options)
{
	struct changes_layer layer = { bench->upper, bench->lower, false, roots[0] };
	apply_report_free(&bench->report);
	return apply_run(&layer, &bench->changes, bench->bases, options, bench->state, "journal",
		&bench->report, &bench->err);
}

static enum apply_outcome outcome(const struct bench *bench, const char *path)
{
	for (size_t i = 0; i < bench->report.count; i++)
		if (strcmp(bench->report.list[i].change->path, path) == 0)
			return bench->report.list[i].outcome;
	return APPLY_FAILED;
}

static const struct apply_options all = { 0 };

/* No temporary name, and no journal. */
static bool is_clean(const struct bench *bench, const char *dir)
{
	AUTO_FD fd = openat(bench->lower, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fdopendir(dup(fd));
	bool clean = !there(bench->state, "journal");
	for (struct dirent *entry; list && (entry = readdir(list));)
		clean = clean && strncmp(entry->d_name, ".agentbox-apply-", 16) != 0;
	closedir(list);
	return clean;
}

static void test_each_kind(void)
{
	struct bench b;
	set_up(&b);
	put(b.lower, "mode", "same", 0644);
	put(b.upper, "mode", "same", 0755);
	put(b.lower, "gone", "x", 0644);
	put(b.lower, "text", "old", 0640);
	put(b.upper, "text", "new", 06750);
	put(b.lower, "to-link", "file", 0644);
	CHECK(symlinkat("/etc/passwd", b.upper, "to-link") == 0);
	AUTO_FD dir = make_dir(b.upper, "dir");
	put(dir, "in", "inside", 0600);
	CHECK(fchmod(dir, 0555) == 0);
	add(&b, CHANGE_CREATED, "dir", S_IFDIR | 0555);
	add(&b, CHANGE_CREATED, "dir/in", S_IFREG | 0600);
	add(&b, CHANGE_CREATED, "fifo", S_IFIFO | 0600);
	add(&b, CHANGE_DELETED, "gone", S_IFREG | 0644);
	add(&b, CHANGE_MODIFIED, "mode", S_IFREG | 0755);
	add(&b, CHANGE_MODIFIED, "text", S_IFREG | 06750);
	add(&b, CHANGE_MODIFIED, "to-link", S_IFLNK | 0777)->target = "/etc/passwd";
	note_bases(&b);
	struct stat before, after;
	CHECK(fstatat(b.lower, "mode", &before, 0) == 0);
	CHECK(apply(&b, &all) == 0);
	CHECK(b.report.counts[APPLY_DONE] == 6 && outcome(&b, "fifo") == APPLY_SKIPPED);
	CHECK(holds(b.lower, "dir/in", "inside") && holds(b.lower, "text", "new"));
	CHECK(!there(b.lower, "gone") && !there(b.lower, "fifo"));
	/* Only the mode: it stays the same file. Set-id bits do not come. */
	CHECK(fstatat(b.lower, "mode", &after, 0) == 0);
	CHECK(after.st_ino == before.st_ino && (after.st_mode & 07777) == 0755);
	CHECK(fstatat(b.lower, "text", &after, 0) == 0 && (after.st_mode & 07777) == 0750);
	CHECK(fstatat(b.lower, "dir", &after, 0) == 0 && (after.st_mode & 07777) == 0555);
	CHECK(fstatat(b.lower, "to-link", &after, AT_SYMLINK_NOFOLLOW) == 0 &&
		S_ISLNK(after.st_mode));
	CHECK(is_clean(&b, "."));
	/* Once more: there is nothing to do. */
	CHECK(apply(&b, &all) == 0);
	CHECK(b.report.counts[APPLY_SAME] == 6 && b.report.counts[APPLY_CONFLICT] == 0);
	tear_down(&b);
}

static void test_conflicts(void)
{
	struct bench b;
	set_up(&b);
	put(b.lower, "a", "old", 0644);
	put(b.upper, "a", "new", 0644);
	put(b.lower, "b", "old", 0644);
	put(b.upper, "c", "new", 0644);
	put(b.upper, "ok", "new", 0644);
	AUTO_FD going = make_dir(b.lower, "going");
	put(going, "x", "x", 0644);
	AUTO_FD made = make_dir(b.upper, "made");
	put(made, "y", "y", 0644);
	add(&b, CHANGE_MODIFIED, "a", S_IFREG | 0644);
	add(&b, CHANGE_DELETED, "b", S_IFREG | 0644);
	add(&b, CHANGE_CREATED, "c", S_IFREG | 0644);
	add(&b, CHANGE_DELETED, "going", S_IFDIR | 0755);
	add(&b, CHANGE_DELETED, "going/x", S_IFREG | 0644);
	add(&b, CHANGE_CREATED, "made", S_IFDIR | 0755);
	add(&b, CHANGE_CREATED, "made/y", S_IFREG | 0644);
	add(&b, CHANGE_CREATED, "ok", S_IFREG | 0644);
	note_bases(&b);
	/* What the host does meanwhile. */
	put(b.lower, "a", "host's", 0644);
	CHECK(unlinkat(b.lower, "b", 0) == 0);
	put(b.lower, "c", "host's", 0644);
	put(going, "unseen", "host's", 0644);
	put(b.lower, "made", "host's", 0644);
	struct apply_options dry = { .dry_run = true };
	for (int round = 0; round < 2; round++) {
		CHECK(apply(&b, round ? &all : &dry) == 0);
		CHECK(outcome(&b, "a") == APPLY_CONFLICT && outcome(&b, "b") == APPLY_SAME);
		CHECK(outcome(&b, "c") == APPLY_CONFLICT && outcome(&b, "going") == APPLY_CONFLICT);
		CHECK(outcome(&b, "going/x") == APPLY_DONE && outcome(&b, "ok") == APPLY_DONE);
		CHECK(outcome(&b, "made") == APPLY_CONFLICT);
		CHECK(outcome(&b, "made/y") == APPLY_CONFLICT);
		CHECK(there(b.lower, "ok") == (round == 1));
		CHECK(there(b.lower, "going/x") == (round == 0));
	}
	CHECK(holds(b.lower, "a", "host's") && holds(b.lower, "c", "host's"));
	CHECK(holds(b.lower, "going/unseen", "host's") && holds(b.lower, "made", "host's"));
	CHECK(is_clean(&b, ".") && is_clean(&b, "going"));
	tear_down(&b);
}

/* The host's directory became a link meanwhile: nothing is written or removed through it. */
static void test_link_in_the_way(void)
{
	struct bench b;
	set_up(&b);
	AUTO_FD victim = make_dir(b.state, "victim");
	put(victim, "old", "precious", 0644);
	put(victim, "keys", "precious", 0644);
	AUTO_FD lower = make_dir(b.lower, "out");
	put(lower, "old", "old", 0644);
	AUTO_FD upper = make_dir(b.upper, "out");
	put(upper, "keys", "evil", 0644);
	put(upper, "new", "evil", 0644);
	add(&b, CHANGE_CREATED, "out/keys", S_IFREG | 0644);
	add(&b, CHANGE_CREATED, "out/new", S_IFREG | 0644);
	add(&b, CHANGE_DELETED, "out/old", S_IFREG | 0644);
	note_bases(&b);
	CHECK(unlinkat(lower, "old", 0) == 0 && unlinkat(b.lower, "out", AT_REMOVEDIR) == 0);
	CHECK(symlinkat("../state/victim", b.lower, "out") == 0);
	CHECK(apply(&b, &all) == 0);
	CHECK(b.report.counts[APPLY_CONFLICT] == 3);
	CHECK(holds(victim, "old", "precious") && holds(victim, "keys", "precious"));
	CHECK(!there(victim, "new"));
	tear_down(&b);
}

static void test_left_out(void)
{
	struct bench b;
	set_up(&b);
	const char *const patterns[] = { "a", "d/*", NULL };
	const char *const names[] = { "a", "b", "held", "hook" };
	for (size_t i = 0; i < 4; i++)
		put(b.upper, names[i], names[i], 0644);
	AUTO_FD dir = make_dir(b.upper, "d");
	put(dir, "e", "e", 0644);
	put(dir, "hook", "hook", 0644);
	add(&b, CHANGE_CREATED, "a", S_IFREG | 0644);
	add(&b, CHANGE_CREATED, "b", S_IFREG | 0644);
	add(&b, CHANGE_CREATED, "d", S_IFDIR | 0755);
	add(&b, CHANGE_CREATED, "d/e", S_IFREG | 0644);
	add(&b, CHANGE_CREATED, "d/hook", S_IFREG | 0644)->sensitive = true;
	add(&b, CHANGE_CREATED, "held", S_IFREG | 0644)->held = true;
	note_bases(&b);
	struct apply_options some = { .patterns = patterns };
	CHECK(apply(&b, &some) == 0);
	CHECK(outcome(&b, "a") == APPLY_DONE && outcome(&b, "b") == APPLY_UNCHOSEN);
	/* The directory comes with what was chosen in it. */
	CHECK(outcome(&b, "d") == APPLY_DONE && outcome(&b, "d/e") == APPLY_DONE);
	CHECK(outcome(&b, "d/hook") == APPLY_SENSITIVE && outcome(&b, "held") == APPLY_HELD);
	CHECK(there(b.lower, "d/e") && !there(b.lower, "d/hook") && !there(b.lower, "b"));
	struct apply_options rest = { .allow_sensitive = true };
	CHECK(apply(&b, &rest) == 0);
	CHECK(outcome(&b, "a") == APPLY_SAME && outcome(&b, "b") == APPLY_DONE);
	CHECK(outcome(&b, "d/hook") == APPLY_DONE && outcome(&b, "held") == APPLY_HELD);
	CHECK(there(b.lower, "d/hook") && !there(b.lower, "held"));
	tear_down(&b);
}

/* A second tree, as of a git directory that lies elsewhere: its paths are its own. */
static void test_two_trees(void)
{
	static const char *const both[] = { "/made/up", "/elsewhere" };
	struct bench b;
	set_up(&b);
	b.changes.roots = both;
	b.changes.root_count = 2;
	AUTO_FD lower = make_dir(b.state, "lower");
	AUTO_FD upper = make_dir(b.state, "upper");
	AUTO_FD dir = make_dir(upper, "d");
	put(b.upper, "a", "first", 0644);
	put(upper, "a", "second", 0644);
	put(dir, "f", "inside", 0644);
	add(&b, CHANGE_CREATED, "a", S_IFREG | 0644)->size = 5;
	add(&b, CHANGE_CREATED, "a", S_IFREG | 0644)->layer = 1;
	add(&b, CHANGE_CREATED, "d", S_IFDIR | 0755)->layer = 1;
	add(&b, CHANGE_CREATED, "d/f", S_IFREG | 0644)->layer = 1;
	struct changes_layer layers[2] = {
		{ b.upper, b.lower, false, both[0] },
		{ upper, lower, false, both[1] },
	};
	CHECK(apply_bases(layers, &b.changes, INT64_MAX, &b.changes.arena, &b.bases, &b.err) == 0);
	CHECK(apply_run(layers, &b.changes, b.bases, &all, b.state, "journal", &b.report, &b.err) ==
		0);
	CHECK(b.report.counts[APPLY_DONE] == 4);
	CHECK(holds(b.lower, "a", "first") && !there(b.lower, "d"));
	CHECK(holds(lower, "a", "second") && holds(lower, "d/f", "inside"));
	tear_down(&b);
}

/* A journal that is no journal is an error, changes nothing and is left for a person. */
static void test_damaged_journal(void)
{
	static const char *const texts[] = {
		"",
		"agentbox-journal 2 C 0123456789abcdef\n",
		"agentbox-journal 2 C 0123456789abcdef\nend 1\n",
		"agentbox-journal 2 Q 0123456789abcdef\nend 0\n",
		"agentbox-journal 2 C ../../etc/passwd\nend 0\n",
		"agentbox-journal 2 C 0123456789abcdef\n"
		"x 0 2 100644 1 16 100644 1 1 1 1 7 1 1 0 ../state/victim\nend 1\n",
		"agentbox-journal 2 C 0123456789abcdef\n"
		"x 0 2 100644 1 16 100644 1 1 1 1 7 1 1 0 /etc/passwd\nend 1\n",
		"agentbox-journal 2 C 0123456789abcdef\n"
		"q 0 2 100644 1 16 100644 1 1 1 1 7 1 1 0 a\nend 1\n",
		"agentbox-journal 2 C 0123456789abcdef\n"
		"x 1 2 100644 1 16 100644 1 1 1 1 7 1 1 0 a\nend 1\n",
		"agentbox-journal 2 C 0123456789abcdef\n"
		"x 0 2 100644 1 16 100644 1 1 1 1 0 a\nend 1\n",
		"agentbox-journal 2 C 0123456789abcdef\n"
		"x 0 2 40755 0 16 40755 0 1 1 1 7 1 1 0 .\nend 1\n",
		"agentbox-journal 2 C 0123456789abcdef\n"
		"x 0 1 40755 0 16 40755 0 1 1 1 7 1 1 0 .\nend 1\n",
	};
	struct bench b;
	set_up(&b);
	put(b.upper, "a", "new", 0644);
	add(&b, CHANGE_CREATED, "a", S_IFREG | 0644);
	note_bases(&b);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		put(b.state, "journal", texts[i], 0600);
		CHECK(apply(&b, &all) < 0 && b.err.code == ERR_apply_journal);
		CHECK(!there(b.lower, "a") && there(b.state, "journal"));
	}
	CHECK(unlinkat(b.state, "journal", 0) == 0);
	CHECK(symlinkat("/dev/zero", b.state, "journal") == 0);
	CHECK(apply(&b, &all) < 0 && b.err.code == ERR_apply_journal);
	CHECK(unlinkat(b.state, "journal", 0) == 0 && mkfifoat(b.state, "journal", 0600) == 0);
	CHECK(apply(&b, &all) < 0 && b.err.code == ERR_apply_journal);
	CHECK(unlinkat(b.state, "journal", 0) == 0 && apply(&b, &all) == 0);
	tear_down(&b);
}

static struct stat look(int dir, const char *path)
{
	struct stat st = { 0 };
	CHECK(fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0);
	return st;
}

static bool same_time(struct stat a, struct stat b)
{
	return a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

static void set_time(int dir, const char *path, time_t sec)
{
	const struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = sec, .tv_nsec = 7 } };
	CHECK(utimensat(dir, path, times, AT_SYMLINK_NOFOLLOW) == 0);
}

static const char *reason(const struct bench *bench, const char *path)
{
	for (size_t i = 0; i < bench->report.count; i++)
		if (strcmp(bench->report.list[i].change->path, path) == 0)
			return bench->report.list[i].reason;
	return NULL;
}

/* What differs in its time alone is brought, but over nobody's work, and is not told of. */
static void test_quiet(void)
{
	static const char *const names[] = { "changed", "file", "link" };
	struct bench b;
	set_up(&b);
	for (int i = 0; i < 2; i++) {
		int at = i ? b.upper : b.lower;
		CHECK(close(make_dir(at, "dir")) == 0);
		put(at, "changed", "x", 0644);
		put(at, "file", "x", 0644);
		CHECK(symlinkat("to", at, "link") == 0);
		for (size_t n = 0; i && n < 3; n++)
			set_time(at, names[n], 1000);
		set_time(at, "dir", i ? 1000 : 3000);
	}
	add(&b, CHANGE_MODIFIED, "changed", S_IFREG | 0644)->quiet = true;
	add(&b, CHANGE_MODIFIED, "dir", S_IFDIR | 0755)->quiet = true;
	add(&b, CHANGE_MODIFIED, "file", S_IFREG | 0644)->quiet = true;
	struct change *link = add(&b, CHANGE_MODIFIED, "link", S_IFLNK | 0777);
	link->quiet = true;
	link->target = "to";
	note_bases(&b);
	put(b.lower, "changed", "host's", 0644);
	struct stat theirs = look(b.lower, "changed"), before = look(b.lower, "file");
	struct apply_options how = { .started_ns = INT64_MAX };
	CHECK(apply(&b, &how) == 0 && b.report.count == 0 && b.report.quiet_count == 4);
	for (int i = 0; i <= APPLY_FAILED; i++)
		CHECK(b.report.counts[i] == 0);
	CHECK(same_time(look(b.lower, "file"), look(b.upper, "file")));
	CHECK(look(b.lower, "file").st_ino == before.st_ino);
	CHECK(same_time(look(b.lower, "link"), look(b.upper, "link")));
	CHECK(same_time(look(b.lower, "dir"), look(b.upper, "dir")));
	CHECK(same_time(look(b.lower, "changed"), theirs) && holds(b.lower, "changed", "host's"));
	tear_down(&b);
}

/*
 * One file of four names: two new ones, one that is sensitive and left out, and one that was there
 * and has not changed. What has another name outside is not written to.
 */
static void test_links(void)
{
	struct bench b;
	set_up(&b);
	put(b.lower, "kept", "x", 0644);
	CHECK(linkat(b.lower, "kept", b.state, "outside", 0) == 0);
	put(b.upper, "kept", "x", 0644);
	set_time(b.upper, "kept", 1000);
	AUTO_FD dir = make_dir(b.upper, "d");
	CHECK(linkat(b.upper, "kept", b.upper, "a", 0) == 0);
	CHECK(linkat(b.upper, "kept", dir, "b", 0) == 0);
	CHECK(linkat(b.upper, "kept", b.upper, "hook", 0) == 0);
	add(&b, CHANGE_CREATED, "a", S_IFREG | 0644);
	add(&b, CHANGE_CREATED, "d", S_IFDIR | 0755);
	add(&b, CHANGE_CREATED, "d/b", S_IFREG | 0644);
	add(&b, CHANGE_CREATED, "hook", S_IFREG | 0644)->sensitive = true;
	add(&b, CHANGE_MODIFIED, "kept", S_IFREG | 0644)->quiet = true;
	note_bases(&b);
	CHECK(apply(&b, &all) == 0);
	CHECK(outcome(&b, "a") == APPLY_DONE && outcome(&b, "d/b") == APPLY_DONE);
	CHECK(outcome(&b, "hook") == APPLY_SENSITIVE && !there(b.lower, "hook"));
	CHECK(reason(&b, "a") && reason(&b, "d/b") && b.report.count == 4);
	struct stat a = look(b.lower, "a"), kept = look(b.lower, "kept");
	CHECK(a.st_nlink == 3 && look(b.lower, "d/b").st_ino == a.st_ino);
	CHECK(kept.st_ino == a.st_ino && look(b.state, "outside").st_nlink == 1);
	CHECK(same_time(kept, look(b.upper, "kept")));
	CHECK(!same_time(look(b.state, "outside"), kept));
	/* Now that it may: what is there is one file already, and gets the last name. */
	note_bases(&b);
	struct apply_options rest = { .allow_sensitive = true };
	CHECK(apply(&b, &rest) == 0 && outcome(&b, "hook") == APPLY_DONE);
	CHECK(holds(b.lower, "hook", "x"));
	tear_down(&b);
}

/* A step whose work was interrupted, or was found to be no longer right. */
struct half {
	struct bench b;
	struct arena arena;
	struct apply_work work;
	struct record step;
	char temp[APPLY_TEMP_MAX];
};

/* "place" was judged as it is now; "ours" is what was staged. */
static void half_begin(struct half *half, char action)
{
	set_up(&half->b);
	struct changes_layer layer = { half->b.upper, half->b.lower, false, roots[0] };
	half->arena = (struct arena){ 0 };
	apply_work_init(&half->work, &layer, 1, &half->arena);
	strcpy(half->work.tag, "0123456789abcdef");
	put(half->b.lower, "place", "judged", 0644);
	put(half->b.lower, "ours", "ours", 0644);
	struct stat st = look(half->b.lower, "place");
	half->step = (struct record){ .action = action, .seq = 3 };
	half->step.change = (struct change){ .path = "place", .mode = S_IFREG | 0644 };
	half->step.base = (struct apply_base){ true, false, st.st_mode, (uint64_t)st.st_size,
		st.st_ino, st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec, 0 };
	half->step.new_ino = action == ACTION_DELETE ? 0 : look(half->b.lower, "ours").st_ino;
	apply_temp_name(&half->work, &half->step, half->temp);
}

static int settle(struct half *half)
{
	return apply_place_settle(&half->work, &half->step, half->b.lower, "place");
}

static bool half_ends(struct half *half, const char *text)
{
	int dir = half->b.lower;
	bool good = text ? holds(dir, "place", text) : !there(dir, "place");
	good = good && !there(dir, half->temp);
	apply_work_free(&half->work);
	arena_free(&half->arena);
	tear_down(&half->b);
	return good;
}

static void move(struct half *half, const char *from, const char *to)
{
	CHECK(renameat(half->b.lower, from, half->b.lower, to) == 0);
}

/* What apply left when it was killed between two calls, others being at work or not. */
static void test_settle(void)
{
	struct half h;
	/* Exchanged, and what came out not removed. */
	half_begin(&h, ACTION_PUT);
	move(&h, "place", h.temp);
	move(&h, "ours", "place");
	CHECK(settle(&h) == 0);
	CHECK(half_ends(&h, "ours"));
	/* What came out is not what was judged. */
	half_begin(&h, ACTION_PUT);
	put(h.b.lower, h.temp, "theirs", 0644);
	move(&h, "ours", "place");
	CHECK(settle(&h) == 0);
	CHECK(half_ends(&h, "theirs"));
	/* And it was put back. */
	half_begin(&h, ACTION_PUT);
	put(h.b.lower, "place", "theirs", 0644);
	move(&h, "ours", h.temp);
	CHECK(settle(&h) == 0);
	CHECK(half_ends(&h, "theirs"));
	/* And they have removed or replaced ours since. */
	half_begin(&h, ACTION_PUT);
	put(h.b.lower, h.temp, "theirs", 0644);
	CHECK(unlinkat(h.b.lower, "place", 0) == 0);
	CHECK(settle(&h) == 0);
	CHECK(half_ends(&h, "theirs"));
	half_begin(&h, ACTION_PUT);
	put(h.b.lower, h.temp, "theirs", 0644);
	put(h.b.lower, "place", "later", 0644);
	set_time(h.b.lower, h.temp, 1000);
	CHECK(settle(&h) == 0);
	CHECK(half_ends(&h, "later"));
	/* Taken out to be removed: the one that was judged, and another one. */
	half_begin(&h, ACTION_DELETE);
	move(&h, "place", h.temp);
	CHECK(settle(&h) == 0);
	CHECK(half_ends(&h, NULL));
	half_begin(&h, ACTION_DELETE);
	put(h.b.lower, h.temp, "theirs", 0644);
	CHECK(unlinkat(h.b.lower, "place", 0) == 0);
	CHECK(settle(&h) == 0);
	CHECK(half_ends(&h, "theirs"));
}

/* What is not as it was judged stays, and what was staged is not removed for it. */
static void test_place(void)
{
	struct half h;
	half_begin(&h, ACTION_PUT);
	move(&h, "ours", h.temp);
	CHECK(apply_place_put(&h.work, &h.step, h.b.lower, "place") == 0);
	CHECK(half_ends(&h, "ours"));
	half_begin(&h, ACTION_PUT);
	put(h.b.lower, "place", "theirs!", 0644);
	move(&h, "ours", h.temp);
	CHECK(apply_place_put(&h.work, &h.step, h.b.lower, "place") == -ESTALE);
	CHECK(holds(h.b.lower, h.temp, "ours"));
	CHECK(apply_discard(h.b.lower, h.temp, h.step.new_ino) == 0);
	CHECK(half_ends(&h, "theirs!"));
	/* Another one under the temporary name is not brought, and not removed. */
	half_begin(&h, ACTION_PUT);
	put(h.b.lower, h.temp, "evil", 0644);
	CHECK(apply_place_put(&h.work, &h.step, h.b.lower, "place") == -ENOENT);
	CHECK(apply_discard(h.b.lower, h.temp, h.step.new_ino) == -ESTALE);
	CHECK(unlinkat(h.b.lower, h.temp, 0) == 0);
	CHECK(half_ends(&h, "judged"));
	half_begin(&h, ACTION_PUT);
	h.step.base.there = false;
	move(&h, "ours", h.temp);
	CHECK(apply_place_put(&h.work, &h.step, h.b.lower, "place") == -EEXIST);
	CHECK(apply_discard(h.b.lower, h.temp, h.step.new_ino) == 0);
	CHECK(half_ends(&h, "judged"));
	/* A directory that was removed for the file, when apply was killed. */
	half_begin(&h, ACTION_SWAP);
	CHECK(unlinkat(h.b.lower, "place", 0) == 0);
	move(&h, "ours", h.temp);
	CHECK(apply_place_put(&h.work, &h.step, h.b.lower, "place") == 0);
	CHECK(half_ends(&h, "ours"));
	half_begin(&h, ACTION_DELETE);
	put(h.b.lower, "place", "theirs!", 0644);
	CHECK(apply_place_delete(&h.work, &h.step, h.b.lower, "place") == -ESTALE);
	CHECK(half_ends(&h, "theirs!"));
	half_begin(&h, ACTION_DELETE);
	CHECK(apply_place_delete(&h.work, &h.step, h.b.lower, "place") == 0);
	CHECK(half_ends(&h, NULL));
}

static void test_sparse(void)
{
	struct bench b;
	struct stat st;
	set_up(&b);
	AUTO_FD fd = openat(b.upper, "big", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	CHECK(ftruncate(fd, 1ll << 33) == 0 && pwrite(fd, "x", 1, 5000000000) == 1);
	add(&b, CHANGE_CREATED, "big", S_IFREG | 0644);
	note_bases(&b);
	CHECK(apply(&b, &all) == 0 && b.report.counts[APPLY_DONE] == 1);
	CHECK(fstatat(b.lower, "big", &st, 0) == 0);
	CHECK(st.st_size == 1ll << 33 && st.st_blocks < 4096);
	char byte = 0;
	AUTO_FD own = openat(b.lower, "big", O_RDONLY | O_CLOEXEC);
	CHECK(pread(own, &byte, 1, 5000000000) == 1 && byte == 'x');
	tear_down(&b);
}

static int same_bytes(const struct bench *b, const char *one, const char *other)
{
	AUTO_FD x = openat(b->upper, one, O_RDONLY | O_CLOEXEC);
	AUTO_FD y = openat(b->upper, other, O_RDONLY | O_CLOEXEC);
	return content_same(x, y);
}

/* What nobody could read in time is not read, where it is a hole. */
static void test_content(void)
{
	struct bench b;
	set_up(&b);
	const off_t size = 1ll << 42, at = 3ll << 40;
	AUTO_FD one = openat(b.upper, "one", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	AUTO_FD other = openat(b.upper, "other", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	CHECK(ftruncate(one, size) == 0 && ftruncate(other, size) == 0);
	CHECK(same_bytes(&b, "one", "other") == 1);
	CHECK(pwrite(one, "x", 1, at) == 1 && same_bytes(&b, "one", "other") == 0);
	CHECK(pwrite(other, "y", 1, at) == 1 && same_bytes(&b, "one", "other") == 0);
	CHECK(pwrite(other, "x", 1, at) == 1 && same_bytes(&b, "one", "other") == 1);
	/* Zeros are the same as a hole. */
	CHECK(pwrite(other, "\0\0", 2, 77) == 2 && same_bytes(&b, "one", "other") == 1);
	CHECK(ftruncate(other, size - 1) == 0 && same_bytes(&b, "one", "other") == 0);
	tear_down(&b);
}

static void test_copy(void)
{
	struct bench b;
	struct stat st;
	char buffer[64], tail[8] = "";
	set_up(&b);
	AUTO_FD from = openat(b.upper, "from", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	CHECK(pwrite(from, "head", 4, 0) == 4 && pwrite(from, "tail", 4, 1000000) == 4);
	for (int range = 0; range < 2; range++) {
		AUTO_FD to = openat(b.upper, "to", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		struct content_ways ways = { .range = range };
		/* It was longer when it was looked at. */
		struct content_copy copy = { .from = from,
			.to = to,
			.size = 1 << 30,
			.holes = true,
			.ways = &ways,
			.buffer = buffer,
			.room = sizeof buffer };
		CHECK(content_copy(&copy) == 0 && copy.size == 1000004 && copy.shared == 0);
		CHECK(fstat(to, &st) == 0 && st.st_size == 1000004 && st.st_blocks < 100);
		CHECK(pread(to, tail, 4, 1000000) == 4 && strcmp(tail, "tail") == 0);
		CHECK(same_bytes(&b, "from", "to") == 1);
		CHECK(pwrite(to, "x", 1, 1000003) == 1 && same_bytes(&b, "from", "to") == 0);
	}
	tear_down(&b);
}

static void test_records(void)
{
	struct bench b;
	struct arena arena = { 0 };
	struct record out[3] = {
		{ .change = { .path = "a b\n\\\x01\xff",
			  .kind = CHANGE_MODIFIED,
			  .mode = 0100644,
			  .size = 12345,
			  .sensitive = true,
			  .escapes = true },
			.base = { true, true, 0100600, 1, UINT64_MAX, -5, 7 },
			.action = 'p',
			.seq = 9,
			.dir_ino = 8,
			.new_ino = UINT64_MAX },
		{ .change = { .path = "a b\n\\\x01\xff/c", .mode = 0120777, .target = "" },
			.action = '-' },
		{ .change = { .path = "a/d",
			  .layer = 1,
			  .kind = CHANGE_DELETED,
			  .mode = 040755,
			  .held = true },
			.action = 'x' },
	};
	set_up(&b);
	AUTO_FD fd = openat(b.state, "list", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct records_writer writer;
	records_begin(&writer, fd);
	for (size_t i = 0; i < 3; i++)
		records_put(&writer, &out[i]);
	CHECK(records_end(&writer) == 0);
	char *text;
	size_t len, count;
	struct record *in;
	CHECK(fd_read_file(&arena, fd, 4096, &text, &len) == 0);
	CHECK(records_read(&arena, text, len, 2, &in, &count) == 0 && count == 3);
	for (size_t i = 0; i < 3 && count == 3; i++) {
		CHECK_TEXT(in[i].change.path, out[i].change.path);
		CHECK(in[i].change.kind == out[i].change.kind && in[i].action == out[i].action);
		CHECK(in[i].change.mode == out[i].change.mode &&
			in[i].change.size == out[i].change.size);
		CHECK(in[i].base.ino == out[i].base.ino && in[i].base.mode == out[i].base.mode &&
			in[i].base.mtime_ns == out[i].base.mtime_ns &&
			in[i].base.there == out[i].base.there);
		CHECK(in[i].change.held == out[i].change.held &&
			in[i].change.sensitive == out[i].change.sensitive);
		CHECK(in[i].seq == out[i].seq && in[i].dir_ino == out[i].dir_ino &&
			in[i].new_ino == out[i].new_ino);
	}
	CHECK_TEXT(in[1].change.target, "");
	/* Cut off anywhere, or with another byte anywhere, it is refused or is a list. */
	for (size_t cut = 0; cut < len; cut++)
		CHECK(records_read(&arena, text, cut, 2, &in, &count) == -EBADMSG);
	for (size_t at = 0; at < len; at++) {
		for (int byte = 0; byte < 256; byte += 3) {
			char old = text[at];
			text[at] = (char)byte;
			if (records_read(&arena, text, len, 2, &in, &count) == 0)
				for (size_t i = 0; i < count; i++)
					CHECK(records_path_valid(in[i].change.path));
			text[at] = old;
		}
	}
	CHECK(records_read(&arena, text, len, 1, &in, &count) == -EBADMSG);
	arena_free(&arena);
	tear_down(&b);
}

static void test_paths(void)
{
	CHECK(records_path_valid("a") && records_path_valid("a/..b/...c"));
	CHECK(!records_path_valid("") && !records_path_valid("/a") && !records_path_valid("a/"));
	CHECK(!records_path_valid("a//b") && !records_path_valid("a/../b"));
	CHECK(!records_path_valid(".") && !records_path_valid("a/."));
	CHECK(records_path_order("a", "a/b", 3) < 0 && records_path_order("a/b", "a-c", 3) < 0);
	CHECK(records_path_order("a", "a", 1) == 0 && records_path_order("b", "a/z", 3) > 0);
	CHECK(records_path_order("\xff", "a", 1) > 0 && records_path_order("a/b", "a/bc", 3) == 0);
}

static void test_dirs(void)
{
	struct bench b;
	struct dirs dirs;
	char path[4 * 3000 + 1] = "";
	set_up(&b);
	AUTO_FD here = dup(b.lower);
	for (int i = 0; i < 3000; i++) {
		int next;
		CHECK(mkdirat(here, "abc", 0755) == 0);
		next = openat(here, "abc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		fd_close(&here);
		here = next;
		memcpy(path + 4 * (size_t)i, "abc/", 4);
	}
	dirs_init(&dirs, b.lower, false);
	struct stat deep, st;
	CHECK(fstat(here, &deep) == 0);
	for (size_t len = 3; len < 12000; len += 4)
		CHECK(dirs_open(&dirs, path, len) >= 0);
	CHECK(fstat(dirs_open(&dirs, path, 11999), &st) == 0 && st.st_ino == deep.st_ino);
	for (size_t len = 11999; len > 8; len -= 4)
		CHECK(dirs_open(&dirs, path, len) >= 0 && dirs.depth <= DIRS_OPEN);
	CHECK(dirs_open(&dirs, "abx", 3) == -ENOENT && dirs_open(&dirs, path, 0) == b.lower);
	CHECK(symlinkat(".", b.lower, "link") == 0);
	CHECK(dirs_open(&dirs, "link/abc", 8) == -ELOOP);
	CHECK(dirs_open(&dirs, "link", 4) < 0);
	CHECK(dirs_open(&dirs, "..", 2) < 0);
	dirs_free(&dirs);
	tear_down(&b);
}

/* Two at a time would take each other's staging for an interrupted one. */
static void test_lock(void)
{
	struct bench b;
	set_up(&b);
	AUTO_FD other = openat(b.state, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(flock(other, LOCK_EX) == 0);
	note_bases(&b);
	CHECK(apply(&b, &all) < 0 && b.err.code == ERR_apply_failed);
	fd_close(&other);
	CHECK(apply(&b, &all) == 0);
	tear_down(&b);
}

int main(void)
{
	umask(022);
	RUN(test_each_kind);
	RUN(test_conflicts);
	RUN(test_link_in_the_way);
	RUN(test_left_out);
	RUN(test_two_trees);
	RUN(test_damaged_journal);
	RUN(test_quiet);
	RUN(test_links);
	RUN(test_settle);
	RUN(test_place);
	RUN(test_sparse);
	RUN(test_content);
	RUN(test_copy);
	RUN(test_records);
	RUN(test_paths);
	RUN(test_dirs);
	RUN(test_lock);
	return CHECK_STATUS();
}
