/*
 * watch: memory, processor time and processes of a box as /proc shows them, where no control group
 * counts them. Private to this room.
 *
 * Sources: proc(5); the kernel's filesystems/proc.rst (children, smaps_rollup). /proc/PID/status
 * and stat can be read of everybody; smaps_rollup and root, like all that ptrace(2) may do, by root
 * and by the user who made the box, but of init not by the latter.
 */
#ifndef AGENTBOX_SUPERVISE_WATCH_H
#define AGENTBOX_SUPERVISE_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define WATCH_PIDS_MAX 4096 /* processes that one look goes through; more are not counted */

struct watch;

/*
 * `proc`: where /proc is mounted; self: the number that we have there. NULL when it is not there,
 * when it is that of other process numbers, or without memory. Owned by the caller.
 */
struct watch *watch_open(const char *proc, pid_t self);
void watch_close(struct watch *watch); /* NULL: nothing */

enum watch_wants {
	/*
	 * Memory that several processes have is divided among them. That is dear: the kernel goes
	 * through all their pages. Without it such memory is counted once for each.
	 */
	WATCH_SHARES = 1,
	WATCH_CPU = 2,
};

struct watch_usage {
	uint64_t memory_bytes; /* with what is swapped, and with the files in the box's tmpfs; not
				  what the kernel could read again from a disk */
	uint64_t cpu_user_us, cpu_system_us; /* ended processes too, once they were waited for */
	uint64_t tasks;                      /* threads of all processes; init is one */
};

/* What the box, whose init has that number, uses now. Never fails: what cannot be read is 0. */
void watch_look(struct watch *watch, pid_t init, unsigned wants, struct watch_usage *ret_usage);

#endif
