/* names: the symbolic names of errno values and signals; C libraries differ in whether they have
 * them. */
#define _GNU_SOURCE
#include "base/names.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

const char *names_errno(int errnum)
{
	static const char *const table[] = {
#define ERRNO(name) [name] = #name,
#define SIGNAL(name)
#include "base/names.def"
#undef ERRNO
#undef SIGNAL
	};
	return errnum > 0 && (size_t)errnum < sizeof table / sizeof *table ? table[errnum] : NULL;
}

const char *names_signal(int signum)
{
	static const char *const table[] = {
#define ERRNO(name)
#define SIGNAL(name) [SIG##name] = "SIG" #name,
#include "base/names.def"
#undef ERRNO
#undef SIGNAL
	};
	return signum > 0 && (size_t)signum < sizeof table / sizeof *table ? table[signum] : NULL;
}
