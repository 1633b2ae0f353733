/*
 * snippet: turns --lang and --code into the command that the policy's `code` gives for the
 * language. The text becomes a file inside the box, never an argument.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/cli.h"

#define SNIPPET_PATH "/run/agentbox/snippet"
#define SNIPPET_SLOT "{file}"

static const struct policy_code *find_lang(const struct policy *policy, const char *lang)
{
	for (size_t i = 0; i < policy->code_count; i++)
		if (strcmp(policy->code[i].lang, lang) == 0)
			return &policy->code[i];
	return NULL;
}

static int unknown_lang(const struct policy *policy, const char *lang, struct err *err)
{
	err_set(err, ERR_usage, 0, "policy \"%s\" does not say how to run --lang \"%.64s\"",
		policy->name ? policy->name : "", lang);
	if (policy->code_count == 0)
		return err_hint_set(
			err, "code: {%.32s: {command: [%.32s, \"" SNIPPET_SLOT "\"]}}", lang, lang);
	AUTO_BUF known = { .max = sizeof err->hint };
	for (size_t i = 0; i < policy->code_count; i++)
		if (buf_addf(&known, "%s%s", i ? ", " : "", policy->code[i].lang) < 0)
			break;
	return err_hint_set(err, "it knows: %s", buf_text(&known));
}

/* The word with the path in place of its slot; the word itself without one. */
static const char *fill_slot(struct arena *arena, const char *word, const char *path)
{
	const char *slot = strstr(word, SNIPPET_SLOT);
	if (!slot)
		return word;
	return arena_printf(
		arena, "%.*s%s%s", (int)(slot - word), word, path, slot + strlen(SNIPPET_SLOT));
}

int snippet_request(const struct policy *policy, const char *lang, const char *text, size_t len,
	char *const *args, size_t arg_count, struct arena *arena, struct request *request,
	struct err *err)
{
	const struct policy_code *code = find_lang(policy, lang);
	if (!code)
		return unknown_lang(policy, lang, err);
	if (len > SNIPPET_MAX)
		return err_set(
			err, ERR_usage, 0, "the snippet is longer than %zu bytes", SNIPPET_MAX);
	const char *path = arena_printf(arena, SNIPPET_PATH "%s", code->suffix);
	const char **argv = ARENA_ARRAY(arena, code->command_count + arg_count + 1, const char *);
	size_t argc = 0;
	for (size_t i = 0; i < code->command_count; i++)
		argv[argc++] = fill_slot(arena, code->command[i].value, path);
	for (size_t i = 0; i < arg_count; i++)
		argv[argc++] = args[i];
	request->argv = argv;
	request->argc = argc;
	request->code_path = path;
	request->code = text;
	request->code_len = len;
	return 0;
}

/* One part of a snippet; the count, 0 at end of file, or -errno. */
static ssize_t read_part(int fd, char *part, size_t size)
{
	for (;;) {
		ssize_t n = read(fd, part, size);
		if (n >= 0)
			return n;
		/* A caller's pipe may be non-blocking. */
		if (errno == EAGAIN)
			poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, -1);
		else if (errno != EINTR)
			return -errno;
	}
}

int snippet_read(
	int fd, struct arena *arena, const char **ret_text, size_t *ret_len, struct err *err)
{
	AUTO_BUF text = { .max = SNIPPET_MAX };
	char part[16384];
	ssize_t n;
	while ((n = read_part(fd, part, sizeof part)) > 0)
		if (buf_add(&text, part, (size_t)n) < 0)
			return err_set(err, ERR_usage, 0,
				"--code -: the snippet is longer than %zu bytes", SNIPPET_MAX);
	if (n < 0)
		return err_set(err, ERR_usage, (int)-n, "--code -: cannot read stdin: %s",
			strerror((int)-n));
	*ret_text = arena_strndup(arena, buf_text(&text), text.len);
	*ret_len = text.len;
	return 0;
}
