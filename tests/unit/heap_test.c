/*
 * heap_test: the allocator of the static program, under other names so that it can be judged from
 * a program with an allocator of its own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

void *heap_malloc(size_t size);
void *heap_calloc(size_t count, size_t size);
void *heap_realloc(void *p, size_t size);
void heap_free(void *p);
void *heap_aligned_alloc(size_t align, size_t size);

#define malloc        heap_malloc
#define calloc        heap_calloc
#define realloc       heap_realloc
#define free          heap_free
#define aligned_alloc heap_aligned_alloc
#include "libc/heap.c"
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef aligned_alloc

#define HUGE_SIZE ((size_t)1 << 62)

static unsigned next_random(unsigned *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* A content that tells a block and a place in it from all others. */
static unsigned char mark(unsigned seed, size_t at)
{
	return (unsigned char)(seed * 31u + at * 7u + (at >> 8));
}

static void fill(unsigned char *p, size_t from, size_t to, unsigned seed)
{
	for (size_t i = from; i < to; i++)
		p[i] = mark(seed, i);
}

static bool filled(const unsigned char *p, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != mark(seed, i))
			return false;
	return true;
}

static bool aligned(const void *p)
{
	return p && (uintptr_t)p % 16 == 0;
}

/* Every size up to some pages, then with a stride that meets the borders of the classes too. */
static size_t next_size(size_t size)
{
	return size < 4200 ? size + 1 : size + 509 - (size % 4096 == 0);
}

static void each_size_has_its_room(void)
{
	static unsigned char *blocks[8192];
	size_t sizes[8192], count = 0;
	bool good = true;
	for (size_t size = 0; size <= 200000 && count < 8192; size = next_size(size)) {
		blocks[count] = heap_malloc(size);
		good &= aligned(blocks[count]);
		fill(blocks[count], 0, size, (unsigned)count);
		sizes[count++] = size;
	}
	CHECK(good && count > 4200 && sizes[count - 1] > 199000);
	/* All at once: none reaches into another. */
	for (size_t i = 0; i < count; i++)
		good &= filled(blocks[i], sizes[i], (unsigned)i);
	CHECK(good);
	for (size_t i = 0; i < count; i++)
		heap_free(blocks[i]);
	heap_free(NULL);
	static const size_t borders[] = { 1, 16, 17, 1023, 1024, 1025, 2048, 2049, 65535, 65536,
		65537, (1 << 20) - 16, 1 << 20, (1 << 20) + 1 };
	for (size_t i = 0; i < sizeof borders / sizeof *borders; i++) {
		unsigned char *p = heap_malloc(borders[i]);
		CHECK(aligned(p));
		fill(p, 0, borders[i], 5);
		CHECK(filled(p, borders[i], 5));
		heap_free(p);
	}
}

static void a_freed_block_serves_again(void)
{
	void *first = heap_malloc(100);
	heap_free(first);
	CHECK(heap_malloc(100) == first);
	void *second = heap_malloc(100);
	CHECK(second != first);
	heap_free(first);
	heap_free(second);
	/* A loop of any length needs no more memory than one turn. */
	struct rusage before, after;
	getrusage(RUSAGE_SELF, &before);
	for (int i = 0; i < 20000; i++) {
		char *p = heap_malloc(30000);
		char *q = heap_malloc(100000);
		p[0] = p[29999] = q[0] = q[99999] = 1;
		heap_free(p);
		heap_free(q);
	}
	getrusage(RUSAGE_SELF, &after);
	CHECK(after.ru_maxrss - before.ru_maxrss < 4096); /* KiB */
}

static void calloc_clears_what_was_used_before(void)
{
	static const size_t sizes[] = { 0, 1, 16, 100, 1024, 1025, 40000, 65536, 65537, 200000 };
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		unsigned char *p = heap_malloc(sizes[i]);
		memset(p, 0xa5, sizes[i]);
		heap_free(p);
		unsigned char *q = heap_calloc(sizes[i], 1);
		bool zero = aligned(q);
		for (size_t k = 0; k < sizes[i]; k++)
			zero &= q[k] == 0;
		CHECK(zero);
		heap_free(q);
	}
	unsigned char *p = heap_calloc(7, 11);
	CHECK(p && p[76] == 0);
	heap_free(p);
}

