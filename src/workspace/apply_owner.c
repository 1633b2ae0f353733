/*
 * apply_owner: root acts in the host's trees as the owner of the directory that it is in. By root's
 * own rights a name that the owner, or a box of theirs, swaps at the right moment would have it
 * chmod, fill or remove what is root's.
 *
 * Whose a directory is, is not told by its own owner alone. Everything is opened below the tree's
 * descriptor, through no link and no mount, so nobody leads apply out of the tree. But who owns a
 * directory in it can put another one there, in the place of the one that was judged, and what they
 * may move there is also a directory of root's that lay in theirs. So from the first directory on
 * the way down that is not root's, everything is done as its owner: what apply can be made to do
 * there is what they could have done themselves. Above that only root could have moved anything, or
 * who may write to a directory of root's; they can swap what is in that one directory, and there
 * the inodes that were judged and staged are what is acted on (apply_place.c, apply_back.c).
 *
 * What stays of root's rights: to read, and to give a file that apply made and holds to the owner
 * of the one that it replaces.
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

/* Raw calls: the ids of this thread alone, which is the only one. */
static int become(struct apply_self *self, uid_t uid, gid_t gid)
{
	self->uid = uid;
	self->gid = gid;
	if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, -1, gid, -1) < 0 ||
		syscall(SYS_setresuid, -1, uid, -1) < 0)
		return -errno;
	return keep_rights();
}

int apply_return(struct apply_work *work)
{
	struct apply_self *self = &work->self;
	if (!self->root || self->uid == 0)
		return 0;
	if (syscall(SYS_setresuid, -1, 0, -1) < 0 ||
		syscall(SYS_setresgid, -1, self->own_gid, -1) < 0 ||
		syscall(SYS_setgroups, self->group_count, self->groups) < 0)
		return -errno;
	self->uid = 0;
	return 0;
}

int apply_act(struct apply_work *work, const struct dirs *dirs)
{
	uid_t uid;
	gid_t gid;
	dirs_owner(dirs, &uid, &gid);
	return apply_act_as(work, uid, gid);
}

int apply_act_as(struct apply_work *work, uid_t uid, gid_t gid)
{
	struct apply_self *self = &work->self;
	if (!self->root)
		return 0;
	if (uid == self->uid && (uid == 0 || gid == self->gid))
		return 0;
	int r = apply_return(work);
	if (r < 0 || uid == 0)
		return r;
	self->own_gid = getegid();
	self->group_count = getgroups(APPLY_GROUPS_MAX, self->groups);
	if (self->group_count < 0)
		return -errno;
	r = become(self, uid, gid);
	if (r < 0) {
		int back = apply_return(work);
		r = back < 0 ? back : r;
	}
	return r;
}
