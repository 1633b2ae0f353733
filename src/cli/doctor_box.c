/*
 * doctor_box: a real box, made as `run` makes it, with this very program in it as the probe of what
 * it forbids. Leaves nothing behind.
 */
#define _GNU_SOURCE
#include "base/buf.h"
#include "base/fd.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "cli/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* The program, where the box can see it: a build directory is not granted, the workspace is. */
static int copy_self(const char *to)
{
	struct stat st;
	AUTO_FD in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	AUTO_FD out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (in < 0 || out < 0 || fstat(in, &st) < 0 || fchmod(out, 0755) < 0)
		return -errno;
	for (off_t left = st.st_size; left > 0;) {
		ssize_t n = sendfile(out, in, NULL, (size_t)left);
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		left -= n;
	}
	return 0;
}

/* An abstract socket of the host's that no box may reach. Returns a descriptor or -errno. */
static int listen_abstract(const char *name)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	memcpy(at.sun_path + 1, name, len);
	AUTO_FD fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
		bind(fd, (struct sockaddr *)&at,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)) < 0 ||
		listen(fd, 1) < 0)
		return -errno;
	return fd_steal(&fd);
}

static struct doctor_row *add_row(struct arena *arena, struct doctor_row **rows, size_t *count,
	const char *name, const char *protects)
{
	struct doctor_row *row = arena_push(arena, rows, count, sizeof *row);
	row->name = name;
	row->protects = protects;
	return row;
}

/* One row a probe, from the lines that it printed; a line that is missing is a finding. */
static void read_rows(
	const char *text, struct arena *arena, struct doctor_row **rows, size_t *count)
{
	const struct doctor_probe *probe;
	for (size_t i = 0; (probe = doctor_probe_at(i)); i++) {
		struct doctor_row *row = add_row(arena, rows, count, probe->name, probe->protects);
		const char *head = arena_printf(arena, "%s\t", probe->name);
		const char *line = strstr(text, head);
		if (line && line != text && line[-1] != '\n')
			line = NULL;
		line = line ? line + strlen(head) : "";
		if ((line[0] != '0' && line[0] != '1') || line[1] != '\t') {
			doctor_say(
				&row->finding, DOCTOR_MISSING, "the probe in the box did not say");
			continue;
		}
		doctor_say(&row->finding, line[0] == '1' ? DOCTOR_OK : DOCTOR_MISSING, "%.*s",
			(int)strcspn(line + 2, "\n"), line + 2);
		if (line[0] == '0')
			snprintf(row->finding.remedy, sizeof row->finding.remedy,
				"do not rely on agentbox on this host before this is understood; "
				"please report it");
	}
}

static void judge_run(
	const struct result *result, struct arena *arena, struct doctor_row **rows, size_t *count)
{
	AUTO_BUF text = { 0 };
	bool base64;
	struct doctor_row *row = add_row(arena, rows, count, "make a box", "all of it");
	if (result->status == STATUS_ERROR) {
		const struct err *error = &result->error;
		const char *hint = err_hint(error);
		doctor_say(&row->finding, DOCTOR_MISSING, "%s: %s", err_info(error->code)->name,
			error->text);
		snprintf(row->finding.remedy, sizeof row->finding.remedy, "%s", hint ? hint : "");
		row->finding.follows = error->code == ERR_userns_denied ||
				       error->code == ERR_proc_masked ||
				       error->code == ERR_landlock_insufficient ||
				       error->code == ERR_seccomp_unavailable;
		return;
	}
	if (result->status != STATUS_EXITED || result->exit_code != 0 ||
		stream_render(&result->out, &text, &base64) < 0 || base64) {
		doctor_say(&row->finding, DOCTOR_MISSING, "the probe in it ended badly: %s, %s %d",
			status_name(result->status), result->signal ? "signal" : "status",
			result->signal ? result->signal : result->exit_code);
		return;
	}
	doctor_say(&row->finding, DOCTOR_OK, "the policy `default` ran a command");
	read_rows(buf_text(&text), arena, rows, count);
}

/* The shipped policy, not the caller's own of that name; the latter only where none is installed.
 */
static int load_default(struct arena *arena, struct policy *ret_policy, struct err *err)
{
	static const char *const name[] = { "default" };
	struct policy_env env;
	paths_policy_env(arena, &env);
	struct policy_env shipped = env;
	shipped.config_home = NULL;
	shipped.system_dir = env.data_dir;
	if (policy_load(name, 1, NULL, 0, &shipped, ret_policy, err) == 0)
		return 0;
	return policy_load(name, 1, NULL, 0, &env, ret_policy, err);
}

static int run_probe(const struct policy *policy, const char *workspace,
	const char *const *caller_env, struct arena *arena, struct cli_run *run, struct err *err)
{
	const char *self = arena_printf(arena, "%s/agentbox", workspace);
	const char *name = arena_printf(arena, "agentbox-doctor-%d", (int)getpid());
	int r = copy_self(self);
	AUTO_FD host_socket = r == 0 ? listen_abstract(name) : -1;
	if (r < 0 || host_socket < 0)
		return err_set(err, ERR_no_resources, r < 0 ? -r : -host_socket,
			"the probe cannot be prepared in %s: %s", workspace,
			strerror(r < 0 ? -r : -host_socket));
	sigset_t old;
	AUTO_FD signals = supervise_signals(&old);
	if (signals < 0)
		return err_set(err, ERR_no_resources, -signals, "signals cannot be received: %s",
			strerror(-signals));
	const char *argv[] = { self, "probe", NULL };
	struct request_env env[] = { { "AGENTBOX_PROBE_SOCKET", name } };
	struct request request = {
		.argv = argv,
		.argc = 2,
		.workspace = workspace,
		.env = env,
		.env_count = 1,
		.environ = caller_env,
	};
	struct supervise_io io = { -1, -1, -1, signals };
	cli_run_box(policy, &request, &io, run);
	cli_signals_back(signals, &old);
	return 0;
}

int doctor_box(const char *const *caller_env, struct arena *arena, struct doctor_row **ret_rows,
	size_t *ret_count, struct err *err)
{
	struct doctor_row *rows = NULL;
	size_t count = 0;
	struct policy policy;
	struct err why;
	if (load_default(arena, &policy, &why) < 0) {
		struct doctor_row *row = add_row(arena, &rows, &count, "make a box", "all of it");
		doctor_say(&row->finding, DOCTOR_MISSING, "%s", why.text);
		snprintf(row->finding.remedy, sizeof row->finding.remedy,
			"install agentbox's policies to %s", AGENTBOX_POLICYDIR);
	} else {
		const char *workspace;
		struct cli_run run;
		int r = scratch_make(arena, &workspace, err);
		cli_run_init(&run);
		if (r == 0) {
			r = run_probe(&policy, workspace, caller_env, arena, &run, err);
			if (r == 0)
				judge_run(&run.result, arena, &rows, &count);
			(void)scratch_remove(workspace);
		}
		cli_run_free(&run);
		policy_free(&policy);
		if (r < 0)
			return -1;
	}
	*ret_rows = rows;
	*ret_count = count;
	return 0;
}
