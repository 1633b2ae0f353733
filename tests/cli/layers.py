#!/usr/bin/env python3
"""Random changes of a layer, by the kernel's overlayfs and from outside, and what each then sees.

layers.py change SEED TOP	changes the tree TOP at random
layers.py look TOP		prints it: a JSON object from path to type, mode, size, target, content
layers.py listed		the same from `agentbox list -r --json` on stdin, without contents
"""

import json
import os
import random
import stat
import sys

TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link", stat.S_IFIFO: "fifo"}


def all_below(top):
    found = []
    for where, dirs, files in os.walk(top):
        found += [os.path.join(where, name) for name in dirs + files]
    return sorted(found)


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        for name in os.listdir(path):
            remove(os.path.join(path, name))
        os.rmdir(path)
    else:
        os.unlink(path)


def one_change(rng, top):
    things = all_below(top)
    dirs = [top] + [p for p in things if os.path.isdir(p) and not os.path.islink(p)]
    where = os.path.join(rng.choice(dirs), rng.choice("abcdef:,") + rng.choice(["", "x", "\udcff"]))
    kind = rng.randrange(9)
    if kind <= 1 and things:
        remove(rng.choice(things))
    elif kind == 2 and not os.path.lexists(where):
        os.mkdir(where)
    elif kind == 3 and not os.path.lexists(where):
        os.symlink(rng.choice(["a", "../b", "/etc/passwd", "c/d"]), where)
    elif kind == 4 and things:
        path = rng.choice(things)
        if not os.path.islink(path):
            os.chmod(path, rng.choice([0o700, 0o755] if os.path.isdir(path) else [0o600, 0o644, 0o755]))
    elif kind == 5 and things:
        path = rng.choice(things)
        if not os.path.isdir(path) and not os.path.isdir(where):
            os.rename(path, where)
    elif kind == 6 and len(dirs) > 1:
        path = rng.choice(dirs[1:])
        remove(path)
        os.mkdir(path)
    elif not os.path.isdir(where):
        if os.path.islink(where):
            os.unlink(where)
        with open(where, "w") as out:
            out.write("x" * rng.randrange(50))


def look(top):
    found = {}
    for path in all_below(top):
        st = os.lstat(path)
        kind = TYPES[stat.S_IFMT(st.st_mode)]
        found[os.path.relpath(path, top)] = [
            kind, f"{st.st_mode & 0o7777:04o}", st.st_size if kind == "file" else None,
            os.readlink(path) if kind == "link" else None]
    return found


def shown(name):
    """As JSON of agentbox has a name: bytes that are not UTF-8 as four characters."""
    return "".join(f"\\x{ord(c) - 0xdc00:02x}" if 0xdc80 <= ord(c) <= 0xdcff else c for c in name)


def main():
    if sys.argv[1] == "change":
        rng = random.Random(int(sys.argv[2]))
        for _ in range(40):
            one_change(rng, sys.argv[3])
    elif sys.argv[1] == "look":
        json.dump({shown(k): v for k, v in look(sys.argv[2]).items()}, sys.stdout, indent=0, sort_keys=True)
    else:
        entries = json.load(sys.stdin)["entries"]
        json.dump({e["path"]: [e["type"], e["mode"], e["size"], e["target"]] for e in entries},
                  sys.stdout, indent=0, sort_keys=True)


main()
