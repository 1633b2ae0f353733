/*
 * runs_collect: finds the records of dead runs and removes what they name. A record is ours, but
 * that is no reason to believe it: it can only name groups of its own name in a cgroup file system,
 * and one that is not understood to its last byte removes nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "box/cgroup.h"
#include "cli/runs.h"

#define NAMES_MAX 4096 /* records that one call looks at */

/* What one call works on. */
struct collector {
	enum runs_how how;
	struct runs_findings *findings;
	const char *place; /* the directory's name; dir its descriptor */
	int dir;
	bool waited; /* RUNS_PASSING: a group kept us waiting, that is enough for one run */
};

static void find(
	struct collector *collector, const char *kind, const char *path, const char *reason)
{
	struct runs_findings *findings = collector->findings;
	struct runs_finding *finding =
		arena_push(&findings->arena, &findings->list, &findings->count, sizeof *finding);
	*finding = (struct runs_finding){
		.removed = !reason,
		.kind = kind,
		.path = arena_strdup(&findings->arena, path),
		.reason = reason ? arena_strdup(&findings->arena, reason) : NULL,
	};
	findings->left += reason != NULL;
}

static void find_record(struct collector *collector, const char *name, const char *reason)
{
	find(collector, "record",
		arena_join(&collector->findings->arena, collector->place, "/", name), reason);
}

/*
 * Where a group is: a descriptor of its parent, for which it must be an ordinary name in a cgroup
 * file system; or -errno: -ENOENT when that is gone, and the group with it.
 */
static int open_parent(struct arena *arena, const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	if (path[0] != '/' || slash == path || strcmp(slash + 1, name) != 0 ||
		strlen(path) >= PATH_MAX)
		return -EINVAL;
	const char *parent = arena_strndup(arena, path, (size_t)(slash - path));
	if (strstr(parent, "/../") || strcmp(strrchr(parent, '/'), "/..") == 0)
		return -EINVAL;
	AUTO_FD fd = sys_openat2(
		AT_FDCWD, parent, O_PATH | O_DIRECTORY | O_CLOEXEC, SYS_RESOLVE_NO_SYMLINKS);
	struct statfs fs;
	if (fd < 0)
		return fd;
	if (fstatfs(fd, &fs) < 0)
		return -errno;
	if ((unsigned long)fs.f_type != CGROUP2_SUPER_MAGIC &&
		(unsigned long)fs.f_type != CGROUP_SUPER_MAGIC)
		return -EINVAL;
	return fd_steal(&fd);
}

