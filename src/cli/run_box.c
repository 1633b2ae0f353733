/*
 * run_box: one box from a loaded policy: probe, plan, spawn, supervise. Prints nothing.
 */
#include <string.h>

#include "box/box.h"
#include "cli/cli.h"
#include "cli/command_hint.h"
#include "plan/host_diagnosis.h"

void cli_run_init(struct cli_run *run)
{
	memset(run, 0, sizeof *run);
	result_init(&run->result);
}

void cli_run_free(struct cli_run *run)
{
	/* In the reverse of the order in which they point to each other. */
	result_free(&run->result);
	plan_free(&run->plan);
	host_free(&run->host);
}

int cli_run_plan(const struct policy *policy, const struct request *request, struct cli_run *run,
	struct err *err)
{
	run->request = request;
	run->result.policy = policy;
	if (host_probe(policy, request, &run->host, err) < 0)
		return -1;
	if (filter_get(policy, &run->result.arena, &run->filter, err) < 0)
		return -1;
	if (plan_build(policy, request, &run->host, &run->filter, &run->plan, err) < 0)
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

void cli_run_start(struct cli_run *run, const struct supervise_io *io)
{
	struct box box;
	struct err err;
	uint64_t before = cli_clock_us();
	box_init(&box);
	int r = box_spawn(&run->plan, &box, &err);
	/* Set-up begins here; the supervisor adds its part. */
	run->result.timing.setup_us = cli_clock_us() - before;
	if (r < 0 || supervise_run(&run->plan, &box, io, &run->result, &err) < 0)
		fail(run, &err);
	add_remedy(&run->result.error);
	command_hint(run->request, &run->plan, &run->result.error);
	box_close(&box);
}

int cli_run_box(const struct policy *policy, const struct request *request,
	const struct supervise_io *io, struct cli_run *run)
{
	struct err err;
	if (cli_run_plan(policy, request, run, &err) < 0)
		fail(run, &err);
	else
		cli_run_start(run, io);
	return run->result.status == STATUS_ERROR ? -1 : 0;
}
