/*
 * session_meta: what a session is, as a file. It is the caller's own, and yet read strictly: one
 * that is not understood to its last byte makes the session a broken one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "workspace/session_files.h"

#define FORMAT "session 1\n" /* the first line */

static void put_text(struct buf *out, const char *key, const char *text)
{
	buf_addf(out, "%s \"", key);
	for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
		if (*at == '"' || *at == '\\')
			buf_addf(out, "\\%c", *at);
		else if (*at == '\n')
			buf_adds(out, "\\n");
		else if (*at < 0x20 || *at == 0x7f)
			buf_addf(out, "\\u%04x", *at);
		else
			buf_add(out, at, 1);
	}
	buf_adds(out, "\"\n");
}

int session_meta_write(int dir, const struct session_source *source, int64_t created_ns)
{
	AUTO_BUF out = { .max = SESSION_META_MAX };
	buf_adds(&out, FORMAT);
	buf_addf(&out, "created %" PRId64 "\n", created_ns);
	put_text(&out, "workspace", source->workspace);
	put_text(&out, "policy", source->policy);
	put_text(&out, "sha256", source->policy_sha256);
	for (size_t i = 0; i < source->source_count; i++)
		put_text(&out, "source", source->sources[i]);
	put_text(&out, "text", source->policy_text);
	if (out.full)
		return -EFBIG;
	AUTO_FD file = openat(dir, "meta", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file < 0)
		return -errno;
	int r = fd_write_full(file, out.data, out.len);
	return r == 0 && fsync(file) < 0 ? -errno : r;
}

/* \uXXXX of a control character, the only ones that are written so; -1 for others. */
static int read_escape(const char *at)
{
	static const char digits[] = "0123456789abcdef";
	int value = 0;
	for (int i = 0; i < 4; i++) {
		const char *digit = at[i] ? strchr(digits, at[i]) : NULL;
		if (!digit)
			return -1;
		value = value * 16 + (int)(digit - digits);
	}
	return value > 0 && (value < 0x20 || value == 0x7f) ? value : -1;
}

/* A quoted text that ends the line; replaces its escapes in place. NULL: it is none. */
static const char *read_text(char *at)
{
	if (*at != '"')
		return NULL;
	char *text = at + 1, *to = text;
	for (at = text; *at != '"';) {
		if ((unsigned char)*at < 0x20)
			return NULL;
		if (*at != '\\') {
			*to++ = *at++;
			continue;
		}
		int value = at[1] == 'u'    ? read_escape(at + 2)
			    : at[1] == 'n'  ? '\n'
			    : at[1] == '"'  ? '"'
			    : at[1] == '\\' ? '\\'
					    : -1;
		if (value < 0)
			return NULL;
		at += at[1] == 'u' ? 6 : 2;
		*to++ = (char)value;
	}
	if (at[1])
		return NULL;
	*to = 0;
	return text;
}

static bool read_number(const char *at, int64_t *ret_number)
{
	int64_t number = 0;
	if (!*at)
		return false;
	for (; *at; at++) {
		if (*at < '0' || *at > '9' || number > (INT64_MAX - 9) / 10)
			return false;
		number = number * 10 + (*at - '0');
	}
	*ret_number = number;
	return true;
}

/* One line, without its end. Each key but `source` stands once. */
static bool read_line(char *line, struct session *session)
{
	char *value = strchr(line, ' ');
	if (!value)
		return false;
	*value++ = 0;
	if (strcmp(line, "created") == 0)
		return !session->created_ns && read_number(value, &session->created_ns);
	const struct {
		const char *key, **place;
	} texts[] = {
		{ "workspace", &session->workspace },
		{ "policy", &session->policy },
		{ "sha256", &session->policy_sha256 },
		{ "text", &session->policy_text },
	};
	const char *text = read_text(value);
	for (size_t i = 0; text && i < sizeof texts / sizeof *texts; i++)
		if (strcmp(line, texts[i].key) == 0) {
			bool first = !*texts[i].place;
			*texts[i].place = text;
			return first;
		}
	if (!text || strcmp(line, "source") != 0)
		return false;
	*(const char **)arena_push(&session->arena, &session->sources, &session->source_count,
		sizeof *session->sources) = text;
	return true;
}

static int read_all(char *text, size_t len, struct session *session)
{
	const size_t head = sizeof FORMAT - 1;
	if (strlen(text) != len || len < head || strncmp(text, FORMAT, head) != 0 ||
		text[len - 1] != '\n')
		return -EINVAL;
	for (char *at = text + head, *end; *at; at = end + 1) {
		end = strchr(at, '\n');
		*end = 0;
		if (!read_line(at, session))
			return -EINVAL;
	}
	bool whole = session->created_ns && session->workspace && session->policy &&
		     session->policy_sha256 && session->policy_text;
	return whole && session->workspace[0] == '/' ? 0 : -EINVAL;
}

int session_meta_read(int dir, struct session *ret)
{
	AUTO_FD file =
		openat(dir, "meta", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	char *text;
	size_t len;
	if (file < 0 || fstat(file, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		return -EPERM;
	int r = fd_read_file(&ret->arena, file, SESSION_META_MAX, &text, &len);
	return r < 0 ? r : read_all(text, len, ret);
}
