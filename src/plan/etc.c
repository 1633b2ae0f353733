/* etc: the box's /etc: a few files of its own making, and the host's entries that programs need. */
#define _GNU_SOURCE
#include "plan/build.h"

#include <string.h>
#include <sys/stat.h>

static void file(struct builder *builder, const char *target, const char *text)
{
	struct plan_op *op = build_op(builder, OP_FILE, target, "made");
	op->mode = S_IFREG | 0644;
	op->data = text;
	op->len = strlen(text);
}

static void make_users(struct builder *builder)
{
	struct plan *plan = builder->plan;
	const struct host *host = builder->host;
	const char *home = builder->policy->fs.home == HOME_PRIVATE ? host->home : "/";
	/* The caller's line comes before "nobody", whose number it may have. */
	file(builder, "etc/passwd",
		arena_printf(&plan->arena,
			"root:x:0:0:root:/root:/usr/sbin/nologin\n"
			"%s:x:%u:%u:%s:%s:/bin/sh\n"
			"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
			host->user, plan->uid, plan->gid, host->user, home));
	file(builder, "etc/group",
		arena_printf(&plan->arena, "root:x:0:\n%s:x:%u:\nnogroup:x:65534:\n", host->group,
			plan->gid));
}

static void make_network(struct builder *builder)
{
	file(builder, "etc/hosts",
		"127.0.0.1 localhost agentbox\n"
		"::1 localhost ip6-localhost ip6-loopback\n");
	file(builder, "etc/nsswitch.conf",
		"passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
		"networks: files\nprotocols: files\nservices: files\n");
	const char *resolver = "# this box has no network\n";
	if (builder->policy->network == NETWORK_HOST)
		resolver = builder->host->resolv_conf;
	else if (builder->plan->reach.rule_count)
		resolver = "# agentbox: only names that the policy lists\n"
			   "nameserver " NETWORK_RESOLVER "\n";
	file(builder, "etc/resolv.conf", resolver);
}

void build_etc(struct builder *builder)
{
	const struct host *host = builder->host;
	struct plan_op *dir = build_op(builder, OP_DIR, "etc", "made");
	dir->mode = S_IFDIR | 0755;
	make_users(builder);
	make_network(builder);
	for (size_t i = 0; i < host->etc_count; i++) {
		const struct host_path *fact = &host->etc[i];
		const char *target = fact->path + 1;
		if (fact->errnum)
			continue;
		if (fact->link) {
			build_op(builder, OP_LINK, target, "system")->source = fact->link;
			continue;
		}
		bool is_dir = S_ISDIR(fact->mode);
		struct plan_op *point =
			build_op(builder, is_dir ? OP_DIR : OP_FILE, target, "mount point");
		point->mode = is_dir ? S_IFDIR | 0755 : S_IFREG | 0644;
		point->data = "";
		struct plan_op *op = build_op(builder, OP_BIND, target, "system");
		op->source = fact->path;
		op->mode = fact->mode & S_IFMT;
	}
}
