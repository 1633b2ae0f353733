/*
 * host: an entry of network.allow or network.publish. One form of each name and address leaves
 * here: lower case, without a trailing dot, addresses as the C library writes them, so that checks
 * compare bytes.
 */
#define _GNU_SOURCE
#include "policy/host.h"

#include <arpa/inet.h>
#include <string.h>

#define NAME_LEN_MAX  253
#define LABEL_LEN_MAX 63

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

/* 1..max without sign or leading zero; -1: not that. */
static long number(const char *text, size_t len, long max)
{
	long n = 0;
	if (len == 0 || len > 5 || (len > 1 && text[0] == '0'))
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (!digit(text[i]))
			return -1;
		n = n * 10 + (text[i] - '0');
	}
	return n <= max ? n : -1;
}

static const char *parse_port(const char *text, struct host_entry *ret)
{
	if (!*text) {
		ret->ports[0] = 443;
		ret->ports[1] = 80;
		ret->port_count = 2;
		return NULL;
	}
	long port = *text == ':' ? number(text + 1, strlen(text + 1), 65535) : -1;
	if (port < 1)
		return "the port is a number from 1 to 65535 behind one colon";
	ret->ports[0] = (uint16_t)port;
	ret->port_count = 1;
	return NULL;
}

/* ADDRESS or ADDRESS/PREFIX of the family. */
static const char *parse_address(int family, const char *text, size_t len, struct host_entry *ret)
{
	unsigned char bytes[16] = { 0 };
	char copy[INET6_ADDRSTRLEN + 1];
	int width = family == AF_INET ? 32 : 128;
	const char *slash = memchr(text, '/', len);
	size_t alen = slash ? (size_t)(slash - text) : len;
	if (alen >= sizeof copy)
		return "not an address";
	memcpy(copy, text, alen);
	copy[alen] = 0;
	if (inet_pton(family, copy, bytes) != 1)
		return family == AF_INET ? "not an IPv4 address: four numbers from 0 to 255, or "
					   "/PREFIX behind them"
					 : "not an IPv6 address; a zone (%) is not part of it";
	long prefix = width;
	if (slash) {
		prefix = number(slash + 1, len - alen - 1, width);
		if (prefix < 0)
			return family == AF_INET ? "the prefix is a number from 0 to 32"
						 : "the prefix is a number from 0 to 128";
	}
	for (int bit = (int)prefix; bit < width; bit++)
		if (bytes[bit / 8] & (0x80 >> (bit % 8)))
			return "the address has bits behind its prefix; write the network's first "
			       "address";
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
	if (family == AF_INET6 && prefix >= 96 && memcmp(bytes, mapped, sizeof mapped) == 0)
		return "an IPv4 address in IPv6 form; write the IPv4 address";
	inet_ntop(family, bytes, ret->host, sizeof ret->host);
	ret->address = true;
	ret->prefix = (int)prefix;
	return NULL;
}

static const char *parse_label(const char *label, size_t len)
{
	if (len == 0)
		return "a name with an empty part between its dots";
	if (len > LABEL_LEN_MAX)
		return "a name with a part of more than 63 bytes";
	if (label[0] == '-' || label[len - 1] == '-')
		return "a part of a name neither begins nor ends with -";
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)label[i] >= 0x80)
			return "not ASCII: write the name's ASCII form, which begins with xn--";
		if (!digit(label[i]) && label[i] != '-' && !(label[i] >= 'a' && label[i] <= 'z'))
			return label[i] == '*'
				       ? "a star stands only for whole parts in front, as *.NAME"
				       : "a name is made of letters, digits, - and dots";
	}
	return NULL;
}

static const char *parse_name(const char *text, size_t len, struct host_entry *ret)
{
	if (len == 1 && text[0] == '*')
		return "a star alone; network: host is what grants all";
	if (len > 0 && text[len - 1] == '.')
		len--;
	if (len > NAME_LEN_MAX)
		return "a name of more than 253 bytes";
	for (size_t i = 0; i < len; i++)
		ret->host[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] + 32) : text[i];
	ret->host[len] = 0;
	ret->wildcard = strncmp(ret->host, "*.", 2) == 0;
	const char *label = ret->host + (ret->wildcard ? 2 : 0);
	for (;;) {
		size_t n = strcspn(label, ".");
		const char *why = parse_label(label, n);
		if (why)
			return why;
		if (!label[n])
			break;
		label += n + 1;
	}
	/* 127.1, 0x7f.1 and 2130706433 are addresses to many programs. */
	if (digit(label[0]) &&
		(label[strspn(label, "0123456789")] == 0 || strncmp(label, "0x", 2) == 0))
		return "neither a name nor an IPv4 address of four numbers";
	ret->host_loopback = strcmp(ret->host, "host.internal") == 0;
	return NULL;
}

const char *host_parse(const char *text, struct host_entry *ret)
{
	memset(ret, 0, sizeof *ret);
	ret->prefix = -1;
	if (!*text)
		return "empty";
	const char *why, *end;
	if (strstr(text, "//"))
		return "a host, not a URL: NAME or NAME:PORT";
	if (text[0] == '[') {
		end = strchr(text, ']');
		if (!end)
			return "a [ without its ]";
		why = parse_address(AF_INET6, text + 1, (size_t)(end - text) - 1, ret);
		return why ? why : parse_port(end + 1, ret);
	}
	end = strchr(text, ':');
	if (end && strchr(end + 1, ':'))
		return "an IPv6 address stands in brackets: [ADDRESS]:PORT or "
		       "[ADDRESS/PREFIX]:PORT";
	if (!end)
		end = text + strlen(text);
	size_t len = (size_t)(end - text);
	if (len > NAME_LEN_MAX + 1)
		return "a name of more than 253 bytes";
	if (text[strspn(text, "0123456789./")] == 0 || text + strspn(text, "0123456789./") == end)
		why = parse_address(AF_INET, text, len, ret);
	else
		why = memchr(text, '/', len) ? "a host, not a URL: NAME or NAME:PORT"
					     : parse_name(text, len, ret);
	return why ? why : parse_port(end, ret);
}

const char *host_unreachable(const struct host_entry *entry)
{
	unsigned char bytes[16];
	bool own = false;
	if (!entry->address)
		return NULL;
	if (inet_pton(AF_INET, entry->host, bytes) == 1) {
		own = entry->prefix >= 8 && (bytes[0] == 127 || bytes[0] == 0);
	} else if (inet_pton(AF_INET6, entry->host, bytes) == 1) {
		static const unsigned char high[15] = { 0 };
		own = entry->prefix >= 127 && memcmp(bytes, high, sizeof high) == 0 &&
		      bytes[15] <= 1;
	}
	return own ? "a loopback address is the box's own; the host's loopback is "
		     "host.internal:PORT"
		   : NULL;
}

const char *publish_parse(const char *text, uint16_t *ret_port, uint16_t *ret_host_port)
{
	const char *colon = strchr(text, ':'), *inner = colon ? colon + 1 : text;
	long port = number(inner, strlen(inner), 65535);
	long host_port = colon ? number(text, (size_t)(colon - text), 65535) : 0;
	if (port < 1 || host_port < (colon ? 1 : 0))
		return "a port to publish is PORT or HOSTPORT:PORT, numbers from 1 to 65535";
	*ret_port = (uint16_t)port;
	*ret_host_port = (uint16_t)host_port;
	return NULL;
}
