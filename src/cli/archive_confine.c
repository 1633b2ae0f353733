/*
 * archive_confine: takes away what a process that reads hostile bytes does not need. Opens nothing
 * that an archive could name.
 */
#define _GNU_SOURCE
#include "cli/archive_confine.h"

#include <poll.h>
#include <unistd.h>

#include "base/confine.h"
#include "base/sys.h"

#define MEMORY_MAX      ((rlim_t)512 << 20)
#define DESCRIPTORS_MAX 64

/* What reading a pipe, memory, and making files below a descriptor take. */
static const int calls[] = { SYS_read, SYS_readv, SYS_write, SYS_pwrite64, SYS_lseek, SYS_close,
	SYS_fstat, SYS_newfstatat, SYS_statx, SYS_openat, SYS_mkdirat, SYS_symlinkat, SYS_linkat,
	SYS_unlinkat, SYS_fchmod, SYS_fchmodat, SYS_ftruncate, SYS_utimensat, SYS_fcntl, SYS_brk,
	SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_futex, SYS_getrandom,
	SYS_clock_gettime, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_getpid, SYS_exit,
	SYS_exit_group };

#if defined(__SANITIZE_ADDRESS__)
/* What looks for leaks at the end would need calls that are gone by then. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

static int limit_all(uint64_t file_max)
{
	int r = confine_limit(RLIMIT_FSIZE, file_max);
	if (r == 0)
		r = confine_limit(RLIMIT_NOFILE, DESCRIPTORS_MAX);
	if (r == 0)
		r = confine_limit(RLIMIT_CORE, 0);
		/* A sanitizer's shadow does not fit. */
#if !defined(__SANITIZE_ADDRESS__)
	if (r == 0)
		r = confine_limit(RLIMIT_AS, MEMORY_MAX);
#endif
	return r;
}

static int lock_files(int dir, bool lax)
{
	int abi = sys_landlock_create_ruleset(NULL, 0, SYS_LANDLOCK_CREATE_RULESET_VERSION);
	if (abi < 0)
		return lax ? 0 : CONFINE_NO_LANDLOCK;
	struct sys_landlock_ruleset_attr attr = { .handled_access_fs =
							  (SYS_LANDLOCK_FS_MAKE_SYM << 1) - 1 };
	struct sys_landlock_path_beneath_attr rule = {
		.allowed_access = SYS_LANDLOCK_FS_WRITE_FILE | SYS_LANDLOCK_FS_READ_DIR |
				  SYS_LANDLOCK_FS_REMOVE_FILE | SYS_LANDLOCK_FS_MAKE_DIR |
				  SYS_LANDLOCK_FS_MAKE_REG | SYS_LANDLOCK_FS_MAKE_SYM,
		.parent_fd = dir,
	};
	size_t size = sizeof attr.handled_access_fs;
	if (abi >= 2)
		rule.allowed_access |= SYS_LANDLOCK_FS_REFER;
	if (abi >= 3)
		rule.allowed_access |= SYS_LANDLOCK_FS_TRUNCATE;
	if (abi >= 5)
		attr.handled_access_fs |= SYS_LANDLOCK_FS_IOCTL_DEV;
	attr.handled_access_fs |= rule.allowed_access;
	if (abi >= 4) {
		attr.handled_access_net = SYS_LANDLOCK_NET_BIND_TCP | SYS_LANDLOCK_NET_CONNECT_TCP;
		size += sizeof attr.handled_access_net;
	}
	if (abi >= 6) {
		attr.scoped = SYS_LANDLOCK_SCOPE_ABSTRACT_UNIX | SYS_LANDLOCK_SCOPE_SIGNAL;
		size += sizeof attr.scoped;
	}
	int ruleset = sys_landlock_create_ruleset(&attr, size, 0);
	if (ruleset < 0)
		return ruleset;
	int r = sys_landlock_add_rule(ruleset, SYS_LANDLOCK_RULE_PATH_BENEATH, &rule);
	if (r == 0)
		r = sys_landlock_restrict_self(ruleset);
	close(ruleset);
	return r;
}

int confine(int dir, uid_t uid, gid_t gid, uint64_t file_max, bool lax)
{
	struct pollfd listener = { .fd = STDERR_FILENO };
	int r = confine_ids(uid, gid);
	if (r == 0)
		r = confine_alone();
	if (r < 0)
		return r;
	/* It may have died before that: then nobody is left to hear of it. */
	if (poll(&listener, 1, 0) < 0 || (listener.revents & POLLERR))
		return -ESRCH;
	r = limit_all(file_max);
	if (r == 0)
		r = lock_files(dir, lax);
	/* An archive that needs another call is refused, and nothing is done. */
	return r ? r : confine_calls(calls, sizeof calls / sizeof *calls);
}
