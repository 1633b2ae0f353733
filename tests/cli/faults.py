"""Makes the system calls of a box's set-up fail one by one, in every process that takes part, and holds
the outcome to one of two: a clear error and nothing run, or a box that is as it is without the fault.

    faults.py PROBES AGENTBOX RESULTS [LIMITS]

LIMITS are added to the policy's: "memory: 64MiB". Those that control groups hold must be in force, too.

In the box runs tests/probe/probe.c, whose report of what it sees and may do is compared with the one of a
run without a fault. The tracer (tests/probe/fault.c) waits for every process that it has ever seen, so one
that is left behind shows as a run that does not end.

The supervisor only asks and watches: a call of its own may fail without a word when the box is the same in
the end. Each call of the processes inside makes a part of the box: there a failure must be told, but for
those in HARMLESS, each with its reason.
"""
import collections
import concurrent.futures
import errno
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SUPERVISOR, MAPPER, INIT, BESIDE, PAYLOAD = "supervisor", "mapper", "init", "beside init", "payload"

# (process, call): why its failure changes nothing that matters.
HARMLESS = {
    (INIT, "close"): "the descriptor is gone even when the kernel reports an error",
    (PAYLOAD, "close"): "the descriptor is gone even when the kernel reports an error",
    (MAPPER, "close"): "the descriptor is gone even when the kernel reports an error",
    (MAPPER, "fcntl"): "musl's open sets close-on-exec a second time",
    (INIT, "fcntl"): "musl's open sets close-on-exec a second time",
    (PAYLOAD, "fcntl"): "musl's open sets close-on-exec a second time",
    (BESIDE, "exit"): "cannot fail; then the C library ends the process",
    (MAPPER, "exit_group"): "cannot fail; the tracer's failure lets the C library try another way",
    (INIT, "umask"): "cannot fail, by its manual page",
    (INIT, "prctl(15)"): "PR_SET_NAME: what ps shows",
    (INIT, "rt_sigaction"): "cannot fail for a signal and an action that exist; which is which is fixed",
    (INIT, "rt_sigprocmask"): "cannot fail with a mask of its own",
    (PAYLOAD, "umask"): "cannot fail, by its manual page",
    (SUPERVISOR, "umask"): "cannot fail, by its manual page",
    (SUPERVISOR, "capget"): "cannot fail for the calling process",
    (PAYLOAD, "faccessat2"): "asked after a failed exec, only to choose the words",
}

# (process, call): without this the program cannot even say so; it must end by a signal, and nothing runs.
SPEECHLESS = {
    (SUPERVISOR, "mmap"): "its first memory",
}

# The C library's own start, before main: the process may end without a word.
BEFORE_MAIN = {"execve", "brk", "arch_prctl", "set_tid_address", "set_robust_list", "rseq", "prlimit64", "readlink",
               "readlinkat", "getrandom", "mprotect", "uname", "newfstatat", "fstat", "mmap", "munmap", "openat",
               "read", "pread64", "close", "access", "futex"}

# Of the calls that one process makes many times alike, this many are tried with EPERM, and with ENOMEM.
ALIKE = {errno.EPERM: 10, errno.ENOMEM: 2}

EXIT_STATUS = {"command_not_found": 127, "not_executable": 126, "interpreter_missing": 126, "exec_failed": 126}

PIDS = 50
POLICY = """version: 1
name: faults
filesystem:
  workspace: write
  home: none
  read: [granted]
  hide: [hidden.txt, "*.secret"]
  protect: [protected.txt]
limits: {open_files: 100, wall: 20s, pids: %d%s}
"""

Call = collections.namedtuple("Call", "process role name nth label early")


def prepare(place, probes, limits):
    """A workspace and a policy that use every kind of operation; returns the workspace."""
    work = os.path.join(place, "work")
    os.makedirs(os.path.join(place, "granted"))
    os.makedirs(os.path.join(work, "deep"))
    for name in ("work/hidden.txt", "work/deep/x.secret", "work/protected.txt", "work/open.txt", "granted/file"):
        with open(os.path.join(place, name), "w", encoding="utf-8") as file:
            file.write(name)
    with open(os.path.join(place, "policy.yaml"), "w", encoding="utf-8") as file:
        file.write(POLICY % (PIDS, limits and ", " + limits))
    shutil.copy(os.path.join(probes, "probe-probe"), os.path.join(work, "probe"))
    return work


def asked_paths(work):
    granted = os.path.join(os.path.dirname(work), "granted")
    return [work, granted, granted + "/file", "/usr", "/etc", "/tmp", "/dev/shm", "/proc/sys/kernel",
            "hidden.txt", "deep/x.secret", "protected.txt", "open.txt"]


def normal(answer):
    """The probe's report without what differs from run to run; None when there is none."""
    try:
        report = json.loads(answer["stdout"])
    except (TypeError, ValueError):
        return None
    report["ns"] = sorted(report["ns"])
    report["mounts"] = ["%s %s %s" % (mount["path"], mount["type"], re.sub(r",[ug]id=\d+", "", mount["options"]))
                        for mount in report["mounts"]]
    report["status"].pop("NSpid", None)
    report["env"] = sorted(report["env"])
    return report


