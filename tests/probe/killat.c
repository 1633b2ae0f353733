/*
 * killat: runs a program and kills it just before one of its system calls, as a crash would.
 *
 *	probe-killat N COMMAND [ARG...]
 *
 * N counts from 1, behind the exec. Status 0: it was killed there; 1: it ended before by itself;
 * 2: it could not be run.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

int main(int argc, char **argv)
{
	int status;
	if (argc < 3)
		return 2;
	long at = atol(argv[1]), stops = 0;
	pid_t pid = start(argv + 2);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return 2;
	ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD));
	for (int pass = 0;;) {
		if (ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(long)pass) < 0 ||
			waitpid(pid, &status, 0) != pid)
			return 2;
		if (WIFEXITED(status) || WIFSIGNALED(status))
			return 1;
		pass = 0;
		if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
			pass = WSTOPSIG(status);
			continue;
		}
		/* Odd stops are entries, even ones returns. */
		if (++stops == 2 * at - 1) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return 0;
		}
	}
}
