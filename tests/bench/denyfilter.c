/*
 * denyfilter: prints a ready seccomp program to standard output, for bwrap and floorbox: all is
 * allowed but calls that reach for the machine or for other processes. It is shorter than
 * agentbox's own filters, so a comparison with it never flatters agentbox.
 */
#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <unistd.h>

static const char *const denied[] = {
	/* the machine */
	"reboot",
	"kexec_load",
	"kexec_file_load",
	"init_module",
	"finit_module",
	"delete_module",
	"iopl",
	"ioperm",
	"swapon",
	"swapoff",
	"acct",
	"syslog",
	"settimeofday",
	"clock_settime",
	"adjtimex",
	"clock_adjtime",
	"quotactl",
	"quotactl_fd",
	"vhangup",
	/* file systems and namespaces */
	"mount",
	"umount2",
	"pivot_root",
	"chroot",
	"fsopen",
	"fsconfig",
	"fsmount",
	"fspick",
	"open_tree",
	"move_mount",
	"mount_setattr",
	"setns",
	"unshare",
	"name_to_handle_at",
	"open_by_handle_at",
	"fanotify_init",
	/* other processes */
	"ptrace",
	"process_vm_readv",
	"process_vm_writev",
	"process_madvise",
	"pidfd_getfd",
	"kcmp",
	"move_pages",
	"migrate_pages",
	"perf_event_open",
	/* wide kernel interfaces */
	"bpf",
	"userfaultfd",
	"io_uring_setup",
	"io_uring_enter",
	"io_uring_register",
	"keyctl",
	"add_key",
	"request_key",
	"lookup_dcookie",
	"personality",
};

int main(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int result;

	if (!filter)
		return 1;
	for (size_t i = 0; i < sizeof denied / sizeof *denied; i++) {
		int number = seccomp_syscall_resolve_name(denied[i]);

		/* Negative: not a call of this architecture. */
		if (number >= 0 && seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0))
			return 1;
	}
	/* 2: a binary tree instead of a chain, which the kernel takes in half of the time. */
	seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	result = seccomp_export_bpf(filter, STDOUT_FILENO);
	seccomp_release(filter);
	return result != 0;
}
