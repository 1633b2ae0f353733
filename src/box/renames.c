/*
 * renames: the process of the box that does the command's renames where an overlay is its
 * workspace. A child of init, outside of the command's seccomp filter, for else it could not rename
 * either; in all else it has the command's rights and no others: the same ids without a capability,
 * the same mounts, the same Landlock rules. So it decides nothing and looks at nothing twice.
 *
 * It dies with init, and init ends it before it counts what the command left.
 */
#define _GNU_SOURCE
#include "box/renames.h"
#include "base/fd.h"
#include "base/sys.h"
#include "box/child.h"
#include "workspace/tree.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define SOCK         0   /* all that it has open between two requests */
#define RESOLVES_MAX 100 /* of one path, while others rename what it leads through */

struct request {
	struct rename_request head;
	int old_dir, new_dir, root; /* -1: none */
};

/* One path, split as rename(2) does it. */
struct name {
	int dir; /* -1: not open */
	char path[PATH_MAX];
	const char *last; /* in path: the last name, with the slashes behind it */
};

/*
 * In front of the last name goes `*ret_parent`, "" for none. The root itself is "." in "/", for
 * which the kernel has the same answers.
 */
static void split(struct name *name, const char *text, size_t len, char ret_parent[PATH_MAX])
{
	memcpy(name->path, text, len + 1);
	size_t end = len;
	while (end > 0 && text[end - 1] == '/')
		end--;
	size_t start = end;
	while (start > 0 && text[start - 1] != '/')
		start--;
	memcpy(ret_parent, text, start);
	ret_parent[start] = 0;
	name->last = name->path + start;
	if (end > 0)
		return;
	memcpy(ret_parent, "/", 2);
	name->last = ".";
}

/*
 * What leads through /proc/self would lead through ourselves: ELOOP, as for every magic link. From
 * another root than the box's a relative path must stay below where it begins: EXDEV if it does
 * not.
 */
static int open_parent(int at, int root, const char *parent)
{
	const uint64_t flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
	uint64_t resolve = SYS_RESOLVE_NO_MAGICLINKS;
	if (parent[0] == '/') {
		at = root >= 0 ? root : AT_FDCWD;
		resolve |= root >= 0 ? SYS_RESOLVE_IN_ROOT : 0;
	} else if (at < 0) {
		return -EBADF;
	} else {
		resolve |= root >= 0 ? SYS_RESOLVE_BENEATH : 0;
	}
	int fd = -EAGAIN;
	for (int i = 0; fd == -EAGAIN && i < RESOLVES_MAX; i++)
		fd = sys_openat2(at, *parent ? parent : ".", flags, resolve);
	return fd;
}

static int look_up(
	struct name *name, const struct rename_side *side, const char *text, int at, int root)
{
	char parent[PATH_MAX];
	if (side->error)
		return -side->error;
	if (side->len == 0)
		return -ENOENT;
	split(name, text, side->len, parent);
	name->dir = open_parent(at, root, parent);
	return name->dir < 0 ? name->dir : 0;
}

/* The last name without the slashes behind it, which have been obeyed. */
static const char *bare(struct name *name)
{
	char *end = (char *)name->last + strlen(name->last);
	while (end > name->last && end[-1] == '/')
		*--end = 0;
	return name->last;
}

/* The kernel looks at the flags, then at the old path, then at the new one. */
static int act(struct request *request, struct name *old, struct name *new)
{
	const struct rename_request *head = &request->head;
	const unsigned noreplace = 1, exchange = 2, whiteout = 4; /* linux/fs.h */
	if ((head->flags & ~(noreplace | exchange | whiteout)) ||
		((head->flags & exchange) && (head->flags & (noreplace | whiteout))))
		return -EINVAL;
	int r = look_up(old, &head->old, head->text, request->old_dir, request->root);
	int new_at = head->descriptors & RENAME_NEW_DIR ? request->new_dir : request->old_dir;
	if (r == 0)
		r = look_up(new, &head->new, head->text + head->old.len + 1, new_at, request->root);
	if (r < 0)
		return r;
	if (syscall(SYS_renameat2, old->dir, old->last, new->dir, new->last, head->flags) == 0)
		return 0;
	if (errno != EXDEV)
		return -errno;
	return tree_rename(old->dir, bare(old), new->dir, bare(new), head->flags);
}

