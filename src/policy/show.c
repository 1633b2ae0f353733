/*
 * show: the merged policy for people (YAML, each line with where it came from) and for programs
 * (JSON with a parallel map of origins). What is printed as YAML loads again to the same policy.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "policy/keys.h"
#include "policy/tree.h"
#include "policy/value.h"

#define POINTER_MAX 512 /* a JSON pointer: names are bounded by their forms, depth by the table */

/* Visit the members of a map in the order of the table; those of a map of names as they stand. */
struct member {
	const struct key *key;
	const struct node *node;
};

static bool next_member(const struct key *map, const struct node *parent, struct member *m)
{
	if (map && map->type == KEY_NAMES) {
		m->node = m->key ? m->node->next : parent->first;
		m->key = map + 1;
		return m->node != NULL;
	}
	while ((m->key = key_next(map, m->key))) {
		m->node = m->key == key_row(K_extends) ? NULL : node_get(parent, key_name(m->key));
		if (m->node)
			return true;
	}
	return false;
}

/* Would other readers of YAML, too, take this unquoted word for text? */
static bool plain_word(const char *text)
{
	static const char *const taken[] = { "y", "n", "yes", "no", "on", "off", "true", "false",
		"null" };
	for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
		if (strcasecmp(text, taken[i]) == 0)
			return false;
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/_0123456789.+-";
	return text[0] && strcspn(text, letters) == 0 && !strchr("0123456789.+-", text[0]) &&
	       strspn(text, letters) == strlen(text);
}

static void put_quoted(struct buf *out, const char *text)
{
	size_t len = strlen(text);
	buf_adds(out, "\"");
	while (len) {
		uint32_t rune = 0;
		size_t n = utf8_decode(text, len, &rune);
		if (n == 0)
			n = 1;
		if (rune == '"' || rune == '\\')
			buf_addf(out, "\\%c", (char)rune);
		else if (rune == '\n')
			buf_adds(out, "\\n");
		else if (rune == '\t')
			buf_adds(out, "\\t");
		else if (rune == 0xfeff || rune == 0xfffe || rune == 0xffff)
			buf_addf(out, "\\u%04X", (unsigned)rune);
		else
			buf_add(out, text, n);
		text += n;
		len -= n;
	}
	buf_adds(out, "\"");
}

static void put_word(struct buf *out, const char *text)
{
	if (plain_word(text))
		buf_adds(out, text);
	else
		put_quoted(out, text);
}

/* A pair of ports is a text: other readers of YAML take 22:80 for a number. */
static bool lone_port(const struct key *key, const struct node *node)
{
	return key->type == KEY_PORT && !strchr(node->text, ':');
}

static void put_scalar(struct buf *out, const struct key *key, const struct node *node)
{
	if (value_is_number(key->type) || key->type == KEY_BOOL || lone_port(key, node))
		buf_adds(out, node->text);
	else
		put_word(out, node->text);
}

/* On one line: what is taken as a whole. */
static void put_flow(struct buf *out, const struct key *key, const struct node *node)
{
	if (node->kind == NODE_SCALAR) {
		put_scalar(out, key, node);
	} else if (node->kind == NODE_LIST) {
		buf_adds(out, "[");
		for (const struct node *e = node->first; e; e = e->next) {
			put_flow(out, key_element(key), e);
			buf_adds(out, e->next ? ", " : "");
		}
		buf_adds(out, "]");
	} else {
		const char *between = "";
		buf_adds(out, "{");
		for (struct member m = { 0 }; next_member(key, node, &m); between = ", ") {
			buf_adds(out, between);
			put_word(out, m.node->key);
			buf_adds(out, ": ");
			put_flow(out, m.key, m.node);
		}
		buf_adds(out, "}");
	}
}

static void put_origin(struct buf *out, const struct node *node)
{
	struct origin at = node_origin(node);
	if (!origin_set(&at)) {
		buf_adds(out, "default");
		return;
	}
	buf_add_visible(out, at.file, strlen(at.file), false);
	if (at.line)
		buf_addf(out, ":%d", at.line);
}

static void end_line(struct buf *out, const struct node *node)
{
	buf_adds(out, "  # ");
	put_origin(out, node);
	buf_adds(out, "\n");
}

