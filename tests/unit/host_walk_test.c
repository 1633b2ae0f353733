/*
 * host_walk: what a walk finds, with an index and without, in trees that the test makes; that an
 * index is used only while it is true, and that no file of that name can do harm.
 */
#define _GNU_SOURCE
#include "plan/host_index.h"
#include "plan/host_walk.h"
#include "base/match.h"
#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* One place for each test: a tree, and a cache beside it. */
struct place {
	char top[64], tree[80], cache[96];
};

static void run_shell(const char *fmt, const char *a)
{
	char command[512];
	snprintf(command, sizeof command, fmt, a);
	CHECK(system(command) == 0);
}

static void place_make(struct place *place)
{
	snprintf(place->top, sizeof place->top, "/tmp/agentbox-walk-XXXXXX");
	CHECK(mkdtemp(place->top) != NULL);
	snprintf(place->tree, sizeof place->tree, "%s/tree", place->top);
	snprintf(place->cache, sizeof place->cache, "%s/cache/agentbox", place->top);
	CHECK(mkdir(place->tree, 0755) == 0);
}

static void place_remove(struct place *place)
{
	run_shell("chmod -R u+rwx %s", place->top);
	run_shell("rm -rf %s", place->top);
}

static void make_file(const struct place *place, const char *name)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", place->tree, name);
	for (char *slash = path + strlen(place->tree); (slash = strchr(slash + 1, '/'));) {
		*slash = 0;
		CHECK(mkdir(path, 0755) == 0 || errno == EEXIST);
		*slash = '/';
	}
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	CHECK(fd >= 0);
	close(fd);
}

struct found {
	struct host host;
	struct search search;
	struct policy policy;
	struct err err;
	int r;
	char all[4096]; /* the paths below the tree, in their order, each with a blank */
};

static int by_path(const void *a, const void *b)
{
	const struct host_match *left = a, *right = b;
	return strcmp(left->path, right->path);
}

static void list(struct found *found, struct host_match *matches, size_t count)
{
	if (count > 1)
		qsort(matches, count, sizeof *matches, by_path);
	for (size_t i = 0; i < count; i++) {
		size_t len = strlen(found->all);
		snprintf(found->all + len, sizeof found->all - len, "%s ",
			matches[i].path + strlen(found->search.tree) + 1);
	}
}

/* Walk with these patterns ("!" in front: protect); the layer is the tree itself if asked for. */
static void walk(struct found *found, const char *tree, const char *const *patterns,
	const char *cache, bool layered)
{
	static struct policy_pattern list_of[16];
	struct row_set set = { 0 };
	struct arena arena = { 0 };
	memset(found, 0, sizeof *found);
	found->search = (struct search){
		.policy = &found->policy,
		.host = &found->host,
		.err = &found->err,
		.tree = tree,
		.layers = { tree },
		.layer_count = layered,
	};
	found->search.found = ARENA_ARRAY(&arena, 16, bool);
	for (int hide = 1; hide >= 0; hide--)
		for (size_t i = 0; patterns[i]; i++) {
			const char *text = patterns[i];
			if ((*text != '!') != (bool)hide)
				continue;
			list_of[i] = (struct policy_pattern){ .pattern = text + !hide };
			CHECK(row_set_add(&set, &arena, &list_of[i], text + !hide,
				      !strchr(text, '/'), hide, i) == 0);
		}
	found->r = host_walk(&found->search, &set, cache);
	list(found, found->search.hidden, found->host.hidden_count);
	list(found, found->search.protected, found->host.protected_count);
	arena_free(&arena);
}

static void done(struct found *found)
{
	arena_free(&found->host.arena);
}

static void wants(const char *tree, const char *const *patterns, const char *cache, bool layered,
	const char *want)
{
	struct found found;
	walk(&found, tree, patterns, cache, layered);
	CHECK(found.r == 0);
	CHECK_TEXT(found.all, want);
	done(&found);
}

