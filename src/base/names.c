/* names: the symbolic names of errno values and signals; C libraries differ in whether they have
 * them. */
#define _GNU_SOURCE
#include "base/names.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

/* Each value once; EWOULDBLOCK, EDEADLOCK and ENOTSUP are other names of values that stand here. */
#define ERRNOS                                                                                                                   \
	X(EPERM)                                                                                                                 \
	X(ENOENT)                                                                                                                \
	X(ESRCH)                                                                                                                 \
	X(EINTR)                                                                                                                 \
	X(EIO) X(ENXIO) X(E2BIG) X(ENOEXEC) X(EBADF) X(ECHILD) X(EAGAIN) X(ENOMEM) X(EACCES) X(EFAULT) X(                        \
		ENOTBLK) X(EBUSY) X(EEXIST) X(EXDEV) X(ENODEV) X(ENOTDIR) X(EISDIR) X(EINVAL) X(ENFILE)                          \
		X(EMFILE) X(ENOTTY) X(ETXTBSY) X(EFBIG) X(ENOSPC) X(ESPIPE) X(EROFS) X(EMLINK) X(EPIPE) X(                       \
			EDOM) X(ERANGE) X(EDEADLK) X(ENAMETOOLONG) X(ENOLCK) X(ENOSYS) X(ENOTEMPTY) X(ELOOP)                     \
			X(ENOMSG) X(EIDRM) X(ECHRNG) X(EL2NSYNC) X(EL3HLT) X(EL3RST) X(ELNRNG) X(EUNATCH) X(ENOCSI) X(EL2HLT) X( \
				EBADE) X(EBADR) X(EXFULL) X(ENOANO) X(EBADRQC) X(EBADSLT) X(EBFONT) X(ENOSTR) X(ENODATA)         \
				X(ETIME) X(ENOSR) X(ENONET) X(ENOPKG) X(EREMOTE) X(ENOLINK) X(EADV) X(ESRMNT) X(ECOMM) X(        \
					EPROTO) X(EMULTIHOP) X(EDOTDOT) X(EBADMSG) X(EOVERFLOW) X(ENOTUNIQ) X(EBADFD)            \
					X(EREMCHG) X(ELIBACC) X(ELIBBAD) X(ELIBSCN) X(ELIBMAX) X(ELIBEXEC) X(                    \
						EILSEQ) X(ERESTART) X(ESTRPIPE) X(EUSERS) X(ENOTSOCK) X(EDESTADDRREQ)            \
						X(EMSGSIZE) X(EPROTOTYPE) X(ENOPROTOOPT) X(EPROTONOSUPPORT) X(                   \
							ESOCKTNOSUPPORT) X(EOPNOTSUPP) X(EPFNOSUPPORT) X(EAFNOSUPPORT)           \
							X(EADDRINUSE) X(EADDRNOTAVAIL) X(ENETDOWN) X(ENETUNREACH) X(             \
								ENETRESET) X(ECONNABORTED) X(ECONNRESET) X(ENOBUFS)              \
								X(EISCONN) X(ENOTCONN) X(ESHUTDOWN) X(ETOOMANYREFS) X(           \
									ETIMEDOUT) X(ECONNREFUSED) X(EHOSTDOWN) X(EHOSTUNREACH)  \
									X(EALREADY) X(EINPROGRESS) X(ESTALE) X(                  \
										EUCLEAN) X(ENOTNAM) X(ENAVAIL)                   \
										X(EISNAM) X(EREMOTEIO) X(EDQUOT) X(              \
											ENOMEDIUM) X(EMEDIUMTYPE) X(ECANCELED)   \
											X(ENOKEY) X(EKEYEXPIRED) X(              \
												EKEYREVOKED) X(EKEYREJECTED)     \
												X(EOWNERDEAD) X(                 \
													ENOTRECOVERABLE)         \
													X(ERFKILL)

#define SIGNALS                                                                                    \
	X(HUP)                                                                                     \
	X(INT)                                                                                     \
	X(QUIT)                                                                                    \
	X(ILL)                                                                                     \
	X(TRAP) X(ABRT) X(BUS) X(FPE) X(KILL) X(USR1) X(SEGV) X(USR2) X(PIPE) X(ALRM) X(TERM)      \
		X(CHLD) X(CONT) X(STOP) X(TSTP) X(TTIN) X(TTOU) X(URG) X(XCPU) X(XFSZ) X(VTALRM)   \
			X(PROF) X(WINCH) X(IO) X(PWR) X(SYS)

const char *names_errno(int errnum)
{
	static const char *const table[] = {
#define X(name) [name] = #name,
		ERRNOS
#undef X
	};
	return errnum > 0 && (size_t)errnum < sizeof table / sizeof *table ? table[errnum] : NULL;
}

const char *names_signal(int signum)
{
	static const char *const table[] = {
#define X(name) [SIG##name] = "SIG" #name,
		SIGNALS
#undef X
	};
	return signum > 0 && (size_t)signum < sizeof table / sizeof *table ? table[signum] : NULL;
}
