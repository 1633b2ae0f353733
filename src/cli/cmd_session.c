/*
 * cmd_session: `agentbox session`: making, listing and removing sessions. What one is, is in
 * workspace/session.h. A sub-command is a row of the table below, and says which of the command's
 * options are its own.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/files.h"
#include "workspace/state.h"

/* `words` is what follows the sub-command, NULL-terminated; `count` of them. */
typedef int sub_function(
	const struct options *options, char *const *words, size_t count, struct err *err);

static sub_function run_new, run_ls, run_rm;

static const struct sub {
	const char *name;
	sub_function *run;
	enum option_id options[3]; /* beside --help; OPTION_any_help ends them */
} subs[] = {
	{ "new", run_new, { OPTION_session_policy, OPTION_session_workspace, OPTION_any_help } },
	{ "ls", run_ls, { OPTION_session_json, OPTION_any_help } },
	{ "rm", run_rm, { OPTION_any_help } },
};

#define SUB_COUNT (sizeof subs / sizeof *subs)

static const struct sub *find_sub(const char *word, struct err *err)
{
	const char *names[SUB_COUNT];
	for (size_t i = 0; i < SUB_COUNT; i++) {
		if (strcmp(subs[i].name, word) == 0)
			return &subs[i];
		names[i] = subs[i].name;
	}
	err_set(err, ERR_usage, 0, "session has no command \"%.100s\"", word);
	const char *nearest = nearest_word(word, names, SUB_COUNT);
	if (nearest)
		err_hint_set(err, "did you mean `agentbox session %s`?", nearest);
	return NULL;
}

static int check_options(const struct sub *sub, const struct options *options, struct err *err)
{
	for (size_t i = 0; i < options->use_count; i++) {
		const enum option_id *own = sub->options;
		while (*own != OPTION_any_help && *own != options->uses[i].id)
			own++;
		if (*own == OPTION_any_help)
			return err_set(err, ERR_usage, 0, "session %s has no option --%s",
				sub->name, option_info(options->uses[i].id)->name);
	}
	return 0;
}

int cmd_session(const struct cli *cli, struct err *err)
{
	const struct options *options = &cli->options;
	if (options->arg_count == 0)
		return err_set(err, ERR_usage, 0, "session needs a command: new, exec, ls or rm");
	const struct sub *sub = find_sub(options->args[0], err);
	if (!sub || check_options(sub, options, err) < 0)
		return -1;
	return sub->run(options, options->args + 1, options->arg_count - 1, err);
}

/*
 * The policy as one document, without `extends`; it must load again to the same, as every exec
 * loads it.
 */
static int freeze(const struct policy *policy, const struct policy_env *env, struct buf *ret_text,
	struct err *err)
{
	struct policy again;
	AUTO_BUF text = { .max = POLICY_FILE_MAX }, second = { .max = 2 * POLICY_FILE_MAX };
	AUTO_BUF first = { .max = 2 * POLICY_FILE_MAX };
	if (policy_show_yaml(policy, &text) < 0 || text.full)
		return err_set(err, ERR_policy_invalid, 0,
			"the policy with all that it extends is larger than %zu bytes",
			POLICY_FILE_MAX);
	if (policy_parse(buf_text(&text), text.len, "session", env, &again, err) < 0)
		return -1;
	bool same = policy_show_json(policy, &first) == 0 && policy_show_json(&again, &second) == 0;
	policy_free(&again);
	/* What follows the policy in the JSON is where each line is from, which is another place.
	 */
	const char *end = same ? strstr(buf_text(&first), ",\"origin\":") : NULL;
	if (!end || strncmp(buf_text(&first), buf_text(&second), (size_t)(end - first.data)) != 0)
		return err_set(err, ERR_internal, 0, "the policy does not load again to the same");
	*ret_text = text;
	text = (struct buf){ 0 };
	return 0;
}

static size_t policies_of(
	const struct options *options, struct arena *arena, const char *const **ret_names)
{
	const char **names = ARENA_ARRAY(arena, options->use_count + 1, const char *);
	size_t count = 0;
	for (size_t i = 0; i < options->use_count; i++)
		if (options->uses[i].id == OPTION_session_policy)
			names[count++] = options->uses[i].value;
	*ret_names = names;
	return count;
}

static int make(
	const struct options *options, const char *name, struct arena *arena, struct err *err)
{
	struct policy_env env;
	struct policy policy;
	const char *const *names;
	AUTO_BUF text = { 0 };
	char sha256[POLICY_SHA256_SIZE];
	struct session_source source = { .name = name };
	size_t count = policies_of(options, arena, &names);
	paths_policy_env(arena, &env);
	if (paths_workspace(arena, options_value(options, OPTION_session_workspace),
		    &source.workspace, err) < 0 ||
		policy_load(names, count, NULL, 0, &env, &policy, err) < 0)
		return -1;
	int r = freeze(&policy, &env, &text, err);
	if (r == 0) {
		source.policy = policy.name ? policy.name : "";
		source.policy_text = buf_text(&text);
		policy_sha256(&policy, sha256);
		source.policy_sha256 = sha256;
		source.sources = policy.sources;
		source.source_count = policy.source_count;
		r = session_new(state_path(arena), &source, err);
	}
	policy_free(&policy);
	return r;
}

static int run_new(const struct options *options, char *const *words, size_t count, struct err *err)
{
	struct arena arena = { 0 };
	if (count != 1)
		return err_set(err, ERR_usage, 0, "session new takes one name");
	int r = make(options, words[0], &arena, err);
	arena_free(&arena);
	return r < 0 ? files_answer(err) : CLI_YES;
}