static void patterns_find_what_they_name(void)
{
	struct place place;
	place_make(&place);
	static const char *const files[] = { ".env", "a/.env", "a/b/x.key", "a/b/.key", "data/x.pq",
		"data/y/z/x.pq", "other/x.pq", "keep/d/f", "id_rsa", "id_rsa.pub" };
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		make_file(&place, files[i]);
	for (int layered = 0; layered < 2; layered++) {
		wants(place.tree, (const char *const[]){ ".env", NULL }, NULL, layered,
			".env a/.env ");
		wants(place.tree, (const char *const[]){ "**/*.key", NULL }, NULL, layered,
			"a/b/.key a/b/x.key ");
		wants(place.tree, (const char *const[]){ "data/**/*.pq", NULL }, NULL, layered,
			"data/x.pq data/y/z/x.pq ");
		wants(place.tree, (const char *const[]){ "*/x.pq", NULL }, NULL, layered,
			"data/x.pq other/x.pq ");
		wants(place.tree, (const char *const[]){ "./*", NULL }, NULL, layered,
			".env a data id_rsa id_rsa.pub keep other ");
		wants(place.tree, (const char *const[]){ "keep/**", NULL }, NULL, layered,
			"keep/d ");
		wants(place.tree, (const char *const[]){ "id_*", "[a]/?", NULL }, NULL, layered,
			"a/b id_rsa id_rsa.pub ");
		/* Nothing below what is hidden is looked at; hide comes before protect. */
		wants(place.tree, (const char *const[]){ "b", "!**/*.key", "!.env", NULL }, NULL,
			layered, "a/b .env a/.env ");
		wants(place.tree, (const char *const[]){ "!keep", "!**/f", NULL }, NULL, layered,
			"keep keep/d/f ");
	}
	place_remove(&place);
}

/* Whatever the pattern and the path: the rows say what match_path says. */
static void rows_say_what_match_path_says(void)
{
	static const char *const parts[] = { "**", "*", "a", "b", "a*", "*b", "?", "[ab]", "*.x" };
	static const char *const names[] = { "a", "b", "ab", "q.x", ".x" };
	unsigned seed = 7, matched = 0;
	for (int round = 0; round < 20000; round++) {
		char pattern[128] = "", path[128] = "";
		int count = 1 + rand_r(&seed) % 4;
		for (int i = 0; i < count; i++) {
			strcat(pattern, i ? "/" : "");
			strcat(pattern, parts[(size_t)rand_r(&seed) % 9]);
		}
		struct arena arena = { 0 };
		struct row_set set = { 0 };
		CHECK(row_set_add(&set, &arena, NULL, pattern, false, true, 0) == 0);
		uint64_t state = row_begin(&set.list[0]);
		for (int i = 0; i < 4; i++) {
			const char *name = names[(size_t)rand_r(&seed) % 5];
			strcat(path, i ? "/" : "");
			strcat(path, name);
			state = row_step(&set.list[0], state, name, strlen(name));
			bool want = match_path(pattern, path);
			if (row_matches(&set.list[0], state) != want)
				fprintf(stderr, "%s against %s\n", pattern, path);
			CHECK(row_matches(&set.list[0], state) == want);
			matched += want;
		}
		arena_free(&arena);
	}
	CHECK(matched > 1000);
}

static void a_pattern_has_a_maximum(void)
{
	char text[4 * ROW_PARTS_MAX] = "";
	struct arena arena = { 0 };
	struct row_set set = { 0 };
	for (int i = 0; i < ROW_PARTS_MAX; i++)
		strcat(text, i ? "/a" : "a");
	CHECK(row_set_add(&set, &arena, NULL, text, false, true, 0) == 0);
	uint64_t state = row_begin(&set.list[0]);
	for (int i = 0; i < ROW_PARTS_MAX; i++) {
		CHECK(!row_matches(&set.list[0], state) && row_alive(&set.list[0], state));
		state = row_step(&set.list[0], state, "a", 1);
	}
	CHECK(row_matches(&set.list[0], state) && !row_alive(&set.list[0], state));
	strcat(text, "/*");
	CHECK(row_set_add(&set, &arena, NULL, text, false, true, 0) == -E2BIG);
	arena_free(&arena);
}

