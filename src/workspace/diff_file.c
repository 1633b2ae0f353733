/* diff_file: the two forms of one changed file, opened below the trees' descriptors. */
#define _GNU_SOURCE
#include "workspace/diff_file.h"
#include "base/fd.h"
#include "workspace/diff.h"

#include <errno.h>
#include <fcntl.h>
#include <sha1.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE ((size_t)32 << 10)

bool diff_file_fits(const struct change *change)
{
	/* In a list what was deleted has the type that it had; the rest may have had another. */
	return change->kind != CHANGE_DELETED || S_ISREG(change->mode) || S_ISLNK(change->mode);
}

static void begin_hash(SHA1_CTX *hash, uint64_t size)
{
	char head[40];
	int len = snprintf(head, sizeof head, "blob %llu", (unsigned long long)size);
	SHA1Init(hash);
	SHA1Update(hash, (const uint8_t *)head, (size_t)len + 1);
}

static void end_hash(SHA1_CTX *hash, char *ret)
{
	uint8_t digest[SHA1_DIGEST_LENGTH];
	SHA1Final(digest, hash);
	for (size_t i = 0; i < sizeof digest; i++)
		snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

static int hash_file(int fd, uint64_t size, char *ret)
{
	SHA1_CTX hash;
	uint8_t piece[PIECE];
	uint64_t done = 0;
	begin_hash(&hash, size);
	for (ssize_t n; (n = fd_read_full(fd, piece, sizeof piece)) != 0; done += (uint64_t)n) {
		if (n < 0)
			return (int)n;
		SHA1Update(&hash, piece, (size_t)n);
	}
	end_hash(&hash, ret);
	if (done != size)
		return -ESTALE;
	return lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

static int hold(struct arena *arena, struct diff_side *side, const char *text, size_t len)
{
	SHA1_CTX hash;
	side->text = arena_strndup(arena, "", 0);
	if (len) {
		char *copy = arena_alloc(arena, len + 1);
		memcpy(copy, text, len);
		side->text = copy;
	}
	side->size = len;
	side->binary = memchr(side->text, 0, len) != NULL;
	begin_hash(&hash, len);
	SHA1Update(&hash, (const uint8_t *)side->text, len);
	end_hash(&hash, side->hash);
	return 0;
}

static int open_link(int fd, struct arena *arena, struct diff_side *side)
{
	char text[4097];
	ssize_t n = readlinkat(fd, "", text, sizeof text);
	if (n < 0)
		return -errno;
	side->mode = "120000";
	int r = hold(arena, side, text, (size_t)n);
	side->binary = false;
	return r;
}

static int open_regular(
	int dir, const char *name, bool lend, struct arena *arena, struct diff_side *side)
{
	struct stat st;
	char *text;
	size_t len;
	AUTO_FD fd = dirs_open_name(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, lend);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ESTALE;
	side->mode = st.st_mode & 0100 ? "100755" : "100644";
	side->size = (uint64_t)st.st_size;
	if (side->size <= DIFF_TEXT_MAX) {
		struct arena own = { 0 };
		int r = fd_read_file(&own, fd, DIFF_TEXT_MAX, &text, &len);
		if (r == 0)
			r = hold(arena, side, text, len);
		arena_free(&own);
		return r == -EFBIG ? -ESTALE : r;
	}
	side->binary = true;
	side->huge = side->size > DIFF_BINARY_MAX;
	int r = side->huge ? 0 : hash_file(fd, side->size, side->hash);
	if (r == 0)
		side->fd = fd_steal(&fd);
	return r;
}

static int open_side(
	struct dirs *tree, const char *path, bool lend, struct arena *arena, struct diff_side *side)
{
	const char *name;
	struct stat st;
	int dir = dirs_parent(tree, path, &name);
	AUTO_FD fd = dir < 0 ? dir : dirs_open_name(dir, name, O_PATH, lend);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP || fd == -EXDEV)
		return 0;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	int r = 0;
	if (S_ISLNK(st.st_mode))
		r = open_link(fd, arena, side);
	else if (S_ISREG(st.st_mode))
		r = open_regular(dir, name, lend, arena, side);
	else
		return 0;
	side->there = r == 0;
	return r;
}

int diff_file_open(
	struct dirs *lower, struct dirs *upper, const struct change *change, struct diff_file *ret)
{
	struct diff_side none = { .fd = -1, .mode = "" };
	*ret = (struct diff_file){ .old = none, .new = none };
	memset(ret->old.hash, '0', sizeof ret->old.hash - 1);
	memset(ret->new.hash, '0', sizeof ret->new.hash - 1);
	int r = 0;
	if (change->kind != CHANGE_CREATED)
		r = open_side(lower, change->path, false, &ret->arena, &ret->old);
	if (r == 0 && change->kind != CHANGE_DELETED)
		r = open_side(upper, change->path, true, &ret->arena, &ret->new);
	if (r < 0)
		diff_file_close(ret);
	return r;
}

void diff_file_close(struct diff_file *file)
{
	fd_close(&file->old.fd);
	fd_close(&file->new.fd);
	arena_free(&file->arena);
}
