/*
 * order: a command as bytes, written by its supervisor and read by its reaper. A head, the resource
 * limits, then all strings one behind the other, each with its NUL. The reader believes no number
 * that it has not held against the size.
 */
#define _GNU_SOURCE
#include "box/join.h"
#include "base/fd.h"
#include "base/sys.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define ORDER_MAGIC 0x6f726472u

struct order_head {
	uint32_t magic, umask;
	uint32_t argc, envc, candidates, rlimits;
};

struct order_rlimit {
	uint64_t current, max;
	int64_t resource;
};

/* --- writing --- */

struct writer {
	int fd, error;
	size_t size;
};

static void put(struct writer *writer, const void *data, size_t len)
{
	const char *at = data;
	writer->size += len;
	if (writer->size > ORDER_MAX)
		writer->error = -E2BIG;
	while (writer->error == 0 && len > 0) {
		ssize_t n = write(writer->fd, at, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			writer->error = n < 0 ? -errno : -EIO;
			return;
		}
		at += n;
		len -= (size_t)n;
	}
}

static void put_string(struct writer *writer, const char *text)
{
	put(writer, text, strlen(text) + 1);
}

static uint32_t count(const char *const *list)
{
	uint32_t n = 0;
	while (list[n])
		n++;
	return n;
}

static void put_list(struct writer *writer, const char *const *list)
{
	for (; *list; list++)
		put_string(writer, *list);
}

int order_write(const struct plan *plan)
{
	int fd = (int)sys_ret(syscall(SYS_memfd_create, "order", 1u /* MFD_CLOEXEC */));
	if (fd < 0)
		return fd;
	struct writer writer = { .fd = fd };
	struct order_head head = { .magic = ORDER_MAGIC,
		.umask = plan->umask,
		.argc = count(plan->argv),
		.envc = count(plan->envp),
		.candidates = count(plan->candidates),
		.rlimits = (uint32_t)plan->rlimit_count };
	put(&writer, &head, sizeof head);
	for (size_t i = 0; i < plan->rlimit_count; i++) {
		const struct plan_rlimit *from = &plan->rlimits[i];
		struct order_rlimit limit = { from->limit.rlim_cur, from->limit.rlim_max,
			from->resource };
		put(&writer, &limit, sizeof limit);
	}
	put_string(&writer, plan->cwd);
	put_list(&writer, plan->argv);
	put_list(&writer, plan->envp);
	put_list(&writer, plan->candidates);
	for (size_t i = 0; i < plan->rlimit_count; i++)
		put_string(&writer, plan->rlimits[i].why);
	if (writer.error < 0)
		fd_close(&fd);
	return writer.error < 0 ? writer.error : fd;
}

/* --- reading --- */

struct reader {
	const char *at, *end; /* what is left of the strings; the last byte is NUL */
	bool bad;
};

static const char *take(struct reader *reader)
{
	const char *text = reader->at;
	if (reader->at == reader->end) {
		reader->bad = true;
		return "";
	}
	reader->at += strlen(text) + 1;
	return text;
}

static const char **take_list(struct reader *reader, const char **place, size_t n)
{
	for (size_t i = 0; i < n && !reader->bad; i++)
		place[i] = take(reader);
	place[n] = NULL;
	return place + n + 1;
}

static size_t round_up(size_t size)
{
	return (size + 15) & ~(size_t)15;
}

/* All of the file behind the head that was read from it. 0 or -errno. */
static int fill(int fd, char *memory, size_t size)
{
	for (size_t at = 0; at < size;) {
		ssize_t n = pread(fd, memory + at, size - at, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EPROTO;
		at += (size_t)n;
	}
	return 0;
}

/* `pointers`: room for all lists and their ends, and for the limits behind them. */
static int unpack(
	const struct order_head *head, char *memory, size_t size, void *pointers, struct plan *plan)
{
	size_t limits = head->rlimits * sizeof(struct order_rlimit);
	struct reader reader = { .at = memory + sizeof *head + limits, .end = memory + size };
	const char **argv = pointers;
	const char *cwd = take(&reader);
	const char **envp = take_list(&reader, argv, head->argc);
	const char **candidates = take_list(&reader, envp, head->envc);
	const char **shell = take_list(&reader, candidates, head->candidates);
	/* "/bin/sh", FILE, and the arguments without the command's own name */
	shell[0] = "/bin/sh";
	memcpy(shell + 1, argv, (head->argc + 1) * sizeof *argv);
	struct plan_rlimit *list =
		(struct plan_rlimit *)((char *)pointers +
				       round_up((size_t)((char *)(shell + head->argc + 2) -
							 (char *)pointers)));
	for (size_t i = 0; i < head->rlimits; i++) {
		struct order_rlimit from;
		memcpy(&from, memory + sizeof *head + i * sizeof from, sizeof from);
		list[i].resource = (int)from.resource;
		list[i].limit = (struct rlimit){ from.current, from.max };
		list[i].why = take(&reader);
	}
	if (reader.bad || reader.at != reader.end)
		return -EPROTO;
	plan->cwd = cwd;
	plan->argv = argv;
	plan->envp = envp;
	plan->candidates = candidates;
	plan->shell_argv = shell;
	plan->rlimits = list;
	plan->rlimit_count = head->rlimits;
	plan->umask = head->umask;
	return 0;
}

int order_read(int fd, struct plan *plan, void **ret_memory, size_t *ret_size)
{
	struct stat st;
	struct order_head head;
	if (fstat(fd, &st) < 0)
		return -errno;
	size_t size = (size_t)st.st_size;
	if (st.st_size <= (off_t)sizeof head || size > ORDER_MAX)
		return -EPROTO;
	int r = fill(fd, (char *)&head, sizeof head);
	if (r < 0)
		return r;
	/* No list can have more elements than there are bytes. */
	if (head.magic != ORDER_MAGIC || head.argc == 0 || head.argc > size || head.envc > size ||
		head.candidates > size || head.umask > 0777 || head.rlimits > ORDER_RLIMITS_MAX ||
		head.rlimits > (size - sizeof head) / sizeof(struct order_rlimit))
		return -EPROTO;
	size_t lists = round_up(
		sizeof(char *) * (2 * (size_t)head.argc + head.envc + head.candidates + 6));
	size_t whole = round_up(size) + lists + head.rlimits * sizeof(struct plan_rlimit);
	char *memory =
		mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	/* A copy: whatever becomes of the file, what was looked at is what is done. */
	r = fill(fd, memory, size);
	if (r == 0 && (memory[size - 1] != 0 || memcmp(memory, &head, sizeof head) != 0))
		r = -EPROTO;
	if (r == 0)
		r = unpack(&head, memory, size, memory + round_up(size), plan);
	if (r < 0) {
		munmap(memory, whole);
		return r;
	}
	*ret_memory = memory;
	*ret_size = whole;
	return 0;
}
