/*
 * load: which texts make up a policy, in which order, and from there to the value. Each file is
 * merged once, bases before what extends them; a file that -p names is merged where -p says.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fd.h"
#include "policy/build.h"
#include "policy/check.h"
#include "policy/idn.h"
#include "policy/merge.h"
#include "policy/ready.h"
#include "policy/source.h"

static int visit(struct loader *l, struct source_file *file);

static bool same_file(const struct source_file *a, const struct source_file *b)
{
	return a->ino == b->ino && a->dev == b->dev && a->ino != 0;
}

/* A file that extends itself, mostly one that wanted the shipped policy of its own name. */
static int extends_itself(struct loader *l, const struct source_file *again, const struct node *at)
{
	const char *dirs[3];
	source_dirs(l, dirs);
	node_error(at, false, l->err, "'%s' is this file itself", at->text);
	for (size_t i = 0; i < 3 && !source_is_file(at->text); i++) {
		struct stat st;
		const char *other =
			dirs[i] ? arena_printf(l->arena, "%s/%s.yaml", dirs[i], at->text) : NULL;
		if (other && stat(other, &st) == 0 &&
			!(st.st_dev == again->dev && st.st_ino == again->ino))
			return err_hint_set(l->err,
				"give this file another name, or extend the other one by its "
				"path: extends: [%s]",
				other);
	}
	return err_hint_set(l->err, "take it out of extends");
}

static int cycle(struct loader *l, const struct source_file *again, const struct node *at)
{
	if (same_file(l->chain[l->depth - 1], again))
		return extends_itself(l, again, at);
	AUTO_BUF chain = { .max = 400 };
	int i = 0;
	while (!same_file(l->chain[i], again))
		i++;
	for (; i < l->depth; i++)
		buf_addf(&chain, "%s -> ", l->chain[i]->source.file);
	return node_error(at, false, l->err, "extends goes round in a circle: %s%s",
		buf_text(&chain), again->source.file);
}

/* One element of extends. */
static int extend(struct loader *l, const struct node *at)
{
	struct source_file *file = ARENA_NEW(l->arena, struct source_file);
	AUTO_FD fd = -1;
	if (source_open(l, at->text, at, file, &fd) < 0)
		return -1;
	for (int i = 0; i < l->depth; i++)
		if (same_file(l->chain[i], file))
			return cycle(l, file, at);
	for (size_t i = 0; i < l->count; i++)
		if (same_file(l->files[i], file))
			return 0;
	if (l->depth > POLICY_EXTENDS_MAX)
		return node_error(
			at, false, l->err, "extends is more than %d deep", POLICY_EXTENDS_MAX);
	if (source_read(l, fd, file) < 0)
		return -1;
	return visit(l, file);
}

/* Parse and check a file whose text is there, then what it extends; last, take its own place. */
static int visit(struct loader *l, struct source_file *file)
{
	file->root = ready_tree(l->arena, &file->source, file->text, file->len);
	if (!file->root &&
		tree_parse(l->arena, &file->source, file->text, file->len, &file->root, l->err) < 0)
		return -1;
	if (idn_document(l->arena, file->root, l->err) < 0 ||
		check_document(file->root, l->err) < 0)
		return -1;
	const struct node *extends = node_get(file->root, "extends");
	l->chain[l->depth++] = file;
	for (const struct node *at = extends ? extends->first : NULL; at; at = at->next)
		if (extend(l, at) < 0)
			return -1;
	l->depth--;
	if (l->count >= SOURCE_FILES_MAX)
		return node_error(file->root, false, l->err, "more than %d files in one policy",
			SOURCE_FILES_MAX);
	*(struct source_file **)arena_push(l->arena, &l->files, &l->count, sizeof file) = file;
	return 0;
}

