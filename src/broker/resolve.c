/* resolve: the messages between the gateway and agentbox-resolve. Pure; both sides read strictly.
 */
#define _GNU_SOURCE
#include "broker/resolve.h"

#include <errno.h>
#include <string.h>

#define LABEL_MAX 63

_Static_assert(sizeof(struct resolve_request) == 8 + 2 + RESOLVE_NAME_MAX + 1, "has gaps");
_Static_assert(sizeof(struct resolve_address) == 24, "has gaps");
_Static_assert(sizeof(struct resolve_answer) == 16 + 24 * RESOLVE_ADDRESSES_MAX, "has gaps");

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f');
}

static bool label_ok(const char *label, size_t len)
{
	if (len == 0 || len > LABEL_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_digit(label[i]) && !(label[i] >= 'a' && label[i] <= 'z') &&
			label[i] != '-' && label[i] != '_')
			return false;
	return true;
}

static bool is_number(const char *label, size_t len)
{
	bool hex = len >= 2 && label[0] == '0' && label[1] == 'x';
	for (size_t i = hex ? 2 : 0; i < len; i++)
		if (hex ? !is_hex(label[i]) : !is_digit(label[i]))
			return false;
	return true;
}

bool resolve_name_ok(const char *name, size_t len)
{
	if (len == 0 || len > RESOLVE_NAME_MAX)
		return false;
	for (;;) {
		const char *dot = memchr(name, '.', len);
		size_t label = dot ? (size_t)(dot - name) : len;
		if (!label_ok(name, label))
			return false;
		if (!dot)
			return !is_number(name, len);
		name += label + 1;
		len -= label + 1;
	}
}

static bool all_zero(const void *data, size_t len)
{
	const uint8_t *byte = data;
	for (size_t i = 0; i < len; i++)
		if (byte[i])
			return false;
	return true;
}

bool resolve_request_make(uint64_t id, const char *name, struct resolve_request *ret)
{
	size_t len = strnlen(name, RESOLVE_NAME_MAX + 1);
	if (!resolve_name_ok(name, len))
		return false;
	*ret = (struct resolve_request){ .id = id, .name_len = (uint16_t)len };
	memcpy(ret->name, name, len);
	return true;
}

int resolve_request_parse(const void *message, size_t len, struct resolve_request *ret)
{
	struct resolve_request it;
	if (len != sizeof it)
		return -EBADMSG;
	memcpy(&it, message, sizeof it);
	if (!resolve_name_ok(it.name, it.name_len) ||
		!all_zero(it.name + it.name_len, sizeof it.name - it.name_len))
		return -EBADMSG;
	*ret = it;
	return 0;
}

static bool address_ok(const struct resolve_address *it)
{
	if (!all_zero(it->zero, sizeof it->zero))
		return false;
	if (it->family == 4)
		return it->scope == 0 && all_zero(it->bytes + 4, sizeof it->bytes - 4);
	return it->family == 6;
}

int resolve_answer_parse(const void *message, size_t len, struct resolve_answer *ret)
{
	struct resolve_answer it;
	if (len != sizeof it)
		return -EBADMSG;
	memcpy(&it, message, sizeof it);
	if (it.status < RESOLVE_OK || it.status > RESOLVE_FAILED ||
		it.count > RESOLVE_ADDRESSES_MAX || (it.status == RESOLVE_OK) != (it.count > 0) ||
		!all_zero(it.zero, sizeof it.zero))
		return -EBADMSG;
	for (size_t i = 0; i < it.count; i++)
		if (!address_ok(&it.addresses[i]))
			return -EBADMSG;
	if (!all_zero(
		    &it.addresses[it.count], sizeof it.addresses - it.count * sizeof *it.addresses))
		return -EBADMSG;
	*ret = it;
	return 0;
}
