/* results: kept results as commands name and show them. Changes nothing. */
#define _GNU_SOURCE
#include "cli/results.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ID_LEN ((size_t)26)

bool results_is_id(const char *word)
{
	return strlen(word) == ID_LEN && word[0] <= '7' &&
	       strspn(word, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == ID_LEN;
}

void results_choose(const struct options *options, struct arena *arena, struct results_choice *ret)
{
	size_t first = options->arg_count > 0 && results_is_id(options->args[0]) ? 1 : 0;
	size_t count = options->arg_count - first;
	*ret = (struct results_choice){ .id = first ? options->args[0] : NULL };
	if (count == 0)
		return;
	const char **patterns = ARENA_ARRAY(arena, count + 1, const char *);
	for (size_t i = 0; i < count; i++) {
		/* As shells complete them: "./a" and "dir/". */
		const char *word = options->args[first + i];
		while (word[0] == '.' && word[1] == '/')
			word += 2;
		size_t len = strlen(word);
		while (len > 1 && word[len - 1] == '/')
			len--;
		patterns[i] = arena_strndup(arena, word, len);
	}
	ret->patterns = patterns;
}

int results_open(const struct results_choice *choice, const char *given, const char *state,
	struct kept *ret, struct err *err)
{
	struct arena arena = { 0 };
	struct err own = { 0 };
	const char *workspace = NULL;
	int r = choice->id ? 0 : paths_workspace(&arena, given, &workspace, &own);
	if (r == 0)
		r = kept_open(state, choice->id, workspace, ret, &own);
	arena_free(&arena);
	if (r == 0)
		return CLI_YES;
	if (own.code == ERR_kept_not_found) {
		say_error(&own);
		return CLI_NO;
	}
	*err = own;
	return -1;
}

void results_path(const struct changes *changes, const struct change *change, struct buf *out)
{
	if (change->layer > 0) {
		buf_adds(out, changes->roots[change->layer]);
		buf_adds(out, "/");
	}
	buf_adds(out, change->path);
}

const char *results_kind(const struct change *change)
{
	switch (change->kind) {
	case CHANGE_CREATED:
		return "created";
	case CHANGE_MODIFIED:
		return "modified";
	default:
		return "deleted";
	}
}

const char *results_type(const struct change *change)
{
	switch (change->mode & S_IFMT) {
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symlink";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	default:
		return "file";
	}
}

void results_put(struct json *json, const struct changes *changes, const struct change *change)
{
	AUTO_BUF path = { 0 };
	char mode[8];
	results_path(changes, change, &path);
	snprintf(mode, sizeof mode, "%04o", (unsigned)change->mode & 07777);
	json_put_bytes(json, "path", buf_text(&path), path.len);
	json_put_text(json, "change", results_kind(change));
	json_put_text(json, "type", results_type(change));
	if (S_ISREG(change->mode))
		json_put_uint(json, "size", change->size);
	else
		json_put_null(json, "size");
	json_put_text(json, "mode", change->kind == CHANGE_DELETED ? NULL : mode);
	json_put_bool(json, "sensitive", change->sensitive);
	if (change->target)
		json_put_bytes(json, "target", change->target, strlen(change->target));
	else
		json_put_null(json, "target");
	json_put_bool(json, "escapes", change->escapes);
}
