/* tar: headers of tar streams. Opens nothing and writes nothing but into the caller's buffer. */
#define _GNU_SOURCE
#include "workspace/tar.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 512

/* POSIX.1-2017, pax, "ustar Interchange Format". */
struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
	char magic[6], version[2], uname[32], gname[32], devmajor[8], devminor[8], prefix[155];
	char unused[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

/* Octal digits that fill a field up to its NUL; what does not fit is in an extended header. */
static void put_number(char *field, size_t size, uint64_t value)
{
	char digits[24];
	uint64_t most = ((uint64_t)1 << (3 * (size - 1))) - 1;
	snprintf(digits, sizeof digits, "%0*" PRIo64, (int)size - 1, value > most ? most : value);
	memcpy(field, digits, size);
}

static bool fits(size_t size, uint64_t value)
{
	return value < (uint64_t)1 << (3 * (size - 1));
}

static int put_block(struct buf *out, struct header *header)
{
	unsigned sum = 0;
	memcpy(header->magic, "ustar", 6);
	memcpy(header->version, "00", 2);
	memset(header->sum, ' ', sizeof header->sum);
	for (size_t i = 0; i < sizeof *header; i++)
		sum += ((const unsigned char *)header)[i];
	put_number(header->sum, 7, sum);
	return buf_add(out, header, sizeof *header);
}

/* "LENGTH KEY=VALUE\n", where the length counts its own digits too. */
static int put_record(struct buf *out, const char *key, const char *value)
{
	size_t rest = strlen(key) + strlen(value) + 3, len = rest, digits = 0;
	for (size_t before = 0; before != len;) {
		before = len;
		digits = (size_t)snprintf(NULL, 0, "%zu", len);
		len = rest + digits;
	}
	buf_addf(out, "%zu %s=", len, key);
	buf_adds(out, value);
	return buf_adds(out, "\n");
}

static void put_large(struct buf *out, const char *key, size_t size, uint64_t value)
{
	char text[24];
	if (fits(size, value))
		return;
	snprintf(text, sizeof text, "%" PRIu64, value);
	put_record(out, key, text);
}

/* Split a name at a "/" so that it fits into the two fields; false: it does not. */
static bool put_name(struct header *header, const char *name)
{
	size_t len = strlen(name);
	if (len <= sizeof header->name) {
		memcpy(header->name, name, len);
		return true;
	}
	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t front = (size_t)(slash - name), back = len - front - 1;
		if (front > sizeof header->prefix)
			break;
		if (front && back && back <= sizeof header->name) {
			memcpy(header->prefix, name, front);
			memcpy(header->name, slash + 1, back);
			return true;
		}
	}
	memcpy(header->name, name, sizeof header->name);
	return false;
}

static int put_extended(struct buf *out, const struct buf *records)
{
	struct header header = { .type = 'x' };
	static const char zeros[BLOCK];
	memcpy(header.name, "pax", 4);
	put_number(header.mode, sizeof header.mode, 0644);
	put_number(header.uid, sizeof header.uid, 0);
	put_number(header.gid, sizeof header.gid, 0);
	put_number(header.size, sizeof header.size, records->len);
	put_number(header.mtime, sizeof header.mtime, 0);
	put_block(out, &header);
	buf_add(out, records->data, records->len);
	return buf_add(out, zeros, tar_padding(records->len));
}

int tar_header(struct buf *out, const char *name, const char *target, const struct stat *st)
{
	struct header header = { 0 };
	AUTO_BUF records = { .max = 16384 }, full = { .max = 8192 };
	bool dir = S_ISDIR(st->st_mode);
	uint64_t size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
	uint64_t mtime = st->st_mtim.tv_sec > 0 ? (uint64_t)st->st_mtim.tv_sec : 0;
	size_t target_len = target ? strlen(target) : 0;
	buf_adds(&full, name);
	buf_adds(&full, dir ? "/" : "");
	if (!put_name(&header, buf_text(&full)))
		put_record(&records, "path", buf_text(&full));
	if (target_len > sizeof header.link)
		put_record(&records, "linkpath", target);
	if (target)
		memcpy(header.link, target,
			target_len < sizeof header.link ? target_len : sizeof header.link);
	put_large(&records, "uid", sizeof header.uid, geteuid());
	put_large(&records, "gid", sizeof header.gid, getegid());
	put_large(&records, "size", sizeof header.size, size);
	put_large(&records, "mtime", sizeof header.mtime, mtime);
	header.type = dir ? '5' : target ? '2' : '0';
	put_number(header.mode, sizeof header.mode, st->st_mode & 0777);
	put_number(header.uid, sizeof header.uid, geteuid());
	put_number(header.gid, sizeof header.gid, getegid());
	put_number(header.size, sizeof header.size, size);
	put_number(header.mtime, sizeof header.mtime, mtime);
	if (full.full || records.full)
		return -ENAMETOOLONG;
	if (records.len > 0)
		put_extended(out, &records);
	return put_block(out, &header);
}

size_t tar_padding(uint64_t size)
{
	return (size_t)((BLOCK - size % BLOCK) % BLOCK);
}

int tar_end(struct buf *out)
{
	static const char zeros[2 * BLOCK];
	return buf_add(out, zeros, sizeof zeros);
}
