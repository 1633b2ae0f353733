/*
 * newcalls: tries the calls, old and new, that make namespaces and mounts, and a few others that
 * have no business in a box. One line each: "NAME ERRNO-NAME", or "NAME 0" where it was let
 * through.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_open_tree
#define SYS_open_tree 428
#endif
#ifndef SYS_move_mount
#define SYS_move_mount 429
#endif
#ifndef SYS_fsopen
#define SYS_fsopen 430
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#define OPEN_TREE_CLONE_FLAG 1
/* Far above every number in use: what a kernel of the future may add. */
#define FUTURE_CALL 900

static void say(const char *name, long answer)
{
	if (answer >= 0)
		printf("%s 0\n", name);
	else if (errno == EPERM)
		printf("%s EPERM\n", name);
	else if (errno == ENOSYS)
		printf("%s ENOSYS\n", name);
	else
		printf("%s %s\n", name, strerror(errno));
	fflush(stdout);
}

static void try_clone3(void)
{
	struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		_exit(0);
	say("clone3", pid);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, 0);
}

static void try_clone(void)
{
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	say("clone", pid);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, 0);
}

int main(void)
{
	char attributes[32] = { 0 };

	try_clone3();
	try_clone();
	say("unshare", unshare(CLONE_NEWUSER | CLONE_NEWNS));
	say("setns", syscall(SYS_setns, -1, 0));
	say("fsopen", syscall(SYS_fsopen, "proc", 0));
	say("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE_FLAG));
	say("move_mount", syscall(SYS_move_mount, -1, "", AT_FDCWD, "/tmp", 4));
	say("mount_setattr",
		syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, attributes, sizeof(attributes)));
	say("mount", mount("none", "/tmp", "tmpfs", 0, NULL));
	say("umount2", umount2("/tmp", MNT_DETACH));
	say("pivot_root", syscall(SYS_pivot_root, "/tmp", "/tmp"));
	say("bpf", syscall(SYS_bpf, 0, attributes, sizeof(attributes)));
	say("perf_event_open", syscall(SYS_perf_event_open, attributes, 0, -1, -1, 0));
	say("keyctl", syscall(SYS_keyctl, 0, -3, 0));
	say("add_key", syscall(SYS_add_key, "user", "probe", "x", 1, -3));
	say("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0));
	say("userfaultfd", syscall(SYS_userfaultfd, 0));
	say("io_uring_setup", syscall(SYS_io_uring_setup, 1, NULL));
	say("future", syscall(FUTURE_CALL));
	return 0;
}
