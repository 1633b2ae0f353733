/*
 * host_index: the records of an index, in memory. Reads them strictly: whatever a file holds, what
 * is used of it lies within its bytes.
 */
#define _GNU_SOURCE
#include "plan/host_index.h"

#include <dirent.h>
#include <string.h>

struct packed { /* before each name */
	uint8_t what, type;
	uint16_t pattern, len;
};

int index_put(struct buf *list, const struct index_entry *entry)
{
	struct packed head = {
		.what = (uint8_t)entry->what,
		.type = entry->type,
		.pattern = entry->pattern,
		.len = (uint16_t)entry->len,
	};
	int r = buf_add(list, &head, sizeof head);
	return r < 0 ? r : buf_add(list, entry->name, entry->len);
}

bool index_next(const char **at, const char *end, struct index_entry *ret_entry)
{
	struct packed head;
	if ((size_t)(end - *at) < sizeof head)
		return false;
	memcpy(&head, *at, sizeof head);
	const char *name = *at + sizeof head;
	if (head.len == 0 || (size_t)(end - name) < head.len || head.what > INDEX_MATCH)
		return false;
	*ret_entry = (struct index_entry){
		.what = head.what,
		.type = head.type,
		.pattern = head.pattern,
		.name = name,
		.len = head.len,
	};
	*at = name + head.len;
	return true;
}

static bool fit(const struct index_entry *entry, size_t patterns)
{
	const char *name = entry->name;
	bool dots = name[0] == '.' && (entry->len == 1 || (entry->len == 2 && name[1] == '.'));
	return !dots && !memchr(name, '/', entry->len) && !memchr(name, 0, entry->len) &&
	       (entry->what == INDEX_ENTER || entry->pattern < patterns);
}

static bool head_of(const struct index_part *part, struct index_record *ret_record)
{
	if (!part->at || (size_t)(part->end - part->at) < sizeof *ret_record)
		return false;
	memcpy(ret_record, part->at, sizeof *ret_record);
	return ret_record->size >= sizeof *ret_record &&
	       ret_record->size <= (size_t)(part->end - part->at) &&
	       ret_record->bytes <= ret_record->size - sizeof *ret_record;
}

bool index_read(const struct index_part *part, size_t patterns, struct index_record *ret_record,
	struct index_part *ret_list)
{
	struct index_record record;
	struct index_entry entry;
	uint32_t enter = 0;
	if (!head_of(part, &record))
		return false;
	const char *at = part->at + sizeof record, *end = at + record.bytes;
	*ret_list = (struct index_part){ at, end };
	while (index_next(&at, end, &entry)) {
		if (!fit(&entry, patterns))
			return false;
		enter += entry.what == INDEX_ENTER;
	}
	*ret_record = record;
	return at == end && enter == record.enter;
}

void index_children_of(const struct index_part *part, struct index_children *ret_children)
{
	struct index_record record;
	*ret_children = (struct index_children){ 0 };
	if (!head_of(part, &record))
		return;
	const char *list = part->at + sizeof record;
	ret_children->list = (struct index_part){ list, list + record.bytes };
	ret_children->records = (struct index_part){ list + record.bytes, part->at + record.size };
	ret_children->entry = list;
	ret_children->record = ret_children->records.at;
	/* Where the order changed much, reading anew is cheaper than looking for long. */
	ret_children->budget = 4 * (size_t)record.enter + 64;
}

struct index_part index_child(struct index_children *children, const char *name, size_t len)
{
	struct index_part none = { 0 };
	struct index_record record;
	struct index_entry entry;
	bool again = false;
	while (children->budget) {
		children->budget--;
		if (!index_next(&children->entry, children->list.end, &entry)) {
			if (again || !children->list.at)
				break;
			again = true;
			children->entry = children->list.at;
			children->record = children->records.at;
			continue;
		}
		if (entry.what != INDEX_ENTER)
			continue;
		struct index_part part = { children->record, children->records.end };
		if (!head_of(&part, &record)) {
			children->budget = 0;
			break;
		}
		part.end = part.at + record.size;
		children->record = part.end;
		if (entry.len == len && memcmp(entry.name, name, len) == 0)
			return part;
	}
	return none;
}

void index_identify(const struct host_index *index, const struct stat *st,
	const struct timespec *now, struct index_record *record)
{
	int64_t age = (now->tv_sec - st->st_ctim.tv_sec) * INT64_C(1000000000) +
		      (now->tv_nsec - st->st_ctim.tv_nsec);
	if (!index->on || st->st_dev != index->dev || age <= INDEX_RACY_NS)
		return;
	record->dev = st->st_dev;
	record->ino = st->st_ino;
	record->ctime_sec = st->st_ctim.tv_sec;
	record->ctime_nsec = (uint32_t)st->st_ctim.tv_nsec;
}

bool index_unchanged(const struct index_record *record, const struct stat *st)
{
	return S_ISDIR(st->st_mode) && record->ino && record->dev == st->st_dev &&
	       record->ino == st->st_ino && record->ctime_sec == st->st_ctim.tv_sec &&
	       record->ctime_nsec == (uint32_t)st->st_ctim.tv_nsec;
}

void index_differ(struct host_index *index)
{
	if (index->differs)
		return;
	index->differs = true;
	if (buf_add(&index->new, index->bytes, index->same) < 0)
		index->on = false;
}

static bool goes_on(struct host_index *index, const void *data, size_t len)
{
	if (index->len - index->same < len || memcmp(index->bytes + index->same, data, len) != 0)
		return false;
	index->same += len;
	return true;
}

size_t index_begin(struct host_index *index, const struct index_record *record, const char *list)
{
	size_t at = index->differs ? index->new.len : index->same;
	if (!index->on)
		return at;
	if (!index->differs) {
		if (goes_on(index, record, sizeof *record) && goes_on(index, list, record->bytes))
			return at;
		index->same = at;
		index_differ(index);
	}
	if (buf_add(&index->new, record, sizeof *record) < 0 ||
		buf_add(&index->new, list, record->bytes) < 0)
		index->on = false;
	return at;
}

void index_end(struct host_index *index, size_t at)
{
	const size_t offset = offsetof(struct index_record, size);
	uint32_t size, was;
	if (!index->on)
		return;
	if (!index->differs) {
		size = (uint32_t)(index->same - at);
		memcpy(&was, index->bytes + at + offset, sizeof was);
		if (was == size)
			return;
		index_differ(index);
	}
	if (!index->on)
		return;
	size = (uint32_t)(index->new.len - at);
	memcpy(index->new.data + at + offset, &size, sizeof size);
}

uint64_t index_sum(const char *data, size_t len)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325) ^ len, word;
	for (; len >= sizeof word; data += sizeof word, len -= sizeof word) {
		memcpy(&word, data, sizeof word);
		sum = (sum ^ word) * UINT64_C(0x100000001b3);
		sum ^= sum >> 29;
	}
	for (; len; data++, len--)
		sum = (sum ^ (uint8_t)*data) * UINT64_C(0x100000001b3);
	return sum;
}
