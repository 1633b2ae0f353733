/* cmd_put: `agentbox put`: a file, or all of a tar archive, into a session. */
#include <errno.h>
#include <string.h>

#include "cli/files.h"

/* Unpacked aside first, by a confined program, then looked at again, as a whole. */
static int put_archive(struct files *files, const char *path, bool parents, struct err *err)
{
	struct view_found found;
	if (files_find(files, path, true, parents, &found, err) < 0)
		return -1;
	mode_t there = found.entry.st.st_mode;
	int r = 0;
	if (there && !S_ISDIR(there))
		r = err_set(err, ERR_session_path, ENOTDIR, "'%.300s' is not a directory", path);
	else if (!there && !parents) {
		r = err_set(err, ERR_session_path, ENOENT, "'%.300s' does not exist", path);
		err_hint_set(err, "--parents makes it");
	}
	if (r == 0)
		r = archive_unpack(files, view_tree_of(&files->view, found.path), err);
	if (r == 0)
		r = view_put_all(&files->view, files->view.stage, found.path, err);
	view_found_close(&found);
	return r;
}

int cmd_put(const struct cli *cli, struct err *err)
{
	const struct options *options = &cli->options;
	bool parents = options_has(options, OPTION_put_parents);
	struct files files;
	if (options->arg_count != 2)
		return err_set(err, ERR_usage, 0, "put takes a session and a path");
	if (files_open(options->args[0], true, &files, err) < 0)
		return files_answer(err);
	int r = options_has(options, OPTION_put_tar)
			? put_archive(&files, options->args[1], parents, err)
			: files_copy_in(&files, options->args[1], parents, -1, err);
	files_close(&files);
	return r < 0 ? files_answer(err) : CLI_YES;
}
