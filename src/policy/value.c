/* value: the text of one scalar as what its key's type says. */
#define _GNU_SOURCE
#include "policy/value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DIGITS_MAX 18 /* of a number with decimals: it then fits 64 bits */

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit durations[] = {
	{ "h", 3600000000u },
	{ "m", 60000000 },
	{ "s", 1000000 },
	{ "ms", 1000 },
	{ "us", 1 },
	{ NULL, 0 },
};

static const struct unit sizes[] = {
	{ "TiB", (uint64_t)1 << 40 },
	{ "GiB", (uint64_t)1 << 30 },
	{ "MiB", (uint64_t)1 << 20 },
	{ "KiB", (uint64_t)1 << 10 },
	{ "TB", 1000000000000 },
	{ "GB", 1000000000 },
	{ "MB", 1000000 },
	{ "KB", 1000 },
	{ "B", 1 },
	{ NULL, 0 },
};

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "12.5" -> 125 and 10. No sign, no leading zero but in "0" and "0.5". *ret_end: what follows. */
static int decimal(
	const char *text, uint64_t *ret_digits, uint64_t *ret_scale, const char **ret_end)
{
	const char *p = text;
	uint64_t digits = 0, scale = 1;
	int count = 0;
	if (!digit(*p) || (*p == '0' && digit(p[1])))
		return -EINVAL;
	for (; digit(*p); p++, count++) {
		if (count >= DIGITS_MAX)
			return -ERANGE;
		digits = digits * 10 + (uint64_t)(*p - '0');
	}
	if (*p == '.') {
		if (!digit(*++p))
			return -EINVAL;
		for (; digit(*p); p++, count++) {
			if (count >= DIGITS_MAX)
				return -ERANGE;
			digits = digits * 10 + (uint64_t)(*p - '0');
			scale *= 10;
		}
	}
	*ret_digits = digits;
	*ret_scale = scale;
	*ret_end = p;
	return 0;
}

/* digits / scale * factor, which must be a whole number. */
static int scaled(uint64_t digits, uint64_t scale, uint64_t factor, uint64_t *ret)
{
	unsigned __int128 product = (unsigned __int128)digits * factor;
	if (product % scale)
		return -EINVAL;
	product /= scale;
	if (product > UINT64_MAX)
		return -ERANGE;
	*ret = (uint64_t)product;
	return 0;
}

static int with_unit(const char *text, const struct unit *units, uint64_t *ret)
{
	uint64_t digits, scale;
	const char *end;
	int r = decimal(text, &digits, &scale, &end);
	if (r < 0)
		return r;
	for (const struct unit *unit = units; unit->name; unit++)
		if (strcmp(end, unit->name) == 0)
			return scaled(digits, scale, unit->factor, ret);
	return -EINVAL;
}

int value_int(const char *text, uint64_t *ret)
{
	uint64_t digits, scale;
	const char *end;
	int r = decimal(text, &digits, &scale, &end);
	if (r < 0)
		return r;
	if (*end || scale != 1)
		return -EINVAL;
	*ret = digits;
	return 0;
}

int value_bool(const char *text, bool *ret)
{
	bool yes = strcmp(text, "true") == 0;
	if (!yes && strcmp(text, "false") != 0)
		return -EINVAL;
	*ret = yes;
	return 0;
}

int value_duration(const char *text, uint64_t *ret_us)
{
	return with_unit(text, durations, ret_us);
}

int value_size(const char *text, uint64_t *ret_bytes)
{
	if (strcmp(text, "0") == 0) {
		*ret_bytes = 0;
		return 0;
	}
	return with_unit(text, sizes, ret_bytes);
}

int value_cpus(const char *text, uint64_t *ret_milli)
{
	uint64_t digits, scale;
	const char *end;
	int r = decimal(text, &digits, &scale, &end);
	if (r < 0)
		return r;
	return *end ? -EINVAL : scaled(digits, scale, 1000, ret_milli);
}

bool value_is_number(enum key_type type)
{
	return type == KEY_INT || type == KEY_DURATION || type == KEY_SIZE || type == KEY_CPUS;
}

int value_number(enum key_type type, const char *text, uint64_t *ret)
{
	switch (type) {
	case KEY_INT:
		return value_int(text, ret);
	case KEY_DURATION:
		return value_duration(text, ret);
	case KEY_SIZE:
		return value_size(text, ret);
	case KEY_CPUS:
		return value_cpus(text, ret);
	default:
		return -EINVAL;
	}
}

void value_text(enum key_type type, uint64_t value, char text[VALUE_TEXT_MAX])
{
	const struct unit *unit = type == KEY_DURATION ? durations
				  : type == KEY_SIZE   ? sizes
						       : NULL;
	if (type == KEY_CPUS) {
		int len = snprintf(text, VALUE_TEXT_MAX, "%" PRIu64 ".%03u", value / 1000,
			(unsigned)(value % 1000));
		while (text[len - 1] == '0')
			text[--len] = 0;
		if (text[len - 1] == '.')
			text[len - 1] = 0;
		return;
	}
	if (!unit || value == 0) {
		snprintf(text, VALUE_TEXT_MAX, "%" PRIu64 "%s", value,
			type == KEY_DURATION ? "s" : "");
		return;
	}
	while (value % unit->factor)
		unit++;
	snprintf(text, VALUE_TEXT_MAX, "%" PRIu64 "%s", value / unit->factor, unit->name);
}

/* `first` and `rest` are sets for strspn. */
static bool made_of(const char *text, const char *first, const char *rest, size_t max)
{
	size_t len = strlen(text);
	return len >= 1 && len <= max && strchr(first, text[0]) && strspn(text, rest) == len;
}

#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

bool value_is_variable(const char *text)
{
	return made_of(text, LOWER UPPER "_", LOWER UPPER DIGITS "_", 255) &&
	       strncmp(text, "BASH_FUNC_", 10) != 0;
}

bool value_is_syscall(const char *text)
{
	return made_of(text, LOWER DIGITS "_", LOWER DIGITS "_", 64);
}

bool value_is_policy(const char *text)
{
	return made_of(text, LOWER DIGITS, LOWER DIGITS "._-", 64);
}

bool value_is_tool(const char *text)
{
	return made_of(text, LOWER UPPER DIGITS, LOWER UPPER DIGITS "_-", 64);
}

bool value_is_language(const char *text)
{
	return made_of(text, LOWER UPPER DIGITS, LOWER UPPER DIGITS "._+#-", 32);
}
