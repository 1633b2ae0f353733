/*
 * deny: runs a command on a host that refuses things, by a seccomp filter of its own.
 *
 *	deny NAME=ERRNO... -- COMMAND [ARG...]
 *
 * NAME is a system call's name, or clone+ns for clone(2) with any namespace flag (the default
 * profiles of container engines refuse just that). ERRNO is EPERM, EACCES, ENOSYS, EINVAL, ENOSPC
 *or EMFILE.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAMESPACE_FLAGS                                                                            \
	(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | \
		0x02000000 /* CLONE_NEWCGROUP */)
#define RULES_MAX 64

static int errno_number(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} known[] = { { "EPERM", EPERM }, { "EACCES", EACCES }, { "ENOSYS", ENOSYS },
		{ "EINVAL", EINVAL }, { "ENOSPC", ENOSPC }, { "EMFILE", EMFILE } };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(name, known[i].name) == 0)
			return known[i].number;
	fprintf(stderr, "deny: unknown errno: %s\n", name);
	exit(2);
}

static int call_number(const char *name)
{
	int number = seccomp_syscall_resolve_name(name);

	if (number < 0) {
		fprintf(stderr, "deny: unknown system call: %s\n", name);
		exit(2);
	}
	return number;
}

/* Add the instructions for one rule; they fall through when it does not apply. */
static size_t add_rule(struct sock_filter *at, const char *name, int errnum)
{
	struct sock_filter refuse = BPF_STMT(
		BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)errnum & SECCOMP_RET_DATA));

	if (strcmp(name, "clone+ns") == 0) {
		struct sock_filter code[] = {
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone, 0, 4),
			BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
			BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NAMESPACE_FLAGS, 0, 1),
			refuse,
			BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		};
		memcpy(at, code, sizeof(code));
		return sizeof(code) / sizeof(code[0]);
	}
	at[0] = (struct sock_filter)BPF_JUMP(
		BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call_number(name), 0, 1);
	at[1] = refuse;
	return 2;
}

int main(int argc, char **argv)
{
	struct sock_filter code[RULES_MAX * 5 + 2];
	struct sock_fprog program = { .filter = code };
	size_t len = 0;
	int i;

	code[len++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (i = 1; i < argc && strcmp(argv[i], "--") != 0 && i <= RULES_MAX; i++) {
		char *equals = strchr(argv[i], '=');

		if (!equals)
			break;
		*equals = '\0';
		len += add_rule(code + len, argv[i], errno_number(equals + 1));
	}
	if (i + 1 >= argc || strcmp(argv[i], "--") != 0) {
		fprintf(stderr, "usage: deny NAME=ERRNO... -- COMMAND [ARG...]\n");
		return 2;
	}
	code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = (unsigned short)len;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) {
		perror("deny: seccomp");
		return 2;
	}
	execvp(argv[i + 1], argv + i + 1);
	perror("deny: exec");
	return 2;
}
