/*
 * filter_compile: owns the shape of the seccomp program. Knows no policy and no names.
 *
 * The kernel walks the program once for every number when it is installed, to learn which calls
 * are allowed whatever their arguments (Linux 5.11; those never run it again), and translates it
 * to machine code. Both cost what the program is long, so neighbouring numbers with one action are
 * one range, and the ranges are the leaves of a tree of comparisons, balanced by the count of
 * numbers beneath.
 *
 * Instructions are written from the last to the first, as classic BPF jumps only forwards: so a
 * jump's target is always there already. A label is the count of instructions from the target to
 * the end.
 */
#define _GNU_SOURCE
#include "plan/filter_compile.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>

#ifndef SECCOMP_RET_USER_NOTIF
#define SECCOMP_RET_USER_NOTIF 0x7fc00000u /* Linux 5.0 */
#endif

/* Namespace bits of clone(2) and unshare(2); the low byte of clone's flags is a signal. */
#define CLONE_NAMESPACES   0x7e020000u
#define UNSHARE_NAMESPACES (CLONE_NAMESPACES | 0x80u /* CLONE_NEWTIME */)

#define SET_ID_BITS 06000u /* S_ISUID, S_ISGID */
#define MAKES_FILE                                                                                 \
	(0100u | 020000000u) /* O_CREAT, __O_TMPFILE: alike on all architectures here              \
			      */
#define INIT_PID 1u          /* agentbox's own process in the box */

/* Tests of arguments: what to do in order, with the lower 32 bits of one argument at a time. */
enum step_kind {
	STEP_END, /* answer `action` */
	STEP_ARG, /* take argument k */
	STEP_AND, /* keep the bits k */
	STEP_EQ,  /* equal to k: go to */
	STEP_SET, /* any of the bits k is set: go to */
};

struct step {
	enum step_kind kind;
	uint32_t k;
	int to; /* index of a later step, or ~action */
};

#define ANSWER(action) (~(int)ACT_##action)
#define STEPS_MAX      14

/*
 * Only the lower halves are looked at, as the kernel takes these arguments as 32 bits or fewer (an
 * ioctl request with higher bits set is the same request).
 */
