/* cgroup_read: what the kernel has counted for a box's control groups. Changes nothing there. */
#define _GNU_SOURCE
#include "box/cgroup.h"
#include "base/sys.h"

#include <fcntl.h>
#include <string.h>

#define UNKNOWN    UINT64_MAX
#define SURELY_ALL 1024
#define TEXT_MAX   8192 /* of a file that is read; io.stat has some 100 bytes for each device */

/*
 * The whole of a small file, with a NUL behind it; what does not fit is cut. 0 or -errno. The
 * kernel gives all of such a file at once, so less than it could give, up to the end of a line, is
 * all.
 */
static int get(int dir, const char *file, char text[TEXT_MAX])
{
	int fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	size_t len = 0;
	ssize_t n;
	while ((n = read(fd, text + len, TEXT_MAX - 1 - len)) > 0 || (n < 0 && errno == EINTR)) {
		len += n > 0 ? (size_t)n : 0;
		if (len > 0 && len < SURELY_ALL && text[len - 1] == '\n')
			break;
	}
	int r = n < 0 ? -errno : 0;
	close(fd);
	text[len] = 0;
	return r;
}

/* The number that a text begins with; "max", or anything else that is none, is unknown. */
static uint64_t number(const char *text)
{
	uint64_t value = 0;
	if (*text < '0' || *text > '9')
		return UNKNOWN;
	for (; *text >= '0' && *text <= '9'; text++) {
		unsigned digit = (unsigned)(*text - '0');
		if (value > (UNKNOWN - 1 - digit) / 10)
			return UNKNOWN;
		value = value * 10 + digit;
	}
	return value;
}

static bool begins(const char *text, const char *with)
{
	return memcmp(text, with, strlen(with)) == 0;
}

/* The number in the line "KEY NUMBER"; `key` with its space. */
static uint64_t line_number(const char *text, const char *key)
{
	for (const char *end = text + strlen(text); text < end;) {
		size_t left = (size_t)(end - text);
		if (left > strlen(key) && begins(text, key))
			return number(text + strlen(key));
		const char *newline = memchr(text, '\n', left);
		text = newline ? newline + 1 : end;
	}
	return UNKNOWN;
}

/* The sum of all "KEY=NUMBER"; `key` with a space before it and the sign behind. */
static uint64_t sum(const char *text, const char *key)
{
	uint64_t total = 0;
	size_t len = strlen(key);
	const char *end = text + strlen(text);
	for (; (size_t)(end - text) > len; text++) {
		if (!begins(text, key))
			continue;
		uint64_t value = number(text + len);
		if (value == UNKNOWN || value > UNKNOWN - 1 - total)
			return UNKNOWN;
		total += value;
	}
	return total;
}

/* A file with one number. */
static uint64_t file_number(int dir, const char *file)
{
	char text[TEXT_MAX];
	return get(dir, file, text) < 0 ? UNKNOWN : number(text);
}

static uint64_t file_line(int dir, const char *file, const char *key)
{
	char text[TEXT_MAX];
	return get(dir, file, text) < 0 ? UNKNOWN : line_number(text, key);
}

static uint64_t from_ns(uint64_t ns)
{
	return ns == UNKNOWN ? UNKNOWN : ns / 1000;
}

/* The group that counts a thing, or -1. */
static int group_dir(const struct cgroup *cgroup, int group)
{
	return group < 0 || group >= PLAN_CGROUPS_MAX ? -1 : cgroup->dir[group];
}

static void read_v2(int dir, struct cgroup_counters *ret)
{
	char text[TEXT_MAX];
	if (get(dir, "cpu.stat", text) == 0) {
		ret->cpu_user_us = line_number(text, "user_usec ");
		ret->cpu_system_us = line_number(text, "system_usec ");
		ret->cpu_us = line_number(text, "usage_usec ");
	}
	ret->memory_peak_bytes = file_number(dir, "memory.peak");
	/* Kills that a group above or the whole host asked for are counted here, too. They are not
	 * the limit's when the limit was never reached. */
	if (get(dir, "memory.events", text) == 0)
		ret->oom_kills =
			line_number(text, "oom ") != 0 ? line_number(text, "oom_kill ") : 0;
	if (get(dir, "io.stat", text) == 0) {
		ret->read_bytes = sum(text, " rbytes=");
		ret->write_bytes = sum(text, " wbytes=");
	}
}

