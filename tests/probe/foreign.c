/*
 * foreign: makes system calls by the entries that a filter for x86-64 numbers does not know: the
 * 32-bit one (int 0x80) and x32 numbers. Says what came back, as "NAME: ERRNO".
 *
 *	foreign i386-socket | i386-ptrace | x32-socket
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)

static long i386_call(long number, long a, long b, long c)
{
	long answer;

	__asm__ volatile("int $0x80"
			 : "=a"(answer)
			 : "a"(number), "b"(a), "c"(b), "d"(c)
			 : "memory", "cc", "r8", "r9", "r10", "r11");
	return answer;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	long answer;

	printf("%s: called\n", what);
	fflush(stdout);
	if (strcmp(what, "i386-socket") == 0)
		answer = i386_call(359, 1 /* AF_UNIX */, 1 /* SOCK_STREAM */, 0);
	else if (strcmp(what, "i386-ptrace") == 0)
		answer = i386_call(26, 0 /* PTRACE_TRACEME */, 0, 0);
	else if (strcmp(what, "x32-socket") == 0)
		answer = syscall(0x40000000 | 41, 1, 1, 0) < 0 ? -errno : 0;
	else
		return 2;
	if (answer == -ENOSYS) {
		printf("%s: ENOSYS\n", what);
		return 3;
	}
	printf("%s: answered %ld\n", what, answer);
	return 0;
}

#else

int main(void)
{
	fprintf(stderr, "foreign: only x86-64 has these entries\n");
	return 77;
}

#endif
