/*
 * filter_describe: words for a refused call. Sees only what the kernel tells of it (numbers), never
 * the memory of the box. Which policy was in force is not known here; what is said holds for all.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/seccomp.h>
#include <string.h>

#include "base/buf.h"
#include "plan/filter.h"
#include "plan/filter_table.h"
#include "report/result.h"

struct word {
	uint32_t value;
	const char *name;
};

static const char *find_word(const struct word *words, size_t count, uint32_t value)
{
	for (size_t i = 0; i < count; i++)
		if (words[i].value == value)
			return words[i].name;
	return NULL;
}

#define WORD(words, value) find_word(words, sizeof(words) / sizeof *(words), value)

/* From <linux/socket.h>; also those that the C library's headers may lack. */
static const struct word families[] = {
	{ 0, "AF_UNSPEC" },
	{ 1, "AF_UNIX" },
	{ 2, "AF_INET" },
	{ 3, "AF_AX25" },
	{ 4, "AF_IPX" },
	{ 5, "AF_APPLETALK" },
	{ 6, "AF_NETROM" },
	{ 7, "AF_BRIDGE" },
	{ 8, "AF_ATMPVC" },
	{ 9, "AF_X25" },
	{ 10, "AF_INET6" },
	{ 11, "AF_ROSE" },
	{ 12, "AF_DECnet" },
	{ 13, "AF_NETBEUI" },
	{ 14, "AF_SECURITY" },
	{ 15, "AF_KEY" },
	{ 16, "AF_NETLINK" },
	{ 17, "AF_PACKET" },
	{ 18, "AF_ASH" },
	{ 19, "AF_ECONET" },
	{ 20, "AF_ATMSVC" },
	{ 21, "AF_RDS" },
	{ 22, "AF_SNA" },
	{ 23, "AF_IRDA" },
	{ 24, "AF_PPPOX" },
	{ 25, "AF_WANPIPE" },
	{ 26, "AF_LLC" },
	{ 27, "AF_IB" },
	{ 28, "AF_MPLS" },
	{ 29, "AF_CAN" },
	{ 30, "AF_TIPC" },
	{ 31, "AF_BLUETOOTH" },
	{ 32, "AF_IUCV" },
	{ 33, "AF_RXRPC" },
	{ 34, "AF_ISDN" },
	{ 35, "AF_PHONET" },
	{ 36, "AF_IEEE802154" },
	{ 37, "AF_CAIF" },
	{ 38, "AF_ALG" },
	{ 39, "AF_NFC" },
	{ 40, "AF_VSOCK" },
	{ 41, "AF_KCM" },
	{ 42, "AF_QIPCRTR" },
	{ 43, "AF_SMC" },
	{ 44, "AF_XDP" },
	{ 45, "AF_MCTP" },
};

static const struct word types[] = {
	{ 1, "SOCK_STREAM" },
	{ 2, "SOCK_DGRAM" },
	{ 3, "SOCK_RAW" },
	{ 4, "SOCK_RDM" },
	{ 5, "SOCK_SEQPACKET" },
	{ 6, "SOCK_DCCP" },
	{ 10, "SOCK_PACKET" },
};

static const struct word netlinks[] = {
	{ 0, "NETLINK_ROUTE" },
	{ 2, "NETLINK_USERSOCK" },
	{ 4, "NETLINK_SOCK_DIAG" },
	{ 6, "NETLINK_XFRM" },
	{ 7, "NETLINK_SELINUX" },
	{ 9, "NETLINK_AUDIT" },
	{ 10, "NETLINK_FIB_LOOKUP" },
	{ 11, "NETLINK_CONNECTOR" },
	{ 12, "NETLINK_NETFILTER" },
	{ 15, "NETLINK_KOBJECT_UEVENT" },
	{ 16, "NETLINK_GENERIC" },
	{ 21, "NETLINK_CRYPTO" },
};

static const struct word requests[] = {
	{ 0x5412, "TIOCSTI" },
	{ 0x541c, "TIOCLINUX" },
	{ 0x541d, "TIOCCONS" },
	{ 0x5423, "TIOCSETD" },
};

