/* build: from the merged document to struct policy. */
#define _GNU_SOURCE
#include "policy/build.h"

#include <string.h>

#include "policy/host.h"
#include "policy/path.h"
#include "policy/value.h"

struct node *build_field(struct build *b, struct node *map, enum key_id id)
{
	const struct key *key = key_row(id);
	struct node *node = node_get(map, key_name(key));
	if (node || !map || !key->def[0] || !strcmp(key->def, "required"))
		return node;
	node = node_scalar(&b->policy->arena, NULL, key->def);
	node->key = key_name(key);
	node_append(map, node);
	return node;
}

int build_required(struct build *b, struct node *map, enum key_id id, struct node **ret)
{
	*ret = node_get(map, key_name(key_row(id)));
	if (*ret)
		return 0;
	return node_error(map, true, b->err, "the key '%s' is missing here", key_name(key_row(id)));
}

const char *build_text(struct build *b, struct node *map, enum key_id id)
{
	struct node *node = build_field(b, map, id);
	return node ? node->text : NULL;
}

void build_number(struct build *b, struct node *map, enum key_id id, struct policy_number *ret)
{
	struct node *node = build_field(b, map, id);
	if (!node)
		return;
	value_number(key_row(id)->type, node->text, &ret->value);
	ret->at = node_origin(node);
}

int build_word(struct build *b, struct node *map, enum key_id id, struct origin *ret_at)
{
	struct node *node = build_field(b, map, id);
	if (!node || node->kind != NODE_SCALAR)
		return -1;
	if (ret_at)
		*ret_at = node_origin(node);
	size_t len = strlen(node->text);
	int i = 0;
	for (const char *p = key_row(id)->words; *p; i++) {
		size_t n = strcspn(p, "|");
		if (n == len && memcmp(p, node->text, n) == 0)
			return i;
		p += n + (p[n] == '|');
	}
	return -1;
}

void build_words(struct build *b, struct node *map, enum key_id id, struct policy_word **ret,
	size_t *ret_count)
{
	const struct node *list = node_get(map, key_name(key_row(id)));
	if (!list || !list->count)
		return;
	struct policy_word *words = ARENA_ARRAY(&b->policy->arena, list->count, struct policy_word);
	size_t n = 0;
	for (const struct node *node = list->first; node; node = node->next)
		words[n++] = (struct policy_word){ .value = node->text, .at = node_origin(node) };
	*ret = words;
	*ret_count = n;
}

int build_absolute(struct build *b, struct node *node)
{
	char shown[SHOWN_MAX];
	const char *why = NULL;
	const char *path = path_absolute(&b->policy->arena, node->text, b->env->home,
		node->source ? node->source->dir : NULL, &why);
	if (!path)
		return node_error(
			node, false, b->err, "'%s': %s", text_shown(node->text, shown), why);
	node->text = path;
	return 0;
}

void build_env(struct build *b, struct node *map, struct policy_env_set **ret, size_t *ret_count)
{
	if (!map || !map->count)
		return;
	struct policy_env_set *vars =
		ARENA_ARRAY(&b->policy->arena, map->count, struct policy_env_set);
	size_t n = 0;
	for (const struct node *node = map->first; node; node = node->next)
		vars[n++] = (struct policy_env_set){
			.name = node->key, .value = node->text, .at = node_origin(node)
		};
	*ret = vars;
	*ret_count = n;
}

static int refuse_dangerous(
	struct build *b, const struct node *node, const char *path, const char *why)
{
	char shown[SHOWN_MAX];
	node_error(node, false, b->err, "granting '%s' is dangerous: %s", text_shown(path, shown),
		why);
	if (b->err)
		b->err->code = ERR_dangerous_grant;
	return -1;
}

