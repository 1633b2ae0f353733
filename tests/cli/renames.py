"""Renames as programs make them, for the tests of a workspace that is an overlay.

    renames.py make DIR        one small tree for each case, made outside before the box runs
    renames.py table DIR       inside: every case there and in a directory of /tmp; both must answer alike
    renames.py loop N          N renames of one file; prints the microseconds that one takes
    renames.py crowd N TURNS   N processes at once, each with its own names
    renames.py threads N TURNS N threads at once that move one file about: each turn has one winner
    renames.py places NAME...  what a rename of each to `moved`, and of `plain` to it, is answered
    renames.py jail DIR        from a root directory of its own, which only \"nesting: allow\" makes possible
    renames.py touch NAME      what can be done to the process of that name: nothing
    renames.py hostile SECONDS requests that change while they are read, or are none
"""
import ctypes
import errno
import mmap
import os
import stat
import sys
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD = -100
NOREPLACE, EXCHANGE, WHITEOUT = 1, 2, 4
RENAMEAT2 = {"x86_64": 316, "aarch64": 276}[os.uname().machine]
RENAMEAT = {"x86_64": 264, "aarch64": 38}[os.uname().machine]
RENAME = {"x86_64": 82}.get(os.uname().machine)


def call(number, *arguments):
    """The system call itself; 0 or the errno."""
    passed = [a if isinstance(a, ctypes._SimpleCData) else ctypes.c_char_p(a) if isinstance(a, bytes)
              else ctypes.c_long(a) for a in arguments]
    return 0 if libc.syscall(ctypes.c_long(number), *passed) == 0 else ctypes.get_errno()


def renameat2(old_dir, old, new_dir, new, flags=0):
    return call(RENAMEAT2, old_dir, old, new_dir, new, flags)


# --- the table ---

