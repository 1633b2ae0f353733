/*
 * kept_meta: the file that says what a kept result belongs to: lines "KEY VALUE", all of them
 * known, odd bytes of a value as \xNN, and "end" as the last one. Private to kept*.c.
 */
#ifndef AGENTBOX_WORKSPACE_KEPT_META_H
#define AGENTBOX_WORKSPACE_KEPT_META_H

#include "workspace/kept.h"

#define KEPT_META_MAX ((size_t)16 << 20)

struct kept_meta {
	int64_t started_ns, ended_ns;
	const char *policy;
	const char *const *argv, *const *held, *const *sensitive; /* NULL-terminated */
	size_t layer_count;
	struct {
		const char *root;
		bool whole, lower;
	} layers[KEPT_LAYERS_MAX];
};

/* 0 or -errno; -EFBIG past KEPT_META_MAX. */
int kept_meta_write(int fd, const struct kept_source *source);

/* All in the arena. 0 or -errno; -EBADMSG: a wrong form. */
int kept_meta_read(int fd, struct arena *arena, struct kept_meta *ret);

#endif