static int build_grant(struct build *b, struct node *element, struct policy_path *ret)
{
	struct node *path = element;
	if (element->kind == NODE_MAP) {
		if (build_required(b, element, K_fs_read_path, &path) < 0)
			return -1;
		const struct node *dangerous = node_get(element, "dangerous");
		ret->dangerous = dangerous && strcmp(dangerous->text, "true") == 0;
	}
	ret->given = path->text;
	if (build_absolute(b, path) < 0)
		return -1;
	ret->path = path->text;
	ret->at = node_origin(element);
	const char *why = ret->dangerous ? NULL : policy_dangerous(ret->path, b->env->home);
	return why ? refuse_dangerous(b, path, ret->path, why) : 0;
}

static int build_grants(struct build *b, struct node *fs, enum key_id id, struct policy_path **ret,
	size_t *ret_count)
{
	struct node *list = node_get(fs, key_name(key_row(id)));
	if (!list || !list->count)
		return 0;
	struct policy_path *paths = ARENA_ARRAY(&b->policy->arena, list->count, struct policy_path);
	size_t n = 0;
	for (struct node *node = list->first; node; node = node->next)
		if (build_grant(b, node, &paths[n++]) < 0)
			return -1;
	*ret = paths;
	*ret_count = n;
	return 0;
}

static int build_patterns(struct build *b, struct node *fs, enum key_id id,
	struct policy_pattern **ret, size_t *ret_count)
{
	char shown[SHOWN_MAX];
	struct node *list = node_get(fs, key_name(key_row(id)));
	if (!list || !list->count)
		return 0;
	struct policy_pattern *patterns =
		ARENA_ARRAY(&b->policy->arena, list->count, struct policy_pattern);
	size_t n = 0;
	for (struct node *node = list->first; node; node = node->next, n++) {
		const char *why = NULL;
		const char *clean =
			pattern_clean(&b->policy->arena, node->text, b->env->home, &why);
		if (!clean)
			return node_error(node, false, b->err, "'%s': %s",
				text_shown(node->text, shown), why);
		node->text = clean;
		patterns[n] = (struct policy_pattern){
			.pattern = clean, .literal = pattern_literal(clean), .at = node_origin(node)
		};
	}
	*ret = patterns;
	*ret_count = n;
	return 0;
}

/* A map at the top that is always there, so that defaults can be hung in. */
static struct node *section(struct build *b, struct node *root, enum key_id id)
{
	struct node *map = node_get(root, key_name(key_row(id)));
	if (!map) {
		map = node_map(&b->policy->arena, NULL);
		map->key = key_name(key_row(id));
		node_append(root, map);
	}
	return map;
}

static int build_filesystem(struct build *b, struct node *root)
{
	struct policy *p = b->policy;
	struct node *fs = section(b, root, K_filesystem);
	struct node *dir = build_field(b, fs, K_fs_root);
	if (build_word(b, fs, K_fs_root, &p->fs.root_at) == 0) {
		p->fs.root = ROOT_HOST;
	} else {
		if (build_absolute(b, dir) < 0)
			return -1;
		p->fs.root = ROOT_DIRECTORY;
		p->fs.root_dir = dir->text;
		const char *why = policy_dangerous(dir->text, b->env->home);
		if (why)
			return refuse_dangerous(b, dir, dir->text, why);
	}
	p->fs.workspace =
		(enum policy_workspace)build_word(b, fs, K_fs_workspace, &p->fs.workspace_at);
	p->fs.backend = (enum policy_backend)build_word(b, fs, K_fs_backend, &p->fs.backend_at);
	p->fs.scratch = (enum policy_scratch)build_word(b, fs, K_fs_scratch, &p->fs.scratch_at);
	p->fs.home = (enum policy_home)build_word(b, fs, K_fs_home, &p->fs.home_at);
	if (build_grants(b, fs, K_fs_read, &p->fs.read, &p->fs.read_count) < 0 ||
		build_grants(b, fs, K_fs_write, &p->fs.write, &p->fs.write_count) < 0 ||
		build_patterns(b, fs, K_fs_hide, &p->fs.hide, &p->fs.hide_count) < 0 ||
		build_patterns(b, fs, K_fs_sensitive, &p->fs.sensitive, &p->fs.sensitive_count) < 0)
		return -1;
	return build_patterns(b, fs, K_fs_protect, &p->fs.protect, &p->fs.protect_count);
}

