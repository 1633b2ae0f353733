/* Stages bounds and caps: no capability, and no way to one. */
#define _GNU_SOURCE
#include "box/child.h"
#include "base/sys.h"

#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>

/*
 * needs: names, pivot
 * leaves: bounding and ambient sets are empty, the secure bits locked, no_new_privs set: what init
 *	has it can still use, for itself alone, but neither it nor what it starts can get more
 */
int stage_bounds(struct child *child, struct err *err)
{
	(void)child;
	for (int cap = 0; cap < 64; cap++) {
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
			continue;
		if (errno == EINVAL && cap > CAP_WAKE_ALARM)
			break; /* past the kernel's last one */
		return child_fail(err, ERR_userns_denied, errno, "PR_CAPBSET_DROP");
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return child_fail(err, ERR_internal, errno, "PR_CAP_AMBIENT");
	unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
			     SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
			     SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
		return child_fail(err, ERR_userns_denied, errno, "PR_SET_SECUREBITS");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return child_fail(err, ERR_internal, errno, "PR_SET_NO_NEW_PRIVS");
	return 0;
}

/*
 * needs: bounds; everything that init does with its rights in the box's namespaces is done
 * leaves: inheritable, permitted and effective sets are empty too; for init and for all that it
 *	starts
 */
int stage_caps(struct child *child, struct err *err)
{
	(void)child;
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };
	if (syscall(SYS_capset, &header, none) < 0)
		return child_fail(err, ERR_internal, errno, "capset");
	return 0;
}