static const struct step blocks[ACT_COUNT][STEPS_MAX] = {
	[ACT_CLONE] = {
		{ STEP_ARG, 0, 0 },
		{ STEP_SET, CLONE_NAMESPACES, ANSWER(REFUSE) },
		{ STEP_END, 0, ANSWER(ALLOW) },
	},
	[ACT_UNSHARE] = {
		{ STEP_ARG, 0, 0 },
		{ STEP_SET, UNSHARE_NAMESPACES, ANSWER(REFUSE) },
		{ STEP_END, 0, ANSWER(ALLOW) },
	},
	[ACT_SOCKET] = {
		{ STEP_ARG, 0, 0 },
		{ STEP_EQ, 1 /* AF_UNIX */, ANSWER(ALLOW) },
		{ STEP_EQ, 2 /* AF_INET */, 6 },
		{ STEP_EQ, 10 /* AF_INET6 */, 6 },
		{ STEP_EQ, 16 /* AF_NETLINK */, 11 },
		{ STEP_END, 0, ANSWER(REFUSE) },
		/* 6: of the internet SOCK_STREAM and SOCK_DGRAM; flags lie above these 4 bits */
		{ STEP_ARG, 1, 0 },
		{ STEP_AND, 0xf, 0 },
		{ STEP_EQ, 1, ANSWER(ALLOW) },
		{ STEP_EQ, 2, ANSWER(ALLOW) },
		{ STEP_END, 0, ANSWER(REFUSE) },
		/* 11: of netlink NETLINK_ROUTE */
		{ STEP_ARG, 2, 0 },
		{ STEP_EQ, 0, ANSWER(ALLOW) },
		{ STEP_END, 0, ANSWER(REFUSE) },
	},
	[ACT_SOCKET_UNIX] = {
		{ STEP_ARG, 0, 0 },
		{ STEP_EQ, 1 /* AF_UNIX */, ANSWER(ALLOW) },
		{ STEP_END, 0, ANSWER(REFUSE) },
	},
	[ACT_SOCKETPAIR] = {
		{ STEP_ARG, 0, 0 },
		{ STEP_EQ, 1 /* AF_UNIX */, ANSWER(ALLOW) },
		{ STEP_END, 0, ANSWER(REFUSE) },
	},
	[ACT_IOCTL] = {
		{ STEP_ARG, 1, 0 },
		{ STEP_EQ, 0x5412 /* TIOCSTI */, ANSWER(REFUSE) },
		{ STEP_EQ, 0x541c /* TIOCLINUX */, ANSWER(REFUSE) },
		{ STEP_EQ, 0x541d /* TIOCCONS */, ANSWER(REFUSE) },
		{ STEP_EQ, 0x5423 /* TIOCSETD */, ANSWER(REFUSE) },
		{ STEP_END, 0, ANSWER(ALLOW) },
	},
	[ACT_MKNOD] = {
		{ STEP_ARG, 1, 0 },
		{ STEP_SET, SET_ID_BITS, ANSWER(REFUSE) },
		{ STEP_AND, 0xf000 /* S_IFMT */, 0 },
		{ STEP_EQ, 0x2000 /* S_IFCHR */, ANSWER(REFUSE) },
		{ STEP_EQ, 0x6000 /* S_IFBLK */, ANSWER(REFUSE) },
		{ STEP_END, 0, ANSWER(ALLOW) },
	},
	[ACT_MKNODAT] = {
		{ STEP_ARG, 2, 0 },
		{ STEP_SET, SET_ID_BITS, ANSWER(REFUSE) },
		{ STEP_AND, 0xf000 /* S_IFMT */, 0 },
		{ STEP_EQ, 0x2000 /* S_IFCHR */, ANSWER(REFUSE) },
		{ STEP_EQ, 0x6000 /* S_IFBLK */, ANSWER(REFUSE) },
		{ STEP_END, 0, ANSWER(ALLOW) },
	},
	[ACT_CHMOD] = {
		{ STEP_ARG, 1, 0 },
		{ STEP_SET, SET_ID_BITS, ANSWER(REFUSE) },
		{ STEP_END, 0, ANSWER(ALLOW) },
	},
	[ACT_FCHMODAT] = {
		{ STEP_ARG, 2, 0 },
		{ STEP_SET, SET_ID_BITS, ANSWER(REFUSE) },
		{ STEP_END, 0, ANSWER(ALLOW) },
	},
	/* A mode counts only where a file is made; without that the register holds anything. */
	[ACT_OPEN] = {
		{ STEP_ARG, 1, 0 },
		{ STEP_SET, MAKES_FILE, 3 },
		{ STEP_END, 0, ANSWER(ALLOW) },
		{ STEP_ARG, 2, 0 },
		{ STEP_SET, SET_ID_BITS, ANSWER(REFUSE) },
		{ STEP_END, 0, ANSWER(ALLOW) },
	},
	[ACT_OPENAT] = {
		{ STEP_ARG, 2, 0 },
		{ STEP_SET, MAKES_FILE, 3 },
		{ STEP_END, 0, ANSWER(ALLOW) },
		{ STEP_ARG, 3, 0 },
		{ STEP_SET, SET_ID_BITS, ANSWER(REFUSE) },
		{ STEP_END, 0, ANSWER(ALLOW) },
	},
	[ACT_PERSONALITY] = {
		/* PER_LINUX, PER_LINUX32, with UNAME26 and ADDR_NO_RANDOMIZE; or only asking */
		{ STEP_ARG, 0, 0 },
		{ STEP_EQ, 0xffffffff, ANSWER(ALLOW) },
		{ STEP_SET, ~0x60008u, ANSWER(REFUSE) },
		{ STEP_END, 0, ANSWER(ALLOW) },
	},
	[ACT_PROCESS] = {
		{ STEP_ARG, 0, 0 },
		{ STEP_EQ, INIT_PID, ANSWER(REFUSE) },
		{ STEP_END, 0, ANSWER(ALLOW) },
	},
	/* Init leads its process group and has the command's user, so these reach it as well. */
	[ACT_SETPRIORITY] = {
		{ STEP_ARG, 0, 0 },
		{ STEP_EQ, 2 /* PRIO_USER */, ANSWER(REFUSE) },
		{ STEP_ARG, 1, 0 },
		{ STEP_EQ, INIT_PID, ANSWER(REFUSE) },
		{ STEP_END, 0, ANSWER(ALLOW) },
	},
	[ACT_IOPRIO_SET] = {
		{ STEP_ARG, 0, 0 },
		{ STEP_EQ, 3 /* IOPRIO_WHO_USER */, ANSWER(REFUSE) },
		{ STEP_ARG, 1, 0 },
		{ STEP_EQ, INIT_PID, ANSWER(REFUSE) },
		{ STEP_END, 0, ANSWER(ALLOW) },
	},
	/*
	 * A listener of the box's own could tell refused calls to go on, were agentbox's ever closed
	 * before the box is gone; until then the kernel answers EBUSY. Nobody is told, as libraries
	 * ask for it without meaning it, to see what the kernel knows.
	 */
	[ACT_SECCOMP] = {
		{ STEP_ARG, 1, 0 },
		{ STEP_SET, 8 /* SECCOMP_FILTER_FLAG_NEW_LISTENER */, ANSWER(ABSENT) },
		{ STEP_END, 0, ANSWER(ALLOW) },
	},
	/*
	 * SIGKILL to everything that can be seen is the end of the box. The kernel spares the caller
	 * (kill(2), NOTES), and when that is the command it would go on among the ruins of its own
	 * work, as the one thing that the signal did not reach.
	 */
	[ACT_KILL] = {
		{ STEP_ARG, 0, 0 },
		{ STEP_EQ, 0xffffffff /* every process */, 3 },
		{ STEP_END, 0, ANSWER(ALLOW) },
		{ STEP_ARG, 1, 0 },
		{ STEP_EQ, 9 /* SIGKILL */, ANSWER(END) },
		{ STEP_END, 0, ANSWER(ALLOW) },
	},
};

