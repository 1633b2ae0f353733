/*
 * tree: from YAML text to nodes. The only file that knows libyaml. Works on events and stops at the
 * first one that a policy may not have, so hostile text costs no more than its first mistake.
 */
#define _GNU_SOURCE
#include "policy/tree.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/utf8.h"
#include "policy/advice.h"

struct reader {
	struct arena *arena;
	const struct source *source;
	const char *text;
	size_t len;
	struct node *stack[POLICY_DEPTH_MAX];
	int depth;
	struct node *key; /* the key that waits for its value, as a scalar */
	struct node *root;
	size_t nodes;
	int documents;
	/* libyaml counts characters; where the last one asked for lies in bytes. */
	size_t chars, bytes;
	bool wide; /* some character is longer than a byte */
	struct err *err;
};

static int fail_at(struct reader *r, int line, int column, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static int fail_at(struct reader *r, int line, int column, const char *fmt, ...)
{
	char text[sizeof r->err->text];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	err_set(r->err, ERR_policy_invalid, 0, "%s", text);
	return err_at(r->err, r->source->file, line, column);
}

#define FAIL(r, mark, ...) fail_at((r), (int)(mark).line + 1, (int)(mark).column + 1, __VA_ARGS__)

/* Characters that reorder or hide text, or that libyaml would take for the end of a line. */
static bool forbidden(uint32_t rune)
{
	return (utf8_is_control(rune) && rune != '\n' && rune != '\t') || rune == 0x2028 ||
	       rune == 0x2029;
}

/* Every character of the text, comments too, before libyaml sees any of it. */
static int check_characters(struct reader *r)
{
	int line = 1, column = 1;
	for (size_t i = 0; i < r->len;) {
		unsigned char c = (unsigned char)r->text[i];
		if (c >= 0x20 && c < 0x7f) {
			i++;
			column++;
			continue;
		}
		if (c == '\n') {
			i++;
			line++;
			column = 1;
			continue;
		}
		if (c == '\t' || (c == '\r' && i + 1 < r->len && r->text[i + 1] == '\n')) {
			i++;
			column++;
			continue;
		}
		uint32_t rune = 0;
		size_t n = utf8_decode(r->text + i, r->len - i, &rune);
		if (n == 0)
			return fail_at(r, line, column, "not UTF-8: byte 0x%02x", c);
		if (forbidden(rune))
			return fail_at(r, line, column, "control character U+%04X", rune);
		r->wide = true;
		i += n;
		column++;
	}
	return 0;
}

/* The byte at which a mark lies. Marks are asked for in rising order, so this is linear in all. */
static size_t byte_of(struct reader *r, const yaml_mark_t *mark)
{
	if (!r->wide)
		return mark->index;
	if (mark->index < r->chars) {
		r->chars = 0;
		r->bytes = 0;
	}
	while (r->chars < mark->index && r->bytes < r->len) {
		uint32_t rune;
		size_t n = utf8_decode(r->text + r->bytes, r->len - r->bytes, &rune);
		r->bytes += n ? n : 1;
		r->chars++;
	}
	return r->bytes;
}

/* libyaml lets tabs stand between words in some places; a policy may not have them in any. */
static int check_tab(struct reader *r, const yaml_mark_t *mark)
{
	size_t at = byte_of(r, mark);
	size_t i = at;
	while (i > 0 && (r->text[i - 1] == ' ' || r->text[i - 1] == '\t'))
		if (r->text[--i] == '\t')
			return fail_at(r, (int)mark->line + 1, (int)(mark->column - (at - i)) + 1,
				"a tab; use spaces");
	return 0;
}

static int check_scalar(struct reader *r, const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;
	size_t len = event->data.scalar.length;
	if (len > POLICY_SCALAR_MAX)
		return FAIL(r, event->start_mark, "a text of %zu bytes; the maximum is %d", len,
			POLICY_SCALAR_MAX);
	if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		return 0; /* without escapes: seen by check_characters */
	for (size_t i = 0; i < len;) {
		uint32_t rune = 0;
		size_t n = utf8_decode(text + i, len - i, &rune);
		if (n == 0)
			return FAIL(
				r, event->start_mark, "a text with an escape that is no character");
		if (forbidden(rune))
			return FAIL(r, event->start_mark,
				"a text with the control character U+%04X", rune);
		i += n;
	}
	return 0;
}

static struct node *new_node(struct reader *r, enum node_kind kind, const yaml_event_t *event)
{
	struct node *node = ARENA_NEW(r->arena, struct node);
	node->kind = kind;
	node->source = r->source;
	node->line = (int)event->start_mark.line + 1;
	node->column = (int)event->start_mark.column + 1;
	return node;
}

static struct node *new_scalar(struct reader *r, const yaml_event_t *event)
{
	struct node *node = new_node(r, NODE_SCALAR, event);
	node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	node->text = arena_strndup(
		r->arena, (const char *)event->data.scalar.value, event->data.scalar.length);
	return node;
}

/* A key: kept until its value comes. */
static int take_key(struct reader *r, const struct node *map, const yaml_event_t *event)
{
	if (event->type != YAML_SCALAR_EVENT)
		return FAIL(r, event->start_mark, "a key must be a word, not a list or map");
	struct node *key = new_scalar(r, event);
	char shown[SHOWN_MAX];
	if (key->plain && strcmp(key->text, "<<") == 0)
		return FAIL(r, event->start_mark,
			"merge keys (<<) are not part of a policy; use extends");
	if (!key->text[0] || strpbrk(key->text, "\n\t"))
		return FAIL(r, event->start_mark, "a key must be a word");
	const struct node *same = node_get(map, key->text);
	if (same)
		return FAIL(r, event->start_mark,
			"key '%s' stands here for the second time; the first is in line %d",
			text_shown(key->text, shown), same->key_line);
	r->key = key;
	return 0;
}

/* A value: hung in where it belongs. */
static int take_value(struct reader *r, struct node *node, const yaml_event_t *event)
{
	struct node *parent = r->depth ? r->stack[r->depth - 1] : NULL;
	if (!parent) {
		r->root = node;
	} else {
		if (parent->count >= POLICY_LIST_MAX)
			return FAIL(r, event->start_mark, "more than %d elements", POLICY_LIST_MAX);
		if (r->key) {
			node->key = r->key->text;
			node->key_line = r->key->line;
			node->key_column = r->key->column;
			r->key = NULL;
		}
		node_append(parent, node);
	}
	if (node->kind == NODE_SCALAR)
		return 0;
	if (r->depth == POLICY_DEPTH_MAX)
		return FAIL(r, event->start_mark, "nested deeper than %d levels", POLICY_DEPTH_MAX);
	r->stack[r->depth++] = node;
	return 0;
}

/* Are we inside a list of patterns? */
static bool in_patterns(const struct reader *r)
{
	const struct node *parent = r->depth ? r->stack[r->depth - 1] : NULL;
	return parent && parent->key &&
	       (strcmp(parent->key, "hide") == 0 || strcmp(parent->key, "protect") == 0);
}

/* Add how the word that begins with a sign of YAML's own is quoted; returns -1. */
static int quote(struct reader *r, const yaml_mark_t *mark)
{
	char hint[ADVICE_MAX];
	size_t at = byte_of(r, mark);
	if (at < r->len && advice_quotes(r->text + at, r->len - at, in_patterns(r), hint))
		err_hint_set(r->err, "%s", hint);
	return -1;
}

static int check_extras(struct reader *r, const yaml_event_t *event, const yaml_char_t *anchor,
	const yaml_char_t *tag)
{
	char shown[SHOWN_MAX];
	if (anchor)
		FAIL(r, event->start_mark, "anchors (&%s) are not part of a policy",
			text_shown((const char *)anchor, shown));
	else if (tag)
		FAIL(r, event->start_mark, "tags (%s) are not part of a policy",
			text_shown((const char *)tag, shown));
	return anchor || tag ? quote(r, &event->start_mark) : 0;
}

static int take_node(struct reader *r, const yaml_event_t *event)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;
	enum node_kind kind = NODE_SCALAR;
	if (event->type == YAML_SCALAR_EVENT) {
		anchor = event->data.scalar.anchor;
		tag = event->data.scalar.tag;
	} else if (event->type == YAML_SEQUENCE_START_EVENT) {
		anchor = event->data.sequence_start.anchor;
		tag = event->data.sequence_start.tag;
		kind = NODE_LIST;
	} else {
		anchor = event->data.mapping_start.anchor;
		tag = event->data.mapping_start.tag;
		kind = NODE_MAP;
	}
	if (++r->nodes > POLICY_NODES_MAX)
		return FAIL(r, event->start_mark, "more than %d words, lists and maps",
			POLICY_NODES_MAX);
	if (check_extras(r, event, anchor, tag) < 0 || check_tab(r, &event->start_mark) < 0)
		return -1;
	if (kind == NODE_SCALAR && check_scalar(r, event) < 0)
		return -1;
	const struct node *parent = r->depth ? r->stack[r->depth - 1] : NULL;
	if (parent && parent->kind == NODE_MAP && !r->key)
		return take_key(r, parent, event);
	return take_value(
		r, kind == NODE_SCALAR ? new_scalar(r, event) : new_node(r, kind, event), event);
}

