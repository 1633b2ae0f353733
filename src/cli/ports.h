/* ports: --ports-fd, by which a caller knows the published ports while the command runs. */
#ifndef AGENTBOX_CLI_PORTS_H
#define AGENTBOX_CLI_PORTS_H

#include "cli/cli.h"

/*
 * The descriptor of --ports-fd, which closes at exec from here on; *ret_fd is -1 without the
 * option. result_fd: which it may not be. Errors: usage, result_unwritable.
 */
int ports_take(const struct options *options, int result_fd, int *ret_fd, struct err *err);

/*
 * One line of JSON for each port, then close *fd, which becomes -1; it may be -1.
 * Errors: result_unwritable.
 */
int ports_tell(int *fd, const struct published *published, struct err *err);

/* The same as words on stderr. */
void ports_say(const struct published *published);

#endif
