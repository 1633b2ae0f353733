/* request_test: from the options of `run` to a request: what goes where, and what is refused. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "cli/run_request.h"

/* No command runs here: the table only needs something to point to. */
#define COMMAND(name, flags, usage, summary, more)                                                 \
	int cmd_##name(const struct cli *cli, struct err *err)                                     \
	{                                                                                          \
		(void)cli;                                                                         \
		return err_set(err, ERR_internal, 0, #name);                                       \
	}
#include "cli/commands.def"
#undef COMMAND

struct read {
	struct options options;
	struct arena arena;
	struct run_words words;
	struct request request;
	struct err err;
};

static const char *const no_environ[] = { NULL };

static int read_words(const char *const *words, struct read *ret)
{
	char *argv[32] = { 0 };
	int argc = 0;
	for (; words[argc]; argc++)
		argv[argc] = (char *)words[argc];
	memset(ret, 0, sizeof *ret);
	if (options_parse(command_find("run", &ret->err), argc, argv, &ret->options, &ret->err) < 0)
		return -1;
	return run_request(
		&ret->options, no_environ, &ret->arena, &ret->words, &ret->request, &ret->err);
}

#define READ(...) read_words((const char *const[]){ __VA_ARGS__, NULL }, &got)

static void done(struct read *got)
{
	options_free(&got->options);
	arena_free(&got->arena);
}

static void everything_has_its_place(void)
{
	struct read got;
	CHECK(READ("-p", "a", "-p", "b", "-i", "-e", "X=1=2", "-eY", "--open-files", "7",
		      "--wall=1s", "-C", "/usr/../usr/./lib", "--cwd", "sub", "--", "ls",
		      "-p") == 0);
	CHECK(got.words.policy_count == 2);
	CHECK_TEXT(got.words.policies[1], "b");
	CHECK(got.words.override_count == 2 && got.words.lang == NULL);
	CHECK_TEXT(got.words.overrides[0].key, "limits.open_files");
	CHECK_TEXT(got.words.overrides[0].value, "7");
	CHECK_TEXT(got.words.overrides[0].option, "--open-files");
	CHECK(got.request.env_count == 2 && got.request.env[1].value == NULL);
	CHECK_TEXT(got.request.env[0].name, "X");
	CHECK_TEXT(got.request.env[0].value, "1=2");
	CHECK(got.request.pass_stdin && !got.request.tty && got.request.argc == 2);
	CHECK_TEXT(got.request.argv[1], "-p");
	CHECK(got.request.argv[2] == NULL && got.request.environ == no_environ);
	CHECK_TEXT(got.request.workspace, "/usr/lib");
	CHECK_TEXT(got.request.cwd, "/usr/lib/sub");
	done(&got);
}

/* A29: the workspace is the real directory, however it was reached. */
static void the_workspace_has_no_links(void)
{
	char top[] = "/tmp/request_test.XXXXXX";
	struct read got;
	if (!mkdtemp(top) || chdir(top) < 0 || mkdir("real", 0755) < 0 ||
		symlink("real", "link") < 0) {
		CHECK(false);
		return;
	}
	char real[64];
	snprintf(real, sizeof real, "%s/real", top);
	CHECK(READ("-C", "link", "ls") == 0);
	CHECK_TEXT(got.request.workspace, real);
	done(&got);
	setenv("PWD", "/etc", 1);
	CHECK(chdir("link") == 0 && READ("ls") == 0);
	CHECK_TEXT(got.request.workspace, real);
	CHECK(got.request.cwd == NULL);
	done(&got);
	CHECK(rmdir(real) == 0 && READ("ls") < 0);
	CHECK(got.err.code == ERR_workspace_not_found);
	done(&got);
	CHECK(chdir(top) == 0 && unlink("link") == 0 && chdir("/") == 0 && rmdir(top) == 0);
}

static void mistakes_are_refused(void)
{
	static const struct {
		const char *words[6];
		enum err_code code;
		const char *part; /* of the text */
	} rows[] = {
		{ { NULL }, ERR_usage, "no command" },
		{ { "--lang", "py", NULL }, ERR_usage, "--code" },
		{ { "--code", "x", NULL }, ERR_usage, "--lang" },
		{ { "--lang=py", "--code=x", "ls", NULL }, ERR_usage, "not a command" },
		{ { "--lang=py", "--code=-", "-i", NULL }, ERR_usage, "--stdin" },
		{ { "--tty", "ls", NULL }, ERR_usage, "--tty" },
		{ { "--session", "s", "-C", ".", "ls", NULL }, ERR_usage, "session" },
		{ { "--session", "s", "-p", "default", "ls", NULL }, ERR_usage, "session" },
		{ { "-C", "/nonexistent", "ls", NULL }, ERR_workspace_not_found, "/nonexistent" },
		{ { "-C", "/etc/passwd", "ls", NULL }, ERR_workspace_not_found, "Not a directory" },
		{ { "-C", "", "ls", NULL }, ERR_workspace_not_found, "" },
		{ { "--cwd", "", "ls", NULL }, ERR_usage, "--cwd" },
		{ { "-e", "", "ls", NULL }, ERR_usage, "empty" },
		{ { "-e", "=x", "ls", NULL }, ERR_usage, "empty" },
		{ { "-e", "A\nB=x", "ls", NULL }, ERR_usage, "not the name" },
		{ { "-e", "A B", "ls", NULL }, ERR_usage, "not the name" },
		/* B52 */
		{ { "-e", "BASH_FUNC_x%%=() { :; }", "ls", NULL }, ERR_usage, "never passed" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct read got;
		CHECK(read_words(rows[i].words, &got) < 0);
		CHECK((enum err_code)got.err.code == rows[i].code);
		CHECK(strstr(got.err.text, rows[i].part));
		CHECK(got.request.argv == NULL);
		done(&got);
	}
}

/* Names have a maximum, and the reason behind a long one is not cut off. */
static void long_names_are_refused_with_the_reason(void)
{
	static char name[5000];
	struct read got;
	memset(name, 'a', sizeof name - 1);
	CHECK(READ("--cwd", name, "ls") < 0);
	CHECK(got.err.code == ERR_usage && strstr(got.err.text, "longer than 4095 bytes"));
	done(&got);
	CHECK(READ("-C", name, "ls") < 0);
	CHECK(got.err.code == ERR_workspace_not_found);
	CHECK(strstr(got.err.text, "File name too long"));
	done(&got);
	struct policy policy = { .name = "p" };
	CHECK(READ("--lang", name, "--code", "x") == 0);
	CHECK(snippet_request(&policy, got.words.lang, "x", 1, NULL, 0, &got.arena, &got.request,
		      &got.err) < 0);
	CHECK(got.err.code == ERR_usage && strlen(got.err.hint) < 200 &&
		got.err.hint[strlen(got.err.hint) - 1] == '}');
	done(&got);
}

static void a_snippet_becomes_a_command(void)
{
	static struct policy_word command[] = { { .value = "python3" }, { .value = "-I" },
		{ .value = "--run={file}" } };
	static struct policy_code code[] = {
		{ .lang = "py", .command = command, .command_count = 3, .suffix = ".py" },
		{ .lang = "sh", .command = command, .command_count = 1, .suffix = "" },
	};
	struct policy policy = { .name = "p", .code = code, .code_count = 2 };
	struct read got;
	CHECK(READ("--lang", "py", "--code", "print(1)", "--", "a") == 0);
	CHECK(snippet_request(&policy, got.words.lang, got.words.code, got.words.code_len,
		      got.options.args, got.options.arg_count, &got.arena, &got.request,
		      &got.err) == 0);
	CHECK(got.request.argc == 4 && got.request.argv[4] == NULL && got.request.code_len == 8);
	CHECK_TEXT(got.request.argv[1], "-I");
	CHECK_TEXT(got.request.argv[2], "--run=/run/agentbox/snippet.py");
	CHECK_TEXT(got.request.argv[3], "a");
	CHECK_TEXT(got.request.code_path, "/run/agentbox/snippet.py");
	CHECK(snippet_request(
		      &policy, "ruby", "x", 1, NULL, 0, &got.arena, &got.request, &got.err) < 0);
	CHECK(got.err.code == ERR_usage && strstr(got.err.hint, "py, sh"));
	done(&got);
}

/* A snippet from stdin: any bytes, up to the maximum. */
static void a_snippet_is_read_whole(void)
{
	static char bytes[SNIPPET_MAX + 1];
	struct arena arena = { 0 };
	struct err err;
	const char *text = NULL;
	size_t len = 0;
	FILE *file = tmpfile();
	if (!file) {
		CHECK(false);
		return;
	}
	memset(bytes, 'x', sizeof bytes);
	bytes[20000] = 0;
	CHECK(fwrite(bytes, 1, SNIPPET_MAX, file) == SNIPPET_MAX && fflush(file) == 0);
	CHECK(lseek(fileno(file), 0, SEEK_SET) == 0);
	CHECK(snippet_read(fileno(file), &arena, &text, &len, &err) == 0);
	CHECK(len == SNIPPET_MAX && memcmp(text, bytes, len) == 0);
	CHECK(fwrite("x", 1, 1, file) == 1 && fflush(file) == 0);
	CHECK(lseek(fileno(file), 0, SEEK_SET) == 0);
	CHECK(snippet_read(fileno(file), &arena, &text, &len, &err) < 0 && err.code == ERR_usage);
	fclose(file);
	arena_free(&arena);
}

int main(void)
{
	RUN(everything_has_its_place);
	RUN(the_workspace_has_no_links);
	RUN(mistakes_are_refused);
	RUN(long_names_are_refused_with_the_reason);
	RUN(a_snippet_becomes_a_command);
	RUN(a_snippet_is_read_whole);
	return CHECK_STATUS();
}
