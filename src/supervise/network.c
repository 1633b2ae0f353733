/*
 * network: the gateway's life, and its words in the result. It decides nothing: what may be reached
 * is the plan's, and the gateway asks that by itself.
 */
#define _GNU_SOURCE
#include "supervise/run.h"
#include "base/fd.h"
#include "plan/network.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define RESOLVER        AGENTBOX_LIBEXECDIR "/agentbox-resolve"
#define RESOLVER_FD     3
#define RESOLVERS_MAX   8
#define MESSAGES_A_TURN 64
#define END_MAX_NS      (3 * INT64_C(1000000000)) /* for the gateway to bring away what was sent */
#define ROOM            (GATEWAY_HOST_MAX + 16)

/* Name, address or [address], with the port unless it was a look-up. */
static const char *write_target(const struct gateway_msg *msg, char text[ROOM])
{
	bool others = strcmp(msg->host, GATEWAY_OTHERS) == 0;
	if (!msg->port || others)
		snprintf(text, ROOM, "%s", msg->host);
	else if (strchr(msg->host, ':'))
		snprintf(text, ROOM, "[%s]:%u", msg->host, msg->port);
	else
		snprintf(text, ROOM, "%s:%u", msg->host, msg->port);
	return text;
}

/*
 * What to add to the policy. Only where that key would help, and where the text is one that a
 * policy can have: it came from the box.
 */
static const char *write_hint(
	const struct gateway_msg *msg, const char *target, char text[ROOM + 32])
{
	static const char fine[] = "abcdefghijklmnopqrstuvwxyz0123456789-.:[]";
	bool grantable = msg->reason == GATEWAY_NOT_LISTED || msg->reason == GATEWAY_HOST_MISMATCH;
	if (!grantable || strcmp(msg->host, GATEWAY_OTHERS) == 0 || target[strspn(target, fine)])
		return NULL;
	snprintf(text, ROOM + 32, "network: {allow: [\"%s\"]}", target);
	return text;
}

static void refused(struct run *run, const struct gateway_msg *msg)
{
	char target[ROOM], hint[ROOM + 32];
	write_target(msg, target);
	struct violation violation = {
		.layer = msg->port ? "network" : "dns",
		.operation = !msg->port                        ? "lookup"
			     : msg->reason == GATEWAY_PROTOCOL ? "send"
							       : "connect",
		.target = target,
		.rule = "network.allow",
		.reason = gateway_reason_word(msg->reason),
		.count = msg->count,
		.certain = true,
		.hint = write_hint(msg, target, hint),
	};
	if (msg->count)
		result_violation(run->result, &violation);
}

static void carried(struct run *run, const struct gateway_msg *msg)
{
	struct carried carried = {
		.host = msg->host,
		.port = strcmp(msg->host, GATEWAY_OTHERS) == 0 ? 0 : msg->port,
		.connections = msg->count,
		.sent = msg->sent,
		.received = msg->received,
	};
	result_carried(run->result, &carried);
}

static void failed(struct run *run, const struct gateway_msg *msg)
{
	char target[ROOM], words[2 * ROOM];
	snprintf(words, sizeof words, "%s is allowed, but could not be reached: %s",
		write_target(msg, target), strerror(msg->errnum));
	result_warning(run->result, "host_unreachable", words);
}

/*
 * The resolver ends when the gateway does, for its socket does then. Its environment is empty: the
 * host's files say how names are looked up.
 */
static int start_resolver(const struct run *run, int sock, pid_t *ret_pid)
{
	char uid[16], gid[16];
	snprintf(uid, sizeof uid, "%u", (unsigned)run->plan->outer_uid);
	snprintf(gid, sizeof gid, "%u", (unsigned)run->plan->outer_gid);
	char *argv[5] = { (char *)"agentbox-resolve" }, *const none[] = { NULL };
	size_t n = 1;
	if (run->plan->as_root) {
		argv[n++] = uid;
		argv[n++] = gid;
	}
	/* The plan has none only where the policy says so. */
	if (run->plan->landlock_abi == 0)
		argv[n++] = (char *)"best-effort";
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);
	if (r)
		return -r;
	r = posix_spawn_file_actions_adddup2(&actions, sock, RESOLVER_FD);
	for (int fd = 0; fd < 3 && !r; fd++)
		r = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
	if (!r)
		r = posix_spawn(ret_pid, RESOLVER, &actions, NULL, argv, none);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

