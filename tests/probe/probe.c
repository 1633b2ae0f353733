/*
 * probe: reports what a command sees from inside the box, as one JSON object on stdout.
 *
 * Static, so that it needs nothing of the box but itself. It only looks: the few attempts it makes
 * (making a file in the directories that its arguments name) are undone at once. It judges nothing;
 * the tests do.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

extern char **environ;

static void put_string(const char *text)
{
	putchar('"');
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			printf("\\%c", *c);
		else if (*c < 0x20 || *c > 0x7e)
			printf("\\u%04x", *c);
		else
			putchar(*c);
	}
	putchar('"');
}

static void put_key(const char *key)
{
	put_string(key);
	putchar(':');
}

/* One element of a list; *first tells whether a comma is due. */
static void put_item(bool *first, const char *text)
{
	if (!*first)
		putchar(',');
	*first = false;
	put_string(text);
}

static void report_ids(void)
{
	struct utsname name;
	char cwd[4096];

	printf("\"uid\":%d,\"gid\":%d,\"pid\":%d,\"ppid\":%d,\"sid\":%d,\"pgid\":%d,",
		(int)getuid(), (int)getgid(), (int)getpid(), (int)getppid(), (int)getsid(0),
		(int)getpgid(0));
	printf("\"dumpable\":%d,\"umask\":%d,", prctl(PR_GET_DUMPABLE), (int)umask(022));
	put_key("hostname");
	put_string(uname(&name) == 0 ? name.nodename : "");
	putchar(',');
	put_key("cwd");
	put_string(getcwd(cwd, sizeof(cwd)) ? cwd : "");
	putchar(',');
}

/* The open descriptors, without the one that the listing itself needs. */
static void report_descriptors(void)
{
	bool first = true;

	printf("\"fds\":{");
	for (int fd = 0; fd < 4096; fd++) {
		struct stat st;
		char key[16];

		if (fstat(fd, &st) < 0)
			continue;
		snprintf(key, sizeof(key), "%d", fd);
		if (!first)
			putchar(',');
		first = false;
		put_key(key);
		put_string(S_ISFIFO(st.st_mode)  ? "pipe"
			   : S_ISCHR(st.st_mode) ? "character"
			   : S_ISREG(st.st_mode) ? "file"
			   : S_ISDIR(st.st_mode) ? "directory"
						 : "other");
	}
	printf("},");
}

static void report_status(void)
{
	static const char *const wanted[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb",
		"NoNewPrivs", "Seccomp", "Seccomp_filters", "SigBlk", "SigIgn", "Groups", "NSpid" };
	FILE *file = fopen("/proc/self/status", "re");
	char line[512];
	bool first = true;

	printf("\"status\":{");
	while (file && fgets(line, sizeof(line), file)) {
		char *value = strchr(line, ':');

		if (!value)
			continue;
		*value++ = '\0';
		value += strspn(value, " \t");
		value[strcspn(value, "\n")] = '\0';
		for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
			if (strcmp(line, wanted[i]) != 0)
				continue;
			if (!first)
				putchar(',');
			first = false;
			put_key(line);
			put_string(value);
		}
	}
	if (file)
		fclose(file);
	printf("},");
}

static void report_namespaces(void)
{
	static const char *const kinds[] = { "user", "mnt", "pid", "net", "ipc", "uts", "cgroup" };

	printf("\"ns\":{");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char path[64], text[64];
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
		len = readlink(path, text, sizeof(text) - 1);
		text[len < 0 ? 0 : len] = '\0';
		printf("%s", i ? "," : "");
		put_key(kinds[i]);
		put_string(text);
	}
	printf("},");
}

static void report_environment(void)
{
	bool first = true;

	printf("\"env\":{");
	for (char **entry = environ; *entry; entry++) {
		char *equals = strchr(*entry, '=');

		if (!first)
			putchar(',');
		first = false;
		if (!equals) {
			put_key(*entry);
			printf("null");
			continue;
		}
		*equals = '\0';
		put_key(*entry);
		put_string(equals + 1);
	}
	printf("},");
}

/* Names in a directory; digits: only those that are a number. */
static void report_directory(const char *key, const char *path, bool digits)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	bool first = true;

	put_key(key);
	putchar('[');
	while (dir && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (digits && strspn(entry->d_name, "0123456789") != strlen(entry->d_name))
			continue;
		put_item(&first, entry->d_name);
	}
	if (dir)
		closedir(dir);
	printf("],");
}