static void put_members(struct buf *out, const struct key *map, const struct node *node, int indent)
{
	for (struct member m = { 0 }; next_member(map, node, &m);) {
		buf_addf(out, "%*s", indent, "");
		put_word(out, m.node->key);
		buf_adds(out, ":");
		bool block = m.node->kind == NODE_MAP ||
			     (m.node->kind == NODE_LIST && m.key->merge == KEY_APPEND);
		if (!block || !m.node->count) {
			buf_adds(out, " ");
			put_flow(out, m.key, m.node);
			end_line(out, m.node);
			continue;
		}
		end_line(out, m.node);
		if (m.node->kind == NODE_MAP) {
			put_members(out, m.key, m.node, indent + 2);
			continue;
		}
		for (const struct node *e = m.node->first; e; e = e->next) {
			buf_addf(out, "%*s- ", indent + 2, "");
			put_flow(out, key_element(m.key), e);
			end_line(out, e);
		}
	}
}

int policy_show_yaml(const struct policy *policy, struct buf *out)
{
	size_t before = out->len;
	put_members(out, NULL, policy->tree->root, 0);
	return out->full || out->len == before ? -1 : 0;
}

static void json_value(
	struct json *json, const struct key *key, const char *name, const struct node *node)
{
	uint64_t number = 0;
	if (node->kind == NODE_MAP) {
		json_open_object(json, name);
		for (struct member m = { 0 }; next_member(key, node, &m);)
			json_value(json, m.key, m.node->key, m.node);
		json_close(json);
	} else if (node->kind == NODE_LIST) {
		json_open_array(json, name);
		for (const struct node *e = node->first; e; e = e->next)
			json_value(json, key_element(key), NULL, e);
		json_close(json);
	} else if (key->type == KEY_BOOL) {
		json_put_bool(json, name, strcmp(node->text, "true") == 0);
	} else if (lone_port(key, node)) {
		value_number(KEY_INT, node->text, &number);
		json_put_uint(json, name, number);
	} else if (key->type == KEY_INT || key->type == KEY_CPUS) {
		value_number(key->type, node->text, &number);
		if (key->type == KEY_INT)
			json_put_uint(json, name, number);
		else
			json_put_thousandths(json, name, number);
	} else {
		json_put_text(json, name, node->text);
	}
}

static void json_origin(struct json *json, const char *pointer, const struct node *node)
{
	struct origin at = node_origin(node);
	AUTO_BUF text = { .max = 8192 };
	put_origin(&text, node);
	json_put_text(json, pointer, origin_set(&at) ? buf_text(&text) : NULL);
}

/* Where each value came from, under its JSON pointer; values taken as a whole have one origin. */
static void json_origins(
	struct json *json, const struct key *map, const struct node *node, const char *pointer)
{
	char own[POINTER_MAX];
	for (struct member m = { 0 }; next_member(map, node, &m);) {
		snprintf(own, sizeof own, "%s/%s", pointer, m.node->key);
		if (m.node->kind == NODE_MAP && m.node->count) {
			json_origins(json, m.key, m.node, own);
			continue;
		}
		if (m.node->kind != NODE_LIST || m.key->merge != KEY_APPEND || !m.node->count) {
			json_origin(json, own, m.node);
			continue;
		}
		size_t len = strlen(own), i = 0;
		for (const struct node *e = m.node->first; e; e = e->next, i++) {
			snprintf(own + len, sizeof own - len, "/%zu", i);
			json_origin(json, own, e);
		}
	}
}

int policy_show_json(const struct policy *policy, struct buf *out)
{
	struct json json;
	const struct node *root = policy->tree->root;
	json_begin(&json, out, false);
	json_open_object(&json, NULL);
	json_open_object(&json, "policy");
	for (struct member m = { 0 }; next_member(NULL, root, &m);)
		json_value(&json, m.key, m.node->key, m.node);
	json_close(&json);
	json_open_object(&json, "origin");
	json_origins(&json, NULL, root, "");
	json_close(&json);
	json_close(&json);
	return json_end(&json) < 0 ? -1 : 0;
}
