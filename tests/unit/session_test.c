/* Sessions on disk: whole or broken, in use or not, and gone when they are removed. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "workspace/session.h"

static char top[64], state[128], work[128];

static const char *at(const char *fmt, ...)
{
	static char paths[8][512];
	static int next;
	char *path = paths[next++ % 8];
	int len = snprintf(path, sizeof paths[0], "%s/sessions/", state);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(path + len, sizeof paths[0] - (size_t)len, fmt, ap);
	va_end(ap);
	return path;
}

static void put(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");
	CHECK(out && fputs(text, out) >= 0);
	if (out)
		fclose(out);
}

static int new_session(const char *name, struct err *err)
{
	static const char *sources[] = { "/p/base.yaml", "/p/odd \"name\"\n.yaml" };
	const struct session_source source = { .name = name,
		.workspace = work,
		.policy = "build",
		.policy_text = "version: 1\nname: \"a \\\"b\\\"\"\n\t\x7f end\n",
		.policy_sha256 = "00ff",
		.sources = sources,
		.source_count = 2 };
	return session_new(state, &source, err);
}

static int open_one(const char *name, bool exclusive, struct err *err)
{
	struct session session;
	int r = session_open(state, name, exclusive, &session, err);
	if (r == 0)
		session_close(&session);
	return r;
}

/* Its state in the list, or -1. */
static int listed(const char *name)
{
	struct arena arena = { 0 };
	struct session *list;
	size_t count;
	int found = -1;
	CHECK(session_list(state, &arena, &list, &count, NULL) == 0);
	for (size_t i = 0; i < count; i++)
		if (strcmp(list[i].name, name) == 0)
			found = (int)list[i].state;
	arena_free(&arena);
	return found;
}

static int remove_all(const char *path)
{
	char command[512];
	snprintf(command, sizeof command, "chmod -R u+rwx '%s'; rm -rf '%s'", path, path);
	return system(command);
}

static size_t entries(void)
{
	char command[256];
	snprintf(command, sizeof command, "ls -A '%s/sessions' | wc -l", state);
	FILE *in = popen(command, "r");
	size_t count = 99;
	CHECK(in && fscanf(in, "%zu", &count) == 1);
	if (in)
		pclose(in);
	return count;
}

static void test_names(void)
{
	char name[SESSION_NAME_MAX + 2];
	struct err err = { 0 };
	static const char *const bad[] = { "", ".", "..", ".a", "-a", "a/b", "../x", "a b", "a\n",
		"\033[2J", "a\xff", "\xc3\xa4" };
	memset(name, 'x', sizeof name);
	name[SESSION_NAME_MAX] = 0;
	CHECK(session_name_valid(name));
	name[SESSION_NAME_MAX] = 'x';
	name[SESSION_NAME_MAX + 1] = 0;
	CHECK(!session_name_valid(name));
	CHECK(session_name_valid("A.b_c-9"));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		CHECK(!session_name_valid(bad[i]));
		CHECK(new_session(bad[i], &err) == -1 && err.code == ERR_usage);
		CHECK(open_one(bad[i], false, &err) == -1 && err.code == ERR_usage);
		CHECK(session_remove(state, bad[i], &err) == -1 && err.code == ERR_usage);
	}
}

static void test_nothing_there(void)
{
	struct arena arena = { 0 };
	struct session *list;
	size_t count = 9;
	struct err err = { 0 };
	CHECK(session_list(state, &arena, &list, &count, &err) == 0 && count == 0);
	CHECK(open_one("a", false, &err) == -1 && err.code == ERR_session_not_found);
	CHECK(session_remove(state, "a", &err) == -1 && err.code == ERR_session_not_found);
	CHECK(access(state, F_OK) < 0);
	CHECK(session_list(NULL, &arena, &list, &count, &err) == -1 &&
		err.code == ERR_state_unusable);
}