static int build_host(struct build *b, struct node *element, struct policy_host *ret)
{
	struct host_entry entry;
	struct node *node = element, *any = NULL;
	if (element->kind == NODE_MAP) {
		if (build_required(b, element, K_network_allow_host, &node) < 0)
			return -1;
		any = node_get(element, key_name(key_row(K_network_allow_any_name)));
	}
	host_parse(node->text, &entry);
	ret->any_name = any && strcmp(any->text, "true") == 0;
	if (ret->any_name && (entry.address || entry.host_loopback)) {
		node_error(any, true, b->err,
			"any_name switches nothing off for %s: only names are held against what a "
			"connection says that it is for",
			entry.address ? "an address" : entry.host);
		return err_hint_set(b->err, "write the entry without any_name");
	}
	ret->host = arena_strdup(&b->policy->arena, entry.host);
	ret->wildcard = entry.wildcard;
	ret->address = entry.address;
	ret->prefix = entry.prefix;
	ret->host_loopback = entry.host_loopback;
	ret->port_count = entry.port_count;
	for (size_t i = 0; i < entry.port_count; i++)
		ret->ports[i] = entry.ports[i];
	ret->given = node->text;
	ret->at = node_origin(element);
	return 0;
}

/* A port is published once, and one port of the host leads to one port of the box. */
static int check_publish(struct build *b, const struct node *node, const struct policy_publish *new)
{
	const struct policy *p = b->policy;
	if (p->publish_count == POLICY_PUBLISH_MAX)
		return node_error(node, false, b->err, "'%s' has more than %d elements",
			key_row(K_network_publish)->path, POLICY_PUBLISH_MAX);
	for (size_t i = 0; i < p->publish_count; i++) {
		const struct policy_publish *old = &p->publish[i];
		bool same = old->port == new->port;
		if (!same && (!new->host_port || old->host_port != new->host_port))
			continue;
		char place[SHOWN_MAX];
		text_shown(old->at.file, place);
		return node_error(node, false, b->err,
			same ? "port %d of the box is published a second time (%s:%d)"
			     : "port %d of the host is taken a second time (%s:%d)",
			same ? new->port : new->host_port, place, old->at.line);
	}
	return 0;
}

static int build_publish(struct build *b, const struct node *network)
{
	struct policy *p = b->policy;
	const struct node *list = node_get(network, key_name(key_row(K_network_publish)));
	if (!list || !list->count)
		return 0;
	p->publish = ARENA_ARRAY(&p->arena, POLICY_PUBLISH_MAX, struct policy_publish);
	for (const struct node *node = list->first; node; node = node->next) {
		struct policy_publish new = { .given = node->text, .at = node_origin(node) };
		publish_parse(node->text, &new.port, &new.host_port);
		if (check_publish(b, node, &new) < 0)
			return -1;
		p->publish[p->publish_count++] = new;
	}
	return 0;
}

static int build_network(struct build *b, struct node *root)
{
	struct policy *p = b->policy;
	struct node *network = build_field(b, root, K_network);
	p->network_at = node_origin(network);
	if (network->kind == NODE_SCALAR) {
		p->network = (enum policy_network)build_word(b, root, K_network, NULL);
		return 0;
	}
	const struct node *allow = node_get(network, "allow");
	if (allow && allow->count) {
		p->network = NETWORK_ALLOW;
		p->allow = ARENA_ARRAY(&p->arena, allow->count, struct policy_host);
	}
	for (struct node *node = allow ? allow->first : NULL; node; node = node->next)
		if (build_host(b, node, &p->allow[p->allow_count++]) < 0)
			return -1;
	return build_publish(b, network);
}

