/* idn: finds names that are not ASCII, and has agentbox-idn make them so. Judges no name itself. */
#define _GNU_SOURCE
#include "policy/idn.h"

#include <errno.h>
#include <string.h>

#include "base/helper.h"

#define PROGRAM    AGENTBOX_LIBEXECDIR "/agentbox-idn"
#define NAME_MAX_8 1024 /* bytes of a name in UTF-8; no longer one has an ASCII form */

struct idn {
	struct arena *arena;
	struct err *err;
	unsigned names;
};

static int refuse(const struct idn *idn, const struct node *node, const char *why)
{
	char shown[SHOWN_MAX];
	node_error(node, false, idn->err, "'%s': %s", text_shown(node->text, shown), why);
	return err_hint_set(idn->err, "write the name's ASCII form, which begins with xn--");
}

/* The name only: a star in front and a port behind are not its. */
static int convert(const struct idn *idn, struct node *node)
{
	char answer[512];
	const char *name = node->text + (strncmp(node->text, "*.", 2) == 0 ? 2 : 0);
	size_t len = strcspn(name, ":");
	if (len > NAME_MAX_8)
		return refuse(idn, node, "a name of more than 253 bytes");
	char *argv[] = { (char *)PROGRAM, (char *)"--", arena_strndup(idn->arena, name, len),
		NULL };
	int status = helper_ask(argv, true, answer, sizeof answer);
	if (status == -ENOENT)
		return 0;
	char *newline = strchr(answer, '\n');
	if (status != 0 && status != 1)
		return err_set(idn->err, ERR_internal, status < 0 ? -status : 0,
			"the program agentbox-idn failed (%d)", status);
	if (!newline)
		return refuse(idn, node, "a name that has no ASCII form");
	*newline = 0;
	if (status == 1)
		return refuse(idn, node, answer);
	node->text = arena_printf(
		idn->arena, "%.*s%s%s", (int)(name - node->text), node->text, answer, name + len);
	return 0;
}

static int look_at(struct idn *idn, struct node *node)
{
	if (!node || node->kind != NODE_SCALAR)
		return 0;
	const char *c = node->text;
	while (*c && (unsigned char)*c < 0x80)
		c++;
	if (!*c)
		return 0;
	if (++idn->names > IDN_NAMES_MAX)
		return refuse(idn, node, "the file has too many names that are not ASCII");
	return convert(idn, node);
}

static const struct node *list(const struct node *map, const char *key)
{
	const struct node *node = map && map->kind == NODE_MAP ? node_get(map, key) : NULL;
	return node && node->kind == NODE_LIST ? node : NULL;
}

int idn_document(struct arena *arena, struct node *root, struct err *err)
{
	struct idn idn = { arena, err, 0 };
	if (root->kind != NODE_MAP)
		return 0;
	const struct node *allow = list(node_get(root, "network"), "allow");
	for (struct node *node = allow ? allow->first : NULL; node; node = node->next)
		if (look_at(&idn, node) < 0)
			return -1;
	const struct node *tests = list(root, "tests");
	for (const struct node *test = tests ? tests->first : NULL; test; test = test->next)
		if (test->kind == NODE_MAP && look_at(&idn, node_get(test, "host")) < 0)
			return -1;
	return 0;
}
