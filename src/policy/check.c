/* check: is a document what the table of keys says? */
#define _GNU_SOURCE
#include "policy/check.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/buf.h"
#include "policy/advice.h"
#include "policy/host.h"
#include "policy/path.h"
#include "policy/value.h"

static const char *kind_text(const struct node *node)
{
	return node->kind == NODE_MAP    ? "a map"
	       : node->kind == NODE_LIST ? "a list"
					 : "a single value";
}

/* What an element or key is called in a message: the element of a list by its list. */
static const char *called(const struct key *key, char text[SHOWN_MAX])
{
	size_t len = strlen(key->path);
	if (len > 2 && strcmp(key->path + len - 2, "[]") == 0)
		len -= 2;
	if (len >= SHOWN_MAX)
		len = SHOWN_MAX - 1;
	memcpy(text, key->path, len);
	text[len] = 0;
	return text;
}

static int wrong_kind(
	const struct key *key, const struct node *node, const char *wanted, struct err *err)
{
	char name[SHOWN_MAX], shown[SHOWN_MAX], hint[ADVICE_MAX];
	node_error(node, false, err, "'%s' takes %s, not %s", called(key, name), wanted,
		kind_text(node));
	if (advice_kind(key, node, hint))
		return err_hint_set(err, "%s", hint);
	if (key->type == KEY_LIST && node->kind == NODE_SCALAR)
		err_hint_set(err, "write a list: %s: [%s]", key_name(key),
			text_shown(node->text, shown));
	return -1;
}

/* A value without any text, or the word null. In a list of paths ~ is the home directory. */
static bool is_null(const struct key *key, const struct node *node)
{
	if (node->kind != NODE_SCALAR || !node->plain)
		return false;
	if (strcmp(node->text, "~") == 0)
		return key->type != KEY_PATH && key->type != KEY_PATH_OR_MAP &&
		       key->type != KEY_PATTERN && key->type != KEY_WORD_OR_PATH;
	return !node->text[0] || strcmp(node->text, "null") == 0;
}

static int check_number(const struct key *key, const struct node *node, struct err *err)
{
	static const char *const forms[] = {
		[KEY_INT] = "a whole number, such as 256",
		[KEY_DURATION] = "a number with us, ms, s, m or h, such as 1.5s",
		[KEY_SIZE] =
			"a number with B, KiB, MiB, GiB, TiB, KB, MB, GB or TB, such as 512MiB",
		[KEY_CPUS] = "a number with at most three decimals, such as 1.5",
	};
	char name[SHOWN_MAX], shown[SHOWN_MAX], lo[VALUE_TEXT_MAX], hi[VALUE_TEXT_MAX];
	char hint[ADVICE_MAX];
	uint64_t value = 0;
	text_shown(node->text, shown);
	called(key, name);
	if (!node->plain && (key->type == KEY_INT || key->type == KEY_CPUS)) {
		node_error(node, false, err, "'%s' is a number, not a text", name);
		return err_hint_set(err, "write %s without quotes", shown);
	}
	int r = value_number(key->type, node->text, &value);
	if (r == -EINVAL) {
		node_error(node, false, err, "'%s' is not a value of '%s': it takes %s", shown,
			name, forms[key->type]);
		uint64_t bare;
		if (key->type == KEY_DURATION && value_int(node->text, &bare) == 0 && bare > 0)
			err_hint_set(err, "add the unit: %ss", shown);
		if (key->type == KEY_SIZE && value_int(node->text, &bare) == 0)
			err_hint_set(err, "add the unit: %sMiB, or %sB for bytes", shown, shown);
		if (advice_number(key, node->text, hint))
			err_hint_set(err, "%s", hint);
		return -1;
	}
	if (r < 0 || value < key->lo || value > key->hi) {
		value_text(key->type, key->lo, lo);
		value_text(key->type, key->hi, hi);
		if (key->lo == key->hi)
			return node_error(node, false, err,
				"%s %s is not known; this agentbox knows %s", name, shown, lo);
		return node_error(node, false, err, "%s is out of range for '%s': from %s to %s",
			shown, name, lo, hi);
	}
	return 0;
}

