/*
 * host_cgroup: looks at the control groups that this process is in. Owns the reading of their
 * files; changes nothing and judges nothing. The parsing of /proc's texts is host_cgroup_text.c.
 */
#define _GNU_SOURCE
#include "plan/host_cgroup.h"
#include "base/buf.h"
#include "base/fd.h"
#include "plan/cpulist.h"
#include "plan/host.h"
#include "plan/request.h"
#include "policy/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

/* A host with thousands of mounts has a mountinfo of a megabyte. */
#define PROC_FILE_MAX ((size_t)16 << 20)

const char *host_controller_name(enum host_controller controller)
{
	static const char *const names[CONTROLLER_COUNT_] = {
		[CONTROLLER_MEMORY] = "memory",
		[CONTROLLER_PIDS] = "pids",
		[CONTROLLER_CPU] = "cpu",
		[CONTROLLER_CPUACCT] = "cpuacct",
		[CONTROLLER_CPUSET] = "cpuset",
	};
	return names[controller];
}

bool host_cgroup_pids_asked(const struct policy *policy)
{
	static const char shipped[] = AGENTBOX_POLICYDIR "/";
	const struct policy_number *pids = &policy->limits.pids;
	return pids->value && origin_set(&pids->at) &&
	       strncmp(pids->at.file, shipped, sizeof shipped - 1) != 0;
}

bool host_cgroup_asked(const struct policy *policy)
{
	const struct policy_limits *limits = &policy->limits;
	return limits->memory.value || limits->cpu_us.value || limits->cpus_milli.value ||
	       host_cgroup_pids_asked(policy);
}

/* The beginning of a small file, as a string without its last newline; its length or -errno. */
static int read_small(const char *dir, const char *name, char *text, size_t size)
{
	char path[4096];
	if (snprintf(path, sizeof path, "%s%s%s", dir, *name ? "/" : "", name) >= (int)sizeof path)
		return -ENAMETOOLONG;
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t len = fd_read_full(fd, text, size - 1);
	if (len < 0)
		return (int)len;
	if (len && text[len - 1] == '\n')
		len--;
	text[len] = 0;
	return (int)len;
}

static bool may(const char *dir, const char *name, int mode)
{
	char path[4096];
	return snprintf(path, sizeof path, "%s%s%s", dir, *name ? "/" : "", name) <
		       (int)sizeof path &&
	       access(path, mode) == 0;
}

/* Controllers by their names between blanks. */
static unsigned read_controllers(const char *dir, const char *name)
{
	char text[1024], *save = NULL;
	unsigned found = 0;
	if (read_small(dir, name, text, sizeof text) < 0)
		return 0;
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		for (int i = 0; i < CONTROLLER_COUNT_; i++)
			if (strcmp(word, host_controller_name(i)) == 0)
				found |= 1u << i;
	return found;
}

/* Up to two; unknown counts as many, as nothing may then be enabled. */
static int read_processes(const char *dir)
{
	char text[64];
	int len = read_small(dir, "cgroup.procs", text, sizeof text);
	if (len <= 0)
		return len < 0 ? 2 : 0;
	return strchr(text, '\n') ? 2 : 1;
}

static bool is_delegated(const char *dir)
{
	static const char *const marks[] = { "trusted.delegate", "user.delegate" };
	char value[4];
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (getxattr(dir, marks[i], value, sizeof value) == 1 && value[0] == '1')
			return true;
	return false;
}

/* false: it is no directory of the v2 hierarchy at all. */
static bool read_level(const char *dir, uid_t uid, struct host_cgroup_level *level)
{
	struct stat st;
	char type[32];
	if (stat(dir, &st) < 0 || !may(dir, "cgroup.controllers", F_OK))
		return false;
	int len = read_small(dir, "cgroup.type", type, sizeof type);
	level->dir = dir;
	level->owned = st.st_uid == uid;
	level->writable = may(dir, "", W_OK | X_OK) && may(dir, "cgroup.procs", W_OK);
	level->root = len == -ENOENT;
	level->domain = level->root || (len > 0 && strcmp(type, "domain") == 0);
	level->available = read_controllers(dir, "cgroup.controllers");
	level->enabled = read_controllers(dir, "cgroup.subtree_control");
	level->processes = read_processes(dir);
	return true;
}

