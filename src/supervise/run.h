/*
 * run: the state of one supervise_run, shared by the files of this room and by nobody else.
 *
 * loop.c waits and finds events; act.c carries out what machine.c answers; capture.c, pump.c,
 * sink.c, listener.c, renames.c, network.c, publish.c and terminal.c each own the descriptors of
 * their part; usage.c reaps, and limits.c asks the box's control groups. Functions here return
 * nothing unless said: what goes wrong becomes an event.
 */
#ifndef AGENTBOX_SUPERVISE_RUN_H
#define AGENTBOX_SUPERVISE_RUN_H

#include <linux/seccomp.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <termios.h>

#include "base/err.h"
#include "box/box.h"
#include "box/sync.h"
#include "broker/gateway.h"
#include "plan/plan.h"
#include "report/result.h"
#include "supervise/machine.h"
#include "supervise/supervise.h"
#include "supervise/watch.h"

#define NEVER INT64_MAX /* a deadline that is none */

#define SETUP_MAX_NS  (30 * INT64_C(1000000000)) /* for making the box */
#define ENDING_MAX_NS (5 * INT64_C(1000000000))  /* for init to end what the command left */
#define REAPING_MAX_NS                                                                             \
	(15 * INT64_C(1000000000)) /* for a reaper to end all of a kept box's command */

#define CHUNK          ((size_t)65536) /* one read; what a pipe holds by default */
#define READS_PER_TURN 8               /* of one stream, before the others have their turn */

/*
 * Where bytes of the box go live: a descriptor of the caller's, whose open file description others
 * share, so it is never made non-blocking. Writing to it must not block either: signals and timers
 * go on while the caller does not read.
 */
struct sink {
	int fd;       /* the caller's, or our own open file description of the same thing */
	bool own;     /* close it at the end */
	bool socket;  /* send(2) with MSG_DONTWAIT */
	size_t chunk; /* at most so much in one write after POLLOUT */
};

/* One of the command's output streams, or the terminal's. */
struct output {
	int fd;                /* read end, non-blocking; -1: at its end */
	struct stream *stream; /* counts always, keeps when captured */
	bool live;
	struct sink sink; /* fd -1: the caller does not take it any more */
	char *pending;    /* CHUNK bytes, allocated when first needed: read, but not passed on */
	size_t at, len;   /* the part of it that waits */
};

enum input_wait { INPUT_OFF, INPUT_FROM, INPUT_TO };

/* The caller's stdin on its way to the command. */
struct input {
	int from; /* the caller's; not owned */
	int to;   /* owned, non-blocking: the command's stdin, or the terminal's master */
	enum input_wait wait; /* which of the two is waited for */
	bool splice;          /* both are pipes */
	bool socket;          /* from is a socket */
	bool terminal;        /* to is a terminal: its end of input is a character */
	char last;            /* the last byte given to the terminal */
	char *pending;        /* CHUNK bytes, allocated when first needed */
	size_t at, len;
};

struct terminal {
	int master; /* -1: none; owned by the output until it ends, then closed there */
	int caller; /* the caller's terminal, -1: its stdin is none */
	bool raw;   /* the caller's terminal is in raw mode and must be put back */
	struct termios saved;
};

enum slot {
	SLOT_SIGNAL,
	SLOT_SETUP,
	SLOT_STATUS,
	SLOT_PIDFD,
	SLOT_LISTENER,
	SLOT_RENAMES,
	SLOT_NETWORK,
	SLOT_OUT,
	SLOT_ERR,
	SLOT_OUT_TO,
	SLOT_ERR_TO,
	SLOT_IN,
	SLOT_IN_TO,
	SLOT_COUNT,
};

/* Calls that the box's own process for renames makes on their callers' behalf. */
#define RENAMES_AT_ONCE 8
struct renames {
	int sock;                      /* to that process; -1: there is none now */
	unsigned started;              /* how many there have been */
	uint64_t ids[RENAMES_AT_ONCE]; /* of the calls that it has */
	size_t count;
	struct seccomp_notif *waiting; /* a ring, made when it is first needed */
	size_t first, waiting_count;
};

/* The gateway, where the policy allows some hosts or publishes ports, and what looks names up. */
struct network {
	pid_t pid;       /* of the gateway; 0: none, or reaped */
	int sock;        /* to it, see broker/gateway.h; -1: none, or at its end */
	bool ready;      /* it has said that it is confined */
	size_t sockets;  /* how many of the box's it was handed */
	pid_t resolver;  /* 0: none, or reaped */
	unsigned starts; /* of resolvers */
	unsigned wanted; /* sockets that init was asked for and has not sent */
};

struct run {
	const struct plan *plan;
	struct box *box;
	const struct supervise_io *io;
	struct result *result;
	struct err *err;

	enum machine_state state;
	enum blame blame;
	int64_t deadline;              /* of the state, CLOCK_MONOTONIC in ns; NEVER */
	int64_t begun, started, ended; /* times; 0: not yet */

	/* what came with the event that is being handled */
	struct sync_msg msg;
	int msg_fd; /* owned; -1: none, or taken */

