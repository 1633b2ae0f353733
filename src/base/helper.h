/*
 * helper: asks a program of our own, which carries a library that the main program shall not, one
 * question. It has no environment, and no descriptor of ours but the pipe for its answer.
 */
#ifndef AGENTBOX_BASE_HELPER_H
#define AGENTBOX_BASE_HELPER_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Run argv[0], a path, and take what it prints to stdout (and stderr, with `words`) into ret, of
 * `size` bytes with the end; what is more is dropped. Its stdin has nothing. Returns its exit
 * status; -ECHILD when a signal ended it; -errno when it could not be started (-ENOENT: it is not
 * installed) or heard.
 */
int helper_ask(char *const argv[], bool words, char *ret, size_t size);

#endif
