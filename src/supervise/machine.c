/* machine: the table of states and events. Holds nothing, does nothing. */
#include "supervise/machine.h"

#define GO(state, what, whom)                                                                      \
	{                                                                                          \
		STATE_##state, BLAME_##whom, (what)                                                \
	}
#define KILL(whom)  GO(KILLING, ACT_KILL, whom)
#define STAY(state) GO(state, 0, NONE)

/*
 * In every state:
 * - a message that has no place in it kills the box, unless it is being killed or is gone already;
 * - INIT_EXIT means that nobody is left, so it always leads to DRAINING;
 * - what cannot happen any more (a timer in a state without one) changes nothing.
 */
static const struct machine_cell table[STATE_COUNT_][EVENT_COUNT_] = {
	[STATE_SETUP] = {
		[EVENT_FDS]          = GO(SETUP, ACT_TAKE_TERMINAL, NONE),
		[EVENT_LAYER]        = GO(SETUP, ACT_TAKE_LAYER, NONE),
		[EVENT_SOCKET]       = GO(SETUP, ACT_TAKE_SOCKET, NONE),
		[EVENT_SPARE]        = KILL(PROTOCOL),
		[EVENT_EXECING]      = GO(EXECING, ACT_TAKE_LISTENER, NONE),
		[EVENT_FAILED]       = GO(KILLING, ACT_FAIL | ACT_KILL, FAILED),
		[EVENT_SETUP_EOF]    = KILL(DIED),
		[EVENT_ENDED]        = KILL(PROTOCOL),
		[EVENT_GONE]         = KILL(PROTOCOL),
		[EVENT_STATUS_EOF]   = KILL(DIED),
		[EVENT_INIT_EXIT]    = GO(DRAINING, ACT_REAP, DIED),
		[EVENT_TIMER]        = KILL(LATE),
		[EVENT_CANCEL]       = KILL(CANCEL),
		[EVENT_CANCEL_AGAIN] = KILL(CANCEL),
		[EVENT_OUTPUT_LIMIT] = KILL(PROTOCOL),
		/* Processor time is looked at only while the command runs. */
		[EVENT_CPU_LIMIT]    = STAY(SETUP),
		[EVENT_DENIED]       = KILL(DENIED),
		[EVENT_PROTOCOL]     = KILL(PROTOCOL),
		[EVENT_BROKEN]       = KILL(BROKEN),
		[EVENT_DRAINED]      = STAY(SETUP),
	},
	[STATE_EXECING] = {
		[EVENT_FDS]          = KILL(PROTOCOL),
		[EVENT_LAYER]        = KILL(PROTOCOL),
		[EVENT_SOCKET]       = KILL(PROTOCOL),
		[EVENT_SPARE]        = KILL(PROTOCOL),
		[EVENT_EXECING]      = KILL(PROTOCOL),
		[EVENT_FAILED]       = GO(KILLING, ACT_FAIL | ACT_KILL, FAILED),
		[EVENT_SETUP_EOF]    = GO(RUNNING, ACT_STARTED, NONE),
		[EVENT_ENDED]        = KILL(PROTOCOL),
		[EVENT_GONE]         = KILL(PROTOCOL),
		/* A dying init lets go of both sockets, in any order: the end of setup is still to come. */
		[EVENT_STATUS_EOF]   = GO(EXECING, ACT_KILL, NONE),
		[EVENT_INIT_EXIT]    = GO(DRAINING, ACT_REAP, DIED),
		[EVENT_TIMER]        = KILL(LATE),
		[EVENT_CANCEL]       = KILL(CANCEL),
		[EVENT_CANCEL_AGAIN] = KILL(CANCEL),
		/* Output and refused calls may be seen before the end of file that tells of the exec. */
		[EVENT_OUTPUT_LIMIT] = GO(KILLING, ACT_STARTED | ACT_KILL, OUTPUT),
		[EVENT_CPU_LIMIT]    = STAY(EXECING),
		[EVENT_DENIED]       = GO(KILLING, ACT_STARTED | ACT_KILL, DENIED),
		[EVENT_PROTOCOL]     = KILL(PROTOCOL),
		[EVENT_BROKEN]       = KILL(BROKEN),
		[EVENT_DRAINED]      = STAY(EXECING),
	},
	[STATE_RUNNING] = {
		[EVENT_FDS]          = KILL(PROTOCOL),
		[EVENT_LAYER]        = KILL(PROTOCOL),
		[EVENT_SOCKET]       = KILL(PROTOCOL),
		[EVENT_SPARE]        = GO(RUNNING, ACT_TAKE_SPARE, NONE),
		[EVENT_EXECING]      = KILL(PROTOCOL),
		[EVENT_FAILED]       = KILL(PROTOCOL),
		[EVENT_SETUP_EOF]    = STAY(RUNNING),
		[EVENT_ENDED]        = GO(ENDING, ACT_ENDED, NONE),
		[EVENT_GONE]         = KILL(PROTOCOL),
		[EVENT_STATUS_EOF]   = KILL(LOST),
		[EVENT_INIT_EXIT]    = GO(DRAINING, ACT_REAP, LOST),
		[EVENT_TIMER]        = GO(TERMINATING, ACT_TERM, WALL),
		[EVENT_CANCEL]       = GO(TERMINATING, ACT_TERM, CANCEL),
		[EVENT_CANCEL_AGAIN] = KILL(CANCEL),
		[EVENT_OUTPUT_LIMIT] = KILL(OUTPUT),
		[EVENT_CPU_LIMIT]    = KILL(CPU),
		[EVENT_DENIED]       = KILL(DENIED),
		[EVENT_PROTOCOL]     = KILL(PROTOCOL),
		[EVENT_BROKEN]       = KILL(BROKEN),
		[EVENT_DRAINED]      = STAY(RUNNING),
	},
	[STATE_TERMINATING] = {
		[EVENT_FDS]          = KILL(PROTOCOL),
		[EVENT_LAYER]        = KILL(PROTOCOL),
		[EVENT_SOCKET]       = KILL(PROTOCOL),
		[EVENT_SPARE]        = GO(TERMINATING, ACT_TAKE_SPARE, NONE),
		[EVENT_EXECING]      = KILL(PROTOCOL),
		[EVENT_FAILED]       = KILL(PROTOCOL),
		[EVENT_SETUP_EOF]    = STAY(TERMINATING),
		[EVENT_ENDED]        = GO(ENDING, ACT_ENDED, NONE),
		[EVENT_GONE]         = KILL(PROTOCOL),
		[EVENT_STATUS_EOF]   = KILL(LOST),
		[EVENT_INIT_EXIT]    = GO(DRAINING, ACT_REAP, LOST),
		[EVENT_TIMER]        = KILL(NONE),
		/* After the wall limit a first signal of the caller's asks for what is under way. */
		[EVENT_CANCEL]       = STAY(TERMINATING),
		[EVENT_CANCEL_AGAIN] = KILL(NONE),
		[EVENT_OUTPUT_LIMIT] = KILL(OUTPUT),
		[EVENT_CPU_LIMIT]    = KILL(CPU),
		[EVENT_DENIED]       = KILL(DENIED),
		[EVENT_PROTOCOL]     = KILL(PROTOCOL),
		[EVENT_BROKEN]       = KILL(BROKEN),
		[EVENT_DRAINED]      = STAY(TERMINATING),
	},
	[STATE_ENDING] = {
		[EVENT_FDS]          = KILL(PROTOCOL),
		[EVENT_LAYER]        = KILL(PROTOCOL),
		[EVENT_SOCKET]       = KILL(PROTOCOL),
		[EVENT_SPARE]        = KILL(PROTOCOL),
		[EVENT_EXECING]      = KILL(PROTOCOL),
		[EVENT_FAILED]       = KILL(PROTOCOL),
		[EVENT_SETUP_EOF]    = STAY(ENDING),
		[EVENT_ENDED]        = KILL(PROTOCOL),
		[EVENT_GONE]         = GO(DRAINING, ACT_GONE | ACT_COUNT, NONE),
		[EVENT_STATUS_EOF]   = STAY(ENDING),
		[EVENT_INIT_EXIT]    = GO(DRAINING, ACT_REAP, NONE),
		[EVENT_TIMER]        = KILL(NONE),
		/* The command's own end is known and stays the result. */
		[EVENT_CANCEL]       = STAY(ENDING),
		[EVENT_CANCEL_AGAIN] = KILL(NONE),
		/* Found late, for the pipe held it; the same as if it had been found in time. */
		[EVENT_OUTPUT_LIMIT] = GO(ENDING, 0, OUTPUT),
		[EVENT_CPU_LIMIT]    = STAY(ENDING),
		[EVENT_DENIED]       = STAY(ENDING),
		[EVENT_PROTOCOL]     = KILL(PROTOCOL),
		[EVENT_BROKEN]       = KILL(BROKEN),
		[EVENT_DRAINED]      = STAY(ENDING),
	},
	[STATE_KILLING] = {
		[EVENT_FDS]          = STAY(KILLING),
		[EVENT_LAYER]        = STAY(KILLING),
		[EVENT_SOCKET]       = STAY(KILLING),
		[EVENT_SPARE]        = STAY(KILLING),
		[EVENT_EXECING]      = STAY(KILLING),
		[EVENT_FAILED]       = STAY(KILLING),
		[EVENT_SETUP_EOF]    = STAY(KILLING),
		[EVENT_ENDED]        = GO(KILLING, ACT_ENDED, NONE),
		[EVENT_GONE]         = GO(KILLING, ACT_GONE, NONE),
		[EVENT_STATUS_EOF]   = STAY(KILLING),
		[EVENT_INIT_EXIT]    = GO(DRAINING, ACT_REAP, NONE),
		[EVENT_TIMER]        = KILL(NONE),
		[EVENT_CANCEL]       = STAY(KILLING),
		[EVENT_CANCEL_AGAIN] = STAY(KILLING),
		[EVENT_OUTPUT_LIMIT] = GO(KILLING, 0, OUTPUT),
		[EVENT_CPU_LIMIT]    = STAY(KILLING),
		[EVENT_DENIED]       = STAY(KILLING),
		[EVENT_PROTOCOL]     = STAY(KILLING),
		[EVENT_BROKEN]       = KILL(BROKEN),
		[EVENT_DRAINED]      = STAY(KILLING),
	},
	[STATE_DRAINING] = {
		[EVENT_FDS]          = STAY(DRAINING),
		[EVENT_LAYER]        = STAY(DRAINING),
		[EVENT_SOCKET]       = STAY(DRAINING),
		[EVENT_SPARE]        = STAY(DRAINING),
		[EVENT_EXECING]      = STAY(DRAINING),
		[EVENT_FAILED]       = STAY(DRAINING),
		[EVENT_SETUP_EOF]    = STAY(DRAINING),
		[EVENT_ENDED]        = STAY(DRAINING),
		[EVENT_GONE]         = STAY(DRAINING),
		[EVENT_STATUS_EOF]   = STAY(DRAINING),
		[EVENT_INIT_EXIT]    = STAY(DRAINING),
		[EVENT_TIMER]        = STAY(DRAINING),
		/* Only a caller that does not read its own output is still waited for. */
		[EVENT_CANCEL]       = GO(DONE, ACT_ABANDON, CANCEL),
		[EVENT_CANCEL_AGAIN] = GO(DONE, ACT_ABANDON, CANCEL),
		[EVENT_OUTPUT_LIMIT] = GO(DRAINING, 0, OUTPUT),
		[EVENT_CPU_LIMIT]    = STAY(DRAINING),
		[EVENT_DENIED]       = STAY(DRAINING),
		[EVENT_PROTOCOL]     = STAY(DRAINING),
		[EVENT_BROKEN]       = GO(DONE, ACT_ABANDON, BROKEN),
		[EVENT_DRAINED]      = STAY(DONE),
	},
	[STATE_DONE] = {
		[EVENT_FDS]          = STAY(DONE),
		[EVENT_LAYER]        = STAY(DONE),
		[EVENT_SOCKET]       = STAY(DONE),
		[EVENT_SPARE]        = STAY(DONE),
		[EVENT_EXECING]      = STAY(DONE),
		[EVENT_FAILED]       = STAY(DONE),
		[EVENT_SETUP_EOF]    = STAY(DONE),
		[EVENT_ENDED]        = STAY(DONE),
		[EVENT_GONE]         = STAY(DONE),
		[EVENT_STATUS_EOF]   = STAY(DONE),
		[EVENT_INIT_EXIT]    = STAY(DONE),
		[EVENT_TIMER]        = STAY(DONE),
		[EVENT_CANCEL]       = STAY(DONE),
		[EVENT_CANCEL_AGAIN] = STAY(DONE),
		[EVENT_OUTPUT_LIMIT] = STAY(DONE),
		[EVENT_CPU_LIMIT]    = STAY(DONE),
		[EVENT_DENIED]       = STAY(DONE),
		[EVENT_PROTOCOL]     = STAY(DONE),
		[EVENT_BROKEN]       = STAY(DONE),
		[EVENT_DRAINED]      = STAY(DONE),
	},
};

struct machine_cell machine_step(enum machine_state state, enum machine_event event)
{
	if (state <= STATE_NONE_ || state >= STATE_COUNT_ || (unsigned)event >= EVENT_COUNT_)
		return table[STATE_KILLING][EVENT_BROKEN];
	return table[state][event];
}

const char *machine_state_name(enum machine_state state)
{
	static const char *const names[] = { "?",
#define X(name, words) #name,
		MACHINE_STATES(X)
#undef X
	};
	return (unsigned)state < STATE_COUNT_ ? names[state] : "?";
}

const char *machine_event_name(enum machine_event event)
{
	static const char *const names[] = {
#define X(name, words) #name,
		MACHINE_EVENTS(X)
#undef X
	};
	return (unsigned)event < EVENT_COUNT_ ? names[event] : "?";
}
