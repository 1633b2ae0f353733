/*
 * host: the facts that plans rest on. The only part of plan/ (with host_user, host_match, host_git,
 * host_mounts, host_cgroup and host_diagnosis) that looks at the kernel; it judges nothing.
 */
#define _GNU_SOURCE
#include "plan/host.h"
#include "base/fd.h"
#include "base/sys.h"
#include "plan/host_git.h"
#include "plan/host_match.h"
#include "plan/host_mounts.h"
#include "plan/host_own.h"
#include "plan/host_user.h"
#include "plan/places.h"
#include "plan/request.h"
#include "policy/policy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

/*
 * Ids that no one owns files with: systemd's table of uids (UIDS-GIDS.md) calls 1879048192 to
 * 2147483647 unused. Each box of root's gets one of its own, by the supervisor's pid.
 */
#define BOX_ID_FIRST 1879048192u
#define BOX_ID_COUNT 268435455u

static bool has_caps(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	unsigned want = 1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_SYS_ADMIN;
	return (data[0].effective & want) == want;
}

/* In the initial user namespace the map is "0 0 4294967295"; elsewhere other ids may not exist. */
static bool all_ids_mapped(struct arena *arena)
{
	AUTO_FD fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
	char *text;
	size_t len;
	unsigned long inside, outside, count;
	return fd >= 0 && fd_read_file(arena, fd, 4096, &text, &len) == 0 &&
	       sscanf(text, "%lu %lu %lu", &inside, &outside, &count) == 3 && inside == 0 &&
	       outside == 0 && count == 4294967295ul;
}

/*
 * $HOME is the caller's word for what ~ means, so it is where the box's home is shown, if it is a
 * clean path outside of what the box makes itself; else NULL.
 */
static const char *home_of(const struct request *request)
{
	static const char *const own[] = { "/dev", "/etc", "/proc", "/run", "/sys", "/tmp",
		"/usr" };
	const char *home = NULL;
	for (size_t i = 0; request->environ && request->environ[i]; i++)
		if (strncmp(request->environ[i], "HOME=", 5) == 0)
			home = request->environ[i] + 5;
	if (!home || home[0] != '/' || !home[1] || strlen(home) >= PATH_MAX)
		return NULL;
	for (const char *at = home; at; at = strchr(at + 1, '/'))
		if (at[1] == '/' || at[1] == '.' || at[1] == 0)
			return NULL;
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (strcmp(home, own[i]) == 0 || (strncmp(home, own[i], strlen(own[i])) == 0 &&
							 home[strlen(own[i])] == '/' && i != 5))
			return NULL;
	return home;
}

/*
 * Is our id the host's root, also when a user namespace gave it another number? The kernel's own
 * settings belong to that root alone, so whose they are tells; without them the number does.
 */
static bool is_global_root(void)
{
	struct stat st;
	return stat("/proc/sys/kernel", &st) < 0 ? geteuid() == 0 : st.st_uid == geteuid();
}

static void probe_caller(const struct request *request, struct host *host)
{
	host->global_root = is_global_root();
	host->uid = geteuid();
	host->gid = getegid();
	host->pid = getpid();
	host->umask = umask(022);
	(void)umask(host->umask);
	host->root = host->uid == 0 && has_caps() && all_ids_mapped(&host->arena);
	host->box_uid = host->root ? BOX_ID_FIRST + (uid_t)host->pid % BOX_ID_COUNT : host->uid;
	host->box_gid = host->root ? BOX_ID_FIRST + (gid_t)host->pid % BOX_ID_COUNT : host->gid;
	struct host_user user;
	host_user_find(&host->arena, host->uid, host->gid, &user);
	host->user = user.name;
	host->group = user.group;
	host->home = home_of(request);
	if (!host->home)
		host->home = user.home;
	if (!host->home)
		host->home = arena_printf(&host->arena, "/home/%s", user.name);
}

