/* cmd_write: `agentbox write`: a file of a session becomes what stdin has, at once or not at all.
 */
#include "cli/files.h"

/* An octal mode up to 777. Set-id bits are nobody's to give. */
static int read_mode(const char *text, int *ret_mode, struct err *err)
{
	int mode = 0;
	const char *at = text;
	for (; *at >= '0' && *at <= '7' && mode <= 0777; at++)
		mode = mode * 8 + (*at - '0');
	if (at == text || *at || mode > 0777)
		return err_set(err, ERR_usage, 0,
			"--mode: \"%.50s\" is not an octal number up to 777", text);
	*ret_mode = mode;
	return 0;
}

int cmd_write(const struct cli *cli, struct err *err)
{
	const struct options *options = &cli->options;
	const char *text = options_value(options, OPTION_write_mode);
	int mode = -1;
	struct files files;
	if (options->arg_count != 2)
		return err_set(err, ERR_usage, 0, "write takes a session and a path");
	if (text && read_mode(text, &mode, err) < 0)
		return -1;
	if (files_open(options->args[0], true, &files, err) < 0)
		return files_answer(err);
	int r = files_copy_in(
		&files, options->args[1], options_has(options, OPTION_write_parents), mode, err);
	files_close(&files);
	return r < 0 ? files_answer(err) : CLI_YES;
}
