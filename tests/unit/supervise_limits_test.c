/*
 * supervise_limits_test: what a box's control groups count, and what becomes of it: usage, limits,
 * status. The group is a v2 one that the test makes up: its numbers are files in a directory, and
 * what is removed in the end is another directory, empty as a real group is.
 */
#define _GNU_SOURCE
#include "fake_box.h"

#include <sys/prctl.h>
#include <sys/stat.h>

static struct stage_play play;
static char base[] = "/tmp/agentbox-limits-XXXXXX";
static char numbers[64], parent[64], group[96];

/* --- the made-up group --- */

/* At once, as the kernel does: nobody sees half of it. */
static void put(const char *name, const char *text)
{
	char path[128], new[160];
	snprintf(path, sizeof path, "%s/%s", numbers, name);
	snprintf(new, sizeof new, "%s.new", path);
	int fd = open(new, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || fd_write_full(fd, text, strlen(text)) < 0 || close(fd) < 0 ||
		rename(new, path) < 0)
		abort();
}

static void drop(const char *name)
{
	char path[128];
	snprintf(path, sizeof path, "%s/%s", numbers, name);
	unlink(path);
}

static void put_cpu(unsigned us)
{
	char text[128];
	snprintf(text, sizeof text, "usage_usec %u\nuser_usec %u\nsystem_usec %u\nnr_periods 0\n",
		us, us - us / 4, us / 4);
	put("cpu.stat", text);
}

static void put_oom(unsigned kills)
{
	char text[128];
	snprintf(text, sizeof text, "low 0\nhigh 0\nmax 9\noom %u\noom_kill %u\noom_group_kill 0\n",
		kills, kills);
	put("memory.events", text);
}

static void put_refused(unsigned refused, const char *peak)
{
	char text[32];
	snprintf(text, sizeof text, "max %u\n", refused);
	put("pids.events", text);
	if (peak)
		put("pids.peak", peak);
	else
		drop("pids.peak");
}

static void group_begin(void)
{
	if (!mkdtemp(base))
		abort();
	snprintf(numbers, sizeof numbers, "%s/numbers", base);
	snprintf(parent, sizeof parent, "%s/parent", base);
	snprintf(group, sizeof group, "%s/agentbox-1-1", parent);
	if (mkdir(numbers, 0700) < 0 || mkdir(parent, 0700) < 0)
		abort();
}

