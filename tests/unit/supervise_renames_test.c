/*
 * supervise_renames_test: renames that the listener hands on, with a real listener and a renamer
 * that the test plays: what it is asked, what becomes of its answers, and what of a wrong one, of
 * none, and of its end. No file is ever renamed.
 */
#define _GNU_SOURCE
#include "fake_box.h"

#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "box/renames.h"

static struct stage_play play;

/* --- what is played --- */

/* From here on renameat, renameat2 and mount ask the supervisor. */
static void start_filtered(struct fake *fake)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mount, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	};
	struct sock_fprog prog = { .len = sizeof program / sizeof *program, .filter = program };
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	int listener =
		sys_seccomp(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
	if (listener < 0)
		_exit(1);
	start_with(fake, listener);
	close(listener);
}

static long rename_at(int old_dir, const char *old, int new_dir, const char *new, unsigned flags)
{
	return syscall(SYS_renameat2, old_dir, old, new_dir, new, flags) == 0 ? 0 : errno;
}

static long rename_cwd(const char *old, const char *new)
{
	return rename_at(AT_FDCWD, old, AT_FDCWD, new, 0);
}

/* A process of the box's; its status is the number of wrong answers. */
typedef int command(void);

static pid_t begin(command *run)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(run());
	return pid;
}

/* The renamer's socket, when the supervisor asks for one; -1 when the command has ended before. */
static int wait_asked(struct fake *fake, pid_t pid, int *ret_status)
{
	for (;;) {
		struct pollfd p = { .fd = fake->status, .events = POLLIN };
		if (poll(&p, 1, 5) > 0) {
			struct sync_msg msg;
			int fd = -1;
			if (sync_recv(fake->status, &msg, &fd) != 1 || msg.kind != SYNC_RENAMES)
				_exit(90);
			return fd;
		}
		if (waitpid(pid, ret_status, WNOHANG) == pid)
			return -1;
	}
}

struct asked {
	struct rename_request head;
	int fds[RENAME_DESCRIPTORS_MAX];
	size_t fd_count;
};

/* One request; false at the end of file or when there is none for so long. */
static bool receive(int sock, struct asked *asked, int wait_ms)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof asked->fds)];
	} control;
	struct iovec iov = { .iov_base = &asked->head, .iov_len = sizeof asked->head };
	struct msghdr header = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control.space };
	struct pollfd p = { .fd = sock, .events = POLLIN };
	if (poll(&p, 1, wait_ms) <= 0)
		return false;
	ssize_t n = recvmsg(sock, &header, MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return false;
	size_t begin = offsetof(struct rename_request, text);
	if ((size_t)n != begin + asked->head.old.len + asked->head.new.len + 2)
		_exit(91);
	asked->fd_count = 0;
	const struct cmsghdr *c = CMSG_FIRSTHDR(&header);
	if (c) {
		asked->fd_count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(asked->fds, CMSG_DATA(c), asked->fd_count * sizeof(int));
	}
	return true;
}

static const char *old_of(const struct asked *asked)
{
	return asked->head.text;
}

static const char *new_of(const struct asked *asked)
{
	return asked->head.text + asked->head.old.len + 1;
}

static void let_go(struct asked *asked)
{
	while (asked->fd_count)
		close(asked->fds[--asked->fd_count]);
}

static void reply(int sock, uint64_t id, int result)
{
	struct rename_reply message = { .id = id, .result = result };
	(void)send(sock, &message, sizeof message, MSG_NOSIGNAL);
}

/* Serve until the command ends, by `serve`, which returns when it lets go of its socket. */
static void serve_all(struct fake *fake, command *run, void (*serve)(int sock, pid_t pid))
{
	start_filtered(fake);
	pid_t pid = begin(run);
	int status = 99 << 8, sock;
	while ((sock = wait_asked(fake, pid, &status)) >= 0) {
		serve(sock, pid);
		close(sock);
	}
	end(fake, status);
}

static void play_renames(script *child)
{
	play_init(&play);
	play.plan.renames = true;
	play.plan.filter.renames = FILTER_RENAME | FILTER_RENAMEAT | FILTER_RENAMEAT2;
	play.plan.wall_us = 20000000;
	play_run(&play, child);
}

static void check_well(void)
{
	CHECK(play.r == 0 && play.result.status == STATUS_EXITED);
	CHECK(play.result.exit_code == 0);
	CHECK(play.result.violation_count == 0);
}

/* --- an honest one --- */

