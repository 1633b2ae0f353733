/*
 * mounts_pins: what holds paths within the trees that are shown: masks over what is hidden, and
 * mounts of a path onto itself, of which each is made once however many ask for it.
 */
#define _GNU_SOURCE
#include "plan/build.h"

#include <string.h>
#include <sys/stat.h>

const struct build_grant *build_grant_of(const struct builder *builder, const char *target)
{
	const struct build_grant *found = NULL;
	for (size_t i = 0; i < builder->grant_count; i++) {
		const struct build_grant *grant = &builder->grants[i];
		if (strcmp(target, grant->target) == 0 || build_lies_in(target, grant->target))
			found = grant;
	}
	return found;
}

/* FNV-1a. */
static size_t hash(const char *text, size_t len)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < len; i++)
		sum = (sum ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
	return (size_t)(sum ^ sum >> 32);
}

/* The place of the mount at `len` bytes of target among the known ones, or that where it belongs.
 */
static uint32_t *slot_of(const struct builder *builder, const char *target, size_t len)
{
	size_t mask = builder->pins_size - 1;
	for (size_t at = hash(target, len) & mask;; at = (at + 1) & mask) {
		uint32_t *slot = &builder->pins[at];
		const char *other = *slot ? builder->ops[*slot - 1].target : NULL;
		if (!other || (strncmp(other, target, len) == 0 && other[len] == 0))
			return slot;
	}
}

/* At most half of the table is in use. */
static void grow(struct builder *builder)
{
	uint32_t *old = builder->pins;
	size_t size = builder->pins_size;
	builder->pins_size = size ? 2 * size : 256;
	builder->pins = ARENA_ARRAY(&builder->plan->arena, builder->pins_size, uint32_t);
	for (size_t i = 0; i < size; i++) {
		if (!old[i])
			continue;
		const char *target = builder->ops[old[i] - 1].target;
		*slot_of(builder, target, strlen(target)) = old[i];
	}
}

/* Whatever has been mounted onto itself so far is in the table; the first of a target counts. */
static void know_all(struct builder *builder)
{
	for (; builder->pins_known < builder->plan->op_count; builder->pins_known++) {
		const struct plan_op *op = &builder->ops[builder->pins_known];
		if (op->kind != OP_INSIDE)
			continue;
		if (2 * (builder->pins_count + 1) > builder->pins_size)
			grow(builder);
		uint32_t *slot = slot_of(builder, op->target, strlen(op->target));
		if (*slot)
			continue;
		*slot = (uint32_t)builder->pins_known + 1;
		builder->pins_count++;
	}
}

/*
 * A mount of a path, `len` bytes of target, onto itself, once: it cannot be renamed, removed or
 * replaced any more.
 */
static void pin(struct builder *builder, const char *target, size_t len, unsigned flags,
	mode_t mode, const char *why)
{
	know_all(builder);
	uint32_t known = builder->pins_size ? *slot_of(builder, target, len) : 0;
	if (known) {
		builder->ops[known - 1].flags |= flags & OPF_READONLY;
		return;
	}
	if (target[len])
		target = arena_strndup(&builder->plan->arena, target, len);
	struct plan_op *op = build_op(builder, OP_INSIDE, target, why);
	op->source = target;
	op->mode = mode & S_IFMT;
	op->flags = flags | OPF_UNDER_GRANT | (S_ISDIR(mode) ? OPF_RECURSIVE : 0) |
		    (S_ISLNK(mode) ? OPF_LINK_ITSELF : 0);
}

/* Every directory between the grant's top and target is held in its place. */
void build_hold_parents(struct builder *builder, const struct build_grant *grant,
	const char *target, const char *why)
{
	const char *slash = target + strlen(grant->target);
	if (!*slash)
		return; /* the grant itself */
	for (slash = strchr(slash + 1, '/'); slash; slash = strchr(slash + 1, '/'))
		pin(builder, target, (size_t)(slash - target), 0, S_IFDIR, why);
}

/*
 * Protected: read-only itself, and every directory above it up to the grant's top held in its
 * place, since a parent that can be renamed could be replaced by another with other content.
 */
void build_protect(struct builder *builder, const struct host_match *match)
{
	const char *target = match->path + 1;
	const struct build_grant *grant = build_grant_of(builder, target);
	if (!grant || !grant->write || strcmp(grant->target, target) == 0)
		return; /* not shown, or read-only already */
	const char *why = build_why(builder, "filesystem.protect", &match->pattern->at);
	build_hold_parents(builder, grant, target, why);
	pin(builder, target, strlen(target), OPF_READONLY, match->mode, why);
}

/*
 * Hidden: covered. Where the tree is written, its parents are held as well: a box that could rename
 * one would find the file uncovered in the next run, where it no longer has the hidden name.
 */
void build_hide(struct builder *builder, const struct host_match *match)
{
	const char *target = match->path + 1;
	const struct build_grant *grant = build_grant_of(builder, target);
	if (!grant && !build_shown_by(builder, target))
		return;
	if (grant && grant->layer >= 0 && strcmp(grant->target, target) != 0) {
		build_layer_gone(builder, grant->layer, match->path);
		return;
	}
	bool written = grant && grant->write;
	const char *why = build_why(builder, "filesystem.hide", &match->pattern->at);
	if (written)
		build_hold_parents(builder, grant, target, why);
	struct plan_op *op = build_op(builder, OP_MASK, target, why);
	op->mode = match->mode & S_IFMT;
	op->flags = OPF_READONLY | OPF_UNDER_GRANT | (written ? 0 : OPF_OPTIONAL) |
		    (S_ISLNK(match->mode) ? OPF_LINK_ITSELF : 0);
}

/* agentbox's own directories in a written tree: out of the box's reach, also for reading. */
void build_cover_own(struct builder *builder)
{
	for (size_t i = 0; i < builder->host->own_count; i++) {
		const struct host_path *own = &builder->host->own[i];
		const char *target = own->path + 1;
		const struct build_grant *grant =
			own->errnum ? NULL : build_grant_of(builder, target);
		if (!grant || !grant->write)
			continue;
		build_hold_parents(builder, grant, target, "agentbox's own");
		struct plan_op *op = build_op(builder, OP_MASK, target, "agentbox's own");
		op->mode = own->mode & S_IFMT;
		op->flags = OPF_READONLY | OPF_UNDER_GRANT;
	}
}
