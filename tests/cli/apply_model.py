#!/usr/bin/env python3
"""Kept results of random trees: what `agentbox apply` and `agentbox diff --patch` make of them.

usage: apply_model.py PLACE random FIRST_SEED COUNT
       apply_model.py PLACE box FIRST_SEED COUNT
       apply_model.py PLACE kill SEED STEP
       apply_model.py PLACE moment COUNT
       apply_model.py PLACE race ROUNDS
       apply_model.py PLACE swap ROUNDS
       apply_model.py PLACE deep DEPTH
       apply_model.py PLACE many COUNT

PLACE is an empty directory. In the environment: AGENTBOX, the program, and AGENTBOX_PROBES, the
directory of probe-keep and probe-killat. As root it has to run where /var/lib is its own.

random: the host's tree becomes exactly the one that the box saw, with all times and hard links, and git
makes the same of the patch.
box: the work is done in a real box, whose own look at its tree at the end is what the host's must be
after an apply; in every fourth one the workspace is a copy.
kill: apply is killed before every STEPth of its system calls; each file is then as before or as
after, and the next apply brings all to its end. moment: others replace, make or remove
a file between apply's look at it and what it does then, COUNT times. race: others do that while apply is
at work, whenever it comes; what they wrote last is there in the end. swap: others move the directories meanwhile; nothing
of apply's is left in them that it does not name. deep, many: trees that are deep, or wide.
"""

import hashlib
import json
import os
import random
import shutil
import stat
import subprocess
import sys

AGENTBOX = os.environ.get("AGENTBOX")
PROBES = os.environ.get("AGENTBOX_PROBES")
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
        kind = self.rng.randrange(7)
        files = [p for p in self.all(False) if not os.path.islink(p)] if kind == 6 and self.wild else []
        if files:
            os.link(self.rng.choice(files), path)
        elif kind < 3 or kind == 6:
            self.write(path, self.content())
        elif kind == 3:
            os.symlink(self.rng.choice([b"a", b"../x", b"/etc/passwd", b"\xff \n", b"l" * 200]), path)
        else:
            os.mkdir(path)

    def change(self):
        rng = self.rng
        kind = rng.randrange(10)
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
            os.chmod(rng.choice(self.all(True)), rng.choice([0o755, 0o700, 0o750]))
        elif kind == 8 and self.wild:
            when = rng.randrange(1 << 40)
            os.utime(rng.choice(files + self.all(True)), ns=(when, when), follow_symlinks=False)
        elif kind == 9 and not os.path.islink(path):
            mode = os.lstat(path).st_mode
            os.chmod(path, 0o600)
            with open(path, "ab") as file:
                file.write(b"more")
            os.chmod(path, mode & 0o7777)

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


def everything(top):
    """All paths of a tree, with its own."""
    yield b"."
    for here, dirs, files in os.walk(top):
        for name in dirs + files:
            yield os.path.relpath(os.path.join(here, name), top)


def exact(got, want, dirs=True):
    """What a snapshot does not have: the times, the modes of the tops, and the hard links."""
    linked = ({}, {})
    for path in everything(want):
        st = [os.lstat(os.path.join(top, path)) for top in (got, want)]
        if st[0].st_mtime_ns != st[1].st_mtime_ns and (dirs or not stat.S_ISDIR(st[0].st_mode)):
            return f"{path!r}: the time is {st[0].st_mtime_ns}, not {st[1].st_mtime_ns}"
        if stat.S_ISREG(st[0].st_mode):
            for files, one in zip(linked, st):
                files.setdefault((one.st_ino, one.st_nlink), set()).add(path)
    groups = [{(frozenset(names), key[1]) for key, names in files.items()} for files in linked]
    if groups[0] != groups[1]:
        return f"hard links: {groups[0] - groups[1]}, not {groups[1] - groups[0]}"
    modes = [stat.S_IMODE(os.stat(top).st_mode) for top in (got, want)]
    return f"the tree's own mode is {modes[0]:o}, not {modes[1]:o}" if modes[0] != modes[1] else None


def survey(top):
    """What there is to see of a tree: path -> [type, mode, time, content], and which names are one file."""
    found, files, counts = {}, {}, {}
    for path in everything(top):
        full = os.path.join(top, path)
        st = os.lstat(full)
        if stat.S_ISLNK(st.st_mode):
            seen = ["link", 0, os.readlink(full).hex()]
        elif stat.S_ISDIR(st.st_mode):
            seen = ["dir", stat.S_IMODE(st.st_mode) & 0o1777, ""]
        else:
            files.setdefault(st.st_ino, []).append(path.hex())
            counts[path.hex()] = st.st_nlink
            with open(full, "rb") as file:
                seen = ["file", stat.S_IMODE(st.st_mode), hashlib.sha256(file.read()).hexdigest()]
        found[path.hex()] = seen + [st.st_mtime_ns]
    linked = sorted(sorted(names) for names in files.values() if len(names) > 1)
    return {"found": found, "linked": linked, "counts": counts}


