/* digest: the name of exactly this policy, by the bytes that it was made from. */
#include "policy/policy.h"

#include <sha2.h>
#include <stddef.h>

/* Each text behind its length, so that no two lists of texts look the same. */
void policy_sha256(const struct policy *policy, char ret_hex[POLICY_SHA256_SIZE])
{
	SHA2_CTX sha;
	uint8_t sum[SHA256_DIGEST_LENGTH];
	SHA256Init(&sha);
	for (size_t i = 0; i < policy->source_count; i++) {
		uint64_t len = policy->texts[i].len;
		uint8_t prefix[8];
		for (int k = 0; k < 8; k++)
			prefix[k] = (uint8_t)(len >> (8 * k));
		SHA256Update(&sha, prefix, sizeof prefix);
		SHA256Update(&sha, (const uint8_t *)policy->texts[i].text, len);
	}
	SHA256Final(sum, &sha);
	for (size_t i = 0; i < sizeof sum; i++) {
		ret_hex[2 * i] = "0123456789abcdef"[sum[i] >> 4];
		ret_hex[2 * i + 1] = "0123456789abcdef"[sum[i] & 15];
	}
	ret_hex[2 * sizeof sum] = 0;
}