/* "NUMBER" as the old path: that errno. */
static void answer_by_name(int sock, pid_t pid)
{
	struct asked asked;
	while (kill(pid, 0) == 0 && receive(sock, &asked, 2000)) {
		int side = asked.head.old.error ? asked.head.old.error : asked.head.new.error;
		reply(sock, asked.head.id, side ? -side : -atoi(old_of(&asked)));
		let_go(&asked);
		/* the last one of each command */
		if (strcmp(new_of(&asked), "end") == 0)
			return;
	}
}

static int ask_for_answers(void)
{
	int wrong = 0;
	for (int i = 0; i < 134; i++) {
		char text[16];
		snprintf(text, sizeof text, "%d", i);
		wrong += rename_cwd(text, "x") != i;
	}
	wrong += syscall(SYS_renameat, AT_FDCWD, "40", AT_FDCWD, "x") != -1 || errno != 40;
	wrong += rename_cwd((const char *)1, "x") != EFAULT;
	wrong += rename_cwd("0", (const char *)-4096) != EFAULT;
	wrong += rename_at(77, "0", AT_FDCWD, "x", 0) != EBADF;
	wrong += rename_at(AT_FDCWD, "0", -5, "x", 0) != EBADF;
	wrong += rename_at(77, "/0", 77, "/x", 0) != 0;
	return wrong + (rename_cwd("0", "end") != 0);
}

static void answers(struct fake *fake)
{
	serve_all(fake, ask_for_answers, answer_by_name);
}

static void answers_are_the_renamers(void)
{
	play_renames(answers);
	check_well();
	result_free(&play.result);
}

/* --- what it is asked --- */

static int ask_with_descriptors(void)
{
	int tmp = open("/tmp", O_RDONLY | O_DIRECTORY), root = open("/", O_PATH);
	if (chdir("/usr") < 0)
		return 1;
	rename_at(AT_FDCWD, "a", AT_FDCWD, "b", 1);
	rename_at(tmp, "a", tmp, "b", 0);
	rename_at(tmp, "a", root, "b", 0);
	rename_at(tmp, "/a", root, "b/", 0);
	rename_at(tmp, "a", 99, "/b", 0x80000002);
	rename_at(tmp, "", root, "b", 0);
	return rename_cwd("/", "end") != 0;
}

static bool leads_to(int fd, const char *path)
{
	struct stat a, b;
	return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_ino == b.st_ino &&
	       a.st_dev == b.st_dev;
}

static void check_asked(int sock, pid_t pid)
{
	static const struct {
		const char *old, *new;
		unsigned flags, descriptors;
		const char *dirs[2];
	} want[] = {
		{ "a", "b", 1, RENAME_OLD_DIR, { "/usr" } },
		{ "a", "b", 0, RENAME_OLD_DIR, { "/tmp" } },
		{ "a", "b", 0, RENAME_OLD_DIR | RENAME_NEW_DIR, { "/tmp", "/" } },
		{ "/a", "b/", 0, RENAME_NEW_DIR, { "/" } },
		{ "a", "/b", 0x80000002, RENAME_OLD_DIR, { "/tmp" } },
		{ "", "b", 0, RENAME_NEW_DIR, { "/" } },
		{ "/", "end", 0, RENAME_NEW_DIR, { "/usr" } },
	};
	(void)pid;
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		struct asked asked;
		bool right = receive(sock, &asked, 2000) &&
			     strcmp(old_of(&asked), want[i].old) == 0 &&
			     strcmp(new_of(&asked), want[i].new) == 0 &&
			     asked.head.flags == want[i].flags &&
			     asked.head.descriptors == want[i].descriptors &&
			     asked.fd_count == (want[i].dirs[1] ? 2 : 1) && !asked.head.old.error &&
			     !asked.head.new.error;
		for (size_t k = 0; right && k < asked.fd_count; k++)
			right = leads_to(asked.fds[k], want[i].dirs[k]) &&
				fcntl(asked.fds[k], F_GETFL) & O_PATH;
		if (!right)
			_exit(60 + (int)i);
		let_go(&asked);
		reply(sock, asked.head.id, 0);
	}
}

static void descriptors(struct fake *fake)
{
	serve_all(fake, ask_with_descriptors, check_asked);
}

static void directories_come_as_descriptors(void)
{
	play_renames(descriptors);
	check_well();
	result_free(&play.result);
}

/* A string may end with what is mapped, and go on over one page; not be longer than the kernel's.
 */
