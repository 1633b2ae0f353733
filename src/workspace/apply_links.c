/*
 * apply_links: names that were made one file in the box become one file on the host. Of those that
 * are brought over the first in the list is staged, and the others are linked to it; one that the
 * host has already with that content, or that was only linked to (a quiet change), is brought anew
 * then, if nobody changed it meanwhile.
 *
 * A name that is left out is not touched, and so no link to it is made, which is said: what the
 * host has there was not judged, may be somebody else's, and would from then on change with every
 * write to the new name, as if that were allowed.
 */
#define _GNU_SOURCE
#include "workspace/apply_work.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

/* A step whose file has more than one name in its layer. */
struct name {
	dev_t dev;
	ino_t ino;
	nlink_t count;
	size_t step;
	bool there; /* on the host, as `host` */
	struct stat host;
};

struct names {
	struct name *list;
	size_t count;
	struct arena arena;
};

static int by_file(const void *a, const void *b)
{
	const struct name *one = a, *other = b;
	if (one->dev != other->dev)
		return one->dev < other->dev ? -1 : 1;
	if (one->ino != other->ino)
		return one->ino < other->ino ? -1 : 1;
	return one->step < other->step ? -1 : one->step > other->step;
}

static bool is_brought(const struct record *step)
{
	return step->action == ACTION_PUT || step->action == ACTION_SWAP ||
	       step->action == ACTION_INSIDE;
}

/* May be brought, or need not be as it is there. */
static bool is_meant(const struct apply_work *work, const struct record *step)
{
	return S_ISREG(step->change.mode) && step->change.kind != CHANGE_DELETED &&
	       (is_brought(step) || step->action == ACTION_MODE ||
		       work->entries[step->entry].outcome == APPLY_SAME);
}

static void look(struct apply_work *work, struct names *names, size_t index)
{
	const struct record *step = &work->steps[index];
	const char *name;
	struct stat st;
	AUTO_FD fd = apply_open_new(work, &step->change, O_PATH, &st);
	if (fd < 0 || st.st_nlink < 2)
		return;
	struct name *found = arena_push(&names->arena, &names->list, &names->count, sizeof *found);
	*found = (struct name){
		.dev = st.st_dev, .ino = st.st_ino, .count = st.st_nlink, .step = index
	};
	if (step->action == ACTION_INSIDE)
		return;
	int dir = dirs_parent(&work->lower[step->change.layer], step->change.path, &name);
	found->there = dir >= 0 && fstatat(dir, name, &found->host, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Does the host have all of them as one file already? */
static bool is_linked(const struct apply_work *work, const struct name *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is_brought(&work->steps[list[i].step]) || !list[i].there ||
			list[i].host.st_dev != list[0].host.st_dev ||
			list[i].host.st_ino != list[0].host.st_ino)
			return false;
	return true;
}

/* One that is on the host with the content that it is to have: may it be replaced all the same? */
static bool bring_anew(
	struct apply_work *work, const struct name *name, const struct apply_options *options)
{
	struct record *step = &work->steps[name->step];
	if (is_brought(step))
		return true;
	if (!name->there || apply_conflict(step, &name->host) ||
		(step->change.sensitive && !options->allow_sensitive))
		return false;
	apply_set(work, step, APPLY_DONE, 0, NULL);
	step->action = ACTION_PUT;
	return true;
}

static void join(struct apply_work *work, const struct name *list, size_t count,
	const struct apply_options *options)
{
	size_t first = APPLY_NONE, brought = 0;
	if (is_linked(work, list, count))
		return;
	for (size_t i = 0; count > 1 && i < count; i++) {
		if (!bring_anew(work, &list[i], options))
			continue;
		work->steps[list[i].step].link = first;
		first = first == APPLY_NONE ? list[i].step : first;
		brought++;
	}
	for (size_t i = 0; i < count && (count == 1 || brought < list[0].count); i++)
		if (is_brought(&work->steps[list[i].step]))
			apply_note(work, &work->steps[list[i].step],
				"in the box it is another name of a file that is not brought over: "
				"here it is no hard link to that");
}

void apply_find_links(struct apply_work *work, const struct apply_options *options)
{
	struct names names = { 0 };
	size_t count = work->count, end;
	for (size_t i = 0; i < count; i++)
		if (is_meant(work, &work->steps[i]))
			look(work, &names, i);
	if (names.count > 1)
		qsort(names.list, names.count, sizeof *names.list, by_file);
	for (size_t i = 0; i < names.count; i = end) {
		for (end = i + 1; end < names.count && names.list[end].dev == names.list[i].dev &&
				  names.list[end].ino == names.list[i].ino;)
			end++;
		join(work, &names.list[i], end - i, options);
	}
	arena_free(&names.arena);
}
