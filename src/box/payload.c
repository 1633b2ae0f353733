/*
 * payload: the command to be, between vfork and execve. Runs in init's memory, which it must leave
 * as it is (init goes on from there), so its stages take the child as const and use their own
 * stack.
 */
#define _GNU_SOURCE
#include "box/child.h"
#include "base/sys.h"
#include "box/sync.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <termios.h>

_Noreturn void payload_main(const struct child *child)
{
	static const struct {
		enum stage stage;
		int (*run)(const struct child *, struct err *);
	} stages[] = {
#define STAGE_ROW_supervisor(name)
#define STAGE_ROW_init(name)
#define STAGE_ROW_payload(name)             { STAGE_##name, stage_##name },
#define STAGE(name, process, needs, leaves) STAGE_ROW_##process(name)
#include "box/stages.def"
#undef STAGE
	};
	struct err err;
	for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
		if (stages[i].run(child, &err) < 0)
			child_die(child, stages[i].stage, &err);
	_exit(125); /* not reached: the last stage is exec */
}

/* leaves: a session of its own, with the box's terminal as its own if there is one; no blocked
 * signal */
int stage_session(const struct child *child, struct err *err)
{
	if (setsid() < 0)
		return child_fail(err, ERR_internal, errno, "setsid");
	if (child->plan->tty && ioctl(0, TIOCSCTTY, 0) < 0)
		return child_fail(err, ERR_terminal_failed, errno, "TIOCSCTTY");
	sigset_t none;
	sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return child_fail(err, ERR_internal, errno, "sigprocmask");
	return 0;
}

/* leaves: the plan's resource limits (soft and hard) and umask */
int stage_limits(const struct child *child, struct err *err)
{
	const struct plan *plan = child->plan;
	for (size_t i = 0; i < plan->rlimit_count; i++)
		if (setrlimit(plan->rlimits[i].resource, &plan->rlimits[i].limit) < 0)
			return child_fail(err, ERR_limit_refused, errno, plan->rlimits[i].why);
	umask(plan->umask);
	return 0;
}

/* leaves: the current directory is the plan's */
int stage_workdir(const struct child *child, struct err *err)
{
	if (chdir(child->plan->cwd) < 0)
		return child_fail(err, ERR_bad_cwd, errno, child->plan->cwd);
	return 0;
}

/*
 * needs: ruleset; no_new_privs (set with bounds)
 * leaves: a Landlock domain that allows what the plan's rules allow; init stays outside of it, so
 *	that it can be neither traced nor, with the signal scope, signalled
 */
int stage_landlock(const struct child *child, struct err *err)
{
	if (child->ruleset_fd < 0)
		return 0;
	int r = sys_landlock_restrict_self(child->ruleset_fd);
	return r < 0 ? child_fail(err, ERR_landlock_insufficient, r, "landlock_restrict_self") : 0;
}

/* leaves: every descriptor but 0, 1, 2 closes at exec, whoever opened it */
int stage_descriptors(const struct child *child, struct err *err)
{
	(void)child;
	int r = sys_close_range(3, ~0u, SYS_CLOSE_RANGE_CLOEXEC);
	return r < 0 ? child_fail(err, ERR_internal, r, "close_range") : 0;
}

/*
 * needs: nothing that the filter refuses is left to be done, but sendmsg, close and execve
 * leaves: the filter is on; its listener is the supervisor's, which knows by that that the exec is
 *	next
 */
int stage_seccomp(const struct child *child, struct err *err)
{
	const struct plan *plan = child->plan;
	struct sock_fprog program = {
		.len = (unsigned short)plan->filter.count,
		.filter = (struct sock_filter *)plan->filter.program,
	};
	int listener = sys_seccomp(SECCOMP_SET_MODE_FILTER,
		plan->filter_flags | SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	if (listener < 0)
		return child_fail(err, ERR_seccomp_unavailable, listener, "seccomp");
	struct sync_msg msg = { .magic = SYNC_MAGIC, .kind = SYNC_EXECING };
	int r = sync_send(child->setup_fd, &msg, listener);
	close(listener);
	/* unix(7): descriptors under way are counted for all of a user's processes together. */
	if (r == -ETOOMANYREFS)
		return child_fail(err, ERR_no_resources, r,
			"descriptors under way between this user's processes");
	return r < 0 ? child_fail(err, ERR_internal, r, "sendmsg") : 0;
}

/*
 * execvp(3)'s rules on the plan's candidates: a file that is not there, or whose directory is not,
 * is passed over; one that may not be executed is remembered; a script without #! goes to the
 * shell.
 */
static int try_candidates(const struct plan *plan, const char **ret_denied)
{
	int failure = ENOENT;
	for (size_t i = 0; plan->candidates[i]; i++) {
		const char *file = plan->candidates[i];
		execve(file, (char *const *)plan->argv, (char *const *)plan->envp);
		int e = errno;
		if (e == ENOEXEC) {
			plan->shell_argv[1] = file;
			execve(plan->shell_argv[0], (char *const *)plan->shell_argv,
				(char *const *)plan->envp);
			e = errno;
		}
		if (e == ENOENT && faccessat(AT_FDCWD, file, F_OK, 0) == 0) {
			*ret_denied = file; /* it is there: what is missing is its interpreter or
					       loader */
			return ENOENT;
		}
		if (e == ENOENT || e == ENOTDIR || e == ENAMETOOLONG)
			continue;
		*ret_denied = file;
		failure = e;
		if (e != EACCES)
			return failure;
	}
	return failure;
}

/* needs: all; leaves: the command, or its failure with the file that it concerns */
int stage_exec(const struct child *child, struct err *err)
{
	const struct plan *plan = child->plan;
	const char *denied = NULL;
	int e = try_candidates(plan, &denied);
	enum err_code code = ERR_exec_failed;
	if (e == ENOENT)
		code = denied ? ERR_interpreter_missing : ERR_command_not_found;
	else if (e == EACCES || e == ENOEXEC || e == EISDIR)
		code = ERR_not_executable;
	else if (e == ENOMEM || e == EAGAIN || e == EMFILE || e == ENFILE)
		code = ERR_no_resources;
	return child_fail(err, code, e, denied ? denied : plan->argv[0]);
}
