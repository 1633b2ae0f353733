/* base_test: arena, buf, utf8, fd, err and its table, the JSON writer. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/utf8.h"
#include "check.h"

static void arena_keeps_and_aligns(void)
{
	struct arena arena = { 0 };
	char *first = arena_strdup(&arena, "first");
	/* Larger than a block, then small again: the first block's room is still used. */
	uint8_t *large = arena_alloc(&arena, 100000);
	char *second = arena_printf(&arena, "%d-%s", 7, "second");
	CHECK(((uintptr_t)large & 15) == 0 && ((uintptr_t)second & 15) == 0);
	CHECK(second > first && second - first < 16384);
	CHECK(large[0] == 0 && large[99999] == 0);
	memset(large, 0xff, 100000);
	CHECK_TEXT(first, "first");
	CHECK_TEXT(second, "7-second");
	CHECK_TEXT(arena_strndup(&arena, "abcdef", 3), "abc");
	arena_free(&arena);
	CHECK(arena.head == NULL);
	CHECK_TEXT(arena_strdup(&arena, "again"), "again");
	arena_free(&arena);
}

static void arena_push_grows(void)
{
	struct arena arena = { 0 };
	uint32_t *items = NULL;
	size_t count = 0;
	for (uint32_t i = 0; i < 1000; i++) {
		uint32_t *item = arena_push(&arena, &items, &count, sizeof *item);
		CHECK(*item == 0 && count == i + 1);
		*item = i;
	}
	int wrong = 0;
	for (uint32_t i = 0; i < 1000; i++)
		wrong += items[i] != i;
	CHECK(wrong == 0);
	arena_free(&arena);
}

static void buf_has_a_maximum(void)
{
	AUTO_BUF buf = { .max = 10 };
	CHECK_TEXT(buf_text(&buf), "");
	CHECK(buf_adds(&buf, "12345") == 0 && buf_adds(&buf, "67890") == 0);
	CHECK(!buf.full);
	CHECK(buf_adds(&buf, "x") == -ENOSPC);
	CHECK(buf.full && buf.len == 10);
	CHECK_TEXT(buf_text(&buf), "1234567890");
	CHECK(buf_add(&buf, "y", SIZE_MAX) == -ENOSPC);
	buf_free(&buf);
	CHECK(buf.max == 10 && buf.len == 0 && !buf.full);
	CHECK(buf_addf(&buf, "%0*d", 11, 1) == -ENOSPC && buf.len == 0);

	AUTO_BUF large = { 0 };
	CHECK(buf_addf(&large, "%0*d", 5000, 1) == 0 && large.len == 5000);
	CHECK(large.data[4999] == '1' && large.data[5000] == 0);
}

/* B59 */
static void buf_makes_controls_visible(void)
{
	static const char hostile[] = "a\x1b]0;t\x07 \xc2\x9b[J \xe2\x80\xae \xff\r\x7f\n\tz";
	AUTO_BUF buf = { 0 };
	buf_add_visible(&buf, hostile, sizeof hostile - 1, false);
	CHECK_TEXT(buf_text(&buf), "a\\x1b]0;t\\x07 \\u{9b}[J \\u{202e} \\xff\\x0d\\x7f\\n\\tz");
	buf_free(&buf);
	buf_add_visible(&buf, "a\n\tb\0c", 6, true);
	CHECK_TEXT(buf_text(&buf), "a\n\tb\\x00c");
	buf_free(&buf);
	buf_add_visible(&buf, "gr\xc3\xbc\xc3\x9f \xf0\x9f\x90\xa7", 11, true);
	CHECK_TEXT(buf_text(&buf), "gr\xc3\xbc\xc3\x9f \xf0\x9f\x90\xa7");
}

static size_t decoded(const char *text, size_t len, uint32_t want)
{
	uint32_t rune = 0;
	size_t n = utf8_decode(text, len, &rune);
	return n && rune == want ? n : 0;
}

