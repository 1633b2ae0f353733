/*
 * hostname: which bytes make a host name, for all that reads one from the box: questions, greetings
 * and Host fields. Internal to the room.
 */
#ifndef AGENTBOX_BROKER_HOSTNAME_H
#define AGENTBOX_BROKER_HOSTNAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOSTNAME_MAX       253 /* bytes of a name as text, without the last dot (RFC 1035) */
#define HOSTNAME_LABEL_MAX 63

/* Letters, digits, - and _ (which is in no host name by the letter, but in many by use). */
bool hostname_byte(uint8_t byte);

/* A-Z to a-z, whatever the locale. */
uint8_t hostname_lower(uint8_t byte);

/*
 * Read all of `text` as a host name: labels of 1 to 63 such bytes between dots, one dot at the end
 * at most. 0: ret is the name in lower case without that dot; -EINVAL: it is none.
 */
int hostname_read(const uint8_t *text, size_t len, char ret[HOSTNAME_MAX + 1]);

#endif
