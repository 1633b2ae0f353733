/* names: the symbolic names of errno values and signals. */
#ifndef AGENTBOX_BASE_NAMES_H
#define AGENTBOX_BASE_NAMES_H

/* "EPERM", or NULL for 0 and unknown values. Static. */
const char *names_errno(int errnum);

/* "SIGKILL", or NULL for 0, real-time and unknown signals. Static. */
const char *names_signal(int signum);

/* The first real-time signal that programs may use, as glibc counts (it keeps 32 and 33). */
#define NAMES_SIGRTMIN 34
#define NAMES_SIGRTMAX 64

#endif
