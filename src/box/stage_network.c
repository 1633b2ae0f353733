/*
 * Stages network and loopback: the box's network namespace. Making one is the dearest step of all,
 * mostly the registration of its sysctls, and has nothing to do with the file system: so a task
 * beside init makes it while init mounts and gives up what it can, and init then enters it.
 */
#define _GNU_SOURCE
#include "box/child.h"
#include "base/fd.h"
#include "base/sys.h"

#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

/*
 * What the task works on is in its maker's memory and descriptors, which it shares. Nothing of the
 * C library's: init runs at the same time, and there is one errno. It has no rights but those that
 * init has then, runs no code but this, and dies with init.
 */
static int beside(void *arg)
{
	struct network *network = arg;
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	const char *what = "unshare";
	long r = sys_bare(SYS_unshare, CLONE_NEWNET, 0, 0);
	if (r == 0) {
		what = "socket";
		r = sys_bare(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	}
	if (r >= 0) {
		what = "loopback interface";
		network->socket = (int)r;
		r = sys_bare(SYS_ioctl, network->socket, SIOCSIFFLAGS, (long)&request);
	}
	network->result = (int)r;
	network->what = what;
	/* Not the C library's way out, which is the whole process's. */
	return (int)sys_bare(SYS_exit, 0, 0, 0);
}

/*
 * needs: inherit (or the closing of descriptors would meet the task's)
 * leaves: a task that makes the network namespace, or nothing to do
 */
int stage_network(struct child *child, struct err *err)
{
	struct network *network = &child->network;
	if (!child->plan->loopback_up)
		return 0;
	network->socket = -1;
	network->result = -EIO;
	/* No signal at its end: only the wait in stage_loopback is to see it. */
	network->pid = clone(beside, network->stack + sizeof network->stack,
		CLONE_VM | CLONE_FS | CLONE_FILES, network);
	if (network->pid < 0)
		return child_fail(err, ERR_no_resources, errno, "clone");
	return 0;
}

static enum err_code code_of(int r)
{
	return r == -ENOMEM || r == -ENFILE || r == -EMFILE ? ERR_no_resources : ERR_userns_denied;
}

/*
 * needs: network
 * leaves: init is in the box's network namespace, whose loopback interface is up; it is alone again
 */
int stage_loopback(struct child *child, struct err *err)
{
	struct network *network = &child->network;
	if (!child->plan->loopback_up)
		return 0;
	while (waitpid(network->pid, NULL, __WALL) < 0)
		if (errno != EINTR)
			return child_fail(err, ERR_internal, errno, "waitpid");
	int r = network->result;
	const char *what = network->what;
	int namespace = -1;
	if (r >= 0) {
		/* Of the socket, Linux 4.9: without /proc, which may be the box's by now. */
		what = "SIOCGSKNS";
		namespace = ioctl(network->socket, SIOCGSKNS);
		r = namespace < 0 ? -errno : 0;
	}
	if (r >= 0) {
		what = "setns";
		r = setns(namespace, CLONE_NEWNET) < 0 ? -errno : 0;
	}
	fd_close(&namespace);
	fd_close(&network->socket);
	return r < 0 ? child_fail(err, code_of(r), r, what) : 0;
}
