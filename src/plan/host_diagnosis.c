/*
 * host_diagnosis: causes and remedies of refused user namespaces. Reads settings in /proc and /etc;
 * never makes a namespace itself and never writes anything.
 */
#define _GNU_SOURCE
#include "plan/host_diagnosis.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* First bytes of a small file as a string; false when it cannot be read. */
static bool read_text(const char *path, char *out, size_t size)
{
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = fd_read_full(fd, out, size - 1);
	if (n < 0)
		return false;
	out[n] = 0;
	return true;
}

static long read_number(const char *path)
{
	char text[32], *end;
	if (!read_text(path, text, sizeof text))
		return -1;
	errno = 0;
	long value = strtol(text, &end, 10);
	return end == text || errno || value < 0 ? -1 : value;
}

/* What stands behind `name` (with its colon) in /proc/self/status; false when nothing does. */
static bool own_status(const char *name, char *out, size_t size)
{
	char text[4096];
	if (!read_text("/proc/self/status", text, sizeof text))
		return false;
	const char *at = strstr(text, name);
	if (!at)
		return false;
	snprintf(out, size, "%.*s", (int)strcspn(at + strlen(name), "\n"), at + strlen(name));
	return true;
}

static int own_seccomp_mode(void)
{
	char value[32];
	return own_status("\nSeccomp:", value, sizeof value) ? atoi(value) : -1;
}

static bool has_sys_admin(void)
{
	char value[32];
	return own_status("\nCapEff:", value, sizeof value) &&
	       strtoull(value, NULL, 16) >> CAP_SYS_ADMIN & 1;
}

/* The first user namespace maps all ids to themselves. */
static bool ids_are_first(void)
{
	char text[64];
	unsigned long first = 1, outer = 1, count = 0;
	return read_text("/proc/self/uid_map", text, sizeof text) &&
	       sscanf(text, "%lu %lu %lu", &first, &outer, &count) == 3 && first == 0 &&
	       outer == 0 && count == UINT32_MAX;
}

/*
 * The kernel makes no user namespace for a process in a chroot (user_namespaces(7), EPERM). Such a
 * process sees no mount whose mount point is "/" in mountinfo (field 5).
 */
static bool in_chroot(void)
{
	FILE *in = fopen("/proc/self/mountinfo", "re");
	if (!in)
		return false;
	char *line = NULL;
	size_t size = 0;
	bool any = false, root = false;
	while (!root && getline(&line, &size, in) > 0) {
		char point[3] = "";
		if (sscanf(line, "%*s %*s %*s %*s %2s", point) != 1)
			continue;
		any = true;
		root = strcmp(point, "/") == 0;
	}
	free(line);
	fclose(in);
	return any && !root;
}

/* Is the caller's id mapped where it is? The kernel asks for that too. */
static int id_unmapped(void)
{
	FILE *in = fopen("/proc/self/uid_map", "re");
	if (!in)
		return 0;
	unsigned long first, outer, count, id = geteuid();
	int unmapped = 1;
	while (unmapped && fscanf(in, "%lu %lu %lu", &first, &outer, &count) == 3)
		if (id >= first && id - first < count)
			unmapped = 0;
	fclose(in);
	return unmapped;
}

static bool in_container(void)
{
	static const char *const marks[] = {
		"/.dockerenv",
		"/run/.containerenv",
		"/run/systemd/container",
	};
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (access(marks[i], F_OK) == 0)
			return true;
	return false;
}

void host_userns_facts(struct userns_facts *ret_facts)
{
	struct userns_facts facts = {
		.privileged = has_sys_admin() && ids_are_first(),
		.compiled_in =
			access("/proc/self/ns/user", F_OK) == 0 || access("/proc/self", F_OK) != 0,
		.chrooted = in_chroot(),
		.container = in_container(),
		.no_id = id_unmapped(),
		.max_namespaces = read_number("/proc/sys/user/max_user_namespaces"),
		.clone_allowed = read_number("/proc/sys/kernel/unprivileged_userns_clone"),
		.apparmor_restricts =
			read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
		.apparmor_profile = access(HOST_APPARMOR_PROFILE, F_OK) == 0,
		.seccomp = own_seccomp_mode(),
	};
	ssize_t n = readlink("/proc/self/exe", facts.exe, sizeof facts.exe - 1);
	facts.exe[n > 0 && n < (ssize_t)sizeof facts.exe - 1 ? n : 0] = 0;
	*ret_facts = facts;
}

/* Settings that refuse by themselves come first; marks that only make a refusal likely, last. */
enum userns_cause host_userns_cause(const struct userns_facts *facts)
{
	if (!facts->compiled_in)
		return USERNS_NOT_COMPILED;
	if (facts->max_namespaces == 0)
		return USERNS_MAX_ZERO;
	if (facts->clone_allowed == 0 && !facts->privileged)
		return USERNS_CLONE_SYSCTL;
	if (facts->apparmor_restricts == 1 && !facts->privileged)
		return USERNS_APPARMOR;
	if (facts->chrooted)
		return USERNS_CHROOT;
	if (facts->no_id == 1)
		return USERNS_NO_ID;
	if (facts->seccomp == 2)
		return USERNS_SECCOMP;
	return USERNS_UNKNOWN;
}

