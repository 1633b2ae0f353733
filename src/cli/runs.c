/*
 * runs: where the records of runs are, and that of the run at hand. Never looks at the records of
 * others; runs_collect.c does.
 */
#define _GNU_SOURCE
#include "cli/runs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"

#define TRIES     100 /* for a lock that a collector holds at this very moment */
#define NEW_FILES 10  /* that collectors take away from us */
#define PAUSE_NS  1000000
#define BELOW     "agentbox/runs"

static const char *absolute(const char *name)
{
	const char *value = getenv(name);
	return value && value[0] == '/' ? value : NULL;
}

/* A name of the caller's own words: links in it are theirs and are followed. 0 or -1: none. */
static int base_path(size_t at, char *ret_path, size_t size)
{
	const char *base = "/run", *below = "";
	if (geteuid() != 0) {
		base = absolute(at == 0 ? "XDG_RUNTIME_DIR" : "XDG_STATE_HOME");
		if (!base && at == 1) {
			base = absolute("HOME");
			below = "/.local/state";
		}
	} else if (at > 0) {
		base = NULL;
	}
	int len = base ? snprintf(ret_path, size, "%s%s", base, below) : -1;
	return len < 0 || (size_t)len >= size ? -1 : 0;
}

/* The directory and those that lead to it; whether that went well shows when it is opened. */
static void make_base(const char *path)
{
	char part[PATH_MAX];
	for (const char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
		size_t len = slash ? (size_t)(slash - path) : strlen(path);
		memcpy(part, path, len);
		part[len] = 0;
		(void)mkdir(part, 0700);
		if (!slash)
			return;
	}
}

/* Is the directory `name` below dir, or dir itself (""), ours, and out of everybody else's reach?
 */
static bool ours_alone(int dir, const char *name)
{
	struct stat st;
	return fstatat(dir, name, &st, AT_EMPTY_PATH) == 0 && st.st_uid == geteuid() &&
	       (st.st_mode & 077) == 0;
}

/* What is not as the specification of its variable has it is not used. */
static bool is_runtime(size_t at)
{
	return at == 0 && geteuid() != 0;
}

static int open_base(size_t at, bool make, const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && make && at == 1) {
		make_base(path);
		fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	if (is_runtime(at) && fd >= 0 && !ours_alone(fd, "")) {
		close(fd);
		return -ENOENT;
	}
	if (fd >= 0)
		return fd;
	return is_runtime(at) || errno == ENOTDIR ? -ENOENT : -errno;
}

static int open_below(int base, const char *name)
{
	return sys_openat2(base, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_BENEATH);
}

static int make_below(int base)
{
	if (mkdirat(base, "agentbox", 0700) < 0 && errno != EEXIST)
		return -errno;
	AUTO_FD dir = open_below(base, "agentbox");
	if (dir < 0)
		return dir;
	if (mkdirat(dir, "runs", 0700) < 0 && errno != EEXIST)
		return -errno;
	return open_below(dir, "runs");
}

/* Below the base, with no link on the way. */
static int walk(size_t at, bool make, char *base_name)
{
	AUTO_FD base = open_base(at, make, base_name);
	if (base < 0)
		return base;
	int fd = open_below(base, BELOW);
	return fd == -ENOENT && make ? make_below(base) : fd;
}

int runs_open(size_t at, bool make, char *ret_path)
{
	char base[PATH_MAX - sizeof BELOW];
	ret_path[0] = 0;
	if (base_path(at, base, sizeof base) < 0)
		return -ENOENT;
	snprintf(ret_path, PATH_MAX, "%s/" BELOW, base);
	/* Every run comes by here: one call, as long as there is nothing and no link. */
	AUTO_FD fd = sys_openat2(
		AT_FDCWD, ret_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, SYS_RESOLVE_NO_SYMLINKS);
	if (fd < 0 && (make || fd != -ENOENT))
		fd = walk(at, make, base);
	else if (fd >= 0 && is_runtime(at) && !ours_alone(AT_FDCWD, base))
		return -ENOENT;
	if (fd >= 0 && !ours_alone(fd, ""))
		return -EPERM;
	return fd < 0 ? fd : fd_steal(&fd);
}

