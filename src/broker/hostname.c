/* hostname: which bytes make a host name. Looks nothing up. */
#include "broker/hostname.h"

#include <errno.h>
#include <string.h>

uint8_t hostname_lower(uint8_t byte)
{
	return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte + ('a' - 'A')) : byte;
}

bool hostname_byte(uint8_t byte)
{
	uint8_t lower = hostname_lower(byte);
	return (lower >= 'a' && lower <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' ||
	       byte == '_';
}

int hostname_read(const uint8_t *text, size_t len, char ret[HOSTNAME_MAX + 1])
{
	if (len && text[len - 1] == '.')
		len--;
	if (!len || len > HOSTNAME_MAX)
		return -EINVAL;
	char name[HOSTNAME_MAX + 1];
	size_t label = 0;
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '.') {
			if (!label)
				return -EINVAL;
			label = 0;
		} else if (!hostname_byte(text[i]) || ++label > HOSTNAME_LABEL_MAX) {
			return -EINVAL;
		}
		name[i] = (char)hostname_lower(text[i]);
	}
	if (!label)
		return -EINVAL;
	name[len] = 0;
	memcpy(ret, name, len + 1);
	return 0;
}
