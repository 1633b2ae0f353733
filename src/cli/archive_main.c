/*
 * agentbox-archive: unpacks a tar stream into an empty directory. A program of its own, which gives
 * up its rights before the first byte, as the bytes may be anybody's. The caller moves what is
 * unpacked to its place, or drops it all: here every entry is looked at, and the first one that is
 * not plain refuses the whole archive.
 *
 *	agentbox-archive BYTES ENTRIES UID GID [best-effort] <ARCHIVE 3<DIRECTORY
 *
 * BYTES and ENTRIES: at most, in all. UID, GID: to act as, when started by root. best-effort: go on
 * where the kernel has no Landlock. Exit status: 0 unpacked, 2 usage, 3 no resources, 4 not
 * confined, 5 refused; one line on stderr says why.
 *
 * Refused are: names that are absolute, empty, too long or have "..", a way through anything but a
 * directory, a name that comes again as something else, hard links to what is no file of the
 * archive, and all but files, directories and links. Links are made as they are, and never
 * followed. Owners, set-id bits, attributes and access lists are left out.
 */
#define _GNU_SOURCE
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/archive_confine.h"

#define TOP       3
#define BLOCK     65536
#define DRAIN_MAX (1 << 20)
#define LATER_MAX (1 << 20) /* directories whose modes are set at the end */

enum status { DONE = 0, USAGE = 2, RESOURCES = 3, UNCONFINED = 4, REFUSED = 5 };

/* A directory, and what it is to have when it is full. */
struct later {
	char *name;
	size_t number; /* which entry it was */
	mode_t mode;
	struct timespec times[2];
};

struct unpacking {
	struct archive *archive;
	uint64_t bytes, bytes_max;
	unsigned long entries, entries_max;
	struct later *later;
	size_t later_count, later_room;
};

/* A clean relative name, and the directory that it is in. */
struct place {
	char name[PATH_MAX]; /* "" is the top */
	const char *last;
	int dir;
};

static int say(enum status status, const char *name, const char *why)
{
	if (name)
		fprintf(stderr, "'%.300s' %s\n", name, why);
	else
		fprintf(stderr, "%s\n", why);
	return status;
}

static int no_room(const char *name)
{
	char why[128];
	snprintf(why, sizeof why, "cannot be made: %s", strerror(errno));
	return say(RESOURCES, name, why);
}

/* Without "." and empty components. NULL, or what is wrong with the name. */
static const char *clean(const char *given, char ret_name[PATH_MAX])
{
	size_t used = 0;
	if (!given || !*given)
		return "has no name";
	if (*given == '/')
		return "has an absolute name";
	if (strlen(given) >= PATH_MAX)
		return "has a name that is too long";
	for (const char *at = given; *at;) {
		size_t len = strcspn(at, "/");
		if (len == 2 && at[0] == '.' && at[1] == '.')
			return "has \"..\" in its name";
		if (len > NAME_MAX)
			return "has a name that is too long";
		if (len > 0 && !(len == 1 && *at == '.')) {
			if (used)
				ret_name[used++] = '/';
			memcpy(ret_name + used, at, len);
			used += len;
		}
		at += len + (at[len] == '/');
	}
	ret_name[used] = 0;
	return NULL;
}

/*
 * Open the directory that a clean name is in, name by name, without following anything; `make`:
 * those that are missing are made. A descriptor or -errno.
 */
