/*
 * doctor_features: what the kernel offers besides namespaces. Every function here runs in a child
 * of its own.
 */
#define _GNU_SOURCE
#include "cli/doctor.h"
#include "base/fd.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5) /* Linux 5.19 */
#endif

static bool read_line(const char *path, char *out, size_t size)
{
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : fd_read_full(fd, out, size - 1);
	if (n < 0)
		return false;
	out[n] = 0;
	out[strcspn(out, "\n")] = 0;
	return true;
}

static void try_kernel(struct doctor_finding *finding)
{
	struct utsname name;
	unsigned major = 0, minor = 0;
	uname(&name);
	sscanf(name.release, "%u.%u", &major, &minor);
	bool old = major < 5 || (major == 5 && minor < 13);
	doctor_say(finding, old ? DOCTOR_MISSING : DOCTOR_OK, "Linux %s, %s", name.release,
		name.machine);
}

/* What each ABI added, and who holds it where Landlock cannot (landlock(7), "Kernel support"). */
static const struct {
	int abi;
	const char *adds, *otherwise;
} landlock_ladder[] = {
	{ 1, "files", "the mounts alone hold it" },
	{ 3, "truncation", "read-only mounts hold it" },
	{ 4, "TCP ports", "the network namespace holds it" },
	{ 5, "ioctl on devices", "seccomp and the short /dev hold it" },
	{ 6, "abstract sockets and signals", "the network and pid namespaces hold it" },
	{ 7, "records in the audit log", "nothing: it protects nothing" },
};

static void try_landlock(struct doctor_finding *finding)
{
	int abi = sys_landlock_create_ruleset(NULL, 0, SYS_LANDLOCK_CREATE_RULESET_VERSION);
	if (abi <= 0) {
		doctor_say(finding, DOCTOR_MISSING, "none: %s",
			abi == -EOPNOTSUPP ? "built in, but off at boot" : strerror(-abi));
		return;
	}
	struct sys_landlock_ruleset_attr attr = { .handled_access_fs = SYS_LANDLOCK_FS_READ_FILE };
	AUTO_FD ruleset = sys_landlock_create_ruleset(&attr, sizeof attr.handled_access_fs, 0);
	int r = ruleset;
	if (r >= 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	if (r >= 0)
		r = sys_landlock_restrict_self(ruleset);
	if (r < 0) {
		doctor_say(finding, DOCTOR_MISSING, "ABI %d, but a rule set was refused: %s", abi,
			strerror(-r));
		return;
	}
	if (open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES) {
		doctor_say(finding, DOCTOR_MISSING,
			"ABI %d, but a file could be read against the rules", abi);
		return;
	}
	if (abi < 2) {
		doctor_say(finding, DOCTOR_MISSING, "ABI %d, without renames between directories",
			abi);
		return;
	}
	char lacks[240] = "";
	size_t len = 0;
	for (size_t i = 0; i < sizeof landlock_ladder / sizeof *landlock_ladder; i++)
		if (landlock_ladder[i].abi > abi && len < sizeof lacks)
			len += (size_t)snprintf(lacks + len, sizeof lacks - len, "%s%s (%s)",
				len ? "; " : "; without: ", landlock_ladder[i].adds,
				landlock_ladder[i].otherwise);
	doctor_say(finding, DOCTOR_OK, "ABI %d%s", abi, lacks);
}

/* A filter that answers EPERM to getppid, then one look whether it does. */
static void try_seccomp(struct doctor_finding *finding)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof code / sizeof *code, code };
	int r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
	if (r == 0)
		r = sys_seccomp(SECCOMP_SET_MODE_FILTER, 0, &program);
	if (r < 0)
		doctor_say(finding, DOCTOR_MISSING, "refused: %s", strerror(-r));
	else if (syscall(SYS_getppid) != -1 || errno != EPERM)
		doctor_say(finding, DOCTOR_MISSING, "a filter was accepted, but not obeyed");
	else
		doctor_say(finding, DOCTOR_OK, "a filter was set, and it refused");
}

static void try_notify(struct doctor_finding *finding)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog program = { 1, code };
	unsigned killable = SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	AUTO_FD listener = sys_seccomp(
		SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER | killable, &program);
	if (listener >= 0) {
		doctor_say(finding, DOCTOR_OK, "a listener was made; waits can be killed");
		return;
	}
	listener = sys_seccomp(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	if (listener >= 0)
		doctor_say(finding, DOCTOR_OK,
			"a listener was made (waits cannot be killed before Linux 5.19)");
	else if (listener == -EBUSY)
		doctor_say(finding, DOCTOR_MISSING,
			"agentbox already runs under a filter that has a listener");
	else
		doctor_say(finding, DOCTOR_MISSING, "refused: %s", strerror(-listener));
}

static void try_pidfd(struct doctor_finding *finding)
{
	AUTO_FD pidfd = sys_pidfd_open(getpid());
	int r = pidfd < 0 ? pidfd : sys_pidfd_send_signal(pidfd, 0);
	if (r < 0)
		doctor_say(finding, DOCTOR_MISSING, "%s", strerror(-r));
	else
		doctor_say(finding, DOCTOR_OK, "opened and signalled");
}

