/*
 * cmd_probe: the hidden command that `doctor` runs inside a box: attempts one forbidden thing after
 * the other and prints what came of it. Outside of a box it refuses to try, since it would succeed.
 */
#define _GNU_SOURCE
#include "base/buf.h"
#include "base/fd.h"
#include "base/sys.h"
#include "cli/cli.h"
#include "cli/doctor.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef AF_VSOCK
#define AF_VSOCK 40
#endif

/* A call that should have failed: r < 0 is a refusal, with errno. */
static bool refused(long r, char *detail, size_t size)
{
	snprintf(detail, size, "%s", r < 0 ? strerror(errno) : "it was possible");
	return r < 0;
}

static bool try_shadow(char *detail, size_t size)
{
	return refused(open("/etc/shadow", O_RDONLY | O_CLOEXEC), detail, size);
}

static bool try_write_usr(char *detail, size_t size)
{
	return refused(open("/usr/agentbox-probe", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600),
		detail, size);
}

static bool try_host_path(char *detail, size_t size)
{
	static const char *const paths[] = { "/root", "/boot", "/sys/kernel", "/dev/sda",
		"/dev/mem", "/dev/kmsg", "/run/docker.sock", "/var/log", "/proc/kcore" };
	const char *home = getenv("HOME"); /* the box's own may have a name of the host's */
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		AUTO_FD fd = open(paths[i], O_RDONLY | O_CLOEXEC);
		if (fd < 0 || (home && strncmp(home, paths[i], strlen(paths[i])) == 0))
			continue;
		snprintf(detail, size, "%s can be opened", paths[i]);
		return false;
	}
	snprintf(detail, size, "none of %zu is there", sizeof paths / sizeof *paths);
	return true;
}

static bool try_processes(char *detail, size_t size)
{
	size_t count = 0;
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	while (dir && (entry = readdir(dir)))
		count += entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
	if (dir)
		closedir(dir);
	/* Its init and this process. */
	snprintf(detail, size, "%zu processes are visible", count);
	return count <= 2;
}

static bool try_descriptors(char *detail, size_t size)
{
	for (int fd = 3; fd < 256; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		snprintf(detail, size, "descriptor %d is open", fd);
		return false;
	}
	snprintf(detail, size, "none but 0, 1 and 2");
	return true;
}

static bool try_mount(char *detail, size_t size)
{
	return refused(mount("tmpfs", "/tmp", "tmpfs", 0, NULL), detail, size);
}

static bool try_userns(char *detail, size_t size)
{
	return refused(unshare(CLONE_NEWUSER), detail, size);
}

static bool try_ptrace_init(char *detail, size_t size)
{
	return refused(ptrace(PTRACE_SEIZE, 1, NULL, NULL), detail, size);
}

/* Signal 0 would say only that it exists; a real one is sent, and the parent must live on. */
static bool try_kill_parent(char *detail, size_t size)
{
	pid_t parent = getppid();
	if (parent == 0) {
		snprintf(detail, size, "there is no parent to see");
		return true;
	}
	(void)kill(parent, SIGKILL);
	usleep(1000);
	bool alive = getppid() == parent;
	snprintf(detail, size, alive ? "it lives on" : "it was killed");
	return alive;
}

static bool try_tiocsti(char *detail, size_t size)
{
	char c = 'x';
	return refused(ioctl(STDIN_FILENO, TIOCSTI, &c), detail, size);
}

static bool try_vsock(char *detail, size_t size)
{
	AUTO_FD fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return refused(fd, detail, size);
}

static bool try_raw_socket(char *detail, size_t size)
{
	AUTO_FD fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	return refused(fd, detail, size);
}

