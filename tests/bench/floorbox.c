/*
 * floorbox: the least that a box with an init of its own can cost, as a measuring rod. It makes the
 * namespaces, a root of its own, Landlock, a filter, and starts the command; it has no options, no
 * policy, no result and no useful errors, and it is no sandbox to be used.
 *
 *	floorbox WORKSPACE FILTER PROGRAM [ARG...]    FILTER: a file with a seccomp program
 *
 * The child shares its parent's memory until the exec (CLONE_VM with CLONE_VFORK): nothing is
 * copied, and the parent sleeps meanwhile.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RECURSIVE 0x8000 /* AT_RECURSIVE; the headers of older C libraries lack it */
#define CAP_LAST  40

/* System calls by number: the C library's wrappers differ in which versions have them. */
#define SYS(name, ...) check(syscall(SYS_##name, __VA_ARGS__), __LINE__)
#define OK(call)       check(call, __LINE__)

static long check(long result, int line)
{
	if (result >= 0)
		return result;
	dprintf(2, "floorbox: line %d: %s\n", line, strerror(errno));
	_exit(125);
}

static void write_file(const char *path, const char *text)
{
	int fd = (int)OK(open(path, O_WRONLY | O_CLOEXEC));

	OK(write(fd, text, strlen(text)));
	close(fd);
}

static int new_mount(const char *type, const char *mode, unsigned attributes)
{
	int fs = (int)SYS(fsopen, type, FSOPEN_CLOEXEC), mount;

	if (mode)
		SYS(fsconfig, fs, FSCONFIG_SET_STRING, "mode", mode, 0);
	SYS(fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	mount = (int)SYS(fsmount, fs, FSMOUNT_CLOEXEC, attributes);
	close(fs);
	return mount;
}

static void attach(int mount, int root, const char *target)
{
	SYS(move_mount, mount, "", root, target, MOVE_MOUNT_F_EMPTY_PATH);
	close(mount);
}

static void show(
	const char *source, uint64_t attributes, int recursive, int root, const char *target)
{
	struct mount_attr attr = { .attr_set = attributes };
	int tree = (int)SYS(open_tree, AT_FDCWD, source,
		OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (recursive ? RECURSIVE : 0));

	SYS(mount_setattr, tree, "", AT_EMPTY_PATH | (recursive ? RECURSIVE : 0), &attr,
		sizeof attr);
	attach(tree, root, target);
}

static void make_ids(uid_t uid, gid_t gid)
{
	char map[40];

	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof map, "0 %u 1", uid);
	write_file("/proc/self/uid_map", map);
	snprintf(map, sizeof map, "0 %u 1", gid);
	write_file("/proc/self/gid_map", map);
}

static void make_loopback(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int sock = (int)OK(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));

	OK(ioctl(sock, SIOCSIFFLAGS, &lo));
	close(sock);
}

static void make_devices(int root)
{
	static const char *const devices[] = { "null", "zero", "full", "random", "urandom", "tty" };
	char source[24];
	int dev = (int)OK(openat(root, "dev", O_PATH | O_DIRECTORY | O_CLOEXEC));

	for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
		close((int)OK(openat(dev, devices[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0666)));
		snprintf(source, sizeof source, "/dev/%s", devices[i]);
		show(source, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, 0, dev, devices[i]);
	}
}