def excess(report, usual):
    """What a box has more, or otherwise, than it should: less to see is no harm."""
    found = []
    for key, value in report.items():
        if isinstance(value, list):
            more = sorted(set(value) - set(usual[key]))
            if more:
                found.append("%s: also %s" % (key, more))
        elif key == "rlimits":
            # Without a group the resource limit holds alone.
            looser = sorted(name for name, max in value.items()
                            if max != usual[key][name] and (max is None or max > (usual[key][name] or 0)))
            if looser:
                found.append("rlimits: looser: %s" % looser)
        elif key == "groups":
            # A group for the number of processes alone may be missing: the resource limit is the same, then.
            looser = sorted(name for name, value in usual[key].items() if report[key].get(name) != value
                            and not (name.endswith("pids.max") and report["rlimits"]["nproc"] <= PIDS + 1))
            if looser:
                found.append("groups: not in force: %s" % looser)
        elif value != usual[key]:
            found.append("%s: %s, not %s" % (key, value, usual[key]))
    return "; ".join(found)[:400]


def list_calls(fault, line, work):
    """The calls up to the exec of the command, and the normal report."""
    read_end, write_end = os.pipe()
    child = subprocess.Popen([fault, "list"] + line, cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             env=dict(os.environ, FAULT_FD=str(write_end)), pass_fds=[write_end])
    os.close(write_end)
    with os.fdopen(read_end) as file:
        rows = [row.split() for row in file]
    answer = json.loads(child.communicate(timeout=30)[0])
    if normal(answer) is None:
        sys.exit("a run without a fault failed: %s" % answer)
    execs = [i for i, row in enumerate(rows) if row[1] == "execve" and row[0] != "0"]
    if not execs:
        sys.exit("the command's exec was not seen")
    # Named by the way down from the first process: see fault.c.
    payload = int(rows[execs[-1]][0])
    roles = {0: SUPERVISOR, 1: INIT, 2: MAPPER, 11: BESIDE, payload: PAYLOAD}
    calls, seen, started = [], collections.Counter(), False
    for process, name, argument in rows[:execs[-1] + 1]:
        label = "%s(%d)" % (name, int(argument, 16)) if name == "prctl" else name
        started = started or process != "0" or name not in BEFORE_MAIN
        calls.append(Call(int(process), roles[int(process)], name, seen[process, name], label, not started))
        seen[process, name] += 1
    return calls, normal(answer)


def choose(calls, most):
    """At most so many of the calls that are alike, spread over all of them."""
    alike = collections.defaultdict(list)
    for call in calls:
        alike[call.role, call.label].append(call)
    chosen = []
    for group in alike.values():
        step = max(1, -(-len(group) // most))
        chosen += group[::step]
    return [call for call in chosen if (call.process, call.name) != (0, "execve")]


class Faults:
    def __init__(self, probes, agentbox, place, limits):
        self.fault = os.path.join(probes, "probe-fault")
        self.work = prepare(place, probes, limits)
        self.line = [agentbox, "run", "-p", os.path.join(place, "policy.yaml"), "--", "./probe"] + asked_paths(self.work)
        self.calls, self.report = list_calls(self.fault, self.line, self.work)
        self.results = []

    def judge(self, call, done):
        """None when all is well, else what is wrong."""
        text = done.stdout.decode("utf-8", "replace")
        if not text:
            silent = call.early or (call.role, call.label) in SPEECHLESS and done.returncode > 128
            return None if silent and done.returncode != 0 else "no result, exit status %d" % done.returncode
        try:
            answer = json.loads(text)
        except ValueError:
            return "not JSON: %r" % text[:200]
        if text.count("\n") != 1:
            return "not one line"
        self.results.append(text)
        if answer["status"] == "error":
            return self.judge_error(call, answer, done.returncode)
        report = normal(answer)
        if answer["status"] != "exited" or done.returncode != 0 or report is None:
            return "status %s, exit status %d, %s" % (answer["status"], done.returncode, answer["error"])
        if (call.role, call.label) in HARMLESS:
            return None
        if excess(report, self.report):
            return "another box: " + excess(report, self.report)
        return None if call.role == SUPERVISOR else "unnoticed"

    @staticmethod
    def judge_error(call, answer, status):
        error = answer["error"]
        if answer["stdout"] or answer["exit_code"] is not None:
            return "status error, but the command ran"
        if not error["code"] or not error["message"]:
            return "an error without code or message"
        if status != EXIT_STATUS.get(error["code"], 125):
            return "%s with exit status %d" % (error["code"], status)
        if call.role != SUPERVISOR and not error["stage"]:
            return "no stage: %s: %s" % (error["code"], error["message"])
        return None

    def one(self, work):
        call, errnum = work
        line = [self.fault, str(errnum), str(call.process), call.name, str(call.nth)] + self.line
        try:
            done = subprocess.run(line, cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, timeout=20)
        except subprocess.TimeoutExpired:
            return call, errnum, "does not end"
        return call, errnum, self.judge(call, done)

    def all(self):
        work = [(call, errnum) for errnum, most in ALIKE.items() for call in choose(self.calls, most)]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return list(pool.map(self.one, work))


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        return len(file.readlines())


def main():
    probes, agentbox, results = sys.argv[1:4]
    limits = sys.argv[4] if len(sys.argv) > 4 else ""
    before = mounts()
    with tempfile.TemporaryDirectory() as place:
        faults = Faults(probes, agentbox, place, limits)
        outcomes = faults.all()
    with open(results, "a", encoding="utf-8") as file:
        file.writelines(faults.results)
    wrong = ["%s: %s, number %d, fails with %s: %s" % (call.role, call.label, call.nth, errno.errorcode[errnum], what)
             for call, errnum, what in outcomes if what]
    print("\n".join(sorted(wrong)), file=sys.stderr)
    if mounts() != before:
        sys.exit("mounts are left: %d before, %d after" % (before, mounts()))
    print("%d faults in %d calls" % (len(outcomes), len(faults.calls)))
    sys.exit(1 if wrong else 0)


main()
