#!/usr/bin/python3
"""Talks to agentbox-resolve as the gateway does.

usage: resolve.py HELPER NAME...        prints "NAME STATUS ADDRESS..." for each
       resolve.py HELPER --confined     prints what the kernel says of it, and how it ends
"""

import os
import socket
import struct
import subprocess
import sys

REQUEST, HEAD, ADDRESS = struct.Struct("=QH254s"), struct.Struct("=QiB3x"), struct.Struct("=B3xI16s")
IDS = ("54321", "54321") if os.geteuid() == 0 else ()


class Helper:
    def __init__(self, program, *args):
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(60)
        # Below the descriptors of this program itself.
        with theirs:
            self.process = subprocess.Popen(
                [program, *(args or IDS)], close_fds=False, stderr=subprocess.DEVNULL,
                preexec_fn=lambda: os.dup2(theirs.fileno(), 3, inheritable=True))

    def ask(self, ident, name):
        self.sock.send(REQUEST.pack(ident, len(name), name.encode()))

    def answer(self):
        data = self.sock.recv(4096)
        ident, status, count = HEAD.unpack_from(data)
        addresses = []
        for i in range(count):
            family, _, raw = ADDRESS.unpack_from(data, HEAD.size + i * ADDRESS.size)
            addresses.append(socket.inet_ntop(*((socket.AF_INET, raw[:4]) if family == 4 else (socket.AF_INET6, raw))))
        return ident, status, addresses

    def end(self):
        self.sock.close()
        return self.process.wait(60)


def look_up(program, names):
    helper, answers = Helper(program), {}
    for ident, name in enumerate(names):
        helper.ask(ident, name)
    for _ in names:
        ident, status, addresses = helper.answer()
        answers[ident] = [names[ident], str(status), *addresses]
    for ident in sorted(answers):
        print(*answers[ident])
    if helper.end() != 0:
        sys.exit("the helper failed")


def ends_at(program, message):
    helper = Helper(program)
    helper.sock.send(message)
    # It goes by itself, while this end is open.
    return helper.process.wait(60)


def confined(program):
    helper = Helper(program)
    helper.ask(1, "localhost")
    helper.answer()
    with open(f"/proc/{helper.process.pid}/status") as status:
        for line in status:
            print(*line.replace(":", "").split())
    print("ended", helper.end())
    print("short", ends_at(program, b"x"))
    print("long", ends_at(program, REQUEST.pack(1, 9, b"localhost") + b"\0"))
    print("name", ends_at(program, REQUEST.pack(1, 4, b"a\0.b")))
    print("address", ends_at(program, REQUEST.pack(1, 9, b"127.0.0.1")))
    # It is ended while it waits for room for its answers.
    helper = Helper(program)
    helper.sock.setblocking(False)
    try:
        while True:
            helper.ask(1, "localhost")
    except BlockingIOError:
        pass
    print("unread", helper.end())
    for words in (("0", "4294967295"), ("0", "0"), ("54321",), ("54321", "54321", "x")):
        print("usage", Helper(program, *words).process.wait(60))
    if os.geteuid() == 0:
        print("usage", Helper(program, "best-effort").process.wait(60))


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if sys.argv[2] == "--confined":
        confined(sys.argv[1])
    else:
        look_up(sys.argv[1], sys.argv[2:])


main()
