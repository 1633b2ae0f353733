/*
 * policy: what is asked, as a value. Built once by policy_load(), passed as const ever after.
 *
 * Every part knows the line that it came from. Nothing here knows of kernels or hosts: paths are
 * made absolute and cleaned as text, never looked up.
 */
#ifndef AGENTBOX_POLICY_POLICY_H
#define AGENTBOX_POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

/* Where something was written. line 0: nowhere (a built-in default). */
struct origin {
	const char *file; /* as it is shown to people: the path, or "--memory" for an option; NULL
			     with line 0 */
	int line, column; /* from 1; line 0 with a file: the command line */
};

/* Is there any place at all? */
static inline bool origin_set(const struct origin *at)
{
	return at->file != NULL;
}

struct policy_word { /* an element of a list of words */
	const char *value;
	struct origin at;
};

struct policy_path {       /* an element of filesystem.read, .write */
	const char *path;  /* absolute, ~ expanded, no "//", "/./", "/../", no trailing "/" */
	const char *given; /* as written */
	bool dangerous;    /* {path: P, dangerous: true} */
	struct origin at;
};

struct policy_pattern { /* an element of filesystem.hide, .protect */
	/*
	 * With a leading "/" (~ and ~/ are expanded to one): an absolute path or pattern. Without:
	 * it applies inside every granted tree, from its top. "*" and "?" do not cross "/", "**" as
	 * a whole component does. A pattern without any "/" matches at any depth (as in
	 * .gitignore).
	 */
	const char *pattern;
	bool literal; /* holds no *, ? or [ */
	struct origin at;
};

enum policy_root { ROOT_HOST, ROOT_DIRECTORY };
enum policy_workspace { WORKSPACE_NONE, WORKSPACE_READ, WORKSPACE_WRITE, WORKSPACE_OVERLAY };
enum policy_backend { BACKEND_AUTO, BACKEND_OVERLAY, BACKEND_COPY };
enum policy_scratch { SCRATCH_MEMORY, SCRATCH_DISK };
enum policy_home { HOME_NONE, HOME_PRIVATE };
enum policy_network { NETWORK_NONE, NETWORK_HOST, NETWORK_ALLOW };
enum policy_profile { PROFILE_DEFAULT, PROFILE_STRICT };
enum policy_on_violation { VIOLATION_ERRNO, VIOLATION_KILL };
enum policy_output_action { OUTPUT_TRUNCATE, OUTPUT_KILL };

struct policy_host {        /* an element of network.allow */
	const char *host;   /* ASCII lower-case name, "*." kept in front; or an address without its
			       prefix */
	bool wildcard;      /* "*.": whole labels below, not the name itself */
	bool address;       /* host is an IPv4 or IPv6 address */
	int prefix;         /* address: prefix length; else -1 */
	bool host_loopback; /* host.internal */
	bool any_name;      /* {host: H, any_name: true}; never of an address or host.internal */
	uint16_t ports[16];
	size_t port_count; /* 0 never: without a port 443 and 80 are filled in */
	const char *given;
	struct origin at;
};

struct policy_publish {     /* an element of network.publish: a server inside, from the host */
	uint16_t port;      /* inside; each once */
	uint16_t host_port; /* of the host's 127.0.0.1; 0: any free one */
	const char *given;
	struct origin at;
};

/* Numbers of limits: 0 with an unset origin: no limit was asked for. */
struct policy_number {
	uint64_t value;
	struct origin at;
};

struct policy_limits {
	struct policy_number wall_us;    /* microseconds */
	struct policy_number cpu_us;     /* microseconds, of all processes together */
	struct policy_number cpus_milli; /* thousandths of a processor */
	struct policy_number memory;     /* bytes */
	struct policy_number pids;       /* processes and threads */
	struct policy_number disk;       /* bytes, of /tmp, /dev/shm, home together */
	struct policy_number output;     /* bytes kept of each stream */
	struct policy_number open_files;
	struct policy_number file_size; /* bytes of any one file */
	enum policy_output_action output_action;
	struct origin output_action_at;
};

struct policy_env_set {
	const char *name, *value;
	struct origin at;
};

struct policy_secret {
	const char *name;
	const char *env; /* one of the two is set */
	const char *file;
	struct origin at;
};

struct policy_tool_arg {
	const char *name;
	const char *pattern; /* NULL: any */
	uint64_t max;        /* bytes */
	struct origin at;
};

struct policy_tool {
	const char *name, *description;
	struct policy_word *command;
	size_t command_count;
	struct policy_tool_arg *args;
	size_t arg_count;
	uint64_t stdin_max, output_max; /* bytes */
	uint64_t calls;                 /* per run */
	uint64_t timeout_us;
	struct policy_env_set *env;
	size_t env_count;
	struct origin at;
};

struct policy_code { /* how --lang NAME runs a snippet */
	const char *lang;
	struct policy_word *command; /* one element holds "{file}" */
	size_t command_count;
	const char *suffix; /* ".py"; "" without */
	struct origin at;
};

struct policy_test { /* an element of tests */
	/* Exactly one of the five is set. */
	struct policy_word *run; /* a command ... */
	size_t run_count;
	const char *lang, *code; /* ... or a snippet (lang and code) */
	const char *path;        /* ... or a path, as in explain --path */
	const char *host;        /* ... or a host, as in explain --host */
	const char *tool;        /* ... or a tool, as in explain --tool */
	const char *syscall;     /* ... or a system call, as in explain --syscall */
	/* What is expected. For path, host, tool, syscall: `allowed` only. */
	int allowed;                                   /* 1 allowed, 0 denied, -1 not said */
	const char *access;                            /* path: "read" (default), "write" */
	int exit_code;                                 /* -1 not said */
	const char *status;                            /* NULL not said */
	const char *stdout_text, *stderr_text;         /* exact, NULL not said */
	const char *stdout_contains, *stderr_contains; /* NULL not said */
	struct origin at;
};

