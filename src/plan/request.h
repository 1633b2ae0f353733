/* request: what the command line asks for beside the policy. Filled by cli/, const afterwards. */
#ifndef AGENTBOX_PLAN_REQUEST_H
#define AGENTBOX_PLAN_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct request_env {
	const char *name;
	const char *value; /* NULL: the caller's own value is passed, if it has one */
};

struct request {
	const char *const *argv; /* the command, NULL-terminated; argv[0] is never NULL */
	size_t argc;
	const char *workspace;         /* absolute, without links (the caller's real directory) */
	bool workspace_given;          /* -C was used; else it is the current directory */
	const char *cwd;               /* --cwd: inside; NULL: the workspace, else home, else / */
	const struct request_env *env; /* -e */
	size_t env_count;
	const char *const *environ; /* the caller's, NULL-terminated */
	/*
	 * Where the kernel keeps this program's own arguments. init, whose command line the box can
	 * read, clears its copy; nothing of the plan points there. NULL: nowhere.
	 */
	char *words;
	size_t words_len;
	bool pass_stdin; /* -i */
	bool tty;        /* --tty */
	/*
	 * A directory of the caller's state in which the private layers are ("layer", "layer.1",
	 * ..., each with "upper" and "work"); NULL: in the box's memory. A session's also has
	 * "home" and "tmp", which the box then has as its own.
	 */
	const char *layers_dir;
	uid_t layers_uid; /* whose it is; as root the box acts as this owner there */
	gid_t layers_gid;
	bool session;
	bool copy_layers; /* overlayfs was refused before: make them by copying */
	/* --lang: the snippet, shown inside as a read-only file; its name stands in argv. */
	const char *code_path; /* inside, absolute; NULL: none */
	const char *code;
	size_t code_len;
};

#endif
