/* link_check: can the distribution's static libraries be linked here? Compiled when configuring. */
#include <sha2.h>
#include <yaml.h>

int main(void)
{
	yaml_parser_t parser;
	SHA2_CTX digest;
	uint8_t sum[SHA256_DIGEST_LENGTH];
	SHA256Init(&digest);
	SHA256Final(sum, &digest);
	return yaml_parser_initialize(&parser) ? sum[0] : 1;
}