struct policy_tree; /* the merged document with the origin of each node; policy/tree.h */

struct policy {
	const char *name, *description;
	const char **sources; /* files read, the outermost base first */
	struct policy_text {  /* of each: its bytes */
		const char *text;
		size_t len;
	} * texts;
	size_t source_count;

	struct {
		enum policy_root root;
		const char *root_dir; /* with ROOT_DIRECTORY: absolute */
		struct origin root_at;
		struct policy_path *read, *write;
		size_t read_count, write_count;
		struct policy_pattern *hide, *protect, *sensitive;
		size_t hide_count, protect_count, sensitive_count;
		enum policy_workspace workspace;
		struct origin workspace_at;
		enum policy_backend backend;
		struct origin backend_at;
		enum policy_scratch scratch;
		struct origin scratch_at;
		enum policy_home home;
		struct origin home_at;
	} fs;

	enum policy_network network;
	struct origin network_at;
	struct policy_host *allow; /* NETWORK_ALLOW: at least one (an empty list is NETWORK_NONE) */
	size_t allow_count;
	/* Never with NETWORK_HOST. With NETWORK_NONE: nobody is reached from inside. */
	struct policy_publish *publish;
	size_t publish_count;

	struct policy_limits limits;

	struct policy_word *env_pass; /* names; "LC_*" is the only form with a star */
	size_t env_pass_count;
	struct policy_env_set *env_set;
	size_t env_set_count;

	enum policy_profile profile;
	struct origin profile_at;
	struct policy_word *sys_allow,
		*sys_deny; /* names of system calls, known to this architecture */
	size_t sys_allow_count, sys_deny_count;
	enum policy_on_violation on_violation;
	struct origin on_violation_at;
	bool nesting; /* nesting: allow */
	struct origin nesting_at;
	bool keep_processes; /* session: {processes: keep} */
	struct origin keep_processes_at;

	struct policy_secret *secrets;
	size_t secret_count;
	struct policy_tool *tools;
	size_t tool_count;
	struct policy_code *code;
	size_t code_count;

	const char *audit_log; /* NULL: none */
	struct origin audit_at;
	struct policy_word *trace;
	size_t trace_count;

	struct policy_word *best_effort;
	size_t best_effort_count;

	struct policy_test *tests;
	size_t test_count;

	const struct policy_tree *tree; /* for `show` */
	struct arena arena;             /* owns everything above */
};

/* Is `name` in best_effort? */
bool policy_best_effort(const struct policy *policy, const char *name);

/* Where names are looked up and what ~ means; plain values so that tests can make them up. */
struct policy_env {
	const char *home;        /* the caller's home, absolute; NULL: ~ is an error */
	const char *config_home; /* $XDG_CONFIG_HOME or ~/.config; NULL: not looked at */
	const char *system_dir;  /* /etc/agentbox/policies */
	const char *data_dir;    /* the installed policies */
};

/*
 * A value that an option of `run` lays over the policies: key path and text, e.g.
 * { "limits.memory", "1GiB", "--memory" }. The same parser and the same errors as for a file.
 */
struct policy_override {
	const char *key, *value, *option;
};

/*
 * Load, merge and check. `names` are the -p arguments, later ones win over earlier ones; with
 * count 0 it is "default". On success *ret_policy is filled and must be given to policy_free.
 * Errors: policy_not_found, policy_unreadable, policy_invalid, with file, line and column.
 */
int policy_load(const char *const *names, size_t count, const struct policy_override *overrides,
	size_t override_count, const struct policy_env *env, struct policy *ret_policy,
	struct err *err);

/* The same from text in memory; `file` is the name for messages. */
int policy_parse(const char *text, size_t len, const char *file, const struct policy_env *env,
	struct policy *ret_policy, struct err *err);
/* And with what the command line lays over it. */
int policy_parse_over(const char *text, size_t len, const char *file,
	const struct policy_override *overrides, size_t override_count,
	const struct policy_env *env, struct policy *ret_policy, struct err *err);

void policy_free(struct policy *policy);

/*
 * The hex digest of the sources, in order. Made when it is asked for: it costs as much as reading a
 * small policy, and is told only once the command has ended.
 */
#define POLICY_SHA256_SIZE 65
void policy_sha256(const struct policy *policy, char ret_hex[POLICY_SHA256_SIZE]);

/* `show`: the merged policy as YAML with the origin of each line as a comment, or as JSON. */
struct buf;
int policy_show_yaml(const struct policy *policy, struct buf *out);
int policy_show_json(const struct policy *policy, struct buf *out);

/* Maxima; the manual names them. */
#define POLICY_FILE_MAX    ((size_t)1 << 20) /* bytes of one file */
#define POLICY_DEPTH_MAX   16                /* nesting of the document */
#define POLICY_NODES_MAX   20000             /* nodes of one document */
#define POLICY_EXTENDS_MAX 8                 /* depth of extends */
#define POLICY_LIST_MAX    1024              /* elements of one list, after merging */
#define POLICY_SCALAR_MAX  65536             /* bytes of one scalar */
#define POLICY_PUBLISH_MAX 16                /* elements of network.publish */

#endif