static void make_root(const char *workspace)
{
	static const char *const directories[] = { "usr", "etc", "proc", "tmp", "ws", "dev" };
	static const char *const links[] = { "bin", "lib", "lib64", "sbin" };
	const unsigned plain = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	struct mount_attr sealed = { .attr_set = MOUNT_ATTR_RDONLY };
	char text[16];
	int root = new_mount("tmpfs", "0755", plain);

	for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
		OK(mkdirat(root, directories[i], 0755));
	for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
		snprintf(text, sizeof text, "usr/%s", links[i]);
		OK(symlinkat(text, root, links[i]));
	}
	show("/usr", plain | MOUNT_ATTR_RDONLY, 1, root, "usr");
	show("/etc", plain | MOUNT_ATTR_RDONLY, 1, root, "etc");
	show(workspace, plain, 0, root, "ws");
	attach(new_mount("tmpfs", "1777", plain), root, "tmp");
	attach(new_mount("proc", NULL, plain | MOUNT_ATTR_NOEXEC), root, "proc");
	make_devices(root);
	SYS(mount_setattr, root, "", AT_EMPTY_PATH, &sealed, sizeof sealed);
	SYS(move_mount, root, "", AT_FDCWD, "/mnt", MOVE_MOUNT_F_EMPTY_PATH);
	OK(fchdir(root));
	SYS(pivot_root, ".", ".");
	SYS(umount2, ".", 2 /* MNT_DETACH */);
	OK(chdir("/ws"));
}

static void restrict_files(void)
{
	static const char *const paths[] = { "/usr", "/etc", "/proc", "/dev", "/tmp", "/ws" };
	const uint64_t all = 0x1fff, read = 0x0d;
	uint64_t attr = all;
	int rules = (int)SYS(landlock_create_ruleset, &attr, sizeof attr, 0);

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		struct landlock_path_beneath_attr rule = { .allowed_access = i < 3 ? read : all };

		rule.parent_fd = (int)OK(open(paths[i], O_PATH | O_CLOEXEC));
		SYS(landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
		close(rule.parent_fd);
	}
	OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	SYS(landlock_restrict_self, rules, 0);
	close(rules);
}

static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	for (int cap = 0; cap <= CAP_LAST; cap++)
		prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	SYS(capset, &header, none);
}

static int end_of(pid_t pid)
{
	int status;
	pid_t got;

	while ((got = waitpid(-1, &status, 0)) != pid)
		if (got < 0 && errno != EINTR)
			return 125;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Pid 1 of the box; returns only in init, when the command has ended. */
static int inside(char **argv, uid_t uid, gid_t gid, const struct sock_fprog *filter)
{
	pid_t command;

	make_ids(uid, gid);
	make_loopback();
	make_root(argv[1]);
	restrict_files();
	OK(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
	command = vfork();
	if (command)
		return end_of(command);
	drop_capabilities();
	SYS(seccomp, SECCOMP_SET_MODE_FILTER, 0, filter);
	execve(argv[3], argv + 3, environ);
	_exit(127);
}

/* Inlined, so that the child does not return through a frame that it shares with its parent. */
static inline __attribute__((always_inline)) long clone_sharing(uint64_t flags)
{
	struct clone_args args = {
		.flags = flags | CLONE_VM | CLONE_VFORK,
		.exit_signal = SIGCHLD,
	};
	long result;

#if defined(__x86_64__)
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"((long)SYS_clone3), "D"(&args), "S"(sizeof args)
			 : "rcx", "r11", "memory");
#elif defined(__aarch64__)
	register long nr __asm__("x8") = SYS_clone3;
	register long first __asm__("x0") = (long)&args;
	register long second __asm__("x1") = sizeof args;

	__asm__ volatile("svc 0" : "+r"(first) : "r"(nr), "r"(second) : "memory");
	result = first;
#else
#error "no clone3 for this architecture"
#endif
	return result;
}

int main(int argc, char **argv)
{
	static struct sock_filter program[4096];
	struct sock_fprog filter = { .filter = program };
	uid_t uid = geteuid();
	gid_t gid = getegid();
	long child;
	int fd;

	if (argc < 4)
		return 2;
	fd = (int)OK(open(argv[2], O_RDONLY | O_CLOEXEC));
	filter.len =
		(unsigned short)((size_t)OK(read(fd, program, sizeof program)) / sizeof *program);
	close(fd);
	child = clone_sharing(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC |
			      CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWNET);
	if (!child)
		_exit(inside(argv, uid, gid, &filter));
	if (child < 0) {
		errno = (int)-child;
		check(-1, __LINE__);
	}
	return end_of((pid_t)child);
}
