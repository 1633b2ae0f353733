/*
 * sys: system calls that older C libraries lack, raw, each returning its value or -errno, and the
 * kernel's constants that older headers lack (values from the kernel's uapi headers).
 * Async-signal-safe: the box's child side uses nothing else.
 */
#ifndef AGENTBOX_BASE_SYS_H
#define AGENTBOX_BASE_SYS_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* clone3(2), Linux 5.5 */
struct sys_clone_args {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
		set_tid_size, cgroup;
};

/* mount_setattr(2), Linux 5.12 */
struct sys_mount_attr {
	uint64_t attr_set, attr_clr, propagation, userns_fd;
};

/* openat2(2), Linux 5.6 */
struct sys_open_how {
	uint64_t flags, mode, resolve;
};

/* landlock(7) */
struct sys_landlock_ruleset_attr {
	uint64_t handled_access_fs, handled_access_net, scoped;
};
struct sys_landlock_path_beneath_attr {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

#define SYS_LANDLOCK_CREATE_RULESET_VERSION 1u
#define SYS_LANDLOCK_RULE_PATH_BENEATH      1
#define SYS_LANDLOCK_FS_EXECUTE             (1ull << 0)
#define SYS_LANDLOCK_FS_WRITE_FILE          (1ull << 1)
#define SYS_LANDLOCK_FS_READ_FILE           (1ull << 2)
#define SYS_LANDLOCK_FS_READ_DIR            (1ull << 3)
#define SYS_LANDLOCK_FS_REMOVE_DIR          (1ull << 4)
#define SYS_LANDLOCK_FS_REMOVE_FILE         (1ull << 5)
#define SYS_LANDLOCK_FS_MAKE_CHAR           (1ull << 6)
#define SYS_LANDLOCK_FS_MAKE_DIR            (1ull << 7)
#define SYS_LANDLOCK_FS_MAKE_REG            (1ull << 8)
#define SYS_LANDLOCK_FS_MAKE_SOCK           (1ull << 9)
#define SYS_LANDLOCK_FS_MAKE_FIFO           (1ull << 10)
#define SYS_LANDLOCK_FS_MAKE_BLOCK          (1ull << 11)
#define SYS_LANDLOCK_FS_MAKE_SYM            (1ull << 12)
#define SYS_LANDLOCK_FS_REFER               (1ull << 13) /* ABI 2, Linux 5.19 */
#define SYS_LANDLOCK_FS_TRUNCATE            (1ull << 14) /* ABI 3, Linux 6.2 */
#define SYS_LANDLOCK_FS_IOCTL_DEV           (1ull << 15) /* ABI 5, Linux 6.10 */
#define SYS_LANDLOCK_NET_BIND_TCP           (1ull << 0)  /* ABI 4, Linux 6.7 */
#define SYS_LANDLOCK_NET_CONNECT_TCP        (1ull << 1)
#define SYS_LANDLOCK_SCOPE_ABSTRACT_UNIX    (1ull << 0) /* ABI 6, Linux 6.12 */
#define SYS_LANDLOCK_SCOPE_SIGNAL           (1ull << 1)

#define SYS_OPEN_TREE_CLONE       1u
#define SYS_OPEN_TREE_CLOEXEC     02000000u
#define SYS_MOVE_MOUNT_F_EMPTY    0x4u
#define SYS_MOVE_MOUNT_T_EMPTY    0x40u
#define SYS_MOUNT_ATTR_RDONLY     0x1u
#define SYS_MOUNT_ATTR_NOSUID     0x2u
#define SYS_MOUNT_ATTR_NODEV      0x4u
#define SYS_MOUNT_ATTR_NOEXEC     0x8u
#define SYS_MOUNT_ATTR_IDMAP      0x100000u
#define SYS_FSOPEN_CLOEXEC        1u
#define SYS_FSMOUNT_CLOEXEC       1u
#define SYS_FSCONFIG_SET_FLAG     0u
#define SYS_FSCONFIG_SET_STRING   1u
#define SYS_FSCONFIG_CREATE       6u
#define SYS_RESOLVE_NO_XDEV       0x01u
#define SYS_RESOLVE_NO_MAGICLINKS 0x02u
#define SYS_RESOLVE_NO_SYMLINKS   0x04u
#define SYS_RESOLVE_BENEATH       0x08u
#define SYS_RESOLVE_IN_ROOT       0x10u
#define SYS_AT_RECURSIVE          0x8000
#define SYS_CLOSE_RANGE_CLOEXEC   4u
#define SYS_CLONE_NEWTIME         0x80u
#define SYS_CLONE_PIDFD           0x1000u
#define SYS_CLONE_INTO_CGROUP     0x200000000ull /* Linux 5.7 */

static inline long sys_ret(long value)
{
	return value < 0 ? -errno : value;
}

/*
 * A system call without the C library, and so without errno: for a task that shares its memory with
 * another one. Returns the kernel's value, -errno for an error.
 */
static inline long sys_bare(long number, long a, long b, long c)
{
#if defined(__x86_64__)
	long value;
	__asm__ volatile("syscall"
			 : "=a"(value)
			 : "a"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return value;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
#else
#error "the system call instruction of this machine is not known here"
#endif
}

/* The same with up to six arguments. */
static inline long sys_bare6(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	long value;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall"
			 : "=a"(value)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return value;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#endif
}

static inline int sys_open_tree(int dirfd, const char *path, unsigned flags)
{
	return (int)sys_ret(syscall(SYS_open_tree, dirfd, path, flags));
}

static inline int sys_move_mount(
	int from, const char *from_path, int to, const char *to_path, unsigned flags)
{
	return (int)sys_ret(syscall(SYS_move_mount, from, from_path, to, to_path, flags));
}

static inline int sys_mount_setattr(
	int dirfd, const char *path, unsigned flags, const struct sys_mount_attr *attr)
{
	return (int)sys_ret(syscall(SYS_mount_setattr, dirfd, path, flags, attr, sizeof *attr));
}

static inline int sys_fsopen(const char *type)
{
	return (int)sys_ret(syscall(SYS_fsopen, type, SYS_FSOPEN_CLOEXEC));
}

static inline int sys_fsconfig(int fs, unsigned command, const char *key, const char *value)
{
	return (int)sys_ret(syscall(SYS_fsconfig, fs, command, key, value, 0));
}

static inline int sys_fsmount(int fs, unsigned attr)
{
	return (int)sys_ret(syscall(SYS_fsmount, fs, SYS_FSMOUNT_CLOEXEC, attr));
}

static inline int sys_openat2(int dirfd, const char *path, uint64_t flags, uint64_t resolve)
{
	struct sys_open_how how = { .flags = flags, .resolve = resolve };
	return (int)sys_ret(syscall(SYS_openat2, dirfd, path, &how, sizeof how));
}

static inline int sys_pivot_root(const char *new_root, const char *put_old)
{
	return (int)sys_ret(syscall(SYS_pivot_root, new_root, put_old));
}

static inline int sys_close_range(unsigned first, unsigned last, unsigned flags)
{
	return (int)sys_ret(syscall(SYS_close_range, first, last, flags));
}

static inline int sys_landlock_create_ruleset(
	const struct sys_landlock_ruleset_attr *attr, size_t size, unsigned flags)
{
	return (int)sys_ret(syscall(SYS_landlock_create_ruleset, attr, size, flags));
}

static inline int sys_landlock_add_rule(int ruleset, int type, const void *attr)
{
	return (int)sys_ret(syscall(SYS_landlock_add_rule, ruleset, type, attr, 0));
}

static inline int sys_landlock_restrict_self(int ruleset)
{
	return (int)sys_ret(syscall(SYS_landlock_restrict_self, ruleset, 0));
}

static inline int sys_seccomp(unsigned op, unsigned flags, const void *args)
{
	return (int)sys_ret(syscall(SYS_seccomp, op, flags, args));
}

/* renameat2(2) with RENAME_NOREPLACE, Linux 3.15 */
static inline int sys_rename_noreplace(int from, const char *from_name, int to, const char *to_name)
{
	return (int)sys_ret(syscall(SYS_renameat2, from, from_name, to, to_name, 1u));
}

static inline int sys_pidfd_open(pid_t pid)
{
	return (int)sys_ret(syscall(SYS_pidfd_open, pid, 0));
}

static inline int sys_pidfd_send_signal(int pidfd, int signum)
{
	return (int)sys_ret(syscall(SYS_pidfd_send_signal, pidfd, signum, NULL, 0));
}

#endif