static int take_event(struct reader *r, const yaml_event_t *event)
{
	char shown[SHOWN_MAX];
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (r->documents++)
			return FAIL(r, event->start_mark, "a second document; a policy is one");
		if (event->data.document_start.version_directive ||
			event->data.document_start.tag_directives.start !=
				event->data.document_start.tag_directives.end)
			return FAIL(
				r, event->start_mark, "directives (%%) are not part of a policy");
		return 0;
	case YAML_ALIAS_EVENT:
		FAIL(r, event->start_mark, "aliases (*%s) are not part of a policy",
			text_shown((const char *)event->data.alias.anchor, shown));
		return quote(r, &event->start_mark);
	case YAML_SCALAR_EVENT:
	case YAML_SEQUENCE_START_EVENT:
	case YAML_MAPPING_START_EVENT:
		return take_node(r, event);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		r->depth--;
		return 0;
	default:
		return 0;
	}
}

/* The sign that YAML keeps for itself where the error is, or where what it is in begins; else 0. */
static char sign_at(struct reader *r, const yaml_parser_t *parser, yaml_mark_t *ret_mark)
{
	const yaml_mark_t *marks[] = { &parser->context_mark, &parser->problem_mark };
	for (size_t i = parser->context ? 0 : 1; i < 2; i++) {
		size_t at = byte_of(r, marks[i]);
		if (at >= r->len || !strchr("*&!@`%", r->text[at]))
			continue;
		*ret_mark = *marks[i];
		return r->text[at];
	}
	return 0;
}