static int check_bool(const struct key *key, const struct node *node, struct err *err)
{
	char name[SHOWN_MAX], shown[SHOWN_MAX];
	bool value;
	if (node->plain && value_bool(node->text, &value) == 0)
		return 0;
	node_error(node, false, err, "'%s' is not a value of '%s': it takes true or false",
		text_shown(node->text, shown), called(key, name));
	if (!node->plain && value_bool(node->text, &value) == 0)
		err_hint_set(err, "write %s without quotes", node->text);
	return -1;
}

static int check_word(const struct key *key, const struct node *node, struct err *err)
{
	char name[SHOWN_MAX], shown[SHOWN_MAX], hint[ADVICE_MAX];
	if (key_has_word(key, node->text))
		return 0;
	size_t len = 0;
	const char *near = advice_word(key, node->text);
	if (near)
		len = strlen(near);
	else
		near = key_nearest_word(key, node->text, &len);
	node_error(node, false, err, "'%s' is not a value of '%s': it takes one of %s%s%s%.*s%s",
		text_shown(node->text, shown), called(key, name), key->words,
		key->type == KEY_WORD_OR_MAP ? ", or a map" : "", near ? "; did you mean '" : "",
		(int)len, near ? near : "", near ? "'?" : "");
	if (advice_kind(key, node, hint))
		err_hint_set(err, "%s", hint);
	return -1;
}

static int check_text(const struct key *key, const struct node *node, struct err *err)
{
	char name[SHOWN_MAX];
	size_t len = strlen(node->text);
	if (key->type == KEY_STRING && strpbrk(node->text, "\n\t"))
		return node_error(
			node, false, err, "'%s' is one line without tabs", called(key, name));
	if (len < key->lo)
		return node_error(node, false, err, "'%s' is empty", called(key, name));
	if (len > key->hi)
		return node_error(node, false, err, "'%s' is %zu bytes long; the maximum is %zu",
			called(key, name), len, (size_t)key->hi);
	return 0;
}

static int check_name(const struct key *key, const struct node *node, struct err *err)
{
	char shown[SHOWN_MAX];
	if (key->type == KEY_SYSCALL)
		return value_is_syscall(node->text)
			       ? 0
			       : node_error(node, false, err,
					 "'%s' is not the name of a system call",
					 text_shown(node->text, shown));
	bool star = key == key_row(K_env_pass_) && strcmp(node->text, "LC_*") == 0;
	if (star || value_is_variable(node->text))
		return 0;
	node_error(node, false, err, "'%s' is not the name of an environment variable",
		text_shown(node->text, shown));
	if (strchr(node->text, '*'))
		err_hint_set(err, "the only name with a star is LC_*, in env.pass");
	return -1;
}

/* What is wrong with a host or a port; a test may ask for a host that no entry could grant. */
static const char *endpoint_form(const struct key *key, const char *text)
{
	struct host_entry entry;
	uint16_t port, host_port;
	if (key->type == KEY_PORT)
		return publish_parse(text, &port, &host_port);
	const char *why = host_parse(text, &entry);
	return why || key == key_row(K_tests_host) ? why : host_unreachable(&entry);
}

static int check_scalar(const struct key *key, const struct node *node, struct err *err)
{
	const char *why = NULL, *hint = NULL;
	char shown[SHOWN_MAX], advice[ADVICE_MAX];
	switch (key->type) {
	case KEY_BOOL:
		return check_bool(key, node, err);
	case KEY_WORD:
	case KEY_WORD_OR_MAP:
		return check_word(key, node, err);
	case KEY_STRING:
	case KEY_TEXT:
	case KEY_POLICY:
		return check_text(key, node, err);
	case KEY_VARIABLE:
	case KEY_SYSCALL:
		return check_name(key, node, err);
	case KEY_WORD_OR_PATH:
		if (key_has_word(key, node->text))
			return 0;
		__attribute__((fallthrough));
	case KEY_PATH:
	case KEY_PATH_OR_MAP:
	case KEY_PATTERN:
		why = advice_path(key, node->text, advice);
		if (why)
			hint = advice;
		else if (key->type == KEY_PATTERN)
			why = pattern_form(node->text, &hint);
		else
			why = path_form(node->text, &hint);
		break;
	case KEY_HOST:
	case KEY_HOST_OR_MAP:
	case KEY_PORT:
		why = endpoint_form(key, node->text);
		break;
	default:
		return check_number(key, node, err);
	}
	if (!why)
		return 0;
	node_error(node, false, err, "'%s': %s", text_shown(node->text, shown), why);
	return hint ? err_hint_set(err, "%s", hint) : -1;
}

