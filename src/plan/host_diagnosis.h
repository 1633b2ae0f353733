/*
 * host_diagnosis: why this host lets no user namespace with rights be made, and what mends it. One
 * place for it, so that the hint of `userns_denied` and `doctor` say the same. The looking
 * (host_userns_facts) and the judging (host_userns_judge) are apart: tests make facts up.
 */
#ifndef AGENTBOX_PLAN_HOST_DIAGNOSIS_H
#define AGENTBOX_PLAN_HOST_DIAGNOSIS_H

#include <stdbool.h>
#include <stddef.h>

struct userns_facts {
	bool privileged; /* CAP_SYS_ADMIN in the first user namespace: the sysctls do not bind it */
	bool compiled_in;        /* /proc/self/ns/user exists */
	bool chrooted;           /* the root directory is not the mount namespace's */
	bool container;          /* marks of a container engine were found */
	int no_id;               /* 1: the caller's id has no name in its own user namespace */
	long max_namespaces;     /* user.max_user_namespaces; -1: unknown */
	long clone_allowed;      /* kernel.unprivileged_userns_clone (Debian); -1: there is none */
	long apparmor_restricts; /* kernel.apparmor_restrict_unprivileged_userns (Ubuntu); -1 */
	bool apparmor_profile;   /* /etc/apparmor.d/agentbox is there */
	int seccomp;             /* mode of the caller's own filter: 0 none, 2 filter; -1 unknown */
	char exe[192];           /* the running program, for the profile; "": unknown */
};

enum userns_cause {
	USERNS_UNKNOWN,
	USERNS_NOT_COMPILED,
	USERNS_MAX_ZERO,
	USERNS_CLONE_SYSCTL,
	USERNS_APPARMOR,
	USERNS_SECCOMP,
	USERNS_CHROOT,
	USERNS_NO_ID,
};

/* Read /proc; never fails, an unreadable fact is unknown. */
void host_userns_facts(struct userns_facts *ret_facts);

/* The likeliest cause, given that making one (or acting in it) was refused. */
enum userns_cause host_userns_cause(const struct userns_facts *facts);

/* A word for the cause, for --json: "apparmor". */
const char *host_userns_cause_name(enum userns_cause cause);

/* Cause and remedy as text of a few sentences, cut to fit in `size` bytes. */
void host_userns_judge(const struct userns_facts *facts, char *out, size_t size);

/* Look and judge: the hint for `userns_denied`. */
void host_userns_remedy(char *out, size_t size);

#define HOST_APPARMOR_PROFILE "/etc/apparmor.d/agentbox"

/* The text of the AppArmor profile that lets this program make user namespaces. */
void host_apparmor_profile(const struct userns_facts *facts, char *out, size_t size);

#endif
