/*
 * doctor: what this host can enforce, found out by trying. A check is a row: its function runs in
 * a forked child that is thrown away, so it may spoil ids, namespaces and mounts as it likes, and a
 * crash or a hang of the kernel's answer is a finding too.
 */
#ifndef AGENTBOX_CLI_DOCTOR_H
#define AGENTBOX_CLI_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

enum doctor_level {
	DOCTOR_OK,
	DOCTOR_NOTE,    /* worth knowing; nothing that the default policy needs */
	DOCTOR_MISSING, /* the default policy cannot be enforced without it */
};

/* Flat: it crosses a pipe. Strings are cut to fit. */
struct doctor_finding {
	enum doctor_level level;
	bool follows; /* MISSING only because an earlier finding is; needs no remedy of its own */
	char detail[320];
	char remedy[640]; /* "": the row's */
};

typedef void doctor_try(struct doctor_finding *finding);

struct doctor_check {
	const char *name;
	const char *protects; /* what it is for */
	doctor_try *try;
	const char *remedy; /* shown when the finding is MISSING and has none of its own; "" none */
};

/* The rows of doctor_spaces.c and doctor_features.c; NULL past the end. */
const struct doctor_check *doctor_space(size_t index);
const struct doctor_check *doctor_feature(size_t index);

void doctor_say(struct doctor_finding *finding, enum doctor_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Run a row's function in a child, for at most some seconds. Never fails: that is a finding. */
struct doctor_finding doctor_run(const struct doctor_check *check);

/*
 * A real box under the policy `default`, in which the probe attempts what a box forbids. One row a
 * forbidden thing, or one row for the whole when there is no box. Arena memory. Returns 0, or -1
 * with *err when it could not even be tried.
 */
struct doctor_row {
	const char *name, *protects;
	struct doctor_finding finding;
};
int doctor_box(const char *const *caller_env, struct arena *arena, struct doctor_row **ret_rows,
	size_t *ret_count, struct err *err);

/*
 * The attempts of the hidden command `probe`, for both sides: it prints one line
 * "NAME\tREFUSED\tDETAIL" each, REFUSED being 1 or 0.
 */
struct doctor_probe {
	const char *name, *protects;
	/* true when it was refused; words about how in detail */
	bool (*try)(char *detail, size_t size);
};
const struct doctor_probe *doctor_probe_at(size_t index);

#endif
