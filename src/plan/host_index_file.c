/*
 * host_index_file: the file of an index, in the caller's cache. Trusts no directory and no file
 * that it has not looked at by descriptor; whatever fails, there is no index.
 */
#define _GNU_SOURCE
#include "plan/host_index.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define DAY_S         86400
#define FILE_DAYS_MAX 30 /* an index that was not renewed for so long goes */
#define TEMPORARY     "new."

const char *host_index_place(struct arena *arena, const char *const *env, uid_t uid)
{
	const char *cache = NULL, *home = NULL;
	if (!env)
		return NULL;
	if (uid == 0)
		return "/var/cache/agentbox";
	for (size_t i = 0; env[i]; i++) {
		if (strncmp(env[i], "XDG_CACHE_HOME=/", 16) == 0)
			cache = env[i] + 15;
		if (strncmp(env[i], "HOME=/", 6) == 0)
			home = env[i] + 5;
	}
	if (cache)
		return arena_join(arena, cache, "/agentbox", "");
	return home ? arena_join(arena, home, "/.cache/agentbox", "") : NULL;
}

/* The parent is an ordinary directory; the last component is the caller's alone. */
int index_dir_open(const char *cache, bool make)
{
	char parent[4096];
	const char *last = strrchr(cache, '/');
	size_t len = (size_t)(last - cache);
	if (len == 0 || len >= sizeof parent)
		return -ENAMETOOLONG;
	memcpy(parent, cache, len);
	parent[len] = 0;
	if (make && mkdir(parent, 0700) < 0 && errno != EEXIST)
		return -errno;
	AUTO_FD up = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (up < 0)
		return -errno;
	if (make && mkdirat(up, last + 1, 0700) < 0 && errno != EEXIST)
		return -errno;
	AUTO_FD dir = openat(up, last + 1, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	if (dir < 0 || fstat(dir, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() || (st.st_mode & 077))
		return -EPERM;
	return fd_steal(&dir);
}

/*
 * File systems of this kernel alone, whose change times are its own clock's. Those that others
 * write as well, or that a program serves, may say what they like.
 */
static bool keeps_time(int fd)
{
	static const unsigned long kinds[] = {
		0xef53,     /* ext2, ext3, ext4 */
		0x58465342, /* xfs */
		0x9123683e, /* btrfs */
		0x01021994, /* tmpfs */
		0xf2f52010, /* f2fs */
		0x2fc12fc1, /* zfs */
		0xca451a4e, /* bcachefs */
		0x794c7630, /* overlayfs */
	};
	struct statfs fs;
	if (fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (((unsigned long)fs.f_type & 0xffffffff) == kinds[i])
			return true;
	return false;
}

/* The file's bytes are taken only if they are whole and were made for just this. */
static void load(struct host_index *index, int fd)
{
	struct index_head head;
	struct stat st;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
		(st.st_mode & 077) || st.st_nlink != 1)
		return;
	if (st.st_size < (off_t)(sizeof head + index->key_len) ||
		st.st_size > (off_t)INDEX_SIZE_MAX)
		return;
	size_t size = (size_t)st.st_size;
	char *bytes = malloc(size);
	if (!bytes)
		return;
	const char *body = bytes + sizeof head;
	if (fd_read_full(fd, bytes, size) == (ssize_t)size) {
		memcpy(&head, bytes, sizeof head);
		if (memcmp(head.magic, INDEX_MAGIC, sizeof head.magic) == 0 &&
			head.bytes == size - sizeof head &&
			memcmp(body, index->key, index->key_len) == 0 &&
			head.sum == index_sum(body, size - sizeof head)) {
			index->bytes = bytes;
			index->len = size;
			index->old = (struct index_part){ body + index->key_len, bytes + size };
			index->same = sizeof head + index->key_len;
			index->differs = false;
			return;
		}
	}
	free(bytes);
}

void host_index_open(struct host_index *index, struct arena *arena, const char *cache, int tree,
	const char *key, size_t key_len)
{
	struct stat st;
	if (!cache || fstat(tree, &st) < 0 || !keeps_time(tree))
		return;
	AUTO_BUF text = { 0 };
	uint64_t ids[3] = { key_len, st.st_dev, st.st_ino };
	struct index_head head = { .magic = INDEX_MAGIC };
	if (buf_add(&text, ids, sizeof ids) < 0 || buf_add(&text, key, key_len) < 0)
		return;
	index->cache = cache;
	index->dev = st.st_dev;
	index->key = memcpy(arena_alloc(arena, text.len), text.data, text.len);
	index->key_len = text.len;
	SHA256Data((const uint8_t *)index->key, index->key_len, index->name);
	index->new.max = INDEX_SIZE_MAX;
	index->on = true;
	index->differs = true;
	AUTO_FD dir = index_dir_open(cache, false);
	AUTO_FD fd = dir < 0 ? -1
			     : openat(dir, index->name,
				       O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		load(index, fd);
	if (index->differs)
		index->on = buf_add(&index->new, &head, sizeof head) == 0 &&
			    buf_add(&index->new, index->key, index->key_len) == 0;
}

/* What nobody will ask for again, and what a killed run left half written. */
static void tidy(int dir)
{
	char oldest[256] = "";
	time_t now = time(NULL), age = -1;
	size_t count = 0;
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	if (!list) {
		fd_close(&fd);
		return;
	}
	struct dirent *entry;
	struct stat st;
	while (count < 16 * INDEX_FILES_MAX && (entry = readdir(list))) {
		if (entry->d_name[0] == '.' ||
			fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISREG(st.st_mode))
			continue;
		bool half = strncmp(entry->d_name, TEMPORARY, sizeof TEMPORARY - 1) == 0;
		if (now - st.st_mtime > (half ? DAY_S / 24 : FILE_DAYS_MAX * DAY_S)) {
			(void)unlinkat(dir, entry->d_name, 0);
			continue;
		}
		count++;
		if (now - st.st_mtime > age && strlen(entry->d_name) < sizeof oldest) {
			age = now - st.st_mtime;
			memcpy(oldest, entry->d_name, strlen(entry->d_name) + 1);
		}
	}
	closedir(list);
	if (count > INDEX_FILES_MAX && oldest[0])
		(void)unlinkat(dir, oldest, 0);
}

static void write_file(struct host_index *index)
{
	char name[32];
	AUTO_FD dir = index_dir_open(index->cache, true);
	if (dir < 0)
		return;
	snprintf(name, sizeof name, TEMPORARY "%d", (int)getpid());
	AUTO_FD fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && (fd_write_full(fd, index->new.data, index->new.len) < 0 ||
			       renameat(dir, name, dir, index->name) < 0))
		(void)unlinkat(dir, name, 0);
	tidy(dir);
}

void host_index_store(struct host_index *index, uint64_t seen)
{
	struct index_head head;
	if (!index->on || seen < INDEX_ENTRIES_MIN ||
		(!index->differs && index->same == index->len))
		return;
	index_differ(index); /* the older one has more at its end */
	if (!index->on)
		return;
	char *body = index->new.data + sizeof head;
	size_t len = index->new.len - sizeof head;
	if (index->bytes &&
		index->len == index->new.len &&memcmp(index->bytes + sizeof head, body, len) == 0)
		return;
	memcpy(&head, index->new.data, sizeof head);
	head.sum = index_sum(body, len);
	head.bytes = len;
	memcpy(index->new.data, &head, sizeof head);
	write_file(index);
}

void host_index_free(struct host_index *index)
{
	free(index->bytes);
	buf_free(&index->new);
	*index = (struct host_index){ 0 };
}