static int ask_at_the_edge(void)
{
	char *at = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static char text[PATH_MAX + 2];
	munmap(at + 8192, 4096);
	strcpy(at + 8192 - 3, "17");
	int wrong = rename_cwd(at + 8192 - 3, "x") != 17;
	memset(at + 8192 - 3, '1', 3);
	wrong += rename_cwd(at + 8192 - 3, "x") != EFAULT;
	strcpy(at + 4096 - 4, "000000018");
	wrong += rename_cwd(at + 4096 - 4, "x") != 18;
	memset(text, '0', PATH_MAX);
	wrong += rename_cwd(text, "x") != ENAMETOOLONG;
	wrong += rename_cwd("0", text) != ENAMETOOLONG;
	strcpy(text + PATH_MAX - 3, "19");
	wrong += rename_cwd(text, text) != 19;
	return wrong + (rename_cwd("0", "end") != 0);
}

static void edges(struct fake *fake)
{
	serve_all(fake, ask_at_the_edge, answer_by_name);
}

static void strings_are_read_to_their_end(void)
{
	play_renames(edges);
	check_well();
	result_free(&play.result);
}

/* --- a wrong one --- */

static int ask_twice(void)
{
	/* of the first renamer, and of the second */
	return (rename_cwd("0", "x") != EIO) + (rename_cwd("17", "end") != 17);
}

static int turn_of_wrong, way_of_wrong;

static void answer_wrong_once(int sock, pid_t pid)
{
	struct asked asked;
	if (turn_of_wrong++) {
		answer_by_name(sock, pid);
		return;
	}
	if (!receive(sock, &asked, 2000))
		return;
	let_go(&asked);
	switch (way_of_wrong) {
	case 0:
		reply(sock, asked.head.id + 1, 0);
		break;
	case 1:
		reply(sock, asked.head.id, 1);
		break;
	case 2:
		reply(sock, asked.head.id, -4096);
		break;
	case 3:
		(void)send(sock, &asked.head.id, sizeof asked.head.id, MSG_NOSIGNAL);
		break;
	case 4:
		(void)send(sock, &asked.head, 64, MSG_NOSIGNAL);
		break;
	default: /* its end without an answer */
		return;
	}
	/* The supervisor lets go of it. */
	if (receive(sock, &asked, 3000))
		_exit(70);
}

static void wrong_once(struct fake *fake)
{
	turn_of_wrong = 0;
	serve_all(fake, ask_twice, answer_wrong_once);
}

static void a_wrong_answer_is_an_error_and_the_next_one_is_asked(void)
{
	for (way_of_wrong = 0; way_of_wrong < 6; way_of_wrong++) {
		play_renames(wrong_once);
		check_well();
		CHECK(!has_warning(&play.result, "renames_failed"));
		result_free(&play.result);
	}
}

static int ask_in_vain(void)
{
	int wrong = 0;
	for (int i = 0; i < 50; i++)
		wrong += rename_cwd("0", "x") != EIO;
	return wrong;
}

static int renamers;

static void let_down(int sock, pid_t pid)
{
	(void)sock;
	(void)pid;
	if (++renamers > 8)
		_exit(80);
}

static void always_gone(struct fake *fake)
{
	serve_all(fake, ask_in_vain, let_down);
}

static void renamers_that_end_are_not_made_for_ever(void)
{
	play_renames(always_gone);
	check_well();
	CHECK(has_warning(&play.result, "renames_failed"));
	result_free(&play.result);
}

/* --- a slow one --- */

#define CROWD 100

static void *one_of_many(void *wrong)
{
	char text[16];
	int number = 1 + (int)(gettid() % 100);
	snprintf(text, sizeof text, "%d", number);
	for (int i = 0; i < 5; i++)
		if (rename_cwd(text, "x") != number)
			__atomic_add_fetch((int *)wrong, 1, __ATOMIC_RELAXED);
	return NULL;
}

static int ask_by_many(void)
{
	static int wrong;
	pthread_t threads[CROWD];
	for (int i = 0; i < CROWD; i++)
		if (pthread_create(&threads[i], NULL, one_of_many, &wrong))
			return 1;
	for (int i = 0; i < CROWD; i++)
		pthread_join(threads[i], NULL);
	return wrong || rename_cwd("0", "end") != 0;
}

/* Takes all that it is given before it answers, the last one first. */
static void answer_backwards(int sock, pid_t pid)
{
	struct asked asked;
	uint64_t ids[64];
	int results[64];
	(void)pid;
	for (;;) {
		size_t count = 0;
		while (count < 64 && receive(sock, &asked, count ? 10 : 3000)) {
			ids[count] = asked.head.id;
			results[count++] = -atoi(old_of(&asked));
			let_go(&asked);
		}
		if (count > 8)
			_exit(75);
		if (count == 0)
			return;
		bool last = count == 1 && strcmp(new_of(&asked), "end") == 0;
		while (count--)
			reply(sock, ids[count], results[count]);
		if (last)
			return;
	}
}

