/*
 * gateway_confine: what the gateway gives up before it is handed anything of the box's. Whoever
 * took it over by the bytes that it reads could do what it does: connect to hosts; and open no
 * file, start and signal no process, make no other kind of socket, keep no right of root's.
 */
#define _GNU_SOURCE
#include "broker/gateway_work.h"
#include "base/sys.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

/* The hot ones first. */
static const uint32_t calls[] = {
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
	SYS_epoll_pwait, SYS_recvfrom, SYS_sendto, SYS_splice, SYS_read, SYS_write, SYS_recvmsg,
	SYS_sendmsg, SYS_accept4, SYS_getsockname, SYS_getpeername, SYS_epoll_ctl, SYS_connect,
	SYS_setsockopt, SYS_getsockopt, SYS_close, SYS_shutdown, SYS_pipe2, SYS_clock_gettime,
	SYS_munmap, SYS_mremap, SYS_madvise, SYS_brk, SYS_futex, SYS_rt_sigreturn,
	SYS_rt_sigprocmask, SYS_restart_syscall, SYS_exit_group
};

#define LOAD(field)           BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF(value, yes, no)    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))
#define IF_SET(bits, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), (yes), (no))
#define ALLOW                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

/* Calls whose arguments count; the lower halves do, for the kernel reads no more of them. */
static const struct sock_filter with_arguments[] = {
	/* Only TCP over IPv4 and IPv6: no path to services of the host's own. */
	IF(SYS_socket, 0, 11),
	LOAD(args[0]),
	IF(AF_INET, 1, 0),
	IF(AF_INET6, 0, 7),
	LOAD(args[1]),
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf),
	IF(SOCK_STREAM, 0, 4),
	LOAD(args[2]),
	IF(0, 1, 0),
	IF(IPPROTO_TCP, 0, 1),
	ALLOW,
	REFUSE,
	/* No code is made. */
	IF(SYS_mmap, 1, 0),
	IF(SYS_mprotect, 0, 4),
	LOAD(args[2]),
	IF_SET(PROT_EXEC, 1, 0),
	ALLOW,
	REFUSE,
	/* Not F_SETOWN and its like, which make the kernel signal others. */
	IF(SYS_fcntl, 0, 6),
	LOAD(args[1]),
	IF(F_SETPIPE_SZ, 3, 0),
	IF(F_GETPIPE_SZ, 2, 0),
	IF(F_GETFL, 1, 0),
	REFUSE,
	ALLOW,
	REFUSE,
};

static int install_filter(void)
{
	enum { CALLS = sizeof calls / sizeof *calls };
	enum { MORE = sizeof with_arguments / sizeof *with_arguments };
	struct sock_filter code[4 + 2 * CALLS + MORE];
	size_t n = 0;
	code[n++] = (struct sock_filter)LOAD(arch);
	code[n++] = (struct sock_filter)IF(ARCH, 1, 0);
	code[n++] = (struct sock_filter)REFUSE;
	code[n++] = (struct sock_filter)LOAD(nr);
	for (size_t i = 0; i < CALLS; i++) {
		code[n++] = (struct sock_filter)IF(calls[i], 0, 1);
		code[n++] = (struct sock_filter)ALLOW;
	}
	for (size_t i = 0; i < MORE; i++)
		code[n++] = with_arguments[i];
	struct sock_fprog program = { .len = (unsigned short)n, .filter = code };
	return sys_seccomp(SECCOMP_SET_MODE_FILTER, 0, &program);
}

/* No file, no abstract socket, no signal to others: landlock(7). */
static int restrict_files(const struct plan *plan)
{
	if (plan->landlock_abi == 0)
		return 0;
	struct sys_landlock_ruleset_attr attr = {
		.handled_access_fs = plan->landlock_fs,
		.scoped = plan->landlock_scoped,
	};
	size_t size = plan->landlock_scoped ? sizeof attr : sizeof attr.handled_access_fs;
	int ruleset = sys_landlock_create_ruleset(&attr, size, 0);
	if (ruleset < 0)
		return ruleset;
	int r = sys_landlock_restrict_self(ruleset);
	close(ruleset);
	return r;
}

/* As root: the id that the box's command has outside, which owns nothing on the host. */
static int drop_rights(const struct plan *plan)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };
	if (plan->as_root) {
		gid_t gid = plan->outer_gid;
		uid_t uid = plan->outer_uid;
		/* The kernel's own calls: this process has one thread, and libc would ask others.
		 */
		if (syscall(SYS_setgroups, 0, NULL) < 0 ||
			syscall(SYS_setresgid, gid, gid, gid) < 0 ||
			syscall(SYS_setresuid, uid, uid, uid) < 0)
			return -errno;
	}
	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

int gateway_confine(const struct plan *plan, pid_t parent)
{
	int r = drop_rights(plan);
	if (r < 0)
		return r;
	/* After the ids, whose change takes the first of these back (prctl(2)). */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	if (getppid() != parent)
		return -ESRCH; /* it went before the first of these */
	(void)prctl(PR_SET_NAME, "agentbox-net", 0, 0, 0);
	r = restrict_files(plan);
	return r < 0 ? r : install_filter();
}
