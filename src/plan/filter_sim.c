/*
 * filter_sim: runs seccomp programs without the kernel. Knows nothing of what they mean. A program
 * that the kernel would not take (see seccomp(2)) answers as if it ended the process.
 */
#define _GNU_SOURCE
#include "plan/filter_sim.h"

#include <linux/seccomp.h>
#include <stdbool.h>
#include <string.h>

#include "plan/filter.h"

#ifndef SECCOMP_RET_USER_NOTIF
#define SECCOMP_RET_USER_NOTIF 0x7fc00000u /* Linux 5.0 */
#endif

#define INVALID SECCOMP_RET_KILL_PROCESS

struct machine {
	uint32_t a, x, memory[BPF_MEMWORDS];
	size_t pc;
};

/* A word of the call as the program sees it; false: outside, or not at a word's beginning. */
static bool load_word(const struct seccomp_data *call, uint32_t offset, uint32_t *ret_word)
{
	if (offset % 4 || offset > sizeof *call - 4)
		return false;
	memcpy(ret_word, (const char *)call + offset, 4);
	return true;
}

static bool alu(struct machine *m, uint16_t code, uint32_t operand)
{
	switch (BPF_OP(code)) {
	case BPF_ADD:
		m->a += operand;
		return true;
	case BPF_SUB:
		m->a -= operand;
		return true;
	case BPF_MUL:
		m->a *= operand;
		return true;
	case BPF_DIV:
		m->a = operand ? m->a / operand : 0;
		return true;
	case BPF_AND:
		m->a &= operand;
		return true;
	case BPF_OR:
		m->a |= operand;
		return true;
	case BPF_XOR:
		m->a ^= operand;
		return true;
	case BPF_LSH:
		m->a <<= operand & 31;
		return true;
	case BPF_RSH:
		m->a >>= operand & 31;
		return true;
	case BPF_NEG:
		m->a = -m->a;
		return true;
	default:
		return false;
	}
}

static bool jump(struct machine *m, const struct sock_filter *insn)
{
	uint32_t operand = BPF_SRC(insn->code) == BPF_X ? m->x : insn->k;
	bool yes;
	switch (BPF_OP(insn->code)) {
	case BPF_JA:
		m->pc += insn->k;
		return true;
	case BPF_JEQ:
		yes = m->a == operand;
		break;
	case BPF_JGT:
		yes = m->a > operand;
		break;
	case BPF_JGE:
		yes = m->a >= operand;
		break;
	case BPF_JSET:
		yes = (m->a & operand) != 0;
		break;
	default:
		return false;
	}
	m->pc += yes ? insn->jt : insn->jf;
	return true;
}

/* Everything but returns; false: not an instruction that seccomp takes. */
static bool step(struct machine *m, const struct sock_filter *insn, const struct seccomp_data *call)
{
	uint32_t slot = insn->k % BPF_MEMWORDS;
	switch (insn->code) {
	case BPF_LD | BPF_W | BPF_ABS:
		return load_word(call, insn->k, &m->a);
	case BPF_LD | BPF_W | BPF_LEN:
		m->a = sizeof *call;
		return true;
	case BPF_LDX | BPF_W | BPF_LEN:
		m->x = sizeof *call;
		return true;
	case BPF_LD | BPF_IMM:
		m->a = insn->k;
		return true;
	case BPF_LDX | BPF_IMM:
		m->x = insn->k;
		return true;
	case BPF_LD | BPF_MEM:
		m->a = m->memory[slot];
		return slot == insn->k;
	case BPF_LDX | BPF_MEM:
		m->x = m->memory[slot];
		return slot == insn->k;
	case BPF_ST:
		m->memory[slot] = m->a;
		return slot == insn->k;
	case BPF_STX:
		m->memory[slot] = m->x;
		return slot == insn->k;
	case BPF_MISC | BPF_TAX:
		m->x = m->a;
		return true;
	case BPF_MISC | BPF_TXA:
		m->a = m->x;
		return true;
	default:
		break;
	}
	if (BPF_CLASS(insn->code) == BPF_ALU)
		return alu(m, insn->code, BPF_SRC(insn->code) == BPF_X ? m->x : insn->k);
	return BPF_CLASS(insn->code) == BPF_JMP && jump(m, insn);
}

uint32_t filter_simulate(const struct filter *filter, const struct seccomp_data *call)
{
	struct machine m = { 0 };
	while (m.pc < filter->count) {
		const struct sock_filter *insn = &filter->program[m.pc++];
		if (insn->code == (BPF_RET | BPF_K))
			return insn->k;
		if (insn->code == (BPF_RET | BPF_A))
			return m.a;
		if (!step(&m, insn, call))
			return INVALID;
	}
	return INVALID;
}

static unsigned outcome(uint32_t answer)
{
	switch (answer & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_ALLOW:
	case SECCOMP_RET_LOG:
		return OUTCOME_ALLOW;
	case SECCOMP_RET_USER_NOTIF:
		return OUTCOME_REFUSE;
	case SECCOMP_RET_ERRNO:
		return OUTCOME_ABSENT;
	default:
		return OUTCOME_OTHER;
	}
}

/*
 * Both ways of every jump from instruction `from` on. As jumps only lead forwards, one pass in
 * order sees each instruction after all those that lead to it.
 */
static unsigned outcomes_after(const struct filter *filter, size_t from)
{
	bool reached[BPF_MAXINSNS] = { false };
	unsigned set = 0;
	if (from >= filter->count || filter->count > BPF_MAXINSNS)
		return OUTCOME_OTHER;
	reached[from] = true;
	for (size_t pc = from; pc < filter->count; pc++) {
		const struct sock_filter *insn = &filter->program[pc];
		size_t next[2] = { pc + 1, pc + 1 };
		if (!reached[pc])
			continue;
		if (BPF_CLASS(insn->code) == BPF_RET) {
			set |= insn->code == (BPF_RET | BPF_K) ? outcome(insn->k) : OUTCOME_OTHER;
			continue;
		}
		if (insn->code == (BPF_JMP | BPF_JA)) {
			next[0] = next[1] = pc + 1 + insn->k;
		} else if (BPF_CLASS(insn->code) == BPF_JMP) {
			next[0] += insn->jt;
			next[1] += insn->jf;
		}
		for (int i = 0; i < 2; i++) {
			if (next[i] < filter->count)
				reached[next[i]] = true;
			else
				set |= OUTCOME_OTHER;
		}
	}
	return set;
}

unsigned filter_outcomes(const struct filter *filter, enum filter_arch arch, uint32_t number)
{
	struct seccomp_data call = { .nr = (int)number, .arch = filter_arch_audit(arch) };
	struct machine m = { 0 };
	while (m.pc < filter->count) {
		const struct sock_filter *insn = &filter->program[m.pc];
		bool known = insn->k == offsetof(struct seccomp_data, nr) ||
			     insn->k == offsetof(struct seccomp_data, arch);
		if (insn->code == (BPF_LD | BPF_W | BPF_ABS) && !known)
			return outcomes_after(filter, m.pc);
		m.pc++;
		if (insn->code == (BPF_RET | BPF_K))
			return outcome(insn->k);
		if (!step(&m, insn, &call))
			break;
	}
	return OUTCOME_OTHER;
}
