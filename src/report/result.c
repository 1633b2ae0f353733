/*
 * result: making the value, adding to it within its maxima, and the exit status that it means.
 * Never decides how a run ended; never prints.
 */
#define _GNU_SOURCE
#include "report/result.h"
#include "base/names.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

const char *status_name(enum status status)
{
	static const char *const names[] = {
		[STATUS_ERROR] = "error",
		[STATUS_EXITED] = "exited",
		[STATUS_SIGNALED] = "signaled",
		[STATUS_TIMEOUT] = "timeout",
		[STATUS_LIMIT] = "limit",
		[STATUS_DENIED] = "denied",
		[STATUS_CANCELLED] = "cancelled",
	};
	return (unsigned)status < sizeof names / sizeof *names ? names[status] : "error";
}

const char *result_signal_name(int signal, char text[SIGNAL_NAME_SIZE])
{
	const char *name = names_signal(signal);
	if (name)
		snprintf(text, SIGNAL_NAME_SIZE, "%s", name);
	else if (signal == NAMES_SIGRTMIN)
		snprintf(text, SIGNAL_NAME_SIZE, "SIGRTMIN");
	else if (signal > NAMES_SIGRTMIN && signal <= NAMES_SIGRTMAX)
		snprintf(text, SIGNAL_NAME_SIZE, "SIGRTMIN+%d", signal - NAMES_SIGRTMIN);
	else
		snprintf(text, SIGNAL_NAME_SIZE, "SIG%d", signal);
	return text;
}

const char *result_limit_name(size_t n, unsigned *ret_bit)
{
	static const struct {
		const char *name;
		unsigned bit;
	} limits[] = {
		{ "wall", LIMIT_WALL },
		{ "cpu", LIMIT_CPU },
		{ "memory", LIMIT_MEMORY },
		{ "pids", LIMIT_PIDS },
		{ "disk", LIMIT_DISK },
		{ "output", LIMIT_OUTPUT },
		{ "open_files", LIMIT_OPEN_FILES },
		{ "file_size", LIMIT_FILE_SIZE },
	};
	if (n >= sizeof limits / sizeof *limits)
		return NULL;
	*ret_bit = limits[n].bit;
	return limits[n].name;
}

/* A ULID: 48 bits of milliseconds, 80 random bits, in Crockford's base 32. */
static void make_id(char id[27])
{
	static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
	struct timespec now = { 0 };
	clock_gettime(CLOCK_REALTIME, &now);
	uint64_t ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	for (int i = 9; i >= 0; i--, ms >>= 5)
		id[i] = digits[ms & 31];

	uint8_t random[10];
	if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
		/* An id has to differ, not to be secret: time and process do for that. */
		uint64_t mix = (uint64_t)now.tv_nsec << 32 ^ (uint64_t)getpid();
		memset(random, 0, sizeof random);
		memcpy(random, &mix, sizeof mix);
	}
	unsigned bits = 0, have = 0, at = 10;
	for (size_t i = 0; i < sizeof random; i++) {
		bits = (bits << 8 | random[i]) & 0xffff;
		for (have += 8; have >= 5; have -= 5)
			id[at++] = digits[bits >> (have - 5) & 31];
	}
	id[26] = 0;
}

void result_init(struct result *result)
{
	memset(result, 0, sizeof *result);
	make_id(result->id);
	result->status = STATUS_ERROR;
	result->exit_code = -1;
	struct usage *usage = &result->usage;
	usage->cpu_user_us = usage->cpu_system_us = usage->memory_peak_bytes = usage->pids_peak =
		usage->read_bytes = usage->write_bytes = usage->disk_bytes = UNKNOWN;
	result->timing.policy_us = result->timing.setup_us = result->timing.run_us =
		result->timing.teardown_us = UNKNOWN;
}

