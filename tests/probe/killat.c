/*
 * killat: runs a program and kills it just before one of its system calls, as a crash would; or has
 * something else done at the worst moment.
 *
 *	probe-killat N COMMAND [ARG...]
 *	probe-killat -b SHELL-COMMAND COMMAND [ARG...]
 *
 * N counts from 1, behind the exec. Status 0: it was killed there; 1: it ended before by itself;
 * 2: it could not be run.
 * -b: the shell command is run before each renameat2() that exchanges names or may not replace one.
 * Status 0: there was one; 1: there was none; 2: as above.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start(char **argv)
{
	pid_t pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execvp(argv[0], argv);
		_exit(127);
	}
	return pid;
}

/* Is it about to rename, and not in the plain way? */
static bool is_moment(pid_t pid)
{
	struct __ptrace_syscall_info info;
	return ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof info, &info) > 0 &&
	       info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == SYS_renameat2 &&
	       info.entry.args[4] != 0;
}

int main(int argc, char **argv)
{
	int status;
	if (argc < 3)
		return 2;
	const char *shell = argc > 3 && strcmp(argv[1], "-b") == 0 ? argv[2] : NULL;
	long at = shell ? 0 : atol(argv[1]), stops = 0, moments = 0;
	pid_t pid = start(argv + (shell ? 3 : 2));
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return 2;
	ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD));
	for (int pass = 0;;) {
		if (ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(long)pass) < 0 ||
			waitpid(pid, &status, 0) != pid)
			return 2;
		if (WIFEXITED(status) || WIFSIGNALED(status))
			return shell && moments ? 0 : 1;
		pass = 0;
		if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
			pass = WSTOPSIG(status);
			continue;
		}
		if (shell && is_moment(pid)) {
			moments++;
			if (system(shell) != 0)
				return 2;
		}
		/* Odd stops are entries, even ones returns. */
		if (++stops == 2 * at - 1) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return 0;
		}
	}
}