/* A file of the cache; returns how many there are. */
static int the_index(const struct place *place, char path[PATH_MAX])
{
	int count = 0;
	DIR *dir = opendir(place->cache);
	struct dirent *entry;
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.') {
			count++;
			snprintf(path, PATH_MAX, "%s/%s", place->cache, entry->d_name);
		}
	if (dir)
		closedir(dir);
	return count;
}

static void many_files(const struct place *place, int dirs)
{
	char name[64];
	for (int d = 0; d < dirs; d++)
		for (int i = 0; i < 50; i++) {
			snprintf(name, sizeof name, "m/d%d/e%d/f%d", d % 10, d, i);
			make_file(place, name);
		}
}

static void past_the_racy_time(void)
{
	struct timespec wait = { .tv_sec = 2, .tv_nsec = 200000000 };
	nanosleep(&wait, NULL);
}

static const char *const two[] = { "**/*.key", "!.env", NULL };

static void an_index_is_used_only_while_it_is_true(void)
{
	struct place place;
	char path[PATH_MAX], more[512];
	struct stat before, after;
	place_make(&place);
	many_files(&place, 100);
	make_file(&place, "m/d3/e3/x.key");
	make_file(&place, "m/d3/.env");
	wants(place.tree, two, place.cache, true, "m/d3/e3/x.key m/d3/.env ");
	CHECK(the_index(&place, path) == 1);
	past_the_racy_time();
	wants(place.tree, two, place.cache, true, "m/d3/e3/x.key m/d3/.env ");
	CHECK(the_index(&place, path) == 1 && stat(path, &before) == 0);
	CHECK((before.st_mode & 07777) == 0600);
	wants(place.tree, two, place.cache, true, "m/d3/e3/x.key m/d3/.env ");
	CHECK(stat(path, &after) == 0 && after.st_ino == before.st_ino);
	/* Contents and the files' own times are no matter. */
	snprintf(more, sizeof more, "%s/m/d3/e3/f1", place.tree);
	CHECK(truncate(more, 10) == 0);
	wants(place.tree, two, place.cache, true, "m/d3/e3/x.key m/d3/.env ");
	/* Names are, also where the directory's modification time was put back. */
	snprintf(more, sizeof more, "%s/m/d7/e7", place.tree);
	CHECK(stat(more, &before) == 0);
	make_file(&place, "m/d7/e7/new.key");
	const struct timespec times[2] = { before.st_atim, before.st_mtim };
	CHECK(utimensat(AT_FDCWD, more, times, 0) == 0);
	wants(place.tree, two, place.cache, true, "m/d3/e3/x.key m/d7/e7/new.key m/d3/.env ");
	run_shell("rm -r %s/m/d3/e3", place.tree);
	run_shell("cd %s && mv m/d7/e7/new.key ..", place.tree);
	wants(place.tree, two, place.cache, true, "m/d3/.env ");
	/* A directory in the place of another, and a link in the place of a directory. */
	run_shell("cd %s/m && mv d9 d9.old && mkdir d9 && touch d9/y.key && mv d8 ../d8 && "
		  "ln -s ../d8 d8 && touch ../d8/z.key",
		place.tree);
	wants(place.tree, two, place.cache, true, "d8/z.key m/d9/y.key m/d3/.env ");
	/* What was kept says the same as reading. */
	wants(place.tree, two, NULL, true, "d8/z.key m/d9/y.key m/d3/.env ");
	place_remove(&place);
}