static void try_close_range(struct doctor_finding *finding)
{
	int fd = dup(STDERR_FILENO);
	int r = sys_close_range(3, ~0u, SYS_CLOSE_RANGE_CLOEXEC);
	if (r < 0)
		doctor_say(finding, DOCTOR_MISSING, "%s", strerror(-r));
	else if (fd >= 0 && !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
		doctor_say(
			finding, DOCTOR_MISSING, "accepted, but a descriptor stays open at exec");
	else
		doctor_say(finding, DOCTOR_OK, "descriptors close at exec");
}

/* Reading a child's memory names the host in a refused connect; nothing rests on it. */
static void try_ptrace(struct doctor_finding *finding)
{
	static char word[] = "seen";
	char copy[sizeof word] = "";
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	struct iovec here = { copy, sizeof copy }, there = { word, sizeof word };
	int r = pid < 0 || process_vm_readv(pid, &here, 1, &there, 1, 0) < 0 ? -errno : 0;
	if (r == 0 && ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
		r = -errno;
	if (pid > 0)
		kill(pid, SIGKILL);
	doctor_say(finding, r < 0 ? DOCTOR_NOTE : DOCTOR_OK,
		r < 0 ? "refused: %s; nothing rests on it" : "a child's memory can be read",
		strerror(-r));
}

/* The caller's own directory in the v2 hierarchy, from /proc/self/cgroup ("0::PATH"). */
static bool own_group(char *out, size_t size)
{
	FILE *in = fopen("/proc/self/cgroup", "re");
	char line[512];
	bool found = false;
	while (in && !found && fgets(line, sizeof line, in)) {
		line[strcspn(line, "\n")] = 0;
		if (strncmp(line, "0::", 3) == 0) {
			snprintf(out, size, "%s", line + 3);
			found = true;
		}
	}
	if (in)
		fclose(in);
	return found;
}

static void try_cgroups(struct doctor_finding *finding)
{
	char group[512] = "", path[700], controllers[200] = "";
	bool v2 = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
	const char *mount = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/unified";
	if (!v2 && access("/sys/fs/cgroup/memory/cgroup.procs", F_OK) == 0) {
		doctor_say(finding, DOCTOR_NOTE,
			"v1: %s; limits of memory and processor time would need it",
			access("/sys/fs/cgroup/memory", W_OK) == 0 ? "may be written"
								   : "only root may write it");
		return;
	}
	if (!own_group(group, sizeof group)) {
		doctor_say(finding, DOCTOR_NOTE,
			"none; limits of memory and processor time would need it");
		return;
	}
	snprintf(path, sizeof path, "%s%s/cgroup.controllers", mount, group);
	bool known = read_line(path, controllers, sizeof controllers);
	snprintf(path, sizeof path, "%s%s", mount, group);
	bool ours = access(path, W_OK) == 0;
	doctor_say(finding, DOCTOR_NOTE,
		"v2: %s, controllers: %s; limits of memory and processor time "
		"would need it",
		ours ? "the caller's group may be divided" : "not delegated to the caller",
		known && *controllers ? controllers : "none");
}

static void try_io_uring(struct doctor_finding *finding)
{
	long fd = syscall(SYS_io_uring_setup, 1, NULL);
	bool there = fd >= 0 || errno == EFAULT;
	doctor_say(finding, DOCTOR_NOTE, "%s; a box never has it: its operations pass by seccomp",
		there ? "there on the host" : strerror(errno));
}

static void try_tiocsti(struct doctor_finding *finding)
{
	char value[16];
	if (!read_line("/proc/sys/dev/tty/legacy_tiocsti", value, sizeof value) ||
		strcmp(value, "0") != 0)
		doctor_say(finding, DOCTOR_NOTE,
			"the kernel lets characters be pushed into a terminal "
			"(legacy_tiocsti); a box has no terminal of the host's, and seccomp "
			"refuses it");
	else
		doctor_say(finding, DOCTOR_OK,
			"the kernel itself refuses to push characters into a terminal");
}

static const struct doctor_check checks[] = {
	{ "kernel", "all of it", try_kernel, "agentbox needs Linux 5.13 or newer" },
	{ "Landlock", "files, a second time", try_landlock,
		"Linux 5.19 or newer with `landlock` in the boot option lsm= (see "
		"/sys/kernel/security/lsm); until then `best_effort: [landlock]` runs on the "
		"mounts alone" },
	{ "seccomp filter", "the kernel's own surface", try_seccomp,
		"a kernel with CONFIG_SECCOMP_FILTER; in a container, a profile that lets "
		"seccomp(2) and "
		"prctl(2) through" },
	{ "seccomp listener", "telling what was refused", try_notify,
		"Linux 5.5 or newer; not under a filter that has a listener of its own" },
	{ "pidfd", "ending the box, and only the box", try_pidfd, "Linux 5.3 or newer" },
	{ "close_range", "the caller's open files", try_close_range, "Linux 5.11 or newer" },
	{ "reading a child", "the words in a violation", try_ptrace, "" },
	{ "control groups", "limits of memory and processor time", try_cgroups, "" },
	{ "io_uring", "nothing", try_io_uring, "" },
	{ "terminal", "the caller's terminal", try_tiocsti, "" },
};

const struct doctor_check *doctor_feature(size_t index)
{
	return index < sizeof checks / sizeof *checks ? &checks[index] : NULL;
}
