/*
 * doctor_spaces: user namespaces and what is done with rights in one: the other namespaces, mounts,
 * /proc, overlays. Every function here runs in a child of its own.
 */
#define _GNU_SOURCE
#include "cli/doctor.h"
#include "base/fd.h"
#include "base/sys.h"
#include "plan/host_diagnosis.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* An id that owns nothing, as the box gets when agentbox is root (outside of /etc/passwd's range).
 */
#define NOBODYS_ID 1879048191

/* The steps on the way into a user namespace, as findings name them. */
#define STEP_IDS     "setresuid"
#define STEP_MAKE    "unshare(CLONE_NEWUSER)"
#define STEP_MAP     "writing the id map"
#define STEP_PRIVATE "making mounts private"
#define STEP_TMP     "mounting a tmpfs"

static int write_file(const char *path, const char *text)
{
	AUTO_FD fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd_write_full(fd, text, strlen(text));
}

/* May this process act for other ids? Then its boxes are made as an id that owns nothing. */
static bool acts_for_others(void)
{
	struct userns_facts facts;
	host_userns_facts(&facts);
	return facts.privileged && geteuid() == 0;
}

/*
 * Make a user namespace as a box's is made and enter it, with `more` namespaces. 0, or -errno and
 * in *ret_step what was refused.
 */
static int enter(int more, const char **ret_step)
{
	char line[64];
	*ret_step = STEP_IDS;
	if (acts_for_others()) {
		if (setgroups(0, NULL) < 0 || setresgid(NOBODYS_ID, NOBODYS_ID, NOBODYS_ID) < 0 ||
			setresuid(NOBODYS_ID, NOBODYS_ID, NOBODYS_ID) < 0)
			return -errno;
		/* A change of ids makes /proc/self root's, and the map could not be written. */
		(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	}
	uid_t uid = geteuid();
	gid_t gid = getegid();
	*ret_step = STEP_MAKE;
	if (unshare(CLONE_NEWUSER) < 0)
		return -errno;
	*ret_step = STEP_MAP;
	int r = write_file("/proc/self/setgroups", "deny");
	snprintf(line, sizeof line, "%u %u 1\n", (unsigned)uid, (unsigned)uid);
	if (r == 0)
		r = write_file("/proc/self/uid_map", line);
	snprintf(line, sizeof line, "%u %u 1\n", (unsigned)gid, (unsigned)gid);
	if (r == 0)
		r = write_file("/proc/self/gid_map", line);
	if (r < 0)
		return r;
	*ret_step = "unshare";
	return more && unshare(more) < 0 ? -errno : 0;
}

/* In a new mount namespace: nothing that is mounted here reaches the host; /tmp is a new tmpfs. */
static int enter_with_tmpfs(int more, const char **ret_step)
{
	int r = enter(CLONE_NEWNS | more, ret_step);
	if (r < 0)
		return r;
	*ret_step = STEP_PRIVATE;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	*ret_step = STEP_TMP;
	return mount("agentbox", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=1m") < 0 ? -errno : 0;
}

/* What try_user() says already is not said again. */
static void say_refused(struct doctor_finding *finding, const char *step, int error)
{
	static const char *const first[] = { STEP_IDS, STEP_MAKE, STEP_MAP, STEP_PRIVATE,
		STEP_TMP };
	for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
		if (strcmp(step, first[i]) != 0)
			continue;
		finding->follows = true;
		doctor_say(finding, DOCTOR_MISSING, "needs a user namespace with rights");
		return;
	}
	doctor_say(finding, DOCTOR_MISSING, "%s: %s", step, strerror(-error));
}

static void try_user(struct doctor_finding *finding)
{
	const char *step;
	bool others = acts_for_others(); /* before the ids change */
	int r = enter_with_tmpfs(0, &step);
	if (r == 0) {
		doctor_say(finding, DOCTOR_OK, "made, mapped, and a tmpfs mounted in it%s",
			others ? "; as root the box runs under an id that owns nothing" : "");
		return;
	}
	struct userns_facts facts;
	host_userns_facts(&facts);
	doctor_say(finding, DOCTOR_MISSING, "%s: %s (cause: %s)", step, strerror(-r),
		host_userns_cause_name(host_userns_cause(&facts)));
	host_userns_judge(&facts, finding->remedy, sizeof finding->remedy);
}

static void try_namespace(struct doctor_finding *finding, int flag)
{
	const char *step;
	int r = enter(flag, &step);
	if (r < 0)
		say_refused(finding, step, r);
	else
		doctor_say(finding, DOCTOR_OK, "made");
}

static void try_mount(struct doctor_finding *finding)
{
	try_namespace(finding, CLONE_NEWNS);
}

static void try_pid(struct doctor_finding *finding)
{
	try_namespace(finding, CLONE_NEWPID);
}

static void try_net(struct doctor_finding *finding)
{
	try_namespace(finding, CLONE_NEWNET);
}

static void try_ipc(struct doctor_finding *finding)
{
	try_namespace(finding, CLONE_NEWIPC);
}

static void try_uts(struct doctor_finding *finding)
{
	try_namespace(finding, CLONE_NEWUTS);
}

static void try_cgroup(struct doctor_finding *finding)
{
	try_namespace(finding, CLONE_NEWCGROUP);
}

static void try_time(struct doctor_finding *finding)
{
	const char *step;
	int r = enter(SYS_CLONE_NEWTIME, &step);
	if (r < 0)
		doctor_say(finding, DOCTOR_NOTE, "%s: %s; no policy needs it", step, strerror(-r));
	else
		doctor_say(finding, DOCTOR_OK, "made; no policy needs it");
}

/* A new /proc shows only the box's processes; the kernel refuses one where the old is covered. */
static void try_proc(struct doctor_finding *finding)
{
	const char *step;
	int r = enter_with_tmpfs(CLONE_NEWPID, &step);
	if (r < 0) {
		say_refused(finding, step, r);
		return;
	}
	/* A pid namespace holds for children only. */
	pid_t pid = fork();
	if (pid == 0)
		_exit(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0
				? errno
				: 0);
	int status = 0;
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
		doctor_say(finding, DOCTOR_MISSING, "no process could be made to try");
	} else if (WEXITSTATUS(status) == 0) {
		doctor_say(finding, DOCTOR_OK, "mounted");
	} else {
		doctor_say(finding, DOCTOR_MISSING, "mount: %s%s", strerror(WEXITSTATUS(status)),
			WEXITSTATUS(status) == EPERM ? " (parts of this /proc are covered)" : "");
	}
}