/* The bytes of the only index, in *ret (the caller's). */
static size_t index_bytes(const struct place *place, char **ret)
{
	char path[PATH_MAX];
	struct stat st;
	CHECK(the_index(place, path) == 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	*ret = malloc((size_t)st.st_size);
	CHECK(*ret && read(fd, *ret, (size_t)st.st_size) == st.st_size);
	close(fd);
	return (size_t)st.st_size;
}

/* What has not changed is not written again, so it must fit to what has. */
static void an_index_renewed_in_part_is_the_one_made_anew(void)
{
	static const char *const changes[] = {
		"rm -r %s/m/d9",                    /* the end of most orders */
		"rm -r %s/m/d0 && mkdir %s/m/d0",   /* fewer in it than before */
		"mkdir -p %s/m/d5/e5/deeper/still", /* more */
		"rm -r %s/m/d1 %s/m/d2 && touch %s/m/d3/a.key",
		"mkdir %s/zz && touch %s/zz/b.key",
	};
	struct place place;
	place_make(&place);
	many_files(&place, 160);
	past_the_racy_time();
	wants(place.tree, two, place.cache, true, "");
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		char *renewed, *anew, command[512];
		const char *top = place.tree;
		snprintf(command, sizeof command, changes[i], top, top, top);
		run_shell("%s", command);
		past_the_racy_time();
		struct found found;
		walk(&found, place.tree, two, place.cache, true);
		CHECK(found.r == 0);
		done(&found);
		size_t len = index_bytes(&place, &renewed);
		run_shell("rm %s/*", place.cache);
		walk(&found, place.tree, two, place.cache, true);
		CHECK(found.r == 0);
		done(&found);
		CHECK(index_bytes(&place, &anew) == len && memcmp(renewed, anew, len) == 0);
		free(renewed);
		free(anew);
	}
	place_remove(&place);
}

/* Large enough that a child looks at a part of it. */
static void a_change_in_either_half_is_found(void)
{
	struct place place;
	char name[256], want[2048] = "";
	place_make(&place);
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof name, "m%02d/a-directory-with-a-name-of-some-length-%04d/f",
			i / 100, i);
		make_file(&place, name);
	}
	past_the_racy_time();
	wants(place.tree, two, place.cache, true, "");
	wants(place.tree, two, place.cache, true, "");
	for (int i = 1; i < 5000; i += 713) {
		snprintf(name, sizeof name,
			"m%02d/a-directory-with-a-name-of-some-length-%04d/k.key", i / 100, i);
		make_file(&place, name);
		strcat(strcat(want, name), " ");
		wants(place.tree, two, place.cache, true, want);
	}
	/* Whole directories go, come back as others, and become links. */
	run_shell("cd %s && rm -r m49 m48 && mkdir m48 && touch m48/k.key && mv m47 m49 && ln -s "
		  "m49 m47",
		place.tree);
	struct found with, without;
	walk(&with, place.tree, two, place.cache, true);
	walk(&without, place.tree, two, NULL, true);
	CHECK(with.r == 0 && without.r == 0 && strstr(without.all, "m48/k.key "));
	CHECK_TEXT(with.all, without.all);
	done(&with);
	done(&without);
	place_remove(&place);
}

static void small_trees_and_bad_places_have_no_index(void)
{
	struct place place;
	char path[PATH_MAX], cache[128];
	place_make(&place);
	make_file(&place, "a/x.key");
	wants(place.tree, two, place.cache, true, "a/x.key ");
	CHECK(the_index(&place, path) == 0);
	many_files(&place, 100);
	snprintf(cache, sizeof cache, "%s/gone/deeper/agentbox", place.top);
	wants(place.tree, two, cache, true, "a/x.key ");
	/* A directory that others may use, a link, a file: not one byte is written there. */
	run_shell("mkdir -p %s/cache/agentbox", place.top);
	CHECK(chmod(place.cache, 0755) == 0);
	wants(place.tree, two, place.cache, true, "a/x.key ");
	CHECK(the_index(&place, path) == 0);
	run_shell("cd %s/cache && mv agentbox real && chmod 700 real && ln -s real agentbox",
		place.top);
	wants(place.tree, two, place.cache, true, "a/x.key ");
	CHECK(the_index(&place, path) == 0);
	run_shell("cd %s/cache && rm agentbox && touch agentbox", place.top);
	wants(place.tree, two, place.cache, true, "a/x.key ");
	place_remove(&place);
}