static void probe_kernel(struct host *host)
{
	struct utsname name;
	host->release = uname(&name) == 0 ? arena_strdup(&host->arena, name.release) : "";
	int abi = sys_landlock_create_ruleset(NULL, 0, SYS_LANDLOCK_CREATE_RULESET_VERSION);
	host->landlock_abi = abi > 0 ? abi : 0;
	host->landlock_errnum = abi < 0 ? -abi : 0;
	/* With a NULL program the flags are judged first: EFAULT means that they are known. */
	unsigned flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
	host->seccomp_notify = sys_seccomp(SECCOMP_SET_MODE_FILTER, flags, NULL) == -EFAULT;
	flags |= 1u << 5; /* SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV */
	host->seccomp_wait_killable = sys_seccomp(SECCOMP_SET_MODE_FILTER, flags, NULL) == -EFAULT;
}

/* Type, owner and link text of a path, nothing followed. */
static void probe_one(struct arena *arena, const char *path, struct host_path *fact)
{
	char text[PATH_MAX];
	struct stat st;
	fact->path = path;
	/* Half of what is asked for are links, and of them no more than the text is wanted. */
	ssize_t len = readlink(path, text, sizeof text - 1);
	if (len > 0) {
		fact->mode = S_IFLNK | 0777;
		fact->link = arena_strndup(arena, text, (size_t)len);
		return;
	}
	if (len == 0 || errno != EINVAL || lstat(path, &st) < 0) {
		fact->errnum = len == 0 ? ENOENT : errno;
		return;
	}
	fact->mode = st.st_mode;
	fact->uid = st.st_uid;
	fact->gid = st.st_gid;
	if (S_ISLNK(st.st_mode))
		fact->errnum = ENOENT; /* became one just now */
}

static void probe_list(struct arena *arena, const char *const *paths, size_t count,
	struct host_path **facts, size_t *fact_count)
{
	for (size_t i = 0; i < count; i++)
		probe_one(arena, paths[i], arena_push(arena, facts, fact_count, sizeof **facts));
}

/* filesystem.root: DIR: whatever it has at its top, but what the box makes itself. */
static void probe_root_dir(const char *root, struct host *host)
{
	static const char *const made[] = { ".", "..", "dev", "home", "proc", "root", "run", "sys",
		"tmp" };
	enum { TOP_MAX = 64 };
	struct host_path *top = NULL;
	DIR *dir = opendir(root);
	struct dirent *entry;
	while (dir && (entry = readdir(dir)) && host->top_count < TOP_MAX) {
		bool skip = false;
		for (size_t i = 0; i < sizeof made / sizeof *made; i++)
			skip |= strcmp(entry->d_name, made[i]) == 0;
		if (skip)
			continue;
		struct host_path *fact =
			arena_push(&host->arena, &top, &host->top_count, sizeof *top);
		probe_one(&host->arena, arena_printf(&host->arena, "%s/%s", root, entry->d_name),
			fact);
	}
	if (dir)
		closedir(dir);
	host->top = top;
}

/* May any user enter each directory on the way? A box of root's is made by an id that owns nothing.
 */
static bool reachable_by_all(const char *path)
{
	char part[PATH_MAX];
	struct stat st;
	for (const char *slash = path; (slash = strchr(slash + 1, '/'));) {
		memcpy(part, path, (size_t)(slash - path));
		part[slash - path] = 0;
		if (stat(part, &st) < 0 || !(st.st_mode & S_IXOTH))
			return false;
	}
	return true;
}

/* The directory was installed with agentbox; an agentbox that was not installed has none. */
static bool has_ready_dev(bool as_root)
{
	static const char node[] = AGENTBOX_DEVDIR "/urandom";
	struct stat st;
	return stat(node, &st) == 0 && S_ISREG(st.st_mode) && (!as_root || reachable_by_all(node));
}

static void probe_system(const struct policy *policy, struct host *host)
{
	struct arena *arena = &host->arena;
	host->resolv_conf = "";
	host->ready_dev = has_ready_dev(host->root);
	if (policy->fs.root == ROOT_DIRECTORY) {
		probe_root_dir(policy->fs.root_dir, host);
		return;
	}
	struct host_path *top = NULL, *etc = NULL;
	probe_list(arena, places_top, places_top_count, &top, &host->top_count);
	probe_list(arena, places_etc, places_etc_count, &etc, &host->etc_count);
	if (policy->network != NETWORK_NONE)
		probe_list(arena, places_etc_network, places_etc_network_count, &etc,
			&host->etc_count);
	host->top = top;
	host->etc = etc;
	if (policy->network == NETWORK_NONE)
		return;
	AUTO_FD fd = open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC);
	char *text;
	size_t len;
	if (fd >= 0 && fd_read_file(arena, fd, 65536, &text, &len) == 0)
		host->resolv_conf = text;
}

