/* failure: what a raw error from inside the box means for people. Runs in the supervisor. */
#define _GNU_SOURCE
#include "box/box.h"
#include "box/stages.h"

#include <errno.h>
#include <string.h>

/* The operation that the raw error names by number, or NULL. */
static const struct plan_op *failed_op(const struct plan *plan, const struct err *err)
{
	if (err->stage != STAGE_mounts && err->stage != STAGE_sources)
		return NULL;
	if (err->line < 1 || (size_t)err->line > plan->op_count)
		return NULL;
	return &plan->ops[err->line - 1];
}

static void op_words(
	const struct plan_op *op, enum err_code code, int errnum, int stage, struct err *err)
{
	const char *why = op->why ? op->why : "the box's own";
	switch (code) {
	case ERR_proc_masked:
		err_set(err, code, errnum, "a new /proc cannot be mounted: %s", strerror(errnum));
		break;
	case ERR_grant_is_symlink:
		err_set(err, code, errnum, "'%s' is a symbolic link or passes through one (%s)",
			op->source, why);
		break;
	case ERR_grant_not_found:
		err_set(err, code, errnum, "'%s' does not exist (%s)", op->source, why);
		break;
	case ERR_idmap_unsupported:
		err_set(err, code, errnum, "the file system of '%s' cannot be id-mapped (%s)",
			op->source, why);
		break;
	case ERR_overlay_unsupported:
		err_set(err, code, errnum, "no private layer can be laid over '%s' (%s): %s",
			op->source, why, strerror(errnum));
		if (stage == STAGE_sources && errnum == EACCES)
			err_hint_set(err, "it has to be copied, and has files that its owner may "
					  "not read: give them to the owner");
		else if (stage == STAGE_sources)
			err_hint_set(err, "its file system cannot be shown under another id, which "
					  "root's boxes need: run agentbox as an ordinary user");
		break;
	case ERR_sources_changed:
		err_set(err, code, errnum, "'%s' changed while the box was made (%s)",
			op->source ? op->source : op->target, why);
		break;
	default:
		err_set(err, code, errnum, "'/%s' cannot be put in place (%s): %s", op->target, why,
			strerror(errnum));
	}
}

/* `what` is a key and a place: see cgroup_fail(). */
static void cgroup_words(const char *what, enum err_code code, int errnum, struct err *err)
{
	switch (code) {
	case ERR_limit_refused:
		err_set(err, code, errnum, "the kernel does not take the value of %.400s: %s", what,
			strerror(errnum));
		err_hint_set(err, "ask for another value; a control group above may allow less");
		break;
	case ERR_cgroup_unavailable:
		err_set(err, code, errnum, "the control group for %.400s cannot be used: %s", what,
			strerror(errnum));
		err_hint_set(err, "run `agentbox doctor`");
		break;
	default:
		err_set(err, code, errnum, "%.400s: %s", what, strerror(errnum));
	}
}

static void exec_words(const char *file, enum err_code code, int errnum, struct err *err)
{
	switch (code) {
	case ERR_command_not_found:
		err_set(err, code, errnum, "'%.200s': command not found inside the box", file);
		break;
	case ERR_interpreter_missing:
		err_set(err, code, errnum,
			"'%.200s': its interpreter or loader does not exist inside the box", file);
		break;
	case ERR_not_executable:
		err_set(err, code, errnum, "'%.200s': not executable: %s", file, strerror(errnum));
		break;
	case ERR_bad_cwd:
		err_set(err, code, errnum, "cannot start in '%.200s': %s", file, strerror(errnum));
		break;
	case ERR_network_failed:
		/* unix(7): descriptors on their way count against the limit of open ones, and musl
		 * has no words for when they are too many. */
		err_set(err, code, errnum, "the box's network could not be made (%.200s): %s", file,
			strerror(errnum == ETOOMANYREFS ? EMFILE : errnum));
		if (errnum == ETOOMANYREFS)
			err_hint_set(err, "raise the limit of open files (ulimit -n), or list "
					  "fewer ports in network.allow");
		break;
	case ERR_userns_denied:
		err_set(err, code, errnum,
			"a user namespace with rights in it was refused (%s): %s", file,
			strerror(errnum));
		break;
	default:
		err_set(err, code, errnum, "%.200s: %s", file, strerror(errnum));
	}
}

void box_explain_failure(const struct plan *plan, struct err *err)
{
	struct err raw = *err;
	const struct plan_op *op = failed_op(plan, &raw);
	enum err_code code = raw.code;
	/* New namespaces whose rights were taken away fail at their first use, whatever that is. */
	if (op && code == ERR_mount_failed && raw.errnum == EPERM)
		code = ERR_userns_denied;
	if (op && code != ERR_userns_denied)
		op_words(op, code, raw.errnum, raw.stage, err);
	else if (raw.stage == STAGE_cgroup && code != ERR_userns_denied)
		cgroup_words(raw.text, code, raw.errnum, err);
	else
		exec_words(op ? op->target[0] ? op->target : "/" : raw.text, code, raw.errnum, err);
	err->stage = raw.stage;
	if (raw.hint[0])
		memcpy(err->hint, raw.hint, sizeof err->hint);
}