static void realloc_keeps_the_content(void)
{
	static const size_t steps[] = { 1, 16, 17, 900, 1024, 1025, 5000, 65536, 65537, 300000,
		2000000, 2000001, 999999, 120000, 65537, 65536, 60000, 1024, 17, 16, 1, 0, 40 };
	unsigned char *p = heap_realloc(NULL, 0);
	size_t size = 0;
	CHECK(aligned(p));
	for (size_t i = 0; p && i < sizeof steps / sizeof *steps; i++) {
		p = heap_realloc(p, steps[i]);
		CHECK(aligned(p));
		CHECK(filled(p, size < steps[i] ? size : steps[i], 9));
		fill(p, 0, steps[i], 9);
		size = steps[i];
	}
	heap_free(p);
	/* From each class to each other one. */
	bool good = true;
	for (size_t from = 1; from <= 200000; from = from * 3 / 2 + 1)
		for (size_t to = 1; to <= 200000; to = to * 3 / 2 + 1) {
			p = heap_malloc(from);
			fill(p, 0, from, 3);
			p = heap_realloc(p, to);
			good &= aligned(p) && filled(p, from < to ? from : to, 3);
			fill(p, 0, to, 4);
			good &= filled(p, to, 4);
			heap_free(p);
		}
	CHECK(good);
}

static void what_cannot_be_had_is_refused(void)
{
	static const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 15, SIZE_MAX - 16, SIZE_MAX - 4096,
		SIZE_MAX / 2, SIZE_MAX / 2 + 1, HUGE_SIZE };
	unsigned char *p = heap_malloc(50), *large = heap_malloc(100000);
	fill(p, 0, 50, 1);
	fill(large, 0, 100000, 2);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		errno = 0;
		CHECK(heap_malloc(sizes[i]) == NULL && errno == ENOMEM);
		errno = 0;
		CHECK(heap_calloc(1, sizes[i]) == NULL && errno == ENOMEM);
		errno = 0;
		CHECK(heap_calloc(sizes[i], 1) == NULL && errno == ENOMEM);
		/* The old block stays as it is. */
		errno = 0;
		CHECK(heap_realloc(p, sizes[i]) == NULL && errno == ENOMEM);
		errno = 0;
		CHECK(heap_realloc(large, sizes[i]) == NULL && errno == ENOMEM);
	}
	errno = 0;
	CHECK(heap_calloc(HUGE_SIZE, 8) == NULL && errno == ENOMEM);
	errno = 0;
	CHECK(heap_calloc((size_t)1 << 32, (size_t)1 << 32) == NULL && errno == ENOMEM);
	CHECK(filled(p, 50, 1) && filled(large, 100000, 2));
	heap_free(p);
	heap_free(large);
	p = heap_aligned_alloc(16, 100);
	CHECK(aligned(p));
	heap_free(p);
	errno = 0;
	CHECK(heap_aligned_alloc(64, 64) == NULL && errno == EINVAL);
	/* free() leaves errno alone, as POSIX wants it. */
	p = heap_malloc(100000);
	errno = EBUSY;
	heap_free(p);
	CHECK(errno == EBUSY);
}

#ifndef __SANITIZE_ADDRESS__ /* which itself needs memory at any time */
/* Where even a chunk is not to be had. */
static void no_memory(void)
{
	struct rlimit limit = { 0, 0 };
	setrlimit(RLIMIT_AS, &limit);
	for (int i = 0; i < 100000; i++) {
		errno = 0;
		if (heap_malloc(1000))
			continue;
		/* Asked again, it is refused again. */
		bool again = errno == ENOMEM && !heap_malloc(1000) && !heap_calloc(10, 100) &&
			     !heap_malloc(100000) && errno == ENOMEM;
		_exit(again ? 7 : 1);
	}
	_exit(2);
}
#endif

