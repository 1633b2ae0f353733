/*
 * fortify: functions that a distribution's static libraries call since they were built for another
 * C library: the checked forms that _FORTIFY_SOURCE (1 to 3) makes of calls, and the names that
 * glibc's headers (2.38 and later) give to strtol() and its kin. Each does what its plain form
 * does, within the size that the caller's compiler knew. More are here than any one distribution
 * needs; what is not called is left out when the program is linked.
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
int __vsprintf_chk(char *out, int flag, size_t room, const char *fmt, va_list ap);
int __fprintf_chk(FILE *file, int flag, const char *fmt, ...);
int __vfprintf_chk(FILE *file, int flag, const char *fmt, va_list ap);
int __printf_chk(int flag, const char *fmt, ...);
int __asprintf_chk(char **ret, int flag, const char *fmt, ...);
int __vasprintf_chk(char **ret, int flag, const char *fmt, va_list ap);
void *__memcpy_chk(void *to, const void *from, size_t len, size_t room);
void *__memmove_chk(void *to, const void *from, size_t len, size_t room);
void *__memset_chk(void *to, int byte, size_t len, size_t room);
void *__mempcpy_chk(void *to, const void *from, size_t len, size_t room);
void __explicit_bzero_chk(void *to, size_t len, size_t room);
char *__strcpy_chk(char *to, const char *from, size_t room);
char *__stpcpy_chk(char *to, const char *from, size_t room);
char *__strncpy_chk(char *to, const char *from, size_t len, size_t room);
char *__strcat_chk(char *to, const char *from, size_t room);
char *__strncat_chk(char *to, const char *from, size_t len, size_t room);
size_t __strlcpy_chk(char *to, const char *from, size_t size, size_t room);
size_t __strlcat_chk(char *to, const char *from, size_t size, size_t room);
ssize_t __read_chk(int fd, void *to, size_t len, size_t room);
size_t __fread_chk(void *to, size_t room, size_t size, size_t count, FILE *file);
char *__fgets_chk(char *to, size_t room, int size, FILE *file);
long __isoc23_strtol(const char *text, char **ret_end, int base);
unsigned long __isoc23_strtoul(const char *text, char **ret_end, int base);
long long __isoc23_strtoll(const char *text, char **ret_end, int base);
unsigned long long __isoc23_strtoull(const char *text, char **ret_end, int base);

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

int __vsprintf_chk(char *out, int flag, size_t room, const char *fmt, va_list ap)
{
	size_t size = room > 0x7fffffff ? 0x7fffffff : room;
	int len = __vsnprintf_chk(out, size, flag, room, fmt, ap);
	if (len >= 0 && (size_t)len >= size)
		abort();
	return len;
}

int __sprintf_chk(char *out, int flag, size_t room, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int len = __vsprintf_chk(out, flag, room, fmt, ap);
	va_end(ap);
	return len;
}

int __vfprintf_chk(FILE *file, int flag, const char *fmt, va_list ap)
{
	(void)flag;
	return vfprintf(file, fmt, ap);
}

int __fprintf_chk(FILE *file, int flag, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int len = __vfprintf_chk(file, flag, fmt, ap);
	va_end(ap);
	return len;
}

int __printf_chk(int flag, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int len = __vfprintf_chk(stdout, flag, fmt, ap);
	va_end(ap);
	return len;
}

int __vasprintf_chk(char **ret, int flag, const char *fmt, va_list ap)
{
	(void)flag;
	return vasprintf(ret, fmt, ap);
}

int __asprintf_chk(char **ret, int flag, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int len = __vasprintf_chk(ret, flag, fmt, ap);
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

void *__mempcpy_chk(void *to, const void *from, size_t len, size_t room)
{
	return (char *)__memcpy_chk(to, from, len, room) + len;
}

void __explicit_bzero_chk(void *to, size_t len, size_t room)
{
	if (len > room)
		abort();
	explicit_bzero(to, len);
}

char *__stpcpy_chk(char *to, const char *from, size_t room)
{
	size_t len = strlen(from);
	__memcpy_chk(to, from, len + 1, room);
	return to + len;
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

char *__strncat_chk(char *to, const char *from, size_t len, size_t room)
{
	size_t used = strnlen(to, room), added = strnlen(from, len);
	if (added >= room - used)
		abort();
	memcpy(to + used, from, added);
	to[used + added] = 0;
	return to;
}

/* As BSD has it; written out, since a C library without it is no reason not to link. */
size_t __strlcpy_chk(char *to, const char *from, size_t size, size_t room)
{
	size_t len = strlen(from);
	if (size > room)
		abort();
	if (size > 0) {
		size_t part = len < size ? len : size - 1;
		memcpy(to, from, part);
		to[part] = 0;
	}
	return len;
}

size_t __strlcat_chk(char *to, const char *from, size_t size, size_t room)
{
	if (size > room)
		abort();
	size_t used = strnlen(to, size);
	return used + (used < size ? __strlcpy_chk(to + used, from, size - used, room - used)
				   : strlen(from));
}

ssize_t __read_chk(int fd, void *to, size_t len, size_t room)
{
	if (len > room)
		abort();
	return read(fd, to, len);
}

size_t __fread_chk(void *to, size_t room, size_t size, size_t count, FILE *file)
{
	size_t total;
	if (__builtin_mul_overflow(size, count, &total) || total > room)
		abort();
	return fread(to, size, count, file);
}

char *__fgets_chk(char *to, size_t room, int size, FILE *file)
{
	if (size < 0 || (size_t)size > room)
		abort();
	return fgets(to, size, file);
}

/* Beside the plain forms these know the prefix 0b, for the bases 0 and 2; nothing here uses it. */
long __isoc23_strtol(const char *text, char **ret_end, int base)
{
	return strtol(text, ret_end, base);
}

unsigned long __isoc23_strtoul(const char *text, char **ret_end, int base)
{
	return strtoul(text, ret_end, base);
}

long long __isoc23_strtoll(const char *text, char **ret_end, int base)
{
	return strtoll(text, ret_end, base);
}

unsigned long long __isoc23_strtoull(const char *text, char **ret_end, int base)
{
	return strtoull(text, ret_end, base);
}
