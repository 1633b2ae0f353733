/*
 * agentbox-scope: asks systemd for a control group of its own for a process that runs already: a
 * scope, in which the process is alone and may make groups. A program of its own, so that the main
 * one carries no bus library; it touches no control group itself.
 *
 *	agentbox-scope user|system PID NAME     puts PID into NAME.scope
 *
 * Exit status: 0 PID is in the scope, 1 it is not (one line on stderr says why), 2 usage.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#define MANAGER         "org.freedesktop.systemd1"
#define MANAGER_PATH    "/org/freedesktop/systemd1"
#define MANAGER_METHODS MANAGER ".Manager"
#define ANSWER_SECONDS  5

struct scope {
	sd_bus *bus;
	pid_t pid;
	char unit[256];
	char job[256];    /* the job that starts the unit: its path on the bus */
	char outcome[32]; /* of that job; "": it has not ended yet */
};

static int failed(const char *what, const char *why)
{
	fprintf(stderr, "agentbox-scope: %s: %s\n", what, why);
	return 1;
}

/* Whatever the library waits for at that moment. */
static void give_up(int signal)
{
	static const char text[] = "agentbox-scope: systemd did not answer in time\n";
	(void)signal;
	(void)!write(STDERR_FILENO, text, sizeof text - 1);
	_exit(1);
}

/* The manager's own socket serves where no message bus runs; on it nobody else can be spoken to. */
static int open_private(bool system, sd_bus **ret_bus)
{
	const char *place = system ? "/run" : getenv("XDG_RUNTIME_DIR");
	char address[256];
	sd_bus *bus = NULL;
	if (!place || snprintf(address, sizeof address, "unix:path=%s/systemd/private", place) >=
			      (int)sizeof address)
		return -ENOENT;
	int r = sd_bus_new(&bus);
	if (r >= 0)
		r = sd_bus_set_address(bus, address);
	if (r >= 0)
		r = sd_bus_start(bus);
	if (r >= 0)
		*ret_bus = bus;
	else
		sd_bus_unref(bus);
	return r;
}

static int open_manager(bool system, sd_bus **ret_bus)
{
	int r = system ? sd_bus_open_system(ret_bus) : sd_bus_open_user(ret_bus);
	return r < 0 ? open_private(system, ret_bus) : r;
}

/*
 * Processes are named to the manager by number, so it must count as we do: from a process id
 * namespace of our own the number would mean another process. The kernel shows the number of a
 * process that has none here as 0.
 */
