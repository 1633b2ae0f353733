/*
 * cmd_doctor: `agentbox doctor`: every check in a child of its own, then a real box; a table for
 * people or JSON. Changes nothing on the host.
 */
#define _GNU_SOURCE
#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK_SECONDS 10

void doctor_say(struct doctor_finding *finding, enum doctor_level level, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(finding->detail, sizeof finding->detail, fmt, ap);
	va_end(ap);
	finding->level = level;
}

static _Noreturn void check_child(const struct doctor_check *check, int out)
{
	struct doctor_finding finding = { 0 };
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	alarm(CHECK_SECONDS);
	check->try(&finding);
	/* Less than PIPE_BUF, so it is there as a whole or not at all. */
	(void)!write(out, &finding, sizeof finding);
	_exit(0);
}

struct doctor_finding doctor_run(const struct doctor_check *check)
{
	struct doctor_finding finding = { 0 };
	int ends[2], status = 0;
	if (pipe2(ends, O_CLOEXEC) < 0) {
		doctor_say(&finding, DOCTOR_MISSING, "cannot be tried: %s", strerror(errno));
		return finding;
	}
	pid_t pid = fork();
	if (pid == 0) {
		close(ends[0]);
		check_child(check, ends[1]);
	}
	int errnum = errno;
	close(ends[1]);
	struct pollfd wait = { .fd = ends[0], .events = POLLIN };
	bool told = pid > 0 && poll(&wait, 1, (CHECK_SECONDS + 2) * 1000) > 0 &&
		    read(ends[0], &finding, sizeof finding) == sizeof finding;
	close(ends[0]);
	if (pid < 0) {
		doctor_say(&finding, DOCTOR_MISSING, "cannot be tried: %s", strerror(errnum));
		return finding;
	}
	if (!told)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!told) {
		finding = (struct doctor_finding){ 0 };
		doctor_say(&finding, DOCTOR_MISSING, "the attempt was ended by signal %d",
			WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	}
	if (finding.level == DOCTOR_MISSING && !finding.follows && !finding.remedy[0])
		snprintf(finding.remedy, sizeof finding.remedy, "%s", check->remedy);
	return finding;
}

/* All findings, in the order in which they are shown. */
struct findings {
	struct doctor_row *rows;
	size_t count, host_count; /* the first host_count are the host's, the rest the box's */
	size_t missing;
	struct arena arena;
};

static void run_checks(struct findings *findings, const struct doctor_check *(*at)(size_t index))
{
	const struct doctor_check *check;
	for (size_t i = 0; (check = at(i)); i++) {
		struct doctor_row *row = arena_push(
			&findings->arena, &findings->rows, &findings->count, sizeof *row);
		*row = (struct doctor_row){ check->name, check->protects, doctor_run(check) };
	}
}

static int find_out(const struct cli *cli, struct findings *findings, struct err *err)
{
	struct doctor_row *rows;
	size_t count;
	run_checks(findings, doctor_feature);
	run_checks(findings, doctor_space);
	findings->host_count = findings->count;
	if (doctor_box(cli->environ, &findings->arena, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		*(struct doctor_row *)arena_push(&findings->arena, &findings->rows,
			&findings->count, sizeof *rows) = rows[i];
	for (size_t i = 0; i < findings->count; i++)
		findings->missing += findings->rows[i].finding.level == DOCTOR_MISSING;
	return 0;
}

static const char *level_word(enum doctor_level level)
{
	static const char *const words[] = { "ok", "note", "MISSING" };
	return words[level];
}

static void put_row(struct buf *out, const struct doctor_row *row)
{
	const struct doctor_finding *f = &row->finding;
	buf_addf(out, "%-8s %-24s ", level_word(f->level), row->name);
	buf_add_visible(out, f->detail, strlen(f->detail), false);
	buf_adds(out, "\n");
	if (f->level != DOCTOR_MISSING || f->follows)
		return;
	buf_addf(out, "         protects: %s\n", row->protects);
	if (f->remedy[0]) {
		buf_adds(out, "         remedy: ");
		buf_add_visible(out, f->remedy, strlen(f->remedy), false);
		buf_adds(out, "\n");
	}
}

static void put_words(struct buf *out, const struct findings *findings)
{
	buf_adds(out, "This host\n");
	for (size_t i = 0; i < findings->count; i++) {
		if (i == findings->host_count)
			buf_adds(out, "\nInside a box: each of these must be refused\n");
		put_row(out, &findings->rows[i]);
	}
	if (findings->missing)
		buf_addf(out,
			"\n%zu missing: the policy `default` cannot be enforced in full here.\n",
			findings->missing);
	else
		buf_adds(out, "\nThe policy `default` can be enforced in full here.\n");
}

static void put_json_rows(
	struct json *json, const char *key, const struct doctor_row *rows, size_t count)
{
	json_open_array(json, key);
	for (size_t i = 0; i < count; i++) {
		const struct doctor_finding *f = &rows[i].finding;
		json_open_object(json, NULL);
		json_put_text(json, "name", rows[i].name);
		json_put_text(json, "result",
			f->level == DOCTOR_OK     ? "ok"
			: f->level == DOCTOR_NOTE ? "note"
						  : "missing");
		json_put_text(json, "protects", rows[i].protects);
		json_put_text(json, "detail", f->detail);
		json_put_text(json, "remedy", f->remedy[0] && !f->follows ? f->remedy : NULL);
		json_close(json);
	}
	json_close(json);
}

static int put_json(struct buf *out, const struct findings *findings)
{
	struct json json;
	size_t host = findings->host_count;
	json_begin(&json, out, false);
	json_open_object(&json, NULL);
	json_put_text(&json, "agentbox", AGENTBOX_VERSION);
	json_put_bool(&json, "enforceable", findings->missing == 0);
	put_json_rows(&json, "host", findings->rows, host);
	put_json_rows(&json, "box", findings->rows + host, findings->count - host);
	json_close(&json);
	return json_end(&json);
}

int cmd_doctor(const struct cli *cli, struct err *err)
{
	const struct options *options = &cli->options;
	if (options->arg_count)
		return err_set(err, ERR_usage, 0, "doctor takes no argument");
	struct findings findings = { 0 };
	AUTO_BUF out = { 0 };
	int status = find_out(cli, &findings, err);
	if (status == 0) {
		int error = 0;
		if (options_has(options, OPTION_doctor_json))
			error = put_json(&out, &findings);
		else
			put_words(&out, &findings);
		status = error < 0
				 ? err_set(err, ERR_internal, -error, "the findings are too large")
				 : say_out(&out, err);
	}
	if (status == 0)
		status = findings.missing ? CLI_NO : CLI_YES;
	arena_free(&findings.arena);
	return status;
}
