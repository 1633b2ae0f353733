"""Holds the README to its word: runs the commands of its `console` blocks, in order and in one new
directory, and compares what they print.

    readme.py README.md

In a `console` block a line that begins with "$ " is a command for sh; the lines up to the next one are
what it prints, stdout and stderr together. A line "..." stands for any lines, and "..." within a line
for any text. A block of another kind whose first line is a comment `# file: NAME` is written to NAME.
"""
import fnmatch
import re
import subprocess
import sys
import tempfile


def blocks(text):
    for kind, body in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        yield kind, body


def steps(body):
    """[(command, expected lines)] of a console block."""
    found = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
    return found


def matches(expected, got):
    """Do the lines match, "..." lines standing for any number of lines?"""
    if not expected:
        return not got
    if expected[0] == "...":
        return any(matches(expected[1:], got[i:]) for i in range(len(got) + 1))
    if not got:
        return False
    pattern = re.sub(r"([*?[])", r"[\1]", expected[0]).replace("...", "*")
    return fnmatch.fnmatchcase(got[0], pattern) and matches(expected[1:], got[1:])


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    count = 0
    with tempfile.TemporaryDirectory() as place:
        for kind, body in blocks(text):
            name = re.match(r"# file: (\S+)\n", body)
            if name and kind != "console":
                with open("%s/%s" % (place, name.group(1)), "w", encoding="utf-8") as file:
                    file.write(body)
            if kind != "console":
                continue
            for command, expected in steps(body):
                done = subprocess.run(["sh", "-c", command], cwd=place, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
                got = done.stdout.decode("utf-8").splitlines()
                if not matches(expected, got):
                    sys.exit("$ %s\nshown:\n%s\nprinted:\n%s" % (command, "\n".join(expected), "\n".join(got)))
                count += 1
    print("%d commands" % count)
    if count < 5:
        sys.exit("hardly any command was found")


main()