# (old, new, flags, what the old path begins at, what the new one does). "cwd", "dir": the descriptor of `d`,
# "file": that of `f`, "path": `d` opened with O_PATH, "bad": none, "gone": a directory that was removed.
# %ROOT: the case's own absolute path.
LONG = "n" * 256
FAR = "s/" * 2100 + "f"
CASES = [
    ("f", "new"), ("f", "g"), ("f", "f"), ("f", "./f"), ("u", "h"), ("h", "u"), ("f", "d/new"), ("d/x", "new"),
    ("d", "new"), ("d", "e"), ("d", "full"), ("d", "d"), ("e", "d"), ("e", "new/"), ("d/", "new"), ("d//", "new//"),
    ("d/", "e/"), ("f/", "new"), ("f", "new/"), ("f", "g/"), ("f/", "g"), ("f", "d/"), ("f", "d"), ("f", "e"),
    ("d", "f"), ("d", "f/"), ("d", "d/sub"), ("d", "d/x"), ("d", "d/deep/new"), ("d/deep", "d"), ("d/deep", "."),
    (".", "new"), ("..", "new"), ("d/.", "new"), ("d/..", "new"), ("f", "."), ("f", ".."), ("f", "d/."),
    ("f", "d/.."), ("/", "new"), ("f", "/"), ("//", "///"), ("", "new"), ("f", ""), ("", ""), ("none", "new"),
    ("none", "f"), ("none/x", "new"), ("f", "none/x"), ("f/x", "new"), ("g", "f/x"), ("d/../f", "d/./new"),
    ("l", "new"), ("l/", "new"), ("l/x", "new"), ("f", "l/new"), ("f", "l"), ("f", "l/"), ("d", "l"), ("lf", "new"),
    ("lf/", "new"), ("g", "lf"), ("dangling", "new"), ("f", "dangling"), ("f", "dangling/x"), ("dangling/x", "new"),
    ("loop1", "new"), ("loop1/x", "new"), ("f", "loop1/x"), ("f", "loop1"), ("d", "loop1"),
    ("ro/z", "new"), ("f", "ro/new"), ("ro/z", "ro/y"), ("ro", "new"), ("ro", "d/ro"), ("shut/x", "new"),
    ("f", "shut/x"), ("shut", "new"), ("f", "shut"), ("fifo", "new"), ("f", "fifo"), ("fifo", "d"), ("fifo/", "new"),
    (LONG, "new"), ("f", LONG), ("d/" + LONG, "new"), ("f", LONG + "/x"), (FAR, "new"), ("f", FAR),
    ("%ROOT/f", "%ROOT/new"), ("%ROOT/d", "%ROOT/e"), ("%ROOT/d", "%ROOT/d/x/y"), ("%ROOT/none/x", "%ROOT/new"),
    ("f", "new", NOREPLACE), ("f", "g", NOREPLACE), ("f", "f", NOREPLACE), ("u", "h", NOREPLACE),
    ("d", "new", NOREPLACE), ("d", "e", NOREPLACE), ("d", "full", NOREPLACE), ("f", ".", NOREPLACE),
    ("f", "d/..", NOREPLACE), (".", "g", NOREPLACE), ("none", "g", NOREPLACE), ("f", "l", NOREPLACE),
    ("f", "dangling", NOREPLACE), ("d", "d/sub", NOREPLACE), ("f", "/", NOREPLACE), ("f", "e/", NOREPLACE),
    ("f", "g", EXCHANGE), ("f", "f", EXCHANGE), ("f", "new", EXCHANGE), ("none", "f", EXCHANGE), ("f", "g/", EXCHANGE),
    ("f", "l", EXCHANGE), ("f", ".", EXCHANGE), ("d", "d/deep", EXCHANGE), ("d/deep", "d", EXCHANGE),
    ("f", "g", NOREPLACE | EXCHANGE), ("f", "g", EXCHANGE | WHITEOUT), ("f", "g", 8), ("none", "new", 1 << 31),
    ("f", "new", 0, "dir", "cwd"), ("x", "new", 0, "dir", "dir"), ("x", "y", 0, "dir", "cwd"),
    ("f", "new", 0, "cwd", "dir"), ("deep", "new", 0, "dir", "dir"), ("deep", "new", 0, "dir", "cwd"),
    ("../f", "x", 0, "dir", "dir"), ("x", "new", 0, "path", "path"), ("x", "new", 0, "path", "cwd"),
    ("x", "new", 0, "file", "cwd"), ("f", "new", 0, "cwd", "file"), ("", "new", 0, "file", "cwd"),
    ("x", "new", 0, "bad", "cwd"), ("f", "new", 0, "cwd", "bad"), ("x", "new", 0, "bad", "bad"),
    ("", "new", 0, "bad", "cwd"), ("%ROOT/f", "%ROOT/new", 0, "bad", "bad"), ("%ROOT/f", "new", 0, "bad", "cwd"),
    ("%ROOT/f", "%ROOT/d/new", 0, "file", "file"), ("none", "new", 0, "cwd", "bad"), ("x", "new", 0, "gone", "cwd"),
    ("f", "new", 0, "cwd", "gone"), (".", "new", 0, "dir", "cwd"), ("x/", "new", 0, "dir", "cwd"),
    ("x", "new", NOREPLACE, "dir", "cwd"), ("x", "g", NOREPLACE, "dir", "cwd"), ("x", "f", EXCHANGE, "dir", "cwd"),
]


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def make_case(place):
    os.makedirs(place + "/d/deep/deeper")
    for name in ("e", "full", "ro", "shut"):
        os.mkdir(place + "/" + name)
    for name in ("f", "g", "d/x", "d/deep/w", "d/deep/deeper/v", "full/y", "ro/z", "shut/x"):
        write(place + "/" + name, name)
    for name, target in (("l", "d"), ("lf", "f"), ("dangling", "nothing"), ("loop1", "loop2"), ("loop2", "loop1")):
        os.symlink(target, place + "/" + name)
    os.mkfifo(place + "/fifo")
    os.chmod(place + "/ro", 0o555)
    os.chmod(place + "/shut", 0)


def make(top):
    for number in range(len(CASES)):
        make_case("%s/%d" % (top, number))


