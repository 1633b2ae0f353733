/*
 * words: a result in a few lines for people. Every byte that came from elsewhere is made visible;
 * the command's output is not part of it.
 */
#include "report/result.h"
#include "policy/policy.h"
#include "report/stage.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define VIOLATIONS_SHOWN 10

static void add_text(struct buf *out, const char *text)
{
	buf_add_visible(out, text, strlen(text), false);
}

static void add_field(struct buf *out, const char *text, size_t size)
{
	buf_add_visible(out, text, strnlen(text, size), false);
}

static void add_duration(struct buf *out, uint64_t us)
{
	if (us < 1000000)
		buf_addf(out, "%" PRIu64 ".%" PRIu64 " ms", us / 1000, us % 1000 / 100);
	else
		buf_addf(out, "%" PRIu64 ".%02" PRIu64 " s", us / 1000000, us % 1000000 / 10000);
}

/* The names of the limits; `before` stands in front of the first. */
static void add_limits(struct buf *out, unsigned limits, const char *before)
{
	unsigned bit;
	const char *name;
	for (size_t i = 0; (name = result_limit_name(i, &bit)); i++) {
		if (!(limits & bit))
			continue;
		buf_addf(out, "%s%s", before, name);
		before = ", ";
	}
}

static void add_end(struct buf *out, const struct result *result)
{
	char signal[SIGNAL_NAME_SIZE];
	buf_adds(out, "agentbox: ");
	if (result->policy && result->policy->name) {
		add_text(out, result->policy->name);
		buf_adds(out, ": ");
	}
	switch (result->status) {
	case STATUS_EXITED:
		buf_addf(out, "the command exited with %d", result->exit_code);
		break;
	case STATUS_SIGNALED:
		buf_addf(out, "the command was ended by %s",
			result_signal_name(result->signal, signal));
		break;
	case STATUS_TIMEOUT:
		buf_adds(out, "the command was stopped at its wall limit");
		break;
	case STATUS_LIMIT:
		buf_adds(out, "the command was ended by a limit");
		add_limits(out, result->limits_hit & ~(unsigned)LIMIT_WALL, ": ");
		break;
	case STATUS_DENIED:
		buf_adds(out, "the command was ended for what it tried");
		break;
	case STATUS_CANCELLED:
		buf_adds(out, "the run was interrupted");
		break;
	case STATUS_ERROR:
		buf_adds(out, "the command did not run");
		break;
	}
	if (result->status != STATUS_ERROR) {
		buf_adds(out, ", after ");
		add_duration(out, result->duration_us);
	}
	buf_adds(out, "\n");
}

static void add_error(struct buf *out, const struct err *err)
{
	buf_adds(out, "agentbox: ");
	if (err->file[0]) {
		add_field(out, err->file, sizeof err->file);
		if (err->line > 0)
			buf_addf(out, ":%d", err->line);
		if (err->line > 0 && err->column > 0)
			buf_addf(out, ":%d", err->column);
		buf_adds(out, ": ");
	}
	if (err->text[0])
		add_field(out, err->text, sizeof err->text);
	else
		buf_adds(out, err_info(err->code)->meaning);
	buf_addf(out, " [%s", err_info(err->code)->name);
	if (stage_word(err->stage))
		buf_addf(out, ", stage %s", stage_word(err->stage));
	if (err_errno_name(err->errnum))
		buf_addf(out, ", %s", err_errno_name(err->errnum));
	buf_adds(out, "]\n");
	const char *hint = err_hint(err);
	if (hint) {
		buf_adds(out, "agentbox: hint: ");
		add_field(out, hint, hint == err->hint ? sizeof err->hint : strlen(hint));
		buf_adds(out, "\n");
	}
}

static void add_violation(struct buf *out, const struct violation *v)
{
	buf_adds(out, "agentbox: refused");
	if (v->count > 1)
		buf_addf(out, " %" PRIu64 " times", v->count);
	buf_adds(out, ": ");
	add_text(out, v->layer);
	buf_adds(out, " ");
	add_text(out, v->operation);
	if (v->target) {
		buf_adds(out, " ");
		add_text(out, v->target);
	}
	if (v->rule) {
		buf_adds(out, ", by ");
		add_text(out, v->rule);
	}
	buf_adds(out, "\n");
	if (v->hint) {
		buf_adds(out, "agentbox: hint: to allow it: ");
		add_text(out, v->hint);
		buf_adds(out, "\n");
	}
}

static void add_stream(struct buf *out, const char *name, const struct stream *stream)
{
	if (stream_truncated(stream))
		buf_addf(out, "agentbox: %s: %" PRIu64 " of %" PRIu64 " bytes are left out\n", name,
			stream->total - stream->head_len - stream->tail_len, stream->total);
}

int result_words(const struct result *result, struct buf *out)
{
	add_end(out, result);
	struct err missing;
	const struct err *err = result_error(result, &missing);
	if (err)
		add_error(out, err);
	if (result->limits_hit && result->status != STATUS_LIMIT &&
		result->limits_hit != LIMIT_WALL) {
		buf_adds(out, "agentbox: limits that were reached");
		add_limits(out, result->limits_hit, ": ");
		buf_adds(out, "\n");
	}
	if (!result->live) {
		add_stream(out, "stdout", &result->out);
		add_stream(out, "stderr", &result->err_out);
	}
	if (result->leftover_killed)
		buf_addf(out, "agentbox: %" PRIu64 " left-over %s killed\n",
			result->leftover_killed,
			result->leftover_killed == 1 ? "process was" : "processes were");
	size_t shown = result->violation_count;
	if (shown > VIOLATIONS_SHOWN)
		shown = VIOLATIONS_SHOWN;
	for (size_t i = 0; i < shown; i++)
		add_violation(out, &result->violations[i]);
	if (shown < result->violation_count)
		buf_addf(out, "agentbox: %zu more kinds of refusal are in the result\n",
			result->violation_count - shown);
	char text[WARNING_TEXT_SIZE];
	struct warning warning;
	for (size_t at = 0; result_next_warning(result, &at, text, &warning);) {
		buf_adds(out, "agentbox: warning: ");
		add_text(out, warning.message);
		buf_adds(out, "\n");
	}
	return out->full ? -ENOSPC : 0;
}
