/* machine_test: every cell of the supervisor's table, and what must hold of it as a whole. */
#include "check.h"
#include "supervise/machine.h"

/* One letter a state: Setup, Execing, Running, Terminating, eNding, Killing, Draining, dOne. */
static const char letters[] = "?SERTNKDO";

/* What is expected, written down apart from the table: an event's row, a state's column. */
static const struct {
	enum machine_event event;
	const char *next;  /* for S E R T N K D O */
	const char *blame; /* f d l p L w u c o v b, '.': none */
} expected[] = {
	{ EVENT_FDS, "SKKKKKDO", ".pppp..." },
	{ EVENT_LAYER, "SKKKKKDO", ".pppp..." },
	{ EVENT_SOCKET, "SKKKKKDO", ".pppp..." },
	{ EVENT_SPARE, "KKRTKKDO", "pp..p..." },
	{ EVENT_EXECING, "EKKKKKDO", ".pppp..." },
	{ EVENT_FAILED, "KKKKKKDO", "ffppp..." },
	{ EVENT_SETUP_EOF, "KRRTNKDO", "d......." },
	{ EVENT_ENDED, "KKNNKKDO", "pp..p..." },
	{ EVENT_GONE, "KKKKDKDO", "pppp...." },
	{ EVENT_STATUS_EOF, "KEKKNKDO", "d.LL...." },
	{ EVENT_INIT_EXIT, "DDDDDDDO", "ddLL...." },
	{ EVENT_TIMER, "KKTKKKDO", "llw....." },
	{ EVENT_CANCEL, "KKTTNKOO", "ccc...c." },
	{ EVENT_CANCEL_AGAIN, "KKKKKKOO", "ccc...c." },
	{ EVENT_OUTPUT_LIMIT, "KKKKNKDO", "poooooo." },
	{ EVENT_CPU_LIMIT, "SEKKNKDO", "..uu...." },
	{ EVENT_DENIED, "KKKKNKDO", "vvvv...." },
	{ EVENT_PROTOCOL, "KKKKKKDO", "ppppp..." },
	{ EVENT_BROKEN, "KKKKKKOO", "bbbbbbb." },
	{ EVENT_DRAINED, "SERTNKOO", "........" },
};
static const char blames[] = ".fdlpLwucovb";

static void every_cell(void)
{
	CHECK(sizeof expected / sizeof *expected == EVENT_COUNT_);
	for (int i = 0; i < EVENT_COUNT_; i++) {
		enum machine_event event = expected[i].event;
		CHECK((int)event == i);
		for (int s = STATE_SETUP; s < STATE_COUNT_; s++) {
			struct machine_cell cell = machine_step((enum machine_state)s, event);
			char next = letters[cell.next < STATE_COUNT_ ? cell.next : 0];
			char blame = blames[cell.blame < sizeof blames - 1 ? cell.blame : 0];
			char want = expected[i].blame[s - 1];
			if (next != expected[i].next[s - 1] || blame != want) {
				fprintf(stderr, "%s in %s: got %c%c, want %c%c\n",
					machine_event_name(event),
					machine_state_name((enum machine_state)s), next, blame,
					expected[i].next[s - 1], want);
				check_failures++;
			}
		}
	}
}

static void no_cell_is_empty(void)
{
	for (int s = STATE_SETUP; s < STATE_COUNT_; s++)
		for (int e = 0; e < EVENT_COUNT_; e++) {
			struct machine_cell cell =
				machine_step((enum machine_state)s, (enum machine_event)e);
			CHECK(cell.next > STATE_NONE_ && cell.next < STATE_COUNT_);
		}
}

