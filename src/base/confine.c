/* confine: what every helper program takes from itself before it reads what others wrote. */
#define _GNU_SOURCE
#include "base/confine.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

/*
 * No program can be executed later, so this is a second lock only: where root itself lacks the
 * right to let go of it (CAP_SETPCAP, in some containers), it stays.
 */
static int empty_bounding_set(void)
{
	for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
		if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0 && errno != EPERM)
			return -errno;
	return 0;
}

int confine_no_rights(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };
	int r = empty_bounding_set();
	if (r < 0)
		return r;
	return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

int confine_ids(uid_t uid, gid_t gid)
{
	int r = empty_bounding_set();
	if (r < 0)
		return r;
	if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 ||
				      setresuid(uid, uid, uid) < 0))
		return -errno;
	return confine_no_rights();
}

int confine_alone(void)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

int confine_limit(int resource, rlim_t most)
{
	struct rlimit now;
	if (getrlimit(resource, &now) < 0)
		return -errno;
	if (most > now.rlim_max)
		most = now.rlim_max;
	now.rlim_cur = now.rlim_max = most;
	return setrlimit(resource, &now) < 0 ? -errno : 0;
}

static int allow_reading(int ruleset, const char *path)
{
	AUTO_FD place = open(path, O_PATH | O_CLOEXEC);
	struct stat is;
	if (place < 0 || fstat(place, &is) < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -errno;
	struct sys_landlock_path_beneath_attr rule = {
		.allowed_access = SYS_LANDLOCK_FS_READ_FILE |
				  (S_ISDIR(is.st_mode) ? SYS_LANDLOCK_FS_READ_DIR : 0),
		.parent_fd = place,
	};
	return sys_landlock_add_rule(ruleset, SYS_LANDLOCK_RULE_PATH_BENEATH, &rule);
}

/* All that this kernel's Landlock knows of files, and of the rest what nobody here needs. */
static int make_ruleset(bool dials)
{
	int abi = sys_landlock_create_ruleset(NULL, 0, SYS_LANDLOCK_CREATE_RULESET_VERSION);
	if (abi < 0)
		return abi == -ENOSYS ? -EOPNOTSUPP : abi;
	struct sys_landlock_ruleset_attr attr = { .handled_access_fs =
							  (SYS_LANDLOCK_FS_MAKE_SYM << 1) - 1 };
	size_t size = sizeof attr.handled_access_fs;
	if (abi >= 2)
		attr.handled_access_fs |= SYS_LANDLOCK_FS_REFER;
	if (abi >= 3)
		attr.handled_access_fs |= SYS_LANDLOCK_FS_TRUNCATE;
	if (abi >= 5)
		attr.handled_access_fs |= SYS_LANDLOCK_FS_IOCTL_DEV;
	if (abi >= 4) {
		attr.handled_access_net =
			SYS_LANDLOCK_NET_BIND_TCP | (dials ? 0 : SYS_LANDLOCK_NET_CONNECT_TCP);
		size += sizeof attr.handled_access_net;
	}
	if (abi >= 6) {
		attr.scoped = SYS_LANDLOCK_SCOPE_ABSTRACT_UNIX | SYS_LANDLOCK_SCOPE_SIGNAL;
		size += sizeof attr.scoped;
	}
	return sys_landlock_create_ruleset(&attr, size, 0);
}

int confine_reading(const char *const *paths, size_t count, bool dials)
{
	AUTO_FD ruleset = make_ruleset(dials);
	int r = ruleset < 0 ? ruleset : 0;
	for (size_t i = 0; i < count && r == 0; i++)
		r = allow_reading(ruleset, paths[i]);
	return r < 0 ? r : sys_landlock_restrict_self(ruleset);
}

/* The low half of an argument; both machines have it first. */
static unsigned argument_place(unsigned at)
{
	return (unsigned)(offsetof(struct seccomp_data, args) + at * sizeof(uint64_t));
}

static int load(struct sock_filter *program, size_t count)
{
	const struct sock_fprog all = { .len = (unsigned short)count, .filter = program };
	return sys_seccomp(SECCOMP_SET_MODE_FILTER, 0, &all);
}

int confine_arguments(const struct confine_argument *rows, size_t count)
{
	/* Six a row at most, the check of the architecture and the end. */
	struct sock_filter program[6 * CONFINE_ARGUMENTS_MAX + 4];
	size_t at = 0;
	if (count > CONFINE_ARGUMENTS_MAX)
		return -E2BIG;
	program[at++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < count; i++) {
		const struct confine_argument *row = &rows[i];
		bool last = i + 1 == count || row[1].call != row->call;
		program[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			(unsigned)row->call, 0, (unsigned char)(last ? 5 : 4));
		program[at++] = (struct sock_filter)BPF_STMT(
			BPF_LD | BPF_W | BPF_ABS, argument_place(row->at));
		program[at++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, row->mask);
		program[at++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, row->value, 0, 1);
		program[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
		/* Where a call's last row did not fit; another row begins with the number anew. */
		program[at++] = last ? (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
					       SECCOMP_RET_ERRNO |
						       ((unsigned)row->error & SECCOMP_RET_DATA))
				     : (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					       offsetof(struct seccomp_data, nr));
	}
	program[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return load(program, at);
}

int confine_calls(const int *calls, size_t count)
{
	struct sock_filter program[CONFINE_CALLS_MAX + 7];
	size_t at = 0;
	if (count > CONFINE_CALLS_MAX)
		return -E2BIG;
	program[at++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
	program[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
	program[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	program[at++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < count; i++)
		program[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			(unsigned)calls[i], (unsigned char)(count - i), 0);
	program[at++] = (struct sock_filter)BPF_STMT(
		BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (EPERM & SECCOMP_RET_DATA));
	program[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return load(program, at);
}
