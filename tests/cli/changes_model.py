#!/usr/bin/env python3
"""Random work on a real overlay, and whether the list of changes says exactly what happened.

    changes_model.py DUMP [SCRIPTS [SEED]]

DUMP is the built probe-changes_dump. For each of SCRIPTS (200) random scripts it makes a tree, mounts an
overlay over it without privilege, does file operations in it, compares the two trees in full by itself,
and holds the answer of DUMP against that: for the layer, and for the seen tree as a complete copy. The
seed is printed; with SEED only that script runs. Status 1 at the first difference, 77 where an overlay
cannot be mounted here.

As root the tree has files that nobody may read; as another user DUMP has no capability either.
"""
import ctypes
import os
import random
import shutil
import stat
import subprocess
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
SKIPPED = 77
ROOT = "/home/x/tree"
OPERATIONS = 120


def mount(source, target, kind, options):
    if LIBC.mount(source.encode(), target.encode(), kind.encode(), 0, options.encode()) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"mount {kind}: {os.strerror(code)}")


def unmount(target):
    if LIBC.umount2(target.encode(), 2) != 0:
        raise OSError(ctypes.get_errno(), "umount")


def survey(top):
    """Everything below a directory: path -> (mode with type, size, content)."""
    found = {b".": (os.lstat(top).st_mode & ~0o6000, 0, None)}
    pending = [b""]
    while pending:
        at = pending.pop()
        for name in os.listdir(os.path.join(top, at) if at else top):
            path = os.path.join(at, name)
            full = os.path.join(top, path)
            st = os.lstat(full)
            content = None
            if stat.S_ISREG(st.st_mode):
                with open(full, "rb") as file:
                    content = file.read()
            elif stat.S_ISLNK(st.st_mode):
                content = os.readlink(full)
            elif stat.S_ISDIR(st.st_mode):
                pending.append(path)
            size = st.st_size if stat.S_ISREG(st.st_mode) else 0
            found[path] = (st.st_mode, size, content)
    return found


def expected(before, after):
    """The entries as DUMP prints them, in their order."""
    entries = []
    for path in sorted(set(before) | set(after), key=lambda p: p.split(b"/") if p != b"." else []):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        kind = "c" if old is None else "d" if new is None else "m"
        mode, size, content = new or old
        target = content if stat.S_ISLNK(mode) else b""
        entries.append((kind, mode, size, path, target))
    return entries


def drop_capabilities():
    LIBC.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)


def ask(dump, upper, lower, how):
    done = subprocess.run([dump, upper, lower, ROOT, how, "0"], capture_output=True, timeout=60,
                          preexec_fn=drop_capabilities, check=False)
    if done.returncode != 0:
        return [("failed", done.returncode, done.stderr)]
    fields = done.stdout.split(b"\0")
    end = len(fields) - 3
    if fields[end] != b"end" or fields[end + 1] != b"0" or end % 6 != 0:
        return [("not whole", fields[-6:])]
    return [(fields[i].decode(), int(fields[i + 1], 8), int(fields[i + 2]), fields[i + 4], fields[i + 5])
            for i in range(0, end, 6)]


