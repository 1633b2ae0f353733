#!/usr/bin/env python3
"""Kept results of random trees: what `agentbox apply` and `agentbox diff --patch` make of them.

usage: apply_model.py PLACE random FIRST_SEED COUNT
       apply_model.py PLACE kill SEED STEP
       apply_model.py PLACE deep DEPTH
       apply_model.py PLACE many COUNT

PLACE is an empty directory. In the environment: AGENTBOX, the program, and AGENTBOX_PROBES, the
directory of probe-keep and probe-killat. As root it has to run where /var/lib is its own.

random: the host's tree becomes exactly the one that the box saw, and git makes the same of the patch.
kill: apply is killed before every STEPth of its system calls; each file is then as before or as
after, and the next apply brings all to its end. deep, many: trees that are deep, or wide.
"""

import os
import random
import shutil
import stat
import subprocess
import sys

AGENTBOX = os.environ["AGENTBOX"]
PROBES = os.environ["AGENTBOX_PROBES"]
NAMES = [b"a", b"b", b"c d", b"e.txt", b"a-b", b"a.b", b"\xc3\xa9", b'q"t', b"t\tb", b"n\nl", b"-x",
         b"back\\s", b"\xff\xfe", b" lead", b"trail ", b"\x1b]0;t", b"z" * 255]


class Tree:
    """Random work on the tree at `top`."""

    def __init__(self, rng, top, wild):
        self.rng, self.top, self.wild = rng, top, wild

    def content(self):
        rng = self.rng
        kind = rng.randrange(8)
        if kind == 0:
            return b""
        if kind == 1:
            return bytes(rng.randrange(256) for _ in range(rng.randrange(1, 400)))
        if kind == 2:
            return b"\0" * rng.choice([1, 51, 52, 53, 65535, 65536, 200000]) + b"end"
        lines = [rng.choice([b"one", b"two", b"three", b"", b"  x", b"\\ y", b"-- z", b"cr\r"])
                 for _ in range(rng.randrange(1, 60))]
        return b"\n".join(lines) + rng.choice([b"", b"\n"])

    def edited(self, old):
        lines = old.split(b"\n")
        for _ in range(self.rng.randrange(1, 6)):
            at = self.rng.randrange(len(lines) + 1)
            lines[at:at + self.rng.randrange(3)] = [b"new"] * self.rng.randrange(3)
        return b"\n".join(lines)

    def all(self, dirs):
        found = [self.top] if dirs else []
        for here, below, files in os.walk(self.top):
            found += [os.path.join(here, n) for n in (below if dirs else files + [
                n for n in below if os.path.islink(os.path.join(here, n))])
                if dirs != os.path.islink(os.path.join(here, n)) or not dirs]
        return sorted(found)

    def place(self):
        return os.path.join(self.rng.choice(self.all(True)), self.rng.choice(NAMES))

    def remove(self, path):
        if os.path.islink(path) or not os.path.isdir(path):
            if os.path.lexists(path):
                os.unlink(path)
        elif path != self.top:
            shutil.rmtree(path)

    def write(self, path, data):
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, self.rng.choice([0o644, 0o755, 0o600, 0o640] + ([0o444, 0o500] if self.wild else [])))

    def make(self):
        path = self.place()
        if os.path.lexists(path):
            if not self.wild and os.path.isdir(path) and not os.path.islink(path):
                return
            self.remove(path)
        kind = self.rng.randrange(6)
        if kind < 3:
            self.write(path, self.content())
        elif kind == 3:
            os.symlink(self.rng.choice([b"a", b"../x", b"/etc/passwd", b"\xff \n", b"l" * 200]), path)
        else:
            os.mkdir(path)

    def change(self):
        rng = self.rng
        kind = rng.randrange(8)
        files = self.all(False)
        if not files or kind < 3:
            return self.make()
        path = rng.choice(files)
        if kind == 3:
            self.remove(path)
        elif kind == 4 and not os.path.islink(path):
            with open(path, "rb") as file:
                old = file.read()
            self.remove(path)
            self.write(path, self.edited(old))
        elif kind == 5 and not os.path.islink(path):
            os.chmod(path, rng.choice([0o644, 0o755]))
        elif kind == 6:
            dirs = self.all(True)
            self.remove(rng.choice(dirs))
        elif kind == 7 and self.wild:
            os.chmod(rng.choice(self.all(True)[1:] or [self.top]), rng.choice([0o755, 0o700, 0o750]))

    def lock(self):
        """Modes that are in the way, at last."""
        for path in self.all(True)[1:]:
            if self.rng.randrange(4) == 0:
                os.chmod(path, self.rng.choice([0o555, 0o511, 0o500, 0o1777]))


