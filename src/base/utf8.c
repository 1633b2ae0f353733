/* utf8: one strict decoder. */
#include "base/utf8.h"

size_t utf8_decode(const void *data, size_t len, uint32_t *ret_rune)
{
	const unsigned char *s = data;
	if (len == 0)
		return 0;
	if (s[0] < 0x80) {
		*ret_rune = s[0];
		return 1;
	}
	size_t want = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	if (s[0] < 0xc2 || s[0] > 0xf4 || len < want)
		return 0;
	uint32_t rune = s[0] & (0x7f >> want);
	for (size_t i = 1; i < want; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		rune = rune << 6 | (s[i] & 0x3f);
	}
	if (rune < least[want] || rune > 0x10ffff || (rune >= 0xd800 && rune <= 0xdfff))
		return 0;
	*ret_rune = rune;
	return want;
}

bool utf8_valid(const void *data, size_t len)
{
	const unsigned char *s = data;
	while (len) {
		uint32_t rune;
		/* Eight ASCII bytes at a time: captured output is mostly that. */
		if (len >= 8) {
			uint64_t word;
			__builtin_memcpy(&word, s, 8);
			if (!(word & 0x8080808080808080ull)) {
				s += 8;
				len -= 8;
				continue;
			}
		}
		size_t n = utf8_decode(s, len, &rune);
		if (!n)
			return false;
		s += n;
		len -= n;
	}
	return true;
}

bool utf8_is_control(uint32_t rune)
{
	return (rune < 0x20 && rune != '\n' && rune != '\t') || (rune >= 0x7f && rune < 0xa0) ||
	       rune == 0x061c || rune == 0x200e || rune == 0x200f ||
	       (rune >= 0x2028 && rune <= 0x202e) || (rune >= 0x2066 && rune <= 0x2069);
}