/* The exact places of each action; nowhere else. */
static void actions_stand_where_they_belong(void)
{
	for (int s = STATE_SETUP; s < STATE_COUNT_; s++)
		for (int e = 0; e < EVENT_COUNT_; e++) {
			struct machine_cell cell =
				machine_step((enum machine_state)s, (enum machine_event)e);
			int want = 0;
			if (cell.next == STATE_KILLING &&
				(s != STATE_KILLING || e == EVENT_TIMER || e == EVENT_BROKEN))
				want |= ACT_KILL;
			if (s == STATE_EXECING && e == EVENT_STATUS_EOF)
				want |= ACT_KILL;
			if (s == STATE_SETUP && e == EVENT_FDS)
				want |= ACT_TAKE_TERMINAL;
			if (s == STATE_SETUP && e == EVENT_LAYER)
				want |= ACT_TAKE_LAYER;
			if (s == STATE_SETUP && e == EVENT_SOCKET)
				want |= ACT_TAKE_SOCKET;
			if (e == EVENT_SPARE && (s == STATE_RUNNING || s == STATE_TERMINATING))
				want |= ACT_TAKE_SPARE;
			if (s == STATE_SETUP && e == EVENT_EXECING)
				want |= ACT_TAKE_LISTENER;
			if ((s == STATE_SETUP || s == STATE_EXECING) && e == EVENT_FAILED)
				want |= ACT_FAIL;
			if (s == STATE_EXECING && (e == EVENT_SETUP_EOF || e == EVENT_DENIED ||
							  e == EVENT_OUTPUT_LIMIT))
				want |= ACT_STARTED;
			if (e == EVENT_ENDED && (s == STATE_RUNNING || s == STATE_TERMINATING ||
							s == STATE_KILLING))
				want |= ACT_ENDED;
			if (e == EVENT_GONE && (s == STATE_ENDING || s == STATE_KILLING))
				want |= ACT_GONE;
			if (e == EVENT_GONE && s == STATE_ENDING)
				want |= ACT_COUNT;
			if (cell.next == STATE_TERMINATING && s == STATE_RUNNING)
				want |= ACT_TERM;
			if (e == EVENT_INIT_EXIT && s < STATE_DRAINING)
				want |= ACT_REAP;
			if (s == STATE_DRAINING && cell.next == STATE_DONE && e != EVENT_DRAINED)
				want |= ACT_ABANDON;
			if (cell.actions != want)
				fprintf(stderr, "%s in %s: actions %x, want %x\n",
					machine_event_name((enum machine_event)e),
					machine_state_name((enum machine_state)s), cell.actions,
					(unsigned)want);
			CHECK(cell.actions == want);
		}
}

/* DONE is only reached by way of DRAINING, and that when init has ended or says that it is alone.
 */
static void the_end_follows_the_end_of_init(void)
{
	for (int s = STATE_SETUP; s < STATE_DRAINING; s++)
		for (int e = 0; e < EVENT_COUNT_; e++) {
			struct machine_cell cell =
				machine_step((enum machine_state)s, (enum machine_event)e);
			CHECK(cell.next != STATE_DONE);
			CHECK((cell.next == STATE_DRAINING) ==
				(e == EVENT_INIT_EXIT || (s == STATE_ENDING && e == EVENT_GONE)));
		}
	for (int s = STATE_SETUP; s < STATE_DONE; s++) {
		struct machine_cell cell = machine_step((enum machine_state)s, EVENT_INIT_EXIT);
		CHECK(cell.next == STATE_DRAINING);
	}
}

/* From every state the events that are sure to come lead to the end. */
static void every_state_ends(void)
{
	for (int s = STATE_SETUP; s < STATE_COUNT_; s++) {
		static const enum machine_event sure[] = { EVENT_TIMER, EVENT_TIMER,
			EVENT_INIT_EXIT, EVENT_DRAINED };
		enum machine_state state = (enum machine_state)s;
		for (size_t i = 0; i < sizeof sure / sizeof *sure; i++)
			state = (enum machine_state)machine_step(state, sure[i]).next;
		CHECK(state == STATE_DONE);
	}
}

static void strangers_kill(void)
{
	struct machine_cell cell = machine_step(STATE_NONE_, EVENT_FDS);
	CHECK(cell.next == STATE_KILLING && cell.actions == ACT_KILL);
	cell = machine_step(STATE_COUNT_, EVENT_FDS);
	CHECK(cell.next == STATE_KILLING && cell.blame == BLAME_BROKEN);
	cell = machine_step(STATE_RUNNING, EVENT_COUNT_);
	CHECK(cell.next == STATE_KILLING && cell.actions == ACT_KILL);
}

static void names(void)
{
	CHECK_TEXT(machine_state_name(STATE_SETUP), "SETUP");
	CHECK_TEXT(machine_state_name(STATE_DONE), "DONE");
	CHECK_TEXT(machine_state_name(STATE_COUNT_), "?");
	CHECK_TEXT(machine_event_name(EVENT_FDS), "FDS");
	CHECK_TEXT(machine_event_name(EVENT_DRAINED), "DRAINED");
	CHECK_TEXT(machine_event_name(EVENT_COUNT_), "?");
}

int main(void)
{
	RUN(every_cell);
	RUN(no_cell_is_empty);
	RUN(actions_stand_where_they_belong);
	RUN(the_end_follows_the_end_of_init);
	RUN(every_state_ends);
	RUN(strangers_kill);
	RUN(names);
	return CHECK_STATUS();
}
