/*
 * renames: what the supervisor and the box's process that renames say to each other. That process
 * has no right that the command lacks, so what it is asked needs no check: it does what the caller
 * could have done itself, but for overlayfs's EXDEV.
 *
 *	supervisor                                  renamer
 *	   |-- struct rename_request, descriptors ---->|
 *	   |<- struct rename_reply --------------------|   one for each request, in their order
 *	   |<= end of file: it has ended, or could not be made
 *
 * One SEQPACKET pair, one datagram a message. The renamer's end comes to init with SYNC_RENAMES.
 */
#ifndef AGENTBOX_BOX_RENAMES_H
#define AGENTBOX_BOX_RENAMES_H

#include <limits.h>
#include <stdint.h>

/* Descriptors that come with a request, in this order. */
enum rename_descriptors {
	RENAME_OLD_DIR = 1, /* what a relative old path begins at */
	RENAME_NEW_DIR = 2, /* the same of the new path; without it the old one's is meant */
	RENAME_ROOT = 4,    /* the caller's root directory, where it is not the box's */
};
#define RENAME_DESCRIPTORS_MAX 3

/* One of the two paths. */
struct rename_side {
	int32_t error; /* positive: the errno that asking for this path's memory or descriptor gave
			*/
	uint32_t len;  /* of the path without its NUL; less than PATH_MAX */
};

struct rename_request {
	uint64_t id;          /* the kernel's number of the call */
	uint32_t flags;       /* of renameat2(2) */
	uint32_t descriptors; /* enum rename_descriptors */
	struct rename_side old, new;
	char text[2 * PATH_MAX]; /* both paths with their NUL; only this much of it is sent */
};

struct rename_reply {
	uint64_t id;
	int32_t result; /* 0 or -errno */
	int32_t pad;
};

#endif