/* A policy named on the command line. */
static int visit_named(struct loader *l, const char *name)
{
	struct source_file *file = ARENA_NEW(l->arena, struct source_file);
	AUTO_FD fd = -1;
	if (source_open(l, name, NULL, file, &fd) < 0)
		return -1;
	for (size_t i = 0; i < l->count; i++) {
		if (!same_file(l->files[i], file))
			continue;
		struct source_file *moved = l->files[i];
		memmove(&l->files[i], &l->files[i + 1], (l->count - i - 1) * sizeof *l->files);
		l->files[l->count - 1] = moved;
		return 0;
	}
	if (source_read(l, fd, file) < 0)
		return -1;
	return visit(l, file);
}

/* "/a/build.yaml" -> "build": the name of a policy that does not say one. */
static const char *stem(struct arena *arena, const char *file)
{
	const char *slash = strrchr(file, '/');
	const char *name = slash ? slash + 1 : file;
	const char *dot = strrchr(name, '.');
	return dot && dot != name ? arena_strndup(arena, name, (size_t)(dot - name)) : name;
}

/* From the ordered, checked files to the value. */
static int finish(struct loader *l, struct policy *p, const struct policy_override *overrides,
	size_t override_count)
{
	struct policy_tree *tree = ARENA_NEW(l->arena, struct policy_tree);
	/* An override is the only thing that may stand at the root without a file. */
	tree->root = node_map(l->arena, NULL);
	p->tree = tree;
	p->sources = ARENA_ARRAY(l->arena, l->count, const char *);
	p->texts = ARENA_ARRAY(l->arena, l->count, struct policy_text);
	for (size_t i = 0; i < l->count; i++) {
		p->texts[i] = (struct policy_text){ l->files[i]->text, l->files[i]->len };
		p->sources[p->source_count++] = l->files[i]->source.file;
		if (merge_document(tree->root, l->files[i]->root, l->err) < 0)
			return -1;
	}
	p->name = stem(l->arena, p->sources[p->source_count - 1]);
	for (size_t i = 0; i < override_count; i++)
		if (merge_override(l->arena, tree->root, &overrides[i], source_cwd(l), l->err) < 0)
			return -1;
	struct build b = { .policy = p, .env = l->env, .err = l->err };
	return build_policy(&b);
}

int policy_load(const char *const *names, size_t count, const struct policy_override *overrides,
	size_t override_count, const struct policy_env *env, struct policy *ret_policy,
	struct err *err)
{
	static const char *const default_name[] = { "default" };
	struct policy p = { 0 };
	struct loader l = { .arena = &p.arena, .env = env, .err = err };
	int r = 0;
	if (count == 0) {
		names = default_name;
		count = 1;
	}
	for (size_t i = 0; i < count && r == 0; i++)
		r = visit_named(&l, names[i]);
	if (r == 0)
		r = finish(&l, &p, overrides, override_count);
	if (r < 0) {
		arena_free(&p.arena);
		return -1;
	}
	*ret_policy = p;
	return 0;
}

int policy_parse_over(const char *text, size_t len, const char *file,
	const struct policy_override *overrides, size_t override_count,
	const struct policy_env *env, struct policy *ret_policy, struct err *err)
{
	struct policy p = { 0 };
	struct loader l = { .arena = &p.arena, .env = env, .err = err };
	struct source_file *source = ARENA_NEW(l.arena, struct source_file);
	source->source.file = file;
	source->source.dir = source_dir(&l, file);
	source->text = text;
	source->len = len;
	if (visit(&l, source) < 0 || finish(&l, &p, overrides, override_count) < 0) {
		arena_free(&p.arena);
		return -1;
	}
	*ret_policy = p;
	return 0;
}

int policy_parse(const char *text, size_t len, const char *file, const struct policy_env *env,
	struct policy *ret_policy, struct err *err)
{
	return policy_parse_over(text, len, file, NULL, 0, env, ret_policy, err);
}

void policy_free(struct policy *policy)
{
	arena_free(&policy->arena);
	memset(policy, 0, sizeof *policy);
}

bool policy_best_effort(const struct policy *policy, const char *name)
{
	for (size_t i = 0; i < policy->best_effort_count; i++)
		if (strcmp(policy->best_effort[i].value, name) == 0)
			return true;
	return false;
}