static void try_mount_api(struct doctor_finding *finding)
{
	const char *step;
	struct sys_mount_attr attr = {
		.attr_set = SYS_MOUNT_ATTR_RDONLY | SYS_MOUNT_ATTR_NOSUID | SYS_MOUNT_ATTR_NODEV,
	};
	int r = enter_with_tmpfs(0, &step);
	AUTO_FD tree = -1;
	AUTO_FD fs = -1;
	if (r == 0 && mkdir("/tmp/usr", 0700) < 0)
		r = -errno;
	if (r == 0) {
		step = "open_tree";
		r = tree = sys_open_tree(AT_FDCWD, "/usr",
			SYS_OPEN_TREE_CLONE | SYS_OPEN_TREE_CLOEXEC | SYS_AT_RECURSIVE);
	}
	if (r >= 0) {
		step = "mount_setattr";
		r = sys_mount_setattr(tree, "", AT_EMPTY_PATH | SYS_AT_RECURSIVE, &attr);
	}
	if (r >= 0) {
		step = "move_mount";
		r = sys_move_mount(tree, "", AT_FDCWD, "/tmp/usr", SYS_MOVE_MOUNT_F_EMPTY);
	}
	if (r >= 0) {
		step = "fsopen";
		r = fs = sys_fsopen("tmpfs");
	}
	if (r < 0)
		say_refused(finding, step, r);
	else
		doctor_say(finding, DOCTOR_OK, "a tree was copied, made read-only and attached");
}

