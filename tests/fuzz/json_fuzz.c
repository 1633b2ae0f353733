/*
 * json_fuzz: whatever a box writes, is named or is refused, the result is one line of strict JSON
 * that says the same bytes again. jansson is the judge; it refuses what is not UTF-8.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "policy/policy.h"
#include "report/result.h"

#define NEED(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input is cut into fields at each 0x0a 0xfe; past the end there are empty ones. */
static char *next_field(const uint8_t **data, size_t *size, size_t *ret_len)
{
	size_t len = 0;
	while (len < *size &&
		!(len + 1 < *size && (*data)[len] == 0x0a && (*data)[len + 1] == 0xfe))
		len++;
	char *text = malloc(len + 1);
	NEED(text);
	if (len)
		memcpy(text, *data, len);
	text[len] = 0;
	*ret_len = len;
	size_t used = len < *size ? len + 2 : len;
	*data += used;
	*size -= used;
	return text;
}

static void check_line(const struct buf *out, bool pretty)
{
	NEED(out->len > 2 && out->data[out->len - 1] == '\n');
	for (size_t i = 0; i + 1 < out->len;) {
		uint32_t rune = 0;
		size_t n = utf8_decode(out->data + i, out->len - i, &rune);
		NEED(n && (pretty ? rune == '\n' || rune >= 0x20 : rune >= 0x20));
		NEED(!utf8_is_control(rune) && rune != '\t');
		i += n;
	}
}

/* Kept whole and text: the very bytes. Kept whole and not: base64 of that length. */
static void check_stream(json_t *json, const char *text, const char *encoding,
	const struct stream *stream, const char *bytes, size_t len)
{
	json_t *value = json_object_get(json, text);
	const char *kind = json_string_value(json_object_get(json, encoding));
	NEED(json_is_string(value) && kind);
	if (stream_truncated(stream))
		return;
	NEED((strcmp(kind, "utf-8") == 0) == utf8_valid(bytes, len));
	if (strcmp(kind, "utf-8") == 0)
		NEED(json_string_length(value) == len &&
			memcmp(json_string_value(value), bytes, len) == 0);
	else
		NEED(json_string_length(value) == (len + 2) / 3 * 4);
}

static void add_pieces(struct stream *stream, const char *bytes, size_t len, size_t piece)
{
	for (size_t at = 0; at < len; at += piece)
		NEED(stream_add(stream, bytes + at, piece < len - at ? piece : len - at) == 0);
	NEED(stream->total == len);
	NEED(stream->head_len + stream->tail_len <= stream->head_max + stream->tail_max);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 4)
		return 0;
	size_t max = data[0] | (size_t)(data[1] & 3) << 8, piece = data[2] + 1u;
	unsigned bits = data[3];
	data += 4;
	size -= 4;

	size_t len[6];
	char *text[6];
	for (int i = 0; i < 6; i++)
		text[i] = next_field(&data, &size, &len[i]);

	const char *sources[] = { text[5], text[4] };
	struct policy_text texts[] = { { text[5], len[5] }, { text[4], len[4] } };
	struct policy policy = {
		.name = text[4], .sources = sources, .texts = texts, .source_count = 2
	};
	struct result result;
	result_init(&result);
	result.policy = bits & 1 ? &policy : NULL;
	result.status = (enum status)(bits >> 1 & 7);
	result.exit_code = (int)piece - 2;
	result.limits_hit = data ? bits : 0;
	stream_init(&result.out, max);
	stream_init(&result.err_out, 1 << 20);
	add_pieces(&result.out, text[0], len[0], piece);
	add_pieces(&result.err_out, text[1], len[1], piece);
	struct violation violation = { "file", text[3], bits & 16 ? text[2] : NULL, text[4],
		text[5], 1, true, bits & 32 ? text[3] : NULL };
	result_violation(&result, &violation);
	result_warning(&result, text[4], text[2]);
	if (bits & 64) {
		err_set(&result.error, ERR_policy_invalid, (int)piece, "%s", text[2]);
		err_at(&result.error, text[3], (int)max, (int)piece);
	}

	struct buf out = { 0 };
	bool pretty = bits & 128;
	NEED(result_write(&result, pretty, &out) == 0);
	check_line(&out, pretty);
	json_t *json = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	NEED(json_is_object(json));
	check_stream(json, "stdout", "stdout_encoding", &result.out, text[0], len[0]);
	check_stream(json, "stderr", "stderr_encoding", &result.err_out, text[1], len[1]);
	json_t *target =
		json_object_get(json_array_get(json_object_get(json, "violations"), 0), "target");
	if (!(bits & 16))
		NEED(json_is_null(target));
	else if (utf8_valid(text[2], strlen(text[2])) && strlen(text[2]) <= RESULT_TEXT_MAX)
		NEED(strcmp(json_string_value(target), text[2]) == 0);
	json_decref(json);
	buf_free(&out);
	NEED(result_words(&result, &out) == 0);
	for (size_t i = 0; i < out.len; i++)
		NEED(out.data[i] == '\n' || (unsigned char)out.data[i] >= 0x20);
	buf_free(&out);
	int status = result_exit_status(&result);
	NEED(status >= 0 && status <= 255 && (result.status != STATUS_ERROR || status >= 125));
	result_free(&result);
	for (int i = 0; i < 6; i++)
		free(text[i]);
	return 0;
}