void result_free(struct result *result)
{
	stream_free(&result->out);
	stream_free(&result->err_out);
	arena_free(&result->arena);
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_violation(const struct violation *a, const struct violation *b)
{
	return same(a->target, b->target) && same(a->operation, b->operation) &&
	       same(a->layer, b->layer) && same(a->rule, b->rule) && same(a->reason, b->reason) &&
	       same(a->hint, b->hint) && a->certain == b->certain;
}

/* A copy of at most TEXT_MAX bytes, cut between characters. */
static const char *keep(struct arena *arena, const char *text)
{
	if (!text)
		return NULL;
	size_t len = strnlen(text, RESULT_TEXT_MAX + 1);
	if (len > RESULT_TEXT_MAX) {
		len = RESULT_TEXT_MAX;
		while (len > RESULT_TEXT_MAX - 3 && ((unsigned char)text[len] & 0xc0) == 0x80)
			len--;
	}
	return arena_strndup(arena, text, len);
}

/* How much of an operation's name makes it the same operation: "arch:0x40000003" of ".../nr:5". */
static size_t stem(const char *operation)
{
	return operation ? strcspn(operation, "/") : 0;
}

static bool same_operation(const struct violation *a, const struct violation *b)
{
	size_t len = stem(a->operation);
	return same(a->layer, b->layer) && len == stem(b->operation) &&
	       (len == 0 || memcmp(a->operation, b->operation, len) == 0);
}

/* Has this operation had its share of the list? */
static bool crowded(const struct result *result, const struct violation *violation)
{
	size_t max = result->violation_count < VIOLATIONS_MAX / 4 ? VIOLATION_TARGETS : 1;
	size_t count = 0;
	for (size_t i = 0; i < result->violation_count && count < max; i++)
		count += same_operation(&result->violations[i], violation);
	return count == max;
}

/*
 * The entry for the further ones of a crowded operation: one for each rule of the policy. What
 * goes with a target, and so may differ between those that it stands for, is left out.
 */
static struct violation others(const struct violation *violation, struct arena *arena)
{
	return (struct violation){
		.layer = violation->layer,
		.operation = violation->operation ? arena_strndup(arena, violation->operation,
							    stem(violation->operation))
						  : NULL,
		.target = VIOLATION_OTHERS,
		.rule = violation->rule,
		.count = violation->count,
		.certain = violation->certain,
	};
}

static size_t find(const struct result *result, const struct violation *violation)
{
	size_t i = 0;
	while (i < result->violation_count && !same_violation(&result->violations[i], violation))
		i++;
	return i;
}

void result_violation(struct result *result, const struct violation *violation)
{
	struct violation cut = *violation;
	struct arena scratch = { 0 };
	const char **texts[] = { &cut.layer, &cut.operation, &cut.target, &cut.rule, &cut.reason,
		&cut.hint };
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (*texts[i] && strnlen(*texts[i], RESULT_TEXT_MAX + 1) > RESULT_TEXT_MAX)
			*texts[i] = keep(&scratch, *texts[i]);
	size_t i = find(result, &cut);
	if (i == result->violation_count && crowded(result, &cut)) {
		cut = others(&cut, &scratch);
		i = find(result, &cut);
	}
	if (i < result->violation_count) {
		result->violations[i].count += cut.count;
	} else if (result->violation_count == VIOLATIONS_MAX) {
		result->violations_dropped += cut.count;
	} else {
		for (i = 0; i < sizeof texts / sizeof *texts; i++)
			*texts[i] = keep(&result->arena, *texts[i]);
		struct violation *new = arena_push(
			&result->arena, &result->violations, &result->violation_count, sizeof *new);
		*new = cut;
	}
	arena_free(&scratch);
}

void result_carried(struct result *result, const struct carried *carried)
{
	struct carried new = *carried;
	size_t i = 0;
	while (i < result->carried_count && (result->carried[i].port != new.port ||
						    strcmp(result->carried[i].host, new.host) != 0))
		i++;
	if (i == result->carried_count && i >= CARRIED_MAX - 1) {
		i = CARRIED_MAX - 1;
		new.host = VIOLATION_OTHERS;
		new.port = 0;
	}
	if (i == result->carried_count) {
		new.host = keep(&result->arena, new.host);
		struct carried *row = arena_push(
			&result->arena, &result->carried, &result->carried_count, sizeof *row);
		*row = new;
		return;
	}
	result->carried[i].connections += new.connections;
	result->carried[i].sent += new.sent;
	result->carried[i].received += new.received;
}

void result_published(struct result *result, uint16_t port, uint16_t host_port)
{
	if (result->served_count < SERVED_MAX)
		result->served[result->served_count++] =
			(struct served){ .port = port, .host_port = host_port };
}

void result_served(struct result *result, const struct served *more)
{
	for (size_t i = 0; i < result->served_count; i++) {
		struct served *row = &result->served[i];
		if (row->port != more->port)
			continue;
		row->connections += more->connections;
		row->unanswered += more->unanswered;
		row->sent += more->sent;
		row->received += more->received;
	}
}

void result_warning(struct result *result, const char *code, const char *message)
{
	for (size_t i = 0; i < result->warning_count; i++)
		if (same(result->warnings[i].code, code) &&
			same(result->warnings[i].message, message))
			return;
	if (result->warning_count == WARNINGS_MAX)
		return;
	/* The last place is kept for saying that there were more. */
	if (result->warning_count == WARNINGS_MAX - 1) {
		code = "warnings_dropped";
		message = "there were more warnings than can be listed";
	}
	struct warning *new =
		arena_push(&result->arena, &result->warnings, &result->warning_count, sizeof *new);
	new->code = keep(&result->arena, code);
	new->message = keep(&result->arena, message);
}

/* Is it one of the plan's warnings, which are told anyhow? */
static bool planned(const struct plan *plan, const struct warning *warning)
{
	for (size_t i = 0; plan && i < plan->warning_count; i++)
		if (same(plan->warnings[i].code, warning->code) &&
			same(plan->warnings[i].message, warning->message))
			return true;
	return false;
}

bool result_next_warning(const struct result *result, size_t *at, char text[WARNING_TEXT_SIZE],
	struct warning *ret_warning)
{
	const struct plan *plan = result->plan;
	size_t first = plan ? plan->warning_count : 0, last = first + result->warning_count;
	while (*at < last) {
		size_t i = (*at)++;
		if (i < first) {
			ret_warning->code = plan->warnings[i].code;
			ret_warning->message = plan->warnings[i].message;
			return true;
		}
		if (!planned(plan, &result->warnings[i - first])) {
			*ret_warning = result->warnings[i - first];
			return true;
		}
	}
	if ((*at)++ > last || !result->violations_dropped)
		return false;
	snprintf(text, WARNING_TEXT_SIZE,
		"%" PRIu64 " more violations are not listed; at most %d different ones are",
		result->violations_dropped, VIOLATIONS_MAX);
	*ret_warning = (struct warning){ "violations_dropped", text };
	return true;
}

int result_exit_status(const struct result *result)
{
	switch (result->status) {
	case STATUS_EXITED:
		if (result->exit_code >= 0 && result->exit_code <= 255)
			return result->exit_code;
		break;
	case STATUS_SIGNALED:
		if (result->signal > 0 && result->signal < 128)
			return 128 + result->signal;
		break;
	case STATUS_TIMEOUT:
		return 124;
	case STATUS_LIMIT:
	case STATUS_DENIED:
		return 137;
	case STATUS_CANCELLED:
		return 128 + (result->signal > 0 && result->signal < 128 ? result->signal : SIGINT);
	case STATUS_ERROR:
		/* Never 0 when the command did not run. */
		if (err_info(result->error.code)->status)
			return err_info(result->error.code)->status;
		break;
	}
	return err_info(ERR_internal)->status;
}

const struct err *result_error(const struct result *result, struct err *missing)
{
	if (result->error.code != ERR_none)
		return &result->error;
	if (result->status != STATUS_ERROR)
		return NULL;
	err_set(missing, ERR_internal, 0, "the run ended without saying why");
	return missing;
}
