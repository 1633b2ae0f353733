/*
 * apply_owner: as root, apply acts in the host's tree as the tree's owner. By root's own rights a
 * name that the owner, or a box of theirs, swaps at the right moment would have it chown, fill or
 * remove what is root's. What stays of root's rights: to read the layer, and to give a file that
 * apply made and holds to the owner of the one that it replaces.
 */
#define _GNU_SOURCE
#include "base/sys.h"
#include "workspace/apply_work.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/stat.h>

static int keep_rights(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	data[CAP_TO_INDEX(CAP_DAC_READ_SEARCH)].effective |= CAP_TO_MASK(CAP_DAC_READ_SEARCH);
	data[CAP_TO_INDEX(CAP_CHOWN)].effective |= CAP_TO_MASK(CAP_CHOWN);
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

int apply_become(const struct apply_work *work, struct apply_self *ret)
{
	struct stat st;
	*ret = (struct apply_self){ .gid = getegid() };
	if (geteuid() != 0)
		return 0;
	if (fstat(work->layers[0].lower, &st) < 0)
		return -errno;
	if (st.st_uid == 0)
		return 0;
	ret->group_count = getgroups(APPLY_GROUPS_MAX, ret->groups);
	if (ret->group_count < 0)
		return -errno;
	/* Raw calls: the ids of this thread alone, which is the only one. */
	ret->changed = true;
	if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, -1, st.st_gid, -1) < 0 ||
		syscall(SYS_setresuid, -1, st.st_uid, -1) < 0) {
		int r = -errno;
		(void)apply_return(ret);
		return r;
	}
	int r = keep_rights();
	if (r < 0)
		(void)apply_return(ret);
	return r;
}

int apply_return(const struct apply_self *self)
{
	if (!self->changed)
		return 0;
	if (syscall(SYS_setresuid, -1, 0, -1) < 0 ||
		syscall(SYS_setresgid, -1, self->gid, -1) < 0 ||
		syscall(SYS_setgroups, self->group_count, self->groups) < 0)
		return -errno;
	return 0;
}
