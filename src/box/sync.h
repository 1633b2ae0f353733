/*
 * sync: the conversation between the supervisor and the box.
 *
 *	supervisor                          init                        payload
 *	   | clone3(PIDFD, namespaces)        |
 *	   |--------------------------------->| init stages, in order
 *	   |-- setup: TREES (as root: the granted trees) ->|
 *	   |-- setup: GROUPS (v1: the control groups' files to enter by) ->|
 *	   |<- setup: LAYER (each private layer's directory) -|
 *	   |<- setup: SOCKET (each that the gateway serves) -|
 *	   |<- setup: FDS (tty master) -------|
 *	   |                                  | vfork ------------------->| payload stages
 *	   |<- setup: EXECING (seccomp listener) ---------------------------|
 *	   |<= setup: end of file: execve worked ===========================|
 *	   |-- status: SIGNAL (pass a signal to all of the box) ->|
 *	   |-- status: RENAMES (make the process that renames, with its socket) ->|
 *	   |-- status: WANTED (a TCP socket, please, for a client of a published port) ->|
 *	   |<- status: SPARE (it) ---|
 *	   |<- status: ENDED (wait status, usage) ---|   the command has ended
 *	   |<- status: GONE (leftovers) -------------|   all other processes are reaped
 *	   |<= status: end of file, init's pidfd readable
 *
 * A box that is kept (plan->keep) starts no command. Its supervisor is the keeper, and init says
 * READY in place of EXECING. Whoever has a command to run makes both socket pairs itself, puts the
 * ORDER (see join.h) into its end of setup and has the keeper hand the other end to init, which
 * makes a reaper: a process that is to that one command what init is to a whole box, and goes on
 * with the conversation above from EXECING on.
 *
 *	command's supervisor        keeper            init            reaper
 *	   |-- HELLO (lock) ------->|                  |
 *	   |-- JOIN (setup) ------->|                  |
 *	   |<- ANSWER --------------|-- status: JOIN ->|
 *	   |<- TREES (the layers, the groups) -|       |-- fork -------->|
 *	   |-- setup: TREES (order, status, stdin, stdout, stderr) ----->|
 *	   |<- setup: JOINED (its pidfd) --------------------------------|
 *	   |<- setup: EXECING ... status: ENDED, GONE -------------------|
 *
 * After GONE the reaper lives on while processes of its command do. End of file on its status
 * socket ends them, whenever it comes.
 *
 *	 instead, at any point before EXECING's end of file:
 *	   |<- setup: FAILED (struct err), then the sender exits
 *
 * Two SEQPACKET socket pairs, close-on-exec; one datagram is one message of its kind's fixed size.
 *End of file on setup before EXECING is a failure (box_died), after it success. There is no GO:
 *init writes its own id map, so it has nothing to wait for. A message of another size or kind ends
 *the box. Messages carry descriptors only where this header says so.
 */
#ifndef AGENTBOX_BOX_SYNC_H
#define AGENTBOX_BOX_SYNC_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum sync_kind {
	SYNC_FDS = 1, /* setup: one descriptor, the master of the box's terminal */
	SYNC_EXECING, /* setup: one descriptor, the seccomp listener */
	SYNC_FAILED,  /* setup: err */
	SYNC_ENDED,   /* status: ended */
	SYNC_GONE,    /* status: gone; init ends by itself after it */
	SYNC_SIGNAL,  /* status, downwards: signal */
	SYNC_LAYER,  /* setup: one descriptor, what a private layer is written to; in their order */
	SYNC_SOCKET, /* setup: one descriptor, of the network; in the order of plan/network.h */
	SYNC_TREES,  /* setup, downwards, once: as many descriptors as there are grants */
	SYNC_GROUPS, /* setup, downwards, once: init enters its v1 groups by these, in order */
	SYNC_RENAMES, /* status, downwards: one descriptor, the renamer's end (see renames.h) */
	SYNC_WANTED,  /* status, downwards: family */
	SYNC_SPARE,   /* status: family, one descriptor: a socket that is not connected */
	/* A keeper may be of an older agentbox than who comes: these keep their numbers. */
	SYNC_HELLO = 32, /* to the keeper, first: one descriptor, the session's lock, to write */
	SYNC_JOIN,       /* to the keeper, and from it to init: one descriptor, a reaper's setup */
	SYNC_END,        /* to the keeper: end the box, if no command is under way */
	SYNC_ANSWER,     /* of the keeper: answer */
	SYNC_READY,      /* setup: a kept box is made */
	SYNC_JOINED,     /* setup: one descriptor, the reaper's pidfd */
};

#define SYNC_MAGIC 0x61626f78u

struct sync_ended {
	int32_t wait_status; /* of the command, as from waitpid(2) */
	int32_t pad;
	uint64_t utime_us, stime_us, maxrss_bytes; /* of the command and its waited-for children */
};

struct sync_gone {
	uint64_t leftover_killed;    /* processes that were alive when the command ended */
	uint64_t left;               /* of a kept box: is anything left alive? */
	uint64_t disk_bytes;         /* used in the box's own file system at the end */
	uint64_t utime_us, stime_us; /* of init and of all that it waited for */
};

struct sync_msg {
	uint32_t magic, kind;
	union {
		struct err err;
		struct sync_ended ended;
		struct sync_gone gone;
		int32_t signal;
		int32_t answer; /* -errno; or to JOIN how many groups follow the layers in TREES */
		int32_t family; /* AF_INET or AF_INET6 */
	};
};

/*
 * Send one message, with a descriptor or -1. Async-signal-safe, no allocation. 0 or -errno.
 */
int sync_send(int sock, const struct sync_msg *msg, int fd);

/*
 * Receive one message. Returns 1, 0 at end of file, -EAGAIN when there is none (non-blocking
 * sockets), -EPROTO for a wrong size, magic, kind or a descriptor where none belongs, or -errno.
 * *ret_fd is -1 or a new close-on-exec descriptor.
 */
int sync_recv(int sock, struct sync_msg *ret_msg, int *ret_fd);

/*
 * SYNC_TREES and SYNC_GROUPS, which carry many descriptors, and which alone init waits for, in this
 * order. Sending never blocks; `count` is at most SYNC_MANY_MAX. Receiving blocks; anything but
 * exactly `count` descriptors is -EPROTO, the supervisor's end -EPIPE. 0 or -errno; the received
 * ones close at exec.
 */
#define SYNC_MANY_MAX                                                                              \
	250 /* a little less than what the kernel lets one message carry (unix(7))                 \
	     */
int sync_send_many(int sock, enum sync_kind kind, const int *fds, size_t count);
int sync_recv_many(int sock, enum sync_kind kind, int *ret_fds, size_t count);

/* Is a message of `len` bytes with this many descriptors acceptable? 0 or -EPROTO. Pure; fuzzed. */
int sync_check(const void *data, uint64_t len, int fd_count);

#endif
