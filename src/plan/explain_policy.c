/*
 * explain_policy: what a policy asks for, in words, with the line of each part. Knows no host and
 * no plan; explain.c puts these parts together with what the plan adds.
 */
#define _GNU_SOURCE
#include "plan/gaps.h"
#include "plan/explain.h"
#include "plan/explain_words.h"
#include "policy/policy.h"

#include <stdarg.h>
#include <string.h>

void words_line(struct words *words, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	const char *text = arena_vprintf(&words->arena, fmt, ap);
	va_end(ap);
	buf_add_visible(words->out, text, strlen(text), false);
	buf_adds(words->out, "\n");
}

void words_title(struct words *words, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	const char *text = arena_vprintf(&words->arena, fmt, ap);
	va_end(ap);
	buf_adds(words->out, "\n");
	buf_add_visible(words->out, text, strlen(text), false);
	buf_adds(words->out, "\n");
}

#define LABEL_WIDTH 12

void words_list_begin(struct words *words, const char *label)
{
	buf_addf(words->out, "  %-*s", LABEL_WIDTH, label);
	words->column = 2 + LABEL_WIDTH;
	words->listed = 0;
}

static void list_word(struct words *words, const char *item, size_t len)
{
	bool first = words->column == 2 + LABEL_WIDTH;
	if (!first && words->column + 1 + len > WORDS_WIDTH) {
		buf_addf(words->out, "\n%*s", 2 + LABEL_WIDTH, "");
		words->column = 2 + LABEL_WIDTH;
		first = true;
	}
	if (!first)
		buf_adds(words->out, " ");
	size_t before = words->out->len;
	buf_add_visible(words->out, item, len, false);
	words->column += words->out->len - before + !first;
}

void words_list_add(struct words *words, const char *item)
{
	if (++words->listed <= WORDS_LIST_MAX)
		list_word(words, item, strlen(item));
}

void words_list_end(struct words *words, const char *note)
{
	if (words->listed > WORDS_LIST_MAX) {
		const char *more =
			arena_printf(&words->arena, "and %zu more", words->listed - WORDS_LIST_MAX);
		list_word(words, more, strlen(more));
	}
	if (note) {
		const char *text = arena_printf(&words->arena, "- %s", note);
		list_word(words, text, strlen(text));
	}
	buf_adds(words->out, "\n");
}

const char *words_at(struct words *words, const struct origin *at)
{
	if (!origin_set(at))
		return "";
	return arena_printf(&words->arena, " (%s)", explain_origin(at, &words->arena));
}

const char *words_duration(struct words *words, uint64_t us)
{
	static const struct {
		uint64_t us;
		const char *unit;
	} units[] = { { 3600000000u, "h" }, { 60000000u, "m" }, { 1000000u, "s" },
		{ 1000u, "ms" } };
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (us >= units[i].us * (i < 2 ? 2 : 1) && us % units[i].us == 0)
			return arena_printf(&words->arena, "%llu%s",
				(unsigned long long)(us / units[i].us), units[i].unit);
	return arena_printf(&words->arena, "%lluus", (unsigned long long)us);
}

const char *words_size(struct words *words, uint64_t bytes)
{
	static const char *const units[] = { "", "KiB", "MiB", "GiB", "TiB" };
	size_t unit = 0;
	while (bytes && bytes % 1024 == 0 && unit + 1 < sizeof units / sizeof *units) {
		bytes /= 1024;
		unit++;
	}
	return arena_printf(
		&words->arena, "%llu%s", (unsigned long long)bytes, unit ? units[unit] : " bytes");
}

void words_policy_head(struct words *words, const struct policy *policy)
{
	words_line(words, "policy %s", policy->name ? policy->name : "(without a name)");
	if (policy->description)
		words_line(words, "  %s", policy->description);
	for (size_t i = 0; i < policy->source_count; i++)
		words_line(words, "  from %s", policy->sources[i]);
	char sha256[POLICY_SHA256_SIZE];
	policy_sha256(policy, sha256);
	words_line(words, "  sha256 %s", sha256);
}

static void put_allow(struct words *words, const struct policy *policy)
{
	for (size_t i = 0; i < policy->allow_count; i++) {
		const struct policy_host *host = &policy->allow[i];
		words_list_begin(words, i ? "" : "allow");
		words_list_add(words, host->given);
		words_list_add(words, host->port_count == 1 ? "port" : "ports");
		for (size_t k = 0; k < host->port_count; k++)
			words_list_add(words, arena_printf(&words->arena, "%u", host->ports[k]));
		if (host->any_name)
			words_list_add(words, "for any name that is asked for there");
		words_list_end(words, explain_origin(&host->at, &words->arena));
	}
}

static void put_publish(struct words *words, const struct policy *policy)
{
	for (size_t i = 0; i < policy->publish_count; i++) {
		const struct policy_publish *p = &policy->publish[i];
		const char *there = p->host_port ? arena_printf(&words->arena, "%u", p->host_port)
						 : "(any free port)";
		words_list_begin(words, i ? "" : "publish");
		words_list_add(
			words, arena_printf(&words->arena, "port %u at the host's 127.0.0.1:%s",
				       p->port, there));
		words_list_end(words, explain_origin(&p->at, &words->arena));
	}
}

