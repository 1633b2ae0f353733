/*
 * filter_program_test: the compiler, the table and the interpreter of seccomp programs, for every
 * architecture. Nothing is installed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>

#include "check.h"
#include "plan/filter.h"
#include "plan/filter_compile.h"
#include "plan/filter_sim.h"

#define ALLOW  SECCOMP_RET_ALLOW
#define REFUSE SECCOMP_RET_USER_NOTIF
#define ABSENT (SECCOMP_RET_ERRNO | ENOSYS)

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct seccomp_data call_of(uint32_t arch, uint32_t number, uint64_t first)
{
	return (struct seccomp_data){ .arch = arch, .nr = (int)number, .args = { first } };
}

static uint32_t plain_value(uint8_t action)
{
	switch (action) {
	case ACT_ALLOW:
		return ALLOW;
	case ACT_REFUSE:
	case ACT_RENAME:
	case ACT_TOLD:
	case ACT_END:
		return REFUSE;
	default:
		return ABSENT;
	}
}

/* The program does with every number what the array says, in whatever order actions stand. */
static void check_actions(enum filter_arch arch, const uint8_t actions[FILTER_NUMBERS])
{
	struct sock_filter program[FILTER_PROGRAM_MAX];
	int count = filter_compile(arch, actions, program);
	CHECK(count > 0 && count < FILTER_PROGRAM_MAX);
	struct filter filter = { .program = program, .count = (size_t)(count > 0 ? count : 0) };
	size_t wrong = 0;
	for (uint32_t number = 0; number < FILTER_NUMBERS; number++) {
		struct seccomp_data call = call_of(filter_arch_audit(arch), number, 0);
		unsigned set = filter_outcomes(&filter, arch, number);
		if (actions[number] < ACT_CLONE) {
			uint32_t want = plain_value(actions[number]);
			unsigned want_set = want == ALLOW    ? OUTCOME_ALLOW
					    : want == REFUSE ? OUTCOME_REFUSE
							     : OUTCOME_ABSENT;
			wrong += filter_simulate(&filter, &call) != want || set != want_set;
		} else {
			unsigned other =
				actions[number] == ACT_SECCOMP ? OUTCOME_ABSENT : OUTCOME_REFUSE;
			wrong += set != (OUTCOME_ALLOW | other);
		}
	}
	CHECK(wrong == 0);
}

static void test_compiler(void)
{
	uint8_t actions[FILTER_NUMBERS];
	for (int arch = 0; arch < ARCH_COUNT; arch++) {
		for (int kind = 0; kind < 4; kind++) {
			filter_actions(arch, kind & 1, kind & 2, actions);
			check_actions(arch, actions);
		}
		/* the longest there can be: jumps that reach too far need help */
		for (int i = 0; i < FILTER_NUMBERS; i++)
			actions[i] = (uint8_t)(i % ACT_COUNT);
		check_actions(arch, actions);
		for (int i = 0; i < FILTER_NUMBERS; i++)
			actions[i] = i & 1 ? ACT_ALLOW : ACT_REFUSE;
		check_actions(arch, actions);
		memset(actions, ACT_ALLOW, sizeof actions);
		check_actions(arch, actions);
	}
	uint32_t seed = 1;
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < FILTER_NUMBERS; i++) {
			seed = seed * 1103515245 + 12345;
			/* long and short runs */
			actions[i] = i && (seed >> 16) % 16 < (uint32_t)round % 16
					     ? actions[i - 1]
					     : (uint8_t)((seed >> 20) % ACT_COUNT);
		}
		check_actions(round & 1, actions);
	}
}