struct emitter {
	struct sock_filter *program; /* filled from its end */
	size_t count;
	bool full;
	size_t answers[ACT_COUNT]; /* labels of the answers and tests; 0: not there yet */
};

/*
 * Neighbouring numbers with one action, but for one number among them that may have another; a
 * range ends where the next one begins.
 */
struct range {
	uint32_t first, odd; /* odd == first: none */
	uint8_t action, odd_action;
};

#define RANGES_MAX (FILTER_NUMBERS + 4) /* with the end */
#define REACH_MAX  250                  /* a conditional jump crosses at most 255 instructions */

static size_t emit(struct emitter *e, uint16_t code, uint32_t k, size_t yes, size_t no)
{
	if (e->count >= FILTER_PROGRAM_MAX) {
		e->full = true;
		return e->count;
	}
	e->program[FILTER_PROGRAM_MAX - 1 - e->count] = (struct sock_filter){
		.code = code,
		.jt = yes ? (uint8_t)(e->count - yes) : 0,
		.jf = no ? (uint8_t)(e->count - no) : 0,
		.k = k,
	};
	return ++e->count;
}

/* The same label, or one near enough for a conditional jump that leads there. */
static size_t reach(struct emitter *e, size_t label)
{
	if (e->count - label <= REACH_MAX)
		return label;
	return emit(e, BPF_JMP | BPF_JA, (uint32_t)(e->count - label), 0, 0);
}