class Script:
    """One script: makes a tree, then works in it."""

    def __init__(self, seed, strict):
        self.random = random.Random(seed)
        self.strict = strict  # every file of the lower tree can be read by its owner
        self.log = []
        odd = bytes(self.random.choice([b for b in range(1, 256) if b != 0x2F])
                    for _ in range(self.random.randint(1, 12)))
        names = [b"a", b"b", b"c", b"d", b".git", b"new\nline", b"...", b"*", b"\xff\xfe", b" ",
                 b"z" * 255, odd if odd not in (b".", b"..") else b"odd"]
        self.names = self.random.sample(names, self.random.randint(4, 9))

    def content(self):
        kind = self.random.randint(0, 5)
        if kind == 0:
            return b""
        if kind == 1:
            return bytes(self.random.randint(1, 200000))
        if kind == 2:
            return self.random.randbytes(self.random.randint(60000, 140000))
        return self.random.choice([b"x", b"y", b"xx", b"xy"]) * self.random.randint(1, 3)

    def mode(self, directory, lower):
        value = self.random.choice([0o755, 0o700, 0o500, 0o555, 0o777, 0o1777, 0o2755, 0o000, 0o311]
                                   if directory else [0o644, 0o600, 0o755, 0o4755, 0o400, 0o000, 0o222])
        if lower and self.strict:
            value |= 0o700 if directory else 0o600
        return value

    def make(self, top, path, lower):
        """A new file of any kind at a path."""
        full = os.path.join(top, path)
        kind = self.random.randint(0, 9)
        if kind <= 2:
            os.mkdir(full)
            os.chmod(full, self.mode(True, lower))
        elif kind <= 6:
            with open(full, "xb") as file:
                file.write(self.content())
            os.chmod(full, self.mode(False, lower))
        elif kind == 7:
            os.symlink(self.random.choice([b"a", b"../b", b"/etc/passwd", b"\x01\xff", b"../../.."]), full)
        elif kind == 8:
            os.mkfifo(full, 0o600)
        else:
            with open(full, "xb") as file:
                file.truncate(self.random.choice([1 << 20, 1 << 22]))
                file.seek(self.random.randint(0, 1 << 20))
                file.write(b"data")

    def paths(self, top, directories):
        found = [b""] if directories else []
        for at, dirs, files in os.walk(top):
            at = os.path.relpath(at, top)
            at = b"" if at == b"." else at
            found += [os.path.join(at, name) for name in dirs]
            if not directories:
                found += [os.path.join(at, name) for name in files]
        if directories:
            return [p for p in found if not os.path.islink(os.path.join(top, p))]
        return found

    def place(self, top):
        """A path that may or may not be there."""
        return os.path.join(self.random.choice(self.paths(top, True)), self.random.choice(self.names))

    def there(self, top):
        paths = self.paths(top, False)
        return self.random.choice(paths) if paths else self.random.choice(self.names)

    def populate(self, top):
        for _ in range(self.random.randint(0, 80)):
            path = self.place(top)
            try:
                if self.random.randint(0, 9) == 0:
                    os.link(os.path.join(top, self.there(top)), os.path.join(top, path),
                            follow_symlinks=False)
                else:
                    self.make(top, path, True)
            except OSError:
                pass

    def work(self, top):
        for _ in range(self.random.randint(1, self.random.choice([4, OPERATIONS]))):
            operation = self.random.choice(self.OPERATIONS)
            try:
                operation(self, top)
            except OSError as error:
                self.log.append((operation.__name__, "failed", error.strerror))

    def note(self, *words):
        self.log.append((sys._getframe(1).f_code.co_name, *words))

    def create(self, top):
        path = self.place(top)
        self.note(path)
        self.make(top, path, False)

    def regular(self, top):
        """A regular file that is there, and its content."""
        path = self.there(top)
        full = os.path.join(top, path)
        if not stat.S_ISREG(os.lstat(full).st_mode):
            raise OSError(0, "no regular file")
        return path, full

    def append(self, top):
        path, full = self.regular(top)
        self.note(path)
        with open(full, "ab") as file:
            file.write(self.random.choice([b"", b"+"]))

    def overwrite(self, top):
        """One byte in the middle, perhaps the same one; the size stays."""
        path, full = self.regular(top)
        size = os.lstat(full).st_size
        self.note(path)
        with open(full, "r+b") as file:
            file.seek(self.random.randint(0, max(size - 1, 0)))
            file.write(self.random.choice([b"\0", b"x"]))

    def truncate(self, top):
        path, full = self.regular(top)
        size = self.random.choice([0, 1, 5000, os.lstat(full).st_size])
        self.note(path, size)
        os.truncate(full, size)

    def rewrite_same(self, top):
        path, full = self.regular(top)
        self.note(path)
        with open(full, "rb") as file:
            content = file.read()
        mode = os.lstat(full).st_mode
        os.unlink(full)
        with open(full, "xb") as file:
            file.write(content)
        os.chmod(full, mode & 0o7777)

    def touch(self, top):
        path = self.there(top)
        self.note(path)
        os.utime(os.path.join(top, path), (1, 1), follow_symlinks=False)

    def chmod(self, top):
        path = self.there(top)
        full = os.path.join(top, path)
        st = os.lstat(full)
        if stat.S_ISLNK(st.st_mode):
            return
        mode = self.random.choice([stat.S_IMODE(st.st_mode), self.mode(stat.S_ISDIR(st.st_mode), False)])
        self.note(path, oct(mode))
        os.chmod(full, mode)

    def chmod_top(self, top):
        mode = self.random.choice([0o700, 0o755, 0o711])
        self.note(oct(mode))
        os.chmod(top, mode)

    def chmod_there_and_back(self, top):
        path = self.there(top)
        full = os.path.join(top, path)
        st = os.lstat(full)
        if stat.S_ISLNK(st.st_mode):
            return
        self.note(path)
        os.chmod(full, 0o777)
        os.chmod(full, stat.S_IMODE(st.st_mode))

    def remove(self, top):
        path = self.there(top)
        full = os.path.join(top, path)
        self.note(path)
        if stat.S_ISDIR(os.lstat(full).st_mode):
            self.random.choice([os.rmdir, shutil.rmtree])(full)
        else:
            os.unlink(full)

    def remake(self, top):
        """Remove a directory and make it again, perhaps with names that it had."""
        path = self.random.choice(self.paths(top, True))
        full = os.path.join(top, path)
        if not path:
            return
        self.note(path)
        names = os.listdir(full)
        mode = stat.S_IMODE(os.lstat(full).st_mode)
        shutil.rmtree(full)
        os.mkdir(full)
        os.chmod(full, self.random.choice([mode, 0o755]))
        for name in self.random.sample(names, min(len(names), self.random.randint(0, 2))):
            self.make(top, os.path.join(path, name), False)

    def replace(self, top):
        """Another kind of file in the same place."""
        path = self.there(top)
        full = os.path.join(top, path)
        self.note(path)
        if stat.S_ISDIR(os.lstat(full).st_mode):
            shutil.rmtree(full)
        else:
            os.unlink(full)
        self.make(top, path, False)

    def rename(self, top):
        old, new = self.there(top), self.random.choice([self.place, self.there])(top)
        self.note(old, new)
        os.rename(os.path.join(top, old), os.path.join(top, new))

    def move(self, top):
        """As mv does it where the overlay answers EXDEV."""
        old, new = self.there(top), self.place(top)
        self.note(old, new)
        if os.path.lexists(os.path.join(top, new)) or (new + b"/").startswith(old + b"/"):
            return
        subprocess.run(["mv", "-T", "--", os.path.join(top, old), os.path.join(top, new)],
                       stderr=subprocess.DEVNULL, check=False)

    def move_there_and_back(self, top):
        path = self.there(top)
        full = os.path.join(top, path)
        self.note(path)
        os.rename(full, os.path.join(top, b"aside"))
        os.rename(os.path.join(top, b"aside"), full)

    def link(self, top):
        old, new = self.there(top), self.place(top)
        self.note(old, new)
        os.link(os.path.join(top, old), os.path.join(top, new), follow_symlinks=False)

    def relink(self, top):
        """A symbolic link anew, perhaps with the same text."""
        path = self.there(top)
        full = os.path.join(top, path)
        text = os.readlink(full)
        self.note(path)
        os.unlink(full)
        os.symlink(self.random.choice([text, b"other"]), full)

    OPERATIONS = (create, create, append, overwrite, truncate, rewrite_same, touch, chmod, chmod_top,
                  chmod_there_and_back, remove, remove, remake, remake, replace, rename, rename, move,
                  move_there_and_back, link, relink)


