/* What a helper program takes from itself, tried in children that then reach for it. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/confine.h"
#include "base/sys.h"

#define SKIPPED 77

/* In a child, as what is taken does not come back. Its status is how many checks failed. */
static void in_child(void (*test)(const char *dir), const char *dir)
{
	int status = 0;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		check_failures = 0;
		test(dir);
		_exit(check_failures);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status));
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
		printf("# skipped: this kernel has no Landlock\n");
	else
		CHECK(status == 0);
}

static bool opens(const char *dir, const char *name, int flags)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, flags, 0600);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int listens(void)
{
	const struct sockaddr_in any = { .sin_family = AF_INET,
		.sin_addr = { htonl(INADDR_LOOPBACK) } };
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r = bind(sock, (const struct sockaddr *)&any, sizeof any) < 0 ? -errno : 0;
	close(sock);
	return r;
}

static void only_reads(const char *dir)
{
	char in[256], file[256];
	snprintf(in, sizeof in, "%s/in", dir);
	snprintf(file, sizeof file, "%s/out/granted", dir);
	const char *const paths[] = { in, file, "/nonexistent/at/all" };
	CHECK(opens(dir, "out/x", O_RDONLY));
	CHECK(confine_alone() == 0);
	int r = confine_reading(paths, 3, false);
	if (r == -EOPNOTSUPP)
		_exit(SKIPPED);
	CHECK(r == 0);
	CHECK(opens(dir, "in/x", O_RDONLY) && opens(dir, "in", O_RDONLY | O_DIRECTORY));
	CHECK(opens(dir, "out/granted", O_RDONLY));
	CHECK(!opens(dir, "in/x", O_WRONLY) && !opens(dir, "in/y", O_WRONLY | O_CREAT));
	CHECK(!opens(dir, "out/x", O_RDONLY) && !opens(dir, "out", O_RDONLY | O_DIRECTORY));
	CHECK(!opens("/etc", "passwd", O_RDONLY));
	CHECK(chdir(in) == 0 && unlink("x") < 0 && mkdir("d", 0700) < 0);
	if (sys_landlock_create_ruleset(NULL, 0, SYS_LANDLOCK_CREATE_RULESET_VERSION) >= 4)
		CHECK(listens() == -EACCES);
}

static void is_alone(const char *dir)
{
	int signal = 0;
	(void)dir;
	CHECK(confine_alone() == 0);
	CHECK(prctl(PR_GET_PDEATHSIG, &signal) == 0 && signal == SIGKILL);
	CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
}

static int calling(long value)
{
	return value < 0 ? errno : 0;
}

static void arguments_are_held(const char *dir)
{
	static const struct confine_argument rows[] = {
		{ SYS_socket, 0, ~0u, AF_UNIX, EAFNOSUPPORT },
		{ SYS_socket, 0, ~0u, AF_INET, EAFNOSUPPORT },
		{ SYS_openat, 2, O_ACCMODE | O_CREAT, O_RDONLY, EROFS },
		{ SYS_ioctl, 1, ~0u, FIONREAD, ENOTTY },
		{ SYS_clone3, 0, 0, 1, ENOSYS },
	};
	int bytes, ends[2];
	(void)dir;
	CHECK(pipe(ends) == 0 && confine_alone() == 0);
	CHECK(confine_arguments(rows, sizeof rows / sizeof *rows) == 0);
	CHECK(calling(socket(AF_UNIX, SOCK_STREAM, 0)) == 0);
	CHECK(calling(socket(AF_INET, SOCK_DGRAM, 0)) == 0);
	CHECK(calling(socket(AF_INET6, SOCK_DGRAM, 0)) == EAFNOSUPPORT);
	CHECK(calling(socket(AF_NETLINK, SOCK_RAW, 0)) == EAFNOSUPPORT);
	CHECK(calling(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC)) == 0);
	CHECK(calling(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR)) == EROFS);
	CHECK(calling(syscall(SYS_openat, AT_FDCWD, "x", O_RDONLY | O_CREAT, 0600)) == EROFS);
	CHECK(calling(ioctl(ends[0], FIONREAD, &bytes)) == 0);
	CHECK(calling(ioctl(ends[0], FIOCLEX)) == ENOTTY);
	CHECK(calling(syscall(SYS_clone3, NULL, 0)) == ENOSYS);
	CHECK(calling(syscall(SYS_getppid)) == 0);
	/* A second filter holds beside the first. */
	static const int calls[] = { SYS_socket, SYS_write, SYS_exit_group,
		/* the sanitizers' */
		SYS_sigaltstack, SYS_mmap, SYS_munmap };
	CHECK(confine_calls(calls, sizeof calls / sizeof *calls) == 0);
	CHECK(calling(socket(AF_NETLINK, SOCK_RAW, 0)) == EAFNOSUPPORT);
	CHECK(calling(socket(AF_UNIX, SOCK_STREAM, 0)) == 0);
	CHECK(calling(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY)) == EPERM);
	CHECK(calling(syscall(SYS_getppid)) == EPERM);
}