def look(path, how):
    st = os.lstat(path)
    if stat.S_ISLNK(st.st_mode):
        return ("link", os.readlink(path))
    if stat.S_ISDIR(st.st_mode):
        return ("dir", stat.S_IMODE(st.st_mode))
    with open(path, "rb") as file:
        data = file.read()
    if how == "git":
        return ("file", st.st_mode & 0o100, data)
    return ("file", stat.S_IMODE(st.st_mode), data)


def snapshot(top, how="all"):
    found = {}
    for here, dirs, files in os.walk(top):
        for name in dirs + files:
            path = os.path.join(here, name)
            entry = look(path, how)
            if how != "git" or entry[0] != "dir":
                found[os.path.relpath(path, top)] = entry
    return found


def unlock(top):
    for here, dirs, _ in os.walk(top):
        for name in dirs:
            path = os.path.join(here, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)


def clear(top):
    if os.path.exists(top):
        unlock(top)
        shutil.rmtree(top)


def copy(source, target):
    clear(target)
    subprocess.run(["cp", "-a", source, target], check=True)


def differ(got, want):
    for path in sorted(set(got) | set(want)):
        if got.get(path) != want.get(path):
            show = [str(e)[:300] for e in (got.get(path), want.get(path))]
            return f"{path!r}: got {show[0]}, want {show[1]}"
    return None


