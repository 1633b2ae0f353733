/*
 * resolve_confine: takes away what a process that reads answers from the network does not need.
 * Modules of the C library are loaded later, on demand, so more stays than its own resolver uses;
 * what stays writes nothing, starts nothing and listens for nothing.
 */
#define _GNU_SOURCE
#include "broker/resolve_confine.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/confine.h"
#include "base/sys.h"

#define MEMORY_MAX      ((rlim_t)1 << 30) /* of addresses: stacks, and what modules map */
#define DESCRIPTORS_MAX 256

/*
 * The settings, what they are links to, the libraries, and what modules of the C library share with
 * their services. Sockets below /run need no such right.
 */
static const char *const readable[] = { "/etc", "/usr", "/lib", "/lib64", "/lib32", "/nix/store",
	"/gnu/store", "/run/systemd/resolve", "/run/systemd/netif", "/run/resolvconf",
	"/run/NetworkManager", "/run/connman", "/run/netconfig", "/run/nscd", "/run/avahi-daemon",
	"/run/host", "/var/cache/nscd", "/var/db/nscd", "/var/lib/sss", "/dev/urandom",
	"/dev/null" };
#define READABLE (sizeof readable / sizeof *readable)

static const int calls[] = {
	/* files */
	SYS_openat, SYS_read, SYS_readv, SYS_pread64, SYS_lseek, SYS_close, SYS_fstat,
	SYS_newfstatat, SYS_statx, SYS_statfs, SYS_fstatfs, SYS_readlinkat, SYS_faccessat,
	SYS_faccessat2, SYS_getdents64, SYS_fcntl, SYS_ioctl, SYS_dup, SYS_write, SYS_writev,
#if defined(__x86_64__)
	SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_poll, SYS_select, SYS_epoll_wait,
	SYS_time, SYS_getdents,
#endif
	/* sockets */
	SYS_socket, SYS_connect, SYS_bind, SYS_getsockname, SYS_getpeername, SYS_getsockopt,
	SYS_setsockopt, SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_recvfrom, SYS_recvmsg,
	SYS_recvmmsg, SYS_shutdown, SYS_ppoll, SYS_pselect6, SYS_epoll_create1, SYS_epoll_ctl,
	SYS_epoll_pwait,
	/* memory, threads, time */
	SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_clone, SYS_clone3,
	SYS_set_robust_list, SYS_rseq, SYS_sigaltstack, SYS_futex, SYS_sched_yield,
	SYS_sched_getaffinity, SYS_prlimit64, SYS_getrandom, SYS_rt_sigprocmask, SYS_rt_sigaction,
	SYS_rt_sigreturn, SYS_restart_syscall, SYS_clock_gettime, SYS_clock_getres,
	SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday, SYS_uname, SYS_sysinfo, SYS_getpid,
	SYS_gettid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_exit, SYS_exit_group
};

/* Threads but no processes; the C library falls back from clone3(2), whose flags are out of sight.
 */
static const struct confine_argument arguments[] = {
	{ SYS_socket, 0, ~0u, AF_UNIX, EAFNOSUPPORT },
	{ SYS_socket, 0, ~0u, AF_INET, EAFNOSUPPORT },
	{ SYS_socket, 0, ~0u, AF_INET6, EAFNOSUPPORT },
	{ SYS_socket, 0, ~0u, AF_NETLINK, EAFNOSUPPORT },
	{ SYS_openat, 2, O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY), O_RDONLY,
		EPERM },
	{ SYS_ioctl, 1, ~0u, FIONREAD, ENOTTY },
	{ SYS_clone, 0, CLONE_THREAD | CLONE_VM, CLONE_THREAD | CLONE_VM, EPERM },
	{ SYS_clone3, 0, 0, 1, ENOSYS },
};

#if defined(__SANITIZE_ADDRESS__)
/* What looks for leaks at the end would need calls that are gone by then. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

static int limit_all(void)
{
	int r = confine_limit(RLIMIT_NOFILE, DESCRIPTORS_MAX);
	if (r == 0)
		r = confine_limit(RLIMIT_CORE, 0);
		/* A sanitizer's shadow does not fit. */
#if !defined(__SANITIZE_ADDRESS__)
	if (r == 0)
		r = confine_limit(RLIMIT_AS, MEMORY_MAX);
#endif
	return r;
}

/*
 * resolv.conf may be a link to a directory that is in no list; it is replaced as a whole, so the
 * directory counts. At the top of a file system the file alone does.
 */
static int lock_files(bool lax)
{
	const char *paths[READABLE + 1];
	size_t count = READABLE;
	memcpy(paths, readable, sizeof readable);
	char *target = realpath("/etc/resolv.conf", NULL);
	char *slash = target ? strrchr(target, '/') : NULL;
	if (slash && slash != target && memchr(target + 1, '/', (size_t)(slash - target - 1)))
		*slash = 0;
	if (target)
		paths[count++] = target;
	int r = confine_reading(paths, count, true);
	free(target);
	return r == -EOPNOTSUPP && lax ? 0 : r;
}

int resolve_confine(uid_t uid, gid_t gid, bool lax)
{
	int r = confine_ids(uid, gid);
	if (r == 0)
		r = confine_alone();
	if (r == 0)
		r = limit_all();
	if (r == 0)
		r = lock_files(lax);
	if (r == 0)
		r = confine_arguments(arguments, sizeof arguments / sizeof *arguments);
	return r ? r : confine_calls(calls, sizeof calls / sizeof *calls);
}
