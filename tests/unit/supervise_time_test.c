/* supervise_time_test: what interrupts a run: time limits and the caller's signals. */
#define _GNU_SOURCE
#include "fake_box.h"

static struct stage_play play;

/* --- time --- */

static void obey_term(struct fake *fake)
{
	start(fake);
	(void)!write(fake->out, "early", 5);
	int got = wait_signal(fake);
	end(fake, got == SIGTERM ? 5 << 8 : SIGKILL);
}

static void ignore_term(struct fake *fake)
{
	start(fake);
	(void)!write(fake->out, "early", 5);
	pause_ms(20000);
}

static void die_of_term(struct fake *fake)
{
	start(fake);
	wait_signal(fake);
	raise(SIGKILL);
}

static void time_limit(void)
{
	play_init(&play);
	play.plan.wall_us = 200000;
	play_run(&play, obey_term);
	CHECK(play.result.status == STATUS_TIMEOUT && play.result.limits_hit == LIMIT_WALL);
	CHECK(play.result.exit_code == 5 && result_exit_status(&play.result) == 124);
	CHECK(play.result.out.total == 5);
	CHECK(play.seconds >= 0.2 && play.seconds < 1);
	CHECK(play.result.timing.run_us >= 200000);
	result_free(&play.result);

	/* A46, A59 */
	play_init(&play);
	play.plan.wall_us = 200000;
	play.plan.grace_us = 300000;
	play_run(&play, ignore_term);
	CHECK(play.result.status == STATUS_TIMEOUT && play.result.limits_hit == LIMIT_WALL);
	CHECK(play.result.exit_code == -1 && play.result.signal == SIGKILL);
	CHECK(play.result.out.total == 5);
	CHECK(play.seconds >= 0.5 && play.seconds < 1.5);
	result_free(&play.result);
}

/* What came first is what the end is put down to. */
static void the_first_cause_stays(void)
{
	play_init(&play);
	play.plan.wall_us = 100000;
	play_run(&play, die_of_term);
	CHECK(play.result.status == STATUS_TIMEOUT && play.result.signal == SIGKILL);
	CHECK(play.result.warning_count == 0 && play.seconds < 1);
	result_free(&play.result);
}

static void flood_without_end(struct fake *fake)
{
	static char block[65536];
	start(fake);
	for (;;)
		(void)!write(fake->out, block, sizeof block);
}

/* A flood on a stream must not keep the clock from being looked at. */
static void time_limit_in_a_flood(void)
{
	play_init(&play);
	play.plan.wall_us = 300000;
	play.plan.grace_us = 0;
	play_run(&play, flood_without_end);
	CHECK(play.result.status == STATUS_TIMEOUT && play.result.signal == SIGKILL);
	CHECK(play.seconds >= 0.3 && play.seconds < 1.5);
	result_free(&play.result);
}

/* --- the caller's signals --- */

static int signals_to_send[2];

static void signal_caller(struct fake *fake)
{
	start(fake);
	kill(getppid(), signals_to_send[0]);
	int got = wait_signal(fake);
	if (signals_to_send[1]) {
		kill(getppid(), signals_to_send[1]);
		pause_ms(20000);
	}
	end(fake, got);
}

static void the_caller_cancels(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		signals_to_send[0] = signals[i];
		signals_to_send[1] = 0;
		play_simple(&play, signal_caller);
		CHECK(play.result.status == STATUS_CANCELLED);
		CHECK(play.result.signal == signals[i] && play.result.exit_code == -1);
		CHECK(result_exit_status(&play.result) == 128 + signals[i]);
		CHECK(play.seconds < 1);
		result_free(&play.result);
	}
	/* The second one does not wait for the grace period (here 2 s). */
	signals_to_send[0] = SIGTERM;
	signals_to_send[1] = SIGINT;
	play_simple(&play, signal_caller);
	CHECK(play.result.status == STATUS_CANCELLED && play.result.signal == SIGTERM);
	CHECK(play.seconds < 1);
	result_free(&play.result);
}

static void signal_in_setup(struct fake *fake)
{
	(void)fake;
	kill(getppid(), SIGINT);
	pause_ms(20000);
}

static void signal_and_ignore(struct fake *fake)
{
	start(fake);
	kill(getppid(), SIGTERM);
	pause_ms(20000);
}

static void cancelled_early_and_late(void)
{
	play_simple(&play, signal_in_setup);
	CHECK(play.result.status == STATUS_CANCELLED && play.result.signal == SIGINT);
	CHECK(play.result.error.code == ERR_none && play.result.timing.run_us == UNKNOWN);
	CHECK(play.seconds < 1);
	result_free(&play.result);

	play_init(&play);
	play.plan.grace_us = 200000;
	play_run(&play, signal_and_ignore);
	CHECK(play.result.status == STATUS_CANCELLED && play.result.signal == SIGTERM);
	CHECK(play.seconds >= 0.2 && play.seconds < 1);
	result_free(&play.result);
}

static void noise(struct fake *fake)
{
	start(fake);
	kill(getppid(), SIGWINCH);
	kill(getppid(), SIGCHLD);
	kill(getppid(), SIGPIPE);
	pause_ms(50);
	end(fake, 0);
}

static void other_signals_do_nothing(void)
{
	play_simple(&play, noise);
	CHECK(play.result.status == STATUS_EXITED && play.result.exit_code == 0);
	result_free(&play.result);
}

/* What the caller of agentbox ignores: SIGHUP stays ignored, SIGCHLD must not. */
static int inherit_ignored(void)
{
	struct sigaction action;
	sigset_t old;
	signal(SIGHUP, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	sigemptyset(&old);
	sigaddset(&old, SIGHUP);
	sigprocmask(SIG_UNBLOCK, &old, NULL);
	int fd = supervise_signals(&old);
	raise(SIGHUP);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	if (fd < 0 || poll(&p, 1, 0) != 0)
		return 1;
	raise(SIGQUIT);
	if (poll(&p, 1, 0) != 1)
		return 2;
	sigaction(SIGCHLD, NULL, &action);
	if (action.sa_handler != SIG_DFL)
		return 3;
	sigaction(SIGPIPE, NULL, &action);
	return action.sa_handler == SIG_IGN ? 0 : 4;
}

static void ignored_signals(void)
{
	int status = -1;
	pid_t pid = fork();
	if (pid == 0)
		_exit(inherit_ignored());
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

int main(void)
{
	fake_begin();
	RUN(time_limit);
	RUN(the_first_cause_stays);
	RUN(time_limit_in_a_flood);
	RUN(the_caller_cancels);
	RUN(cancelled_early_and_late);
	RUN(other_signals_do_nothing);
	RUN(ignored_signals);
	return CHECK_STATUS();
}
