/* err: the one error value; owns the table of codes. Never prints. */
#define _GNU_SOURCE
#include "base/err.h"
#include "base/names.h"

#include <stdio.h>
#include <string.h>

static const struct err_info table[] = {
	[ERR_none] = { "none", 0, "", "" },
#define ERROR(code, status, meaning, remedy) [ERR_##code] = { #code, status, meaning, remedy },
#include "base/errors.def"
#undef ERROR
};

const struct err_info *err_info(int code)
{
	if (code < 0 || code >= ERR_COUNT_)
		code = ERR_internal;
	return &table[code];
}

const char *err_hint(const struct err *err)
{
	if (err->hint[0])
		return err->hint;
	const char *remedy = err_info(err->code)->remedy;
	return remedy[0] ? remedy : NULL;
}

int err_set(struct err *err, enum err_code code, int errnum, const char *fmt, ...)
{
	if (!err)
		return -1;
	memset(err, 0, sizeof *err);
	err->code = code;
	err->errnum = errnum;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof err->text, fmt, ap);
	va_end(ap);
	return -1;
}

int err_at(struct err *err, const char *file, int line, int column)
{
	if (!err)
		return -1;
	if (file) {
		size_t len = strlen(file);
		const char *tail =
			len < sizeof err->file ? file : file + len - sizeof err->file + 1;
		memccpy(err->file, tail, 0, sizeof err->file);
	}
	err->line = line;
	err->column = column;
	return -1;
}

int err_hint_set(struct err *err, const char *fmt, ...)
{
	if (!err)
		return -1;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(err->hint, sizeof err->hint, fmt, ap);
	va_end(ap);
	return -1;
}

const char *err_errno_name(int errnum)
{
	return names_errno(errnum);
}
