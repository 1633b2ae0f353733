/*
 * run_box: one box from a loaded policy: probe, plan, spawn, supervise. Prints nothing.
 */
#include <stdio.h>
#include <string.h>

#include "box/box.h"
#include "box/stages.h"
#include "cli/cli.h"
#include "cli/command_hint.h"
#include "cli/keeper.h"
#include "cli/runs.h"
#include "cli/scope.h"
#include "plan/host_diagnosis.h"

void cli_run_init(struct cli_run *run)
{
	memset(run, 0, sizeof *run);
	result_init(&run->result);
}

void cli_run_free(struct cli_run *run)
{
	/* In the reverse of the order in which they point to each other. */
	run_layers_free(&run->layers);
	result_free(&run->result);
	plan_free(&run->plan);
	host_free(&run->host);
}

int cli_run_plan(const struct policy *policy, const struct request *request, struct cli_run *run,
	struct err *err)
{
	run->own = *request;
	run->request = &run->own;
	run->result.policy = policy;
	if (run_layers_place(&run->layers, policy, &run->own, &run->result, err) < 0)
		return -1;
	if (host_probe(policy, run->request, &run->host, err) < 0)
		return -1;
	if (filter_get(policy, &run->result.arena, &run->filter, err) < 0)
		return -1;
	if (plan_build(policy, run->request, &run->host, &run->filter, &run->plan, err) < 0)
		return -1;
	run->result.plan = &run->plan;
	return 0;
}

/* Is a limit without the control group that would hold it, be that an error or let pass? */
static bool lacks_group(const struct cli_run *run, int planned, const struct err *err)
{
	static const char limits[] = "limits.";
	if (planned < 0)
		return err->code == ERR_cgroup_unavailable;
	for (const char *const *key = run->plan.not_enforced; key && *key; key++)
		if (strncmp(*key, limits, sizeof limits - 1) == 0)
			return true;
	return false;
}

/* The remedy of an error that stands, and why systemd was no way out: a comment in YAML. */
static void add_reason(struct err *err, const struct err *why)
{
	char hint[sizeof err->hint];
	snprintf(hint, sizeof hint, "%s", err_hint(err) ? err_hint(err) : "");
	err_hint_set(err, "%s%s# %s", hint, *hint ? " " : "", why->text);
}

int cli_run_prepare(const struct policy *policy, const struct request *request, struct cli_run *run,
	struct err *err)
{
	int planned = cli_run_plan(policy, request, run, err);
	if (!run->host.cgroup.systemd || !lacks_group(run, planned, err))
		return planned;
	/* Asking takes longer than a whole run, so it is done only where nothing else helps. */
	char name[32];
	struct err why;
	snprintf(name, sizeof name, "agentbox-%d", (int)run->host.pid);
	if (scope_enter(run->host.uid == 0, name, &why) < 0) {
		if (planned < 0)
			add_reason(err, &why);
		return planned;
	}
	plan_free(&run->plan);
	memset(&run->plan, 0, sizeof run->plan);
	run->result.plan = NULL;
	host_probe_cgroup(policy, run->request, &run->host);
	if (plan_build(policy, run->request, &run->host, &run->filter, &run->plan, err) < 0)
		return -1;
	run->result.plan = &run->plan;
	return 0;
}

static void fail(struct cli_run *run, const struct err *err)
{
	run->result.status = STATUS_ERROR;
	run->result.error = *err;
}

/* The one error whose remedy depends on what the host forbids: found out only now that it matters.
 */
static void add_remedy(struct err *err)
{
	if (err->code == ERR_userns_denied && !err->hint[0])
		host_userns_remedy(err->hint, sizeof err->hint);
}

/* What finds the box's control groups again when this process is killed. */
static void make_record(struct cli_run *run, struct run_record *ret_record)
{
	int r = run_record_make(&run->plan.cgroup, ret_record);
	if (r < 0)
		result_warning(&run->result, "run_not_recorded",
			arena_printf(&run->result.arena,
				"if agentbox is killed its control groups stay: no record of them "
				"could be written: %s",
				strerror(-r)));
}

