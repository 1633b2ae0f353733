/*
 * machine: what the supervisor does about each event in each state. A pure table: no clock, no
 * descriptor, no memory; loop.c finds the events and carries the actions out.
 *
 * The machine never waits for an absence. Where something might never come (the box hangs while it
 * is made, the command ignores SIGTERM, init does not finish), the state has a time limit, and its
 * end is MACHINE_TIMER. When init says that it is alone, all that the result tells of is known; its
 * own end, before which the result must not be printed, is then waited for by supervise_end().
 */
#ifndef AGENTBOX_SUPERVISE_MACHINE_H
#define AGENTBOX_SUPERVISE_MACHINE_H

/* X(name, what is so) */
#define MACHINE_STATES(X)                                                                          \
	X(SETUP, "the box is being made")                                                          \
	X(EXECING, "the command is about to be executed")                                          \
	X(RUNNING, "the command runs")                                                             \
	X(TERMINATING, "SIGTERM was sent; the grace period runs")                                  \
	X(ENDING, "the command has ended; init ends what it left")                                 \
	X(KILLING, "SIGKILL was sent to init; only its end is waited for")                         \
	X(DRAINING, "the command and all that it left are gone; output in pipes is taken")         \
	X(DONE, "all is known")

/* X(name, what happened) */
#define MACHINE_EVENTS(X)                                                                          \
	X(FDS, "the master of the box's terminal arrived")                                         \
	X(LAYER, "the directory of a private layer arrived")                                       \
	X(SOCKET, "a socket of the box's network arrived")                                         \
	X(SPARE, "a socket arrived that was asked for")                                            \
	X(EXECING, "the seccomp listener arrived: execve is next")                                 \
	X(FAILED, "a stage failed and said why")                                                   \
	X(SETUP_EOF, "nobody holds the setup socket any more")                                     \
	X(ENDED, "init says how the command ended")                                                \
	X(GONE, "init says that it is alone")                                                      \
	X(STATUS_EOF, "init has let go of the status socket")                                      \
	X(INIT_EXIT, "init has ended, and with it every process of the box")                       \
	X(TIMER, "the state's time is over")                                                       \
	X(CANCEL, "the caller's first signal")                                                     \
	X(CANCEL_AGAIN, "another signal of the caller's")                                          \
	X(OUTPUT_LIMIT, "a stream passed its maximum and the policy says kill")                    \
	X(CPU_LIMIT, "the box has used all the processor time that it may")                        \
	X(DENIED, "a violation, and the policy says kill")                                         \
	X(PROTOCOL, "a message that has no place here")                                            \
	X(BROKEN, "the supervisor itself cannot go on")                                            \
	X(DRAINED, "the pipes are empty and all is passed on")

enum machine_state {
	STATE_NONE_, /* so that an empty cell of the table can be told */
#define X(name, words) STATE_##name,
	MACHINE_STATES(X)
#undef X
		STATE_COUNT_
};

enum machine_event {
#define X(name, words) EVENT_##name,
	MACHINE_EVENTS(X)
#undef X
		EVENT_COUNT_
};

/* What is to be done, in this order. */
enum machine_action {
	ACT_TAKE_TERMINAL = 1 << 0, /* keep the descriptor that came: the terminal */
	ACT_TAKE_LISTENER = 1 << 1, /* keep the descriptor that came: the listener */
	ACT_STARTED = 1 << 2,       /* the command runs from here on */
	ACT_FAIL = 1 << 3,          /* keep the error that came */
	ACT_ENDED = 1 << 4,         /* keep how the command ended */
	ACT_GONE = 1 << 5,          /* keep what init found at the end */
	ACT_TAKE_LAYER = 1 << 11,   /* keep the descriptor that came: a layer's directory */
	ACT_TAKE_SOCKET = 1 << 12,  /* hand the descriptor that came to the gateway */
	ACT_TAKE_SPARE = 1 << 13,   /* the same with one that it has asked for */
	ACT_COUNT = 1 << 10,        /* take the usage that init tells of */
	ACT_TERM = 1 << 6,          /* SIGTERM to all processes of the box */
	ACT_KILL = 1 << 7,          /* SIGKILL to init */
	ACT_REAP = 1 << 8,          /* take init's exit status and usage */
	ACT_ABANDON = 1 << 9,       /* let go of output that was not passed on yet */
};

/* What the end of the run is put down to; the first one stays, but BROKEN goes before all. */
enum blame {
	BLAME_NONE,     /* the command's own end */
	BLAME_FAILED,   /* a stage failed */
	BLAME_DIED,     /* the box went away before the command ran */
	BLAME_LATE,     /* the box was not ready in time */
	BLAME_PROTOCOL, /* a message that has no place */
	BLAME_LOST,     /* init was ended by somebody else while the command ran */
	BLAME_WALL,
	BLAME_CPU,
	BLAME_CANCEL,
	BLAME_OUTPUT,
	BLAME_DENIED,
	BLAME_BROKEN,
};

struct machine_cell {
	unsigned char next;     /* enum machine_state */
	unsigned char blame;    /* enum blame */
	unsigned short actions; /* enum machine_action */
};

/* Pure. A state or event outside of the table answers as BROKEN in KILLING does: kill. */
struct machine_cell machine_step(enum machine_state state, enum machine_event event);

/* The names as in the tables above; "?" when there is none. */
const char *machine_state_name(enum machine_state state);
const char *machine_event_name(enum machine_event event);

#endif
