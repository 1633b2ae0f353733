#!/usr/bin/env python3
"""Holds the examples of the manual pages, as a reader sees them, against the sources of the pages.

usage: pages_check.py SOURCE_DIR

scdoc takes a backslash as a mark in examples too, so one that is meant to be read must be doubled.
Status 77 when there is no scdoc.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

SPECIAL = {"aq": "'", "dq": '"', "ha": "^", "ti": "~", "ga": "`", "bu": "\u2022", "rs": "\\"}


def in_source(text):
    """The examples of a page: lists of lines, without the marks of scdoc."""
    found = []
    for tabs, body in re.findall(r"^(\t*)```\n(.*?)^\1```$", text, re.M | re.S):
        lines = [line.removeprefix(tabs) for line in body.splitlines()]
        found.append([re.sub(r"\\(.)", r"\1", line) for line in lines if line.strip()])
    return found


def shown(line):
    """A line of roff outside of paragraphs, as it is printed."""
    def escape(match):
        if match[1]:
            return SPECIAL[match[1]]
        return {"\\": "\\", "e": "\\", "&": "", "-": "-"}[match[2]]
    return re.sub(r"\\(?:\((..)|(.))", escape, line)


def in_roff(text):
    found = []
    for body in re.findall(r"^\.nf\n\.RS 4\n(.*?)^\.fi\n\.RE$", text, re.M | re.S):
        found.append([shown(line) for line in body.splitlines() if line.strip()])
    return found


def check(page):
    text = page.read_text()
    faults = []
    for tabs, body in re.findall(r"^(\t*)```\n(.*?)^\1```$", text, re.M | re.S):
        for eaten in re.findall(r"\\[A-Za-z0-9]", body.replace("\\\\", "")):
            faults.append(f"an example has {eaten}, which is shown as {eaten[1]}; write \\{eaten}")
    roff = subprocess.run(["scdoc"], input=text, capture_output=True, text=True, timeout=60)
    if roff.returncode != 0:
        return [f"scdoc: {roff.stderr.strip()}"], 0
    source = in_source(text)
    try:
        rendered = in_roff(roff.stdout)
    except KeyError as unknown:
        return [f"an example has an escape that is not known: {unknown}"], 0
    if len(source) != len(rendered):
        faults.append(f"{len(source)} examples are written, {len(rendered)} are shown")
    for wanted, got in zip(source, rendered):
        if wanted != got:
            faults.append("\n".join(["an example is written", *wanted, "and shown as", *got]))
    return faults, len(rendered)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if not shutil.which("scdoc"):
        print("scdoc is not installed")
        return 77
    failed, count = False, 0
    for page in sorted((Path(sys.argv[1]) / "man").glob("*.scd")):
        faults, examples = check(page)
        count += examples
        for fault in faults:
            print(f"{page.name}: {fault}", file=sys.stderr)
            failed = True
    print(f"{count} examples")
    return 1 if failed or count < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
