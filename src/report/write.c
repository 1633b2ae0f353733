/*
 * write: the JSON form of a result. Never decides anything, never loses a field: what is not known
 * is null. The order is that of fields.def.
 */
#define _GNU_SOURCE
#include "report/result.h"
#include "report/changes.h"
#include "base/json.h"
#include "plan/plan.h"
#include "policy/policy.h"
#include "report/stage.h"

#include <sched.h>
#include <string.h>

#define SCHEMA 1

static void put_number(struct json *json, const char *key, uint64_t value)
{
	if (value == UNKNOWN)
		json_put_null(json, key);
	else
		json_put_uint(json, key, value);
}

/* Microseconds, shown as milliseconds. */
static void put_ms(struct json *json, const char *key, uint64_t us)
{
	if (us == UNKNOWN)
		json_put_null(json, key);
	else
		json_put_thousandths(json, key, us);
}

static void put_place(struct json *json, const char *key, int32_t value)
{
	if (value > 0)
		json_put_int(json, key, value);
	else
		json_put_null(json, key);
}

/* A text of a fixed size that may have come over a socket without its NUL; empty is null. */
static void put_field(struct json *json, const char *key, const char *text, size_t size)
{
	size_t len = strnlen(text, size);
	if (len)
		json_put_bytes(json, key, text, len);
	else
		json_put_null(json, key);
}

struct stream_keys {
	const char *text, *encoding, *bytes, *truncated;
};

static void put_stream(
	struct json *json, const struct stream_keys *keys, const struct stream *stream, bool live)
{
	if (live) {
		json_put_null(json, keys->text);
		json_put_null(json, keys->encoding);
	} else {
		/* What is kept bounds it; the policy bounds what is kept. */
		AUTO_BUF text = { .max = SIZE_MAX / 4 };
		bool base64 = false;
		int r = stream_render(stream, &text, &base64);
		if (r < 0)
			json_fail(json, r);
		json_put_bytes(json, keys->text, buf_text(&text), text.len);
		json_put_text(json, keys->encoding, base64 ? "base64" : "utf-8");
	}
	json_put_uint(json, keys->bytes, stream->total);
	json_put_bool(json, keys->truncated, !live && stream_truncated(stream));
}

static void put_head(struct json *json, const struct result *result)
{
	json_put_text(json, "agentbox", AGENTBOX_VERSION);
	json_put_int(json, "schema", SCHEMA);
	json_put_text(json, "id", result->id);
	json_put_text(json, "name", result->policy ? result->policy->name : NULL);
	json_put_text(json, "status", status_name(result->status));
	bool ran = result->status != STATUS_ERROR;
	if (ran && result->exit_code >= 0)
		json_put_int(json, "exit_code", result->exit_code);
	else
		json_put_null(json, "exit_code");
	char signal[SIGNAL_NAME_SIZE];
	json_put_text(json, "signal",
		ran && result->signal > 0 ? result_signal_name(result->signal, signal) : NULL);
	static const struct stream_keys out = { "stdout", "stdout_encoding", "stdout_bytes",
		"stdout_truncated" };
	static const struct stream_keys err = { "stderr", "stderr_encoding", "stderr_bytes",
		"stderr_truncated" };
	put_stream(json, &out, &result->out, result->live);
	put_stream(json, &err, &result->err_out, result->live);
	put_ms(json, "duration_ms", result->duration_us);
}

static void put_usage(struct json *json, const struct result *result)
{
	const struct usage *usage = &result->usage;
	json_open_object(json, "usage");
	put_ms(json, "cpu_user_ms", usage->cpu_user_us);
	put_ms(json, "cpu_system_ms", usage->cpu_system_us);
	put_number(json, "memory_peak_bytes", usage->memory_peak_bytes);
	put_number(json, "pids_peak", usage->pids_peak);
	put_number(json, "read_bytes", usage->read_bytes);
	put_number(json, "write_bytes", usage->write_bytes);
	put_number(json, "disk_bytes", usage->disk_bytes);
	json_close(json);
	json_open_array(json, "limits_hit");
	unsigned bit;
	const char *name;
	for (size_t i = 0; (name = result_limit_name(i, &bit)); i++)
		if (result->limits_hit & bit)
			json_put_text(json, NULL, name);
	json_close(json);
	json_put_uint(json, "leftover_killed", result->leftover_killed);
}

static void put_empty(struct json *json, const char *key)
{
	json_open_array(json, key);
	json_close(json);
}

static void put_violations(struct json *json, const struct result *result)
{
	json_open_array(json, "violations");
	for (size_t i = 0; i < result->violation_count; i++) {
		const struct violation *v = &result->violations[i];
		json_open_object(json, NULL);
		json_put_text(json, "layer", v->layer);
		json_put_text(json, "operation", v->operation);
		json_put_text(json, "target", v->target);
		json_put_text(json, "rule", v->rule);
		json_put_text(json, "reason", v->reason);
		json_put_uint(json, "count", v->count);
		json_put_bool(json, "certain", v->certain);
		json_put_text(json, "hint", v->hint);
		json_close(json);
	}
	json_close(json);
}

static void put_carried(struct json *json, const struct result *result)
{
	json_open_array(json, "network");
	for (size_t i = 0; i < result->carried_count; i++) {
		const struct carried *c = &result->carried[i];
		json_open_object(json, NULL);
		json_put_text(json, "host", c->host);
		json_put_uint(json, "port", c->port);
		json_put_uint(json, "connections", c->connections);
		json_put_uint(json, "sent_bytes", c->sent);
		json_put_uint(json, "received_bytes", c->received);
		json_close(json);
	}
	json_close(json);
}