static void utf8_is_strict(void)
{
	CHECK(decoded("\0", 1, 0) == 1 && decoded("\x7f", 1, 0x7f) == 1);
	CHECK(decoded("\xc2\x80", 2, 0x80) == 2 && decoded("\xdf\xbf", 2, 0x7ff) == 2);
	CHECK(decoded("\xe0\xa0\x80", 3, 0x800) == 3 && decoded("\xef\xbf\xbf", 3, 0xffff) == 3);
	CHECK(decoded("\xf0\x90\x80\x80", 4, 0x10000) == 4);
	CHECK(decoded("\xf4\x8f\xbf\xbf", 4, 0x10ffff) == 4);
	static const struct {
		const char *what, *bytes;
	} bad[] = {
		{ "continuation alone", "\x80" },
		{ "overlong, 2 bytes", "\xc0\x80" },
		{ "overlong, 2 bytes, last", "\xc1\xbf" },
		{ "overlong, 3 bytes", "\xe0\x9f\xbf" },
		{ "overlong, 4 bytes", "\xf0\x8f\xbf\xbf" },
		{ "first surrogate", "\xed\xa0\x80" },
		{ "last surrogate", "\xed\xbf\xbf" },
		{ "past the last", "\xf4\x90\x80\x80" },
		{ "five bytes", "\xf8\x88\x80\x80\x80" },
		{ "0xff", "\xff" },
		{ "cut off, 2 bytes", "\xc3" },
		{ "cut off, 3 bytes", "\xe2\x82" },
		{ "cut off, 4 bytes", "\xf0\x9f\x90" },
		{ "wrong second byte", "\xe2\x28\xa1" },
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		uint32_t rune = 1234;
		if (utf8_decode(bad[i].bytes, strlen(bad[i].bytes), &rune) != 0 || rune != 1234)
			fprintf(stderr, "accepted: %s\n", bad[i].what), check_failures++;
		/* Behind eight plain bytes, where the fast path has just run. */
		char text[32];
		snprintf(text, sizeof text, "12345678%s", bad[i].bytes);
		CHECK(!utf8_valid(text, strlen(text)));
	}
	CHECK(utf8_valid("", 0) && utf8_valid("1234567\xc3\xbc", 9));
	CHECK(utf8_is_control(0x1b) && utf8_is_control(0x9b) && utf8_is_control(0x2066));
	CHECK(!utf8_is_control('\n') && !utf8_is_control('\t') && !utf8_is_control(0xfc));
}

static int file_with(const char *text)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	CHECK(fd >= 0 && fd_write_full(fd, text, strlen(text)) == 0);
	return fd;
}

/* In a child, which has nothing to lose. */
static void fd_closes_others(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		int at[6], keep[] = { 40, -1, 5, 1000, 5 };
		for (int i = 0; i < 6; i++) {
			static const int places[] = { 3, 5, 6, 40, 41, 1000 };
			at[i] = dup2(2, places[i]);
		}
		int r = fd_close_others(keep, 5);
		bool good = r == 0;
		for (int fd = 0; fd < 1024; fd++)
			good = good &&
			       (fcntl(fd, F_GETFD) >= 0) == (fd == 5 || fd == 40 || fd == 1000);
		_exit(good && at[0] == 3 ? 0 : 1);
	}
	int status = -1;
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

static void fd_reads_files(void)
{
	struct arena arena = { 0 };
	char *data = NULL;
	size_t len = 99;
	AUTO_FD fd = file_with("hello");
	CHECK(fd_read_file(&arena, fd, 4, &data, &len) == -EFBIG);
	CHECK(data == NULL && len == 99);
	CHECK(fd_read_file(&arena, fd, 5, &data, &len) == 0 && len == 5);
	CHECK_TEXT(data, "hello");

	/* Files of /proc say that they are empty. */
	AUTO_FD proc = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	CHECK(fd_read_file(&arena, proc, 65536, &data, &len) == 0 && len > 10);
	CHECK(fd_read_file(&arena, -1, 10, &data, &len) == -EBADF);

	int other = dup(fd);
	int taken = fd_steal(&other);
	CHECK(other == -1 && taken >= 0);
	errno = 1234;
	fd_close(&taken);
	CHECK(taken == -1 && errno == 1234);
	fd_close(&taken);

	char bytes[8] = { 0 };
	CHECK(lseek(fd, 2, SEEK_SET) == 2 && fd_read_full(fd, bytes, sizeof bytes) == 3);
	CHECK_TEXT(bytes, "llo");
	arena_free(&arena);
}