bool runs_is_name(const char *name)
{
	static const char digits[] = "0123456789", prefix[] = "agentbox-";
	if (strncmp(name, prefix, sizeof prefix - 1) != 0 || strlen(name) >= RUNS_NAME_SIZE)
		return false;
	const char *at = name + sizeof prefix - 1;
	size_t pid = strspn(at, digits);
	if (pid == 0 || at[pid] != '-')
		return false;
	size_t number = strspn(at + pid + 1, digits);
	return number > 0 && !at[pid + 1 + number];
}

static int put_content(const struct plan_cgroup *groups, struct buf *out)
{
	for (size_t i = 0; i < groups->count; i++) {
		const char *parent = groups->parents[i];
		if (parent[0] != '/' || strchr(parent, '\n'))
			return -EINVAL;
		if (buf_addf(out, RUNS_FORMAT "%s/%s\n", parent, groups->name) < 0)
			return -E2BIG;
	}
	return 0;
}

/*
 * A new file, locked. Between its making and its locking a collector may take it for a dead run's:
 * it then has the lock for a moment, and the name may be gone when we have it. -EAGAIN: once more.
 */
static int make_locked(int dir, const char *name)
{
	AUTO_FD file = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (file < 0)
		return errno == EEXIST ? -EAGAIN : -errno;
	int r = -EAGAIN;
	for (int i = 0; r == -EAGAIN && i < TRIES; i++) {
		if (i > 0)
			nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
		r = flock(file, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
	}
	struct stat st;
	if (r == 0 && fstat(file, &st) < 0)
		r = -errno;
	if (r == 0 && st.st_nlink == 0)
		return -EAGAIN;
	if (r == 0)
		return fd_steal(&file);
	(void)unlinkat(dir, name, 0);
	return r;
}

/*
 * The record under its own name. A crash before it is written leaves an empty one, which names
 * nothing; and no group is made before this is over.
 */
static int make_in(int dir, const struct plan_cgroup *groups, const struct buf *content)
{
	const char *name = groups->name;
	AUTO_FD file = -EAGAIN;
	for (int i = 0; file == -EAGAIN && i < NEW_FILES; i++) {
		/* Of a dead run whose process had our number; what it left is to go first. */
		struct runs_findings findings = { 0 };
		if (i > 0)
			runs_collect(RUNS_ALL, &findings);
		arena_free(&findings.arena);
		file = make_locked(dir, name);
	}
	if (file < 0)
		return file == -EAGAIN ? -EEXIST : file;
	int r = fd_write_full(file, buf_text(content), content->len);
	if (r < 0) {
		(void)unlinkat(dir, name, 0);
		return r;
	}
	return fd_steal(&file);
}

int run_record_make(const struct plan_cgroup *groups, struct run_record *ret_record)
{
	*ret_record = (struct run_record){ .groups = groups, .dir = -1, .file = -1 };
	if (groups->kind == CGROUP_NONE)
		return 0;
	if (!runs_is_name(groups->name))
		return -EINVAL;
	AUTO_BUF content = { .max = RUNS_RECORD_MAX };
	int r = put_content(groups, &content);
	if (r < 0)
		return r;
	for (size_t i = 0; i < RUNS_BASES_MAX; i++) {
		char path[PATH_MAX];
		AUTO_FD dir = runs_open(i, true, path);
		int file = dir < 0 ? dir : make_in(dir, groups, &content);
		if (file >= 0) {
			ret_record->dir = fd_steal(&dir);
			ret_record->file = file;
			return 0;
		}
		/* The first place's reason is the one to tell, unless it was no place at all. */
		if (r == 0 || r == -ENOENT)
			r = file;
	}
	return r;
}

static bool all_gone(const struct plan_cgroup *groups)
{
	char path[PATH_MAX];
	for (size_t i = 0; i < groups->count; i++) {
		int len = snprintf(path, sizeof path, "%s/%s", groups->parents[i], groups->name);
		if (len < 0 || len >= PATH_MAX || access(path, F_OK) == 0 || errno != ENOENT)
			return false;
	}
	return true;
}

void run_record_end(struct run_record *record, bool gone)
{
	if (record->file >= 0 && (gone || all_gone(record->groups)))
		(void)unlinkat(record->dir, record->groups->name, 0);
	fd_close(&record->file);
	fd_close(&record->dir);
}