static void put_served(struct json *json, const struct result *result)
{
	json_open_array(json, "published");
	for (size_t i = 0; i < result->served_count; i++) {
		const struct served *s = &result->served[i];
		json_open_object(json, NULL);
		json_put_uint(json, "port", s->port);
		json_put_uint(json, "host_port", s->host_port);
		json_put_uint(json, "connections", s->connections);
		json_put_uint(json, "unanswered", s->unanswered);
		json_put_uint(json, "sent_bytes", s->sent);
		json_put_uint(json, "received_bytes", s->received);
		json_close(json);
	}
	json_close(json);
}

static const char *cgroup_word(const struct plan *plan)
{
	static const char *const words[] = {
		[CGROUP_NONE] = "none",
		[CGROUP_V2] = "v2",
		[CGROUP_V1] = "v1",
	};
	return words[plan ? plan->cgroup.kind : CGROUP_NONE];
}

static void put_enforcement(struct json *json, const struct plan *plan)
{
	uint64_t ns = plan ? plan->namespaces : 0;
	json_open_object(json, "enforcement");
	json_put_bool(json, "user_ns", ns & CLONE_NEWUSER);
	json_put_bool(json, "pid_ns", ns & CLONE_NEWPID);
	json_put_bool(json, "net_ns", ns & CLONE_NEWNET);
	if (plan && plan->landlock_abi > 0)
		json_put_int(json, "landlock_abi", plan->landlock_abi);
	else
		json_put_null(json, "landlock_abi");
	json_put_text(json, "seccomp", plan ? plan->filter.name : NULL);
	json_put_text(json, "cgroup", cgroup_word(plan));
	json_put_text(json, "workspace", plan ? plan->workspace : NULL);
	json_put_text(json, "network", plan ? plan->network : NULL);
	json_open_array(json, "not_enforced");
	for (size_t i = 0; plan && plan->not_enforced && plan->not_enforced[i]; i++)
		json_put_text(json, NULL, plan->not_enforced[i]);
	json_close(json);
	json_close(json);
}

static void put_policy(struct json *json, const struct policy *policy)
{
	json_open_object(json, "policy");
	json_put_text(json, "name", policy ? policy->name : NULL);
	char sha256[POLICY_SHA256_SIZE];
	if (policy)
		policy_sha256(policy, sha256);
	json_put_text(json, "sha256", policy ? sha256 : NULL);
	json_open_array(json, "sources");
	for (size_t i = 0; policy && i < policy->source_count; i++)
		json_put_text(json, NULL, policy->sources[i]);
	json_close(json);
	json_close(json);
}

static void put_timing(struct json *json, const struct result *result)
{
	json_open_object(json, "timing");
	put_number(json, "policy_us", result->timing.policy_us);
	put_number(json, "setup_us", result->timing.setup_us);
	put_number(json, "run_us", result->timing.run_us);
	put_number(json, "teardown_us", result->timing.teardown_us);
	json_close(json);
}

static void put_warnings(struct json *json, const struct result *result)
{
	char text[WARNING_TEXT_SIZE];
	struct warning warning;
	json_open_array(json, "warnings");
	for (size_t at = 0; result_next_warning(result, &at, text, &warning);) {
		json_open_object(json, NULL);
		json_put_text(json, "code", warning.code);
		json_put_text(json, "message", warning.message);
		json_close(json);
	}
	json_close(json);
}

static void put_error(struct json *json, const struct result *result)
{
	struct err missing;
	const struct err *err = result_error(result, &missing);
	if (!err) {
		json_put_null(json, "error");
		return;
	}
	const struct err_info *info = err_info(err->code);
	json_open_object(json, "error");
	json_put_text(json, "code", info->name);
	if (err->text[0])
		put_field(json, "message", err->text, sizeof err->text);
	else
		json_put_text(json, "message", info->meaning);
	const char *hint = err_hint(err);
	if (hint)
		put_field(json, "hint", hint, hint == err->hint ? sizeof err->hint : strlen(hint));
	else
		json_put_null(json, "hint");
	json_put_text(json, "stage", stage_word(err->stage));
	json_put_text(json, "errno", err_errno_name(err->errnum));
	put_field(json, "file", err->file, sizeof err->file);
	put_place(json, "line", err->line);
	put_place(json, "column", err->line > 0 ? err->column : 0);
	json_close(json);
}

int result_write(const struct result *result, bool pretty, struct buf *out)
{
	/* An escape is at most six bytes for one; everything but the streams has its own maxima. */
	if (!out->max)
		out->max = BUF_MAX_DEFAULT +
			   6 * (result->out.head_len + result->out.tail_len +
				       result->err_out.head_len + result->err_out.tail_len);
	struct json json;
	json_begin(&json, out, pretty);
	json_open_object(&json, NULL);
	put_head(&json, result);
	put_usage(&json, result);
	changes_put(&json, result->changes);
	put_violations(&json, result);
	put_carried(&json, result);
	put_served(&json, result);
	put_empty(&json, "tool_calls");
	put_enforcement(&json, result->plan);
	put_policy(&json, result->policy);
	put_timing(&json, result);
	put_warnings(&json, result);
	put_error(&json, result);
	json_close(&json);
	return json_end(&json);
}
