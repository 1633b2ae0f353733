/*
 * link_check: can the distribution's static libraries be linked here? Compiled and linked when
 * configuring, never run. It calls every function of theirs that the program calls: each may be in
 * a part of the archive that needs something which is missing.
 */
#include <sha2.h>
#include <yaml.h>

int main(void)
{
	yaml_parser_t parser;
	yaml_event_t event;
	SHA2_CTX digest;
	uint8_t sum[SHA256_DIGEST_LENGTH];
	char hex[SHA256_DIGEST_STRING_LENGTH];
	if (!yaml_parser_initialize(&parser))
		return 1;
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, sum, 0);
	if (yaml_parser_parse(&parser, &event))
		yaml_event_delete(&event);
	yaml_parser_delete(&parser);
	SHA256Init(&digest);
	SHA256Update(&digest, sum, 0);
	SHA256Final(sum, &digest);
	return SHA256Data(sum, 0, hex) ? 0 : 1;
}