static void test_round_trip(void)
{
	struct session session;
	struct err err = { 0 };
	struct stat st;
	CHECK(new_session("s", &err) == 0);
	CHECK(new_session("s", &err) == -1 && err.code == ERR_session_exists);
	CHECK(entries() == 1);
	CHECK(session_open(state, "s", false, &session, &err) == 0);
	CHECK_TEXT(session.name, "s");
	CHECK_TEXT(session.workspace, work);
	CHECK_TEXT(session.policy, "build");
	CHECK_TEXT(session.policy_text, "version: 1\nname: \"a \\\"b\\\"\"\n\t\x7f end\n");
	CHECK_TEXT(session.policy_sha256, "00ff");
	CHECK(session.source_count == 2);
	CHECK_TEXT(session.sources[1], "/p/odd \"name\"\n.yaml");
	CHECK(session.created_ns > 0 && session.used_ns >= session.created_ns - 1000000000);
	CHECK(session.state == SESSION_READY);
	session_close(&session);
	CHECK(stat(at("s"), &st) == 0 && (st.st_mode & 07777) == 0700);
	CHECK(stat(at("s/meta"), &st) == 0 && (st.st_mode & 07777) == 0600);
	CHECK(stat(at("s/tmp"), &st) == 0 && (st.st_mode & 07777) == 01777);
	CHECK(listed("s") == SESSION_READY);
	CHECK(session_remove(state, "s", &err) == 0);
	CHECK(entries() == 0);
}

static void test_locks(void)
{
	struct session one, other;
	struct err err = { 0 };
	CHECK(new_session("s", &err) == 0);
	CHECK(session_open(state, "s", false, &one, &err) == 0);
	CHECK(session_open(state, "s", false, &other, &err) == 0);
	CHECK(open_one("s", true, &err) == -1 && err.code == ERR_session_busy);
	CHECK(listed("s") == SESSION_RUNNING);
	CHECK(session_remove(state, "s", &err) == -1 && err.code == ERR_session_busy);
	session_close(&one);
	CHECK(session_remove(state, "s", &err) == -1 && err.code == ERR_session_busy);
	session_close(&other);
	CHECK(listed("s") == SESSION_READY);
	CHECK(session_open(state, "s", true, &one, &err) == 0);
	CHECK(open_one("s", false, &err) == -1 && err.code == ERR_session_busy);
	/* A child that keeps the descriptor keeps the lock. */
	int copy = dup(one.lock);
	session_close(&one);
	CHECK(open_one("s", false, &err) == -1 && err.code == ERR_session_busy);
	close(copy);
	CHECK(open_one("s", false, &err) == 0);
	CHECK(session_remove(state, "s", &err) == 0);
}

/* Whoever holds a name that went must not get what has it by now. */
static void test_removed_under_open(void)
{
	struct err err = { 0 };
	CHECK(new_session("s", &err) == 0);
	CHECK(session_remove(state, "s", &err) == 0);
	CHECK(open_one("s", false, &err) == -1 && err.code == ERR_session_not_found);
	CHECK(new_session("s", &err) == 0);
	CHECK(open_one("s", false, &err) == 0);
	CHECK(session_remove(state, "s", &err) == 0);
}

/* It is broken for all, and can be removed. */
static void want_broken(const char *what)
{
	struct err err = { 0 };
	bool broken = open_one("s", false, &err) == -1 && err.code == ERR_session_broken &&
		      open_one("s", true, &err) == -1 && err.code == ERR_session_broken &&
		      listed("s") == SESSION_BROKEN;
	bool removed = session_remove(state, "s", &err) == 0 && entries() == 0;
	CHECK(broken && removed);
	if (!broken || !removed)
		fprintf(stderr, "  with %s: %s\n", what, err.text);
}

