/*
 * policy_fuzz: any bytes as a policy. What loads must show itself as YAML that loads again and
 * shows itself the same, and as JSON.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool so)
{
	if (!so)
		abort();
}

/* Without the comments, which name other lines after the second loading. */
static void show(const struct policy *policy, struct buf *out)
{
	AUTO_BUF yaml = { 0 };
	must(policy_show_yaml(policy, &yaml) == 0);
	for (const char *line = buf_text(&yaml); *line;) {
		size_t len = strcspn(line, "\n");
		size_t text = len;
		while (text > 0 && strncmp(line + text, "  # ", 4) != 0)
			text--;
		must(text > 0);
		buf_add(out, line, text);
		buf_adds(out, "\n");
		line += len + (line[len] == '\n');
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* No directory of policies: `extends` finds nothing, whatever the host has. */
	static const struct policy_env env = { .home = "/home/fuzz" };
	struct policy policy, again;
	struct err err = { 0 };
	if (policy_parse((const char *)data, size, "/fuzz/input.yaml", &env, &policy, &err) < 0) {
		must(err.code != ERR_none && err.text[0] && utf8_valid(err.text, strlen(err.text)));
		return 0;
	}
	AUTO_BUF first = { 0 }, second = { 0 }, json = { 0 };
	show(&policy, &first);
	must(policy_show_json(&policy, &json) == 0);
	must(policy_parse(first.data, first.len, "/fuzz/again.yaml", &env, &again, &err) == 0);
	show(&again, &second);
	must(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	policy_free(&again);
	policy_free(&policy);
	return 0;
}