static void group_end(void)
{
	static const char *const names[] = { "cpu.stat", "cpu.stat.new", "memory.events",
		"memory.peak", "pids.events", "pids.peak" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		drop(names[i]);
	CHECK(rmdir(numbers) == 0);
	CHECK(rmdir(parent) == 0);
	CHECK(rmdir(base) == 0);
}

/* A play with a group in which nothing has happened, and with all limits. */
static void limited(void)
{
	play_init(&play);
	put_cpu(4000);
	put_oom(0);
	put("memory.peak", "5242880\n");
	put_refused(0, "3\n");
	if (mkdir(group, 0700) < 0 && errno != EEXIST)
		abort();
	struct plan_cgroup *plan = &play.plan.cgroup;
	*plan = (struct plan_cgroup){ .kind = CGROUP_V2,
		.parents = { parent },
		.count = 1,
		.name = "agentbox-1-1",
		.cpu = -1,
		.cpuacct = -1,
		.memory_max = 64 * MIB,
		.pids_max = 16,
		.cpu_us = 2000000,
		.cpu_width = 3 };
	play.cgroup.plan = plan;
	play.cgroup.parent[0] = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	play.cgroup.dir[0] = open(numbers, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(play.cgroup.dir[0] >= 0);
}

static void run_limited(script *child)
{
	limited();
	play_run(&play, child);
}

static void check_end(enum status status, unsigned limits, int exit_status)
{
	CHECK(play.r == 0);
	CHECK_TEXT(status_name(play.result.status), status_name(status));
	CHECK(play.result.limits_hit == limits);
	CHECK(result_exit_status(&play.result) == exit_status);
	CHECK(play.result.warning_count == 0);
	CHECK(access(group, F_OK) < 0 && errno == ENOENT);
	result_free(&play.result);
}

/* --- scripts --- */

static void end_well(struct fake *fake)
{
	start(fake);
	end(fake, 0);
}

static void kill_itself(struct fake *fake)
{
	start(fake);
	end(fake, SIGKILL);
}

static void lose_main(struct fake *fake)
{
	start(fake);
	put_oom(1);
	end(fake, SIGKILL);
}

static void lose_child(struct fake *fake)
{
	start(fake);
	put_oom(1);
	end(fake, 137 << 8);
}

static void lose_main_otherwise(struct fake *fake)
{
	start(fake);
	put_oom(2);
	end(fake, SIGSEGV);
}

static void lose_init(struct fake *fake)
{
	start(fake);
	put_oom(1);
	raise(SIGKILL);
}

static void lose_init_early(struct fake *fake)
{
	(void)fake;
	put_oom(1);
	raise(SIGKILL);
}

static void killed_from_outside(struct fake *fake)
{
	start(fake);
	raise(SIGKILL);
}

static void lose_all_and_linger(struct fake *fake)
{
	start(fake);
	put_oom(1);
	pause_ms(20000);
}

static void refused_pids(struct fake *fake)
{
	start(fake);
	put_refused(7, "17\n");
	end(fake, 3 << 8);
}

static void refused_pids_no_peak(struct fake *fake)
{
	start(fake);
	put_refused(7, NULL);
	end(fake, 0);
}

static void refused_further_up(struct fake *fake)
{
	start(fake);
	put_refused(7, "9\n");
	end(fake, 0);
}

/* --- memory --- */

static void memory(void)
{
	/* A59 */
	run_limited(lose_main);
	CHECK(play.result.signal == SIGKILL && play.result.exit_code == -1);
	check_end(STATUS_LIMIT, LIMIT_MEMORY, 137);
	run_limited(lose_child);
	CHECK(play.result.signal == 0 && play.result.exit_code == 137);
	check_end(STATUS_EXITED, LIMIT_MEMORY, 137);
	run_limited(kill_itself);
	CHECK(play.result.signal == SIGKILL);
	check_end(STATUS_SIGNALED, 0, 137);
	/* Not the kernel's signal for that, so a bug of its own; a child was killed. */
	run_limited(lose_main_otherwise);
	check_end(STATUS_SIGNALED, LIMIT_MEMORY, 128 + SIGSEGV);
}

static void memory_of_init(void)
{
	run_limited(lose_init);
	CHECK(play.result.signal == SIGKILL);
	check_end(STATUS_LIMIT, LIMIT_MEMORY, 137);

	run_limited(killed_from_outside);
	CHECK(play.result.status == STATUS_SIGNALED && play.result.limits_hit == 0);
	CHECK(has_warning(&play.result, "box_killed"));
	result_free(&play.result);

	run_limited(lose_init_early);
	CHECK(play.result.error.code == ERR_box_died);
	CHECK(strstr(play.result.error.text, "limits.memory") != NULL);
	check_end(STATUS_ERROR, LIMIT_MEMORY, 125);
}

/* Somebody else's limit, or the whole host's. */
static void memory_without_a_limit(void)
{
	limited();
	play.plan.cgroup.memory_max = 0;
	play_run(&play, lose_main);
	check_end(STATUS_SIGNALED, 0, 137);
}

/* What ended the run stays its status; what else was reached is told. */
static void memory_beside_others(void)
{
	limited();
	play.plan.wall_us = 150000;
	play.plan.grace_us = 0;
	play_run(&play, lose_all_and_linger);
	check_end(STATUS_TIMEOUT, LIMIT_WALL | LIMIT_MEMORY, 124);
}

/* --- processes --- */

static void pids(void)
{
	run_limited(refused_pids);
	CHECK(play.result.usage.pids_peak == 16);
	check_end(STATUS_EXITED, LIMIT_PIDS, 3);
	run_limited(refused_pids_no_peak);
	CHECK(play.result.usage.pids_peak == UNKNOWN);
	check_end(STATUS_EXITED, LIMIT_PIDS, 0);
	run_limited(refused_further_up);
	check_end(STATUS_EXITED, 0, 0);
	limited();
	play.plan.cgroup.pids_max = 0;
	play_run(&play, refused_pids);
	check_end(STATUS_EXITED, 0, 3);
}

/* --- processor time --- */

/* Three busy processors: 3 us for each us that passes. */
static void use_all(struct fake *fake)
{
	start(fake);
	double begin = now_s();
	for (;;) {
		put_cpu((unsigned)((now_s() - begin) * 3e6));
		pause_ms(1);
	}
}

static void use_and_end(struct fake *fake)
{
	start(fake);
	put_cpu(1999999);
	pause_ms(50);
	end(fake, 4 << 8);
}

static void use_after_term(struct fake *fake)
{
	start(fake);
	wait_signal(fake);
	put_cpu(5000000);
	pause_ms(20000);
}

static void lose_the_counter(struct fake *fake)
{
	start(fake);
	drop("cpu.stat");
	pause_ms(20000);
}

static void cpu(void)
{
	run_limited(use_all);
	uint64_t used = play.result.usage.cpu_user_us + play.result.usage.cpu_system_us;
	CHECK(used >= 2000000 && used < 2500000);
	CHECK(play.seconds >= 0.6 && play.seconds < 1);
	CHECK(play.result.exit_code == -1 && play.result.signal == SIGKILL);
	check_end(STATUS_LIMIT, LIMIT_CPU, 137);

	run_limited(use_and_end);
	check_end(STATUS_EXITED, 0, 4);

	limited();
	play.plan.cgroup.cpu_us = 0;
	put_cpu(9000000);
	play_run(&play, use_and_end);
	check_end(STATUS_EXITED, 0, 4);
}

/* The grace period is no gift. */
static void cpu_in_the_grace_period(void)
{
	limited();
	play.plan.wall_us = 100000;
	play.plan.grace_us = 10000000;
	play_run(&play, use_after_term);
	CHECK(play.seconds < 2);
	check_end(STATUS_TIMEOUT, LIMIT_WALL | LIMIT_CPU, 124);
}

/* A limit that cannot be watched is not held, and nobody is told that it was. */
static void cpu_that_cannot_be_read(void)
{
	limited();
	play.plan.cgroup.cpu_us = 50000;
	play_run(&play, lose_the_counter);
	CHECK(play.r == -1 && play.err.code == ERR_no_resources);
	CHECK(strstr(play.err.text, "limits.cpu") != NULL);
	CHECK(play.seconds < 2);
	CHECK(access(group, F_OK) < 0);
	result_free(&play.result);
}

/* --- without a group: watched --- */

/* A play without any group, so that the processes themselves are looked at. */
static void watched(script *child, uint64_t memory, uint64_t cpu_us, uint64_t pids)
{
	play_init(&play);
	play.plan.watch = (struct plan_watch){
		.memory_max = memory, .cpu_us = cpu_us, .pids_max = pids, .width = 2
	};
	play_run(&play, child);
}

/* Never freed: the process ends with it. */
static void take_memory(size_t size)
{
	char *room = malloc(size);
	if (!room)
		abort();
	for (size_t i = 0; i < size; i += 4096)
		((volatile char *)room)[i] = 1;
}

static void use_time(double seconds)
{
	struct timespec t;
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	while ((double)t.tv_sec + (double)t.tv_nsec / 1e9 < seconds);
}

/* Those of a real box are ended with its init. */
static void child_of_the_box(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void fill_memory(struct fake *fake)
{
	start(fake);
	take_memory(80 * MIB);
	pause_ms(20000);
}

static void fill_memory_in_children(struct fake *fake)
{
	start(fake);
	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			child_of_the_box();
			take_memory(20 * MIB);
			pause_ms(20000);
		}
	pause_ms(20000);
}

/* Four have the same 40 MiB. */
static void share_memory(struct fake *fake)
{
	start(fake);
	take_memory(40 * MIB);
	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			pause_ms(300);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	end(fake, 6 << 8);
}

static void use_time_in_children(struct fake *fake)
{
	start(fake);
	for (int i = 0; i < 2; i++)
		if (fork() == 0) {
			child_of_the_box();
			use_time(20);
		}
	pause_ms(20000);
}

static void use_time_and_be_killed(struct fake *fake)
{
	start(fake);
	use_time(0.008);
	end(fake, SIGKILL);
}

static void use_time_and_end(struct fake *fake)
{
	start(fake);
	use_time(0.008);
	end(fake, 3 << 8);
}

static void start_many(struct fake *fake)
{
	start(fake);
	for (int i = 0; i < 8; i++)
		if (fork() == 0) {
			child_of_the_box();
			pause_ms(20000);
		}
	pause_ms(20000);
}

static void check_watched(enum status status, unsigned limits, int exit_status)
{
	CHECK(play.r == 0);
	CHECK_TEXT(status_name(play.result.status), status_name(status));
	CHECK(play.result.limits_hit == limits);
	CHECK(result_exit_status(&play.result) == exit_status);
	CHECK(play.result.warning_count == 0);
	result_free(&play.result);
}

static void watched_memory(void)
{
	watched(fill_memory, 64 * MIB, 0, 0);
	CHECK(play.seconds < 5 && play.result.signal == SIGKILL && play.result.exit_code == -1);
	CHECK(play.result.usage.memory_peak_bytes > 64 * MIB);
	CHECK(play.result.usage.memory_peak_bytes < 100 * MIB);
	check_watched(STATUS_LIMIT, LIMIT_MEMORY, 137);
	watched(fill_memory_in_children, 64 * MIB, 0, 0);
	CHECK(play.seconds < 5);
	check_watched(STATUS_LIMIT, LIMIT_MEMORY, 137);
	watched(share_memory, 64 * MIB, 0, 0);
	check_watched(STATUS_EXITED, 0, 6);
	watched(kill_itself, 64 * MIB, 0, 0);
	check_watched(STATUS_SIGNALED, 0, 137);
}

static void watched_time(void)
{
	watched(use_time_in_children, 0, 300000, 0);
	uint64_t used = play.result.usage.cpu_user_us + play.result.usage.cpu_system_us;
	CHECK(play.seconds < 5 && used >= 300000 && used < 1000000);
	check_watched(STATUS_LIMIT, LIMIT_CPU, 137);
	/* Between two looks, as RLIMIT_CPU does it. */
	watched(use_time_and_be_killed, 0, 5000, 0);
	check_watched(STATUS_LIMIT, LIMIT_CPU, 137);
	watched(use_time_and_be_killed, 0, 60000000, 0);
	check_watched(STATUS_SIGNALED, 0, 137);
	watched(use_time_and_end, 0, 60000000, 0);
	check_watched(STATUS_EXITED, 0, 3);
}

static void watched_processes(void)
{
	watched(start_many, 1024 * MIB, 0, 7);
	CHECK(play.seconds < 5);
	check_watched(STATUS_LIMIT, LIMIT_PIDS, 137);
	watched(end_well, 1024 * MIB, 0, 1);
	check_watched(STATUS_EXITED, 0, 0);
}

/* --- usage, and the end of the group --- */

static void usage(void)
{
	run_limited(end_well);
	const struct usage *is = &play.result.usage;
	CHECK(is->cpu_user_us == 3000 && is->cpu_system_us == 1000);
	CHECK(is->memory_peak_bytes == 5242880 && is->pids_peak == 2);
	CHECK(is->read_bytes == UNKNOWN && is->write_bytes == UNKNOWN);
	check_end(STATUS_EXITED, 0, 0);
}

/* What the group does not count is taken from init, as without a group. */
static void usage_that_is_not_counted(void)
{
	limited();
	play.plan.cgroup.cpu_us = 0;
	drop("cpu.stat");
	drop("memory.events");
	drop("memory.peak");
	drop("pids.events");
	drop("pids.peak");
	play_run(&play, end_well);
	const struct usage *is = &play.result.usage;
	CHECK(is->cpu_user_us != UNKNOWN && is->cpu_user_us < 3000000);
	CHECK(is->memory_peak_bytes == 4321 * 1024 && is->pids_peak == UNKNOWN);
	check_end(STATUS_EXITED, 0, 0);
}

static void a_group_that_stays(void)
{
	char inside[128];
	limited();
	snprintf(inside, sizeof inside, "%s/someone", group);
	CHECK(mkdir(inside, 0700) == 0);
	play_run(&play, end_well);
	CHECK(play.r == 0 && play.result.status == STATUS_EXITED);
	CHECK(play.end < 0);
	CHECK(play.seconds < 3);
	result_free(&play.result);
	CHECK(rmdir(inside) == 0 && rmdir(group) == 0);
}

int main(void)
{
	group_begin();
	fake_begin();
	RUN(memory);
	RUN(memory_of_init);
	RUN(memory_without_a_limit);
	RUN(memory_beside_others);
	RUN(pids);
	RUN(cpu);
	RUN(cpu_in_the_grace_period);
	RUN(cpu_that_cannot_be_read);
	RUN(watched_memory);
	RUN(watched_time);
	RUN(watched_processes);
	RUN(usage);
	RUN(usage_that_is_not_counted);
	RUN(a_group_that_stays);
	group_end();
	return CHECK_STATUS();
}
