/* diff: which lines are common, and the forms of a patch. That git takes it is tested end to end.
 */
#include <stdlib.h>
#include <time.h>

#include "check.h"
#include "workspace/diff.h"
#include "workspace/diff_lines.h"
#include "workspace/diff_out.h"

static size_t changed(const struct diff_text *text)
{
	size_t count = 0;
	for (size_t i = 0; i < text->count; i++)
		count += text->changed[i];
	return count;
}

/* The lines that are left of both are the same, in order. */
static bool fits(const struct diff_text *a, const struct diff_text *b)
{
	size_t x = 0, y = 0;
	for (;;) {
		while (x < a->count && a->changed[x])
			x++;
		while (y < b->count && b->changed[y])
			y++;
		if (x == a->count || y == b->count)
			return x == a->count && y == b->count;
		size_t len = a->starts[x + 1] - a->starts[x];
		if (len != b->starts[y + 1] - b->starts[y] ||
			memcmp(a->data + a->starts[x], b->data + b->starts[y], len) != 0)
			return false;
		x++;
		y++;
	}
}

static size_t edits(const char *a, const char *b)
{
	struct arena arena = { 0 };
	struct diff_text one, other;
	diff_lines(&arena, a, strlen(a), b, strlen(b), &one, &other);
	CHECK(fits(&one, &other));
	size_t count = changed(&one) + changed(&other);
	arena_free(&arena);
	return count;
}

static void test_few(void)
{
	CHECK(edits("", "") == 0 && edits("a\n", "a\n") == 0);
	CHECK(edits("", "a\nb") == 2 && edits("a\nb", "") == 2);
	CHECK(edits("a\n", "a") == 2);
	CHECK(edits("a\nb\nc\n", "a\nc\n") == 1 && edits("a\nc\n", "a\nb\nc\n") == 1);
	CHECK(edits("a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n") == 5);
}

/* Against the plain table of longest common subsequences. */
static void test_shortest(void)
{
	unsigned seed = 7;
	for (int round = 0; round < 2000; round++) {
		char a[64], b[64];
		size_t n = 0, m = 0, best[32][32] = { 0 };
		for (seed = seed * 1103515245 + 12345; n < 2 * (seed >> 16) % 32; n += 2)
			memcpy(a + n, (seed >> (n % 13)) & 4 ? "x\n" : "y\n", 2);
		for (seed = seed * 1103515245 + 12345; m < 2 * (seed >> 16) % 32; m += 2)
			memcpy(b + m, (seed >> (m % 11)) & 8 ? "x\n" : "y\n", 2);
		a[n] = b[m] = 0;
		for (size_t i = 1; i <= n / 2; i++)
			for (size_t j = 1; j <= m / 2; j++) {
				size_t up = best[i - 1][j], left = best[i][j - 1];
				best[i][j] = a[2 * i - 2] == b[2 * j - 2] ? best[i - 1][j - 1] + 1
					     : up > left                  ? up
									  : left;
			}
		CHECK(edits(a, b) == n / 2 + m / 2 - 2 * best[n / 2][m / 2]);
	}
}

/* Texts that have all lines in common and none in order: the budget ends the search. */
static void test_bounded(void)
{
	size_t lines = 400000, len = 0, seed = 1;
	char *a = malloc(lines * 8), *b = malloc(lines * 8);
	for (size_t i = 0; i < lines; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		len += (size_t)snprintf(a + len, 8, "%05zu\n", seed >> 33 & 0xffff);
	}
	for (size_t i = 0; i < lines; i++)
		memcpy(b + 6 * i, a + 6 * (lines - 1 - i), 6);
	struct arena arena = { 0 };
	struct diff_text one, other;
	clock_t start = clock();
	diff_lines(&arena, a, 6 * lines, b, 6 * lines, &one, &other);
	CHECK(clock() - start < 20 * CLOCKS_PER_SEC);
	CHECK(one.count == lines && fits(&one, &other));
	arena_free(&arena);
	free(a);
	free(b);
}

static void test_quote(void)
{
	struct buf out = { 0 };
	diff_quote(&out, "a/", "plain-1.txt");
	CHECK_TEXT(buf_text(&out), "a/plain-1.txt");
	out.len = 0;
	diff_quote(&out, "b/", "\xc3\xa9 \"\\\t\n\x1b\x7f");
	CHECK_TEXT(buf_text(&out), "\"b/\\303\\251 \\\"\\\\\\t\\n\\033\\177\"");
	buf_free(&out);
}

static void test_literal(void)
{
	struct diff_out out = { .fd = -1 };
	struct diff_side none = { .fd = -1, .text = "" };
	CHECK(diff_put_literal(&out, &none) == 0);
	/* As git writes nothing: zlib's head, a last empty block, Adler-32 of nothing. */
	CHECK_TEXT(buf_text(&out.buf), "literal 0\nKcmV+b0RR6000031\n\n");
	buf_free(&out.buf);
}

int main(void)
{
	RUN(test_few);
	RUN(test_shortest);
	RUN(test_bounded);
	RUN(test_quote);
	RUN(test_literal);
	return CHECK_STATUS();
}
