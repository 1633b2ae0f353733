#!/usr/bin/python3
"""A small internet of one process, for tests: names, servers, and a log of all that reached them.

usage: internet.py DIR PARENT

It ends with its parent, the process PARENT. It runs in a network namespace of its own (network.bash makes it), where every address that it serves
is local, and listens on all of them:

    53      names, by datagrams and streams, from the table below
    80      HTTP/1.1
    443     the same behind TLS, if DIR has cert.pem and key.pem
    7       sends back what it gets
    22      greets like an SSH server, then sends back what it gets
    5432    the same with another greeting, also on the loopback

DIR/log gets a line for each event, written before the answer goes out:

    dns TYPE NAME SERVER-ADDRESS
    tcp ADDRESS PORT                            a connection, with the address that was dialled
    tls ADDRESS NAME                            a ClientHello, "-" without a name
    http ADDRESS PORT METHOD TARGET HOST        a request, "-" without a Host field

Ports that DIR/without has, one a line, are left to a test's own servers.

DIR/packets gets the first bytes of every packet (8 MiB of them in all), and DIR/passed a line for each new
combination that any packet has, in the order of their coming; neither if DIR/quiet is there:

    PROTOCOL FROM PORT TO PORT                  port 0 where the protocol has none
    lost N                                      so many packets were not seen

DIR/ready is there when everything listens. HTTP: /size/N answers with N bytes, /www/... with files
below DIR/www, an Upgrade with 101 and then what it gets; all else with "METHOD TARGET HOST".
"""

import ctypes
import os
import signal
import socket
import socketserver
import ssl
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler

V4, V6 = "203.0.113.", "2001:db8::"
EVIL = [V4 + "66", V6 + "66"]
# Exact names; addresses of both families in one list.
NAMES = {
    "allowed.test": [V4 + "1", V6 + "1"],
    "plain.test": [V4 + "3"],
    "inject.test": [V4 + "4"],
    "other.test": [V4 + "5"],
    "six.test": [V6 + "6"],
    "evil.test": EVIL,
    "notallowed.test": EVIL,
    "allowed.test.evil.test": EVIL,
    "xn--llowed-2nf.test": EVIL,  # its first letter is a Cyrillic a
    "xn--bcher-kva.test": [V4 + "7"],
    "metadata.test": ["169.254.169.254"],
    "private.test": ["10.1.2.3"],
    "loopback.test": ["127.0.0.1", "::1"],
    "mapped.test": ["::ffff:10.0.0.1"],
    "nat64.test": ["64:ff9b::a01:203"],
    "mixed.test": ["10.1.2.3", V4 + "8"],
    "many.test": [V4 + str(n) for n in range(100, 140)],
    "shared.test": [V4 + "1", V6 + "1"],  # another name of the server of allowed.test
}
# Names with any labels in front. A resolver that tries its search list is seen by corp.test.
BELOW = {"allowed.test": [V4 + "2"], "evil.test": EVIL, "corp.test": EVIL}
# One answer after another; the last one stays.
TURNS = {"rebind.test": [["198.51.100.7"], ["127.0.0.1"]]}
SILENT = {"silent.test"}
TYPES = {1: "A", 28: "AAAA"}

PACKETS_MAX = 8 << 20
PROTOCOLS = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmp6", 132: "sctp"}
SOL_PACKET, PACKET_STATISTICS, SO_RCVBUFFORCE = 263, 6, 33


class Internet:
    def __init__(self, place):
        self.place, self.turn = place, {}
        self.lock = threading.Lock()
        self.log_file = open(os.path.join(place, "log"), "ab", buffering=0)

    def log(self, *words):
        line = " ".join(words).encode("utf-8", "backslashreplace")
        with self.lock:
            self.log_file.write(line.replace(b"\n", b"\\n") + b"\n")

    def addresses(self, name):
        if name in TURNS:
            with self.lock:
                at = self.turn.get(name, 0)
                self.turn[name] = at + 1
            return TURNS[name][min(at, len(TURNS[name]) - 1)]
        if name in NAMES:
            return NAMES[name]
        for suffix, addresses in BELOW.items():
            if name.endswith("." + suffix):
                return addresses
        return None


