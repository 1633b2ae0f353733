/* place_test: where results go: files, descriptors, and what may be there in place of them. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "check.h"
#include "cli/cli.h"

/* Options as the parser leaves them, with one or two of them given. */
static struct options given(const char *file, const char *number, struct option_use uses[3])
{
	struct options options = { .uses = uses };
	if (file)
		uses[options.use_count++] = (struct option_use){ OPTION_run_result, file };
	if (number)
		uses[options.use_count++] = (struct option_use){ OPTION_run_result_fd, number };
	return options;
}

static int open_at(const char *file, const char *number, struct place *ret_place, struct err *err)
{
	struct option_use uses[3];
	struct options options = given(file, number, uses);
	memset(err, 0, sizeof *err);
	return place_open(&options, ret_place, err);
}

static int write_text(struct place *place, const char *text, struct err *err)
{
	AUTO_BUF out = { 0 };
	buf_adds(&out, text);
	return place_write(place, &out, err);
}

static void put(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* The content of a file that is no link; "" when there is none. */
static const char *content(const char *file)
{
	static char text[256];
	int fd = open(file, O_RDONLY | O_NOFOLLOW);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	text[n < 0 ? 0 : n] = 0;
	if (fd >= 0)
		close(fd);
	return text;
}

static void a_file_is_replaced_only_at_the_end(void)
{
	struct place place;
	struct err err;
	put("r", "old and longer");
	CHECK(open_at("r", NULL, &place, &err) == 0 && place.live);
	CHECK_TEXT(content("r"), "old and longer");
	CHECK(write_text(&place, "new\n", &err) == 0);
	CHECK_TEXT(content("r"), "new\n");
	place_close(&place);
	CHECK(place.fd == -1 && place.dir_fd == -1);
}

/* What a box with the directory could do while it runs. */
static void what_takes_its_name_is_replaced(void)
{
	struct place place;
	struct err err;
	put("victim", "keep");
	CHECK(open_at("r", NULL, &place, &err) == 0);
	CHECK(unlink("r") == 0 && symlink("victim", "r") == 0);
	CHECK(write_text(&place, "result\n", &err) == 0);
	CHECK_TEXT(content("r"), "result\n");
	CHECK_TEXT(content("victim"), "keep");
	place_close(&place);

	CHECK(mkdir("dir", 0755) == 0 && open_at("dir/r", NULL, &place, &err) == 0);
	CHECK(rename("dir", "moved") == 0 && symlink(".", "dir") == 0);
	put("r", "elsewhere");
	CHECK(write_text(&place, "result\n", &err) == 0);
	CHECK_TEXT(content("moved/r"), "result\n");
	CHECK_TEXT(content("r"), "elsewhere");
	place_close(&place);

	CHECK(open_at("r", NULL, &place, &err) == 0);
	CHECK(unlink("r") == 0 && mkdir("r", 0755) == 0);
	CHECK(write_text(&place, "result\n", &err) < 0);
	CHECK(err.code == ERR_result_unwritable);
	place_close(&place);
	CHECK(rmdir("r") == 0);
}

static bool refused(const char *file, const char *text, const char *hint)
{
	struct place place = PLACE_NONE;
	struct err err;
	bool yes = open_at(file, NULL, &place, &err) < 0 && place.fd == -1 && place.dir_fd == -1 &&
		   err.code == ERR_result_unwritable && strstr(err.text, text) &&
		   strstr(err.hint, hint);
	if (!yes)
		fprintf(stderr, "%s: \"%s\", \"%s\"\n", file, err.text, err.hint);
	place_close(&place);
	return yes;
}

static bool accepted(const char *file)
{
	struct place place;
	struct err err;
	if (open_at(file, NULL, &place, &err) < 0) {
		fprintf(stderr, "%s: \"%s\"\n", file, err.text);
		return false;
	}
	place_close(&place);
	return true;
}

/* What a box with the directory could leave for the next run: where the file is, and above it. */
static void links_that_a_box_could_leave_are_not_followed(void)
{
	char here[256], path[1024];
	struct place place;
	struct err err;
	if (!getcwd(here, sizeof here)) {
		CHECK(false);
		return;
	}
	CHECK(mkdir("w", 0755) == 0 && mkdir("w/real", 0755) == 0 && mkdir("out", 0755) == 0);
	CHECK(symlink("../../out", "w/real/l") == 0 && symlink("w", "lw") == 0);
	CHECK(refused("w/real/l/r", "directory w/real/l of", "realpath"));
	CHECK(refused("./w/../w/real/l/r", "w/real/l of", "real path"));
	CHECK(refused("lw/r", "directory lw of", "real path"));
	CHECK(refused("lw/real/r", "directory lw of", "real path"));
	/* Absolute names of the same, also where they lead through the caller's own links. */
	snprintf(path, sizeof path, "%s/w/real/l/r", here);
	CHECK(refused(path, "/w/real/l of", "real path"));
	snprintf(path, sizeof path, "%s//.//lw/r", here);
	CHECK(refused(path, "/lw of", "real path"));
	snprintf(path, sizeof path, "/proc/self/cwd/w/real/l/r");
	CHECK(refused(path, "/w/real/l of", "real path"));
	CHECK(access("out/r", F_OK) < 0 && access("w/r", F_OK) < 0);
	/* From elsewhere they are the caller's words, but not when that is the workspace. */
	CHECK(chdir("out") == 0);
	snprintf(path, sizeof path, "%s/lw/real/r", here);
	CHECK(accepted(path));
	snprintf(path, sizeof path, "%s/lw/real/l/r", here);
	CHECK(accepted(path));
	struct option_use uses[3];
	struct options options = given(path, NULL, uses);
	uses[options.use_count++] = (struct option_use){ OPTION_run_workspace, "../w" };
	CHECK(place_open(&options, &place, &err) < 0);
	CHECK(err.code == ERR_result_unwritable && strstr(err.text, "/lw/real/l of"));
	/* A name in the workspace without links in it, and one that leads out by "..". */
	snprintf(path, sizeof path, "%s/lw/real/r", here);
	CHECK(place_open(&options, &place, &err) == 0);
	place_close(&place);
	CHECK(accepted("../w/real/r") && accepted("r"));
	CHECK(chdir("..") == 0);
	CHECK(accepted("w/real/r") && accepted("w//real/./r"));
	CHECK(unlink("out/r") == 0 && unlink("w/real/r") == 0 && unlink("w/real/l") == 0);
	CHECK(unlink("lw") == 0 && rmdir("w/real") == 0 && rmdir("w") == 0 && rmdir("out") == 0);
}

/* A pipe that nobody reads must not hold the run up; one with a reader is used and may block. */
static void a_pipe_needs_its_reader(void)
{
	struct place place;
	struct err err;
	char text[16] = "";
	CHECK(mkfifo("pipe", 0644) == 0);
	alarm(20); /* where the old way waits for ever */
	CHECK(refused("pipe", "named pipe that nobody reads", "remove it"));
	int reader = open("pipe", O_RDONLY | O_NONBLOCK);
	CHECK(open_at("pipe", NULL, &place, &err) == 0);
	CHECK(!(fcntl(place.fd, F_GETFL) & O_NONBLOCK));
	CHECK(write_text(&place, "line\n", &err) == 0);
	CHECK(read(reader, text, sizeof text - 1) == 5);
	CHECK_TEXT(text, "line\n");
	place_close(&place);
	alarm(0);
	close(reader);
	/* A reader that comes a little later, as the other end of `reader & agentbox ...`. */
	pid_t pid = fork();
	if (pid == 0) {
		usleep(30000);
		char c;
		int fd = open("pipe", O_RDONLY);
		_exit(read(fd, &c, 1) == 0 ? 0 : 1);
	}
	CHECK(accepted("pipe"));
	int status = -1;
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(unlink("pipe") == 0);
	CHECK(accepted("/dev/null"));
}

/* The reason stands behind the name and must not be cut off with it. */
static void a_long_name_leaves_room_for_the_reason(void)
{
	static char name[8192];
	memset(name, 'a', sizeof name - 1);
	CHECK(refused(name, "File name too long", ""));
	name[600] = 0;
	CHECK(refused(name, "File name too long", ""));
}

static void places_that_cannot_be_had_are_refused(void)
{
	struct place place = PLACE_NONE;
	struct err err;
	CHECK(symlink("victim", "link") == 0);
	static const struct {
		const char *file, *number;
		enum err_code code;
	} rows[] = {
		{ "link", NULL, ERR_result_unwritable },
		{ "none/r", NULL, ERR_result_unwritable },
		{ ".", NULL, ERR_result_unwritable },
		{ "r/", NULL, ERR_result_unwritable },
		{ "r/r", NULL, ERR_result_unwritable },
		{ "moved/", NULL, ERR_result_unwritable },
		{ "/", NULL, ERR_result_unwritable },
		{ "", NULL, ERR_usage },
		{ "r", "1", ERR_usage },
		{ NULL, "0", ERR_usage },
		{ NULL, "", ERR_usage },
		{ NULL, "1x", ERR_usage },
		{ NULL, "-1", ERR_usage },
		{ NULL, "4294967297", ERR_usage },
		{ NULL, "777", ERR_result_unwritable },
		{ "/dev/fd/777", NULL, ERR_result_unwritable },
		{ "/dev/fd/0", NULL, ERR_usage },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CHECK(open_at(rows[i].file, rows[i].number, &place, &err) < 0);
		CHECK((enum err_code)err.code == rows[i].code);
		/* Untouched on failure. */
		CHECK(place.fd == -1 && place.dir_fd == -1);
	}
	CHECK_TEXT(content("victim"), "keep");
}

static void a_descriptor_is_used_and_kept(void)
{
	struct place place;
	struct err err;
	char text[32];
	put("d", "");
	int fd = open("d", O_RDWR | O_APPEND);
	snprintf(text, sizeof text, "/proc/self/fd/%d", fd);
	CHECK(write(fd, "a", 1) == 1);
	CHECK(open_at(text, NULL, &place, &err) == 0 && place.fd == fd && place.live);
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK(write_text(&place, "b", &err) == 0);
	place_close(&place);
	CHECK_TEXT(content("d"), "ab");
	CHECK(fcntl(fd, F_GETFD) >= 0);
	close(fd);
	fd = open("d", O_RDONLY);
	snprintf(text, sizeof text, "%d", fd);
	CHECK(open_at(NULL, text, &place, &err) < 0);
	CHECK(err.code == ERR_result_unwritable);
	close(fd);
	CHECK(open_at(NULL, NULL, &place, &err) == 0 && place.fd == STDOUT_FILENO && !place.live);
	place_close(&place);
	CHECK(fcntl(STDOUT_FILENO, F_GETFD) >= 0);
	/* A device is written to as it is. */
	CHECK(open_at("/dev/full", NULL, &place, &err) == 0);
	CHECK(write_text(&place, "x", &err) < 0);
	CHECK(err.code == ERR_result_unwritable && strstr(err.text, "/dev/full"));
	place_close(&place);
}

int main(void)
{
	char dir[] = "/tmp/place_test.XXXXXX";
	if (!mkdtemp(dir) || chdir(dir) < 0)
		return 1;
	RUN(a_file_is_replaced_only_at_the_end);
	RUN(what_takes_its_name_is_replaced);
	RUN(links_that_a_box_could_leave_are_not_followed);
	RUN(a_pipe_needs_its_reader);
	RUN(a_long_name_leaves_room_for_the_reason);
	RUN(places_that_cannot_be_had_are_refused);
	RUN(a_descriptor_is_used_and_kept);
	static const char *const files[] = { "r", "d", "link", "victim", "dir", "moved/r" };
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		unlink(files[i]);
	rmdir("moved");
	rmdir(dir);
	return CHECK_STATUS();
}