def tree(place):
    """What is there, without what only shows how it came there."""
    found = []
    for here, directories, files in os.walk(place):
        for name in directories + files:
            path = os.path.join(here, name)
            status = os.lstat(path)
            text = ""
            if stat.S_ISREG(status.st_mode):
                try:
                    with open(path, encoding="utf-8") as file:
                        text = file.read()
                except PermissionError:
                    text = "?"
            elif stat.S_ISLNK(status.st_mode):
                text = os.readlink(path)
            found.append((os.path.relpath(path, place), oct(status.st_mode), text))
    return sorted(found)


def begin_at(what):
    if what == "cwd":
        return AT_FDCWD
    if what == "bad":
        return 987
    if what == "gone":
        os.mkdir("going")
        fd = os.open("going", os.O_RDONLY | os.O_DIRECTORY)
        os.rmdir("going")
        return fd
    return os.open({"dir": "d", "file": "f", "path": "d"}[what], os.O_PATH if what == "path" else os.O_RDONLY)


def do_case(place, case):
    old, new, flags, old_at, new_at = (case + (0, "cwd", "cwd")[len(case) - 2:])
    os.chdir(place)
    here = os.getcwd()
    write("u", "u")  # an overlay separates names that were one file before
    os.link("u", "h")
    old, new = (os.fsencode(name.replace("%ROOT", here)) for name in (old, new))
    first = begin_at(old_at)
    second = first if new_at == old_at else begin_at(new_at)
    answers = {renameat2(first, old, second, new, flags)}
    for fd in {first, second}:
        if fd >= 0 and fd != 987:
            os.close(fd)
    os.chdir("/")
    return answers.pop(), tree(place)


def name_of(answer):
    return errno.errorcode.get(answer, str(answer))


def table(top):
    wrong = 0
    for number, case in enumerate(CASES):
        plain = "/tmp/plain/%d" % number
        make_case(plain)
        here, there = do_case("%s/%d" % (top, number), case), do_case(plain, case)
        if here != there:
            wrong += 1
            print("%s: %s, on a plain file system %s" % (
                [part[:40] if isinstance(part, str) else part for part in case], name_of(here[0]), name_of(there[0])))
            print("  ", sorted(set(here[1]) ^ set(there[1])))
    print("%d cases, %d differ" % (len(CASES), wrong))
    return wrong


# --- load ---

