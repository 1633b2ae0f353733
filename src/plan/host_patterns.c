/* host_patterns: patterns as rows of components. Says what base/match.c says, faster. */
#define _GNU_SOURCE
#include "plan/host_patterns.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#define NAME_BYTES_MAX 255 /* a longer component matches nothing (base/match.h) */
#define BIT(n)         (UINT64_C(1) << (n))

static bool plain(const char *text, size_t len)
{
	return !memchr(text, '*', len) && !memchr(text, '?', len) && !memchr(text, '[', len);
}

static struct row_part component_of(struct arena *arena, const char *text, size_t len)
{
	struct row_part c = { .text = text, .len = len, .kind = ROW_WILD };
	if (len == 2 && memcmp(text, "**", 2) == 0) {
		c.kind = ROW_ANY;
	} else if (len > NAME_BYTES_MAX) {
		c.kind = ROW_EXACT; /* its length is that of no name */
	} else if (plain(text, len)) {
		c.kind = ROW_EXACT;
	} else if (text[0] == '*' && plain(text + 1, len - 1)) {
		c = (struct row_part){ text + 1, len - 1, ROW_ENDS };
	} else if (text[len - 1] == '*' && plain(text, len - 1)) {
		c = (struct row_part){ text, len - 1, ROW_BEGINS };
	}
	c.text = arena_strndup(arena, c.text, c.len);
	return c;
}

int row_set_add(struct row_set *set, struct arena *arena, const struct policy_pattern *from,
	const char *text, bool anywhere, bool hide, size_t number)
{
	struct row_part list[ROW_PARTS_MAX];
	unsigned count = 0;
	if (anywhere)
		list[count++] = component_of(arena, "**", 2);
	for (size_t len; *text; text += len) {
		text += strspn(text, "/");
		len = strcspn(text, "/");
		if (len == 0 || (len == 1 && *text == '.'))
			continue;
		struct row_part c = component_of(arena, text, len);
		if (c.kind == ROW_ANY && count && list[count - 1].kind == ROW_ANY)
			continue;
		if (count == ROW_PARTS_MAX)
			return -E2BIG;
		list[count++] = c;
	}
	struct row *pattern = arena_push(arena, &set->list, &set->count, sizeof *pattern);
	*pattern = (struct row){ .from = from, .hide = hide, .number = number, .count = count };
	pattern->list = ARENA_ARRAY(arena, count + 1, struct row_part);
	for (unsigned i = 0; i < count; i++) {
		pattern->list[i] = list[i];
		if (list[i].kind == ROW_ANY && i + 1 < count)
			pattern->any |= BIT(i);
	}
	return 0;
}

/* "**" may stand for no component at all, but for the last one; two never follow each other. */
static uint64_t closed(const struct row *pattern, uint64_t state)
{
	return state | (state & pattern->any) << 1;
}

uint64_t row_begin(const struct row *pattern)
{
	return pattern->count ? closed(pattern, 1) : 0;
}

static bool is_name(const struct row_part *want, const char *name, size_t len)
{
	if (len > NAME_BYTES_MAX)
		return false;
	switch (want->kind) {
	case ROW_EXACT:
		return want->len == len && memcmp(want->text, name, len) == 0;
	case ROW_ENDS:
		return want->len <= len &&
		       memcmp(want->text, name + len - want->len, want->len) == 0;
	case ROW_BEGINS:
		return want->len <= len && memcmp(want->text, name, want->len) == 0;
	case ROW_WILD:
		return fnmatch(want->text, name, FNM_NOESCAPE) == 0;
	case ROW_ANY:
		break;
	}
	return true;
}

uint64_t row_step(const struct row *pattern, uint64_t from, const char *name, size_t len)
{
	uint64_t to = 0;
	for (uint64_t left = from; left; left &= left - 1) {
		unsigned at = (unsigned)__builtin_ctzll(left);
		if (at == pattern->count)
			break;
		const struct row_part *want = &pattern->list[at];
		if (want->kind == ROW_ANY)
			to |= BIT(at) | (at + 1 == pattern->count ? BIT(at + 1) : 0);
		else if (is_name(want, name, len))
			to |= BIT(at + 1);
	}
	return closed(pattern, to);
}
