#!/usr/bin/env python3
"""Hold the table of error codes and the result's manual page to each other.

usage: errors_check.py AGENTBOX SOURCE_DIR

AGENTBOX dump errors prints the table. The manual has an entry "*code* (status)" for each in its
section ERROR CODES, with the table's meaning. The exit status is 1 when they differ.
"""

import re
import subprocess
import sys
from pathlib import Path

ENTRY = re.compile(r"^\*([a-z0-9_]+)\* \((\d+)\)$")


def main():
    agentbox, source = sys.argv[1], Path(sys.argv[2])
    lines = subprocess.run(
        [agentbox, "dump", "errors"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    table = {}
    for line in lines:
        name, status, meaning = line.split("\t")
        table[name] = (status, meaning)

    manual = {}
    text = (source / "man/agentbox-result.5.scd").read_text()
    section = re.search(r"^# ERROR CODES$(.*?)(?=^# )", text, re.M | re.S)
    lines = section[1].splitlines() if section else []
    for at, line in enumerate(lines):
        match = ENTRY.match(line)
        if match:
            body = []
            for below in lines[at + 1:]:
                if not below.startswith("\t"):
                    break
                body.append(below.strip())
            manual[match[1]] = (match[2], re.sub(r"\\(.)", r"\1", " ".join(body)))

    faults = [] if table else ["the table is empty"]
    for name, (status, meaning) in table.items():
        if name not in manual:
            faults.append(f"manual: {name} is missing")
            continue
        if manual[name][0] != status:
            faults.append(f"manual: {name} has status {manual[name][0]}, in the table {status}")
        if not manual[name][1].startswith(meaning):
            faults.append(f"manual: {name}: does not begin with the table's words")
    faults += [f"manual: {name} is not in the table" for name in manual if name not in table]
    if list(manual) != sorted(manual) or list(table) != sorted(table):
        faults.append("the codes are not sorted")

    for fault in faults:
        print(fault)
    if not faults:
        print(f"{len(table)} error codes: table and manual agree")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
