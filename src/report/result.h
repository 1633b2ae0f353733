/*
 * result: what happened, as a value; result_write() makes the one line of JSON from it.
 * The field table in fields.def is the one list of its fields: the writer, `dump result`, the
 * manual page and the schema are held against it.
 */
#ifndef AGENTBOX_REPORT_RESULT_H
#define AGENTBOX_REPORT_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct plan;
struct changes;

enum status {
	STATUS_ERROR, /* the command never ran */
	STATUS_EXITED,
	STATUS_SIGNALED,
	STATUS_TIMEOUT,
	STATUS_LIMIT,
	STATUS_DENIED,
	STATUS_CANCELLED,
};
const char *status_name(enum status status);

enum limit_bit {
	LIMIT_WALL = 1,
	LIMIT_CPU = 2,
	LIMIT_MEMORY = 4,
	LIMIT_PIDS = 8,
	LIMIT_DISK = 16,
	LIMIT_OUTPUT = 32,
	LIMIT_OPEN_FILES = 64,
	LIMIT_FILE_SIZE = 128
};

/*
 * A captured stream: the first `head_max` bytes and the last `tail_max` ones (a ring), the rest
 * only counted. Memory grows with what is really captured.
 */
struct stream {
	uint8_t *head, *tail;
	size_t head_len, head_size, head_max;
	size_t tail_len, tail_at, tail_size, tail_max; /* tail_at: where the oldest byte is */
	uint64_t total;
};

/* Keep at most max bytes in all: half of them head, half tail. */
void stream_init(struct stream *stream, size_t max);
/* 0 or -ENOMEM (then the bytes are counted and lost). */
int stream_add(struct stream *stream, const void *data, size_t len);
bool stream_truncated(const struct stream *stream);
void stream_free(struct stream *stream);
/*
 * The text as the result shows it. *ret_base64 false: valid UTF-8 in out, cut between characters,
 * with a line "[agentbox: N bytes left out]" in the gap; true: base64 of the same bytes (gap line
 * included), for output that is not UTF-8.
 */
int stream_render(const struct stream *stream, struct buf *out, bool *ret_base64);

#define UNKNOWN UINT64_MAX /* a number that is null in the result */

struct usage {
	uint64_t cpu_user_us, cpu_system_us;
	uint64_t memory_peak_bytes, pids_peak, read_bytes, write_bytes, disk_bytes; /* or UNKNOWN */
};

struct violation {
	const char *layer; /* syscall, network, dns, file, tool, mount */
	const char *operation;
	const char *target; /* NULL: null */
	const char *rule;   /* key of the policy, e.g. "syscalls" */
	const char *reason; /* e.g. "not_listed" */
	uint64_t count;
	bool certain;
	const char *hint; /* NULL: null */
};
#define VIOLATIONS_MAX    256
#define VIOLATION_TARGETS 16 /* entries of one operation that tell their target */
#define VIOLATION_OTHERS  "others"

/* What went between the box and one host that its policy allows. */
struct carried {
	const char *host; /* the name or address that was connected to */
	uint16_t port;
	uint64_t connections, sent, received; /* bytes, as the box sees it */
};
#define CARRIED_MAX 256

/* A port of the box that the host's clients reached at 127.0.0.1, host_port. */
struct served {
	uint16_t port, host_port;
	uint64_t connections, unanswered, sent, received; /* bytes, as the box sees it */
};
#define SERVED_MAX 16

struct warning {
	const char *code, *message;
};
#define WARNINGS_MAX 64

struct result {
	char id[27]; /* ULID: 26 characters */
	enum status status;
	int exit_code; /* -1: null */
	int signal;    /* 0: null */
	struct stream out, err_out;
	bool live; /* the streams went to the caller (--result): then stdout and stderr are null */
	uint64_t duration_us; /* of the whole of agentbox, from its start to the result */
	struct usage usage;
	unsigned limits_hit; /* enum limit_bit */
	uint64_t leftover_killed;
	struct violation *violations; /* arena array; see result_violation */
	size_t violation_count;
	uint64_t violations_dropped; /* past VIOLATIONS_MAX; told as a warning */
	struct carried *carried;     /* arena array; see result_carried */
	size_t carried_count;
	struct served served[SERVED_MAX]; /* see result_served */
	size_t served_count;
	struct warning *warnings;
	size_t warning_count;
	const struct changes *changes; /* NULL: nothing was written through a layer */
	struct {
		uint64_t policy_us, setup_us, run_us, teardown_us; /* or UNKNOWN */
	} timing;
	struct err error;        /* code ERR_none: null */
	const struct plan *plan; /* NULL when there was none: then what comes from it is empty */
	const struct policy *policy; /* NULL when it could not be loaded */
	struct arena arena;
};

/* Empty, with a new id; everything unknown; status error. */
void result_init(struct result *result);
void result_free(struct result *result);

/*
 * Add a violation, merged with an equal one; bounded, and so that a box cannot fill the list with
 * one operation to hide the next: past VIOLATION_TARGETS entries of a layer's operation, or past
 * its first one once a quarter of VIOLATIONS_MAX is in use, it goes to one entry of that operation
 * with the target VIOLATION_OTHERS; then every call that a shipped profile refuses finds a place.
 * What stands after a "/" in an operation's name (the number of a call that has no name) counts as
 * part of the target. The strings are copied, those past
 * RESULT_TEXT_MAX bytes cut, so that the caller can make them in scratch memory of its own.
 */
#define RESULT_TEXT_MAX ((size_t)4096)
void result_violation(struct result *result, const struct violation *violation);
/*
 * Add to the sums of a host and port; past CARRIED_MAX of them, to a last row for
 * VIOLATION_OTHERS. The host is copied, as the strings of a violation are.
 */
void result_carried(struct result *result, const struct carried *carried);
/*
 * A port that is published, with sums of 0; past SERVED_MAX of them nothing. And add to the sums of
 * the one that has this `port`; without one, nothing.
 */
void result_published(struct result *result, uint16_t port, uint16_t host_port);
void result_served(struct result *result, const struct served *more);
/* Likewise; an equal one is not added again. */
void result_warning(struct result *result, const char *code, const char *message);

/*
 * All warnings in order: the plan's, the run's, and one that tells of violations that are not
 * listed. *at starts at 0; false past the last one. text: room for a message that is made here.
 */
#define WARNING_TEXT_SIZE 128
bool result_next_warning(const struct result *result, size_t *at, char text[WARNING_TEXT_SIZE],
	struct warning *ret_warning);

/*
 * The error to show, or NULL when there is none. A run that never said why it did not happen is an
 * internal error, put together in *missing.
 */
const struct err *result_error(const struct result *result, struct err *missing);

/* "SIGKILL", "SIGRTMIN+3", "SIG32"; text has room for any of them. Returns text. */
#define SIGNAL_NAME_SIZE 24
const char *result_signal_name(int signal, char text[SIGNAL_NAME_SIZE]);

/* Name of the n-th limit in the order of the result, its bit in *ret_bit; NULL past the last. */
const char *result_limit_name(size_t n, unsigned *ret_bit);

/* The exit status of `run`: the command's own, 128+N, 124, 137, or what errors.def says. */
int result_exit_status(const struct result *result);

/*
 * One line of JSON with a newline; `pretty`: many lines. 0 or -errno. An out->max of 0 is raised to
 * what this result can need.
 */
int result_write(const struct result *result, bool pretty, struct buf *out);

/* For people (-v, or a terminal on stderr): a few lines, control characters made visible. */
int result_words(const struct result *result, struct buf *out);

#endif