/* "3 s", "12 min", "5 h", "9 d"; "-" for what is not known. */
static void put_age(struct buf *out, int64_t since_ns, int64_t now_ns)
{
	int64_t seconds = (now_ns - since_ns) / 1000000000;
	if (since_ns == 0)
		buf_adds(out, "-");
	else if (seconds < 120)
		buf_addf(out, "%" PRId64 " s", seconds < 0 ? 0 : seconds);
	else if (seconds < 7200)
		buf_addf(out, "%" PRId64 " min", seconds / 60);
	else if (seconds < 172800)
		buf_addf(out, "%" PRId64 " h", seconds / 3600);
	else
		buf_addf(out, "%" PRId64 " d", seconds / 86400);
}

#define COLUMNS 6

/* The cells of one line, in `out` one behind the other with a NUL behind each. */
static void put_cells(
	const struct session *session, int64_t now_ns, struct buf *out, size_t at[COLUMNS])
{
	const char *texts[COLUMNS] = { session->name, session_state_name(session->state),
		session->policy, NULL, NULL, session->workspace };
	for (size_t i = 0; i < COLUMNS; i++) {
		const char *text = texts[i] ? texts[i] : "-";
		at[i] = out->len;
		if (i == 3 || i == 4)
			put_age(out, i == 3 ? session->created_ns : session->used_ns, now_ns);
		else
			buf_add_visible(out, text, strlen(text), false);
		buf_add(out, "", 1);
	}
}

static void put_table(const struct session *list, size_t count, struct buf *out)
{
	static const char heads[] = "NAME\0STATE\0POLICY\0AGE\0UNUSED\0WORKSPACE";
	static const size_t head_at[COLUMNS] = { 0, 5, 11, 18, 22, 29 };
	size_t widths[COLUMNS] = { 4, 5, 6, 3, 6, 9 };
	struct arena arena = { 0 };
	struct timespec now;
	AUTO_BUF cells = { 0 };
	size_t(*at)[COLUMNS] = arena_array(&arena, count + 1, sizeof *at);
	clock_gettime(CLOCK_REALTIME, &now);
	for (size_t i = 0; i < count; i++) {
		put_cells(&list[i], (int64_t)now.tv_sec * 1000000000 + now.tv_nsec, &cells, at[i]);
		for (size_t k = 0; k < COLUMNS; k++) {
			size_t len = strlen(buf_text(&cells) + at[i][k]);
			widths[k] = len > widths[k] ? len : widths[k];
		}
	}
	for (size_t i = 0; i <= count; i++)
		for (size_t k = 0; k < COLUMNS; k++) {
			const char *text =
				i == 0 ? heads + head_at[k] : buf_text(&cells) + at[i - 1][k];
			if (k == COLUMNS - 1)
				buf_addf(out, "%s\n", text);
			else
				buf_addf(out, "%-*s  ", (int)widths[k], text);
		}
	arena_free(&arena);
}

static void put_time(struct json *json, const char *key, int64_t ns)
{
	if (ns)
		json_put_thousandths(json, key, (uint64_t)ns / 1000000);
	else
		json_put_null(json, key);
}

static void put_bytes(struct json *json, const char *key, const char *text)
{
	if (text)
		json_put_bytes(json, key, text, strlen(text));
	else
		json_put_null(json, key);
}

static int put_json(const struct session *list, size_t count, struct buf *out)
{
	struct json json;
	json_begin(&json, out, false);
	json_open_object(&json, NULL);
	json_put_text(&json, "agentbox", AGENTBOX_VERSION);
	json_open_array(&json, "sessions");
	for (size_t i = 0; i < count; i++) {
		json_open_object(&json, NULL);
		put_bytes(&json, "name", list[i].name);
		json_put_text(&json, "state", session_state_name(list[i].state));
		put_bytes(&json, "workspace", list[i].workspace);
		put_bytes(&json, "policy", list[i].policy);
		put_time(&json, "created", list[i].created_ns);
		put_time(&json, "used", list[i].used_ns);
		json_close(&json);
	}
	json_close(&json);
	json_close(&json);
	return json_end(&json);
}

static int run_ls(const struct options *options, char *const *words, size_t count, struct err *err)
{
	struct arena arena = { 0 };
	struct session *list;
	size_t sessions;
	AUTO_BUF out = { 0 };
	(void)words;
	if (count != 0)
		return err_set(err, ERR_usage, 0, "session ls takes no name");
	int r = session_list(state_path(&arena), &arena, &list, &sessions, err);
	if (r == 0 && options_has(options, OPTION_session_json))
		r = put_json(list, sessions, &out);
	else if (r == 0)
		put_table(list, sessions, &out);
	arena_free(&arena);
	if (r < -1)
		return err_set(err, ERR_internal, -r, "the list is too large");
	return r < 0 || say_out(&out, err) < 0 ? -1 : CLI_YES;
}

static int run_rm(const struct options *options, char *const *words, size_t count, struct err *err)
{
	struct arena arena = { 0 };
	int status = CLI_YES;
	(void)options;
	if (count == 0)
		return err_set(err, ERR_usage, 0, "session rm takes at least one name");
	const char *state = state_path(&arena);
	/* One that cannot be removed keeps no other. */
	for (size_t i = 0; i < count && status >= 0; i++)
		if (session_remove(state, words[i], err) < 0)
			status = files_answer(err) < 0 ? -1 : CLI_NO;
	arena_free(&arena);
	return status;
}
