/* gaps: what a policy may say and this version cannot hold. */
#include "plan/gaps.h"
#include "policy/policy.h"

#include <stdbool.h>

size_t plan_gaps(const struct policy *policy, struct plan_gap gaps[PLAN_GAPS_MAX])
{
	static const char not_yet[] = "cannot be enforced by this version of agentbox";
	const struct {
		bool asked;
		struct plan_gap gap;
	} rows[PLAN_GAPS_MAX] = {
		{ policy->tool_count > 0,
			{ "tools", policy->tools ? &policy->tools[0].at : NULL, not_yet, NULL } },
		{ policy->secret_count > 0,
			{ "secrets", policy->secrets ? &policy->secrets[0].at : NULL, not_yet,
				NULL } },
		{ policy->audit_log != NULL, { "audit.log", &policy->audit_at, not_yet, NULL } },
		{ policy->trace_count > 0,
			{ "audit.trace", policy->trace ? &policy->trace[0].at : NULL, not_yet,
				NULL } },
	};
	size_t count = 0;
	for (size_t i = 0; i < PLAN_GAPS_MAX; i++)
		if (rows[i].asked)
			gaps[count++] = rows[i].gap;
	return count;
}