/* One group of a record. 0: it is gone. `hard`: a run tried before, and waited in vain. */
static int remove_group(struct collector *collector, const char *path, const char *name, bool hard)
{
	struct stat st;
	AUTO_FD parent = open_parent(&collector->findings->arena, path, name);
	int r = parent < 0 ? parent : 0;
	if (r == 0 && fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	if (r == 0 && !S_ISDIR(st.st_mode))
		r = -EINVAL;
	if (r == 0 && collector->how != RUNS_DRY) {
		bool wait = !hard && !collector->waited;
		if (wait)
			r = cgroup_remove_at(parent, name);
		else
			r = unlinkat(parent, name, AT_REMOVEDIR) < 0 ? -errno : 0;
		collector->waited |= wait && r < 0 && collector->how == RUNS_PASSING;
	}
	if (r == -ENOENT)
		return 0;
	const char *reason = r < 0 ? strerror(-r) : NULL;
	if (r == -EINVAL || r == -ELOOP || r == -ENOTDIR)
		reason = "it is no control group of that run";
	find(collector, "cgroup", path, reason);
	return r;
}

/* A line of a kind that this version knows nothing of: a word and a text. */
static bool is_foreign(const char *line)
{
	size_t word = strspn(line, "abcdefghijklmnopqrstuvwxyz_");
	return word > 0 && line[word] == ' ' && line[word + 1];
}

/* Split into lines, in place. Their number, or -1 when it is not a record's content. */
static int split(char *text, size_t len, char *ret_lines[PLAN_CGROUPS_MAX * 2])
{
	int count = 0;
	if (strlen(text) != len || text[len - 1] != '\n')
		return -1;
	for (char *at = text; *at;) {
		char *end = strchr(at, '\n');
		*end = 0;
		if (count == PLAN_CGROUPS_MAX * 2 || !is_foreign(at))
			return -1;
		ret_lines[count++] = at;
		at = end + 1;
	}
	return count;
}

/* What a dead run's record says. NULL: all of it is gone; else why the record must stay. */
static const char *remove_named(
	struct collector *collector, char *text, size_t len, const char *name, bool hard)
{
	char *lines[PLAN_CGROUPS_MAX * 2];
	const char *reason = NULL;
	const size_t skip = sizeof RUNS_FORMAT - 1;
	/* A file system that lost its last moments: what was in there did not outlive them. */
	if (len == 0)
		return NULL;
	int count = split(text, len, lines);
	if (count < 0)
		return "its content is no record's";
	for (int i = 0; i < count; i++) {
		if (strncmp(lines[i], RUNS_FORMAT, skip) != 0)
			reason = "it names what this version does not know";
		else if (remove_group(collector, lines[i] + skip, name, hard) < 0)
			reason = "a control group of it is left";
	}
	return reason;
}

/* Is the name still that of the file that we hold? */
static bool still_there(int dir, const char *name, const struct stat *ours)
{
	struct stat theirs;
	return fstatat(dir, name, &theirs, AT_SYMLINK_NOFOLLOW) == 0 &&
	       ours->st_dev == theirs.st_dev && ours->st_ino == theirs.st_ino;
}

/*
 * The record is ours and locked, so its run is dead. NULL: it is done with; else why it must stay.
 */
static const char *take(
	struct collector *collector, int file, const struct stat *st, const char *name)
{
	char *text;
	size_t len;
	struct arena arena = { 0 };
	const char *reason = NULL;
	if (name[0] != '.') {
		int r = fd_read_file(&arena, file, RUNS_RECORD_MAX, &text, &len);
		reason = r < 0 ? "it cannot be read, or is too large for a record"
			       : remove_named(collector, text, len, name,
					 collector->how == RUNS_PASSING && (st->st_mode & 0100));
	}
	arena_free(&arena);
	if (reason && collector->how == RUNS_PASSING)
		/* Later runs do not wait for it again: they only look whether it is free by then.
		 */
		(void)fchmod(file, 0700);
	return reason;
}

static void look_at(struct collector *collector, const char *name)
{
	struct stat st;
	/* For writing, since some file systems give the lock to nobody else. */
	AUTO_FD file = openat(
		collector->dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (file < 0) {
		/* Gone: its run has ended by now. */
		if (errno != ENOENT)
			find_record(collector, name,
				errno == ELOOP ? "it is a symbolic link" : strerror(errno));
		return;
	}
	/* A second name of it would be a file of something else, which no lock of ours is on. */
	if (fstat(file, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
		(st.st_mode & 077) || st.st_nlink > 1) {
		find_record(collector, name, "it is no file that is yours alone");
		return;
	}
	if (flock(file, LOCK_EX | LOCK_NB) < 0) {
		collector->findings->running++;
		return;
	}
	if (!still_there(collector->dir, name, &st))
		return;
	const char *reason = take(collector, file, &st, name);
	if (!reason && collector->how != RUNS_DRY && unlinkat(collector->dir, name, 0) < 0 &&
		errno != ENOENT)
		reason = strerror(errno);
	find_record(collector, name, reason);
}

/* What getdents64(2) fills in. */
struct entry {
	uint64_t inode;
	int64_t next;
	unsigned short size;
	unsigned char type;
	char name[];
};

/* Is it a record's name, of a complete one or not? Other files are not ours to judge. */
static bool is_record(const char *name)
{
	if (strncmp(name, RUNS_NEW_PREFIX, sizeof RUNS_NEW_PREFIX - 1) == 0)
		name += sizeof RUNS_NEW_PREFIX - 1;
	return runs_is_name(name);
}

/* The names of all records. Not readdir(3), which asks for more than every run should pay. */
static size_t list(int dir, struct arena *arena, const char ***ret_names)
{
	size_t count = 0;
	long len;
	_Alignas(struct entry) char block[4096];
	*ret_names = NULL;
	while (count < NAMES_MAX && (len = syscall(SYS_getdents64, dir, block, sizeof block)) > 0)
		for (long at = 0; at < len;) {
			const struct entry *entry = (const struct entry *)(block + at);
			at += entry->size;
			if (is_record(entry->name))
				*(const char **)arena_push(arena, ret_names, &count,
					sizeof **ret_names) = arena_strdup(arena, entry->name);
		}
	return count;
}

static void look_into(struct collector *collector)
{
	struct arena arena = { 0 };
	const char **names;
	size_t count = list(collector->dir, &arena, &names), first = 0, most = count;
	if (collector->how == RUNS_PASSING && count > RUNS_PASSING_MAX) {
		/* Another part each time, so that many living ones hide no dead one for good. */
		struct timespec now;
		clock_gettime(CLOCK_MONOTONIC, &now);
		first = (size_t)now.tv_nsec / 1000 % count;
		most = RUNS_PASSING_MAX;
	}
	for (size_t i = 0; i < most; i++)
		look_at(collector, names[(first + i) % count]);
	arena_free(&arena);
}

void runs_collect(enum runs_how how, struct runs_findings *findings)
{
	char path[PATH_MAX];
	struct collector collector = { .how = how, .findings = findings, .place = path };
	for (size_t i = 0; i < RUNS_BASES_MAX; i++) {
		AUTO_FD dir = runs_open(i, false, path);
		collector.dir = dir;
		if (dir >= 0)
			look_into(&collector);
		else if (dir != -ENOENT)
			find(&collector, "directory", path,
				dir == -EPERM   ? "it is not yours alone"
				: dir == -ELOOP ? "a part of it is a symbolic link"
						: strerror(-dir));
	}
}

void runs_words(
	const struct runs_findings *findings, const char *verb, bool only_left, struct buf *out)
{
	for (size_t i = 0; i < findings->count; i++) {
		const struct runs_finding *f = &findings->list[i];
		if (f->removed && only_left)
			continue;
		const char *kind = strcmp(f->kind, "cgroup") == 0 ? "control group" : f->kind;
		buf_addf(out, "%s: %s ", f->removed ? verb : "not removed", kind);
		buf_add_visible(out, f->path, strlen(f->path), false);
		if (f->reason)
			buf_addf(out, ": %s", f->reason);
		buf_adds(out, "\n");
	}
}