/* "wall:5s" and then a line with a key: the mistake is in the line before. */
static bool blank_missing(struct reader *r, const yaml_mark_t *mark)
{
	char hint[ADVICE_MAX];
	size_t end = byte_of(r, mark), start, at;
	int line = (int)mark->line + 1;
	/* Back over the line of the error and those without words. */
	do {
		while (end > 0 && r->text[end - 1] != '\n')
			end--;
		if (end == 0)
			return false;
		end--;
		line--;
		for (start = end; start > 0 && r->text[start - 1] != '\n'; start--)
			;
	} while (strspn(r->text + start, " \r") >= end - start);
	if (!advice_line(r->text + start, end - start, &at, hint))
		return false;
	fail_at(r, line, (int)at + 1, "not YAML: this is one word, and the next line a key");
	err_hint_set(r->err, "%s", hint);
	return true;
}

/* What libyaml could not read. */
static int syntax_error(struct reader *r, const yaml_parser_t *parser)
{
	yaml_mark_t mark = parser->problem_mark;
	const char *problem = parser->problem ? parser->problem : "unreadable";
	if (parser->error == YAML_MEMORY_ERROR)
		return err_set(r->err, ERR_no_resources, 0, "out of memory while reading a policy");
	if (parser->error == YAML_READER_ERROR)
		return fail_at(
			r, 1, 1, "not YAML: %s at byte %zu", problem, parser->problem_offset);
	/* Tabs and reserved signs have words of their own. */
	size_t at = byte_of(r, &mark);
	char c = at < r->len ? r->text[at] : 0;
	if (check_tab(r, &mark) < 0)
		return -1;
	if (c == '\t')
		return FAIL(r, mark, "a tab; use spaces");
	yaml_mark_t sign;
	c = sign_at(r, parser, &sign);
	if (c) {
		FAIL(r, sign, "not YAML: a word cannot begin with %c; quote it", c);
		return quote(r, &sign);
	}
	if (strncmp(problem, "mapping values", 14) == 0 && blank_missing(r, &mark))
		return -1;
	if (parser->context && parser->context_mark.line != mark.line)
		return FAIL(r, mark, "not YAML: %s (%s that begins in line %zu)", problem,
			parser->context, parser->context_mark.line + 1);
	return FAIL(r, mark, "not YAML: %s", problem);
}

static int read_events(struct reader *r, yaml_parser_t *parser)
{
	for (;;) {
		yaml_event_t event;
		if (!yaml_parser_parse(parser, &event))
			return syntax_error(r, parser);
		yaml_event_type_t type = event.type;
		int result = take_event(r, &event);
		yaml_event_delete(&event);
		if (result < 0 || type == YAML_STREAM_END_EVENT)
			return result;
	}
}

int tree_parse(struct arena *arena, const struct source *source, const char *text, size_t len,
	struct node **ret_root, struct err *err)
{
	struct reader r = {
		.arena = arena, .source = source, .text = text, .len = len, .err = err
	};
	struct err unheard; /* so that the functions above may look at r.err */
	if (!err)
		r.err = &unheard;
	if (len > POLICY_FILE_MAX)
		return fail_at(
			&r, 0, 0, "%zu bytes long; the maximum is %zu", len, POLICY_FILE_MAX);
	if (check_characters(&r) < 0)
		return -1;

	yaml_parser_t parser;
	if (!yaml_parser_initialize(&parser))
		return err_set(err, ERR_no_resources, 0, "out of memory while reading a policy");
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	int result = read_events(&r, &parser);
	yaml_parser_delete(&parser);
	if (result < 0)
		return -1;

	struct node *root = r.root;
	if (!root || (root->kind == NODE_SCALAR && root->plain && !root->text[0])) {
		root = node_map(arena, source);
		root->line = root->column = 1;
	}
	if (root->kind != NODE_MAP) {
		char hint[ADVICE_MAX];
		size_t at;
		fail_at(&r, root->line, root->column,
			"a policy is a map of keys, beginning with 'version: 1'");
		if (root->kind == NODE_SCALAR &&
			advice_line(root->text, strlen(root->text), &at, hint))
			err_hint_set(r.err, "%s", hint);
		return -1;
	}
	*ret_root = root;
	return 0;
}
