/*
 * usage: what the whole box used, told by init or taken by reaping it; what control groups counted
 * goes before it. Judges none of the numbers.
 */
#define _GNU_SOURCE
#include "supervise/run.h"
#include "base/sys.h"

#include <sys/resource.h>
#include <sys/wait.h>

static uint64_t in_us(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000u + (uint64_t)time->tv_usec;
}

void usage_reap(struct run *run)
{
	struct usage *usage = &run->result->usage;
	/*
	 * The system call itself has a fifth argument that waitid(3) hides (waitid(2)): the usage
	 * of the child and of its own waited-for children, which for init is everybody.
	 */
	struct rusage all;
	siginfo_t info;
	long r;
	do
		r = sys_ret(syscall(SYS_waitid, P_PIDFD, run->box->pidfd, &info, WEXITED, &all));
	while (r == -EINTR);
	run->box->reaped = true;
	/* A reaper is init's to wait for, not ours, and has told what it knows. */
	if (run->box->joined && run->have_gone) {
		usage_told(run);
		return;
	}
	/* Reaped by somebody else: its numbers stay unknown. */
	if (r >= 0) {
		usage->cpu_user_us = in_us(&all.ru_utime);
		usage->cpu_system_us = in_us(&all.ru_stime);
		usage->memory_peak_bytes =
			run->have_ended ? run->how.maxrss_bytes : (uint64_t)all.ru_maxrss * 1024u;
	}
	limits_read(run);
}

void usage_told(struct run *run)
{
	struct usage *usage = &run->result->usage;
	usage->cpu_user_us = run->last.utime_us;
	usage->cpu_system_us = run->last.stime_us;
	usage->memory_peak_bytes = run->how.maxrss_bytes;
	limits_read(run);
}
