/*
 * cli: words in, words out. Turns a command line into the values that the other rooms work on,
 * and what comes back into text, JSON and exit statuses. Decides nothing about boxes.
 *
 * A command is a row of commands.def, its options are rows of options.def, and its work is the
 * function cmd_<name>() in cmd_<name>.c.
 */
#ifndef AGENTBOX_CLI_CLI_H
#define AGENTBOX_CLI_CLI_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "box/box.h"
#include "cli/options.h"
#include "cli/run_layers.h"
#include "cli/runs.h"
#include "plan/filter.h"
#include "plan/host.h"
#include "plan/plan.h"
#include "plan/request.h"
#include "policy/policy.h"
#include "report/result.h"
#include "supervise/supervise.h"

/* Exit statuses of all commands but `run`, whose own are in errors.def and result.h. */
enum cli_status { CLI_YES = 0, CLI_NO = 1, CLI_USAGE = 2, CLI_FAILED = 125 };

/* One call of the program, as its command sees it. */
struct cli {
	uint64_t start_us; /* CLOCK_MONOTONIC when the program started */
	const struct command *command;
	const struct command *topic; /* for `help`: the command to explain, NULL: the program */
	struct options options;
	/*
	 * What is wrong with the command line, NULL: nothing. Only a command that is marked
	 * `reports` is called with one; the options before the mistake are then in `options`.
	 */
	const struct err *usage;
	const char *const *environ; /* the caller's, NULL-terminated */
	/* Where the kernel keeps the program's arguments, which /proc/PID/cmdline shows to all. */
	char *words;
	size_t words_len;
	struct arena arena; /* what the command line was made into; lives as long as the program */
};

/*
 * A command: returns its exit status; or -1 with *err, which main reports to stderr and turns into
 * an exit status (CLI_USAGE for a usage error, else CLI_FAILED).
 */
typedef int cmd_function(const struct cli *cli, struct err *err);

struct command {
	const char *name;
	cmd_function *run;
	bool hidden;         /* not in the help */
	bool stops;          /* the first argument ends the options */
	bool reports;        /* writes a result even for a command line with a mistake */
	const char *usage;   /* its lines without "agentbox NAME", separated by newlines */
	const char *summary; /* one line, no full stop */
	const char *more;    /* further lines of its help, at most 80 columns wide; "" without */
};

/* What `agentbox --version` runs; not in the table. */
extern const struct command version_command;

/* The rows of commands.def; command_at(0..count-1), NULL past the end. */
const struct command *command_at(size_t index);
/* The command's row, or NULL with *err naming the nearest one. */
const struct command *command_find(const char *name, struct err *err);

#define COMMAND(name, flags, usage, summary, more) cmd_function cmd_##name;
#include "cli/commands.def"
#undef COMMAND

/* start.c: what happens before a command */

/* Microseconds of CLOCK_MONOTONIC. */
uint64_t cli_clock_us(void);

/*
 * See to it that 0, 1 and 2 are open, so that no descriptor of ours is taken for one of them. A
 * stand-in for a closed stdout cannot be written to: what would be lost shows as an error.
 */
int cli_open_standard(struct err *err);

/*
 * Fill *cli from the command line; --help and --version become commands of their own. *err is only
 * for cli->usage to point to when it returns 0; with -1 it holds a usage error.
 */
int cli_parse(int argc, char *const *argv, struct cli *cli, struct err *err);

/* Fill cli->words: the strings of argv, as far as they lie one behind the other. */
void cli_note_words(int argc, char *const *argv, struct cli *cli);

/* A usage error without a hint of its own points to the command's help; NULL: the program's. */
void cli_usage_hint(const struct command *command, struct err *err);

/* help.c */

/* `agentbox --help`, and the help of one command; at most 80 columns. */
void help_program(struct buf *out);
void help_command(const struct command *command, struct buf *out);

/* say.c: words for people and lines for programs */

/*
 * Write all of it to a descriptor that may be non-blocking. 0 or -errno. On a pipe that nobody
 * reads the program ends by SIGPIPE, as any tool does.
 */
int say_all(int fd, const void *data, size_t len);

/* The whole of out to stdout; 0, or -1 with *err (result_unwritable). */
int say_out(const struct buf *out, struct err *err);

/* A note on stderr; failures are ignored, there is nobody left to tell. */
void say_note(const struct buf *out);

/* "agentbox: FILE:LINE:COLUMN: TEXT" and "hint: ..." on stderr, control characters made visible. */
void say_error(const struct err *err);

/* The same two lines into out, with `prefix` in front. */
void say_error_text(const struct err *err, const char *prefix, struct buf *out);

/* place.c: where a result goes */