/* Is it as the supervisor writes it? It always is; but nothing here may read past its end. */
static bool fits(const struct rename_request *head, size_t size)
{
	const size_t begin = offsetof(struct rename_request, text);
	if (size < begin || head->old.len >= PATH_MAX || head->new.len >= PATH_MAX)
		return false;
	return size == begin + head->old.len + head->new.len + 2 && !head->text[head->old.len] &&
	       !head->text[head->old.len + 1 + head->new.len];
}

/* Which descriptor is which; false when there are not as many as were announced. */
static bool take_descriptors(struct request *request, const int *fds, size_t count)
{
	int *places[RENAME_DESCRIPTORS_MAX] = { &request->old_dir, &request->new_dir,
		&request->root };
	size_t wanted = 0;
	for (size_t i = 0; i < RENAME_DESCRIPTORS_MAX; i++) {
		if (!(request->head.descriptors & 1u << i))
			continue;
		if (wanted < count)
			*places[i] = fds[wanted];
		wanted++;
	}
	return wanted == count;
}

/* Wait for a request. False: the supervisor is gone, or it makes no sense. */
static bool receive(struct request *request)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * RENAME_DESCRIPTORS_MAX)];
	} control;
	struct iovec iov = { .iov_base = &request->head, .iov_len = sizeof request->head };
	struct msghdr header = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control.space };
	ssize_t n = recvmsg(SOCK, &header, MSG_CMSG_CLOEXEC);
	if (n <= 0 || (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return false;
	int fds[RENAME_DESCRIPTORS_MAX];
	size_t count = 0;
	const struct cmsghdr *c = CMSG_FIRSTHDR(&header);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(c), count * sizeof(int));
	}
	return fits(&request->head, (size_t)n) && take_descriptors(request, fds, count);
}

static bool reply(uint64_t id, int result)
{
	struct rename_reply reply = { .id = id, .result = result };
	struct iovec iov = { .iov_base = &reply, .iov_len = sizeof reply };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	return sendmsg(SOCK, &header, MSG_NOSIGNAL) == sizeof reply;
}

static bool turn(void)
{
	struct request request = { .old_dir = -1, .new_dir = -1, .root = -1 };
	struct name old, new;
	old.dir = new.dir = -1;
	if (!receive(&request))
		return false;
	int result = act(&request, &old, &new);
	int *fds[] = { &request.old_dir, &request.new_dir, &request.root, &old.dir, &new.dir };
	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
		fd_close(fds[i]);
	return reply(request.head.id, result);
}

/* The limits that hold for what a rename can write; the others are the command's own. */
static bool limit(const struct plan *plan)
{
	for (size_t i = 0; i < plan->rlimit_count; i++) {
		const struct plan_rlimit *limit = &plan->rlimits[i];
		if ((limit->resource == RLIMIT_FSIZE || limit->resource == RLIMIT_CORE) &&
			setrlimit(limit->resource, &limit->limit) < 0)
			return false;
	}
	return true;
}

/*
 * All signals are blocked. It must not keep what init holds: not the status socket, not the
 * command's pipes. In a session of its own no terminal reaches it.
 */
static _Noreturn void renames_main(const struct child *child, int sock)
{
	if (setsid() >= 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 &&
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && limit(child->plan) &&
		(child->ruleset_fd < 0 || sys_landlock_restrict_self(child->ruleset_fd) == 0) &&
		dup2(sock, SOCK) == SOCK && sys_close_range(SOCK + 1, ~0u, 0) == 0) {
		(void)prctl(PR_SET_NAME, "agentbox-rename", 0, 0, 0);
		while (turn())
			;
	}
	_exit(125);
}

void renames_start(struct child *child, int sock)
{
	/* A new one is asked for when the old one has let go of its socket: it is about to end. */
	renames_end(child);
	sigset_t all, old;
	sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, &old) < 0)
		return;
	pid_t pid = fork();
	if (pid == 0)
		renames_main(child, sock);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	child->renamer = pid > 0 ? pid : 0;
}

void renames_end(struct child *child)
{
	if (child->renamer <= 0)
		return;
	kill(child->renamer, SIGKILL);
	while (waitpid(child->renamer, NULL, 0) < 0 && errno == EINTR)
		;
	child->renamer = 0;
}
