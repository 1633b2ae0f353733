/*
 * fortify: the checked forms of C library functions that a distribution's static libraries call,
 * since they were built with _FORTIFY_SOURCE for another C library. Each does what its plain form
 * does, within the size that the caller's compiler knew.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Not declared by any header here. */
int __sprintf_chk(char *out, int flag, size_t room, const char *fmt, ...);
int __snprintf_chk(char *out, size_t size, int flag, size_t room, const char *fmt, ...);
int __vsnprintf_chk(char *out, size_t size, int flag, size_t room, const char *fmt, va_list ap);
int __fprintf_chk(FILE *file, int flag, const char *fmt, ...);
void *__memcpy_chk(void *to, const void *from, size_t len, size_t room);
void *__memmove_chk(void *to, const void *from, size_t len, size_t room);
void *__memset_chk(void *to, int byte, size_t len, size_t room);
char *__strcpy_chk(char *to, const char *from, size_t room);
char *__strncpy_chk(char *to, const char *from, size_t len, size_t room);
char *__strcat_chk(char *to, const char *from, size_t room);
ssize_t __read_chk(int fd, void *to, size_t len, size_t room);

int __vsnprintf_chk(char *out, size_t size, int flag, size_t room, const char *fmt, va_list ap)
{
	(void)flag;
	if (size > room)
		abort();
	return vsnprintf(out, size, fmt, ap);
}

int __snprintf_chk(char *out, size_t size, int flag, size_t room, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int len = __vsnprintf_chk(out, size, flag, room, fmt, ap);
	va_end(ap);
	return len;
}

int __sprintf_chk(char *out, int flag, size_t room, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	size_t size = room > 0x7fffffff ? 0x7fffffff : room;
	int len = __vsnprintf_chk(out, size, flag, room, fmt, ap);
	va_end(ap);
	if (len >= 0 && (size_t)len >= size)
		abort();
	return len;
}

int __fprintf_chk(FILE *file, int flag, const char *fmt, ...)
{
	(void)flag;
	va_list ap;
	va_start(ap, fmt);
	int len = vfprintf(file, fmt, ap);
	va_end(ap);
	return len;
}

void *__memcpy_chk(void *to, const void *from, size_t len, size_t room)
{
	if (len > room)
		abort();
	return memcpy(to, from, len);
}

void *__memmove_chk(void *to, const void *from, size_t len, size_t room)
{
	if (len > room)
		abort();
	return memmove(to, from, len);
}

void *__memset_chk(void *to, int byte, size_t len, size_t room)
{
	if (len > room)
		abort();
	return memset(to, byte, len);
}

char *__strcpy_chk(char *to, const char *from, size_t room)
{
	size_t len = strlen(from) + 1;
	return __memcpy_chk(to, from, len, room);
}

char *__strncpy_chk(char *to, const char *from, size_t len, size_t room)
{
	if (len > room)
		abort();
	return strncpy(to, from, len);
}

char *__strcat_chk(char *to, const char *from, size_t room)
{
	size_t used = strlen(to);
	if (used >= room)
		abort();
	__strcpy_chk(to + used, from, room - used);
	return to;
}

ssize_t __read_chk(int fd, void *to, size_t len, size_t room)
{
	if (len > room)
		abort();
	return read(fd, to, len);
}
