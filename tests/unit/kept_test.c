/* kept: what is saved is what is opened, the latest first; nothing is taken that is not the
 * caller's. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "check.h"
#include "workspace/kept.h"
#include "workspace/tree.h"

struct bench {
	char top[64];
	char state[128], root[128], other[128];
	int lower, upper;
};

static int make_dir(const char *path)
{
	CHECK(mkdir(path, 0755) == 0);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void put(int dir, const char *name, const char *text)
{
	AUTO_FD fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(fd >= 0 && fd_write_full(fd, text, strlen(text)) == 0);
}

static void set_up(struct bench *b)
{
	char upper[128];
	strcpy(b->top, "/tmp/agentbox-kept.XXXXXX");
	CHECK(mkdtemp(b->top) != NULL);
	snprintf(b->state, sizeof b->state, "%s/state", b->top);
	snprintf(b->root, sizeof b->root, "%s/root \n\xff", b->top);
	snprintf(b->other, sizeof b->other, "%s/other", b->top);
	snprintf(upper, sizeof upper, "%s/upper", b->top);
	b->lower = make_dir(b->root);
	b->upper = make_dir(upper);
	put(b->lower, "old", "1");
	put(b->upper, "new \\x41", "2");
	CHECK(symlinkat("", b->upper, "l") < 0 && symlinkat("/etc", b->upper, "l") == 0);
	const struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 2, .tv_nsec = 3 } };
	CHECK(futimens(b->upper, times) == 0);
}

static void tear_down(struct bench *b)
{
	struct tree_report report;
	AUTO_FD top = open(b->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd_close(&b->lower);
	fd_close(&b->upper);
	CHECK(tree_clear(top, &report) == 0 && rmdir(b->top) == 0);
}

static const char *const command[] = { "sh", "-c", "", "a b\n\\x41\x1b\xff", NULL };
static const char *const held[] = { "*.key", "/a b/**", NULL };

static int save(struct bench *b, const char *id, bool with_lower)
{
	struct err err = { 0 };
	struct changes_layer layer = { b->upper, with_lower ? b->lower : -1, true, b->root };
	struct kept_source source = { .id = id,
		.started_ns = 5,
		.ended_ns = INT64_MAX,
		.policy = "p q",
		.argv = command,
		.layers = &layer,
		.layer_count = 1,
		.rules = { .held = held } };
	int r = kept_save(b->state, &source, &err);
	CHECK((r < 0) == (err.code != ERR_none));
	return r;
}

static void test_round(void)
{
	struct bench b;
	struct kept kept;
	struct err err = { 0 };
	set_up(&b);
	CHECK(kept_open(b.state, NULL, b.root, &kept, &err) < 0 && err.code == ERR_kept_not_found);
	CHECK(save(&b, "01A", true) == 0 && save(&b, "01B", true) == 0);
	CHECK(save(&b, "01B", true) < 0); /* there is one already */
	CHECK(kept_open(b.state, NULL, b.other, &kept, &err) < 0 && err.code == ERR_kept_not_found);
	CHECK(kept_open(b.state, "01C", NULL, &kept, &err) < 0 && err.code == ERR_kept_not_found);
	CHECK(kept_open(b.state, "../kept/01A", NULL, &kept, &err) < 0);
	CHECK(kept_open(b.state, NULL, b.root, &kept, &err) == 0);
	CHECK_TEXT(kept.id, "01B");
	CHECK_TEXT(kept.policy, "p q");
	CHECK(kept.started_ns == 5 && kept.ended_ns == INT64_MAX && kept.layer_count == 1);
	for (size_t i = 0; i < 4; i++)
		CHECK_TEXT(kept.argv[i], command[i]);
	CHECK(!kept.argv[4] && strcmp(kept.held[1], held[1]) == 0 && !kept.held[2]);
	CHECK(!kept.sensitive[0] && kept.layers[0].whole && kept.layers[0].lower >= 0);
	CHECK_TEXT(kept.layers[0].root, b.root);
	/* The time of the tree's own directory is another one. */
	CHECK(kept.changes.count == 4);
	CHECK_TEXT(kept.changes.list[0].path, ".");
	CHECK(kept.changes.list[0].quiet && kept.bases[0].there && !kept.changes.list[1].quiet);
	CHECK_TEXT(kept.changes.list[1].path, "l");
	CHECK_TEXT(kept.changes.list[1].target, "/etc");
	CHECK_TEXT(kept.changes.list[2].path, "new \\x41");
	CHECK(kept.changes.list[3].kind == CHANGE_DELETED && kept.bases[3].there);
	CHECK(kept.bases[3].conflict && !kept.bases[1].there); /* "old" is younger than 5 ns */
	kept_close(&kept);
	CHECK(kept_remove(b.state, "01B", &err) == 0);
	CHECK(kept_remove(b.state, "01B", &err) < 0 && err.code == ERR_kept_not_found);
	CHECK(kept_open(b.state, NULL, b.root, &kept, &err) == 0);
	CHECK_TEXT(kept.id, "01A");
	kept_close(&kept);
	tear_down(&b);
}

static void test_list(void)
{
	struct bench b;
	struct arena arena = { 0 };
	struct kept_entry *list;
	size_t count = 7;
	struct err err = { 0 };
	char path[256];
	set_up(&b);
	CHECK(kept_list(b.state, &arena, &list, &count, &err) == 0 && count == 0);
	CHECK(save(&b, "01A", true) == 0 && save(&b, "01C", false) == 0);
	snprintf(path, sizeof path, "%s/kept/01B", b.state);
	CHECK(mkdir(path, 0700) == 0); /* damaged */
	snprintf(path, sizeof path, "%s/kept/.old-01D", b.state);
	CHECK(mkdir(path, 0700) == 0);
	CHECK(kept_list(b.state, &arena, &list, &count, &err) == 0 && count == 3);
	CHECK(count == 3 && strcmp(list[0].id, "01C") == 0 && strcmp(list[2].id, "01A") == 0);
	CHECK(count == 3 && list[0].workspace && !list[1].workspace);
	arena_free(&arena);
	tear_down(&b);
}

static void test_not_ours(void)
{
	struct bench b;
	struct kept kept;
	struct err err = { 0 };
	char path[256], moved[256];
	set_up(&b);
	CHECK(save(&b, "01A", true) == 0);
	snprintf(path, sizeof path, "%s/kept/01A", b.state);
	CHECK(chmod(path, 0750) == 0);
	CHECK(kept_open(b.state, "01A", NULL, &kept, &err) < 0 && err.code == ERR_state_unusable);
	CHECK(chmod(path, 0700) == 0);
	snprintf(moved, sizeof moved, "%s/moved", b.top);
	CHECK(rename(path, moved) == 0 && symlink(moved, path) == 0);
	CHECK(kept_open(b.state, "01A", NULL, &kept, &err) < 0);
	CHECK(unlink(path) == 0 && rename(moved, path) == 0);
	/* The host's tree is a link now. */
	CHECK(rename(b.root, b.other) == 0 && symlink(b.other, b.root) == 0);
	CHECK(kept_open(b.state, "01A", NULL, &kept, &err) < 0);
	CHECK(err.code == ERR_workspace_not_found);
	CHECK(err.errnum == ELOOP || err.errnum == ENOTDIR);
	tear_down(&b);
}

int main(void)
{
	umask(022);
	RUN(test_round);
	RUN(test_list);
	RUN(test_not_ours);
	return CHECK_STATUS();
}