static const struct word namespaces[] = {
	{ 0x10000000, "CLONE_NEWUSER" },
	{ 0x00020000, "CLONE_NEWNS" },
	{ 0x20000000, "CLONE_NEWPID" },
	{ 0x40000000, "CLONE_NEWNET" },
	{ 0x04000000, "CLONE_NEWUTS" },
	{ 0x08000000, "CLONE_NEWIPC" },
	{ 0x02000000, "CLONE_NEWCGROUP" },
	{ 0x00000080, "CLONE_NEWTIME" },
};

static const char *named_number(
	struct arena *arena, const char *what, uint32_t value, const char *name)
{
	return name ? arena_printf(arena, "%s %u (%s)", what, value, name)
		    : arena_printf(arena, "%s %u", what, value);
}

static const char *describe_socket(const struct seccomp_data *call, struct arena *arena)
{
	uint32_t family = (uint32_t)call->args[0], type = (uint32_t)call->args[1] & 0xf;
	uint32_t protocol = (uint32_t)call->args[2];
	const char *first = named_number(arena, "family", family, WORD(families, family));
	if ((family == 2 || family == 10) && type != 1 && type != 2)
		return arena_printf(arena, "%s %s", first,
			named_number(arena, "type", type, WORD(types, type)));
	if (family == 16)
		return arena_printf(arena, "%s %s", first,
			named_number(arena, "protocol", protocol, WORD(netlinks, protocol)));
	return first;
}

static const char *describe_namespaces(uint32_t flags, struct arena *arena)
{
	const char *list = NULL;
	for (size_t i = 0; i < sizeof namespaces / sizeof *namespaces; i++) {
		if (!(flags & namespaces[i].value))
			continue;
		list = list ? arena_printf(arena, "%s|%s", list, namespaces[i].name)
			    : namespaces[i].name;
	}
	return list;
}

static const char *describe_mode(uint32_t mode, struct arena *arena)
{
	return mode & 06000 ? arena_printf(arena, "set-id mode %05o", mode & 07777) : NULL;
}

static bool is_device(uint32_t mode)
{
	return (mode & 0xf000) == 0x2000 || (mode & 0xf000) == 0x6000;
}

/* The file type of mknod(2) first: no device is made, whatever its mode. */
static const char *describe_node(uint32_t mode, struct arena *arena)
{
	switch (mode & 0xf000) {
	case 0x2000:
		return "character device";
	case 0x6000:
		return "block device";
	default:
		return describe_mode(mode, arena);
	}
}

/* Of what is refused for reaching init; who: a process, a process group or a user. */
static const char *describe_init(bool whole_user, uint32_t who)
{
	if (whole_user)
		return "all processes of a user";
	return who == 1 ? "process 1 (the box's init)" : NULL;
}

/* What the arguments ask for, for those calls where they decide; else NULL. */
static const char *describe_arguments(
	const struct seccomp_data *call, enum filter_action action, struct arena *arena)
{
	uint32_t first = (uint32_t)call->args[0], second = (uint32_t)call->args[1];
	switch (action) {
	case ACT_CLONE: /* the low byte is the signal */
		return describe_namespaces(first & ~0xffu, arena);
	case ACT_UNSHARE:
		return describe_namespaces(first, arena);
	case ACT_SOCKET:
	case ACT_SOCKET_UNIX:
		return describe_socket(call, arena);
	case ACT_SOCKETPAIR:
		return named_number(arena, "family", first, WORD(families, first));
	case ACT_IOCTL:
		return WORD(requests, second);
	case ACT_MKNOD:
		return describe_node(second, arena);
	case ACT_MKNODAT:
		return describe_node((uint32_t)call->args[2], arena);
	case ACT_CHMOD:
		return describe_mode(second, arena);
	case ACT_FCHMODAT:
		return describe_mode((uint32_t)call->args[2], arena);
	case ACT_OPEN:
		return describe_mode((uint32_t)call->args[2], arena);
	case ACT_OPENAT:
		return describe_mode((uint32_t)call->args[3], arena);
	case ACT_PROCESS:
		return describe_init(false, first);
	case ACT_SETPRIORITY:
		return describe_init(first == 2, second);
	case ACT_IOPRIO_SET:
		return describe_init(first == 3, second);
	case ACT_PERSONALITY:
		return arena_printf(arena, "0x%07x", first);
	default:
		return NULL;
	}
}