def record(question_type, address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    if question_type != (28 if family == socket.AF_INET6 else 1):
        return b""
    data = socket.inet_pton(family, address)
    return struct.pack(">HHHIH", 0xC00C, question_type, 1, 0, len(data)) + data


def dns_answer(net, message, where, most):
    """The answer to a message, None for none."""
    ident, flags, questions = struct.unpack(">HHH", message[:6])
    labels, at = [], 12
    while message[at]:
        labels.append(message[at + 1:at + 1 + message[at]])
        at += 1 + message[at]
    name = b".".join(labels).decode("latin-1").lower()
    kind, = struct.unpack(">H", message[at + 1:at + 3])
    net.log("dns", TYPES.get(kind, str(kind)), name, where)
    if name in SILENT or flags & 0x8000 or questions != 1:
        return None
    # A type that is not asked for takes no turn.
    addresses = net.addresses(name) if not (name in TURNS and kind != 1) else []
    records = [r for r in (record(kind, a) for a in addresses or []) if r]
    cut = len(message[:at + 5]) + sum(map(len, records)) > most
    head = struct.pack(">HHHHHH", ident, 0x8180 | (0x0200 if cut else 0) | (0 if addresses is not None else 3),
                       1, 0 if cut else len(records), 0, 0)
    return head + message[12:at + 5] + (b"" if cut else b"".join(records))


def serve_datagrams(net, sock):
    while True:
        message, _, _, peer = sock.recvmsg(4096)
        try:
            answer = dns_answer(net, message, "udp", 512)
        except (IndexError, struct.error):
            answer = None
        if answer:
            sock.sendto(answer, peer)


class Handler(socketserver.BaseRequestHandler):
    """A connection, which is logged with the address that was dialled."""

    def setup(self):
        address, port = self.request.getsockname()[:2]
        self.where = address.removeprefix("::ffff:")
        self.server.net.log("tcp", self.where, str(port))


class Names(Handler):
    def handle(self):
        while True:
            head = self.request.recv(2, socket.MSG_WAITALL)
            if len(head) < 2:
                return
            message = self.request.recv(struct.unpack(">H", head)[0], socket.MSG_WAITALL)
            answer = dns_answer(self.server.net, message, "tcp", 65535)
            if answer:
                self.request.sendall(struct.pack(">H", len(answer)) + answer)


class Echo(Handler):
    GREETING = {22: b"SSH-2.0-test\r\n", 5432: b"database\n"}

    def handle(self):
        self.request.sendall(self.GREETING.get(self.server.server_address[1], b""))
        while data := self.request.recv(65536):
            self.request.sendall(data)


class Web(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    piece = bytes(1 << 16)

    def setup(self):
        self.port = self.server.server_address[1]
        self.where = self.request.getsockname()[0].removeprefix("::ffff:")
        self.server.net.log("tcp", self.where, str(self.port))
        if self.server.tls:
            self.request = self.server.tls.wrap_socket(self.request, server_side=True, do_handshake_on_connect=False)
            self.request.where = self.where
            self.request.do_handshake()
        super().setup()

    def log_message(self, *args):
        pass

    def answer(self):
        net, host = self.server.net, self.headers.get("Host", "-")
        net.log("http", self.where, str(self.port), self.command, self.path, host)
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if "Upgrade" in self.headers:
            return self.upgrade()
        if self.path.startswith("/size/"):
            return self.send_size(int(self.path[6:]))
        status, body = 200, f"{self.command} {self.path} {host}\n".encode()
        if self.path.startswith("/www/"):
            try:
                with open(net.place + self.path.split("?")[0], "rb") as file:
                    body = file.read()
            except OSError:
                status, body = 404, b"not here\n"
        self.head(status, len(body))
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_HEAD = answer

    def head(self, status, length):
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def send_size(self, size):
        self.head(200, size)
        while size > 0:
            self.wfile.write(self.piece[:size])
            size -= len(self.piece)

    def upgrade(self):
        self.send_response(101)
        self.send_header("Upgrade", self.headers["Upgrade"])
        self.send_header("Connection", "Upgrade")
        self.end_headers()
        self.close_connection = True
        while data := self.rfile.read1(65536):
            self.wfile.write(data)


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 1024
    address_family = socket.AF_INET6 if socket.has_ipv6 else socket.AF_INET

    def __init__(self, net, port, handler, tls=None):
        self.net, self.tls = net, tls
        super().__init__(("", port), handler)

    def server_bind(self):
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def handle_error(self, request, client_address):
        pass


def tls_context(net):
    if not os.path.exists(net.place + "/cert.pem"):
        return None

    def named(sock, name, _):
        net.log("tls", sock.where, name or "-")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(net.place + "/cert.pem", net.place + "/key.pem")
    context.sni_callback = named
    return context


def passed(kind, data):
    """One packet's line in DIR/passed."""
    if kind == 0x0800 and len(data) >= 20:
        family, proto, ends, rest = socket.AF_INET, data[9], data[12:20], data[(data[0] & 15) * 4:]
    elif kind == 0x86DD and len(data) >= 40:
        family, proto, ends, rest = socket.AF_INET6, data[6], data[8:40], data[40:]
    else:
        return f"ether {kind:#x} 0 - 0"
    half = len(ends) // 2
    ports = struct.unpack(">HH", rest[:4]) if proto in (6, 17, 132, 136) and len(rest) >= 4 else (0, 0)
    return (f"{PROTOCOLS.get(proto, proto)} {socket.inet_ntop(family, ends[:half])} {ports[0]}"
            f" {socket.inet_ntop(family, ends[half:])} {ports[1]}")


def keep_packets(net, sock):
    """Of everything that any interface of this namespace carries; on the loopback once."""
    kept, seen = 0, set()
    with open(net.place + "/packets", "ab", buffering=0) as file, \
            open(net.place + "/passed", "ab", buffering=0) as lines:
        while True:
            data, sender = sock.recvfrom(512)
            if sender[2] == 4:  # PACKET_OUTGOING: seen once more when it arrives
                continue
            if kept < PACKETS_MAX:
                file.write(data)
                kept += len(data)
            line = passed(sender[1], data[14:])
            if line in seen:
                continue
            seen.add(line)
            lost, = struct.unpack("4xI", sock.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
            lines.write((f"lost {lost}\n" if lost else "").encode() + line.encode() + b"\n")


def packets():
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 32 << 20)
    except OSError:
        pass  # the user's half: what the buffer does not take is counted
    return sock


def start(function, *args):
    threading.Thread(target=function, args=args, daemon=True).start()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != int(sys.argv[2]):
        sys.exit("the parent is gone")
    net = Internet(sys.argv[1])
    if not os.path.exists(net.place + "/quiet"):
        start(keep_packets, net, packets())
    with open(net.place + "/without") as file:
        without = {int(port) for port in file}
    tls = tls_context(net)
    services = {53: Names, 80: Web, 443: Web if tls else None, 8080: Web, 7: Echo, 22: Echo, 5432: Echo}
    for port, handler in services.items():
        if handler and port not in without:
            start(Server(net, port, handler, tls if port == 443 else None).serve_forever)
    if 53 not in without:
        datagrams = socket.socket(Server.address_family, socket.SOCK_DGRAM)
        if Server.address_family == socket.AF_INET6:
            datagrams.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        datagrams.bind(("", 53))
        start(serve_datagrams, net, datagrams)
    open(net.place + "/ready", "w").close()
    threading.Event().wait()


main()
