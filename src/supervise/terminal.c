/*
 * terminal: --tty. Joins the caller's terminal with the box's: raw mode and its end, window size.
 * The bytes go through pump.c and capture.c, so Ctrl-C is a character like any other, and the
 * box's own terminal makes a signal of it, inside.
 */
#define _GNU_SOURCE
#include "supervise/run.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

void terminal_resize(struct run *run)
{
	struct winsize size;
	if (run->tty.master < 0)
		return;
	if ((run->io->stdin_fd >= 0 && ioctl(run->io->stdin_fd, TIOCGWINSZ, &size) == 0) ||
		(run->io->stdout_fd >= 0 && ioctl(run->io->stdout_fd, TIOCGWINSZ, &size) == 0))
		(void)ioctl(run->tty.master, TIOCSWINSZ, &size);
}

void terminal_take(struct run *run, int master)
{
	run->tty.master = master;
	/* Nobody else has this open file description: the box closed its copy. */
	int flags = fcntl(master, F_GETFL);
	int out = fcntl(master, F_DUPFD_CLOEXEC, 3);
	int in = fcntl(master, F_DUPFD_CLOEXEC, 3);
	run->out[0].fd = out;
	input_init(&run->in, run->io->stdin_fd, in, true);
	if (flags < 0 || out < 0 || in < 0 || fcntl(master, F_SETFL, flags | O_NONBLOCK) < 0) {
		run_broken(run, ERR_no_resources, errno, "the box's terminal");
		return;
	}
	terminal_resize(run);
}

void terminal_start(struct run *run)
{
	struct terminal *tty = &run->tty;
	if (tty->master < 0 || run->io->stdin_fd < 0 ||
		tcgetattr(run->io->stdin_fd, &tty->saved) < 0)
		return;
	struct termios raw = tty->saved;
	cfmakeraw(&raw);
	/* TCSANOW: the other ways wait for a terminal that may be stopped. */
	tty->caller = run->io->stdin_fd;
	tty->raw = tcsetattr(tty->caller, TCSANOW, &raw) == 0;
}

void terminal_restore(struct run *run)
{
	struct terminal *tty = &run->tty;
	if (tty->raw) {
		/* In the background this would stop us for ever (SIGTTOU, termios(3)) but for the
		 * block. */
		sigset_t block, old;
		sigemptyset(&block);
		sigaddset(&block, SIGTTOU);
		sigprocmask(SIG_BLOCK, &block, &old);
		(void)tcsetattr(tty->caller, TCSANOW, &tty->saved);
		sigprocmask(SIG_SETMASK, &old, NULL);
		tty->raw = false;
	}
	fd_close(&tty->master);
}