static void describe_foreign(
	const struct seccomp_data *call, struct arena *arena, struct violation *ret)
{
	ret->operation = arena_printf(arena, "arch:0x%08x/nr:%d", call->arch, call->nr);
	ret->reason = "foreign_architecture";
	switch (call->arch) {
	case AUDIT_ARCH_X86_64:
		ret->target = "x32 (ABI of x86_64 with 32-bit pointers)";
		break;
	case AUDIT_ARCH_I386:
		ret->target = "i386 (32-bit x86)";
		break;
	case AUDIT_ARCH_ARM:
		ret->target = "arm (32-bit ARM)";
		break;
	default:
		break;
	}
}

bool filter_must_kill(const struct seccomp_data *call)
{
	if (call->arch != filter_arch_audit(ARCH_NATIVE))
		return true;
	return ARCH_NATIVE == ARCH_X86_64 && call->nr != -1 && (uint32_t)call->nr >= FILTER_X32_BIT;
}

int filter_errno(const struct seccomp_data *call)
{
	if (filter_must_kill(call))
		return ENOSYS;
	const struct filter_call *row = filter_call_numbered(ARCH_NATIVE, (uint32_t)call->nr);
	return row && row->normal != ACT_ABSENT && row->normal != ACT_TOLD ? EPERM : ENOSYS;
}

/* What both profiles allow, or leave unknown to all, only the policy's own list can refuse. */
static bool denied_by_list(const struct filter_call *row, const struct seccomp_data *call)
{
	return row->normal == ACT_ABSENT || row->normal == ACT_TOLD || row->normal == ACT_KILL ||
	       (filter_profile_allows(false, call) && filter_profile_allows(true, call));
}

/* Would the name in `syscalls.allow` let this very call pass? Device nodes the kernel refuses. */
static bool name_grants(const struct filter_call *row, const struct seccomp_data *call)
{
	switch (row->normal) {
	case ACT_MKNOD:
		return !is_device((uint32_t)call->args[1]);
	case ACT_MKNODAT:
		return !is_device((uint32_t)call->args[2]);
	default:
		return row->grant == GRANT_LIST ||
		       (row->grant == GRANT_HELD && filter_profile_allows(false, call));
	}
}

void filter_describe(const struct seccomp_data *call, struct arena *arena, struct violation *ret)
{
	*ret = (struct violation){
		.layer = "syscall", .rule = "syscalls", .count = 1, .certain = true
	};
	if (filter_must_kill(call)) {
		describe_foreign(call, arena, ret);
		return;
	}
	const struct filter_call *row = filter_call_numbered(ARCH_NATIVE, (uint32_t)call->nr);
	if (!row) {
		ret->operation = arena_printf(arena, "nr:%d", call->nr);
		ret->reason = "unknown_call";
		return;
	}
	ret->operation = row->name;
	if (denied_by_list(row, call)) {
		ret->rule = "syscalls.deny";
		ret->reason = "denied";
		return;
	}
	ret->target = describe_arguments(call, row->normal, arena);
	ret->reason = ret->target ? "argument_not_allowed" : "not_allowed";
	if (row->grant == GRANT_NESTING) {
		ret->rule = "nesting";
		ret->hint = "nesting: allow";
	} else if (name_grants(row, call)) {
		ret->hint = arena_printf(arena, "syscalls: {allow: [%s]}", row->name);
	}
}

bool filter_describe_flags(
	const struct seccomp_data *call, uint64_t flags, struct arena *arena, struct violation *ret)
{
	const char *target = describe_namespaces((uint32_t)flags, arena);
	const struct filter_call *row = filter_call_numbered(ARCH_NATIVE, (uint32_t)call->nr);
	if (!target || !row)
		return false;
	*ret = (struct violation){ .layer = "syscall",
		.rule = "nesting",
		.operation = row->name,
		.target = target,
		.reason = "argument_not_allowed",
		.hint = arena_printf(arena, "nesting: allow\nsyscalls: {allow: [%s]}", row->name),
		.count = 1,
		.certain = true };
	return true;
}
