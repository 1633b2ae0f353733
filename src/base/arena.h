/*
 * arena: memory that lives and dies together. Each of the program's values (policy, host, plan,
 * result) owns one. Out of memory ends the program with status 125 and a line on stderr: there is
 * nothing sensible to do, and the kernel's overcommit makes it all but unreachable.
 */
#ifndef AGENTBOX_BASE_ARENA_H
#define AGENTBOX_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *head; /* NULL: empty; a zeroed struct is a valid arena */
};

/* Zeroed memory, aligned for any type; never NULL. Owned by the arena. */
void *arena_alloc(struct arena *arena, size_t size);

/* Zeroed array; the product is checked for overflow. */
void *arena_array(struct arena *arena, size_t count, size_t size);

#define ARENA_NEW(arena, type)          ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, count, type) ((type *)arena_array((arena), (count), sizeof(type)))

char *arena_strdup(struct arena *arena, const char *text);
char *arena_strndup(struct arena *arena, const char *text, size_t len);
/* Three texts in one; cheaper than arena_printf where many are made. */
char *arena_join(struct arena *arena, const char *a, const char *b, const char *c);
char *arena_printf(struct arena *arena, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *arena, const char *fmt, va_list ap);

/*
 * Append room for one element to an array that lives in the arena; *items and *count are updated,
 * the new element is zeroed and returned. Grows by doubling; old copies stay until the end.
 */
void *arena_push(struct arena *arena, void *items_ptr, size_t *count, size_t size);

/* Free everything. The struct may be used again. */
void arena_free(struct arena *arena);

#endif
