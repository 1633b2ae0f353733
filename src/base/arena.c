/* arena: memory that lives and dies together. */
#define _GNU_SOURCE
#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_SIZE (16384 - 64) /* with its head and malloc's still a round size */
#define ALIGN      16

struct arena_block {
	struct arena_block *next;
	size_t used, size;
	_Alignas(ALIGN) char data[];
};

static void out_of_memory(void)
{
	static const char text[] = "agentbox: out of memory\n";
	(void)!write(2, text, sizeof text - 1);
	abort();
}

void *arena_alloc(struct arena *arena, size_t size)
{
	if (size > SIZE_MAX / 2)
		out_of_memory();
	size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	struct arena_block *block = arena->head;
	if (!block || block->size - block->used < size) {
		size_t room = size > BLOCK_SIZE / 4 ? size : BLOCK_SIZE;
		block = malloc(sizeof *block + room);
		if (!block)
			out_of_memory();
		block->used = 0;
		block->size = room;
		/* A block made to measure goes behind the head, so that the head's room is not
		 * lost. */
		if (room != BLOCK_SIZE && arena->head) {
			block->next = arena->head->next;
			arena->head->next = block;
		} else {
			block->next = arena->head;
			arena->head = block;
		}
	}
	void *p = block->data + block->used;
	block->used += size;
	return memset(p, 0, size);
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
	size_t total;
	if (__builtin_mul_overflow(count, size, &total))
		out_of_memory();
	return arena_alloc(arena, total);
}

char *arena_strndup(struct arena *arena, const char *text, size_t len)
{
	char *copy = arena_alloc(arena, len + 1);
	memcpy(copy, text, len);
	return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
	return arena_strndup(arena, text, strlen(text));
}

char *arena_join(struct arena *arena, const char *a, const char *b, const char *c)
{
	size_t len_a = strlen(a), len_b = strlen(b), len_c = strlen(c);
	char *text = arena_alloc(arena, len_a + len_b + len_c + 1);
	memcpy(text, a, len_a);
	memcpy(text + len_a, b, len_b);
	memcpy(text + len_a + len_b, c, len_c);
	return text;
}

char *arena_vprintf(struct arena *arena, const char *fmt, va_list ap)
{
	char small[256];
	va_list again;
	va_copy(again, ap);
	int len = vsnprintf(small, sizeof small, fmt, ap);
	if (len < 0)
		out_of_memory();
	char *text = arena_alloc(arena, (size_t)len + 1);
	if ((size_t)len < sizeof small)
		memcpy(text, small, (size_t)len);
	else
		vsnprintf(text, (size_t)len + 1, fmt, again);
	va_end(again);
	return text;
}

char *arena_printf(struct arena *arena, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *text = arena_vprintf(arena, fmt, ap);
	va_end(ap);
	return text;
}

void *arena_push(struct arena *arena, void *items_ptr, size_t *count, size_t size)
{
	char **items = items_ptr;
	size_t n = *count;
	/* Full at 0 and at each power of two from 8 on. */
	if (n == 0 || (n >= 8 && (n & (n - 1)) == 0)) {
		char *grown = arena_array(arena, n ? n * 2 : 8, size);
		if (n)
			memcpy(grown, *items, n * size);
		*items = grown;
	}
	*count = n + 1;
	return memset(*items + n * size, 0, size);
}

void arena_free(struct arena *arena)
{
	struct arena_block *block = arena->head;
	while (block) {
		struct arena_block *next = block->next;
		free(block);
		block = next;
	}
	arena->head = NULL;
}