static int check_key_name(const struct key *map, const struct node *child, struct err *err)
{
	static const struct {
		bool (*valid)(const char *);
		const char *form;
	} forms[] = {
		[NAMES_VARIABLE] = { value_is_variable,
			"a name of an environment variable: letters, digits and _" },
		[NAMES_TOOL] = { value_is_tool, "a name: letters, digits, - and _" },
		[NAMES_LANGUAGE] = { value_is_language, "a name: letters, digits and . _ + # -" },
	};
	char shown[SHOWN_MAX];
	if (forms[map->lo].valid(child->key))
		return 0;
	return node_error(child, true, err, "'%s' is not %s", text_shown(child->key, shown),
		forms[map->lo].form);
}

static int unknown_key(const struct key *map, const struct node *child, struct err *err)
{
	char shown[SHOWN_MAX], suggestion[256] = "", hint[ADVICE_MAX];
	bool advised = advice_member(map, child, hint);
	if (!advised)
		key_suggest(map, child->key, suggestion, sizeof suggestion);
	node_error(child, true, err, "unknown key '%s'%s%s%s%s", text_shown(child->key, shown),
		map ? " in '" : "", map ? map->path : "", map ? "'" : "", suggestion);
	return advised ? err_hint_set(err, "%s", hint) : -1;
}

/* The members of a map; `map` NULL: the document. */
static int check_members(const struct key *map, struct node *node, struct err *err)
{
	struct node *child = node->first, *next;
	node->first = node->last = NULL;
	node->count = 0;
	for (; child; child = next) {
		next = child->next;
		const struct key *key = key_child(map, child->key);
		if (!key)
			return unknown_key(map, child, err);
		if (map && map->type == KEY_NAMES && check_key_name(map, child, err) < 0)
			return -1;
		if (is_null(key, child)) {
			if (key != key_row(K_network))
				continue;
			child->text = "none";
		}
		if (check_value(key, child, err) < 0)
			return -1;
		node_append(node, child);
	}
	return 0;
}

static int check_elements(const struct key *list, struct node *node, struct err *err)
{
	char name[SHOWN_MAX];
	const struct key *key = key_element(list);
	if (node->count < list->lo)
		return node_error(node, false, err, "'%s' is empty", called(list, name));
	for (struct node *child = node->first; child; child = child->next) {
		if (is_null(key, child))
			return node_error(
				child, false, err, "an empty element in '%s'", called(list, name));
		if (check_value(key, child, err) < 0)
			return -1;
	}
	return 0;
}

int check_value(const struct key *key, struct node *node, struct err *err)
{
	switch (key->type) {
	case KEY_MAP:
	case KEY_NAMES:
		return node->kind == NODE_MAP ? check_members(key, node, err)
					      : wrong_kind(key, node, "a map", err);
	case KEY_LIST:
		return node->kind == NODE_LIST ? check_elements(key, node, err)
					       : wrong_kind(key, node, "a list", err);
	case KEY_PATH_OR_MAP:
	case KEY_HOST_OR_MAP:
	case KEY_WORD_OR_MAP:
		if (node->kind == NODE_MAP)
			return check_members(key, node, err);
		break;
	default:
		break;
	}
	if (node->kind == NODE_SCALAR)
		return check_scalar(key, node, err);
	AUTO_BUF type = { .max = 256 };
	key_type_text(key, &type);
	char name[SHOWN_MAX];
	node_error(node, false, err, "'%s' takes one value (%s), not %s", called(key, name),
		buf_text(&type), kind_text(node));
	char hint[ADVICE_MAX];
	return advice_kind(key, node, hint) ? err_hint_set(err, "%s", hint) : -1;
}

int check_document(struct node *root, struct err *err)
{
	if (check_members(NULL, root, err) < 0)
		return -1;
	if (!node_get(root, "version")) {
		node_error(root, false, err, "the key 'version' is missing");
		return err_hint_set(err, "begin the file with the line: version: 1");
	}
	return 0;
}