def complain(seed, how, want, got, log):
    print(f"seed {seed}, {how}: the answer differs", file=sys.stderr)
    for entry in want:
        if entry not in got:
            print(f"  missing: {entry}", file=sys.stderr)
    for entry in got:
        if entry not in want:
            print(f"  wrong:   {entry}", file=sys.stderr)
    if sorted(map(repr, want)) == sorted(map(repr, got)):
        print(f"  the order:\n  {want}\n  {got}", file=sys.stderr)
    for line in log:
        print(f"  {line}", file=sys.stderr)


def run(dump, seed, base):
    script = Script(seed, os.geteuid() != 0)
    places = {name: os.path.join(base, name) for name in ("lower", "upper", "work", "seen")}
    mount("tmpfs", base, "tmpfs", "size=1g")
    try:
        for place in places.values():
            os.mkdir(place)
        script.populate(os.fsencode(places["lower"]))
        before = survey(os.fsencode(places["lower"]))
        mount("overlay", places["seen"], "overlay",
              f"userxattr,lowerdir={places['lower']},upperdir={places['upper']},workdir={places['work']}")
        try:
            script.work(os.fsencode(places["seen"]))
            after = survey(os.fsencode(places["seen"]))
            want = expected(before, after)
            for how, upper in (("layer", places["upper"]), ("whole", places["seen"])):
                got = ask(dump, upper, places["lower"], how)
                if got != want:
                    complain(seed, how, want, got, script.log)
                    return -1
            # Looking leaves the trees as they were.
            if survey(os.fsencode(places["seen"])) != after or \
                    survey(os.fsencode(places["lower"])) != before:
                print(f"seed {seed}: the look changed a tree", file=sys.stderr)
                return -1
        finally:
            unmount(places["seen"])
    finally:
        unmount(base)
    return len(want)


def inside(dump, count, seed, base):
    total = 0
    for number in range(seed, seed + count):
        found = run(dump, number, base)
        if found < 0:
            return 1
        total += found
    print(f"{count} scripts, {total} changes, seeds from {seed}")
    if count >= 20 and total < count:
        print("hardly anything was changed: the scripts test nothing", file=sys.stderr)
        return 1
    return 0


def can_mount(base):
    try:
        mount("tmpfs", base, "tmpfs", "")
        for name in ("lower", "upper", "work", "seen"):
            os.mkdir(f"{base}/{name}")
        mount("overlay", f"{base}/seen", "overlay",
              f"userxattr,lowerdir={base}/lower,upperdir={base}/upper,workdir={base}/work")
        unmount(f"{base}/seen")
        unmount(base)
    except OSError as error:
        print(f"skipped: {error}", file=sys.stderr)
        return False
    return True


def main():
    if len(sys.argv) == 6 and sys.argv[1] == "--inside":
        dump, count, seed, base = sys.argv[2:]
        return inside(dump, int(count), int(seed), base) if can_mount(base) else SKIPPED
    if len(sys.argv) not in (2, 3, 4):
        sys.exit(__doc__)
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.SystemRandom().randrange(1 << 30)
    if len(sys.argv) > 3:
        count = 1
    print(f"seed {seed}", flush=True)
    base = subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip()
    try:
        return subprocess.run(
            ["unshare", "-m", *(["-r"] if os.geteuid() == 0 else ["-U", "-c", "--keep-caps"]), sys.executable,
             "-I", os.path.abspath(__file__), "--inside", os.path.abspath(sys.argv[1]), str(count), str(seed),
             base], check=False).returncode
    finally:
        os.rmdir(base)


sys.exit(main())