static void build_limits(struct build *b, struct node *root)
{
	struct policy_limits *l = &b->policy->limits;
	struct node *limits = section(b, root, K_limits);
	build_number(b, limits, K_limits_wall, &l->wall_us);
	build_number(b, limits, K_limits_cpu, &l->cpu_us);
	build_number(b, limits, K_limits_cpus, &l->cpus_milli);
	build_number(b, limits, K_limits_memory, &l->memory);
	build_number(b, limits, K_limits_pids, &l->pids);
	build_number(b, limits, K_limits_disk, &l->disk);
	build_number(b, limits, K_limits_output, &l->output);
	build_number(b, limits, K_limits_open_files, &l->open_files);
	build_number(b, limits, K_limits_file_size, &l->file_size);
	l->output_action = (enum policy_output_action)build_word(
		b, limits, K_limits_output_action, &l->output_action_at);
}

static int build_syscalls(struct build *b, struct node *root)
{
	struct policy *p = b->policy;
	struct node *sys = section(b, root, K_syscalls);
	p->profile = (enum policy_profile)build_word(b, sys, K_sys_profile, &p->profile_at);
	p->on_violation = (enum policy_on_violation)build_word(
		b, sys, K_sys_on_violation, &p->on_violation_at);
	build_words(b, sys, K_sys_allow, &p->sys_allow, &p->sys_allow_count);
	build_words(b, sys, K_sys_deny, &p->sys_deny, &p->sys_deny_count);
	p->nesting = build_word(b, root, K_nesting, &p->nesting_at) == 1;
	p->keep_processes = build_word(b, section(b, root, K_session), K_session_processes,
				    &p->keep_processes_at) == 1;
	const struct node *allow = node_get(sys, "allow"), *deny = node_get(sys, "deny");
	for (const struct node *a = allow ? allow->first : NULL; a; a = a->next)
		for (const struct node *d = deny ? deny->first : NULL; d; d = d->next)
			if (strcmp(a->text, d->text) == 0)
				return node_error(a, false, b->err,
					"'%s' is also in syscalls.deny (%s:%d)", a->text,
					d->source->file, d->line);
	return 0;
}

static int build_audit(struct build *b, struct node *root)
{
	struct policy *p = b->policy;
	struct node *audit = node_get(root, "audit");
	struct node *log = node_get(audit, "log");
	if (audit)
		p->audit_at = node_origin(audit);
	if (log) {
		if (build_absolute(b, log) < 0)
			return -1;
		p->audit_log = log->text;
		p->audit_at = node_origin(log);
	}
	build_words(b, audit, K_audit_trace, &p->trace, &p->trace_count);
	return 0;
}

int build_policy(struct build *b)
{
	struct policy *p = b->policy;
	struct node *root = p->tree->root;
	const char *name = p->name; /* the file's, as a default */
	struct node *named = node_get(root, "name");
	if (!named) {
		named = node_scalar(&p->arena, NULL, name);
		named->key = "name";
		node_append(root, named);
	}
	p->name = named->text;
	p->description = build_text(b, root, K_description);
	if (build_filesystem(b, root) < 0 || build_network(b, root) < 0)
		return -1;
	build_limits(b, root);
	struct node *env = node_get(root, "env");
	build_words(b, env, K_env_pass, &p->env_pass, &p->env_pass_count);
	build_env(b, node_get(env, "set"), &p->env_set, &p->env_set_count);
	build_words(b, root, K_best_effort, &p->best_effort, &p->best_effort_count);
	if (build_syscalls(b, root) < 0 || build_audit(b, root) < 0 || build_secrets(b, root) < 0 ||
		build_tools(b, root) < 0 || build_code(b, root) < 0)
		return -1;
	return build_tests(b, root);
}