static size_t emit_branch(struct emitter *e, uint16_t test, uint32_t k, size_t yes, size_t no)
{
	yes = reach(e, yes);
	no = reach(e, no);
	return emit(e, BPF_JMP | BPF_K | test, k, yes, no);
}

static uint32_t answer_value(enum filter_action action)
{
	switch (action) {
	case ACT_ALLOW:
		return SECCOMP_RET_ALLOW;
	case ACT_REFUSE:
	case ACT_RENAME:
	case ACT_TOLD:
	case ACT_END:
		return SECCOMP_RET_USER_NOTIF;
	default:
		return SECCOMP_RET_ERRNO | ENOSYS;
	}
}

static size_t emit_answer(struct emitter *e, enum filter_action action);

static size_t emit_block(struct emitter *e, const struct step steps[STEPS_MAX])
{
	size_t labels[STEPS_MAX + 1] = { 0 };
	for (size_t i = STEPS_MAX; i-- > 0;) {
		const struct step *step = &steps[i];
		size_t to = step->to > 0 ? labels[step->to] : 0;
		if (step->to < 0)
			to = emit_answer(e, (enum filter_action) ~step->to);
		switch (step->kind) {
		case STEP_END:
			labels[i] = to; /* 0: filling behind the last step */
			break;
		case STEP_ARG:
			labels[i] = emit(e, BPF_LD | BPF_W | BPF_ABS,
				(uint32_t)offsetof(struct seccomp_data, args[step->k]), 0, 0);
			break;
		case STEP_AND:
			labels[i] = emit(e, BPF_ALU | BPF_AND | BPF_K, step->k, 0, 0);
			break;
		case STEP_EQ:
			labels[i] = emit_branch(e, BPF_JEQ, step->k, to, labels[i + 1]);
			break;
		case STEP_SET:
			labels[i] = emit_branch(e, BPF_JSET, step->k, to, labels[i + 1]);
			break;
		}
	}
	return labels[0];
}

/* The label of an action's answer or test, made where it is first needed. */
static size_t emit_answer(struct emitter *e, enum filter_action action)
{
	size_t *label = &e->answers[action];
	if (action >= ACT_CLONE) {
		if (!*label)
			*label = emit_block(e, blocks[action]);
	} else if (!*label || e->count - *label > REACH_MAX) {
		*label = emit(e, BPF_RET | BPF_K, answer_value(action), 0, 0);
	}
	return *label;
}

/* How many of the numbers that exist lie in ranges [low, high)? */
static uint32_t weight(const struct range *ranges, size_t low, size_t high)
{
	uint32_t from = ranges[low].first, to = ranges[high].first;
	if (from > FILTER_NUMBERS)
		from = FILTER_NUMBERS;
	if (to > FILTER_NUMBERS)
		to = FILTER_NUMBERS;
	return to - from;
}

/* The tree for ranges [low, high); ranges[high].first is its end. About log2 of them deep. */
static size_t emit_tree(struct emitter *e, const struct range *ranges, size_t low, size_t high)
{
	if (high - low == 1) {
		const struct range *range = &ranges[low];
		size_t label = emit_answer(e, range->action);
		if (range->odd == range->first)
			return label;
		return emit_branch(
			e, BPF_JEQ, range->odd, emit_answer(e, range->odd_action), label);
	}
	size_t middle = low + 1;
	while (middle + 1 < high && weight(ranges, low, middle + 1) <= weight(ranges, middle, high))
		middle++;
	size_t right = emit_tree(e, ranges, middle, high);
	size_t left = emit_tree(e, ranges, low, middle);
	return emit_branch(e, BPF_JGE, ranges[middle].first, right, left);
}

static size_t add_range(struct range *ranges, size_t count, uint32_t first, uint8_t action)
{
	struct range *last = count ? &ranges[count - 1] : NULL;
	/* A B A, where B is a single number: one range with an odd one */
	if (count > 1 && ranges[count - 2].action == action && first - last->first == 1 &&
		last->odd == last->first && ranges[count - 2].odd == ranges[count - 2].first) {
		ranges[count - 2].odd = last->first;
		ranges[count - 2].odd_action = last->action;
		return count - 1;
	}
	ranges[count] = (struct range){ first, first, action, action };
	return count + 1;
}