/* The directory above, not above the mount's own; NULL: there is none. */
static const char *above(const char *dir, const char *point, struct arena *arena)
{
	const char *slash = strrchr(dir, '/');
	if (strcmp(dir, point) == 0 || !slash || (size_t)(slash - dir) < strlen(point))
		return NULL;
	return arena_strndup(arena, dir, (size_t)(slash - dir));
}

/*
 * As a user: up to the first that is another's. As root everything may be written, so the right to
 * use a group above the own one comes from a mark, which systemd puts on what it leaves alone; or
 * the own one is the leaf that an agentbox made in the one above.
 */
static void read_levels(const char *dir, const char *point, uid_t uid, bool root,
	struct arena *arena, struct host_cgroup *cgroup)
{
	const char *dirs[HOST_CGROUP_LEVELS_MAX];
	bool marked[HOST_CGROUP_LEVELS_MAX] = { false };
	size_t count = 0, reach = root ? 1 : HOST_CGROUP_LEVELS_MAX;
	for (; dir && count < HOST_CGROUP_LEVELS_MAX; dir = above(dir, point, arena))
		dirs[count++] = dir;
	if (root && count > 1 && strcmp(strrchr(dirs[0], '/') + 1, HOST_CGROUP_LEAF) == 0)
		reach = 2;
	for (size_t i = 0; root && i < count; i++)
		if ((marked[i] = is_delegated(dirs[i])) && i + 1 > reach)
			reach = i + 1;
	for (size_t i = 0; i < count && i < reach; i++) {
		struct host_cgroup_level *level = &cgroup->levels[i];
		if (!read_level(dirs[i], uid, level))
			return;
		level->delegated = marked[i];
		cgroup->level_count++;
		if (!root && !(level->owned && level->writable))
			return;
	}
}

static const char *read_word(const char *dir, const char *name, struct arena *arena)
{
	char text[4096];
	return read_small(dir, name, text, sizeof text) > 0 ? arena_strdup(arena, text) : "";
}

/* The own group in the v1 hierarchy of a controller; none is no error. */
static void read_v1(const char *cgroup, const char *mountinfo, enum host_controller controller,
	struct arena *arena, struct host_cgroup_v1 *ret_v1)
{
	const char *mounted;
	const char *dir = host_cgroup_v1_dir(
		cgroup, mountinfo, host_controller_name(controller), arena, &mounted);
	if (!dir)
		return;
	/* One look for both: as a rule it is there, and may be written or not. */
	bool writable = may(dir, "", W_OK | X_OK);
	if (!writable && !may(dir, "", F_OK))
		return;
	ret_v1->dir = dir;
	ret_v1->mounted = mounted;
	ret_v1->writable = writable;
	if (controller == CONTROLLER_CPUSET) {
		ret_v1->mems = read_word(dir, "cpuset.mems", arena);
		ret_v1->cpus = read_word(dir, "cpuset.cpus", arena);
	}
}

void host_cgroup_read(const char *cgroup, const char *mountinfo, unsigned wanted, uid_t uid,
	bool root, struct arena *arena, struct host_cgroup *ret_cgroup)
{
	bool on_v1 = false;
	for (int i = 0; i < CONTROLLER_COUNT_; i++) {
		if (!(wanted & 1u << i))
			continue;
		read_v1(cgroup, mountinfo, i, arena, &ret_cgroup->v1[i]);
		on_v1 |= i != CONTROLLER_CPUACCT && i != CONTROLLER_CPUSET && ret_cgroup->v1[i].dir;
		/* A group of a hierarchy with cpuset, the last one here, cannot do without its
		 * values. */
		if (ret_cgroup->v1[i].dir && strstr(ret_cgroup->v1[i].mounted, "cpuset"))
			wanted |= 1u << CONTROLLER_CPUSET;
	}
	if (on_v1)
		return;
	const char *point = NULL, *dir = host_cgroup_v2_dir(cgroup, mountinfo, arena, &point);
	if (dir)
		read_levels(dir, point, uid, root, arena, ret_cgroup);
}