def loop(count):
    write("one", "content")
    begin = time.monotonic()
    for _ in range(count // 2):
        os.rename("one", "two")
        os.rename("two", "one")
    print("%.1f" % ((time.monotonic() - begin) * 1e6 / count))
    return 0


def one_of_crowd(me, turns):
    os.makedirs("crowd/%d/a" % me)
    write("crowd/%d/a/f" % me, str(me))
    for _ in range(turns):
        os.rename("crowd/%d/a" % me, "crowd/%d/b" % me)
        os.rename("crowd/%d/b" % me, "crowd/%d/a" % me)
    with open("crowd/%d/a/f" % me, encoding="utf-8") as file:
        return 0 if file.read() == str(me) else 1


def crowd(count, turns):
    children = []
    for me in range(count):
        pid = os.fork()
        if pid == 0:
            os._exit(one_of_crowd(me, turns))
        children.append(pid)
    wrong = sum(os.waitpid(pid, 0)[1] != 0 for pid in children)
    print("%d of %d went wrong" % (wrong, count))
    return wrong


def threads(count, turns):
    """All want the one file: of every rename but the winner's the answer is ENOENT."""
    os.makedirs("threads")
    write("threads/t0", "x")
    wins, others = [0] * count, set()
    gate = threading.Barrier(count)

    def run(me):
        for turn in range(turns):
            gate.wait()
            answer = renameat2(AT_FDCWD, b"threads/t%d" % turn, AT_FDCWD, b"threads/t%d" % (turn + 1))
            if answer == 0:
                wins[me] += 1
            else:
                others.add(name_of(answer))

    running = [threading.Thread(target=run, args=(me,)) for me in range(count)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    print(sum(wins), sorted(others), os.listdir("threads"))
    return 0 if sum(wins) == turns and others <= {"ENOENT"} and os.listdir("threads") == ["t%d" % turns] else 1


# --- hostile requests ---

def check(what, answer, *right):
    if name_of(answer) in right:
        return 0
    print("%s: %s" % (what, name_of(answer)))
    return 1


def bad_pointers():
    write("f", "x")
    page = mmap.PAGESIZE
    libc.mmap.restype = libc.mmap.argtypes = None
    libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [
        ctypes.c_long]
    at = libc.mmap(None, 4 * page, 3, 0x22, -1, 0)
    libc.munmap(ctypes.c_void_p(at + 2 * page), ctypes.c_size_t(page))

    def put(where, text):
        ctypes.memmove(where, text, len(text))
        return ctypes.c_void_p(where)

    wrong = 0
    for number in (1, 4095, -1, -4096, 1 << 47, 0x8000000000000000):
        pointer = ctypes.c_void_p(number & (1 << 64) - 1)
        wrong += check("old at %#x" % number, renameat2(AT_FDCWD, pointer, AT_FDCWD, b"g"), "EFAULT")
        wrong += check("new at %#x" % number, renameat2(AT_FDCWD, b"f", AT_FDCWD, pointer), "EFAULT")
    wrong += check("NULL", renameat2(AT_FDCWD, ctypes.c_void_p(0), AT_FDCWD, ctypes.c_void_p(0)), "EFAULT")
    # A string that ends with its page, one that goes on into nothing, and one over two pages.
    wrong += check("ends with the page", renameat2(AT_FDCWD, put(at + 2 * page - 2, b"f\0"), AT_FDCWD, b"g"), "0")
    wrong += check("goes on into nothing", renameat2(AT_FDCWD, put(at + 2 * page - 2, b"gg"), AT_FDCWD, b"f"), "EFAULT")
    wrong += check("over two pages", renameat2(AT_FDCWD, put(at + page - 4, b"././././g\0"), AT_FDCWD, b"f"), "0")
    full = b"./" * 2046 + b"f"  # 4093 and more
    wrong += check("just fits", renameat2(AT_FDCWD, b"./" + full, AT_FDCWD, b"g"), "0")
    wrong += check("too long by one", renameat2(AT_FDCWD, b"//.//" + full[2:], AT_FDCWD, b"f"), "ENAMETOOLONG", "ENOENT")
    wrong += check("far too long", renameat2(AT_FDCWD, b"./" * 5000, AT_FDCWD, b"f"), "ENAMETOOLONG")
    return wrong + check("left", renameat2(AT_FDCWD, b"g", AT_FDCWD, b"f"), "0")


def changing_paths(seconds):
    """One thread changes the name while others use it: only ever one of both names may be touched."""
    for name in ("ok", "other"):
        os.makedirs("change/" + name)
        write("change/%s/file" % name, name)
    text = ctypes.create_string_buffer(b"change/ok/file", 64)
    until = time.monotonic() + seconds
    found = set()

    def flip():
        while time.monotonic() < until:
            text.raw = b"change/ok/file".ljust(64, b"\0")
            text.raw = b"change/other/file".ljust(64, b"\0")
            text.raw = b"x" * 64

    def use(me):
        mine = b"change/mine%d" % me
        while time.monotonic() < until:
            answer = renameat2(AT_FDCWD, ctypes.cast(text, ctypes.c_void_p), AT_FDCWD, mine)
            found.add(name_of(answer))
            if answer == 0:
                with open(mine, encoding="utf-8") as file:
                    name = file.read()
                os.rename(mine, "change/%s/file" % name)

    running = [threading.Thread(target=flip)] + [threading.Thread(target=use, args=(me,)) for me in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    whole = all(open("change/%s/file" % name, encoding="utf-8").read() == name for name in ("ok", "other"))
    if not whole or not found <= {"0", "ENOENT", "ENOTDIR", "ENAMETOOLONG"}:
        print("changing paths:", found, whole)
        return 1
    return 0


def closing_descriptors(seconds):
    """Descriptors that are opened, closed and replaced while they are used, also by files of other kinds."""
    os.makedirs("closing/in")
    write("closing/in/f", "x")
    until = time.monotonic() + seconds
    found = set()
    fixed = 700

    def juggle():
        kinds = [os.open("closing/in", os.O_RDONLY), os.open("closing/in/f", os.O_RDONLY), os.pipe()[0],
                 os.open("/dev/null", os.O_RDONLY), os.open("closing/in", os.O_PATH)]
        while time.monotonic() < until:
            for kind in kinds:
                os.dup2(kind, fixed)
                os.close(fixed)

    def use():
        while time.monotonic() < until:
            found.add(name_of(renameat2(fixed, b"f", fixed, b"f")))
            found.add(name_of(renameat2(fixed, b"none", AT_FDCWD, b"closing/x")))

    running = [threading.Thread(target=juggle)] + [threading.Thread(target=use) for _ in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if not found <= {"0", "EBADF", "ENOTDIR", "ENOENT"}:
        print("closing descriptors:", found)
        return 1
    return 0


def dying_callers(count):
    """Processes that are killed in the middle of their renames; the next ones must not wait for them."""
    os.makedirs("dying")
    for me in range(count):
        write("dying/a%d" % me, "x")
        pid = os.fork()
        if pid == 0:
            while True:
                renameat2(AT_FDCWD, b"dying/a%d" % me, AT_FDCWD, b"dying/b%d" % me)
                renameat2(AT_FDCWD, b"dying/b%d" % me, AT_FDCWD, b"dying/a%d" % me)
        time.sleep(0.001 * (me % 7))
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    if len(os.listdir("dying")) != count:
        print("dying callers:", len(os.listdir("dying")))
        return 1
    return 0


def undumpable():
    """A process whose memory the others of its user may not read is no harder to serve."""
    libc.prctl(4, 0, 0, 0, 0)
    os.makedirs("undumpable/in")
    write("undumpable/in/f", "x")
    fd = os.open("undumpable/in", os.O_RDONLY)
    wrong = check("undumpable, cwd", renameat2(AT_FDCWD, b"undumpable/in/f", AT_FDCWD, b"undumpable/in/g"), "0")
    wrong += check("undumpable, descriptor", renameat2(fd, b"g", fd, b"f"), "0")
    wrong += check("undumpable, none", renameat2(999, b"g", fd, b"f"), "EBADF")
    return wrong


def through_proc():
    """Of /proc/self it would be another's: an error, and nothing else."""
    os.makedirs("proc")
    write("proc/f", "x")
    wrong = check("through /proc/self/cwd", renameat2(AT_FDCWD, b"/proc/self/cwd/proc/f", AT_FDCWD, b"proc/g"), "ELOOP")
    wrong += check("in /proc", renameat2(AT_FDCWD, b"/proc/self/comm", AT_FDCWD, b"/proc/self/x"), "EPERM", "EACCES",
                   "EXDEV", "ENOENT")
    return wrong


def other_calls():
    write("c", "x")
    wrong = check("renameat", call(RENAMEAT, AT_FDCWD, b"c", AT_FDCWD, b"c2"), "0")
    # The kernel takes the halves of these registers that it needs.
    wrong += check("upper halves", call(RENAMEAT2, ctypes.c_uint64(0xabcdffffff9c), b"c2", ctypes.c_uint64(
        0xffffff9c), b"c3", ctypes.c_uint64(0x500000000)), "0")
    wrong += check("a negative one", renameat2(-7, b"c3", AT_FDCWD, b"c"), "EBADF")
    if RENAME is not None:
        wrong += check("rename", call(RENAME, b"c3", b"c"), "0")
        wrong += check("rename of nothing", call(RENAME, b"c3", b"c"), "ENOENT")
    return wrong


def hostile(seconds):
    wrong = other_calls() + bad_pointers() + changing_paths(seconds) + closing_descriptors(seconds) + dying_callers(40)
    wrong += through_proc() + undumpable()
    print("%d wrong" % wrong)
    return wrong


# --- what a rename may not do, and who does it ---

def places(*names):
    for name in names:
        write("plain", "x")
        away = renameat2(AT_FDCWD, os.fsencode(name), AT_FDCWD, b"moved")
        over = renameat2(AT_FDCWD, b"plain", AT_FDCWD, os.fsencode(name))
        print(name, name_of(away), name_of(over))
    return 0


def jail(place):
    """Paths begin at the caller's own root, and a way out of it is none."""
    write(place + "/f", "x")
    os.symlink("/in", place + "/absolute")
    os.symlink("../..", place + "/out")
    os.mkdir(place + "/in")
    outside = os.open(".", os.O_RDONLY)
    if libc.unshare(0x10000000) != 0:
        sys.exit("unshare: " + name_of(ctypes.get_errno()))
    os.chroot(place)
    os.chdir("/")
    wrong = check("absolute", renameat2(AT_FDCWD, b"/f", AT_FDCWD, b"/g"), "0")
    wrong += check("of the box's root", renameat2(AT_FDCWD, b"/etc/passwd", AT_FDCWD, b"/g"), "ENOENT")
    wrong += check("above it", renameat2(AT_FDCWD, b"/../../g", AT_FDCWD, b"/../in/../h"), "0")
    wrong += check("through a link", renameat2(AT_FDCWD, b"/h", AT_FDCWD, b"/absolute/f"), "0")
    wrong += check("through a link up", renameat2(AT_FDCWD, b"/out/in/f", AT_FDCWD, b"/f"), "0")
    wrong += check("relative", renameat2(AT_FDCWD, b"f", AT_FDCWD, b"in/f"), "0")
    wrong += check("relative, out", renameat2(AT_FDCWD, b"in/f", AT_FDCWD, b"out/f"), "EXDEV")
    wrong += check("by a descriptor", renameat2(outside, os.fsencode(place) + b"/in/f", AT_FDCWD, b"f"), "0")
    wrong += check("a directory", renameat2(AT_FDCWD, b"lower", AT_FDCWD, b"/in/lower"), "0")
    print(os.listdir("/"), wrong)
    return wrong


def touch(name):
    pids = [pid for pid in os.listdir("/proc") if pid.isdigit() and
            open("/proc/%s/comm" % pid, encoding="utf-8").read() == name + "\n"]
    if len(pids) != 1:
        sys.exit("%s: %s" % (name, pids))
    pid, wrong = int(pids[0]), 0

    def refused(what, run):
        nonlocal wrong
        try:
            run()
        except (PermissionError, ProcessLookupError):
            return
        wrong += 1
        print("not refused:", what)

    for signal in (9, 15, 19, 18, 11, 25):
        refused("signal %d" % signal, lambda: os.kill(pid, signal))
    for file in ("mem", "maps", "environ", "syscall"):
        refused(file, lambda: open("/proc/%d/%s" % (pid, file), "rb").read(1))
    for link in ("cwd", "root", "fd/0"):
        refused(link, lambda: os.readlink("/proc/%d/%s" % (pid, link)))
    refused("fd", lambda: os.listdir("/proc/%d/fd" % pid))
    refused("ptrace", lambda: libc.ptrace(16, pid, 0, 0) == 0 or no())
    buffer = ctypes.create_string_buffer(8)
    vec = (ctypes.c_void_p * 2)(ctypes.cast(buffer, ctypes.c_void_p), 8)
    refused("process_vm_readv", lambda: libc.process_vm_readv(pid, vec, 1, vec, 1, 0) > 0 or no())
    pidfd = libc.syscall(434, pid, 0)
    refused("pidfd_getfd", lambda: libc.syscall(438, pidfd, 0, 0) >= 0 or no())
    with open("/proc/%d/status" % pid, encoding="utf-8") as file:
        status = dict(line.split(":\t") for line in file.read().splitlines() if ":\t" in line)
    with open("/proc/self/status", encoding="utf-8") as file:
        own = dict(line.split(":\t") for line in file.read().splitlines() if ":\t" in line)
    for key in ("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs"):
        if status[key] != own[key]:
            wrong += 1
            print("another %s: %s" % (key, status[key]))
    print("%d wrong" % wrong)
    return wrong


def no():
    raise PermissionError


def main():
    what, arguments = sys.argv[1], sys.argv[2:]
    if what in ("make", "table"):
        return globals()[what](os.path.abspath(arguments[0]))
    if what in ("places", "jail", "touch"):
        return globals()[what](*arguments)
    if what not in ("loop", "crowd", "threads", "hostile"):
        sys.exit(__doc__)
    return globals()[what](*(int(argument) for argument in arguments))


sys.exit(1 if main() else 0)
