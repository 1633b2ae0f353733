/*
 * fault: runs a command under ptrace and makes one chosen system call of one chosen process fail,
 * as a full or hostile host would.
 *
 *	fault list COMMAND [ARG...]			one line per call: PROCESS NAME ARG
 *	fault ERRNO PROCESS NAME NTH COMMAND [ARG...]	that one fails with the number ERRNO
 *
 * PROCESS is the way down from the first process, which is 0: the second child of its first child
 *is
 *12. NTH counts the calls of that NAME in that process from 0; ARG is the first argument in
 *hexadecimal. The listing ends with the second successful exec that is not the first process's:
 *that is where the box's command begins. The report goes to the file descriptor in $FAULT_FD
 *(default 2); the exit status is that of the command.
 */
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES_MAX 64

struct process {
	pid_t pid;    /* as long as it lives */
	int name;     /* PROCESS */
	int children; /* born so far */
	long named;   /* calls of the wanted name begun so far */
	bool failing; /* this is the one to fail */
	long number;
};

struct tracer {
	struct process processes[PROCESSES_MAX];
	int count;
	pid_t early[PROCESSES_MAX]; /* stopped, and not yet told of by their parents */
	int early_count;
	int report;
	bool list;
	bool over; /* the command has been started: no more listing, no more faults */
	int errnum, process, wanted;
	long nth;
};

static struct process *known(struct tracer *tracer, pid_t pid)
{
	for (int i = 0; i < tracer->count; i++)
		if (tracer->processes[i].pid == pid)
			return &tracer->processes[i];
	return NULL;
}

static struct process *add(struct tracer *tracer, pid_t pid, int name)
{
	if (tracer->count == PROCESSES_MAX) {
		fprintf(stderr, "fault: more than %d processes\n", PROCESSES_MAX);
		exit(2);
	}
	struct process *process = &tracer->processes[tracer->count++];
	*process = (struct process){ .pid = pid, .name = name };
	return process;
}

static void go_on(pid_t pid, int pass)
{
	if (ptrace(PTRACE_SYSCALL, pid, 0, pass) < 0 && errno != ESRCH)
		perror("fault: ptrace");
}

/* A process tells of a child. The child may have been seen before, and then waits for its name. */
static void on_birth(struct tracer *tracer, struct process *parent)
{
	unsigned long child = 0;

	if (ptrace(PTRACE_GETEVENTMSG, parent->pid, 0, &child) < 0)
		return;
	add(tracer, (pid_t)child, parent->name * 10 + ++parent->children);
	for (int i = 0; i < tracer->early_count; i++)
		if (tracer->early[i] == (pid_t)child) {
			tracer->early[i] = tracer->early[--tracer->early_count];
			go_on((pid_t)child, 0);
			return;
		}
}

static void on_entry(struct tracer *tracer, struct process *process, struct user_regs_struct *regs)
{
	process->number = (long)regs->orig_rax;
	if (tracer->list && !tracer->over) {
		char *name =
			seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)process->number);

		dprintf(tracer->report, "%d %s %llx\n", process->name, name ? name : "?",
			regs->rdi);
		free(name);
	}
	if (tracer->list || tracer->over || process->name != tracer->process ||
		process->number != tracer->wanted)
		return;
	if (process->named++ == tracer->nth) {
		process->failing = true;
		/* close(2) gives the descriptor up whatever it answers; the others do nothing. */
		if (process->number != SYS_close)
			regs->orig_rax = (unsigned long long)-1;
		ptrace(PTRACE_SETREGS, process->pid, 0, regs);
	}
}

static void on_exit_of_call(
	struct tracer *tracer, struct process *process, struct user_regs_struct *regs)
{
	bool is_exec = process->number == SYS_execve || process->number == SYS_execveat;

	if (process->failing) {
		process->failing = false;
		/* brk(2) says no by returning the break as it was; 0 is below every one that is
		 * asked for. */
		regs->rax = process->number == SYS_brk
				    ? 0
				    : (unsigned long long)-(long long)tracer->errnum;
		ptrace(PTRACE_SETREGS, process->pid, 0, regs);
		return;
	}
	if (is_exec && (long long)regs->rax == 0 && process != &tracer->processes[0])
		tracer->over = true;
}

static void on_call(struct tracer *tracer, struct process *process)
{
	struct __ptrace_syscall_info info;
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, process->pid, 0, &regs) < 0 ||
		ptrace(PTRACE_GET_SYSCALL_INFO, process->pid, sizeof(info), &info) < 0)
		return;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
		on_entry(tracer, process, &regs);
	else if (info.op == PTRACE_SYSCALL_INFO_EXIT)
		on_exit_of_call(tracer, process, &regs);
}

/* Wait for everything; the status of the first process. */
static int follow(struct tracer *tracer)
{
	int answer = 2, status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		struct process *process = known(tracer, pid);
		int pass = 0, event = status >> 16;

		if (!process) {
			if (WIFSTOPPED(status) && tracer->early_count < PROCESSES_MAX)
				tracer->early[tracer->early_count++] = pid;
			continue;
		}
		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			if (process == &tracer->processes[0])
				answer = WIFEXITED(status) ? WEXITSTATUS(status)
							   : 128 + WTERMSIG(status);
			process->pid = -1;
			continue;
		}
		if (!WIFSTOPPED(status))
			continue;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			on_call(tracer, process);
		else if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
			 event == PTRACE_EVENT_CLONE)
			on_birth(tracer, process);
		else if (event == 0 && WSTOPSIG(status) != SIGSTOP)
			pass = WSTOPSIG(status);
		go_on(pid, pass);
	}
	return answer;
}

static int start(char **argv, int report)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (report > 2)
			fcntl(report, F_SETFD, FD_CLOEXEC);
		raise(SIGSTOP);
		execvp(argv[0], argv);
		_exit(127);
	}
	return pid;
}

int main(int argc, char **argv)
{
	long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
		       PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
	static struct tracer tracer;
	const char *fd = getenv("FAULT_FD");
	char **command;
	pid_t pid;
	int status;

	tracer.list = argc > 2 && strcmp(argv[1], "list") == 0;
	if (!tracer.list && argc < 6) {
		fprintf(stderr,
			"usage: fault list COMMAND... | fault ERRNO PROCESS NAME NTH COMMAND...\n");
		return 2;
	}
	command = argv + (tracer.list ? 2 : 5);
	tracer.report = fd ? atoi(fd) : 2;
	unsetenv("FAULT_FD");
	if (!tracer.list) {
		tracer.errnum = atoi(argv[1]);
		tracer.process = atoi(argv[2]);
		tracer.wanted = seccomp_syscall_resolve_name(argv[3]);
		tracer.nth = atol(argv[4]);
	}
	pid = start(command, tracer.report);
	if (pid < 0 || waitpid(pid, &status, WUNTRACED) != pid ||
		ptrace(PTRACE_SEIZE, pid, 0, options) < 0) {
		perror("fault: start");
		return 2;
	}
	add(&tracer, pid, 0);
	kill(pid, SIGCONT);
	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	return follow(&tracer);
}