static void test_damaged_meta(void)
{
	static const char good[] = "session 1\ncreated 5\nworkspace \"/w\"\npolicy \"p\"\n"
				   "sha256 \"0\"\ntext \"t\"\n";
	static const char *const bad[] = {
		"",
		"\n",
		"session 2\n",
		"session 1\n",
		"session 1\ncreated 5\nworkspace \"/w\"\npolicy \"p\"\nsha256 \"0\"\n",
		"session 1\ncreated 5\nworkspace \"/w\"\npolicy \"p\"\nsha256 \"0\"\ntext \"t\"",
		"session 1\ncreated 5\nworkspace \"w\"\npolicy \"p\"\nsha256 \"0\"\ntext \"t\"\n",
		"session 1\ncreated x\nworkspace \"/w\"\npolicy \"p\"\nsha256 \"0\"\ntext \"t\"\n",
		"session 1\ncreated 99999999999999999999\nworkspace \"/w\"\npolicy \"p\"\n"
		"sha256 \"0\"\ntext \"t\"\n",
		"session 1\ncreated 5\nworkspace \"/w\"\npolicy \"p\"\nsha256 \"0\"\ntext \"t\n",
		"session 1\ncreated 5\nworkspace \"/w\"\npolicy \"p\"\nsha256 \"0\"\ntext "
		"\"\\x\"\n",
		"session 1\ncreated 5\nworkspace \"/w\"\npolicy \"p\"\nsha256 \"0\"\n"
		"text \"\\u0000\"\n",
		"session 1\ncreated 5\nworkspace \"/w\"\npolicy \"p\"\nsha256 \"0\"\ntext \"\\u00",
		"session 1\ncreated 5\nworkspace \"/w\"\npolicy \"p\"\nsha256 \"0\"\ntext \"\\\n",
		"session 1\ncreated 5\nworkspace \"/w\"\npolicy \"p\"\nsha256 \"0\"\ntext \"t\" \n",
		"session 1\ncreated 5\nworkspace \"/w\"\npolicy \"p\"\nsha256 \"0\"\ntext \"t\"\n"
		"text \"u\"\n",
		"session 1\ncreated 5\nworkspace \"/w\"\npolicy \"p\"\nsha256 \"0\"\ntext \"t\"\n"
		"more \"u\"\n",
		"session 1\ncreated 5\nworkspace \"/w\"\npolicy \"p\"\nsha256 \"0\"\ntext "
		"\"t\"\n\n",
	};
	struct err err = { 0 };
	CHECK(new_session("s", &err) == 0);
	put(at("s/meta"), good);
	CHECK(open_one("s", false, &err) == 0);
	CHECK(session_remove(state, "s", &err) == 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		CHECK(new_session("s", &err) == 0);
		put(at("s/meta"), bad[i]);
		want_broken(bad[i]);
	}
	CHECK(new_session("s", &err) == 0);
	int fd = open(at("s/meta"), O_WRONLY | O_APPEND);
	CHECK(fd >= 0 && write(fd, "\0\n", 2) == 2);
	close(fd);
	want_broken("a NUL byte");
	CHECK(new_session("s", &err) == 0);
	CHECK(truncate(at("s/meta"), SESSION_META_MAX + 1) == 0);
	want_broken("a large meta");
}

static void test_wrong_files(void)
{
	static const char *const parts[] = { "layer", "layer/upper", "layer/work", "home", "tmp" };
	static const char *const files[] = { "meta", "lock" };
	struct err err = { 0 };
	char other[160], moved[160];
	snprintf(other, sizeof other, "%s/other", top);
	snprintf(moved, sizeof moved, "%s/moved", top);
	CHECK(mkdir(other, 0700) == 0);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		CHECK(new_session("s", &err) == 0);
		CHECK(rename(at("s/%s", parts[i]), moved) == 0 &&
			symlink(moved, at("s/%s", parts[i])) == 0);
		want_broken(parts[i]);
		/* The link went, not what it leads to. */
		CHECK(access(moved, F_OK) == 0);
		CHECK(rmdir(moved) == 0 || remove_all(moved) == 0);
	}
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		CHECK(new_session("s", &err) == 0);
		CHECK(chmod(at("s/%s", files[i]), 0640) == 0);
		want_broken(files[i]);
		CHECK(new_session("s", &err) == 0);
		CHECK(unlink(at("s/%s", files[i])) == 0 && mkfifo(at("s/%s", files[i]), 0600) == 0);
		want_broken(files[i]);
		CHECK(new_session("s", &err) == 0);
		CHECK(unlink(at("s/%s", files[i])) == 0);
		put(moved, "session 1\n");
		CHECK(symlink(moved, at("s/%s", files[i])) == 0);
		want_broken(files[i]);
		CHECK(unlink(moved) == 0);
	}
	CHECK(new_session("s", &err) == 0);
	CHECK(rmdir(at("s/home")) == 0);
	want_broken("no home");
	CHECK(rmdir(other) == 0);
}

static void test_wrong_directory(void)
{
	struct err err = { 0 };
	char other[160], file[192];
	static const mode_t modes[] = { 0755, 0701, 0770, 0 };
	snprintf(other, sizeof other, "%s/other", top);
	snprintf(file, sizeof file, "%s/file", other);
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		CHECK(new_session("s", &err) == 0);
		CHECK(chmod(at("s"), modes[i]) == 0);
		/* Root may open what nobody may; it is whole then. */
		if (modes[i] == 0 && geteuid() == 0)
			CHECK(session_remove(state, "s", &err) == 0 && entries() == 0);
		else
			want_broken("a wrong mode");
	}
	if (geteuid() == 0) {
		CHECK(new_session("s", &err) == 0);
		CHECK(chown(at("s"), 1, 1) == 0);
		want_broken("a foreign owner");
		CHECK(new_session("s", &err) == 0);
		CHECK(chown(at("s/layer"), 1, 1) == 0);
		want_broken("a foreign layer");
	}
	CHECK(mkdir(other, 0700) == 0);
	put(file, "x");
	CHECK(symlink(other, at("s")) == 0);
	want_broken("a link");
	CHECK(access(file, F_OK) == 0);
	put(at("s"), "x");
	want_broken("a file");
	CHECK(unlink(file) == 0 && rmdir(other) == 0);
}

