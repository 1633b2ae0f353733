/* filter_calls: what the tests of the filter share: calls, and the programs of policies. */
#ifndef AGENTBOX_TESTS_FILTER_CALLS_H
#define AGENTBOX_TESTS_FILTER_CALLS_H

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>

#include "check.h"
#include "plan/filter.h"
#include "plan/filter_table.h"
#include "policy/policy.h"

#define ALLOW  SECCOMP_RET_ALLOW
#define REFUSE SECCOMP_RET_USER_NOTIF
#define ABSENT (SECCOMP_RET_ERRNO | ENOSYS)

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const uint32_t native_audit =
	ARCH_NATIVE == ARCH_X86_64 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64;

static struct seccomp_data call_of(
	uint32_t arch, int64_t number, uint64_t a, uint64_t b, uint64_t c)
{
	return (struct seccomp_data){
		.arch = arch, .nr = (int)(uint32_t)number, .args = { a, b, c }
	};
}

static struct filter get(const struct policy *policy, struct arena *arena)
{
	struct filter filter = { 0 };
	struct err err = { 0 };
	CHECK(filter_get(policy, arena, &filter, &err) == 0);
	CHECK_TEXT(err.text, "");
	return filter;
}

static struct policy_word word(const char *value)
{
	return (struct policy_word){ .value = value, .at = { "p.yaml", 7, 12 } };
}

#endif