/* Change the file's bytes one after the other: the walk finds the same. */
static void a_damaged_index_is_made_anew(void)
{
	struct place place;
	char path[PATH_MAX];
	unsigned seed = 3;
	place_make(&place);
	many_files(&place, 90);
	make_file(&place, "m/x.key");
	past_the_racy_time();
	wants(place.tree, two, place.cache, true, "m/x.key ");
	CHECK(the_index(&place, path) == 1);
	for (int round = 0; round < 30; round++) {
		int fd = open(path, O_RDWR | O_CLOEXEC);
		struct stat st;
		CHECK(fd >= 0 && fstat(fd, &st) == 0);
		off_t at = rand_r(&seed) % st.st_size;
		unsigned char byte;
		CHECK(pread(fd, &byte, 1, at) == 1);
		byte ^= (unsigned char)(1u << rand_r(&seed) % 8);
		CHECK(round % 10 == 9 ? ftruncate(fd, at) == 0 : pwrite(fd, &byte, 1, at) == 1);
		close(fd);
		wants(place.tree, two, place.cache, true, "m/x.key ");
	}
	run_shell("cd %s/cache/agentbox && for f in *; do rm $f && mkfifo $f; done", place.top);
	wants(place.tree, two, place.cache, true, "m/x.key ");
	place_remove(&place);
}

/* With a right sum even: whatever the records say, nothing outside of the bytes is touched. */
static void forged_records_are_read_strictly(void)
{
	unsigned seed = 11;
	char data[600];
	for (int round = 0; round < 100000; round++) {
		size_t len = (size_t)rand_r(&seed) % sizeof data;
		for (size_t i = 0; i < len; i++)
			data[i] = (char)(rand_r(&seed) % 3 ? 0 : rand_r(&seed));
		struct index_record record = {
			.size = (uint32_t)rand_r(&seed) % 700,
			.bytes = (uint32_t)rand_r(&seed) % 300,
			.enter = (uint32_t)rand_r(&seed) % 4,
		};
		if (len >= sizeof record)
			memcpy(data, &record, sizeof record);
		char *copy = malloc(len + 1);
		memcpy(copy, data, len);
		struct index_part part = { copy, copy + len }, list, child;
		struct index_children children;
		if (index_read(&part, 2, &record, &list))
			CHECK(list.end <= part.end);
		index_children_of(&part, &children);
		for (int i = 0; i < 5; i++) {
			child = index_child(&children, "x", 1);
			CHECK(child.at == NULL || child.end <= part.end);
		}
		free(copy);
	}
}

static void too_many_matches_are_refused(void)
{
	struct place place;
	struct found found;
	char name[64];
	place_make(&place);
	for (int i = 0; i <= HOST_MATCHES_MAX; i++) {
		snprintf(name, sizeof name, "d%d/%d.key", i % 20, i);
		make_file(&place, name);
	}
	static const char *const keys[] = { "**/*.key", NULL };
	walk(&found, place.tree, keys, NULL, false);
	CHECK(found.r < 0 && found.err.code == ERR_too_many_matches);
	done(&found);
	walk(&found, place.tree, keys, NULL, true);
	CHECK(found.r == 0 && found.host.hidden_count == HOST_MATCHES_MAX + 1);
	done(&found);
	place_remove(&place);
}

static void depth_has_a_maximum(void)
{
	struct place place;
	struct found found;
	place_make(&place);
	int dir = open(place.tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 300; i++) {
		CHECK(mkdirat(dir, "d", 0755) == 0);
		int next = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(dir);
		dir = next;
	}
	close(dir);
	static const char *const keys[] = { "**/*.key", NULL };
	walk(&found, place.tree, keys, NULL, true);
	CHECK(found.r < 0 && found.err.code == ERR_too_many_matches);
	done(&found);
	/* Where no match can be, nothing is entered. */
	wants(place.tree, (const char *const[]){ "x/**/*.key", NULL }, NULL, true, "");
	place_remove(&place);
}

int main(void)
{
	RUN(patterns_find_what_they_name);
	RUN(rows_say_what_match_path_says);
	RUN(a_pattern_has_a_maximum);
	RUN(an_index_is_used_only_while_it_is_true);
	RUN(an_index_renewed_in_part_is_the_one_made_anew);
	RUN(a_change_in_either_half_is_found);
	RUN(small_trees_and_bad_places_have_no_index);
	RUN(a_damaged_index_is_made_anew);
	RUN(forged_records_are_read_strictly);
	RUN(too_many_matches_are_refused);
	RUN(depth_has_a_maximum);
	return CHECK_STATUS();
}