void cgroup_divide(uint64_t total, uint64_t user, uint64_t system, struct cgroup_counters *ret)
{
	while (user >> 31 || system >> 31) {
		user >>= 1;
		system >>= 1;
	}
	uint64_t both = user + system;
	ret->cpu_system_us = both ? total / both * system + total % both * system / both : 0;
	ret->cpu_user_us = total - ret->cpu_system_us;
}

/*
 * v1 counts the whole to the nanosecond, but its parts only by what the clock's ticks met: so the
 * whole is divided as they are, which is what v2 does itself.
 */
static void read_times(int dir, bool divided, struct cgroup_counters *ret)
{
	uint64_t total = from_ns(file_number(dir, "cpuacct.usage"));
	ret->cpu_us = total;
	if (!divided)
		return;
	uint64_t user = from_ns(file_number(dir, "cpuacct.usage_user"));
	uint64_t system = from_ns(file_number(dir, "cpuacct.usage_sys"));
	if (total == UNKNOWN || user == UNKNOWN || system == UNKNOWN)
		return;
	cgroup_divide(total, user, system, ret);
}

static void read_v1(const struct cgroup *cgroup, bool divided, struct cgroup_counters *ret)
{
	int dir = group_dir(cgroup, cgroup->plan->cpuacct);
	if (dir >= 0)
		read_times(dir, divided, ret);
	dir = group_dir(cgroup, cgroup->plan->memory);
	if (dir >= 0) {
		ret->memory_peak_bytes = file_number(dir, "memory.max_usage_in_bytes");
		/* No count tells reliably (Linux 6.18 leaves memory.failcnt at 0), so the peak
		 * does: within a sixteenth, for the kernel charges many pages at once. */
		uint64_t peak = ret->memory_peak_bytes, max = cgroup->plan->memory_max;
		bool reached = peak >= max - max / 16;
		ret->oom_kills = reached ? file_line(dir, "memory.oom_control", "oom_kill ") : 0;
	}
}

void cgroup_read(const struct cgroup *cgroup, bool divided, struct cgroup_counters *ret_counters)
{
	struct cgroup_counters *ret = ret_counters;
	*ret = (struct cgroup_counters)CGROUP_NOTHING_COUNTED;
	if (!cgroup->plan)
		return;
	bool v2 = cgroup->plan->kind == CGROUP_V2;
	int dir = v2 ? cgroup->dir[0] : group_dir(cgroup, cgroup->plan->pids);
	if (v2)
		read_v2(dir, ret);
	else
		read_v1(cgroup, divided, ret);
	if (dir < 0)
		return;
	/* Nothing was refused because of our limit while there were fewer than that. */
	ret->pids_peak = file_number(dir, "pids.peak");
	ret->pids_refused =
		ret->pids_peak < cgroup->plan->pids_max ? 0 : file_line(dir, "pids.events", "max ");
}

int cgroup_cpu_time(const struct cgroup *cgroup, uint64_t *ret_us)
{
	if (!cgroup->plan)
		return -ENODATA;
	bool v2 = cgroup->plan->kind == CGROUP_V2;
	int dir = v2 ? cgroup->dir[0] : group_dir(cgroup, cgroup->plan->cpuacct);
	if (dir < 0)
		return -ENODATA;
	char text[TEXT_MAX];
	int r = get(dir, v2 ? "cpu.stat" : "cpuacct.usage", text);
	if (r < 0)
		return r;
	uint64_t us = v2 ? line_number(text, "usage_usec ") : from_ns(number(text));
	if (us == UNKNOWN)
		return -ENODATA;
	*ret_us = us;
	return 0;
}