struct place {
	int fd;     /* -1: not open; STDOUT_FILENO and --result-fd are the caller's, not closed */
	int dir_fd; /* --result: the directory that FILE is in, else -1 */
	const char *base; /* --result: its name in there; points into the options */
	const char *name; /* for messages: the file, the descriptor's number, or "stdout" */
	bool file;        /* --result */
	bool live;        /* --result or --result-fd: the command's streams pass through */
};

/* Not open; also what place_close() leaves. */
#define PLACE_NONE ((struct place){ .fd = -1, .dir_fd = -1, .name = "stdout" })

/*
 * Open what --result and --result-fd name, else stdout. A file is made if it is missing, and left
 * as it is until the result is written. No symbolic link is followed that a box may have left: not
 * the file itself, and no directory of a relative name, or of an absolute one below the current
 * directory or the workspace. A pipe without a reader is refused after two seconds.
 * /dev/stdout, /dev/stderr, /dev/fd/N and /proc/self/fd/N mean the descriptor.
 * Errors: usage, result_unwritable.
 */
int place_open(const struct options *options, struct place *ret_place, struct err *err);

/*
 * Replace the file's content, or write to the descriptor. A file that was put in the place of ours
 * meanwhile is replaced: the box may have had the directory. Errors: result_unwritable.
 */
int place_write(struct place *place, const struct buf *text, struct err *err);
void place_close(struct place *place);

/* paths.c: what the caller's environment says about directories */

/* Where policies are looked up. Strings from arena or static. */
void paths_policy_env(struct arena *arena, struct policy_env *ret_env);
/*
 * The real path of a directory; given NULL: the current directory.
 * Errors: workspace_not_found.
 */
int paths_workspace(struct arena *arena, const char *given, const char **ret_path, struct err *err);

/* start.c: signals */

/*
 * Undo what supervise_signals() did to the mask, so that signals end the program in the ordinary
 * way again. Those that came before are about a run that is over by now, and are dropped.
 */
void cli_signals_back(int signal_fd, const sigset_t *old);

/* run_box.c: one box from a loaded policy; used by `run` and `test` */

/*
 * Everything that one run makes and that its result points into. Owned by the caller of
 * cli_run_box(); zeroed by cli_run_init(), freed once the result has been used.
 */
struct cli_run {
	const struct request *request; /* of the plan */
	struct host host;
	struct filter filter;
	struct plan plan;
	struct result result;
	struct box box; /* from cli_run_start() to cli_run_end() */
	struct run_record record;
	struct run_layers layers;
	struct request own;         /* what `request` points to */
	bool live;                  /* there is a box to be ended */
	struct run_session *kept;   /* whose box the command joins; NULL: it has one of its own */
	struct published published; /* the host's ports that lead to the box */
};
void cli_run_init(struct cli_run *run);
void cli_run_free(struct cli_run *run);

/* host_probe, filter_get and plan_build; fills run->host, filter, plan and result.plan, .policy. */
int cli_run_plan(const struct policy *policy, const struct request *request, struct cli_run *run,
	struct err *err);

/*
 * The same for a run that is meant: where only a control group of systemd's helps, this process
 * first goes into one of its own.
 */
int cli_run_prepare(const struct policy *policy, const struct request *request, struct cli_run *run,
	struct err *err);

/* Take the host's ports that the plan publishes; before cli_run_start(). As published_open(). */
int cli_run_publish(struct cli_run *run, struct err *err);

/*
 * box_spawn and supervise_run for the plan that is there. All failures end in run->result.
 * cli_run_end() must follow before the result is told; what can be done between costs nothing, as
 * the kernel cleans up meanwhile. It returns true when it had to add to the result.
 */
void cli_run_start(struct cli_run *run, const struct supervise_io *io);
bool cli_run_end(struct cli_run *run);

/*
 * Both: run one command under a loaded policy. Whatever happens is in run->result (status error
 * with its `error` when the command never ran). Returns 0 when the command ran, else -1.
 * io->signal_fd comes from one supervise_signals() for the whole program.
 */
int cli_run_box(const struct policy *policy, const struct request *request,
	const struct supervise_io *io, struct cli_run *run);

/* snippet.c: --lang and --code */

#define SNIPPET_MAX ((size_t)1 << 20) /* bytes of a snippet */

/*
 * Fill request->argv, argc, code, code_len and code_path for a snippet in a language that the
 * policy's `code` knows; `args` (count of them) are appended to the command. The text stays the
 * caller's. Errors: usage, naming the languages that are known.
 */
int snippet_request(const struct policy *policy, const char *lang, const char *text, size_t len,
	char *const *args, size_t arg_count, struct arena *arena, struct request *request,
	struct err *err);

/* Read a snippet from a descriptor until end of file, at most SNIPPET_MAX bytes. */
int snippet_read(
	int fd, struct arena *arena, const char **ret_text, size_t *ret_len, struct err *err);

#endif