const char *host_userns_cause_name(enum userns_cause cause)
{
	static const char *const names[] = {
		[USERNS_UNKNOWN] = "unknown",
		[USERNS_NOT_COMPILED] = "not_compiled",
		[USERNS_MAX_ZERO] = "max_user_namespaces",
		[USERNS_CLONE_SYSCTL] = "unprivileged_userns_clone",
		[USERNS_APPARMOR] = "apparmor",
		[USERNS_SECCOMP] = "seccomp",
		[USERNS_CHROOT] = "chroot",
		[USERNS_NO_ID] = "no_id",
	};
	return names[cause];
}

void host_apparmor_profile(const struct userns_facts *facts, char *out, size_t size)
{
	/* The pattern covers both usual places; a path with other letters could break the profile.
	 */
	const char *exe = facts->exe;
	bool plain =
		*exe == '/' && strspn(exe, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					   "0123456789/._+-") == strlen(exe);
	if (!plain || strcmp(exe, "/usr/bin/agentbox") == 0 ||
		strcmp(exe, "/usr/local/bin/agentbox") == 0)
		exe = "/usr/{local/,}bin/agentbox";
	snprintf(out, size, "profile agentbox %s flags=(unconfined) { userns, }", exe);
}

static void judge_apparmor(const struct userns_facts *facts, char *out, size_t size)
{
	char profile[320];
	host_apparmor_profile(facts, profile, sizeof profile);
	snprintf(out, size,
		"AppArmor (sysctl kernel.apparmor_restrict_unprivileged_userns=1) takes the rights "
		"away. %s " HOST_APPARMOR_PROFILE " with `%s`, then "
		"`apparmor_parser -r " HOST_APPARMOR_PROFILE "` as root",
		facts->apparmor_profile ? "Check that the profile is loaded and names this program:"
					: "Install the profile",
		profile);
}

static void judge_seccomp(const struct userns_facts *facts, char *out, size_t size)
{
	if (facts->container)
		snprintf(out, size,
			"this container's seccomp filter (Docker's default profile does) refuses "
			"it. Start "
			"the container with --security-opt seccomp=FILE, a profile that lets "
			"clone, unshare, "
			"mount, umount2, pivot_root and the mount API through (or "
			"seccomp=unconfined), and "
			"with --security-opt systempaths=unconfined for a new /proc");
	else
		snprintf(out, size,
			"a seccomp filter that agentbox was started under refuses it. Start "
			"agentbox outside "
			"that sandbox, or let it pass clone, unshare, mount, umount2, pivot_root "
			"and the "
			"mount API");
}

void host_userns_judge(const struct userns_facts *facts, char *out, size_t size)
{
	switch (host_userns_cause(facts)) {
	case USERNS_NOT_COMPILED:
		snprintf(out, size,
			"this kernel was built without user namespaces (CONFIG_USER_NS): "
			"use a distribution's kernel");
		break;
	case USERNS_MAX_ZERO:
		snprintf(out, size,
			"sysctl user.max_user_namespaces is 0. As root: `sysctl -w "
			"user.max_user_namespaces=15000`, and the same line in /etc/sysctl.d/ to "
			"keep it");
		break;
	case USERNS_CLONE_SYSCTL:
		snprintf(out, size,
			"sysctl kernel.unprivileged_userns_clone is 0. As root: `sysctl -w "
			"kernel.unprivileged_userns_clone=1`, and the same line in /etc/sysctl.d/ "
			"to keep it");
		break;
	case USERNS_APPARMOR:
		judge_apparmor(facts, out, size);
		break;
	case USERNS_CHROOT:
		snprintf(out, size,
			"agentbox runs in a chroot, where the kernel makes no user namespace. "
			"Enter that system with systemd-nspawn, or with pivot_root in place of "
			"chroot");
		break;
	case USERNS_NO_ID:
		snprintf(out, size,
			"the caller's user or group id is not mapped in the user namespace that "
			"agentbox runs in. Start it as an id that /proc/self/uid_map lists");
		break;
	case USERNS_SECCOMP:
		judge_seccomp(facts, out, size);
		break;
	case USERNS_UNKNOWN:
		if (facts->container)
			snprintf(out, size,
				"no setting explains it; the container engine's security module "
				"may. Try --security-opt apparmor=unconfined (or label=disable "
				"with SELinux). In a "
				"chroot the kernel makes none");
		else
			snprintf(out, size,
				"no setting explains it: a security module (SELinux, AppArmor; see "
				"the kernel's log), a chroot, or the limit of nested or counted "
				"namespaces may "
				"(sysctl user.max_user_namespaces)");
		break;
	}
}

void host_userns_remedy(char *out, size_t size)
{
	struct userns_facts facts;
	host_userns_facts(&facts);
	host_userns_judge(&facts, out, size);
}
