/*
 * diff_lines: the shortest edit between two lists of lines, found from both ends at once in linear
 * space (E. Myers, An O(ND) Difference Algorithm, 1986), with a budget. Knows no files.
 */
#include "workspace/diff_lines.h"

#include <string.h>

#define LINES_MAX  ((size_t)1 << 20) /* of both texts; more are not compared */
#define BUDGET     ((uint64_t)1 << 26)
#define PROBES_MAX 32

struct search {
	const uint32_t *a, *b; /* the class of each line: equal lines, equal numbers */
	bool *a_changed, *b_changed;
	int64_t *forward, *backward; /* furthest x on each diagonal, from index -(lines of b) - 1 */
	uint64_t budget;
};

/* A part of both lists. */
struct part {
	int64_t a, a_end, b, b_end;
};

static void split(struct arena *arena, const char *data, size_t len, struct diff_text *ret)
{
	size_t count = 0;
	for (const char *at = data, *end = data + len; at < end; count++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		at = stop ? stop + 1 : end;
	}
	*ret = (struct diff_text){ .data = data, .count = count };
	ret->starts = ARENA_ARRAY(arena, count + 1, uint32_t);
	ret->changed = ARENA_ARRAY(arena, count + 1, bool);
	const char *at = data;
	for (size_t i = 0; i < count; i++) {
		ret->starts[i] = (uint32_t)(at - data);
		const char *stop = memchr(at, '\n', len - (size_t)(at - data));
		at = stop ? stop + 1 : data + len;
	}
	ret->starts[count] = (uint32_t)len;
}

struct classes {
	struct entry {
		const char *line;
		uint32_t len, class;
	} * table;
	size_t mask;
	uint32_t next;
};

static uint32_t classify(struct classes *classes, const char *line, uint32_t len)
{
	uint64_t hash = 0x9e3779b97f4a7c15u ^ len;
	for (uint32_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)line[i]) * 0x100000001b3u;
	hash ^= hash >> 29;
	for (size_t i = 0; i < PROBES_MAX; i++) {
		struct entry *entry = &classes->table[(hash + i) & classes->mask];
		if (!entry->line)
			*entry = (struct entry){ line, len, classes->next++ };
		else if (entry->len != len || memcmp(entry->line, line, len) != 0)
			continue;
		return entry->class;
	}
	/* Made to collide: a class of its own costs a longer patch, not time. */
	return classes->next++;
}

static uint32_t *classify_all(
	struct arena *arena, struct classes *classes, const struct diff_text *text)
{
	uint32_t *list = ARENA_ARRAY(arena, text->count + 1, uint32_t);
	for (size_t i = 0; i < text->count; i++)
		list[i] = classify(classes, text->data + text->starts[i],
			text->starts[i + 1] - text->starts[i]);
	return list;
}

static void mark(bool *changed, int64_t from, int64_t to)
{
	if (to > from)
		memset(changed + from, 1, (size_t)(to - from));
}

/* Diagonals that are searched in one direction: x - y from low to high, in steps of two. */
struct reach {
	int64_t low, high;
};

static int64_t slide_forward(
	const struct search *s, const struct part *p, int64_t x, int64_t diagonal)
{
	for (int64_t y = x - diagonal; x < p->a_end && y < p->b_end && s->a[x] == s->b[y]; y++)
		x++;
	return x;
}

static int64_t slide_backward(
	const struct search *s, const struct part *p, int64_t x, int64_t diagonal)
{
	for (int64_t y = x - diagonal; x > p->a && y > p->b && s->a[x - 1] == s->b[y - 1]; y--)
		x--;
	return x;
}

