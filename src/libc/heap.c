/*
 * heap: malloc for the static program. musl's own is built for hardness and long lives: each size
 * class is a mapping of its own, which costs a start of a millisecond a quarter of its time. The
 * program is one short-lived thread, so a bump pointer with free lists serves it: one mapping, a
 * page touched only when it is needed.
 *
 * What is kept of hardness: each block carries a check word mixed with its address and a random
 * value; a block that is freed twice, or was written over from the one before, ends the program.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#define STEP        16u /* classes 1 to SMALL: multiples of it */
#define SMALL       64u /* up to 1 KiB */
#define DOUBLINGS   6u  /* then 2 to 64 KiB */
#define CLASS_COUNT (1u + SMALL + DOUBLINGS)
#define LARGE       ((size_t)64 << 10) /* above: a mapping of its own */
#define CHUNK       ((size_t)1 << 20)
#define IN_USE      0x75736564u
#define FREED       0x66726565u

/* Before each block; 16 bytes, so that blocks are aligned for any type. */
struct head {
	uint32_t class; /* 0: a mapping of its own */
	uint32_t check;
	size_t room; /* bytes behind the head */
};

struct free_block {
	struct free_block *next;
};

/* The one exception from the rule against globals: malloc's interface leaves no other place. */
static struct {
	char *at, *end;
	uint32_t cookie;
	struct free_block *free[CLASS_COUNT];
} heap;

static uint32_t mix(const struct head *head, uint32_t state)
{
	return heap.cookie ^ state ^ (uint32_t)((uintptr_t)head >> 4) ^ head->class << 24;
}

static uint32_t class_of(size_t size, size_t *ret_room)
{
	if (size <= SMALL * STEP) {
		uint32_t class = size ? (uint32_t)((size + STEP - 1) / STEP) : 1;
		*ret_room = class * STEP;
		return class;
	}
	uint32_t class = SMALL + 1;
	size_t room = 2 * SMALL * STEP;
	for (; room < size; room *= 2)
		class ++;
	*ret_room = room;
	return class;
}

static void *map(size_t size)
{
	/* Sixteen random bytes that the kernel gave the program; getauxval(3) promises no
	 * alignment. */
	const char *random = (const char *)getauxval(AT_RANDOM);
	if (!heap.cookie && random) {
		memcpy(&heap.cookie, random + 4, sizeof heap.cookie);
		heap.cookie |= 1;
	}
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static void *new_large(size_t size)
{
	if (size > PTRDIFF_MAX - 2 * CHUNK) {
		errno = ENOMEM;
		return NULL;
	}
	size_t total = (size + sizeof(struct head) + 4095) & ~(size_t)4095;
	struct head *head = map(total);
	if (!head)
		return NULL;
	head->class = 0;
	head->room = total - sizeof *head;
	head->check = mix(head, IN_USE);
	return head + 1;
}

static int new_chunk(void)
{
	char *chunk = map(CHUNK);
	if (!chunk)
		return -1;
	heap.at = chunk;
	heap.end = chunk + CHUNK;
	return 0;
}

void *malloc(size_t size)
{
	if (size > LARGE)
		return new_large(size);
	size_t room;
	uint32_t class = class_of(size, &room);
	struct free_block *block = heap.free[class];
	struct head *head;
	if (block) {
		heap.free[class] = block->next;
		head = (struct head *)block - 1;
		if (head->check != mix(head, FREED))
			abort();
	} else {
		if ((size_t)(heap.end - heap.at) < room + sizeof *head && new_chunk() < 0)
			return NULL;
		head = (struct head *)heap.at;
		heap.at += room + sizeof *head;
		head->class = class;
		head->room = room;
	}
	head->check = mix(head, IN_USE);
	return head + 1;
}

void free(void *p)
{
	if (!p)
		return;
	struct head *head = (struct head *)p - 1;
	if (head->class >= CLASS_COUNT || head->check != mix(head, IN_USE))
		abort();
	if (head->class == 0) {
		int saved = errno;
		munmap(head, head->room + sizeof *head);
		errno = saved;
		return;
	}
	head->check = mix(head, FREED);
	struct free_block *block = p;
	block->next = heap.free[head->class];
	heap.free[head->class] = block;
}

void *calloc(size_t count, size_t size)
{
	size_t total;
	if (__builtin_mul_overflow(count, size, &total)) {
		errno = ENOMEM;
		return NULL;
	}
	void *p = malloc(total);
	/* Without this the compiler makes one call of the two: a call of calloc, which this is. */
	__asm__("" : "+r"(p));
	/* A mapping of its own is zero already. */
	if (p && total <= LARGE)
		memset(p, 0, total);
	return p;
}

static void *grow_large(struct head *head, size_t size)
{
	size_t total = (size + sizeof *head + 4095) & ~(size_t)4095;
	struct head *moved = mremap(head, head->room + sizeof *head, total, MREMAP_MAYMOVE);
	if (moved == MAP_FAILED) {
		errno = ENOMEM;
		return NULL;
	}
	moved->room = total - sizeof *moved;
	moved->check = mix(moved, IN_USE);
	return moved + 1;
}

void *realloc(void *p, size_t size)
{
	if (!p)
		return malloc(size);
	struct head *head = (struct head *)p - 1;
	if (head->class >= CLASS_COUNT || head->check != mix(head, IN_USE))
		abort();
	if (size <= head->room && (head->class != 0 || size > head->room / 2))
		return p;
	if (head->class == 0 && size > LARGE && size <= PTRDIFF_MAX - 2 * CHUNK)
		return grow_large(head, size);
	void *q = malloc(size);
	if (!q)
		return NULL;
	memcpy(q, p, size < head->room ? size : head->room);
	free(p);
	return q;
}

/* Nothing in the program asks for more than malloc's own alignment. */
void *aligned_alloc(size_t align, size_t size)
{
	if (align > STEP) {
		errno = EINVAL;
		return NULL;
	}
	return malloc(size);
}