static int open_parent(const char *name, bool make)
{
	char part[NAME_MAX + 1];
	int dir = fcntl(TOP, F_DUPFD_CLOEXEC, TOP + 1);
	for (const char *slash; dir >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
		memcpy(part, name, (size_t)(slash - name));
		part[slash - name] = 0;
		int made = make ? mkdirat(dir, part, 0700) : 0;
		int next =
			made < 0 && errno != EEXIST
				? -1
				: openat(dir, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		int saved = errno;
		close(dir);
		errno = saved;
		dir = next;
	}
	return dir < 0 ? -errno : dir;
}

/* Where an entry goes. place->dir is open on DONE. */
static int find_place(const char *given, struct place *place)
{
	const char *fault = clean(given, place->name);
	place->dir = -1;
	if (fault)
		return say(REFUSED, given ? given : "", fault);
	const char *slash = strrchr(place->name, '/');
	place->last = slash ? slash + 1 : place->name;
	place->dir = open_parent(place->name, true);
	if (place->dir == -ENOTDIR || place->dir == -ELOOP)
		return say(REFUSED, given, "leads through what is no directory of the archive");
	errno = -place->dir;
	return place->dir < 0 ? no_room(given) : DONE;
}

/*
 * The name is free afterwards, as of two entries of the same kind the later one counts. A directory
 * stays.
 */
static int make_room(const struct place *place, mode_t kind)
{
	struct stat st;
	if (fstatat(place->dir, place->last, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? DONE : no_room(place->name);
	if ((st.st_mode & S_IFMT) != kind)
		return say(REFUSED, place->name, "comes twice, as different things");
	if (S_ISDIR(kind) || unlinkat(place->dir, place->last, 0) == 0)
		return DONE;
	return no_room(place->name);
}

static void times_of(struct archive_entry *entry, struct timespec ret_times[2])
{
	ret_times[0] = (struct timespec){ .tv_nsec = UTIME_NOW };
	ret_times[1] = (struct timespec){ .tv_nsec = UTIME_NOW };
	if (archive_entry_mtime_is_set(entry))
		ret_times[1] = (struct timespec){ .tv_sec = archive_entry_mtime(entry),
			.tv_nsec = archive_entry_mtime_nsec(entry) };
}

static int too_large(const struct unpacking *unpacking, const char *name)
{
	char why[128];
	snprintf(why, sizeof why, "makes the archive larger than the %llu bytes that may be",
		(unsigned long long)unpacking->bytes_max);
	return say(REFUSED, name, why);
}

static int write_at(int fd, const char *data, size_t len, off_t at)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, data, len, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		data += n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Blocks may have holes between them; the whole must fit as if it had none. */
static int unpack_data(struct unpacking *unpacking, const char *name, int fd)
{
	const void *data;
	size_t len;
	la_int64_t at;
	uint64_t end = 0;
	int r;
	while ((r = archive_read_data_block(unpacking->archive, &data, &len, &at)) == ARCHIVE_OK) {
		if (at < 0 || (uint64_t)at < end || (uint64_t)at > unpacking->bytes_max ||
			len > unpacking->bytes_max - (uint64_t)at ||
			(uint64_t)at + len > unpacking->bytes_max - unpacking->bytes)
			return too_large(unpacking, name);
		if (write_at(fd, data, len, at) < 0)
			return no_room(name);
		end = (uint64_t)at + len;
	}
	if (r != ARCHIVE_EOF)
		return say(REFUSED, name, "is cut off or damaged");
	unpacking->bytes += end;
	return DONE;
}

static int unpack_file(
	struct unpacking *unpacking, struct archive_entry *entry, const struct place *place)
{
	struct timespec times[2];
	la_int64_t size = archive_entry_size(entry);
	int r = make_room(place, S_IFREG);
	if (r != DONE)
		return r;
	if (size < 0 || (uint64_t)size > unpacking->bytes_max - unpacking->bytes)
		return too_large(unpacking, place->name);
	int fd = openat(place->dir, place->last,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return no_room(place->name);
	times_of(entry, times);
	uint64_t before = unpacking->bytes;
	r = unpack_data(unpacking, place->name, fd);
	if (r == DONE && unpacking->bytes < before + (uint64_t)size)
		unpacking->bytes = before + (uint64_t)size;
	if (r == DONE &&
		(ftruncate(fd, size) < 0 || fchmod(fd, archive_entry_perm(entry) & 0777) < 0 ||
			futimens(fd, times) < 0))
		r = no_room(place->name);
	close(fd);
	return r;
}

/* Its mode may be one with which nothing could be put into it: that comes last. */
static int unpack_directory(
	struct unpacking *unpacking, struct archive_entry *entry, const struct place *place)
{
	int r = make_room(place, S_IFDIR);
	if (r != DONE)
		return r;
	if (mkdirat(place->dir, place->last, 0700) < 0 && errno != EEXIST)
		return no_room(place->name);
	if (unpacking->later_count == unpacking->later_room) {
		size_t room = unpacking->later_room ? 2 * unpacking->later_room : 64;
		struct later *grown = realloc(unpacking->later, room * sizeof *grown);
		if (!grown || room > LATER_MAX)
			return no_room(place->name);
		unpacking->later = grown;
		unpacking->later_room = room;
	}
	struct later *later = &unpacking->later[unpacking->later_count];
	later->name = strdup(place->name);
	later->number = unpacking->later_count;
	later->mode = archive_entry_perm(entry) & 0777;
	times_of(entry, later->times);
	if (!later->name)
		return no_room(place->name);
	unpacking->later_count++;
	return DONE;
}

static int unpack_link(struct archive_entry *entry, const struct place *place)
{
	struct timespec times[2];
	const char *text = archive_entry_symlink(entry);
	int r = make_room(place, S_IFLNK);
	if (r != DONE)
		return r;
	if (!text || !*text || strlen(text) >= PATH_MAX)
		return say(REFUSED, place->name, "is a link to nothing, or one too long");
	times_of(entry, times);
	if (symlinkat(text, place->dir, place->last) < 0 ||
		utimensat(place->dir, place->last, times, AT_SYMLINK_NOFOLLOW) < 0)
		return no_room(place->name);
	return DONE;
}

/* Another name of a file that came before, and of nothing else. */
static int unpack_hard_link(const char *target, const struct place *place)
{
	static const char fault[] = "is a hard link to what is no earlier file of the archive";
	char name[PATH_MAX];
	struct stat st;
	if (clean(target, name) || !*name)
		return say(REFUSED, place->name, fault);
	const char *slash = strrchr(name, '/');
	const char *last = slash ? slash + 1 : name;
	int dir = open_parent(name, false);
	if (dir < 0)
		return say(REFUSED, place->name, fault);
	int r = DONE;
	if (fstatat(dir, last, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		r = say(REFUSED, place->name, fault);
	if (r == DONE && strcmp(name, place->name) != 0)
		r = make_room(place, S_IFREG);
	if (r == DONE && strcmp(name, place->name) != 0 &&
		linkat(dir, last, place->dir, place->last, 0) < 0)
		r = no_room(place->name);
	close(dir);
	return r;
}

static int unpack_entry(struct unpacking *unpacking, struct archive_entry *entry)
{
	struct place place;
	const char *target = archive_entry_hardlink(entry);
	mode_t kind = archive_entry_filetype(entry);
	if (++unpacking->entries > unpacking->entries_max)
		return say(REFUSED, archive_entry_pathname(entry), "is one entry too many");
	int r = find_place(archive_entry_pathname(entry), &place);
	if (r != DONE)
		return r;
	if (!*place.name)
		r = kind == AE_IFDIR && !target
			    ? DONE
			    : say(REFUSED, archive_entry_pathname(entry), "has no name");
	else if (target)
		r = unpack_hard_link(target, &place);
	else if (kind == AE_IFREG)
		r = unpack_file(unpacking, entry, &place);
	else if (kind == AE_IFDIR)
		r = unpack_directory(unpacking, entry, &place);
	else if (kind == AE_IFLNK)
		r = unpack_link(entry, &place);
	else
		r = say(REFUSED, place.name, "is neither a file, a directory nor a link");
	close(place.dir);
	return r;
}

/* What is in a directory before it, as after its mode it may be closed to us; else as they came. */
static int deepest_first(const void *a, const void *b)
{
	const struct later *one = a, *other = b;
	int order = strcmp(other->name, one->name);
	return order ? order : one->number < other->number ? -1 : 1;
}

static int finish(struct unpacking *unpacking)
{
	if (unpacking->later_count > 0)
		qsort(unpacking->later, unpacking->later_count, sizeof *unpacking->later,
			deepest_first);
	for (size_t i = 0; i < unpacking->later_count; i++) {
		const struct later *later = &unpacking->later[i];
		const char *slash = strrchr(later->name, '/');
		const char *last = slash ? slash + 1 : later->name;
		int dir = open_parent(later->name, false);
		if (dir < 0)
			return no_room(later->name);
		int r = utimensat(dir, last, later->times, AT_SYMLINK_NOFOLLOW);
		if (r == 0)
			r = fchmodat(dir, last, later->mode, 0);
		close(dir);
		if (r < 0)
			return no_room(later->name);
	}
	return DONE;
}

static int unpack_all(struct unpacking *unpacking)
{
	struct archive_entry *entry;
	for (;;) {
		int r = archive_read_next_header(unpacking->archive, &entry);
		if (r == ARCHIVE_EOF)
			return finish(unpacking);
		if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
			return say(REFUSED, NULL, "stdin is not a whole tar archive");
		r = unpack_entry(unpacking, entry);
		if (r != DONE)
			return r;
	}
}

/* Whoever writes the archive pads its end, and should not die of our not reading that. */
static void drain(void)
{
	char block[BLOCK];
	for (size_t total = 0; total < DRAIN_MAX;) {
		ssize_t n = read(STDIN_FILENO, block, sizeof block);
		if (n <= 0 && !(n < 0 && errno == EINTR))
			break;
		total += n > 0 ? (size_t)n : 0;
	}
}

static int run(struct unpacking *unpacking)
{
	unpacking->archive = archive_read_new();
	if (!unpacking->archive ||
		archive_read_support_filter_none(unpacking->archive) != ARCHIVE_OK ||
		archive_read_support_format_tar(unpacking->archive) != ARCHIVE_OK)
		return say(RESOURCES, NULL, "out of memory");
	if (archive_read_open_fd(unpacking->archive, STDIN_FILENO, 10240) != ARCHIVE_OK)
		return say(REFUSED, NULL, "stdin is not a tar archive");
	int r = unpack_all(unpacking);
	if (r == DONE)
		drain();
	return r;
}

/* A decimal number; false: it is none. */
static bool number(const char *text, unsigned long long most, unsigned long long *ret_number)
{
	char *end;
	errno = 0;
	*ret_number = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *ret_number <= most;
}

int main(int argc, char **argv)
{
	struct unpacking unpacking = { 0 };
	unsigned long long bytes, entries, uid, gid;
	bool lax = argc == 6 && strcmp(argv[5], "best-effort") == 0;
	if (argc != 5 + lax || !number(argv[1], INT64_MAX, &bytes) ||
		!number(argv[2], UINT32_MAX, &entries) || !number(argv[3], UINT32_MAX - 1, &uid) ||
		!number(argv[4], UINT32_MAX - 1, &gid))
		return say(USAGE, NULL,
			"usage: agentbox-archive BYTES ENTRIES UID GID [best-effort] <ARCHIVE "
			"3<DIRECTORY");
	close_range(TOP + 1, ~0u, 0);
	umask(0);
	/* Names pass through the library as they are when they are UTF-8, or of no set at all. */
	(void)setlocale(LC_CTYPE, "C.UTF-8");
	unpacking.bytes_max = bytes;
	unpacking.entries_max = (unsigned long)entries;
	int r = confine(TOP, (uid_t)uid, (gid_t)gid, bytes, lax);
	if (r == CONFINE_NO_LANDLOCK)
		return say(UNCONFINED, NULL, "this kernel has no Landlock");
	if (r < 0) {
		errno = -r;
		return no_room("the confinement");
	}
	return run(&unpacking);
}