/* A path that a grant names: also where it leads, when a link is anywhere in it. */
static void probe_grant(struct host *host, struct host_path **paths, const char *path)
{
	if (host_find(host, path))
		return;
	struct host_path *fact = arena_push(&host->arena, paths, &host->path_count, sizeof **paths);
	host->paths = *paths;
	probe_one(&host->arena, path, fact);
	if (fact->errnum)
		return;
	int fd = sys_openat2(AT_FDCWD, path, O_PATH | O_CLOEXEC | O_NOFOLLOW,
		SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS);
	if (fd >= 0 && !fact->link) {
		struct statfs fs;
		fact->unmapped = host->root && fstatfs(fd, &fs) == 0 &&
				 (unsigned long)fs.f_type == OVERLAYFS_SUPER_MAGIC;
		close(fd);
		fact->real = path;
		return;
	}
	fd_close(&fd);
	fact->through_link = !fact->link;
	char *real = realpath(path, NULL);
	if (real)
		fact->real = arena_strdup(&host->arena, real);
	free(real);
}

static void probe_git(struct host *host, struct host_path **paths, const char *workspace)
{
	const struct host_path *fact = host_find(host, workspace);
	if (fact->errnum || !fact->real || fact->link || fact->through_link ||
		places_not_workspace(workspace, host->home))
		return; /* the planner refuses it, or shows none */
	host_git_probe(&host->arena, workspace, fact->uid, host->home, &host->git);
	if (host->git.common)
		probe_grant(host, paths, host->git.common);
}

/* Mounts inside of what is shown through a layer; more than can be shown are not looked at. */
static void probe_mounts(struct host *host, struct host_path **paths, const char *workspace)
{
	enum { LOOKED_AT_MAX = 64 };
	const char *trees[2] = { workspace, host->git.common };
	host_mounts_probe(trees, host->git.common ? 2 : 1, host);
	for (size_t i = 0; i < host->mount_count && i < LOOKED_AT_MAX; i++)
		probe_grant(host, paths, host->mounts[i].path);
}

static void probe_grants(
	const struct policy *policy, const struct request *request, struct host *host)
{
	struct host_path *paths = NULL;
	for (size_t i = 0; i < policy->fs.read_count; i++)
		probe_grant(host, &paths, policy->fs.read[i].path);
	for (size_t i = 0; i < policy->fs.write_count; i++)
		probe_grant(host, &paths, policy->fs.write[i].path);
	if (policy->fs.root == ROOT_DIRECTORY)
		probe_grant(host, &paths, policy->fs.root_dir);
	if (policy->fs.workspace != WORKSPACE_NONE)
		probe_grant(host, &paths, request->workspace);
	if (policy->fs.workspace == WORKSPACE_WRITE || policy->fs.workspace == WORKSPACE_OVERLAY)
		probe_git(host, &paths, request->workspace);
	if (policy->fs.workspace == WORKSPACE_OVERLAY)
		probe_mounts(host, &paths, request->workspace);
}

const struct host_path *host_find(const struct host *host, const char *path)
{
	for (size_t i = 0; i < host->path_count; i++)
		if (strcmp(host->paths[i].path, path) == 0)
			return &host->paths[i];
	return NULL;
}

int host_probe(const struct policy *policy, const struct request *request, struct host *ret_host,
	struct err *err)
{
	struct host host = { 0 };
	probe_caller(request, &host);
	probe_kernel(&host);
	host_cgroup_probe(policy, request, &host);
	probe_system(policy, &host);
	probe_grants(policy, request, &host);
	host_own_probe(policy, request, &host);
	if (host_match(policy, request, &host, err) < 0) {
		arena_free(&host.arena);
		return -1;
	}
	*ret_host = host;
	return 0;
}

void host_probe_cgroup(
	const struct policy *policy, const struct request *request, struct host *host)
{
	host_cgroup_probe(policy, request, host);
}

void host_free(struct host *host)
{
	arena_free(&host->arena);
}
