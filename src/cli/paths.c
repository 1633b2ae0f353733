/*
 * paths: what the caller's environment says about directories. $HOME and the XDG variables are
 * the caller's own words about the caller's own files, so they are believed if they are absolute.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

/* An absolute path from the environment, or NULL. */
static const char *absolute(const char *name)
{
	const char *value = getenv(name);
	return value && value[0] == '/' ? value : NULL;
}

void paths_policy_env(struct arena *arena, struct policy_env *ret_env)
{
	const char *home = absolute("HOME");
	const char *config = absolute("XDG_CONFIG_HOME");
	if (!config && home)
		config = arena_printf(arena, "%s/.config", home);
	*ret_env = (struct policy_env){
		.home = home,
		.config_home = config,
		.system_dir = "/etc/agentbox/policies",
		.data_dir = AGENTBOX_POLICYDIR,
	};
}

static int current_directory(struct arena *arena, const char **ret_path, struct err *err)
{
	char path[PATH_MAX];
	if (!getcwd(path, sizeof path))
		return err_set(err, ERR_workspace_not_found, errno,
			errno == ENOENT ? "the current directory has been deleted"
					: "the current directory cannot be found: %s",
			strerror(errno));
	*ret_path = arena_strdup(arena, path);
	return 0;
}

int paths_workspace(struct arena *arena, const char *given, const char **ret_path, struct err *err)
{
	/* The kernel's own answer: no links in it, and $PWD has no say. */
	if (!given)
		return current_directory(arena, ret_path, err);
	char path[PATH_MAX];
	struct stat st;
	int errnum = 0;
	if (!realpath(given, path) || stat(path, &st) < 0)
		errnum = errno;
	else if (!S_ISDIR(st.st_mode))
		errnum = ENOTDIR;
	if (errnum)
		return err_set(err, ERR_workspace_not_found, errnum, "workspace \"%.200s\": %s",
			given, strerror(errnum));
	*ret_path = arena_strdup(arena, path);
	return 0;
}
