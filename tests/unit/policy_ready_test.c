/* policy_ready_test: the trees made while agentbox was built are those that the parser makes now.
 */
#define _GNU_SOURCE
#include "policy/ready.h"
#include "check.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = { "build", "default", "node", "python", "shell", "strict" };

static size_t read_policy(const char *name, char *text, size_t size)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s.yaml", POLICIES_DIR, name);
	FILE *file = fopen(path, "r");
	size_t len = file ? fread(text, 1, size, file) : 0;
	if (file)
		fclose(file);
	return len;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static void check_same(const struct node *a, const struct node *b)
{
	CHECK(a->kind == b->kind && a->plain == b->plain && a->count == b->count);
	CHECK(a->line == b->line && a->column == b->column);
	CHECK(a->key_line == b->key_line && a->key_column == b->key_column);
	CHECK(a->source == b->source);
	CHECK(same_text(a->key, b->key) && same_text(a->text, b->text));
	const struct node *x = a->first, *y = b->first;
	for (; x && y; x = x->next, y = y->next) {
		CHECK(x->next || x == a->last);
		check_same(x, y);
	}
	CHECK(!x && !y);
}

static void each_is_what_the_parser_makes(void)
{
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char text[8192];
		size_t len = read_policy(names[i], text, sizeof text);
		struct arena arena = { 0 };
		struct source source = { .file = names[i] };
		struct err err = { 0 };
		struct node *parsed = NULL;
		struct node *ready = ready_tree(&arena, &source, text, len);
		CHECK(len > 0 && len < sizeof text);
		CHECK(ready != NULL);
		CHECK(tree_parse(&arena, &source, text, len, &parsed, &err) == 0);
		if (ready && parsed)
			check_same(ready, parsed);
		arena_free(&arena);
	}
}

static void another_text_is_none_of_them(void)
{
	char text[8192];
	size_t len = read_policy("default", text, sizeof text);
	struct arena arena = { 0 };
	struct source source = { .file = "default" };
	CHECK(!ready_tree(&arena, &source, text, len - 1));
	CHECK(!ready_tree(&arena, &source, text, 0));
	for (size_t i = 0; i < len; i++) {
		text[i] ^= 1;
		CHECK(!ready_tree(&arena, &source, text, len));
		text[i] ^= 1;
	}
	CHECK(ready_tree(&arena, &source, text, len));
	arena_free(&arena);
}

int main(void)
{
	RUN(each_is_what_the_parser_makes);
	RUN(another_text_is_none_of_them);
	return CHECK_STATUS();
}