/* As root the system's manager, as a user the user's own, over its bus or its private socket. */
static bool has_manager(const struct request *request, uid_t uid, bool root)
{
	static const char variable[] = "XDG_RUNTIME_DIR=";
	char fallback[64];
	if (access("/run/systemd/system", F_OK) < 0)
		return false;
	if (root)
		return true;
	snprintf(fallback, sizeof fallback, "/run/user/%u", (unsigned)uid);
	const char *runtime = fallback;
	for (size_t i = 0; request->environ && request->environ[i]; i++)
		if (strncmp(request->environ[i], variable, sizeof variable - 1) == 0)
			runtime = request->environ[i] + sizeof variable - 1;
	return *runtime == '/' &&
	       (may(runtime, "bus", F_OK) || may(runtime, "systemd/private", F_OK));
}

/*
 * /proc/self/status lists processors that are not even there; this call does not. A kernel for more
 * than its set can hold refuses, and then none are chosen.
 */
static const char *allowed_cpus(struct arena *arena)
{
	cpu_set_t set;
	uint8_t bits[sizeof set] = { 0 };
	if (sched_getaffinity(0, sizeof set, &set) < 0)
		return NULL;
	for (size_t cpu = 0; cpu < sizeof set * 8; cpu++)
		if (CPU_ISSET(cpu, &set))
			bits[cpu / 8] |= (uint8_t)(1u << cpu % 8);
	return cpulist_of_bits(arena, bits, sizeof bits);
}

static unsigned online_cpus(void)
{
	char text[4096];
	size_t count = 0;
	if (read_small("/sys/devices/system/cpu", "online", text, sizeof text) > 0)
		count = cpulist_count(text);
	if (!count) {
		long said = sysconf(_SC_NPROCESSORS_ONLN);
		count = said > 0 ? (size_t)said : 1;
	}
	return (unsigned)count;
}

static const char *read_proc(const char *path, struct arena *arena)
{
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text;
	size_t len;
	return fd >= 0 && fd_read_file(arena, fd, PROC_FILE_MAX, &text, &len) == 0 ? text : "";
}

static unsigned wanted_controllers(const struct policy *policy)
{
	const struct policy_limits *limits = &policy->limits;
	unsigned wanted = 1u << CONTROLLER_CPUACCT;
	if (limits->memory.value)
		wanted |= 1u << CONTROLLER_MEMORY;
	if (limits->cpus_milli.value)
		wanted |= 1u << CONTROLLER_CPU;
	if (limits->cpus_milli.value && limits->cpus_milli.value % 1000 == 0)
		wanted |= 1u << CONTROLLER_CPUSET;
	/* A shipped policy's pids come along where a group is made that can hold them. */
	if (host_cgroup_pids_asked(policy) ||
		(limits->pids.value && (limits->memory.value || limits->cpus_milli.value)))
		wanted |= 1u << CONTROLLER_PIDS;
	return wanted;
}

static bool is_type(const char *path, long magic)
{
	struct statfs fs;
	return statfs(path, &fs) == 0 && (long)fs.f_type == magic;
}

/* Does a list of controllers, between commas, have one of these? */
static bool lists_any(const char *list, size_t len, unsigned wanted)
{
	for (size_t at = 0; at < len; at += strcspn(list + at, ",:") + 1)
		for (int i = 0; i < CONTROLLER_COUNT_; i++) {
			const char *name = host_controller_name(i);
			size_t size = strcspn(list + at, ",:");
			if (wanted & 1u << i && size == strlen(name) &&
				memcmp(list + at, name, size) == 0)
				return true;
		}
	return false;
}

