/*
 * err: the one error value.
 *
 * A flat struct without pointers, so that it can cross a socket, be kept and be printed. Functions
 * that can fail in a way a person must understand take `struct err *err` as their last argument,
 * return 0 or -1, and fill it only when they return -1. Nothing here prints.
 */
#ifndef AGENTBOX_BASE_ERR_H
#define AGENTBOX_BASE_ERR_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

enum err_code {
	ERR_none,
#define ERROR(code, status, meaning, remedy) ERR_##code,
#include "base/errors.def"
#undef ERROR
	ERR_COUNT_
};

struct err {
	int32_t code;   /* enum err_code */
	int32_t stage;  /* enum stage of box/stages.h, 0: not in the making of a box */
	int32_t errnum; /* errno value, 0: none */
	int32_t line;   /* from 1, 0: no place */
	int32_t column; /* from 1, 0: no column */
	char file[256]; /* the file that the place is in; longer names keep their tail */
	char text[512]; /* one sentence for people, without a full stop at the end */
	char hint[512]; /* what to do about it; "": the table's remedy is used by err_hint() */
};

/* What the table says of a code. */
struct err_info {
	const char *name; /* "policy_invalid" */
	int status;       /* exit status of `run` */
	const char *meaning;
	const char *remedy;
};

/* Never NULL: an unknown code is described as `internal`. */
const struct err_info *err_info(int code);

/* The hint to show: the error's own, else the table's, else NULL. */
const char *err_hint(const struct err *err);

/*
 * Fill *err from scratch and return -1. The text is cut to fit. `errnum` 0: none.
 * err may be NULL (then only -1 is returned).
 */
int err_set(struct err *err, enum err_code code, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Add a place to an error that was just set; returns -1. file may be NULL. */
int err_at(struct err *err, const char *file, int line, int column);

/* Add a hint to an error that was just set; returns -1. */
int err_hint_set(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The symbolic name of an errno value ("EPERM"), or NULL for 0 and unknown ones. */
const char *err_errno_name(int errnum);

#endif