class Model:
    def __init__(self, place):
        self.place = place
        self.before, self.after, self.work = (os.path.join(place, n) for n in
                                              (b"before", b"after", b"work"))
        self.state = self.make_state()
        self.made = 0

    def make_state(self):
        if os.geteuid() == 0:
            shutil.rmtree("/var/lib/agentbox", ignore_errors=True)
            return "/var/lib/agentbox"
        os.environ["XDG_STATE_HOME"] = os.path.join(os.fsdecode(self.place), "state")
        return os.environ["XDG_STATE_HOME"] + "/agentbox"

    def trees(self, seed, wild):
        rng = random.Random(seed)
        for path in (self.before, self.after, self.work):
            clear(path)
        os.mkdir(self.before)
        tree = Tree(rng, self.before, wild)
        for _ in range(rng.randrange(5, 40)):
            tree.make()
        copy(self.before, self.after)
        tree = Tree(rng, self.after, wild)
        for _ in range(rng.randrange(1, 30)):
            tree.change()
        if wild:
            Tree(rng, self.before, wild).lock()
            tree.lock()
        copy(self.before, self.work)

    def keep(self):
        self.made += 1
        self.id = f"01{self.made:024d}"
        done = subprocess.run([f"{PROBES}/probe-keep", self.state, self.id, self.work, self.after],
                              capture_output=True, timeout=300)
        if done.returncode != 0:
            sys.exit(f"probe-keep: {done.stderr!r}")
        return self.id

    def agentbox(self, *words, before=()):
        return subprocess.run([*before, AGENTBOX, *words], capture_output=True, timeout=300)

    def apply(self, *words):
        done = self.agentbox("apply", self.id, *words)
        if done.returncode != 0:
            return f"apply: status {done.returncode}: {done.stderr.decode(errors='replace')[:2000]}"
        return None

    def check_apply(self, seed):
        self.trees(seed, True)
        self.keep()
        want, start = snapshot(self.after), snapshot(self.work)
        fault = self.apply("-n") or differ(snapshot(self.work), start) or self.apply("--allow-sensitive")
        fault = fault or differ(snapshot(self.work), want)
        if fault is None and os.path.exists(f"{self.state}/kept/{self.id}"):
            fault = "the kept result is still there"
        return fault or self.times()

    def times(self):
        for here, _, files in os.walk(self.work):
            for name in files:
                path = os.path.join(here, name)
                other = os.path.join(self.after, os.path.relpath(path, self.work))
                st, want = os.lstat(path), os.lstat(other)
                if st.st_mtime_ns != want.st_mtime_ns and not self.was(path, want):
                    return f"{path!r}: another time"
        return None

    def was(self, path, want):
        """Only its mode changed, so its time is what it was."""
        old = os.path.join(self.before, os.path.relpath(path, self.work))
        return os.path.lexists(old) and look(old, "all")[0::2] == look(path, "all")[0::2]

    def check_patch(self, seed):
        self.trees(seed, False)
        self.keep()
        want = snapshot(self.after, "git")
        done = self.agentbox("diff", self.id, "--patch")
        if done.returncode != 0:
            return f"diff: {done.stderr!r}"
        for flag in ("--stat", "--json"):
            other = self.agentbox("diff", self.id, flag)
            if other.returncode != 0 or other.stderr:
                return f"diff {flag}: {other.stderr!r}"
        # git knows no empty directories, and so removes none for a file that takes the place.
        for here, _, _ in os.walk(self.work, topdown=False):
            if here != self.work and not os.listdir(here):
                os.rmdir(here)
        if done.stdout:
            patch = subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], input=done.stdout, cwd=self.work,
                                   capture_output=True, timeout=60,
                                   env={**os.environ, "GIT_CEILING_DIRECTORIES": os.fsdecode(self.place)})
            if patch.returncode != 0:
                return f"git apply: {patch.stderr.decode(errors='replace')[:2000]}\n{done.stdout[:3000]!r}"
        return differ(snapshot(self.work, "git"), want)

    def random(self, first, count):
        for seed in range(first, first + count):
            fault = self.check_apply(seed)
            if fault:
                sys.exit(f"seed {seed}, apply: {fault}")
            fault = self.check_patch(seed)
            if fault:
                sys.exit(f"seed {seed}, patch: {fault}")

    def kill(self, seed, step):
        self.trees(seed, True)
        want, start = snapshot(self.after), snapshot(self.before)
        at, killed = 1, 0
        while True:
            copy(self.before, self.work)
            self.keep()
            done = self.agentbox("apply", self.id, "--allow-sensitive", before=[f"{PROBES}/probe-killat", str(at)])
            if done.returncode == 1:
                break
            if done.returncode != 0:
                sys.exit(f"probe-killat: {done.returncode} {done.stderr!r}")
            killed += 1
            fault = self.between(snapshot(self.work), start, want) or self.end()
            fault = fault or differ(snapshot(self.work), want)
            if fault:
                sys.exit(f"seed {seed}, killed at call {at}: {fault}")
            at += step
        fault = differ(snapshot(self.work), want)
        if fault or killed < 100 // step:
            sys.exit(f"seed {seed}: {killed} calls, {fault}")
        print(f"killed at {killed} of {at - 1} calls")

    def end(self):
        """The next apply. (Where the first one had removed the kept result, there is nothing to do.)"""
        if not os.path.exists(f"{self.state}/kept/{self.id}"):
            return None
        return self.apply("--allow-sensitive")

    def between(self, got, start, want):
        for path in set(got) | set(start) | set(want):
            have = got.get(path)
            if ".agentbox-apply-" in os.fsdecode(path):
                continue
            if have == start.get(path) or have == want.get(path):
                continue
            # A directory may be lent the permission to be written.
            if have and have[0] == "dir" and os.geteuid() != 0 and \
                    (have[1] | 0o700) in {e[1] | 0o700 for e in (start.get(path), want.get(path)) if e}:
                continue
            return f"{path!r} is neither as before nor as after: {str(have)[:300]}"
        return None

    def tell(self, words):
        done = subprocess.run(["diff", "-r", "--no-dereference", self.work, self.after], capture_output=True)
        if done.returncode != 0:
            sys.exit(f"{words}: {done.stdout[:500]!r}")

    def deep(self, depth):
        for path in (self.work, self.after):
            os.mkdir(path)
        here = os.getcwd()
        os.chdir(self.after)
        for level in range(depth):
            os.mkdir("d")
            os.chdir("d")
            if level % 100 == 0:
                with open("f", "w") as file:
                    file.write(str(level))
        os.chdir(here)
        self.keep()
        fault = self.apply()
        if fault:
            sys.exit(fault)
        levels = self.levels()
        if levels != (depth, (depth + 99) // 100):
            sys.exit(f"deep: {levels}")
        # And back: all of it goes.
        self.work, self.after = self.after, self.work
        os.rename(self.work, os.path.join(self.place, b"full"))
        self.work = os.path.join(self.place, b"full")
        self.after = os.path.join(self.place, b"empty")
        os.mkdir(self.after)
        self.keep()
        fault = self.apply()
        if fault or os.listdir(self.work):
            sys.exit(f"deep, deleting: {fault}")

    def levels(self):
        here, levels, files = os.getcwd(), 0, 0
        os.chdir(self.work)
        while os.path.isdir("d"):
            os.chdir("d")
            levels += 1
            files += os.path.exists("f")
        os.chdir(here)
        return levels, files

    def many(self, count):
        for path in (self.work, self.after):
            os.mkdir(path)
        for i in range(count):
            if i % 1000 == 0:
                for path in (self.work, self.after):
                    os.mkdir(os.path.join(path, b"%d" % (i // 1000)))
            with open(os.path.join(self.after, b"%d/%d" % (i // 1000, i)), "w") as file:
                file.write(str(i))
        self.keep()
        fault = self.apply()
        if fault:
            sys.exit(fault)
        self.tell("many")


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    model = Model(os.fsencode(sys.argv[1]))
    numbers = [int(word) for word in sys.argv[3:]]
    getattr(model, sys.argv[2])(*numbers)


main()
