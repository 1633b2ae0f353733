#!/usr/bin/env python3
"""Makes one tar archive of a kind that must be refused, or that must not, on stdout.

archives.py KIND [ARG]		an unknown KIND lists them all
"""

import io
import sys
import tarfile


def entry(name, kind=tarfile.REGTYPE, data=b"x", link="", **more):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    info.mode = 0o755 if kind == tarfile.DIRTYPE else 0o644
    info.size = len(data) if kind in (tarfile.REGTYPE, tarfile.AREGTYPE) else 0
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


DIR, LINK, HARD = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE

# Each has one entry before that is fine; the last is the one at fault.
BAD = {
    "dotdot": [entry("../a")],
    "dotdot-inside": [entry("d/../../a")],
    "dotdot-end": [entry("d/..", DIR)],
    "absolute": [entry("/tmp/agentbox-never")],
    "empty": [entry("")],
    "dot-file": [entry(".")],
    "through-link": [entry("l", LINK, link="/etc"), entry("l/c")],
    "through-inside-link": [entry("d", DIR), entry("l", LINK, link="d"), entry("l/c")],
    "through-deep-link": [entry("d", DIR), entry("d/l", LINK, link="../.."), entry("d/l/x/y")],
    "directory-over-link": [entry("l", LINK, link="/etc"), entry("l", DIR)],
    "link-over-directory": [entry("d", DIR), entry("d/f"), entry("d", LINK, link="/etc")],
    "file-over-link": [entry("l", LINK, link="/etc/passwd"), entry("l")],
    "through-file": [entry("f"), entry("f/x")],
    "hard-out": [entry("h", HARD, link="/etc/passwd")],
    "hard-dotdot": [entry("h", HARD, link="../../etc/passwd")],
    "hard-nothing": [entry("h", HARD, link="later"), entry("later")],
    "hard-to-link": [entry("l", LINK, link="/etc/passwd"), entry("h", HARD, link="l")],
    "hard-through-link": [entry("l", LINK, link="/etc"), entry("h", HARD, link="l/passwd")],
    "hard-to-directory": [entry("d", DIR), entry("h", HARD, link="d")],
    "hard-empty": [entry("h", HARD, link="")],
    "fifo": [entry("p", tarfile.FIFOTYPE)],
    "block": [entry("b", tarfile.BLKTYPE, devmajor=8, devminor=0)],
    "character": [entry("c", tarfile.CHRTYPE, devmajor=1, devminor=3)],
    "whiteout": [entry("w", tarfile.CHRTYPE, devmajor=0, devminor=0)],
    "long-name": [entry("n" * 300)],
    "long-path": [entry("/".join(["d" * 100] * 50))],
    "through-tree-link": [entry("treelink/x")],
    "over-tree-directory": [entry("treedir")],
    "over-tree-file": [entry("treefile", DIR)],
}

GOOD = {
    "plain": [entry("d", DIR), entry("d/f", data=b"hello"), entry("l", LINK, link="/etc"), entry("./x"),
              entry("d/h", HARD, link="d/f"), entry("q/r/s")],
    "twice": [entry("f", data=b"old"), entry("f", data=b"new"), entry("h", HARD, link="f"),
              entry("f", data=b"third")],
    "bits": [entry("s", mode=0o6755), entry("t", DIR, mode=0o7777), entry("ro", DIR, mode=0o555), entry("ro/f")],
    "names": [entry("a:b,c"), entry("\udcff\udcfe"), entry("\u00e4\u20ac"), entry("\n"), entry("-"),
              entry("n" * 255), entry("/".join(["p" * 60] * 10)), entry("l" * 150, LINK, link="t" * 500),
              entry("back\\slash")],
    "mode-last": [entry("z/y/f"), entry("z/y", DIR, mode=0o500), entry("z", DIR, mode=0o500)],
}


def main():
    kind = sys.argv[1]
    if kind == "large":
        entries = [entry("big", data=b"\0" * int(sys.argv[2]))]
    elif kind == "many":
        entries = [entry(f"{i}", data=b"") for i in range(int(sys.argv[2]))]
    elif kind == "sparse":  # GNU sparse 1.0: a size that only the header claims
        entries = [entry("bomb", data=b"0\n".ljust(512, b"\0"), pax_headers={
            "GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "bomb",
            "GNU.sparse.realsize": sys.argv[2]})]
    elif kind in BAD:
        entries = [entry("fine", data=b"first")] + BAD[kind]
    elif kind in GOOD:
        entries = GOOD[kind]
    else:
        sys.exit("\n".join(BAD))
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.PAX_FORMAT,
                      errors="surrogateescape", encoding="utf-8") as out:
        for info, data in entries:
            out.addfile(info, io.BytesIO(data) if info.size else None)


main()