static void err_is_flat(void)
{
	struct err err;
	memset(&err, 0xff, sizeof err);
	CHECK(err_set(&err, ERR_policy_invalid, ENOENT, "%0*d", 2000, 1) == -1);
	CHECK(strlen(err.text) == sizeof err.text - 1);
	CHECK(err.line == 0 && err.file[0] == 0 && err.stage == 0 && err.errnum == ENOENT);
	CHECK(err_hint(&err) == NULL);
	char name[600];
	memset(name, 'd', sizeof name);
	strcpy(name + sizeof name - 9, "tail.yml");
	CHECK(err_at(&err, name, 3, 5) == -1 && err.line == 3 && err.column == 5);
	CHECK(strlen(err.file) == sizeof err.file - 1);
	CHECK_TEXT(err.file + strlen(err.file) - 8, "tail.yml");
	err_hint_set(&err, "do %s", "this");
	CHECK_TEXT(err_hint(&err), "do this");
	CHECK(err_set(NULL, ERR_internal, 0, "x") == -1 && err_at(NULL, "f", 1, 1) == -1);
	CHECK_TEXT(err_info(ERR_COUNT_)->name, "internal");
	CHECK_TEXT(err_info(-1)->name, "internal");
	CHECK_TEXT(err_errno_name(EPERM), "EPERM");
	CHECK(err_errno_name(0) == NULL && err_errno_name(99999) == NULL);
}

static void errors_are_sorted_and_told(void)
{
	for (int code = ERR_none + 1; code < ERR_COUNT_; code++) {
		const struct err_info *info = err_info(code);
		if (code > ERR_none + 1 && strcmp(err_info(code - 1)->name, info->name) >= 0)
			fprintf(stderr, "%s is out of order\n", info->name), check_failures++;
		CHECK(info->status >= 125 && info->status <= 127);
		size_t len = strlen(info->meaning);
		CHECK(len > 10 && info->meaning[len - 1] == '.');
		CHECK(utf8_valid(info->remedy, strlen(info->remedy)));
	}
}

static void json_writes(void)
{
	AUTO_BUF buf = { 0 };
	struct json json;
	for (int pretty = 0; pretty < 2; pretty++) {
		buf_free(&buf);
		json_begin(&json, &buf, pretty);
		json_open_object(&json, NULL);
		json_put_text(&json, "a", "x\"\\/\n");
		json_open_array(&json, "b");
		json_put_uint(&json, NULL, UINT64_MAX);
		json_put_int(&json, NULL, INT64_MIN);
		json_put_thousandths(&json, NULL, 14200);
		json_put_thousandths(&json, NULL, 14000);
		json_put_thousandths(&json, NULL, 1);
		json_put_thousandths(&json, NULL, 0);
		json_put_bool(&json, NULL, true);
		json_put_text(&json, NULL, NULL);
		json_close(&json);
		json_open_object(&json, "c");
		json_close(&json);
		json_close(&json);
		CHECK(json_end(&json) == 0);
		if (!pretty)
			CHECK_TEXT(buf_text(&buf),
				"{\"a\":\"x\\\"\\\\/\\n\",\"b\":[9223372036854775807,"
				"-9223372036854775808,14.2,14,0.001,0,true,null],\"c\":{}}\n");
		else
			CHECK(strncmp(buf_text(&buf), "{\n  \"a\": \"", 10) == 0 &&
				strstr(buf_text(&buf), "\n    14.2,\n"));
	}
}