/* A child of ours, which is a child until it is waited for: the number is nobody else's. */
static void end(pid_t *pid)
{
	if (*pid > 0)
		kill(*pid, SIGKILL);
	while (*pid > 0 && waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
		;
	*pid = 0;
}

static void resolve(struct run *run)
{
	struct network *network = &run->network;
	struct gateway_msg msg = { .magic = GATEWAY_MAGIC, .kind = GATEWAY_RESOLVER };
	int ends[2] = { -1, -1 }, r = -EAGAIN;
	if (network->starts++ < RESOLVERS_MAX) {
		/* One that has died, or the gateway would not ask. */
		end(&network->resolver);
		r = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ? -errno : 0;
	}
	if (r == 0)
		r = start_resolver(run, ends[1], &network->resolver);
	if (r < 0) {
		fd_close(&ends[0]);
		char words[256];
		snprintf(words, sizeof words, "names could not be looked up: %s: %s", RESOLVER,
			strerror(-r));
		result_warning(run->result, "resolver_failed", words);
	}
	fd_close(&ends[1]);
	(void)gateway_send(network->sock, &msg, ends[0]);
	fd_close(&ends[0]);
}

static void hear(struct run *run, const struct gateway_msg *msg)
{
	switch (msg->kind) {
	case GATEWAY_READY:
		run->network.ready = true;
		return;
	case GATEWAY_RESOLVE:
		resolve(run);
		return;
	case GATEWAY_REFUSED:
		refused(run, msg);
		return;
	case GATEWAY_FAILED:
		failed(run, msg);
		return;
	case GATEWAY_FULL:
		result_warning(run->result, "names_full",
			"the command asked for more names than one run may; further ones were "
			"not looked up");
		return;
	case GATEWAY_CARRIED:
		carried(run, msg);
		return;
	case GATEWAY_WANTED:
	case GATEWAY_SERVED:
	case GATEWAY_UNANSWERED:
		published_hear(run, msg);
		return;
	}
}

/* End what is still there of the two, the gateway's end of the box's sockets with it. */
static void end_both(struct network *network)
{
	fd_close(&network->sock);
	end(&network->pid);
	/* Without the gateway it has nobody to answer. */
	end(&network->resolver);
}

/* Nothing leads out of the box any more; nothing else has changed. */
static void lose(struct run *run)
{
	end_both(&run->network);
	if (run->state == STATE_SETUP || run->state == STATE_EXECING)
		run_broken(run, ERR_network_failed, 0, "the gateway ended while the box was made");
	else if (run->started) /* else an error tells already why the command did not run */
		result_warning(run->result, "gateway_ended",
			"the process that is the box's network ended; from then on nothing could "
			"be reached");
}

/* False: it has ended, or there is nothing more now. */
static bool hear_one(struct run *run, bool *ret_ended)
{
	struct gateway_msg msg;
	int fd = -1, r = gateway_recv(run->network.sock, &msg, &fd);
	fd_close(&fd);
	if (r == 1)
		hear(run, &msg);
	*ret_ended = r != 1 && r != -EAGAIN;
	return r == 1;
}

void network_turn(struct run *run)
{
	bool ended = false;
	/* Some at a time: a gateway that was taken over shall not hold up the rest. */
	for (int i = 0; i < MESSAGES_A_TURN && hear_one(run, &ended); i++)
		;
	if (ended)
		lose(run);
}

void network_begin(struct run *run)
{
	struct network *network = &run->network;
	struct err err = { 0 };
	if (!network_served(&run->plan->reach))
		return;
	if (gateway_start(run->plan, &network->pid, &network->sock, &err) < 0)
		run_broken(run, err.code, err.errnum, err.text);
}

void network_give(struct run *run)
{
	struct gateway_msg msg = { .magic = GATEWAY_MAGIC, .kind = GATEWAY_SOCKET };
	AUTO_FD sock = fd_steal(&run->msg_fd);
	run->network.sockets++;
	int r = gateway_send(run->network.sock, &msg, sock);
	if (r == 0)
		return;
	/* unix(7): descriptors on their way count against the limit of open ones, and musl has no
	 * words for when they are too many. */
	run_broken(run, ERR_network_failed, r == -ETOOMANYREFS ? EMFILE : -r,
		"a socket for the gateway");
	if (r == -ETOOMANYREFS)
		err_hint_set(run->err, "raise the limit of open files (ulimit -n), or list fewer "
				       "ports in network.allow");
}

void network_end(struct run *run)
{
	struct network *network = &run->network;
	if (network->pid <= 0)
		return;
	bool ended = false;
	int64_t until = run_now() + END_MAX_NS;
	(void)shutdown(network->sock, SHUT_WR);
	while (!ended && run_now() < until) {
		if (hear_one(run, &ended) || ended)
			continue;
		struct pollfd ready = { .fd = network->sock, .events = POLLIN };
		(void)poll(&ready, 1, 100);
	}
	if (!ended)
		result_warning(run->result, "gateway_ended",
			"the process that is the box's network did not end in time; its last "
			"figures are missing");
	end_both(network);
}
