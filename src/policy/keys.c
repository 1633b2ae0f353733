/* keys: the table of every key, look-up in it, the nearest name, and its dump. */
#define _GNU_SOURCE
#include "policy/keys.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "policy/value.h"

#define NAME_MAX_NEAR 40 /* longer names are not compared */

static const struct key table[K_COUNT_] = {
#define KEY(id, path, type, def, merge, lo, hi, words, help)                                       \
	[K_##id] = { path, KEY_##type, KEY_##merge, def, lo, hi, words, help },
#include "policy/keys.def"
#undef KEY
};

const struct key *key_row(enum key_id id)
{
	return &table[id];
}

const char *key_name(const struct key *key)
{
	const char *dot = strrchr(key->path, '.');
	const char *name = dot ? dot + 1 : key->path;
	const char *element = strstr(name, "[]");
	return element ? element : name;
}

/* The part of `key`'s path below `parent`, or NULL when it does not lie below it. */
static const char *below(const struct key *parent, const struct key *key)
{
	if (!parent)
		return key->path;
	size_t len = strlen(parent->path);
	if (strncmp(key->path, parent->path, len) != 0)
		return NULL;
	const char *rest = key->path + len;
	if (*rest == '.')
		return rest + 1;
	return *rest == '[' ? rest : NULL;
}

static bool direct(const char *rest)
{
	return strcmp(rest, "[]") == 0 || !rest[strcspn(rest, ".[")];
}

const struct key *key_next(const struct key *parent, const struct key *after)
{
	const struct key *key = after ? after + 1 : parent ? parent + 1 : table;
	for (; key < table + K_COUNT_; key++) {
		const char *rest = below(parent, key);
		if (!rest)
			return NULL;
		if (direct(rest))
			return key;
	}
	return NULL;
}

const struct key *key_child(const struct key *parent, const char *name)
{
	const struct key *key = parent ? parent + 1 : table;
	for (; key < table + K_COUNT_; key++) {
		const char *rest = below(parent, key);
		if (!rest)
			return NULL;
		if (rest[0] == '*' && !rest[1])
			return key;
		/* The first letter decides nearly always; each key of each policy comes by here. */
		if (rest[0] == name[0] && strcmp(rest, name) == 0 && direct(name))
			return key;
	}
	return NULL;
}

const struct key *key_element(const struct key *list)
{
	return list + 1;
}

const struct key *key_find(const char *path)
{
	for (const struct key *key = table; key < table + K_COUNT_; key++)
		if (strcmp(key->path, path) == 0)
			return key;
	return NULL;
}

bool key_has_word(const struct key *key, const char *word)
{
	size_t len = strlen(word);
	for (const char *p = key->words; p && *p;) {
		size_t n = strcspn(p, "|");
		if (n == len && memcmp(p, word, n) == 0)
			return true;
		p += n + (p[n] == '|');
	}
	return false;
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;
	return m < c ? m : c;
}

/* Letters put in, left out, changed, or two neighbours swapped. Both lengths <= NAME_MAX_NEAR. */
static unsigned distance(const char *a, size_t alen, const char *b, size_t blen)
{
	unsigned row[3][NAME_MAX_NEAR + 1];
	for (size_t j = 0; j <= blen; j++)
		row[0][j] = (unsigned)j;
	for (size_t i = 1; i <= alen; i++) {
		unsigned *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
		now[0] = (unsigned)i;
		for (size_t j = 1; j <= blen; j++) {
			unsigned change = last[j - 1] + (a[i - 1] != b[j - 1]);
			now[j] = min3(change, last[j] + 1, now[j - 1] + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
				before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}
	}
	return row[alen % 3][blen];
}

/* Distance when it is small enough to be a slip of the hand, else -1. */
static int near(const char *a, const char *b, size_t blen)
{
	size_t alen = strlen(a);
	if (alen > NAME_MAX_NEAR || blen > NAME_MAX_NEAR || !alen)
		return -1;
	unsigned d = distance(a, alen, b, blen);
	unsigned most = alen <= 2 ? 0 : alen <= 4 ? 1 : alen <= 7 ? 2 : 3;
	return d <= most ? (int)d : -1;
}

int key_near(const char *word, const char *other)
{
	return near(word, other, strlen(other));
}

static const struct key *nearest_child(
	const struct key *parent, const char *name, int *ret_distance)
{
	const struct key *best = NULL;
	for (const struct key *key = key_next(parent, NULL); key; key = key_next(parent, key)) {
		const char *other = key_name(key);
		int d = near(name, other, strlen(other));
		if (d >= 0 && (!best || d < *ret_distance)) {
			best = key;
			*ret_distance = d;
		}
	}
	return best;
}

/* Does its path hold no name that the policy chooses, and no element of a list? */
static bool fixed(const struct key *key)
{
	return !strpbrk(key->path, "*[");
}

/*
 * Where a known key of that name belongs: the parents' paths, at most three. Those inside of one
 * tool, language or test are named only when there is no other.
 */
static bool elsewhere(const char *name, char *text, size_t size)
{
	int found = 0;
	size_t used = 0;
	bool some_fixed = false;
	for (const struct key *key = table; key < table + K_COUNT_; key++)
		some_fixed |= fixed(key) && strcmp(key_name(key), name) == 0;
	for (const struct key *key = table; key < table + K_COUNT_ && found < 3; key++) {
		const char *own = key_name(key);
		if (strcmp(own, name) != 0 || own[0] == '*' || own[0] == '[' || used >= size ||
			(some_fixed && !fixed(key)))
			continue;
		size_t len = (size_t)(own - key->path);
		if (len == 0)
			used += (size_t)snprintf(text + used, size - used, "%s the top level",
				found ? " or" : "; it belongs at");
		else
			used += (size_t)snprintf(text + used, size - used, "%s '%.*s'",
				found ? " or" : "; it belongs in", (int)len - 1, key->path);
		found++;
	}
	return found > 0;
}

void key_suggest(const struct key *parent, const char *name, char *text, size_t size)
{
	int d = 0;
	const struct key *child = nearest_child(parent, name, &d);
	text[0] = 0;
	if ((!child || d > 1) && elsewhere(name, text, size))
		return;
	if (child) {
		snprintf(text, size, "; did you mean '%s'?", key_name(child));
		return;
	}
	for (int pass = 0; pass < 2; pass++)
		for (const struct key *key = table; key < table + K_COUNT_; key++) {
			const char *own = key_name(key);
			if (fixed(key) != (pass == 0) || near(name, own, strlen(own)) < 0)
				continue;
			snprintf(text, size, "; did you mean '%s'?", key->path);
			return;
		}
	size_t used = (size_t)snprintf(text, size, "; known here:");
	for (const struct key *key = key_next(parent, NULL); key && used < size;
		key = key_next(parent, key))
		used += (size_t)snprintf(text + used, size - used, " %s", key_name(key));
}

const char *key_nearest_word(const struct key *key, const char *word, size_t *ret_len)
{
	const char *best = NULL;
	int best_distance = 0;
	for (const char *p = key->words; p && *p;) {
		size_t n = strcspn(p, "|");
		int d = near(word, p, n);
		if (d >= 0 && (!best || d < best_distance)) {
			best = p;
			best_distance = d;
			*ret_len = n;
		}
		p += n + (p[n] == '|');
	}
	return best;
}

static const char *const type_names[] = {
	[KEY_MAP] = "map",
	[KEY_NAMES] = "map of names",
	[KEY_LIST] = "list",
	[KEY_INT] = "integer",
	[KEY_BOOL] = "boolean",
	[KEY_DURATION] = "duration",
	[KEY_SIZE] = "size",
	[KEY_CPUS] = "number",
	[KEY_WORD] = "word",
	[KEY_STRING] = "string",
	[KEY_TEXT] = "text",
	[KEY_PATH] = "path",
	[KEY_PATTERN] = "pattern",
	[KEY_HOST] = "host",
	[KEY_PORT] = "port",
	[KEY_POLICY] = "policy",
	[KEY_VARIABLE] = "variable",
	[KEY_SYSCALL] = "system call",
	[KEY_WORD_OR_PATH] = "word or path",
	[KEY_PATH_OR_MAP] = "path or map",
	[KEY_HOST_OR_MAP] = "host or map",
	[KEY_WORD_OR_MAP] = "word or map",
};

int key_type_text(const struct key *key, struct buf *out)
{
	char lo[VALUE_TEXT_MAX], hi[VALUE_TEXT_MAX];
	int r = buf_adds(out, type_names[key->type]);
	if (value_is_number(key->type)) {
		value_text(key->type, key->lo, lo);
		value_text(key->type, key->hi, hi);
		r |= buf_addf(out, " %s..%s", lo, hi);
	}
	if (key->words)
		r |= buf_addf(out, ": %s", key->words);
	return r;
}

int policy_dump_keys(struct buf *out)
{
	static const char *const merges[] = {
		[KEY_REPLACE] = "replace",
		[KEY_MERGE] = "merge",
		[KEY_APPEND] = "append",
		[KEY_OWN] = "own",
		[KEY_NONE] = "-",
	};
	int r = 0;
	for (const struct key *key = table; key < table + K_COUNT_ && r == 0; key++) {
		buf_addf(out, "%s\t", key->path);
		key_type_text(key, out);
		r = buf_addf(out, "\t%s\t%s\t%s\n", key->def[0] ? key->def : "-",
			merges[key->merge], key->help);
	}
	return r;
}
