/* dump: the tables of report/ and of base/err as lines. */
#include "report/dump.h"
#include "base/buf.h"
#include "base/err.h"

static const struct field {
	const char *path, *type, *values, *help;
	int nullable;
} fields[] = {
#define FIELD(path, type, nullable, values, help) { path, type, values, help, nullable },
#include "report/fields.def"
#undef FIELD
};

int result_dump_fields(struct buf *out)
{
	int r = 0;
	for (size_t i = 0; i < sizeof fields / sizeof *fields && r == 0; i++)
		r = buf_addf(out, "%s\t%s\t%s\t%s\t%s\n", fields[i].path, fields[i].type,
			fields[i].nullable ? "yes" : "no", fields[i].help, fields[i].values);
	return r;
}

int result_dump_errors(struct buf *out)
{
	int r = 0;
	for (int code = ERR_none + 1; code < ERR_COUNT_ && r == 0; code++)
		r = buf_addf(out, "%s\t%d\t%s\n", err_info(code)->name, err_info(code)->status,
			err_info(code)->meaning);
	return r;
}