/* A namespace that maps one id to another, held by a child; for an id-mapped mount. */
static int mapped_namespace(void)
{
	int ready[2];
	char byte = 0, path[64], line[64];
	if (pipe2(ready, O_CLOEXEC) < 0)
		return -errno;
	pid_t pid = fork();
	if (pid == 0) {
		byte = unshare(CLONE_NEWUSER) < 0 ? (char)errno : 0;
		(void)!write(ready[1], &byte, 1);
		pause();
		_exit(0);
	}
	int r = pid < 0 ? -errno : read(ready[0], &byte, 1) != 1 ? -EIO : -byte;
	snprintf(path, sizeof path, "/proc/%d/uid_map", (int)pid);
	snprintf(line, sizeof line, "0 %d 1\n", NOBODYS_ID);
	if (r == 0)
		r = write_file(path, line);
	snprintf(path, sizeof path, "/proc/%d/gid_map", (int)pid);
	if (r == 0)
		r = write_file(path, line);
	snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
	if (r == 0 && (r = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		r = -errno;
	if (pid > 0)
		kill(pid, SIGKILL);
	return r;
}

static void try_idmap(struct doctor_finding *finding)
{
	if (!acts_for_others()) {
		doctor_say(
			finding, DOCTOR_NOTE, "not needed: only root's boxes run under another id");
		return;
	}
	AUTO_FD ns = mapped_namespace();
	AUTO_FD tree =
		ns < 0 ? -1
		       : sys_open_tree(AT_FDCWD, ".", SYS_OPEN_TREE_CLONE | SYS_OPEN_TREE_CLOEXEC);
	struct sys_mount_attr attr = { .attr_set = SYS_MOUNT_ATTR_IDMAP,
		.userns_fd = (uint64_t)ns };
	int r = ns < 0 ? ns : tree < 0 ? tree : sys_mount_setattr(tree, "", AT_EMPTY_PATH, &attr);
	if (r < 0)
		doctor_say(finding, DOCTOR_MISSING, "the file system of the current directory: %s",
			strerror(-r));
	else
		doctor_say(finding, DOCTOR_OK,
			"the current directory's file system can be shown under another id");
}

static void try_overlay(struct doctor_finding *finding)
{
	const char *step;
	int r = enter_with_tmpfs(0, &step);
	if (r == 0) {
		step = "overlay of /usr";
		if (mkdir("/tmp/up", 0700) < 0 || mkdir("/tmp/work", 0700) < 0 ||
			mkdir("/tmp/to", 0700) < 0 ||
			mount("overlay", "/tmp/to", "overlay", 0,
				"lowerdir=/usr,upperdir=/tmp/up,workdir=/tmp/work,userxattr") < 0)
			r = -errno;
	}
	if (r < 0)
		doctor_say(finding, DOCTOR_NOTE, "%s: %s; `workspace: overlay` would need it", step,
			strerror(-r));
	else
		doctor_say(finding, DOCTOR_OK, "mounted, for `workspace: overlay`");
}

#define KERNEL_SETTING(name)                                                                       \
	"as root: `sysctl -w user.max_" name "_namespaces=15000` if that is 0; "                   \
	"else a kernel with this kind of namespace"

static const struct doctor_check checks[] = {
	{ "user namespace", "all of the box: rights without being root", try_user, "" },
	{ "mount namespace", "the host's files", try_mount, KERNEL_SETTING("mnt") },
	{ "pid namespace", "the host's processes", try_pid, KERNEL_SETTING("pid") },
	{ "network namespace", "the network", try_net, KERNEL_SETTING("net") },
	{ "ipc namespace", "shared memory and message queues", try_ipc, KERNEL_SETTING("ipc") },
	{ "uts namespace", "the host's name", try_uts, KERNEL_SETTING("uts") },
	{ "cgroup namespace", "the names of control groups", try_cgroup, KERNEL_SETTING("cgroup") },
	{ "time namespace", "nothing", try_time, "" },
	{ "new /proc", "the host's processes, as files", try_proc,
		"in a container: start it with --security-opt systempaths=unconfined (Docker; "
		"with Podman unmask=ALL), so that its /proc is not covered in parts" },
	{ "mount API", "building the box's files out of the host's sight", try_mount_api,
		"Linux 5.12 or newer; in a container, a seccomp profile that lets open_tree, "
		"mount_setattr, move_mount, fsopen, fsconfig and fsmount through" },
	{ "id-mapped mounts", "root's files, when agentbox is root", try_idmap,
		"run agentbox as the files' owner, or keep workspaces on ext4, xfs, btrfs or, "
		"from Linux 6.3 on, tmpfs" },
	{ "overlayfs", "the workspace, with workspace: overlay", try_overlay, "" },
};

const struct doctor_check *doctor_space(size_t index)
{
	return index < sizeof checks / sizeof *checks ? &checks[index] : NULL;
}