/* One more edit from one end; true when the ways from both ends met: then *ret_x, *ret_diagonal. */
static bool advance(struct search *s, const struct part *p, struct reach *own,
	const struct reach *other, bool forward, bool may_meet, struct part *ret_point)
{
	const int64_t lowest = p->a - p->b_end, highest = p->a_end - p->b;
	int64_t *line = forward ? s->forward : s->backward;
	const int64_t none = forward ? -1 : INT64_MAX;
	if (own->low > lowest)
		line[--own->low - 1] = none;
	else
		own->low++;
	if (own->high < highest)
		line[++own->high + 1] = none;
	else
		own->high--;
	for (int64_t d = own->high; d >= own->low; d -= 2) {
		int64_t below = line[d - 1], above = line[d + 1], start, x;
		if (forward)
			start = below < above ? above : below + 1;
		else
			start = below < above ? below : above - 1;
		x = forward ? slide_forward(s, p, start, d) : slide_backward(s, p, start, d);
		uint64_t cost = 1 + (uint64_t)(forward ? x - start : start - x);
		s->budget -= cost < s->budget ? cost : s->budget;
		line[d] = x;
		bool met = forward ? s->backward[d] <= x : x <= s->forward[d];
		if (may_meet && d >= other->low && d <= other->high && met) {
			ret_point->a = x;
			ret_point->b = x - d;
			return true;
		}
	}
	return false;
}

/* Where a shortest edit of the part can be cut in two; false: the budget is used up. */
static bool find_middle(struct search *s, const struct part *p, struct part *ret_point)
{
	const int64_t first = p->a - p->b, last = p->a_end - p->b_end;
	struct reach forward = { first, first }, backward = { last, last };
	bool odd = (first - last) & 1;
	s->forward[first] = p->a;
	s->backward[last] = p->a_end;
	while (s->budget > 0) {
		if (advance(s, p, &forward, &backward, true, odd, ret_point) ||
			advance(s, p, &backward, &forward, false, !odd, ret_point))
			return true;
	}
	return false;
}

/* The depth is that of halving the number of edits. */
static void compare(struct search *s, struct part p)
{
	for (;;) {
		struct part middle;
		while (p.a < p.a_end && p.b < p.b_end && s->a[p.a] == s->b[p.b]) {
			p.a++;
			p.b++;
		}
		while (p.a < p.a_end && p.b < p.b_end && s->a[p.a_end - 1] == s->b[p.b_end - 1]) {
			p.a_end--;
			p.b_end--;
		}
		if (p.a == p.a_end || p.b == p.b_end || !find_middle(s, &p, &middle)) {
			mark(s->a_changed, p.a, p.a_end);
			mark(s->b_changed, p.b, p.b_end);
			return;
		}
		compare(s, (struct part){ p.a, middle.a, p.b, middle.b });
		p.a = middle.a;
		p.b = middle.b;
	}
}

void diff_lines(struct arena *arena, const char *a, size_t a_len, const char *b, size_t b_len,
	struct diff_text *ret_a, struct diff_text *ret_b)
{
	split(arena, a, a_len, ret_a);
	split(arena, b, b_len, ret_b);
	size_t total = ret_a->count + ret_b->count;
	if (total > LINES_MAX || ret_a->count == 0 || ret_b->count == 0) {
		mark(ret_a->changed, 0, (int64_t)ret_a->count);
		mark(ret_b->changed, 0, (int64_t)ret_b->count);
		return;
	}
	struct arena own = { 0 };
	struct classes classes = { .mask = 1 };
	while (classes.mask < 2 * total)
		classes.mask *= 2;
	classes.table = ARENA_ARRAY(&own, classes.mask, struct entry);
	classes.mask--;
	struct search s = {
		.a = classify_all(&own, &classes, ret_a),
		.b = classify_all(&own, &classes, ret_b),
		.a_changed = ret_a->changed,
		.b_changed = ret_b->changed,
		.budget = BUDGET,
	};
	s.forward = ARENA_ARRAY(&own, total + 4, int64_t) + ret_b->count + 1;
	s.backward = ARENA_ARRAY(&own, total + 4, int64_t) + ret_b->count + 1;
	compare(&s, (struct part){ 0, (int64_t)ret_a->count, 0, (int64_t)ret_b->count });
	arena_free(&own);
}