static bool counts_as_we_do(sd_bus *bus)
{
	struct ucred peer = { 0 };
	socklen_t len = sizeof peer;
	return getsockopt(sd_bus_get_fd(bus), SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       peer.pid != 0;
}

static int on_job_removed(sd_bus_message *message, void *data, sd_bus_error *error)
{
	struct scope *scope = data;
	const char *job, *unit, *outcome;
	uint32_t id;
	(void)error;
	int r = sd_bus_message_read(message, "uoss", &id, &job, &unit, &outcome);
	if (r >= 0 && strcmp(job, scope->job) == 0)
		snprintf(scope->outcome, sizeof scope->outcome, "%s", outcome);
	return r < 0 ? r : 0;
}

/* Delegated: what is below it is ours to arrange. Collected: nothing of it stays when we end. */
static int describe(const struct scope *scope, sd_bus_message *message)
{
	int r = sd_bus_message_append(message, "ss", scope->unit, "fail");
	if (r >= 0)
		r = sd_bus_message_append(message, "a(sv)", 4, "Description", "s",
			"agentbox with its box", "PIDs", "au", 1, (uint32_t)scope->pid, "Delegate",
			"b", 1, "CollectMode", "s", "inactive-or-failed");
	/* No further units. */
	if (r >= 0)
		r = sd_bus_message_append(message, "a(sa(sv))", 0);
	return r;
}

/* Ask for the unit; scope->job is the job that starts it. */
static int start_unit(struct scope *scope)
{
	sd_bus_message *message = NULL, *reply = NULL;
	sd_bus_error error = SD_BUS_ERROR_NULL;
	const char *job = NULL;
	int status = 0;
	int r = sd_bus_message_new_method_call(
		scope->bus, &message, MANAGER, MANAGER_PATH, MANAGER_METHODS, "StartTransientUnit");
	if (r >= 0)
		r = describe(scope, message);
	if (r >= 0)
		r = sd_bus_call(scope->bus, message, 0, &error, &reply);
	if (r >= 0)
		r = sd_bus_message_read(reply, "o", &job);
	if (r < 0)
		status = failed("no scope was made", error.message ? error.message : strerror(-r));
	else
		snprintf(scope->job, sizeof scope->job, "%s", job);
	sd_bus_error_free(&error);
	sd_bus_message_unref(message);
	sd_bus_message_unref(reply);
	return status;
}

static int wait_for_job(struct scope *scope)
{
	while (!scope->outcome[0]) {
		int r = sd_bus_process(scope->bus, NULL);
		if (r == 0)
			r = sd_bus_wait(scope->bus, UINT64_MAX);
		if (r < 0 && r != -EINTR)
			return failed("the connection to systemd broke", strerror(-r));
	}
	return strcmp(scope->outcome, "done") == 0 ? 0
						   : failed("the scope's start", scope->outcome);
}

/* The kernel's word: is the process in the scope, or in a group below it? */
static int check_group(const struct scope *scope)
{
	char path[64], line[4096], want[sizeof scope->unit + 1];
	bool found = false;
	snprintf(path, sizeof path, "/proc/%d/cgroup", (int)scope->pid);
	size_t len = (size_t)snprintf(want, sizeof want, "/%s", scope->unit);
	FILE *in = fopen(path, "re");
	if (!in)
		return failed(path, strerror(errno));
	while (!found && fgets(line, sizeof line, in)) {
		line[strcspn(line, "\n")] = 0;
		const char *at = strstr(line, want);
		found = at && (at[len] == 0 || at[len] == '/');
	}
	fclose(in);
	return found ? 0 : failed(scope->unit, "systemd started it without the process");
}

static int enter(struct scope *scope, bool system)
{
	/* Asked for before there is a job, whose end is told only once. */
	int r = open_manager(system, &scope->bus);
	if (r < 0)
		return failed(
			system ? "no connection to systemd" : "no connection to the user's systemd",
			strerror(-r));
	if (!counts_as_we_do(scope->bus))
		return failed("no scope was asked for",
			"systemd runs outside of this process id namespace");
	r = sd_bus_match_signal_async(scope->bus, NULL, NULL, MANAGER_PATH, MANAGER_METHODS,
		"JobRemoved", on_job_removed, NULL, scope);
	if (r < 0)
		return failed("no signal of systemd's can be received", strerror(-r));
	int status = start_unit(scope);
	if (status == 0)
		status = wait_for_job(scope);
	return status == 0 ? check_group(scope) : status;
}

static int usage(void)
{
	fputs("usage: agentbox-scope user|system PID NAME\n", stderr);
	return 2;
}

/* No name that systemd would read as another unit's, and none that is cut. */
static bool parse(int argc, char **argv, struct scope *scope, bool *ret_system)
{
	if (argc != 4)
		return false;
	*ret_system = strcmp(argv[1], "system") == 0;
	char *end;
	errno = 0;
	long pid = strtol(argv[2], &end, 10);
	if ((!*ret_system && strcmp(argv[1], "user") != 0) || errno || *end || pid <= 0 ||
		pid > INT32_MAX)
		return false;
	scope->pid = (pid_t)pid;
	return argv[3][0] && !strchr(argv[3], '/') &&
	       snprintf(scope->unit, sizeof scope->unit, "%s.scope", argv[3]) <
		       (int)sizeof scope->unit;
}

int main(int argc, char **argv)
{
	struct scope scope = { 0 };
	bool system;
	if (!parse(argc, argv, &scope, &system))
		return usage();
	close_range(STDERR_FILENO + 1, ~0u, 0);
	signal(SIGALRM, give_up);
	alarm(ANSWER_SECONDS);
	int status = enter(&scope, system);
	sd_bus_flush_close_unref(scope.bus);
	return status;
}