static void many(struct fake *fake)
{
	serve_all(fake, ask_by_many, answer_backwards);
}

static void many_callers_wait_for_their_turn(void)
{
	play_renames(many);
	check_well();
	result_free(&play.result);
}

/* More callers than can wait, none of which is ever answered; and another call meanwhile. */
static void *ask_for_ever(void *unused)
{
	rename_cwd("0", "x");
	return unused;
}

static int ask_and_mount(void)
{
	pthread_attr_t small;
	pthread_t thread;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (int i = 0; i < 300; i++)
		if (pthread_create(&thread, &small, ask_for_ever, NULL))
			return 1;
	pause_ms(100);
	double start = now_s();
	for (int i = 0; i < 20; i++)
		if (syscall(SYS_mount, 0, 0, 0, 0, 0) != -1 || errno != EPERM)
			return 2;
	return now_s() - start < 2 ? 0 : 3;
}

static void never_answer(int sock, pid_t pid)
{
	siginfo_t info = { 0 };
	(void)sock;
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
}

static void no_answer(struct fake *fake)
{
	serve_all(fake, ask_and_mount, never_answer);
}

static void refused_calls_do_not_wait_for_renames(void)
{
	play_renames(no_answer);
	CHECK(play.result.status == STATUS_EXITED && play.result.exit_code == 0);
	CHECK(play.result.violation_count == 1 && play.result.violations[0].count == 20);
	CHECK_TEXT(play.result.violations[0].operation, "mount");
	result_free(&play.result);
}

static int ask_once(void)
{
	return rename_cwd("0", "x") ? 1 : 0;
}

static void hang(struct fake *fake)
{
	serve_all(fake, ask_once, never_answer);
}

static void a_renamer_that_hangs_holds_no_limit_up(void)
{
	play_init(&play);
	play.plan.renames = true;
	play.plan.filter.renames = FILTER_RENAMEAT2;
	play.plan.wall_us = 300000;
	play.plan.grace_us = 200000;
	play_run(&play, hang);
	CHECK(play.result.status == STATUS_TIMEOUT && play.seconds < 3);
	result_free(&play.result);
}

/* Callers that are killed while the renamer has their calls: the next one's is answered. */
static int ask_and_die(void)
{
	for (int i = 0; i < 30; i++) {
		pid_t pid = begin(ask_once);
		pause_ms(i % 3);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return (rename_cwd("17", "x") != 17) + (rename_cwd("0", "end") != 0);
}

static void answer_late(int sock, pid_t pid)
{
	struct asked asked;
	(void)pid;
	while (receive(sock, &asked, 3000)) {
		pause_ms(2);
		let_go(&asked);
		reply(sock, asked.head.id, -atoi(old_of(&asked)));
		if (strcmp(new_of(&asked), "end") == 0)
			return;
	}
}

static void dying(struct fake *fake)
{
	serve_all(fake, ask_and_die, answer_late);
}

static void callers_that_die_are_of_no_matter(void)
{
	play_renames(dying);
	check_well();
	result_free(&play.result);
}

/* Without the plan's word a rename at the listener is a refused call like any other. */
static int ask_refused(void)
{
	return rename_cwd("0", "x") != EPERM;
}

static void refused(struct fake *fake)
{
	start_filtered(fake);
	int status = 0;
	waitpid(begin(ask_refused), &status, 0);
	end(fake, status);
}

static void a_rename_that_the_policy_denies_is_a_violation(void)
{
	play_init(&play);
	play.plan.renames = true;
	play.plan.filter.renames = FILTER_RENAME | FILTER_RENAMEAT;
	play_run(&play, refused);
	CHECK(play.result.status == STATUS_EXITED && play.result.exit_code == 0);
	CHECK(play.result.violation_count == 1);
	CHECK_TEXT(play.result.violations[0].rule, "syscalls.deny");
	result_free(&play.result);
}

int main(void)
{
	fake_begin();
	RUN(answers_are_the_renamers);
	RUN(directories_come_as_descriptors);
	RUN(strings_are_read_to_their_end);
	RUN(a_wrong_answer_is_an_error_and_the_next_one_is_asked);
	RUN(renamers_that_end_are_not_made_for_ever);
	RUN(many_callers_wait_for_their_turn);
	RUN(refused_calls_do_not_wait_for_renames);
	RUN(a_renamer_that_hangs_holds_no_limit_up);
	RUN(callers_that_die_are_of_no_matter);
	RUN(a_rename_that_the_policy_denies_is_a_violation);
	return CHECK_STATUS();
}
