"""Directories of an overlay's lower layer renamed by tree_rename(), in an unprivileged overlay.

    tree_rename.py RENAME_TRY

Runs in a user and a mount namespace of its own, as an ordinary user without capabilities in the program
that renames. Ends with 77 (skipped) where no such overlay can be mounted. The parts that kill the program in
the middle, or make a call of it fail, need strace.
"""
import ctypes
import errno
import os
import shutil
import stat
import subprocess
import sys
import tempfile

CLONE_NEWNS, CLONE_NEWUSER, MS_REC, MS_PRIVATE, MNT_DETACH = 0x20000, 0x10000000, 0x4000, 0x40000, 2
LIBC = ctypes.CDLL(None, use_errno=True)
failures = 0


def check(good, what):
    global failures
    if not good:
        failures += 1
        print(f"not so: {what}", file=sys.stderr)


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def call(name, *args):
    if getattr(LIBC, name)(*args) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def mount(source, target, kind, flags=0, data=None):
    call("mount", source.encode(), target.encode(), kind and kind.encode(), ctypes.c_ulong(flags),
         data and data.encode())


def enter_namespaces():
    uid, gid = os.geteuid(), os.getegid()
    call("unshare", CLONE_NEWUSER | CLONE_NEWNS)
    for name, text in ("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1"):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    mount("none", "/", None, MS_REC | MS_PRIVATE)