void words_policy_network(struct words *words, const struct policy *policy)
{
	const char *at = words_at(words, &policy->network_at);
	switch (policy->network) {
	case NETWORK_NONE:
		words_title(words, "Network: none%s%s",
			policy->publish_count ? " to reach from inside" : "", at);
		words_line(words,
			"  no interface but the box's own loopback; no packet and no name query "
			"leaves");
		put_publish(words, policy);
		break;
	case NETWORK_HOST:
		words_title(words, "Network: host%s", at);
		words_line(words,
			"  all that the host reaches, its loopback and private networks too");
		break;
	case NETWORK_ALLOW:
		words_title(words, "Network: only what is listed%s", at);
		put_allow(words, policy);
		put_publish(words, policy);
		words_line(words, "  by TCP only; names are looked up outside of the box, and only "
				  "those that "
				  "are listed");
		break;
	}
}

enum unit { UNIT_US, UNIT_BYTES, UNIT_COUNT, UNIT_MILLI };

static void put_limit(struct words *words, const char *key, const struct policy_number *number,
	enum unit unit, const char *holder)
{
	if (!number->value && !origin_set(&number->at))
		return;
	const char *value = NULL;
	switch (unit) {
	case UNIT_US:
		value = words_duration(words, number->value);
		break;
	case UNIT_BYTES:
		value = words_size(words, number->value);
		break;
	case UNIT_COUNT:
		value = arena_printf(&words->arena, "%llu", (unsigned long long)number->value);
		break;
	case UNIT_MILLI:
		value = arena_printf(&words->arena, "%g", (double)number->value / 1000);
		break;
	}
	words_line(words, "  %-11s %-10s %s%s", key, value, holder, words_at(words, &number->at));
}

void words_policy_limits(
	struct words *words, const struct policy *policy, const struct words_holders *holders)
{
	static const struct words_holders needed = {
		.cpu = "needs a control group",
		.cpus = "needs a control group",
		.memory = "needs a control group",
		.pids = "held by RLIMIT_NPROC in the box's user namespace",
		.disk = "held by the size of the box's tmpfs",
	};
	const struct policy_limits *l = &policy->limits;
	if (!holders)
		holders = &needed;
	words_title(words, "Limits");
	put_limit(words, "wall", &l->wall_us, UNIT_US, "held by the supervisor's clock");
	put_limit(words, "cpu", &l->cpu_us, UNIT_US, holders->cpu);
	put_limit(words, "cpus", &l->cpus_milli, UNIT_MILLI, holders->cpus);
	put_limit(words, "memory", &l->memory, UNIT_BYTES, holders->memory);
	put_limit(words, "pids", &l->pids, UNIT_COUNT, holders->pids);
	put_limit(words, "disk", &l->disk, UNIT_BYTES, holders->disk);
	put_limit(words, "output", &l->output, UNIT_BYTES,
		l->output_action == OUTPUT_KILL ? "of each stream; past it the box is killed"
						: "kept of each stream; the middle is left out");
	put_limit(words, "open_files", &l->open_files, UNIT_COUNT, "held by RLIMIT_NOFILE");
	put_limit(words, "file_size", &l->file_size, UNIT_BYTES, "held by RLIMIT_FSIZE");
}

static void put_words(
	struct words *words, const char *label, const struct policy_word *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		words_list_begin(words, i ? "" : label);
		words_list_add(words, list[i].value);
		words_list_end(words, explain_origin(&list[i].at, &words->arena));
	}
}

void words_policy_calls(struct words *words, const struct policy *policy)
{
	words_title(words, "System calls: profile %s%s",
		policy->profile == PROFILE_STRICT ? "strict" : "default",
		words_at(words, &policy->profile_at));
	put_words(words, "allow", policy->sys_allow, policy->sys_allow_count);
	put_words(words, "deny", policy->sys_deny, policy->sys_deny_count);
	words_line(words, "  %s%s",
		policy->nesting ? "user namespaces inside are allowed"
				: "user namespaces inside are refused",
		words_at(words, &policy->nesting_at));
	words_line(words, "  a refused call %s%s",
		policy->on_violation == VIOLATION_KILL
			? "ends the command"
			: "fails with an error and is listed in `violations`",
		words_at(words, &policy->on_violation_at));
}

void words_policy_tools(struct words *words, const struct policy *policy)
{
	if (policy->tool_count)
		words_title(words, "Tools of the host");
	for (size_t i = 0; i < policy->tool_count; i++) {
		const struct policy_tool *tool = &policy->tools[i];
		words_line(words, "  %s%s%s%s", tool->name, tool->description ? ": " : "",
			tool->description ? tool->description : "", words_at(words, &tool->at));
	}
}

size_t words_policy_unsupported(struct words *words, const struct policy *policy)
{
	struct plan_gap gaps[PLAN_GAPS_MAX];
	size_t count = plan_gaps(policy, gaps);
	for (size_t i = 0; i < count; i++)
		words_line(words, "  %s%s", gaps[i].key, words_at(words, gaps[i].at));
	return count;
}
