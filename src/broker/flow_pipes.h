/*
 * flow_pipes: the pipes that flows borrow. Only flow.c includes this.
 */
#ifndef AGENTBOX_BROKER_FLOW_PIPES_H
#define AGENTBOX_BROKER_FLOW_PIPES_H

#include "broker/flow.h"

#define FLOW_PIPE_SIZE 262144 /* bytes that one is asked to hold; the kernel may give less */

/* Fill `ret` with an empty pipe, or return false: there is none now. */
bool flow_pipes_borrow(struct flow_pipes *pipes, int ret[2]);

/* Give it back, and set both to -1. Not empty: it is closed. Nothing is done for -1. */
void flow_pipes_return(struct flow_pipes *pipes, int pipe[2], bool empty);

#endif