class Overlay:
    """A lower layer made by fill(), and an overlay over it, at .path."""

    def __init__(self, top, fill):
        self.top = tempfile.mkdtemp(dir=top)
        self.lower, self.memory, self.path = (f"{self.top}/{n}" for n in ("lower", "memory", "merged"))
        for name in self.lower, self.memory, self.path:
            os.mkdir(name)
        fill(self.lower)
        mount("none", self.memory, "tmpfs")
        os.mkdir(f"{self.memory}/upper")
        os.mkdir(f"{self.memory}/work")
        mount("overlay", self.path, "overlay", 0, f"lowerdir={self.lower},upperdir={self.memory}/upper,"
              f"workdir={self.memory}/work,userxattr")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in self.path, self.memory:
            call("umount2", name.encode(), MNT_DETACH)
        subprocess.run(["chmod", "-R", "u+rwX", self.top], check=True)
        shutil.rmtree(self.top)

    def rename(self, how, old, new, wrap=()):
        r = subprocess.run([*wrap, PROGRAM, how, f"{self.path}/{old}", f"{self.path}/{new}"],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60,
                           env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
        return r.stdout.decode().strip()


def snapshot(top):
    """What is in a tree: path to type and mode, time, contents, an attribute."""
    found = {}

    def look(path, name):
        st = os.lstat(path)
        what = None
        if stat.S_ISREG(st.st_mode):
            with open(path, "rb") as file:
                what = file.read()
        elif stat.S_ISLNK(st.st_mode):
            what = os.readlink(path)
        note = None
        if "user.note" in os.listxattr(path, follow_symlinks=False):
            note = os.getxattr(path, "user.note", follow_symlinks=False)
        found[name] = (oct(st.st_mode), st.st_mtime_ns, what, note)
        if stat.S_ISDIR(st.st_mode):
            for entry in os.listdir(path):
                look(path + b"/" + entry, name + b"/" + entry)

    look(os.fsencode(top), b"")
    return found


def without_top(found):
    """The directory that has the renamed one gets a new time, as by any rename."""
    return {name: what for name, what in found.items() if name}


def write(path, text):
    with open(path, "wb") as file:
        file.write(text)


def fill(lower):
    os.makedirs(f"{lower}/src/deep/er/est")
    os.makedirs(f"{lower}/src/empty")
    os.makedirs(f"{lower}/elsewhere/sub")
    os.makedirs(f"{lower}/none")
    write(f"{lower}/src/a", b"a")
    write(f"{lower}/src/deep/b", b"b")
    write(f"{lower}/src/deep/er/c", b"c")
    write(f"{lower}/src/deep/er/est/d", b"d")
    write(f"{lower}/elsewhere/keep", b"keep")
    write(f"{lower}/file", b"file")
    os.link(f"{lower}/src/a", f"{lower}/src/deep/a-too")
    os.symlink("../a", f"{lower}/src/deep/link")
    os.mkfifo(f"{lower}/src/deep/fifo")
    for name in b"\n", b" ", b"-rf", b"\xff\xfe", b"x" * 255:
        write(os.fsencode(lower) + b"/src/deep/er/" + name, name)
    try:
        os.setxattr(f"{lower}/src/deep", "user.note", b"kept")
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
    os.chmod(f"{lower}/src/a", 0o4755)
    os.chmod(f"{lower}/src/deep/er", 0o555)
    os.chmod(f"{lower}/src/empty", 0o1700)
    for number, name in enumerate(["src/a", "src/deep/er/est", "src/deep/er", "src/deep", "src/empty", "src"]):
        os.utime(f"{lower}/{name}", ns=(10**18 + number, 10**18 + 7 * number))


def small(lower):
    os.makedirs(f"{lower}/src/one/two")
    for name in "f", "one/g", "one/two/h", "one/two/i", "one/j":
        write(f"{lower}/src/{name}", name.encode())
    os.chmod(f"{lower}/src/one", 0o555)
    for number, name in enumerate(["src/one/two", "src/one", "src"]):
        os.utime(f"{lower}/{name}", ns=(10**18 + number, 10**18 + 7 * number))


def renamed(top):
    """Like mv, with all kinds of entries, to another parent too."""
    for new in "lib", "elsewhere/lib", "none":
        with Overlay(top, fill) as box:
            check(box.rename("kernel", "src", new) == "EXDEV", "the kernel refuses it")
            before = snapshot(f"{box.path}/src")
            with open(f"{box.path}/src/deep/b") as held:
                check(box.rename("plain", "src", new) == "ok", f"src to {new}")
                check(held.read() == "b", "an open file stays readable")
            check(not os.path.lexists(f"{box.path}/src"), f"src is gone ({new})")
            check(snapshot(f"{box.path}/{new}") == before, f"all is in {new} as it was")
            check(box.rename("plain", new, "src") == "ok", "and back")
            check(snapshot(f"{box.path}/src") == before, "all is as it was")
    with Overlay(top, fill) as box:
        check(box.rename("noreplace", "src", "lib") == "ok", "noreplace, and nothing is there")


def refused(top):
    """rename(2)'s own rules; nothing changes."""
    with Overlay(top, fill) as box:
        before = snapshot(box.path)
        for how, old, new, error in (
                ("plain", "src", "elsewhere", "ENOTEMPTY"), ("plain", "src", "file", "ENOTDIR"),
                ("plain", "src", "src/deep/src", "EINVAL"), ("plain", "src", "src/src", "EINVAL"),
                ("plain", "src/deep", "src", "ENOTEMPTY"), ("plain", "nothing", "x", "ENOENT"),
                ("noreplace", "src", "none", "EEXIST"), ("noreplace", "src", "file", "EEXIST"),
                ("exchange", "src", "elsewhere", "EXDEV"), ("plain", "file", "elsewhere", "EISDIR")):
            got = box.rename(how, old, new)
            check(got == error, f"{how} {old} {new}: {got}, not {error}")
        got = box.rename("whiteout", "src", "x")
        check(got in ("EINVAL", "EPERM", "EXDEV"), f"whiteout: {got}")
        check(snapshot(box.path) == before, "nothing has changed")
        os.chmod(f"{box.path}/src/deep/er", 0o555)
        check(box.rename("plain", "src/deep/er", "er") == "EACCES", "no w, another parent: as by rename(2)")
        check(box.rename("plain", "src/deep/er", "src/deep/er2") == "ok", "no w, the same parent")
        check(os.stat(f"{box.path}/src/deep/er2").st_mode & 0o777 == 0o555, "the mode is kept")
        other = f"{box.memory}/other"
        os.mkdir(other)
        check(box.rename("plain", "src", "../memory/other/src") == "EXDEV", "another mount")
        check(not os.listdir(other), "nothing was made there")


def partly_upper(top):
    with Overlay(top, fill) as box:
        os.mkdir(f"{box.path}/src/deep/new")
        write(f"{box.path}/src/deep/new/n", b"n")
        os.chmod(f"{box.path}/src/deep/new", 0o555)
        write(f"{box.path}/src/deep/b", b"changed")
        os.unlink(f"{box.path}/src/deep/a-too")
        shutil.rmtree(f"{box.path}/src/empty")
        os.mkdir(f"{box.path}/src/empty")
        before = snapshot(f"{box.path}/src")
        check(box.rename("plain", "src", "lib") == "ok", "partly in the upper layer")
        check(snapshot(f"{box.path}/lib") == before, "all as it was, partly in the upper layer")


def deep(lower):
    """Deeper than what is kept open."""
    at = f"{lower}/src"
    os.mkdir(at)
    for number in range(120):
        at += "/dd" if number % 2 else "/e"
        os.mkdir(at)
        write(f"{at}/f", b"%d" % number)
        os.mkdir(f"{at}/z")
        write(f"{at}/a", b"%d" % number)
        os.utime(at, ns=(10**18, 10**18 + number))


def many(top):
    def lots(lower):
        os.makedirs(f"{lower}/src")
        for number in range(5000):
            name = f"{lower}/src/{number}"
            if number % 10:
                write(name, b"%d" % number)
            else:
                os.mkdir(name)
                write(f"{name}/in", b"%d" % number)

    for tree in lots, deep:
        with Overlay(top, tree) as box:
            before = snapshot(f"{box.path}/src")
            check(box.rename("plain", "src", "lib") == "ok", f"{tree.__name__}: renamed")
            check(snapshot(f"{box.path}/lib") == before, f"{tree.__name__}: all there")
            check(not os.path.lexists(f"{box.path}/src"), f"{tree.__name__}: src is gone")


def inject(top, calls, what, tree=small, numbers=range(1, 100)):
    """Runs with the n-th of these calls hit, until there is none; yields overlay, snapshot, answer."""
    for number in numbers:
        with Overlay(top, tree) as box:
            before = snapshot(box.path)
            log = f"{box.top}/log"
            got = box.rename("plain", "src", "lib", ("strace", "-qq", "-o", log, "-e", f"trace={calls}",
                             "-e", f"inject={calls}:{what}:when={number}"))
            with open(log) as file:
                hit = "INJECTED" in (text := file.read()) or "killed by SIGKILL" in text
            if not hit:
                check(got == "ok" and number > 3, f"{calls}: the last run is whole, {number} {got}")
                return
            yield box, before, got, number
    check(numbers.step > 1, f"{calls}: no end")


def files(found, prefix):
    return {name[len(prefix):]: what[2] for name, what in found.items()
            if name.startswith(prefix + b"/") and what[2] is not None}


def killed(top):
    for calls in "renameat2", "mkdirat", "unlinkat", "fchmod", "utimensat":
        for box, before, _, number in inject(top, calls, "signal=KILL"):
            after = snapshot(box.path)
            old, new = files(after, b"/src"), files(after, b"/lib")
            check(not set(old) & set(new), f"killed at {calls} {number}: a file has two names")
            check({**old, **new} == files(before, b"/src"), f"killed at {calls} {number}: a file is lost")
            check(set(os.listdir(box.path)) <= {"src", "lib"}, f"killed at {calls} {number}: litter")


def failed(top):
    for calls in "renameat2", "mkdirat", "unlinkat", "getdents64", "openat", "renameat2 deep":
        how = (deep, range(2, 600, 60)) if calls.endswith(" deep") else ()
        for box, before, got, number in inject(top, calls.split()[0], "error=ENOSPC", *how):
            after = snapshot(box.path)
            if got == "ok":
                check(without_top({n.replace(b"/lib", b"/src"): w for n, w in after.items()}) ==
                      without_top(before), f"{calls} {number}: ok, and all is there")
                continue
            check(got == "ENOSPC" or (calls == "openat" and not got), f"{calls} {number}: {got}")
            check(without_top(after) == without_top(before), f"{calls} {number} failed: all is as before")


def main():
    top = tempfile.mkdtemp(prefix="agentbox-rename-")
    if os.geteuid() == 0:
        os.chown(top, 65534, 65534)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = run(top)
        except SystemExit as end:
            status = end.code
        finally:
            sys.stdout.flush()
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    subprocess.run(["chmod", "-R", "u+rwX", top], check=False)
    shutil.rmtree(top)
    sys.exit(status)


def run(top):
    # Its place may not be searched by the other user.
    program = shutil.copy(PROGRAM, f"{top}/rename_try")
    os.chmod(program, 0o755)
    globals()["PROGRAM"] = program
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        LIBC.prctl(4, 1, 0, 0, 0) # PR_SET_DUMPABLE, for /proc/self/uid_map
    os.umask(0o022)
    try:
        enter_namespaces()
        with Overlay(top, small):
            pass
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOSPC, errno.EINVAL, errno.ENODEV, errno.EACCES):
            raise
        skip(error)
    parts = [renamed, refused, partly_upper, many]
    if shutil.which("strace"):
        parts += [killed, failed]
    else:
        print("left out: killed, failed (no strace)")
    for part in parts:
        before = failures
        part(top)
        print("ok" if failures == before else "not ok", part.__name__, flush=True)
    return 1 if failures else 0


PROGRAM = sys.argv[1]
main()
