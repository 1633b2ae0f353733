#!/usr/bin/env python3
"""Holds every copy of the tables of commands and options against the tables themselves.

usage: options_check.py AGENTBOX SOURCE_DIR

The tables are what `agentbox dump commands` and `agentbox dump options` print. The copies are the
texts of --help, the manual pages, and the completions of bash, zsh and fish. A copy must name all
that the table has, and nothing else; the completions leave out what this version refuses.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

LONG = r"--[a-z][a-z-]*"


def run(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def rows(agentbox, table):
    return [line.split("\t") for line in run(agentbox, "dump", table).splitlines()]


class Option:
    def __init__(self, name, letter, argument, many):
        self.words = {f"--{name}"} | ({f"-{letter}"} if letter != "-" else set())
        self.argument = "" if argument == "-" else argument
        self.many = many == "many"


class Checker:
    def __init__(self, agentbox, source):
        self.agentbox, self.source, self.failures = agentbox, source, 0
        self.commands = [row[0] for row in rows(agentbox, "commands") if row[1] == "shown"]
        self.table = rows(agentbox, "options")
        self.check_table()

    def fail(self, text):
        print(text, file=sys.stderr)
        self.failures += 1

    def compare(self, place, found, wanted):
        for word in sorted(wanted - found):
            self.fail(f"{place}: {word} is missing")
        for word in sorted(found - wanted):
            self.fail(f"{place}: {word} is not in the table")

    def options(self, command):
        """What `command` takes; "" stands for what may be written before a command."""
        owner = command or "agentbox"
        return [Option(*row[1:4], row[5]) for row in self.table if row[0] in (owner, "any")]

    def words(self, command):
        return set().union(*(option.words for option in self.options(command)))

    def offered(self, command):
        """What a completion offers: not what is only there to be refused by name."""
        refused = {f"--{row[1]}" for row in self.table
                   if row[0] == command and "not in this version" in row[-1]}
        return self.words(command) - refused

    def check_table(self):
        """Rows of a command stand together; a limit has the name of a key of the policy."""
        owners = [row[0] for row in self.table]
        groups = [name for i, name in enumerate(owners) if i == 0 or owners[i - 1] != name]
        if len(groups) != len(set(groups)):
            self.fail("options.def: the rows of a command do not stand together")
        keys = {row[0] for row in rows(self.agentbox, "keys")}
        for row in self.table:
            key = "limits." + row[1].replace("-", "_")
            if row[4] == "limit" and key not in keys:
                self.fail(f"options.def: --{row[1]}: the policy has no key {key}")
        named = {"limits." + row[1].replace("-", "_") for row in self.table if row[4] == "limit"}
        ours = {k for k in keys if re.fullmatch(r"limits\.[a-z_]+", k)} - {"limits.output_action"}
        self.compare("limits as options of run", named, ours)

    def check_help(self):
        for command in ["", *self.commands]:
            text = run(self.agentbox, *([command] if command else []), "--help")
            found = set()
            for line in text.split("Options:\n", 1)[1].splitlines():
                if line.startswith("  ") and re.match(r"  (-.,|   ) ", line):
                    found |= set(re.findall(rf"(?<![\w-])(?:{LONG}|-[A-Za-z])(?![\w-])",
                                            re.split(r" {2,}", line.strip())[0]))
            self.compare(f"agentbox {command} --help", found, self.words(command))
            if command:
                self.same_text(command, text)
        listed = set(re.findall(r"^  ([a-z]+) ", run(self.agentbox, "--help"), re.M))
        self.compare("agentbox --help", listed, set(self.commands))

    def same_text(self, command, text):
        if run(self.agentbox, "help", command) != text:
            self.fail(f"agentbox help {command} and agentbox {command} --help differ")

    def check_manual(self):
        for command in ["", *self.commands]:
            if command == "help":
                continue
            page = self.source / "man" / (f"agentbox-{command}.1.scd" if command else
                                          "agentbox.1.scd")
            if not page.exists():
                self.fail(f"{page}: the page is missing")
                continue
            self.check_page(page, command)
        text = (self.source / "man" / "agentbox.1.scd").read_text()
        section = text.split("# COMMANDS\n", 1)[1].split("\n# ", 1)[0]
        self.compare("agentbox.1, COMMANDS", set(re.findall(r"^\*([a-z]+)\*$", section, re.M)),
                     set(self.commands))

    def check_page(self, page, command):
        text = page.read_text()
        match = re.search(r"^# OPTIONS\n(.*?)(?=^# )", text, re.M | re.S)
        if not match:
            self.fail(f"{page.name}: there is no section OPTIONS")
            return
        heads = [line for line in match.group(1).splitlines() if line.startswith("*-")]
        found = {word for line in heads for word in re.findall(r"\*(-[^*]+)\*", line)}
        self.compare(page.name, found, self.words(command))
        joined = "\n".join(heads)
        for option in self.options(command):
            long = next(word for word in option.words if word.startswith("--"))
            if option.argument and f"*{long}* _{option.argument}_" not in joined:
                self.fail(f"{page.name}: {long} is not shown with its argument, "
                          f"_{option.argument}_")
        everywhere = set(re.findall(rf"\*({LONG})\*", text))
        known = {"--"}.union(*(self.words(name) for name in ["", *self.commands]))
        self.compare(f"{page.name}, whole text", everywhere - known, set())

    def check_bash(self):
        script = self.source / "completions" / "agentbox.bash"
        code = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _agentbox; '
                'printf "%s\\n" "${COMPREPLY[@]}"')

        def complete(*words):
            return set(run("bash", "--norc", "-c", code, "bash", script, *words).split())

        self.compare("completions/agentbox.bash", complete("agentbox", ""), set(self.commands))
        self.compare("completions/agentbox.bash, before a command", complete("agentbox", "-"),
                     self.words(""))
        for command in self.commands:
            self.compare(f"completions/agentbox.bash, {command}",
                         complete("agentbox", command, "-"), self.offered(command))
        for option in self.options("run"):
            for word in option.words:
                # Behind an option with a value its value is completed, else the next option.
                offered = complete("agentbox", "run", word, "--wal") == {"--wall"}
                if offered == bool(option.argument):
                    self.fail(f"completions/agentbox.bash, run: has {word} a value?")
        self.check_bash_values(complete)
        for before in (["true"], ["--"], ["-p", "x", "true"], ["--", "true"]):
            if complete("agentbox", "run", *before, "--wal"):
                self.fail(f"completions/agentbox.bash: run {' '.join(before)}: the options of run "
                          "are offered to the command")

    def check_bash_values(self, complete):
        """Policies are names, directories and files of YAML; languages those of the policy named."""
        with tempfile.TemporaryDirectory() as place:
            for name in ("a.yaml", "b.yml", "c.txt"):
                (Path(place) / name).write_text("version: 1\ncode: {own: {command: [x, '{file}']}}\n")
            (Path(place) / "dir").mkdir()
            wanted = {f"{place}/{name}" for name in ("a.yaml", "b.yml", "dir")}
            for words in (["run", "-p"], ["check"], ["show"], ["explain"], ["test"]):
                self.compare(f"completions/agentbox.bash, {' '.join(words)}, files",
                             complete("agentbox", *words, f"{place}/"), wanted)
            self.compare("completions/agentbox.bash, --lang",
                         complete(self.agentbox, "run", "-p", f"{place}/b.yml", "--lang", ""), {"own"})

    def check_zsh(self):
        text = (self.source / "completions" / "_agentbox").read_text()
        functions = dict(re.findall(r"^(_agentbox\w*)\(\) \{\n(.*?)^\}", text, re.M | re.S))
        listed = set(re.findall(r"^\t\t'([a-z]+):", functions["_agentbox_commands"], re.M))
        self.compare("completions/_agentbox", listed, set(self.commands))
        for command in ["", *self.commands]:
            name = f"_agentbox_{command}" if command else "_agentbox"
            specs = re.findall(r"^\t\t('\*'|'\*(?=-))?(?:\{(-[^}]*)\}'|'?(--[a-z-]+))\[.*\](:?)",
                               functions.get(name, ""), re.M)
            found, values, many = set(), set(), set()
            for star, braces, single, colon in specs:
                words = set((braces or single).split(","))
                found |= words
                values |= words if colon else set()
                many |= words if star else set()
            options = self.options(command)
            place = f"completions/_agentbox, {command or 'before a command'}"
            self.compare(place, found, self.offered(command))
            self.compare(f"{place}, with a value", values,
                         set().union(*(o.words for o in options if o.argument)))
            self.compare(f"{place}, repeatable", many,
                         set().union(*(o.words for o in options if o.many)))

    def check_fish(self):
        text = (self.source / "completions" / "agentbox.fish").read_text()
        lines = [line for line in text.splitlines() if line.startswith("complete ")]
        listed = {m.group(1) for line in lines
                  if (m := re.search(r"-n __agentbox_needs_command -a ([a-z]+) ", line))}
        self.compare("completions/agentbox.fish", listed, set(self.commands))
        again = re.search(r"in help' -a '([^']*)'", text)
        self.compare("completions/agentbox.fish, help", set(again.group(1).split()),
                     set(self.commands))
        for command in ["", *self.commands]:
            where = {"": "__agentbox_needs_command", "run": "__agentbox_in_run_options"}.get(
                command, f"'__agentbox_in {command}'")
            found, values = set(), set()
            for line in lines:
                if f"-n {where} " not in line or not (m := re.search(r" -l ([a-z-]+)", line)):
                    continue
                letter = re.search(r" -s (\w)", line)
                words = {f"--{m.group(1)}"} | ({f"-{letter.group(1)}"} if letter else set())
                found |= words
                values |= words if re.search(r" -[xr] ", line) else set()
            place = f"completions/agentbox.fish, {command or 'before a command'}"
            self.compare(place, found, self.offered(command))
            self.compare(f"{place}, with a value", values, set().union(
                *(o.words for o in self.options(command) if o.argument)))
        taken = re.search(r"with_value ((?:.*\\\n)*.*)", text).group(1).replace("\\", " ").split()
        self.compare("completions/agentbox.fish, with_value", set(taken),
                     set().union(*(o.words for o in self.options("run") if o.argument)))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    checker = Checker(sys.argv[1], Path(sys.argv[2]))
    checker.check_help()
    checker.check_manual()
    checker.check_bash()
    checker.check_zsh()
    checker.check_fish()
    sys.exit(1 if checker.failures else 0)


main()