/* A block whose origin the compiler does not see, so that it believes what is done to it. */
static char *take(size_t size)
{
	char *p = heap_malloc(size);
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

/* Two neighbours: *ret_high begins with its head where the room of *ret_low ends. */
static void take_neighbours(size_t size, size_t room, char **ret_low, char **ret_high)
{
	char *blocks[500];
	for (size_t n = 0; n < 500; n++) {
		blocks[n] = take(size);
		for (size_t i = 0; i < n; i++) {
			char *low = blocks[i] < blocks[n] ? blocks[i] : blocks[n];
			char *high = blocks[i] < blocks[n] ? blocks[n] : blocks[i];
			if ((size_t)(high - low) != room + 16)
				continue;
			*ret_low = low;
			*ret_high = high;
			return;
		}
	}
	_exit(3);
}

static void twice(void)
{
	char *p = take(40);
	heap_free(p);
	heap_free(p);
}

static void twice_with_one_between(void)
{
	char *p = take(40), *q = take(40);
	heap_free(p);
	heap_free(q);
	heap_free(p);
}

static void grown_when_free(void)
{
	char *p = take(40);
	heap_free(p);
	heap_realloc(p, 400);
}

static void overrun(void)
{
	char *low, *high;
	take_neighbours(65536, 65536, &low, &high);
	memset(low, 'x', 65536 + 16);
	heap_free(high);
}

static void overrun_by_a_byte(void)
{
	char *low, *high;
	take_neighbours(16, 16, &low, &high);
	low[16] ^= 1;
	heap_free(high);
}

/* Told when the block is used again. */
static void overrun_into_a_free_one(void)
{
	char *low, *high;
	take_neighbours(700, 704, &low, &high);
	heap_free(high);
	memset(low, 'x', 704 + 16);
	take(700);
}

static void not_a_block(void)
{
	char *p = take(400);
	memset(p, 0, 400);
	heap_free(p + 64);
}

/* The check of one block is none for another. */
static void copied_head(void)
{
	char *p = take(64), *q = take(64);
	memcpy(q - 16, p - 16, 16);
	heap_free(q);
}

static int end_of(void (*misuse)(void))
{
	pid_t pid = fork();
	if (pid == 0) {
		struct rlimit none = { 0, 0 };
		setrlimit(RLIMIT_CORE, &none);
		misuse();
		_exit(0);
	}
	int status = -1;
	waitpid(pid, &status, 0);
	return status;
}

static void misuse_ends_the_program(void)
{
	static const struct {
		const char *name;
		void (*misuse)(void);
	} rows[] = {
		{ "freed twice", twice },
		{ "freed twice, one between", twice_with_one_between },
		{ "grown when free", grown_when_free },
		{ "overrun", overrun },
		{ "overrun into a free one", overrun_into_a_free_one },
		{ "overrun by a byte", overrun_by_a_byte },
		{ "not a block", not_a_block },
		{ "copied head", copied_head },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int status = end_of(rows[i].misuse);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
		if (!WIFSIGNALED(status))
			fprintf(stderr, "   %s\n", rows[i].name);
	}
#ifndef __SANITIZE_ADDRESS__
	int status = end_of(no_memory);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
#endif
}

struct slot {
	unsigned char *p;
	size_t size;
	unsigned seed;
};

static size_t random_size(unsigned *state)
{
	unsigned kind = next_random(state) % 100;
	unsigned value = next_random(state);
	return kind < 70 ? value % 600 : kind < 95 ? value % 9000 : value % 200000;
}

/* One step on one slot; false when the content is not what was written. */
static bool step(struct slot *slot, unsigned *state)
{
	size_t size = random_size(state);
	unsigned what = next_random(state) % 4;
	bool good = !slot->p || filled(slot->p, slot->size, slot->seed);
	if (what == 0) {
		heap_free(slot->p);
		slot->p = NULL;
		return good;
	}
	if (what == 1 && slot->p) {
		size_t kept = size < slot->size ? size : slot->size;
		slot->p = heap_realloc(slot->p, size);
		good &= aligned(slot->p) && filled(slot->p, kept, slot->seed);
	} else {
		heap_free(slot->p);
		slot->p = what == 2 ? heap_malloc(size) : heap_calloc(1, size);
		good &= aligned(slot->p);
		for (size_t i = 0; what == 3 && i < size; i++)
			good &= slot->p[i] == 0;
	}
	slot->size = size;
	slot->seed = next_random(state);
	fill(slot->p, 0, size, slot->seed);
	return good;
}

static void any_order_keeps_contents_apart(void)
{
	static struct slot slots[300];
	unsigned state = 20;
	bool good = true;
	for (int i = 0; good && i < 60000; i++)
		good = step(&slots[next_random(&state) % 300], &state);
	CHECK(good);
	for (size_t i = 0; i < 300; i++) {
		CHECK(!slots[i].p || filled(slots[i].p, slots[i].size, slots[i].seed));
		heap_free(slots[i].p);
	}
}

int main(void)
{
	RUN(each_size_has_its_room);
	RUN(a_freed_block_serves_again);
	RUN(calloc_clears_what_was_used_before);
	RUN(realloc_keeps_the_content);
	RUN(what_cannot_be_had_is_refused);
	RUN(misuse_ends_the_program);
	RUN(any_order_keeps_contents_apart);
	return CHECK_STATUS();
}