/* Every mount: where, and whether the kernel would let it be written. */
static void report_mounts(void)
{
	FILE *file = fopen("/proc/self/mounts", "re");
	char line[8192], what[2048], where[2048], type[128], options[2048];
	bool first = true;

	printf("\"mounts\":[");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%2047s %2047s %127s %2047s", what, where, type, options) != 4)
			continue;
		printf("%s{", first ? "" : ",");
		first = false;
		put_key("path");
		put_string(where);
		putchar(',');
		put_key("type");
		put_string(type);
		putchar(',');
		put_key("options");
		put_string(options);
		putchar('}');
	}
	if (file)
		fclose(file);
	printf("],");
}

/* Can the file be opened for writing, or, for a directory, can a file be made in it? */
static bool can_write(const char *path)
{
	char name[4096];
	struct stat st;
	int fd;

	if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode)) {
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0)
			close(fd);
		return fd >= 0;
	}
	snprintf(name, sizeof(name), "%s/.probe-%d", path, (int)getpid());
	fd = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	close(fd);
	unlink(name);
	return true;
}

/* Can the first byte be read, or, for a directory, its first entry? */
static bool can_read(const char *path)
{
	DIR *dir = opendir(path);
	char byte;
	bool yes;
	int fd;

	if (dir) {
		yes = readdir(dir) != NULL;
		closedir(dir);
		return yes;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	yes = fd >= 0 && read(fd, &byte, 1) == 1;
	if (fd >= 0)
		close(fd);
	return yes;
}

/* Which of the paths that the command line names can be read, and written? */
static void report_access(char **paths)
{
	bool first = true;

	printf("\"readable\":[");
	for (char **path = paths; *path; path++)
		if (can_read(*path))
			put_item(&first, *path);
	printf("],\"writable\":[");
	first = true;
	for (char **path = paths; *path; path++)
		if (can_write(*path))
			put_item(&first, *path);
	printf("],");
}

static void report_limits(void)
{
	static const struct {
		const char *name;
		int resource;
	} limits[] = { { "nofile", RLIMIT_NOFILE }, { "nproc", RLIMIT_NPROC },
		{ "core", RLIMIT_CORE }, { "fsize", RLIMIT_FSIZE }, { "cpu", RLIMIT_CPU },
		{ "as", RLIMIT_AS } };

	printf("\"rlimits\":{");
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct rlimit limit = { 0 };

		getrlimit((__rlimit_resource_t)limits[i].resource, &limit);
		printf("%s", i ? "," : "");
		put_key(limits[i].name);
		if (limit.rlim_cur == RLIM_INFINITY)
			printf("null");
		else
			printf("%llu", (unsigned long long)limit.rlim_cur);
	}
	printf("},");
}

/* Signals that do not have their default action. */
static void report_signals(void)
{
	bool first = true;

	printf("\"signals_not_default\":[");
	for (int signum = 1; signum < NSIG; signum++) {
		struct sigaction action;

		if (sigaction(signum, NULL, &action) < 0 || action.sa_handler == SIG_DFL)
			continue;
		printf("%s%d", first ? "" : ",", signum);
		first = false;
	}
	printf("],");
}

/* The limits that the own control group shows, where there is one. */
static void report_groups(void)
{
	static const char *const files[] = { "memory.max", "pids.max", "cpu.max",
		"memory/memory.limit_in_bytes", "pids/pids.max", "cpu/cpu.cfs_quota_us" };
	bool first = true;

	printf("\"groups\":{");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char path[128], value[64];
		snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", files[i]);
		FILE *file = fopen(path, "re");
		if (!file)
			continue;
		if (fgets(value, sizeof(value), file)) {
			value[strcspn(value, "\n")] = 0;
			if (!first)
				putchar(',');
			first = false;
			put_key(files[i]);
			put_string(value);
		}
		fclose(file);
	}
	printf("},");
}

int main(int argc, char **argv)
{
	int terminal;

	(void)argc;
	putchar('{');
	report_descriptors();
	terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);
	printf("\"has_terminal\":%s,", terminal >= 0 ? "true" : "false");
	if (terminal >= 0)
		close(terminal);
	report_ids();
	report_status();
	report_namespaces();
	report_environment();
	report_directory("processes", "/proc", true);
	report_directory("top", "/", false);
	report_directory("dev", "/dev", false);
	report_directory("shm", "/dev/shm", false);
	report_directory("interfaces", "/proc/self/net/dev_snmp6", false);
	report_mounts();
	report_limits();
	report_groups();
	report_signals();
	report_access(argv + 1);
	printf("\"end\":true}\n");
	return 0;
}