/* The table against the C library for both architectures, where that knows the call. */
static void test_table(void)
{
	static const uint32_t tokens[ARCH_COUNT] = { SCMP_ARCH_X86_64, SCMP_ARCH_AARCH64 };
	const struct filter_call *call;
	size_t compared = 0;
	int previous = -1;
	for (size_t i = 0; (call = filter_call(i)); i++) {
		CHECK(call->number[ARCH_X86_64] > previous); /* sorted, none twice */
		previous = call->number[ARCH_X86_64];
		CHECK(filter_call_named(call->name) == call);
		CHECK(strlen(call->name) <= 32); /* room of the search for near names */
		for (int arch = 0; arch < ARCH_COUNT; arch++) {
			int number = call->number[arch];
			CHECK(number < FILTER_NUMBERS);
			int known = seccomp_syscall_resolve_name_arch(tokens[arch], call->name);
			if (known >= 0 && known != number) {
				fprintf(stderr, "%s: %d, but %d\n", call->name, number, known);
				check_failures++;
			}
			compared += known >= 0;
			if (number >= 0)
				CHECK(filter_call_numbered(arch, (uint32_t)number) == call);
		}
	}
	CHECK(compared > 600);
	/* and the other way: no call that the library knows is missing */
	for (int number = 0; number < FILTER_NUMBERS; number++) {
		for (int arch = 0; arch < ARCH_COUNT; arch++) {
			char *name = seccomp_syscall_resolve_num_arch(tokens[arch], number);
			const struct filter_call *row =
				filter_call_numbered(arch, (uint32_t)number);
			if (name && !row) {
				fprintf(stderr, "%s (%d) is missing\n", name, number);
				check_failures++;
			}
			free(name);
		}
	}
	CHECK(filter_number("listns") == 470);
	CHECK(filter_number("no_such_call") == -1);
	CHECK(filter_number("") == -1);
	CHECK(filter_name(-1) == NULL);
	CHECK(filter_name(100000) == NULL);
	CHECK_TEXT(filter_name(filter_number("openat")), "openat");
}

/* What the kernel would not take, the interpreter answers with the end of the process. */
static void test_interpreter(void)
{
	static const struct sock_filter no_end[] = { { BPF_LD | BPF_W | BPF_ABS, 0, 0, 0 } };
	static const struct sock_filter far[] = { { BPF_JMP | BPF_JA, 0, 0, 0xffffffff } };
	static const struct sock_filter odd[] = { { BPF_LD | BPF_W | BPF_ABS, 0, 0, 3 },
		{ BPF_RET | BPF_K, 0, 0, ALLOW } };
	static const struct sock_filter outside[] = { { BPF_LD | BPF_W | BPF_ABS, 0, 0, 64 },
		{ BPF_RET | BPF_K, 0, 0, ALLOW } };
	static const struct sock_filter half[] = { { BPF_LD | BPF_H | BPF_ABS, 0, 0, 0 },
		{ BPF_RET | BPF_K, 0, 0, ALLOW } };
	static const struct sock_filter slot[] = { { BPF_LD | BPF_MEM, 0, 0, 16 },
		{ BPF_RET | BPF_K, 0, 0, ALLOW } };
	/* A = args[0] high; X = A; A = (A + 5) & 6; RET A */
	static const struct sock_filter sum[] = { { BPF_LD | BPF_W | BPF_ABS, 0, 0, 20 },
		{ BPF_MISC | BPF_TAX, 0, 0, 0 }, { BPF_ALU | BPF_ADD | BPF_K, 0, 0, 5 },
		{ BPF_ALU | BPF_AND | BPF_K, 0, 0, 6 }, { BPF_JMP | BPF_JGT | BPF_X, 0, 1, 0 },
		{ BPF_RET | BPF_A, 0, 0, 0 }, { BPF_RET | BPF_K, 0, 0, 99 } };
	static const struct {
		const struct sock_filter *program;
		size_t count;
		uint32_t answer;
	} programs[] = {
		{ no_end, COUNT(no_end), SECCOMP_RET_KILL_PROCESS },
		{ no_end, 0, SECCOMP_RET_KILL_PROCESS },
		{ far, COUNT(far), SECCOMP_RET_KILL_PROCESS },
		{ odd, COUNT(odd), SECCOMP_RET_KILL_PROCESS },
		{ outside, COUNT(outside), SECCOMP_RET_KILL_PROCESS },
		{ half, COUNT(half), SECCOMP_RET_KILL_PROCESS },
		{ slot, COUNT(slot), SECCOMP_RET_KILL_PROCESS },
		{ sum, COUNT(sum), 6 },
	};
	struct seccomp_data call = call_of(AUDIT_ARCH_X86_64, 0, 0x100000000);
	for (size_t i = 0; i < COUNT(programs); i++) {
		struct filter filter = { .program = programs[i].program,
			.count = programs[i].count };
		CHECK(filter_simulate(&filter, &call) == programs[i].answer);
	}
}

int main(void)
{
	RUN(test_compiler);
	RUN(test_table);
	RUN(test_interpreter);
	return CHECK_STATUS();
}
