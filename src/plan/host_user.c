/*
 * host_user: who the caller is, by name. The local files are read directly, so that the main
 * program can be static; only when they do not know the id, a helper program asks the C library's
 * loadable modules (LDAP, systemd-homed, ...).
 */
#define _GNU_SOURCE
#include "plan/host_user.h"
#include "base/fd.h"
#include "base/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DATABASE_MAX ((size_t)4 << 20)
#define ANSWER_SIZE  4096

/* Field number `want` of a line of colon-separated fields, into arena memory. */
static char *field(struct arena *arena, const char *line, size_t len, int want)
{
	const char *end = line + len;
	while (want-- > 0) {
		line = memchr(line, ':', (size_t)(end - line));
		if (!line)
			return NULL;
		line++;
	}
	const char *stop = memchr(line, ':', (size_t)(end - line));
	return arena_strndup(arena, line, (size_t)((stop ? stop : end) - line));
}

/* The line whose third field is `id`, in a file of passwd(5)'s or group(5)'s form. */
static bool find_line(
	const char *text, size_t len, unsigned id, const char **ret_line, size_t *ret_len)
{
	char want[16];
	int digits = snprintf(want, sizeof want, ":%u:", id);
	for (const char *at = text, *end = text + len; at < end;) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t line_len = (size_t)((stop ? stop : end) - at);
		const char *first = memchr(at, ':', line_len);
		const char *second =
			first ? memchr(first + 1, ':', (size_t)(at + line_len - first - 1)) : NULL;
		if (second && (size_t)(at + line_len - second) >= (size_t)digits &&
			memcmp(second, want, (size_t)digits) == 0) {
			*ret_line = at;
			*ret_len = line_len;
			return true;
		}
		at += line_len + 1;
	}
	return false;
}

static bool in_file(
	struct arena *arena, const char *path, unsigned id, const char **ret_line, size_t *ret_len)
{
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text;
	size_t len;
	return fd >= 0 && fd_read_file(arena, fd, DATABASE_MAX, &text, &len) == 0 &&
	       find_line(text, len, id, ret_line, ret_len);
}

/*
 * Does nsswitch.conf(5) name, for "passwd" or "group", any source but the local files? systemd's
 * one knows more than them only where one of its user database services runs. Without the file the
 * C library uses the local files alone.
 */
static bool has_other_sources(struct arena *arena, const char *kind)
{
	AUTO_FD fd = open("/etc/nsswitch.conf", O_RDONLY | O_CLOEXEC);
	char *text;
	size_t len;
	if (fd < 0 || fd_read_file(arena, fd, DATABASE_MAX, &text, &len) < 0)
		return false;
	char *save_line = NULL, *save_word = NULL;
	for (char *line = strtok_r(text, "\n", &save_line); line;
		line = strtok_r(NULL, "\n", &save_line)) {
		char *word = strtok_r(line, " \t:", &save_word);
		if (!word || strcmp(word, kind) != 0)
			continue;
		while ((word = strtok_r(NULL, " \t", &save_word)) && word[0] != '#') {
			if (word[0] == '[' || strcmp(word, "files") == 0)
				continue;
			if (strcmp(word, "systemd") != 0 ||
				access("/run/systemd/userdb", F_OK) == 0)
				return true;
		}
	}
	return false;
}

/* Ask the helper; its answer is one line like the file's. */
static bool ask_helper(
	struct arena *arena, const char *kind, unsigned id, const char **ret_line, size_t *ret_len)
{
	char number[16];
	snprintf(number, sizeof number, "%u", id);
	char *argv[] = { (char *)AGENTBOX_LIBEXECDIR "/agentbox-lookup", (char *)kind, number,
		NULL };
	char *answer = arena_alloc(arena, ANSWER_SIZE);
	int status = helper_ask(argv, false, answer, ANSWER_SIZE);
	char *newline = status == 0 ? strchr(answer, '\n') : NULL;
	if (!newline)
		return false;
	*ret_line = answer;
	*ret_len = (size_t)(newline - answer);
	return true;
}

static bool look_up(struct arena *arena, const char *file, const char *kind, unsigned id,
	const char **ret_line, size_t *ret_len)
{
	return in_file(arena, file, id, ret_line, ret_len) ||
	       (has_other_sources(arena, strcmp(kind, "user") == 0 ? "passwd" : "group") &&
		       ask_helper(arena, kind, id, ret_line, ret_len));
}

/* A name must be fit to stand in the box's passwd and in its environment. */
static bool fit(const char *text)
{
	if (!text || !*text || strlen(text) > 255)
		return false;
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == ':' || *c == 0x7f)
			return false;
	return true;
}

void host_user_find(struct arena *arena, uid_t uid, gid_t gid, struct host_user *ret_user)
{
	const char *line;
	size_t len;
	const char *name = NULL, *home = NULL, *group = NULL;
	if (look_up(arena, "/etc/passwd", "user", uid, &line, &len)) {
		name = field(arena, line, len, 0);
		home = field(arena, line, len, 5);
	}
	if (look_up(arena, "/etc/group", "group", gid, &line, &len))
		group = field(arena, line, len, 0);
	ret_user->name = fit(name) ? name : "user";
	ret_user->group = fit(group) ? group : ret_user->name;
	ret_user->home = fit(home) && home[0] == '/' && home[1] ? home : NULL;
}