/* Returns the count of ranges; one more is the end. */
static size_t find_ranges(enum filter_arch arch, const uint8_t actions[FILTER_NUMBERS],
	struct range ret_ranges[RANGES_MAX])
{
	size_t count = 0;
	for (uint32_t number = 0; number < FILTER_NUMBERS; number++)
		if (number == 0 || actions[number - 1] != actions[number])
			count = add_range(ret_ranges, count, number, actions[number]);
	if (actions[FILTER_NUMBERS - 1] != ACT_ABSENT)
		count = add_range(ret_ranges, count, FILTER_NUMBERS, ACT_ABSENT);
	if (arch == ARCH_X86_64) {
		/* x32; but -1 is what a tracer leaves of a call that it skips */
		count = add_range(ret_ranges, count, FILTER_X32_BIT, ACT_REFUSE);
		count = add_range(ret_ranges, count, UINT32_MAX, ACT_ABSENT);
	}
	ret_ranges[count].first = UINT32_MAX;
	return count;
}

void filter_actions(
	enum filter_arch arch, bool strict, bool nesting, uint8_t ret_actions[FILTER_NUMBERS])
{
	memset(ret_actions, ACT_ABSENT, FILTER_NUMBERS);
	const struct filter_call *call;
	for (size_t i = 0; (call = filter_call(i)); i++) {
		if (call->number[arch] < 0)
			continue;
		uint8_t action = strict ? call->strict : call->normal;
		if (nesting && call->grant == GRANT_NESTING)
			action = ACT_ALLOW;
		/* A box in the box may have a view of its own of what every process is. */
		if (nesting && action == ACT_KILL)
			action = ACT_ALLOW;
		ret_actions[call->number[arch]] = action;
	}
}

unsigned filter_rename_actions(enum filter_arch arch, uint8_t actions[FILTER_NUMBERS])
{
	unsigned renames = 0;
	const struct filter_call *call;
	for (size_t i = 0; (call = filter_call(i)); i++) {
		unsigned bit = filter_rename_bit(call);
		int number = call->number[arch];
		if (!bit || number < 0 || actions[number] != ACT_ALLOW)
			continue;
		actions[number] = ACT_RENAME;
		renames |= bit;
	}
	return renames;
}

unsigned filter_handed(enum filter_arch arch, const uint8_t actions[FILTER_NUMBERS])
{
	int clone3 = filter_call_named("clone3")->number[arch];
	int kill = filter_call_named("kill")->number[arch];
	return (actions[clone3] == ACT_TOLD ? FILTER_CLONE3 : 0) |
	       (actions[kill] == ACT_KILL ? FILTER_KILL_ALL : 0);
}

int filter_compile(enum filter_arch arch, const uint8_t actions[FILTER_NUMBERS],
	struct sock_filter ret_program[FILTER_PROGRAM_MAX])
{
	struct range ranges[RANGES_MAX];
	size_t count = find_ranges(arch, actions, ranges);
	struct emitter e = { .program = ret_program };

	size_t tree = emit_tree(&e, ranges, 0, count);
	size_t foreign = emit_answer(&e, ACT_REFUSE);
	if (tree != e.count)
		tree = emit(&e, BPF_JMP | BPF_JA, (uint32_t)(e.count - tree), 0, 0);
	size_t native = emit(&e, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	emit_branch(&e, BPF_JEQ, filter_arch_audit(arch), native, foreign);
	emit(&e, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
	if (e.full)
		return -E2BIG;
	memmove(ret_program, ret_program + FILTER_PROGRAM_MAX - e.count,
		e.count * sizeof *ret_program);
	return (int)e.count;
}
