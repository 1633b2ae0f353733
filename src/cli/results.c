/* results: kept results as commands name and show them. Changes nothing. */
#define _GNU_SOURCE
#include "cli/results.h"
#include "base/fd.h"
#include "base/sys.h"
#include "workspace/applied.h"
#include "workspace/session_layers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define ID_LEN    ((size_t)26)

bool results_is_id(const char *word)
{
	return strlen(word) == ID_LEN && word[0] <= '7' &&
	       strspn(word, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == ID_LEN;
}

/* A word that could be a pattern as well is a session's only when that exists. */
static bool is_session(const char *state, const char *word)
{
	struct session session;
	if (!session_name_valid(word) || session_open(state, word, false, &session, NULL) < 0)
		return false;
	session_close(&session);
	return true;
}

void results_choose(const struct options *options, const char *state, struct arena *arena,
	struct results_choice *ret)
{
	const char *word = options->arg_count > 0 ? options->args[0] : NULL;
	*ret = (struct results_choice){ 0 };
	if (word && results_is_id(word))
		ret->id = word;
	else if (word && is_session(state, word))
		ret->session = word;
	size_t first = ret->id || ret->session ? 1 : 0;
	size_t count = options->arg_count - first;
	if (count == 0)
		return;
	const char **patterns = ARENA_ARRAY(arena, count + 1, const char *);
	for (size_t i = 0; i < count; i++) {
		/* As shells complete them: "./a" and "dir/". */
		word = options->args[first + i];
		while (word[0] == '.' && word[1] == '/')
			word += 2;
		size_t len = strlen(word);
		while (len > 1 && word[len - 1] == '/')
			len--;
		patterns[i] = arena_strndup(arena, word, len);
	}
	ret->patterns = patterns;
}

static int open_kept(const struct results_choice *choice, const char *given, const char *state,
	struct kept *ret, struct err *err)
{
	struct arena arena = { 0 };
	const char *workspace = NULL;
	int r = choice->id ? 0 : paths_workspace(&arena, given, &workspace, err);
	if (r == 0)
		r = kept_open(state, choice->id, workspace, ret, err);
	arena_free(&arena);
	return r;
}

static const char *const *patterns_of(struct arena *arena, const struct policy_pattern *a,
	size_t a_count, const struct policy_pattern *b, size_t b_count)
{
	const char **list = ARENA_ARRAY(arena, a_count + b_count + 1, const char *);
	for (size_t i = 0; i < a_count + b_count; i++)
		list[i] = arena_strdup(arena, i < a_count ? a[i].pattern : b[i - a_count].pattern);
	return list;
}

/* The patterns of the session's policy. */
static int read_rules(const struct session *session, struct kept *kept, struct err *err)
{
	struct policy policy;
	struct policy_env env;
	struct arena arena = { 0 };
	paths_policy_env(&arena, &env);
	int r = policy_parse(
		session->policy_text, strlen(session->policy_text), "session", &env, &policy, err);
	if (r == 0) {
		kept->held = patterns_of(&kept->arena, policy.fs.hide, policy.fs.hide_count,
			policy.fs.protect, policy.fs.protect_count);
		kept->sensitive = patterns_of(
			&kept->arena, policy.fs.sensitive, policy.fs.sensitive_count, NULL, 0);
		policy_free(&policy);
	}
	arena_free(&arena);
	return r;
}

/* One layer, in the session's directory `name`, and the host's tree below it. */
static int open_layer(const struct session *session, const char *name, const char *root,
	struct kept *kept, struct err *err)
{
	const uint64_t inside = SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS;
	struct changes_layer *layer = &kept->layers[kept->layer_count++];
	*layer = (struct changes_layer){ .root = root,
		.upper = sys_openat2(session->dir, name, DIRECTORY, inside),
		.lower = sys_openat2(AT_FDCWD, root, DIRECTORY,
			SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS) };
	/* Where it was mounted overlayfs has made itself a directory. */
	char work[64];
	snprintf(work, sizeof work, "%.*swork/work", (int)(strlen(name) - strlen("upper")), name);
	AUTO_FD mounted = sys_openat2(session->dir, work, O_PATH | O_CLOEXEC, inside);
	layer->unused = mounted < 0;
	if (layer->upper < 0)
		return err_set(err, ERR_session_broken, -layer->upper,
			"the layer of the session '%s' cannot be used", session->name);
	if (layer->lower < 0)
		return err_set(err, ERR_workspace_not_found, -layer->lower,
			"the %s '%s' cannot be opened",
			kept->layer_count == 1 ? "workspace" : "repository", root);
	return 0;
}

/* The layers, while no command has them: the workspace's, and that of its repository elsewhere. */
static int open_layers(
	const struct session *session, bool looking, struct results_open *ret, struct err *err)
{
	struct kept *kept = &ret->kept;
	const char **roots;
	size_t count;
	ret->turn = openat(session->dir, "layer", DIRECTORY);
	bool taken = ret->turn >= 0 && flock(ret->turn, LOCK_EX | LOCK_NB) == 0;
	/* Of a keeper nobody could wait for the end. */
	bool kept_box = session->state == SESSION_RUNNING;
	if (!taken && !(looking && kept_box)) {
		err_set(err, ERR_session_busy, errno, "the session '%s' is in use", session->name);
		return kept_box
			       ? err_hint_set(err,
					 "its processes are kept; what keeps them ends by SIGTERM, "
					 "and leaves the session's files")
			       : -1;
	}
	if (session_layers_read(session->dir, &kept->arena, &roots, &count, err) < 0 ||
		open_layer(session, "layer/upper", session->workspace, kept, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		const char *name = arena_printf(&kept->arena, "layer.%zu/upper", i + 1);
		if (open_layer(session, name, roots[i], kept, err) < 0)
			return -1;
	}
	return 0;
}

/*
 * A session in the form of a kept result. What the host changed since the session was made is a
 * conflict, unless an apply of the session did.
 */
static int open_session(const struct results_choice *choice, const char *state,
	struct results_open *ret, struct err *err)
{
	struct kept *kept = &ret->kept;
	if (session_open(state, choice->session, false, &ret->session, err) < 0)
		return -1;
	const struct session *session = &ret->session;
	kept->id = choice->session;
	kept->dir = fcntl(session->dir, F_DUPFD_CLOEXEC, 3);
	kept->started_ns = session->created_ns;
	if (kept->dir < 0)
		return err_set(err, ERR_no_resources, errno, "fcntl");
	if (read_rules(session, kept, err) < 0 ||
		open_layers(session, choice->looking, ret, err) < 0)
		return -1;
	const struct changes_rules rules = { kept->held, kept->sensitive, true };
	if (changes_find(kept->layers, kept->layer_count, &rules, 0, &kept->changes, err) < 0)
		return -1;
	if (apply_bases(kept->layers, &kept->changes, kept->started_ns, &kept->arena, &kept->bases,
		    err) < 0)
		return -1;
	return applied_forgive(kept->dir, &kept->changes, kept->bases, kept->layers, err);
}

void results_close(struct results_open *open)
{
	bool session = open->session.dir >= 0;
	struct changes changes = open->kept.changes;
	kept_close(&open->kept);
	if (!session)
		return;
	changes_free(&changes);
	fd_close(&open->turn);
	session_close(&open->session);
}

int results_open(const struct results_choice *choice, const char *given, const char *state,
	struct results_open *ret, struct err *err)
{
	struct err own = { 0 };
	struct results_open open = {
		.kept.dir = -1, .session = { .dir = -1, .lock = -1 }, .turn = -1
	};
	int r = choice->session ? open_session(choice, state, &open, &own)
				: open_kept(choice, given, state, &open.kept, &own);
	if (r == 0) {
		*ret = open;
		return CLI_YES;
	}
	if (choice->session)
		results_close(&open);
	if (own.code == ERR_kept_not_found || own.code == ERR_session_busy) {
		say_error(&own);
		return CLI_NO;
	}
	*err = own;
	return -1;
}
