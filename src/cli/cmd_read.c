/* cmd_read: `agentbox read`: a file of a session on stdout, byte for byte. */
#include "cli/files.h"

int cmd_read(const struct cli *cli, struct err *err)
{
	const struct options *options = &cli->options;
	struct files files;
	struct view_found found;
	if (options->arg_count != 2)
		return err_set(err, ERR_usage, 0, "read takes a session and a path");
	if (files_open(options->args[0], false, &files, err) < 0)
		return files_answer(err);
	int r = files_find(&files, options->args[1], false, false, &found, err);
	if (r == 0) {
		r = files_copy_out(&found.entry, options->args[1], err);
		view_found_close(&found);
	}
	files_close(&files);
	return r < 0 ? files_answer(err) : CLI_YES;
}
