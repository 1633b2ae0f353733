/* Stage terminal: the box's own pseudo-terminal, from its own devpts. */
#define _GNU_SOURCE
#include "box/child.h"
#include "box/sync.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

/*
 * needs: pivot (a devpts instance of the box's own)
 * leaves: 0, 1, 2 are the slave; the supervisor has the master; or, without a terminal, nothing
 */
int stage_terminal(struct child *child, struct err *err)
{
	if (!child->plan->tty)
		return 0;
	int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (master < 0)
		return child_fail(err, ERR_terminal_failed, errno, "/dev/pts/ptmx");
	int unlock = 0;
	if (ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return child_fail(err, ERR_terminal_failed, errno, "TIOCSPTLCK");
	/* ioctl_tty(2), Linux 4.13: the peer by descriptor, whatever is mounted where. */
	child->tty_fd = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (child->tty_fd < 0)
		return child_fail(err, ERR_terminal_failed, errno, "TIOCGPTPEER");
	struct sync_msg msg = { .magic = SYNC_MAGIC, .kind = SYNC_FDS };
	int r = sync_send(child->setup_fd, &msg, master);
	close(master);
	if (r < 0)
		return child_fail(err, ERR_terminal_failed, r, "sendmsg");
	for (int i = 0; i < 3; i++)
		if (dup2(child->tty_fd, i) < 0)
			return child_fail(err, ERR_terminal_failed, errno, "dup2");
	return 0;
}
