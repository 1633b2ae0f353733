"""Makes every system call of a box's set-up fail in turn, in every process that takes part, and holds
the outcome: valid JSON, status error, 125, a code and a hint; the command did not run; nothing is left.

    faults.py FAULT AGENTBOX RESULTS

FAULT is the tracer (tests/probe/fault.c); it waits for every process that it has ever seen, so a
process that is left behind shows as a run that does not end. A call whose failure may pass unnoticed
stands in HARMLESS with the reason; a call that is not there must be noticed.
"""
import collections
import concurrent.futures
import errno
import json
import os
import subprocess
import sys
import tempfile

SUPERVISOR, INIT, PAYLOAD = "supervisor", "init", "payload"
ROLES = [SUPERVISOR, INIT, PAYLOAD]
EVERY = "every process"

# (process, call): why its failure changes nothing that matters.
HARMLESS = {
    (EVERY, "close"): "the kernel has given the descriptor up even when it reports an error",
    (EVERY, "munmap"): "memory that is not given back is freed at the end of the process",
    (EVERY, "madvise"): "advice",
    (EVERY, "brk"): "the allocator turns to mmap",
}

# Calls of the C library's own start, before main: the process may end without a word, by a signal.
BEFORE_MAIN = ["execve", "brk", "arch_prctl", "set_tid_address", "set_robust_list", "rseq", "prlimit64",
               "readlinkat", "readlink", "getrandom", "mprotect", "uname", "newfstatat", "fstat", "mmap", "munmap",
               "openat", "read", "pread64", "close", "access", "futex"]

POLICY = """version: 1
name: faults
filesystem:
  workspace: write
  read: [granted]
  hide: [hidden.txt]
  protect: [protected.txt]
limits: {open_files: 100, wall: 20s}
"""


def prepare(place):
    work = os.path.join(place, "work")
    os.makedirs(os.path.join(place, "granted"))
    os.makedirs(work)
    for name in ("hidden.txt", "protected.txt"):
        with open(os.path.join(work, name), "w") as file:
            file.write(name)
    with open(os.path.join(place, "policy.yaml"), "w") as file:
        file.write(POLICY)
    return work


def command_line(agentbox, work):
    return [agentbox, "run", "-p", os.path.join(os.path.dirname(work), "policy.yaml"), "--", "/bin/sh", "-c",
            ": >mark-$0; echo ran", "%s"]


def list_calls(fault, line, work):
    """The calls of the set-up as [(process index, call index, name)]."""
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)
    line = line[:-1] + ["list"]
    child = subprocess.Popen([fault, "list"] + line, cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             env=dict(os.environ, FAULT_FD=str(write_end)), pass_fds=[write_end])
    os.close(write_end)
    with os.fdopen(read_end) as report:
        calls = [(int(a), int(b), name) for a, b, name in (row.split() for row in report)]
    answer = json.loads(child.communicate(timeout=30)[0])
    if answer["stdout"] != "ran\n":
        sys.exit("a run without a fault failed: %s" % answer)
    return calls


def count_before_main(calls):
    """How many of the first process's calls belong to the C library's start."""
    count = 0
    for process, _, name in calls:
        if process != 0:
            continue
        if name not in BEFORE_MAIN:
            break
        count += 1
    return count


def judge(role, name, early, mark, done, text):
    """None when all is well, else what is wrong."""
    try:
        answer = json.loads(text) if text else None
    except ValueError:
        return "not JSON: %r" % text[:200]
    if text.count("\n") > 1:
        return "more than one line"
    ran = os.path.exists(mark)
    if answer is None:
        if early and done != 0 and not ran:
            return None
        return "no result, exit status %d" % done
    if answer["status"] == "error":
        error = answer["error"]
        if ran:
            return "status error, but the command ran"
        if done != 125:
            return "status error with exit status %d (%s)" % (done, error["code"])
        if not error["code"] or not error["message"]:
            return "an error without code or message"
        if role != SUPERVISOR and not error["stage"]:
            return "no stage: %s" % error
        if error["code"] == "internal" and error["stage"] is None:
            return "called internal: %s" % error["message"]
        return None
    if answer["status"] == "exited" and answer["stdout"] == "ran\n" and done == 0:
        if early or (role, name) in HARMLESS or (EVERY, name) in HARMLESS:
            return None
        return "unnoticed"
    return "status %s, exit status %d, %s" % (answer["status"], done, answer["error"])


class Faults:
    def __init__(self, fault, agentbox, results, place):
        self.fault, self.results = fault, results
        self.work = prepare(place)
        self.line = command_line(agentbox, self.work)
        self.calls = list_calls(fault, self.line, self.work)
        self.early = count_before_main(self.calls)
        self.kept = []

    def one(self, number, what):
        process, call, name, errnum = what
        role = ROLES[min(process, len(ROLES) - 1)]
        mark = os.path.join(self.work, "mark-%d" % number)
        line = [self.fault, str(errnum), str(process), str(call)] + self.line[:-1] + [str(number)]
        try:
            done = subprocess.run(line, cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, timeout=30)
        except subprocess.TimeoutExpired:
            return role, name, errnum, "does not end"
        text = done.stdout.decode("utf-8", "replace")
        wrong = judge(role, name, process == 0 and call < self.early, mark, done.returncode, text)
        if wrong != "not JSON" and text:
            self.kept.append(text)
        return role, name, errnum, wrong

    def all(self):
        work = [(process, call, name, errnum) for errnum in (errno.EPERM, errno.ENOMEM)
                for process, call, name in self.calls if call > 0 or process > 0]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return list(pool.map(self.one, range(len(work)), work))


def mounts():
    with open("/proc/self/mountinfo") as file:
        return len(file.readlines())


def main():
    fault, agentbox, results = sys.argv[1:4]
    before = mounts()
    with tempfile.TemporaryDirectory() as place:
        faults = Faults(fault, agentbox, results, place)
        if len({process for process, _, _ in faults.calls}) < 3:
            sys.exit("the set-up was not seen in three processes: %s" % faults.calls)
        outcomes = faults.all()
    with open(results, "a") as file:
        file.writelines(faults.kept)
    wrong = collections.Counter("%s: %s fails with %s: %s" % (role, name, errno.errorcode[errnum], what)
                                for role, name, errnum, what in outcomes if what)
    for text, count in sorted(wrong.items()):
        print("%s (%d times)" % (text, count), file=sys.stderr)
    if mounts() != before:
        sys.exit("mounts are left: %d before, %d after" % (before, mounts()))
    print("%d faults in %d calls" % (len(outcomes), len(faults.calls)))
    sys.exit(1 if wrong else 0)


main()