/*
 * What mountinfo would say if the hierarchies were mounted where they are on nearly all hosts,
 * which is asked for each of them; the whole list is long, and making it costs the kernel much.
 */
static const char *usual_mounts(const char *cgroup, unsigned wanted, struct arena *arena)
{
	static const char top[] = "/sys/fs/cgroup", unified[] = "/sys/fs/cgroup/unified";
	AUTO_BUF text = { 0 };
	const char *v2 = is_type(top, CGROUP2_SUPER_MAGIC)       ? top
			 : is_type(unified, CGROUP2_SUPER_MAGIC) ? unified
								 : NULL;
	if (v2)
		buf_addf(&text, "2 1 0:0 / %s rw - cgroup2 cgroup2 rw\n", v2);
	/* NUMBER:CONTROLLERS:PATH; names with other signs are nothing for us */
	for (const char *line = cgroup; v2 != top && *line; line += strcspn(line, "\n") + 1) {
		const char *list = line + strcspn(line, ":\n") + 1;
		size_t len = list[-1] ? strspn(list, "abcdefghijklmnopqrstuvwxyz_,") : 0;
		char path[256];
		if (len && list[len] == ':' && lists_any(list, len, wanted) &&
			snprintf(path, sizeof path, "%s/%.*s", top, (int)len, list) <
				(int)sizeof path &&
			is_type(path, CGROUP_SUPER_MAGIC))
			buf_addf(&text, "2 1 0:0 / %s rw - cgroup cgroup rw,%.*s\n", path, (int)len,
				list);
		if (!line[strcspn(line, "\n")])
			break;
	}
	return text.full ? "" : arena_strdup(arena, buf_text(&text));
}

/* Is nothing missing that another place could have? */
static bool is_found(
	const char *cgroup, unsigned wanted, const struct host_cgroup *facts, struct arena *arena)
{
	bool on_v1 = false;
	const char *mounted;
	for (int i = 0; i < CONTROLLER_COUNT_; i++) {
		const char *name = host_controller_name(i);
		if (!(wanted & 1u << i) || facts->v1[i].dir) {
			on_v1 |= facts->v1[i].dir != NULL;
			continue;
		}
		if (host_cgroup_v1_path(cgroup, name, arena, &mounted))
			return false;
	}
	return on_v1 || facts->level_count > 0;
}

static void read_groups(const struct policy *policy, const struct host *host,
	struct host_cgroup *facts, struct arena *arena)
{
	const char *cgroup = read_proc("/proc/self/cgroup", arena);
	unsigned wanted = wanted_controllers(policy);
	struct host_cgroup found = { 0 };
	host_cgroup_read(cgroup, usual_mounts(cgroup, wanted, arena), wanted, host->uid, host->root,
		arena, &found);
	if (!is_found(cgroup, wanted, &found, arena)) {
		found = (struct host_cgroup){ 0 };
		host_cgroup_read(cgroup, read_proc("/proc/self/mountinfo", arena), wanted,
			host->uid, host->root, arena, &found);
	}
	*facts = found;
}

void host_cgroup_probe(
	const struct policy *policy, const struct request *request, struct host *host)
{
	struct arena *arena = &host->arena;
	struct host_cgroup facts = { 0 };
	struct timespec now;
	if (!host_cgroup_asked(policy)) {
		host->cgroup = facts;
		return;
	}
	read_groups(policy, host, &facts, arena);
	facts.probed = true;
	facts.systemd = has_manager(request, host->uid, host->root);
	/* Counted only where it decides how often to look at processor time. */
	facts.online =
		policy->limits.cpu_us.value && !policy->limits.cpus_milli.value ? online_cpus() : 0;
	facts.cpus =
		wanted_controllers(policy) & 1u << CONTROLLER_CPUSET ? allowed_cpus(arena) : NULL;
	clock_gettime(CLOCK_REALTIME, &now);
	facts.number = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
	host->cgroup = facts;
}
