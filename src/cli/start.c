/* start: what happens between the start of the program and the start of its command. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

uint64_t cli_clock_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

int cli_open_standard(struct err *err)
{
	struct pollfd fds[3] = { { .fd = 0 }, { .fd = 1 }, { .fd = 2 } };
	/* One call for all three; a closed descriptor is the only thing that makes POLLNVAL. */
	if (poll(fds, 3, 0) <= 0)
		return 0;
	for (int i = 0; i < 3; i++) {
		if (!(fds[i].revents & POLLNVAL))
			continue;
		int fd = open("/dev/null", (i == STDERR_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
		if (fd < 0)
			return err_set(err, ERR_no_resources, errno,
				"descriptor %d is closed and /dev/null cannot be opened: %s", i,
				strerror(errno));
		/* O_PATH descriptors make POLLNVAL too: that one was open after all. */
		if (fd != i)
			close(fd);
	}
	return 0;
}

void cli_signals_back(int signal_fd, const sigset_t *old)
{
	struct signalfd_siginfo info;
	while (read(signal_fd, &info, sizeof info) > 0 || errno == EINTR)
		;
	sigprocmask(SIG_SETMASK, old, NULL);
}

void cli_usage_hint(const struct command *command, struct err *err)
{
	if (!err->hint[0])
		err_hint_set(err, "agentbox%s%s --help", command ? " " : "",
			command ? command->name : "");
}

/* Options before a command: --help and --version, or a mistake. */
static int parse_program(int argc, char *const *argv, struct cli *cli, struct err *err)
{
	if (options_parse(NULL, argc, argv, &cli->options, err) < 0)
		return -1;
	if (cli->options.help)
		cli->command = command_find("help", err);
	else if (options_has(&cli->options, OPTION_agentbox_version))
		cli->command = &version_command;
	if (cli->command)
		return 0;
	err_set(err, ERR_usage, 0, "no command; usage: agentbox COMMAND [OPTIONS] [ARG...]");
	return err_hint_set(err, "agentbox --help lists the commands");
}

void cli_note_words(int argc, char *const *argv, struct cli *cli)
{
	if (argc < 1)
		return;
	char *end = argv[0];
	for (int i = 0; i < argc && argv[i] == end; i++)
		end += strlen(argv[i]) + 1;
	cli->words = argv[0];
	cli->words_len = (size_t)(end - argv[0]);
}

/*
 * `session exec NAME ...` is `run --session NAME ...`: the same options, the same result. *ret_argv
 * has argc words; false: it is something else.
 */
static bool is_exec(int *argc_io, char *const *argv, struct arena *arena, char *const **ret_argv)
{
	int argc = *argc_io;
	if (argc < 3 || strcmp(argv[1], "session") != 0 || strcmp(argv[2], "exec") != 0)
		return false;
	char **words = ARENA_ARRAY(arena, (size_t)argc + 1, char *);
	memcpy(words, argv, (size_t)argc * sizeof *words);
	words[1] = arena_strdup(arena, "run");
	words[2] = arena_strdup(arena, "--session");
	*ret_argv = words;
	/* The name stands first: without it the option lacks its value. */
	if (argc > 3 && argv[3][0] == '-' && strcmp(argv[3], "--help") != 0 &&
		strcmp(argv[3], "-h") != 0)
		*argc_io = 3;
	return true;
}

int cli_parse(int argc, char *const *argv, struct cli *cli, struct err *err)
{
	if (argc < 2 || argv[1][0] == '-')
		return parse_program(argc < 2 ? 0 : argc - 1, argv + (argc > 0), cli, err);
	(void)is_exec(&argc, argv, &cli->arena, &argv);
	const struct command *command = command_find(argv[1], err);
	if (!command)
		return -1;
	cli->command = command;
	int result = options_parse(command, argc - 2, argv + 2, &cli->options, err);
	if (cli->options.help) {
		cli->topic = command;
		cli->command = command_find("help", err);
		return 0;
	}
	if (result == 0)
		return 0;
	if (!command->reports)
		return -1;
	cli_usage_hint(command, err);
	cli->usage = err;
	return 0;
}