static void too_much_is_refused(const char *dir)
{
	static const struct confine_argument rows[CONFINE_ARGUMENTS_MAX + 1];
	static const int calls[CONFINE_CALLS_MAX + 1];
	(void)dir;
	CHECK(confine_alone() == 0);
	CHECK(confine_arguments(rows, CONFINE_ARGUMENTS_MAX + 1) == -E2BIG);
	CHECK(confine_calls(calls, CONFINE_CALLS_MAX + 1) == -E2BIG);
}

static void ids_are_let_go_of(const char *dir)
{
	(void)dir;
	bool root = geteuid() == 0;
	uid_t before = geteuid();
	int r = confine_ids(65534, 65534);
	/* In a namespace that has no such number, or lets nobody change groups. */
	if (root && (r == -EPERM || r == -EINVAL))
		return;
	CHECK(r == 0);
	uid_t real, effective, saved;
	CHECK(getresuid(&real, &effective, &saved) == 0);
	uid_t want = root ? 65534 : before;
	CHECK(real == want && effective == want && saved == want);
	CHECK(!root || (getegid() == 65534 && getgroups(0, NULL) == 0 && setuid(0) < 0));
	CHECK(sethostname("x", 1) < 0 && errno == EPERM);
}

static void limits_only_sink(const char *dir)
{
	struct rlimit now;
	(void)dir;
	CHECK(confine_limit(RLIMIT_NOFILE, 20) == 0);
	CHECK(getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur == 20 && now.rlim_max == 20);
	CHECK(confine_limit(RLIMIT_NOFILE, 1000) == 0);
	CHECK(getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur == 20 && now.rlim_max == 20);
}

/* A directory with in/x, out/x and out/granted. */
static bool make_files(char *dir)
{
	static const char *const files[] = { "in/x", "out/x", "out/granted" };
	char path[256];
	if (!mkdtemp(dir))
		return false;
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%.*s", dir, (int)strcspn(files[i], "/"), files[i]);
		(void)mkdir(path, 0700);
		snprintf(path, sizeof path, "%s/%s", dir, files[i]);
		int fd = open(path, O_CREAT | O_WRONLY, 0600);
		if (fd < 0)
			return false;
		close(fd);
	}
	return true;
}

static void remove_files(const char *dir)
{
	static const char *const names[] = { "in/x", "out/x", "out/granted", "in", "out", "" };
	char path[256];
	for (size_t i = 0; i < 6; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		CHECK(remove(path) == 0);
	}
}

int main(void)
{
	char dir[] = "/tmp/confine-test.XXXXXX";
	if (!make_files(dir)) {
		perror(dir);
		return 1;
	}
	in_child(only_reads, dir);
	in_child(is_alone, dir);
	in_child(arguments_are_held, dir);
	in_child(too_much_is_refused, dir);
	in_child(ids_are_let_go_of, dir);
	in_child(limits_only_sink, dir);
	remove_files(dir);
	return CHECK_STATUS();
}