static void test_keeper(void)
{
	struct err err = { 0 };
	char line[64];
	FILE *in = fopen("/proc/self/stat", "r");
	unsigned long long start = 0;
	CHECK(in && fscanf(in,
			    "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d "
			    "%*d %*d %*d %*d %*d %llu",
			    &start) == 1);
	if (in)
		fclose(in);
	CHECK(new_session("s", &err) == 0);
	snprintf(line, sizeof line, "%d %llu\n", (int)getpid(), start);
	put(at("s/keeper"), line);
	CHECK(open_one("s", false, &err) == 0);
	CHECK(listed("s") == SESSION_RUNNING);
	CHECK(session_remove(state, "s", &err) == -1 && err.code == ERR_session_busy);
	snprintf(line, sizeof line, "%d %llu\n", (int)getpid(), start + 1);
	put(at("s/keeper"), line);
	want_broken("another process of that number");
	static const char *const bad[] = { "", "x\n", "1\n", "-1 5\n", "1 5\nmore\n", "0 0\n" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		CHECK(new_session("s", &err) == 0);
		put(at("s/keeper"), bad[i]);
		want_broken(bad[i]);
	}
}

static void test_left_by_killed_calls(void)
{
	struct err err = { 0 };
	CHECK(new_session("s", &err) == 0);
	CHECK(mkdir(at(".gone-1-1"), 0700) == 0 && mkdir(at(".gone-1-1/a"), 0) == 0);
	CHECK(mkdir(at(".gone-2-2"), 0700) == 0 && mkdir(at(".new-3-3"), 0700) == 0);
	int held = open(at(".gone-2-2"), O_RDONLY | O_DIRECTORY);
	CHECK(held >= 0 && flock(held, LOCK_EX) == 0);
	CHECK(listed(".gone-1-1") == -1);
	CHECK(new_session("t", &err) == 0);
	CHECK(access(at(".gone-1-1"), F_OK) < 0);
	CHECK(access(at(".gone-2-2"), F_OK) == 0); /* its maker lives */
	CHECK(access(at(".new-3-3"), F_OK) == 0);  /* its maker may have no lock yet */
	close(held);
	CHECK(session_remove(state, "t", &err) == 0);
	CHECK(access(at(".gone-2-2"), F_OK) < 0);
	CHECK(rmdir(at(".new-3-3")) == 0);
	CHECK(session_remove(state, "s", &err) == 0);
}

static void test_state(void)
{
	struct err err = { 0 };
	struct arena arena = { 0 };
	struct session *list;
	size_t count;
	CHECK(new_session("s", &err) == 0);
	CHECK(chmod(at(""), 0755) == 0);
	CHECK(open_one("s", false, &err) == -1 && err.code == ERR_state_unusable);
	CHECK(new_session("t", &err) == -1 && err.code == ERR_state_unusable);
	CHECK(session_remove(state, "s", &err) == -1 && err.code == ERR_state_unusable);
	CHECK(session_list(state, &arena, &list, &count, &err) == -1 &&
		err.code == ERR_state_unusable);
	CHECK(chmod(at(""), 0700) == 0);
	CHECK(session_remove(state, "s", &err) == 0);
}

static void test_no_workspace(void)
{
	struct err err = { 0 };
	char kept[sizeof work];
	memcpy(kept, work, sizeof work);
	snprintf(work, sizeof work, "%s/nowhere", top);
	CHECK(new_session("s", &err) == -1 && err.code == ERR_workspace_not_found);
	CHECK(entries() == 0);
	memcpy(work, kept, sizeof work);
}

int main(void)
{
	snprintf(top, sizeof top, "/tmp/session-test.XXXXXX");
	if (!mkdtemp(top))
		return 1;
	snprintf(state, sizeof state, "%s/state/agentbox", top);
	snprintf(work, sizeof work, "%s/w \"\\\n\xff", top);
	CHECK(mkdir(work, 0755) == 0);
	RUN(test_nothing_there);
	RUN(test_names);
	RUN(test_round_trip);
	RUN(test_locks);
	RUN(test_removed_under_open);
	RUN(test_damaged_meta);
	RUN(test_wrong_files);
	RUN(test_wrong_directory);
	RUN(test_keeper);
	RUN(test_left_by_killed_calls);
	RUN(test_state);
	RUN(test_no_workspace);
	CHECK(remove_all(top) == 0);
	return CHECK_STATUS();
}