static bool try_connect(char *detail, size_t size)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(443) };
	inet_pton(AF_INET, "192.0.2.1", &to.sin_addr); /* RFC 5737: nobody's */
	AUTO_FD fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	long r = fd < 0 ? fd : connect(fd, (struct sockaddr *)&to, sizeof to);
	if (r < 0 && fd >= 0 && errno != ENETUNREACH) {
		snprintf(detail, size, "%s, in place of \"%s\": there is a route", strerror(errno),
			strerror(ENETUNREACH));
		return false;
	}
	return refused(r, detail, size);
}

/* `doctor` listens on an abstract socket of the host's with this name (without the NUL). */
static bool try_abstract(char *detail, size_t size)
{
	const char *name = getenv("AGENTBOX_PROBE_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	if (!name || strlen(name) + 1 > sizeof to.sun_path) {
		snprintf(detail, size, "no name to try");
		return false;
	}
	memcpy(to.sun_path + 1, name, strlen(name));
	AUTO_FD fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
	return refused(fd < 0 ? fd : connect(fd, (struct sockaddr *)&to, len), detail, size);
}

static bool try_capability(char *detail, size_t size)
{
	char text[4096];
	AUTO_FD fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : fd_read_full(fd, text, sizeof text - 1);
	text[n < 0 ? 0 : n] = 0;
	static const char *const wanted[] = { "\nCapEff:\t0000000000000000\n",
		"\nCapPrm:\t0000000000000000\n", "\nCapBnd:\t0000000000000000\n",
		"\nCapAmb:\t0000000000000000\n", "\nNoNewPrivs:\t1\n", "\nSeccomp:\t2\n" };
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		if (strstr(text, wanted[i]))
			continue;
		snprintf(detail, size, "/proc/self/status does not say \"%.*s\"",
			(int)strcspn(wanted[i] + 1, ":"), wanted[i] + 1);
		return false;
	}
	snprintf(detail, size, "none, and none can be regained");
	return true;
}

static const struct doctor_probe probes[] = {
	{ "read /etc/shadow", "secrets of the host", try_shadow },
	{ "write below /usr", "the host's programs", try_write_usr },
	{ "open the host's paths", "all that is not granted", try_host_path },
	{ "see host processes", "processes and their environment", try_processes },
	{ "use open descriptors", "the caller's open files", try_descriptors },
	{ "have a capability", "the kernel's rights", try_capability },
	{ "mount", "the box's own walls", try_mount },
	{ "make a user namespace", "the kernel's surface (nesting: deny)", try_userns },
	{ "trace pid 1", "the box's init", try_ptrace_init },
	{ "kill its parent", "the box's init", try_kill_parent },
	{ "push terminal input", "the caller's terminal (TIOCSTI)", try_tiocsti },
	{ "open a vsock socket", "the hypervisor's side (AF_VSOCK)", try_vsock },
	{ "open a packet socket", "the wire (AF_PACKET)", try_raw_socket },
	{ "connect to the network", "the network", try_connect },
	{ "connect to a host socket", "abstract sockets of the host", try_abstract },
};

const struct doctor_probe *doctor_probe_at(size_t index)
{
	return index < sizeof probes / sizeof *probes ? &probes[index] : NULL;
}

/* Some attempts would do harm where nothing forbids them: try only where a box was surely made. */
static bool in_box(void)
{
	struct utsname name;
	return getenv("AGENTBOX_PROBE_SOCKET") && getpid() < 8 && uname(&name) == 0 &&
	       strcmp(name.nodename, "agentbox") == 0;
}

int cmd_probe(const struct cli *cli, struct err *err)
{
	(void)cli;
	if (!in_box())
		return err_set(err, ERR_usage, 0,
			"probe is for `agentbox doctor`, which runs it in a box");
	AUTO_BUF out = { 0 };
	for (size_t i = 0; doctor_probe_at(i); i++) {
		char detail[200] = "";
		bool ok = doctor_probe_at(i)->try(detail, sizeof detail);
		buf_addf(&out, "%s\t%d\t%s\n", doctor_probe_at(i)->name, ok, detail);
	}
	return say_out(&out, err) < 0 ? -1 : CLI_YES;
}