def inside(seed):
    """The part of the box. A step that the modes do not allow ends where it is."""
    rng = random.Random(seed)
    tree = Tree(rng, b".", True)
    for _ in range(rng.randrange(1, 30)):
        try:
            tree.change()
        except PermissionError:
            pass
    os.chmod(b".", rng.choice([0o755, 0o700, 0o711]))
    if rng.randrange(2):
        tree.lock()
    json.dump(survey(b"."), sys.stdout)


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
        return fault or exact(self.work, self.after)

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
        print(f"seeds {first} to {first + count - 1}")

    def box(self, first, count):
        policy = os.path.join(self.place, b"policy.yaml")
        with open(__file__, "rb") as file:
            script = file.read()
        for seed in range(first, first + count):
            self.trees(seed, True)
            backend = "copy" if seed % 4 == 0 else "overlay"
            with open(policy, "w") as file:
                file.write(f"version: 1\nfilesystem: {{workspace: overlay, backend: {backend}}}\n")
            start = survey(self.work)
            done = subprocess.run([AGENTBOX, "run", "--keep-changes", "--stdin", "-p", policy, "--", "/usr/bin/python3", "-", "-",
                                   "inside", str(seed)], input=script, capture_output=True, timeout=300, cwd=self.work)
            result = json.loads(done.stdout)
            if result.get("exit_code") != 0 or [w for w in result["warnings"] if w["code"] != "overlay_copied"]:
                sys.exit(f"seed {seed}, box: {done.stdout[:2000]!r} {done.stderr[:2000]!r}")
            want, self.id = json.loads(result["stdout"]), result["id"]
            fault = self.apply("--allow-sensitive")
            fault = fault or self.alike(start, survey(self.work), want)
            if fault:
                sys.exit(f"seed {seed}, box with {backend}: {fault}")
        print(f"seeds {first} to {first + count - 1}")

    def alike(self, start, got, want):
        fault = differ(got["found"], want["found"])
        if fault:
            return fault
        # overlayfs makes a file of its own of a name that is opened for writing: where nothing came
        # of that the host's names are still one file.
        untouched = [[name for name in names if got["found"].get(name) == start["found"][name]]
                     for names in start["linked"]]
        # It also shows a new link to a file of the tree below under another inode number than that
        # file; only the count of names tells then.
        for names in got["linked"]:
            if names not in want["linked"] and not any(set(names) <= set(other) for other in untouched) and \
                    any(want["counts"][name] != len(names) for name in names):
                return f"hard links: {names}"
        for names in want["linked"]:
            if not any(set(names) <= set(other) for other in got["linked"]):
                return f"no hard links: {names}"
        return None

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
            # What an apply that was taken back has done to the times of directories stays.
            fault = fault or differ(snapshot(self.work), want) or exact(self.work, self.after, False)
            if fault:
                sys.exit(f"seed {seed}, killed at call {at}: {fault}")
            at += step
        fault = differ(snapshot(self.work), want) or exact(self.work, self.after)
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

    def files(self, rng, dirs):
        """A tree of which all is to be changed, made and removed."""
        for path in (self.before, self.after, self.work):
            clear(path)
            os.mkdir(path)
        for here in dirs:
            for top in (self.before, self.after):
                os.makedirs(os.path.join(top, here), exist_ok=True)
            for number in range(12):
                name = os.path.join(here, b"f%d" % number)
                kind = rng.randrange(3)
                for top, text, wanted in ((self.before, b"old", kind != 0), (self.after, b"box", kind != 1)):
                    if wanted:
                        with open(os.path.join(top, name), "wb") as file:
                            file.write(text)
        copy(self.before, self.work)
        self.keep()

    def beside(self, work):
        """Run work() over and over in another process while apply runs; apply's status and the words."""
        ends, tells = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            os.close(ends[1])
            os.set_blocking(ends[0], False)
            last = {}
            while True:
                last = work() or last
                try:
                    if os.read(ends[0], 1) == b"":
                        break
                except BlockingIOError:
                    pass
            with os.fdopen(tells[1], "w") as file:
                json.dump(last, file)
            os._exit(0)
        os.close(ends[0])
        os.close(tells[1])
        done = self.agentbox("apply", self.id)
        os.close(ends[1])
        with os.fdopen(tells[0]) as file:
            last = json.load(file)
        os.waitpid(child, 0)
        return done, last

    def left(self):
        return [path for path in everything(self.work) if b".agentbox-apply-" in path]

    def moment(self, count):
        """What others do: write a file anew; with what apply had to do with it: change, remove, make it."""
        for before, after in ((b"old", b"box"), (b"old", None), (None, b"box"), (b"old", "dir"), (b"old", "link")):
            for times in range(1, count + 1):
                for path in (self.before, self.after, self.work):
                    clear(path)
                    os.mkdir(path)
                name = os.path.join(self.after, b"f")
                if before:
                    with open(os.path.join(self.before, b"f"), "wb") as file:
                        file.write(before)
                if after == "dir":
                    os.mkdir(name)
                elif after == "link":
                    os.symlink("elsewhere", name)
                elif after:
                    with open(name, "wb") as file:
                        file.write(after)
                copy(self.before, self.work)
                self.keep()
                work, done = os.fsdecode(self.work), os.path.join(os.fsdecode(self.place), "done")
                clear(done)
                os.mkdir(done)
                others = (f"n=$(ls {done} | wc -l); [ $n -ge {times} ] || {{ : >{done}/$n; echo host $n >{work}/.own; "
                          f"[ ! -d {work}/f ] || rmdir {work}/f; mv -T {work}/.own {work}/f; }}")
                ran = self.agentbox("apply", self.id, before=[f"{PROBES}/probe-killat", "-b", others])
                words = f"{before} to {after}, {times} times: "
                if ran.returncode != 0:
                    sys.exit(f"{words}{ran.returncode} {ran.stderr!r}")
                last = len(os.listdir(done)) - 1
                found = {p: e for p, e in snapshot(self.work).items() if p != b".own"}
                if list(found) != [b"f"] or found[b"f"][0] != "file" or found[b"f"][2] != f"host {last}\n".encode():
                    sys.exit(f"{words}host {last} was written last, and there is {found}")
                if b"conflict" not in ran.stderr:
                    sys.exit(f"{words}{ran.stderr!r}")

    def race(self, rounds):
        written = untouched = 0
        for seed in range(rounds):
            rng = random.Random(seed)
            dirs = [b"a", b"b/c"]
            self.files(rng, dirs)
            last, count, few = {}, [0], rng.choice([1, 3, 12])

            def work():
                count[0] += 1
                name = os.path.join(rng.choice(dirs), b"f%d" % rng.randrange(few))
                with open(os.path.join(self.work, b".own"), "w") as file:
                    file.write(f"host {count[0]}")
                os.rename(os.path.join(self.work, b".own"), os.path.join(self.work, name))
                last[name.decode()] = f"host {count[0]}"
                return last

            done, last = self.beside(work)
            if done.returncode not in (0, 1):
                sys.exit(f"seed {seed}: status {done.returncode}: {done.stderr!r}")
            if self.left():
                sys.exit(f"seed {seed}: left: {self.left()}")
            found = {p.decode(): e[2].decode() for p, e in snapshot(self.work).items() if e[0] == "file"}
            for name, text in last.items():
                if found.get(name) != text:
                    sys.exit(f"seed {seed}: {name}: {text!r} was written last, and there is {found.get(name)!r}")
            want = {p.decode(): e[2].decode() for p, e in snapshot(self.after).items() if e[0] == "file"}
            for name in (set(found) | set(want)) - set(last) - {".own"}:
                if found.get(name) != want.get(name):
                    sys.exit(f"seed {seed}: {name}: {found.get(name)!r} in place of {want.get(name)!r}")
                untouched += 1
            written += len(last)
        print(f"{written} files were written meanwhile, {untouched} not")

    def swap(self, rounds):
        named = 0
        for seed in range(rounds):
            rng = random.Random(seed)
            dirs = [b"a", b"b", b"c/d", b"c/e"]
            self.files(rng, dirs)

            def work():
                one, other = (os.path.join(self.work, p) for p in rng.sample([b"a", b"b", b"c"], 2))
                os.rename(one, os.path.join(self.work, b"moving"))
                os.rename(other, one)
                os.rename(os.path.join(self.work, b"moving"), other)

            done, _ = self.beside(work)
            if done.returncode not in (0, 1, 125):
                sys.exit(f"seed {seed}: status {done.returncode}: {done.stderr!r}")
            # What it does not find among directories that move all the time, it names; what it could
            # not search to the end, it leaves to the next one.
            if done.returncode == 125:
                self.agentbox("apply", self.id)
            for path in self.left():
                if done.returncode == 125 or os.path.basename(path) not in done.stderr:
                    sys.exit(f"seed {seed}: left: {path!r}: {done.stderr!r}")
                os.unlink(os.path.join(self.work, path))
                named += 1
            for path, entry in snapshot(self.work).items():
                if entry[0] == "file" and entry[2] not in (b"old", b"box"):
                    sys.exit(f"seed {seed}: {path!r} has {entry[2]!r}")
        print(f"{named} named")

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
    if sys.argv[2] == "inside":
        return inside(int(sys.argv[3]))
    model = Model(os.fsencode(sys.argv[1]))
    numbers = [int(word) for word in sys.argv[3:]]
    getattr(model, sys.argv[2])(*numbers)


main()