static void json_escapes(void)
{
	static const char bytes[] = "\0\x1b\x7f \xc2\x9b \xe2\x80\xae \xff\xc3 \xf0\x9f\x90\xa7";
	AUTO_BUF buf = { 0 };
	struct json json;
	json_begin(&json, &buf, false);
	json_put_bytes(&json, NULL, bytes, sizeof bytes - 1);
	CHECK(json_end(&json) == 0);
	CHECK_TEXT(buf_text(&buf), "\"\\u0000\\u001b\\u007f \\u009b \\u202e \\\\xff\\\\xc3 "
				   "\xf0\x9f\x90\xa7\"\n");

	/* Across the writer's own pieces nothing is lost. */
	char *large = malloc(100000);
	for (size_t i = 0; i < 100000; i++)
		large[i] = i % 7 ? 'a' : '\n';
	buf_free(&buf);
	json_begin(&json, &buf, false);
	json_put_bytes(&json, NULL, large, 100000);
	CHECK(json_end(&json) == 0);
	json_t *value = json_loadb(buf.data, buf.len, JSON_DECODE_ANY, NULL);
	CHECK(json_string_length(value) == 100000);
	CHECK(value && memcmp(json_string_value(value), large, 100000) == 0);
	json_decref(value);
	free(large);
}

/* Each of these calls breaks the nesting: the document fails and leaves nothing behind. */
static void json_refuses_wrong_nesting(void)
{
	for (int wrong = 0; wrong < 9; wrong++) {
		AUTO_BUF buf = { 0 };
		buf_adds(&buf, "kept");
		struct json json;
		json_begin(&json, &buf, false);
		if (wrong == 0)
			json_put_null(&json, "key at the top");
		if (wrong > 1)
			json_open_object(&json, NULL);
		if (wrong == 2)
			json_put_null(&json, NULL);
		if (wrong > 2)
			json_open_array(&json, "array");
		if (wrong == 3)
			json_put_null(&json, "key");
		if (wrong > 4)
			json_close(&json);
		if (wrong > 5)
			json_close(&json);
		if (wrong == 6)
			json_close(&json);
		if (wrong == 7)
			json_put_null(&json, NULL);
		for (int i = 0; wrong == 8 && i <= JSON_DEPTH_MAX; i++)
			json_open_array(&json, NULL);
		CHECK(json_end(&json) == -EINVAL);
		CHECK_TEXT(buf_text(&buf), "kept");
	}
	AUTO_BUF deep = { 0 };
	struct json json;
	json_begin(&json, &deep, true);
	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		json_open_array(&json, NULL);
	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		json_close(&json);
	CHECK(json_end(&json) == 0);
	json_begin(&json, &deep, true);
	json_open_array(&json, NULL);
	for (int i = 0; i <= JSON_DEPTH_MAX; i++)
		json_open_array(&json, NULL);
	CHECK(json_end(&json) == -EINVAL);
}

static void json_tells_of_a_full_buf(void)
{
	AUTO_BUF buf = { .max = 20 };
	buf_adds(&buf, "kept");
	struct json json;
	json_begin(&json, &buf, false);
	json_put_text(&json, NULL, "more than there is room for");
	CHECK(json_end(&json) == -ENOSPC);
	CHECK_TEXT(buf_text(&buf), "kept");
}

int main(void)
{
	RUN(arena_keeps_and_aligns);
	RUN(arena_push_grows);
	RUN(buf_has_a_maximum);
	RUN(buf_makes_controls_visible);
	RUN(utf8_is_strict);
	RUN(fd_reads_files);
	RUN(err_is_flat);
	RUN(errors_are_sorted_and_told);
	RUN(json_writes);
	RUN(fd_closes_others);
	RUN(json_escapes);
	RUN(json_refuses_wrong_nesting);
	RUN(json_tells_of_a_full_buf);
	return CHECK_STATUS();
}