/* One box for the plan that is there. */
static void attempt(struct cli_run *run, const struct supervise_io *io)
{
	struct err err;
	uint64_t before = cli_clock_us();
	/* A record comes before its groups, and those of v1 are made beside init. Of a kept box
	 * they are its keeper's to note and to remove. */
	bool beside = !run->kept && run->plan.cgroup.kind == CGROUP_V1;
	run->record = (struct run_record){ .dir = -1, .file = -1 };
	if (!run->kept && !beside)
		make_record(run, &run->record);
	box_init(&run->box);
	int r = run_layers_begin(&run->layers, &run->plan, run->request, &run->result.arena, &err);
	if (r == 0)
		r = run->kept ? keeper_join(run->kept, &run->plan, &run->box, &err)
			      : box_spawn(&run->plan, &run->box, &err);
	if (r == 0 && beside) {
		make_record(run, &run->record);
		r = box_groups(&run->plan, &run->box, &err);
	}
	run->live = true;
	run->box.reaped = r < 0;
	/* Set-up begins here; the supervisor adds its part. */
	run->result.timing.setup_us = cli_clock_us() - before;
	if (r < 0 || supervise_run(&run->plan, &run->box, io, &run->result, &err) < 0)
		fail(run, &err);
}

/* Does the plan copy a tree because it knows that overlayfs cannot do it? */
static bool is_forced(const struct plan *plan)
{
	for (size_t i = 0; i < plan->layer_count; i++)
		if (plan->layers[i].forced)
			return true;
	return false;
}

/*
 * overlayfs was refused, which nobody can know before: the tree has mounts in it that may not be
 * left out, or lies on a file system that it does not take. The policy lets a copy do. 0 or -1,
 * then the first failure stands.
 */
static int plan_copy(struct cli_run *run, const char **ret_why)
{
	struct result *result = &run->result;
	struct plan plan;
	struct err err;
	if (result->status != STATUS_ERROR || result->error.code != ERR_overlay_unsupported ||
		run->plan.policy->fs.backend != BACKEND_AUTO || run->request->copy_layers ||
		run->request->session || is_forced(&run->plan))
		return -1;
	run->own.copy_layers = true;
	if (plan_build(run->plan.policy, &run->own, &run->host, &run->filter, &plan, &err) < 0)
		return -1;
	(void)cli_run_end(run);
	*ret_why = strerror(result->error.errnum);
	plan_free(&run->plan);
	run->plan = plan;
	memset(&result->error, 0, sizeof result->error);
	return 0;
}

/* Nearly all of the time that making the box took. */
static void tell_copied(struct cli_run *run, const char *why)
{
	struct result *result = &run->result;
	if (result->status == STATUS_ERROR)
		return;
	result_warning(result, "workspace_copied",
		arena_printf(&result->arena,
			"overlayfs cannot be used for the workspace here (%s), so all of it was "
			"copied first: the box took %llu ms to make",
			why, (unsigned long long)(result->timing.setup_us / 1000)));
}

int cli_run_publish(struct cli_run *run, struct err *err)
{
	if (published_open(&run->plan.reach, &run->published, err) < 0)
		return -1;
	for (size_t i = 0; i < run->published.count; i++)
		result_published(&run->result, run->published.ports[i].port,
			run->published.ports[i].host_port);
	return 0;
}

void cli_run_start(struct cli_run *run, const struct supervise_io *io)
{
	const char *why = is_forced(&run->plan) ? "as root: its file system takes no id map" : NULL;
	struct supervise_io with_ports = *io;
	with_ports.published = &run->published;
	attempt(run, &with_ports);
	if (plan_copy(run, &why) == 0)
		attempt(run, &with_ports);
	published_close(&run->published);
	if (why)
		tell_copied(run, why);
	run_layers_collect(&run->layers, &run->plan, &run->box, &run->result);
	add_remedy(&run->result.error);
	command_hint(run->request, &run->plan, &run->result.error);
}

bool cli_run_end(struct cli_run *run)
{
	if (!run->live)
		return false;
	run->live = false;
	/* Where making them failed, one may be left of which nothing is known here. */
	bool made = run->box.cgroup.plan != NULL;
	bool left = supervise_end(&run->box) < 0;
	if (left)
		result_warning(&run->result, "cgroup_left",
			"a control group of the box could not be removed; `agentbox gc` removes it "
			"later");
	box_close(&run->box);
	run_record_end(&run->record, made && !left);
	return left;
}

int cli_run_box(const struct policy *policy, const struct request *request,
	const struct supervise_io *io, struct cli_run *run)
{
	struct err err;
	if (cli_run_prepare(policy, request, run, &err) < 0 || cli_run_publish(run, &err) < 0)
		fail(run, &err);
	else
		cli_run_start(run, io);
	(void)cli_run_end(run);
	return run->result.status == STATUS_ERROR ? -1 : 0;
}
