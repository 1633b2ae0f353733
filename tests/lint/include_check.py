#!/usr/bin/env python3
"""Who may include whom, and how long files and functions may be.

usage: include_check.py SOURCE_DIR

The table below is the one of src/README.md. A room that needs more gets it there and here, in one
commit that says why.
"""

import re
import sys
from pathlib import Path

FILE_LINES = 500
FUNCTION_LINES = 60
MAIN_LINES = 40

# What a room may include of the other rooms; "base" stands for all of its headers.
PUBLIC = {"policy/policy.h", "plan/plan.h", "plan/host.h", "plan/request.h", "plan/filter.h",
          "plan/explain.h", "plan/gaps.h", "plan/host_diagnosis.h", "policy/keys.h", "box/box.h", "box/cgroup.h",
          "box/stages.h",
          "box/sync.h", "box/renames.h", "report/result.h", "report/changes.h", "report/dump.h", "supervise/supervise.h",
          "workspace/applied.h", "workspace/apply.h", "workspace/changes.h", "workspace/diff.h", "workspace/kept.h", "workspace/session.h",
          "workspace/session_keeper.h", "workspace/session_layers.h",
          "workspace/state.h", "workspace/tar.h", "workspace/tree.h", "workspace/view.h"}
ROOMS = {
    "base": set(),
    "policy": {"base"},
    "plan": {"base", "policy/policy.h"},
    "box": {"base/err.h", "base/fd.h", "base/message.h", "base/sys.h", "plan/plan.h", "workspace/tree.h"},
    "supervise": {"base", "plan/plan.h", "plan/filter.h", "plan/network.h", "box/box.h", "box/sync.h", "box/renames.h", "broker/gateway.h",
                  "report/result.h"},
    "broker": {"base", "plan/plan.h", "plan/network.h", "box/box.h", "box/sync.h", "report/result.h"},
    "workspace": {"base", "plan/plan.h", "box/box.h", "box/sync.h", "report/result.h", "report/changes.h"},
    "report": {"base", "plan/plan.h", "policy/policy.h", "box/stages.def"},
    "cli": {"base"} | PUBLIC,
    "libc": set(),
    "": {"cli/cli.h"},
}

# Single files that see one header more than their room, each with its reason.
EXTRA = {
    # The layer, rule and hint of a refused call come from the table that makes the filter.
    ("plan/filter_describe.c", "report/result.h"),
}

# Headers of libraries, and the only files that may include them.
LIBRARIES = {
    "yaml.h": {"policy/tree.c", "libc/link_check.c"},
    "jansson.h": set(),
    "seccomp.h": set(),
    "sha2.h": None,
    "bpf/": set(),
    "systemd/": {"cli/scope_main.c"},
    "idn2.h": {"policy/idn_main.c"},
    "archive": {"cli/archive_main.c"},
}

# Written while agentbox is built.
MADE = {"plan/filter_shipped.h", "policy/ready_shipped.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')


class Checker:
    def __init__(self, source):
        self.source, self.failures = source, 0

    def fail(self, place, text):
        print(f"{place}: {text}", file=sys.stderr)
        self.failures += 1

    def check_file(self, path):
        name = path.relative_to(self.source).as_posix()
        lines = path.read_text().splitlines()
        if path.suffix == ".c":
            limit = MAIN_LINES if name == "main.c" else FILE_LINES
            if len(lines) > limit:
                self.fail(name, f"{len(lines)} lines, at most {limit}")
            self.check_functions(name, lines)
        if not lines or not lines[0].startswith("/*"):
            self.fail(f"{name}:1", "does not begin with what it owns and never does")
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            if match:
                self.check_include(name, number, match.group(2), match.group(1) == '"')

    def check_functions(self, name, lines):
        """A function begins with "{" and ends with "}", each alone in the first column."""
        start = None
        for number, line in enumerate(lines, 1):
            if line == "{":
                start = number
            elif line == "}" and start is not None:
                if number - start - 1 > FUNCTION_LINES:
                    self.fail(f"{name}:{start}",
                              f"a function of {number - start - 1} lines, at most {FUNCTION_LINES}")
                start = None

    def check_include(self, name, number, header, quoted):
        place = f"{name}:{number}"
        if not quoted:
            for library, users in LIBRARIES.items():
                if header.startswith(library) and users is not None and name not in users:
                    self.fail(place, f"<{header}> belongs in {', '.join(sorted(users)) or 'no file'}")
            return
        room = name.split("/")[0] if "/" in name else ""
        if "/" not in header:
            self.fail(place, f'"{header}": write it with its room')
            return
        other = header.split("/")[0]
        may = ROOMS.get(room)
        if may is None:
            self.fail(place, f"the room {room} is not in the table")
        elif other != room and other not in may and header not in may and \
                (name, header) not in EXTRA:
            self.fail(place, f'{room or "main"} may not include "{header}"')
        if not header.endswith(".inc") and not (self.source / header).exists() and \
                header not in MADE:
            self.fail(place, f'"{header}" does not exist')


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    source = Path(sys.argv[1]) / "src"
    checker = Checker(source)
    files = sorted(p for p in source.rglob("*") if p.suffix in (".c", ".h", ".def"))
    if not files:
        sys.exit(f"{source}: no files")
    for path in files:
        checker.check_file(path)
    sys.exit(1 if checker.failures else 0)


main()