	int caller_signals; /* how many came */
	int caller_signal;  /* the first one */
	bool have_ended;
	struct sync_ended how;
	bool have_gone;
	struct sync_gone last;
	int64_t next_look;               /* at the box's processor time; 0: when the command runs */
	struct cgroup_counters counters; /* of its control groups, at the end; else unknown */
	struct cgroup_counters before;   /* of a joined box, as this command came */
	struct watch *watch;             /* limits.c: for what no group counts; NULL: not yet */
	int64_t next_watch;              /* 0: soon after the command runs; NEVER */
	int64_t next_disk;               /* at the layer's room; 0: soon enough; NEVER */
	struct watch_usage seen;         /* by it: the most memory, and the last times */
	unsigned over;                   /* enum limit_bit: what the watch killed the box for */

	int listener; /* -1: none, or all filtered tasks are gone */
	struct renames renames;
	struct network network;
	struct output out[2];
	struct input in;
	struct terminal tty;
	int held[2]; /* hold.c: the output streams once more; -1 */
	char *chunk; /* CHUNK bytes for whoever reads; never holds anything between two reads */
	struct pollfd fds[SLOT_COUNT];
};

/* loop.c */
int64_t run_now(void); /* CLOCK_MONOTONIC, ns */
void run_loop(struct run *run);

/* act.c */
/* An event: ask the table, carry the actions out, enter the next state. */
void run_event(struct run *run, enum machine_event event);
/* A signal to all processes of the box but its init, which sends it. */
void run_signal(struct run *run, int signal);
/* The supervisor cannot go on: keep why in *run->err (the first one) and kill the box. */
void run_broken(struct run *run, enum err_code code, int errnum, const char *what);

/* sink.c */
void sink_open(struct sink *ret, int caller_fd);
/* Write some of it, after POLLOUT: how much (0: not now), or -errno. */
ssize_t sink_write(const struct sink *sink, const char *data, size_t len);
void sink_close(struct sink *sink);

/* capture.c */
/* caller_fd -1: capture. Takes ownership of fd. */
void output_init(struct output *output, int fd, struct stream *stream, size_t max, int caller_fd);
void output_poll(const struct output *output, struct pollfd *from, struct pollfd *to);
/* Read and pass on what there is, but at most READS_PER_TURN chunks. */
void output_turn(struct run *run, struct output *output);
/* The box is gone: read what is left, without ever waiting for the end of file. */
void output_drain(struct run *run, struct output *output);
bool output_busy(const struct output *output); /* bytes wait for the caller */
void output_close(struct output *output);

/* pump.c */
/* Takes ownership of `to`. */
void input_init(struct input *input, int from, int to, bool terminal);
void input_poll(const struct input *input, struct pollfd *from, struct pollfd *to);
void input_turn(struct run *run, short from, short to);
void input_close(struct input *input);

/* listener.c */
/* Answer one notification: record the violation, refuse the call; or hand a rename on. */
void listener_turn(struct run *run, short revents);
/* The process of a thread, from /proc; 0: not to be had. */
pid_t listener_process_of(pid_t thread);

/* renames.c */
/* Have it done, now or when it is its turn. Not when renames_full(). */
void renames_take(struct run *run, const struct seccomp_notif *call);
bool renames_full(const struct run *run);
/* Hand the answers that are there to the callers. */
void renames_turn(struct run *run);
/* After a while in which nothing was handed over; as many renamers may be made as at first. */
void renames_again(struct run *run);
void renames_close(struct run *run);

/* network.c */
/* Make the gateway, where there is something to allow. Failure is an event. */
void network_begin(struct run *run);
/* Hand it the socket that came with the event. */
void network_give(struct run *run);
/* Hear what it has to say. */
void network_turn(struct run *run);
/* The box is gone: let it bring away what was sent, and hear the rest. */
void network_end(struct run *run);

/* publish.c */
/* The command runs: hand the gateway the host's listening sockets. */
void published_hand(struct run *run);
/* What the gateway says about them. */
void published_hear(struct run *run, const struct gateway_msg *msg);
/* Hand it the socket that came with the event. */
void published_spare(struct run *run);

/* terminal.c */
void terminal_take(struct run *run, int master);
void terminal_start(struct run *run); /* the command runs: the caller's terminal becomes raw */
void terminal_resize(struct run *run);
void terminal_restore(struct run *run);

/* usage.c */
/* Init has ended: take its exit status, and the usage of all that it waited for. */
void usage_reap(struct run *run);
/* Init is about to end: the usage that it told of. */
void usage_told(struct run *run);

/* limits.c */
/* When what the box uses must be looked at next, CLOCK_MONOTONIC in ns; or NEVER. */
int64_t limits_due(const struct run *run);
void limits_look(struct run *run);
/* Of a kept box: what was counted before this command. */
void limits_begin(struct run *run);
/* Everybody has ended: what was counted, into the usage too. */
void limits_read(struct run *run);
/* The limits (enum limit_bit) that were reached by what limits_read() found. */
unsigned limits_reached(const struct run *run);

/* hold.c */
/* In a kept box: what the command left lives on, so keep its output for hold_start(). */
void hold_output(struct run *run);
/*
 * The run is over: a process of its own answers for what the command left, until that has ended.
 * Where it cannot be made, what was left ends.
 */
void hold_start(struct run *run);

/* finish.c */
/* How it ended, in *run->result, once the box is gone. 0 or -1 with *run->err. */
int run_finish(struct run *run);

#endif
